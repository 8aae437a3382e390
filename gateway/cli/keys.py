"""`keys ...`: make, list and revoke API keys, in the store that the settings name.

They open the store themselves, so that a first key, or a new one in place of a lost one, needs no running gateway; a
running one knows the change at once. A key's secret is shown when it is made and never again.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from gateway.cli import options, printing
from gateway.cli.printing import fail
from gateway.cli.setup import settings_of

if TYPE_CHECKING:
    from gateway.store.keys import Key
    from gateway.store.tx import Tx

T = TypeVar("T")
SCOPES = ("read", "send", "manage", "operator")


class Queued(StrEnum):
    """What becomes of mail that a revoked key has under way."""

    KEEP = "keep"
    CANCEL = "cancel"


def create(
    label: Annotated[str, typer.Option("--label", metavar="TEXT", help="What the key is for.")],
    tenant: options.Tenant = "default",
    scopes: Annotated[
        str,
        typer.Option(
            "--scopes", metavar="SCOPE,...", help="read, send, manage (its mailboxes), operator (all, as a person)."
        ),
    ] = "read,send",
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="AGENT", help="Bind it to this agent; the agent is registered if it is new."),
    ] = None,
    mailbox: Annotated[
        list[str] | None,
        typer.Option(
            "--mailbox", metavar="ADDRESS", help="Only for this mailbox; may be repeated. Without it, for all."
        ),
    ] = None,
    transactional: Annotated[
        bool,
        typer.Option(
            "--transactional", help="It may send mail of kind transactional, which neither holds nor is held."
        ),
    ] = False,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Make an API key and print it, this once."""
    wanted = tuple(dict.fromkeys(word.strip() for word in scopes.split(",") if word.strip()))
    if not wanted or not set(wanted) <= set(SCOPES):
        raise typer.BadParameter(f"must be some of {', '.join(SCOPES)}", param_hint="--scopes")

    def work(tx: "Tx") -> "tuple[Key, str]":
        from gateway.store.agents import Register, find_agent, register
        from gateway.store.keys import NewKey, create_keys

        boxes = None if not mailbox else tuple(_mailbox_id(tx, tenant, name) for name in mailbox)
        owner = None
        if agent is not None:
            known = find_agent(tx, tenant, agent)
            owner = (known or register(tx, [Register(tenant, agent)])[0].agent).id
        ((made, raw),) = create_keys(tx, [NewKey(tenant, label, wanted, boxes, owner, transactional)])
        return made, raw

    key, raw = _with_store(config, tenant, work)
    body = describe(key) | {"rawKey": raw}
    if as_json:
        printing.document(body)
        return
    printing.line(raw)
    printing.note("this is the key; it is not shown again", "")
    _tell(body)


def list_all(tenant: options.Tenant = "default", config: options.Config = None, as_json: options.Json = False) -> None:
    """List the tenant's keys, oldest first, without their secrets."""

    def work(tx: "Tx") -> "list[Key]":
        from gateway.store.keys import list_keys

        return list_keys(tx, tenant)

    found = [describe(key) for key in _with_store(config, tenant, work)]
    if as_json:
        printing.document(found)
        return
    names = ("id", "keyPrefix", "label", "status", "scopes", "agentId", "lastUsedAt")
    rows = [[",".join(one[n]) if n == "scopes" else one.get(n) for n in names] for one in found]
    printing.table(("id", "prefix", "label", "status", "scopes", "agent", "last used"), rows)


def revoke(
    key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="The key's id, key_...")],
    tenant: options.Tenant = "default",
    queued: Annotated[
        Queued,
        typer.Option(
            "--queued", help="Its mail that has not left: keep leaves it with its agent, cancel stops it as well."
        ),
    ] = Queued.KEEP,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """End a key at once. The tenant's last operator key cannot be revoked."""

    def work(tx: "Tx") -> "tuple[Key, list[str]]":
        from gateway.store.revoke import revoke as end

        return end(tx, tenant, key_id, cancel_queued=queued is Queued.CANCEL)

    key, stopped = _with_store(config, tenant, work)
    if as_json:
        printing.document({"id": key.id, "status": "revoked", "cancelled": stopped})
        return
    printing.line(f"revoked {key.id}", "good")
    printing.pairs([("label", key.label), ("cancelled", ", ".join(stopped))])


def describe(key: "Key") -> dict[str, Any]:
    """A key without its secret, as JSON."""
    from gateway.core.record import instant

    body: dict[str, Any] = {"id": key.id, "tenantId": key.tenant, "keyPrefix": key.prefix, "label": key.label}
    body |= {"status": key.status, "scopes": sorted(key.scopes, key=SCOPES.index), "agentId": key.agent}
    body |= {"scopeAllMailboxes": key.mailboxes is None, "mailboxes": list(key.mailboxes or ())}
    body |= {
        "transactional": key.transactional,
        "createdAt": instant(key.created_at),
        "lastUsedAt": instant(key.used_at),
    }
    return body


def _tell(body: dict[str, Any]) -> None:
    boxes = "all" if body["scopeAllMailboxes"] else ", ".join(body["mailboxes"])
    rows = [("id", body["id"]), ("label", body["label"]), ("scopes", ", ".join(body["scopes"]))]
    printing.pairs([*rows, ("agent", body["agentId"]), ("mailboxes", boxes)])


def _mailbox_id(tx: "Tx", tenant: str, name: str) -> str:
    """The id of the mailbox with this address or id; raises NotFoundError."""
    from gateway.core.address import AddressError, domain_of, parse
    from gateway.core.errors import NotFoundError
    from gateway.store.agents import list_mailboxes

    try:
        key = parse(name, special_use=frozenset({domain_of(name.rpartition("@")[2])})).key
    except AddressError:
        key = ""
    for box in list_mailboxes(tx, tenant):
        if name == box.id or key == box.key:
            return box.id
    raise NotFoundError(f"the tenant has no mailbox {name}")


def _with_store(config: str | None, tenant: str, work: "Callable[[Tx], T]") -> T:
    """Run `work` under the tenant's lock; what goes wrong ends the command with one line."""
    from gateway.core.errors import GatewayError
    from gateway.store import Store

    settings = settings_of(config)
    try:
        store = Store.open(settings.database_url)
        try:
            return store.write([tenant], work)
        finally:
            store.close()
    except ValueError as error:
        fail(error, 2)
    except GatewayError as error:
        fail(f"tenant {tenant}: {error}" if str(error) == "no such tenant" else error)
