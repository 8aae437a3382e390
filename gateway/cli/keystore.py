"""The store's side of `keys`: the same answers as the HTTP door gives, from the database that the settings name."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from gateway import profile
from gateway.cli.printing import fail
from gateway.cli.setup import settings_of

if TYPE_CHECKING:
    from gateway.store.keys import Key
    from gateway.store.tx import Tx

T = TypeVar("T")
DEFAULT_TENANT = "default"


def elsewhere(config: str | None) -> bool:
    """Whether a profile was chosen, or there is no database here but a profile that knows a gateway."""
    from gateway.store import dialect_of
    from gateway.store.migrate import revisions

    if profile.is_chosen():
        return True
    try:
        here, _ = revisions(dialect_of(settings_of(config).database_url))
        return here is None and profile.read() is not None
    except ValueError:
        return False  # the command itself says what is wrong


def create(config: str | None, wish: dict[str, Any]) -> dict[str, Any]:
    """Make a key from the members of the door's request, and register the agent that it names where it is new."""
    tenant = wish.get("tenantId") or DEFAULT_TENANT

    def work(tx: "Tx") -> "tuple[Key, str]":
        from gateway.store.agents import Register, find_agent, register
        from gateway.store.keys import NewKey, create_keys

        boxes = tuple(_mailbox_id(tx, tenant, name) for name in wish.get("mailboxes", ())) or None
        owner = None
        if name := wish.get("agentName"):
            known = find_agent(tx, tenant, name)
            owner = (known or register(tx, [Register(tenant, name)])[0].agent).id
        new = NewKey(tenant, wish["label"], tuple(wish["scopes"]), boxes, owner, wish["transactional"])
        return create_keys(tx, [new])[0]

    key, raw = _with_store(config, tenant, work)
    return _described(key) | {"rawKey": raw}


def listed(config: str | None, tenant: str | None) -> list[dict[str, Any]]:
    """All keys of a tenant, oldest first."""
    tenant = tenant or DEFAULT_TENANT

    def work(tx: "Tx") -> "list[Key]":
        from gateway.store.keys import list_keys

        return list_keys(tx, tenant)

    return [_described(key) for key in _with_store(config, tenant, work)]


def revoked(config: str | None, tenant: str | None, key_id: str, *, cancel_queued: bool) -> dict[str, Any]:
    """End a key, and with `cancel_queued` its mail that has not left, in one transaction."""
    tenant = tenant or DEFAULT_TENANT

    def work(tx: "Tx") -> "tuple[Key, list[str]]":
        from gateway.store.revoke import revoke

        return revoke(tx, tenant, key_id, cancel_queued=cancel_queued)

    key, stopped = _with_store(config, tenant, work)
    return _described(key) | {"status": "revoked", "revoked": True, "cancelled": stopped}


def changed(config: str | None, tenant: str | None, key_id: str, wish: dict[str, Any]) -> dict[str, Any]:
    """Change a key by members of the door's request: scopes, mailboxes, requestsPerMinute."""
    tenant = tenant or DEFAULT_TENANT

    def work(tx: "Tx") -> "Key | Exception":
        from dataclasses import replace

        from gateway.store.keys import Change, change_keys

        boxes = tuple(_mailbox_id(tx, tenant, name) for name in wish.get("mailboxes", ()))

        def to(key: "Key") -> "Key":
            return replace(
                key,
                scopes=frozenset(wish.get("scopes", key.scopes)),
                mailboxes=boxes or key.mailboxes,
                per_minute=wish.get("requestsPerMinute", key.per_minute),
            )

        return change_keys(tx, [Change(tenant, key_id, "store", to)])[0]

    key = _with_store(config, tenant, work)
    if isinstance(key, Exception):
        fail(key)
    return _described(key)


def bound(config: str | None, tenant: str | None, key_id: str, wish: dict[str, Any]) -> dict[str, Any]:
    """Let a key act as the agent that agentId or agentName names, or without either as none."""
    tenant = tenant or DEFAULT_TENANT
    who = wish.get("agentId") or wish.get("agentName")

    def work(tx: "Tx") -> "tuple[Key, bool] | Exception":
        from gateway.core.errors import NotFoundError
        from gateway.store.agents import find_agent
        from gateway.store.bindings import Bind, change

        agent = None if who is None else find_agent(tx, tenant, who)
        if who is not None and agent is None:
            return NotFoundError("no such agent")
        return change(tx, [Bind(tenant, key_id, None if agent is None else agent.id, reason=wish.get("reason"))])[0]

    done = _with_store(config, tenant, work)
    if isinstance(done, Exception):
        fail(done)
    key, new = done
    return _described(key) | (
        {"unbound": new} if who is None else {"apiKeyBinding": "bound" if new else "already_bound"}
    )


def _described(key: "Key") -> dict[str, Any]:
    """A key without its secret."""
    from gateway.doors.answers import of_key

    return of_key(key)


def _mailbox_id(tx: "Tx", tenant: str, name: str) -> str:
    """The id of the mailbox with this address or id; raises NotFoundError."""
    from gateway.core.address import AddressError, domain_of, parse
    from gateway.core.errors import NotFoundError
    from gateway.store.agents import list_mailboxes

    try:
        key = parse(
            name, rules=tx.profile(tenant).rules, special_use=frozenset({domain_of(name.rpartition("@")[2])})
        ).key
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
