"""`init`, `migrate` and `version`: the commands that come before there is a running gateway."""

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from gateway import profile
from gateway.cli import options, printing
from gateway.cli.printing import fail

if TYPE_CHECKING:
    from gateway.settings import Settings


def settings_of(config: str | None, overrides: dict[str, object] | None = None) -> "Settings":
    """The settings in force; a wrong one ends the command with one line and code 2."""
    from gateway.settings import load

    try:
        return load(config, overrides)
    except ValueError as error:
        fail(error, 2)


def url_of(settings: "Settings") -> str:
    """The URL by which this machine reaches the HTTP door of these settings."""
    from gateway.settings import split_bind

    host, port = split_bind(settings.http_bind or "127.0.0.1:8080")
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def init(
    tenant: Annotated[str, typer.Option("--tenant", metavar="TENANT", help="The tenant to make.")] = "default",
    mailbox: Annotated[
        str | None,
        typer.Option(
            "--mailbox",
            metavar="ADDRESS",
            help="The address to send as; without it the tenant's first, else agent@HOSTNAME.",
        ),
    ] = None,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Make the database ready: migrate it, make a tenant, a mailbox and an operator key.

    What is there already stays as it is, so it may be run again. The key is shown once, when it is made, and written to
    the profile (~/.config/gateway/profile.toml, or what GATEWAY_PROFILE names), where the other commands find it.
    Without a new key no profile is written: `gateway keys create` and `gateway profiles add` make one.
    """
    from gateway.cli.found import found, opened
    from gateway.core.address import AddressError, parse
    from gateway.core.errors import GatewayError

    settings = settings_of(config)
    if not tenant or len(tenant) > 64 or not all(c.isascii() and (c.isalnum() or c in "._-") for c in tenant):  # noqa: PLR2004
        raise typer.BadParameter("must be 1 to 64 letters, digits, dots, dashes or underscores", param_hint="--tenant")
    try:
        special = settings.special_use | {settings.hostname}  # a name at which nobody else could be mailed will do here
        address = parse(mailbox or f"agent@{settings.hostname}", special_use=special)
    except AddressError as error:
        raise typer.BadParameter(f"{error.why}", param_hint="--mailbox") from None
    try:
        store = opened(settings.database_url)
        try:
            made = found(store, tenant, address, named=mailbox is not None)
        finally:
            store.close()
    except (ValueError, GatewayError) as error:
        fail(error, 2 if isinstance(error, ValueError) else 1)
    body = {"tenantId": made.tenant, "mailboxId": made.mailbox.id, "address": made.mailbox.address}
    kept = ""
    if made.raw_key is None:
        _unwritten(made.tenant, settings, config)
    else:
        body["rawKey"] = made.raw_key
        kept = _keep(profile.Profile(url_of(settings), made.raw_key))
    if as_json:
        printing.document(body)
    else:
        _tell(body, kept)


def _keep(mine: profile.Profile) -> str:
    """Write the profile; a home that cannot be written to is a warning, since the key is printed as well."""
    try:
        former = profile.place().exists()
        kept = str(profile.write(mine))
        if former:
            printing.note(f"the former profile is in {kept}.old")
        return kept
    except OSError as error:
        printing.note(
            f"warning: the profile {profile.place()} cannot be written: {error.strerror}; keep the key yourself"
        )
        return ""


def _unwritten(tenant: str, settings: "Settings", config: str | None) -> None:
    """Say that no profile was written, and by which commands one is made."""
    path = profile.place()
    state = f"{path} stays as it is" if path.exists() else f"there is no {path}"
    printing.note(f"no profile was written, as no key was made: {state}")
    made = ["gateway", "keys", "create", "--label", "operator", "--scopes", "operator"]
    made += [] if tenant == "default" else ["--tenant", tenant]
    made += [] if config is None else ["--config", config]
    name = path.stem if profile.named(path.stem) == path else str(path)
    kept = ["gateway", "profiles", "add", name, "--url", url_of(settings), *(["--force"] if path.exists() else [])]
    printing.note(f"to have one: `{shlex.join(made)}`, then `{shlex.join(kept)}`, which reads the key from stdin")


def _tell(body: dict[str, str], kept: str) -> None:
    printing.line("the database is ready", "good")
    printing.pairs(
        [
            ("tenant", body["tenantId"]),
            ("mailbox", f"{body['address']} ({body['mailboxId']})"),
            ("operator key", body.get("rawKey", "made earlier, and not shown again")),
            ("profile", kept or "none was written"),
            ("next", "gateway serve"),
        ]
    )


def migrate(
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Bring the database to the schema of this version; several may try at once, and nothing is lost."""
    from gateway.store import dialect_of
    from gateway.store import migrate as upgrade
    from gateway.store.migrate import revisions

    settings = settings_of(config)
    try:
        dialect = dialect_of(settings.database_url)
        before, newest = revisions(dialect)
        if before != newest:
            upgrade(dialect)
    except ValueError as error:
        fail(error, 2)
    if as_json:
        printing.document({"from": before, "to": newest, "changed": before != newest})
    elif before == newest:
        printing.line(f"the database is at revision {newest}: nothing to do", "good")
    else:
        printing.line(f"the database went from {before or 'empty'} to revision {newest}", "good")


def version(as_json: options.Json = False) -> None:
    """Print the version."""
    from gateway import __version__

    if as_json:
        printing.document({"version": __version__})
    else:
        printing.line(__version__)
