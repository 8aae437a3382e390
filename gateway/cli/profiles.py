"""`profiles ...`: the gateways that this user knows, each with its key; which of them is meant where none is named."""

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from gateway import profile
from gateway.cli import options, printing
from gateway.cli.printing import fail

if TYPE_CHECKING:
    from gateway.client.where import Place

SHOWN = 12
"""Characters of a key that are shown: its kind and a little of what tells it from others."""
ASKED_SECONDS = 10.0

Name = Annotated[str, typer.Argument(metavar="NAME", autocompletion=options.profiles_like, help="The profile's name.")]


def list_profiles(as_json: options.Json = False) -> None:
    """List the profiles by name; the one that is meant where --profile names none is marked."""
    rows = [_row(name) for name in profile.names()]
    if as_json:
        printing.document(rows)
        return
    marked = [("*" if row["meant"] else "", row["name"], row["url"] or row["fault"], row["path"]) for row in rows]
    printing.table(("", "profile", "gateway", "file"), marked)
    named, place = os.environ.get("GATEWAY_PROFILE"), profile.place()
    if not os.path.exists(place) and (named or rows):  # noqa: PTH110  (no error for a name that no file can have)
        whose = "the profile that GATEWAY_PROFILE names" if named else "the profile that is meant"
        printing.note(f"{whose} is missing: {place}")
    elif named and place != profile.named(profile.default()):
        printing.note(f"GATEWAY_PROFILE names the one that is meant: {place}")


def _row(name: str) -> dict[str, object]:
    path, url, fault = profile.named(name), None, None
    try:
        known = profile.read(path)
        url = None if known is None else known.url
    except ValueError as error:
        fault = str(error)
    chosen = {"default": name == profile.default(), "meant": path == profile.place()}
    return {"name": name, **chosen, "url": url, "path": str(path), "fault": fault}


def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The profile's name, or a path to its file.")],
    gateway_url: Annotated[
        str,
        typer.Option(
            "--url", envvar="GATEWAY_URL", metavar="URL", help="Where its gateway answers, e.g. http://127.0.0.1:8080."
        ),
    ],
    api_key: Annotated[
        str | None,
        typer.Option(
            "--key",
            envvar="GATEWAY_KEY",
            metavar="KEY",
            help="The API key (gk_live_...); without it, the first line of stdin. Others on this machine see what is "
            "typed here: better use stdin or the variable.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the profile that is there; the former is kept beside it as .old.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Write a profile: a gateway's URL and a key to it, in a file that only you may read.

    The key is tried: where the gateway answers, it is said whose it is, and one that the gateway does not take is not
    written. Where no gateway answers, the profile is written all the same.
    """
    path = profile.named(name)
    if not name or os.path.isdir(path):  # noqa: PTH112  (no error for a name that no file can have: writing tells it)
        raise typer.BadParameter("must be a name, or a path to a file", param_hint="NAME")
    if os.path.exists(path) and not force:  # noqa: PTH110
        fail(f"there is a profile {path}; --force replaces it")
    place = _usable(gateway_url, _typed() if api_key is None else _given(api_key))
    owner = _owner(place)
    try:
        with profile.chosen(name):
            profile.write(profile.Profile(place.url, place.key))
    except OSError as error:
        fail(f"the profile {path} cannot be written: {error.strerror}")
    shown = {"name": name, "url": place.url, "path": str(path), "keyPrefix": place.key[:SHOWN]}
    if as_json:
        printing.document(shown | {"key": owner})
        return
    printing.line(f"wrote {path}", "good")
    rows: list[tuple[str, object]] = [("gateway", place.url), ("key", f"{place.key[:SHOWN]}...")]
    for word, member in (("key id", "key_id"), ("tenant", "tenant_id"), ("agent", "agent_name"), ("scopes", "scopes")):
        value = (owner or {}).get(member)
        rows.append((word, ", ".join(map(str, value)) if isinstance(value, list) else value))
    printing.pairs(rows)


def _given(key: str) -> str:
    if key == os.environ.get("GATEWAY_KEY"):
        printing.note("the key is the one in GATEWAY_KEY; stdin is not read")
    return key.strip()


def _typed() -> str:
    """The key from stdin: a line of it, or what a person types unseen."""
    if sys.stdin.isatty():
        return str(typer.prompt("API key", hide_input=True, err=True)).strip()
    return sys.stdin.readline().strip()


def _usable(url: str, key: str) -> "Place":
    """URL and key, where they look like such; else the command ends with code 2, without a word of the key."""
    from gateway.client.errors import NotSetUp
    from gateway.client.where import find
    from gateway.doors.auth import RAW_KEY

    if not key:
        fail("a key is needed: --key, GATEWAY_KEY, or the first line of stdin", 2)
    if not RAW_KEY.fullmatch(key):
        fail("that is no API key: one is gk_live_ and 43 letters, digits, dashes or underscores", 2)
    try:
        place = find(url, key)
    except NotSetUp as error:
        raise typer.BadParameter(error.message, param_hint="--url") from None
    for words in place.warnings:
        printing.note(f"warning: {words}")
    return place


def _owner(place: "Place") -> dict[str, object] | None:
    """What the gateway says of the key, or `None` where it says nothing; a key that it does not take ends the command."""
    from gateway.client import Client
    from gateway.client.errors import GatewayError, NotAGateway, Unauthorized, Unreachable

    try:
        with Client(place, timeout=ASKED_SECONDS, retries=0) as client:
            return dict(client.whoami().body)
    except Unauthorized:
        fail(f"{place.url} does not take this key; no profile was written")
    except NotAGateway as error:
        fail(f"{error}; the key was sent there: if {place.url} is not yours, revoke it. No profile was written")
    except GatewayError as error:
        tried = not isinstance(error, Unreachable) or error.uncertain
        printing.note(f"{'it is not known whether the key is good' if tried else 'the key was not tried'}: {error}")
        return None


def use(name: Name, as_json: options.Json = False) -> None:
    """Let a profile be the one that is meant where none is named, from now on.

    `keys` and `relay` do not heed it where there is a store: they go to the store that the settings name, unless --url,
    --key or --profile is given.
    """
    try:
        profile.use(name)
    except ValueError as error:
        fail(error)
    except OSError as error:
        fail(f"the choice cannot be kept in {profile.home()}: {error.strerror}")
    if as_json:
        printing.document(_row(name))
    else:
        printing.line(f"{name} is the default from now on", "good")
    if (named := os.environ.get("GATEWAY_PROFILE")) and profile.named(named) != profile.named(name):
        printing.note(f"GATEWAY_PROFILE wins over it: {named}")


def show(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            autocompletion=options.profiles_like,
            help="The profile's name; without it, the one that is meant.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show a profile: its gateway, its file, and the beginning of its key."""
    path = profile.place() if name is None else profile.named(name)
    try:
        known = profile.read(path)
    except ValueError as error:
        fail(error)
    if known is None:
        fail(f"there is no profile {path}; `gateway profiles add` makes one")
    shown = {"name": name, "url": known.url, "path": str(path), "keyPrefix": known.key[:SHOWN]}
    if as_json:
        printing.document(shown)
        return
    printing.line(known.url)
    printing.pairs([("file", path), ("key", f"{known.key[:SHOWN]}...")])
