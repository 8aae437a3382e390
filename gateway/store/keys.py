"""API keys: who holds one may act for a tenant, within its scopes and mailboxes. Stored as prefix and SHA-256, never as such."""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gateway.core.errors import ConflictError, NotFoundError
from gateway.store import events
from gateway.store.clock import from_us, maybe_time
from gateway.store.dialect import Dialect, Row
from gateway.store.schema import api_keys
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
KEY_PREFIX = "gk_live_"
PREFIX_LENGTH = len(KEY_PREFIX) + 8
SCOPES = ("read", "send", "manage", "operator")
STORE = "store"
"""Who acts where a person has opened the store itself."""


@dataclass(frozen=True, slots=True)
class Key:
    """An API key without its secret; `mailboxes` `None` means all of the tenant's.

    `per_minute` is how many requests it may make in a minute at each process, `None` for any number.
    `created_by` is the id of the key that made it; `used_at` is kept to within a minute or two.
    """

    id: str
    tenant: str
    prefix: str
    label: str
    scopes: frozenset[str]
    mailboxes: tuple[str, ...] | None
    agent: str | None
    transactional: bool
    status: str
    created_at: datetime
    used_at: datetime | None
    created_by: str | None = None
    per_minute: int | None = None


def key_hash(raw: str) -> str:
    """What is stored of a key: 256 random bits need no slow hash."""
    return hashlib.sha256(raw.encode()).hexdigest()


def _insert_key(_: Dialect) -> sa.Executable:
    return sa.insert(api_keys)


def _bind_key(_: Dialect) -> sa.Executable:
    return (
        sa.update(api_keys)
        .where(api_keys.c.tenant == TENANT, api_keys.c.id == sa.bindparam("id_"))
        .values(agent=sa.bindparam("to"))
    )


def _by_hash(_: Dialect) -> sa.Executable:
    return sa.select(api_keys).where(api_keys.c.hash == sa.bindparam("digest"))


def _keys(_: Dialect) -> sa.Executable:
    return sa.select(api_keys).where(api_keys.c.tenant == TENANT).order_by(api_keys.c.created_us, api_keys.c.id)


def _bound(_: Dialect) -> sa.Executable:
    return sa.select(api_keys.c.id).where(
        api_keys.c.tenant == TENANT, api_keys.c.agent == sa.bindparam("to"), api_keys.c.status == "active"
    )


def _revoke(_: Dialect) -> sa.Executable:
    return (
        sa.update(api_keys)
        .where(api_keys.c.tenant == TENANT, api_keys.c.id == sa.bindparam("id_"))
        .values(status="revoked")
    )


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key to make: scopes, mailbox ids (`None`: all), the agent id it acts as, whether transactional mail is given.

    `actor` is who makes it, for the log of events.
    """

    tenant: str
    label: str
    scopes: tuple[str, ...] = ("read", "send")
    mailboxes: tuple[str, ...] | None = None
    agent: str | None = None
    transactional: bool = False
    created_by: str | None = None
    per_minute: int | None = None
    actor: str = STORE


def create_keys(tx: Tx, wishes: Sequence[NewKey]) -> list[tuple[Key, str]]:
    """Make keys; returns each with its secret, which is shown this once."""
    return [_create_key(tx, wish) for wish in wishes]


def create_under(tx: Tx, wishes: Sequence[tuple[NewKey, Callable[[Key], None]]]) -> list[tuple[Key, str] | Exception]:
    """Make keys for other keys (`created_by`), each on its own; what goes with a wish sees its maker as it is under the lock.

    It raises where the maker may not do that, or no longer; NotFoundError where there is no such maker.
    """
    done: list[tuple[Key, str] | Exception] = []
    for wish, may in wishes:
        try:
            maker = known(tx, wish.tenant, wish.created_by)
            may(maker)
            given = wish.agent not in (None, maker.agent) and "operator" not in maker.scopes
            if given and is_bound(tx, wish.tenant, wish.agent or ""):  # by another key, a moment ago
                raise ConflictError("agent_bound_to_key", "another key is bound to this agent", agentId=wish.agent)  # noqa: TRY301
            done.append(_create_key(tx, wish))
        except Exception as error:  # noqa: BLE001  (it is this caller's alone)
            done.append(error)
    return done


def known(tx: Tx, tenant: str, key_id: str | None) -> Key:
    """A key, in force or not. Raises NotFoundError."""
    for key in list_keys(tx, tenant):
        if key.id == key_id:
            return key
    msg = "no such key"
    raise NotFoundError(msg)


def in_force(tx: Tx, tenant: str, key_id: str) -> Key:
    """A key that has not been revoked. Raises NotFoundError."""
    key = known(tx, tenant, key_id)
    if key.status != "active":
        msg = "no such key"
        raise NotFoundError(msg)
    return key


def _create_key(tx: Tx, wish: NewKey) -> tuple[Key, str]:
    raw = KEY_PREFIX + secrets.token_urlsafe(32)
    row = {
        "tenant": wish.tenant,
        "id": f"key_{secrets.token_hex(8)}",
        "prefix": raw[:PREFIX_LENGTH],
        "hash": key_hash(raw),
        "label": wish.label,
        "scopes": json.dumps(sorted(wish.scopes)),
        "mailboxes": None if wish.mailboxes is None else json.dumps(wish.mailboxes),
        "agent": wish.agent,
        "transactional": int(wish.transactional),
        "status": "active",
        "created_us": tx.now_of(wish.tenant),
        "used_us": None,
        "created_by": wish.created_by,
        "per_minute": wish.per_minute,
    }
    tx.run(_insert_key, row)
    _tell(tx, wish.tenant, "key.created", wish.actor, {"key": row["id"], "agent": wish.agent, "label": wish.label})
    return _key(row), raw


def _tell(tx: Tx, tenant: str, name: str, actor: str, data: dict[str, Any]) -> None:
    events.append(tx, [events.Event(tenant, name, actor=actor, data=data)])


def find_key(tx: Tx, raw: str) -> Key | None:
    """The active key with this secret, of whatever tenant."""
    row = tx.row(_by_hash, {"digest": key_hash(raw)})
    return None if row is None or row["status"] != "active" else _key(row)


def list_keys(tx: Tx, tenant: str) -> list[Key]:
    """All keys, oldest first, revoked ones too."""
    return [_key(row) for row in tx.rows(_keys, {"tenant": tenant})]


def is_bound(tx: Tx, tenant: str, agent: str) -> bool:
    """Whether an active key answers for this agent."""
    return tx.row(_bound, {"tenant": tenant, "to": agent}) is not None


def bind_key(tx: Tx, tenant: str, key_id: str, agent: str, *, actor: str = STORE, **more: str) -> None:
    """Let a key act as an agent from now on; `more` goes into the log of events."""
    set_agent(tx, tenant, key_id, agent)
    _tell(tx, tenant, "key.bound", actor, {"key": key_id, "agent": agent, **more})


def set_agent(tx: Tx, tenant: str, key_id: str, agent: str | None) -> None:
    """Write down as which agent a key acts; `None` for none."""
    tx.run(_bind_key, {"tenant": tenant, "id_": key_id, "to": agent})


def revoke_key(tx: Tx, tenant: str, key_id: str, *, actor: str = STORE) -> Key:
    """End a key. Raises NotFoundError, or ConflictError where it is the tenant's last operator key."""
    going = known(tx, tenant, key_id)
    _keep_an_operator(list_keys(tx, tenant), going)
    if tx.run(_revoke, {"tenant": tenant, "id_": key_id}) and going.status == "active":
        _tell(tx, tenant, "key.revoked", actor, {"key": key_id, "agent": going.agent})
    return going


@dataclass(frozen=True, slots=True)
class Change:
    """A wish to change a key; `to` makes the new one of the one that is there, and may raise.

    Before that `may` sees the key that asks (`by`) as it is under the lock, and raises where it may not; without `by` a
    person asks at the store.
    """

    tenant: str
    key_id: str
    actor: str
    to: Callable[[Key], Key]
    by: str | None = None
    may: Callable[[Key], None] = lambda _: None


def _change(_: Dialect) -> sa.Executable:
    names = ("label", "scopes", "mailboxes", "transactional", "per_minute")
    return (
        sa.update(api_keys)
        .where(api_keys.c.tenant == TENANT, api_keys.c.id == sa.bindparam("id_"))
        .values({name: sa.bindparam(f"new_{name}") for name in names})
    )


def change_keys(tx: Tx, wishes: Sequence[Change]) -> list[Key | Exception]:
    """Change keys that are in force; each on its own, under the tenant's lock.

    NotFoundError where there is no such key, ConflictError where it would leave no operator key, or what `to` raised.
    """
    done: list[Key | Exception] = []
    for wish in wishes:
        try:
            done.append(_change_key(tx, wish))
        except Exception as error:  # noqa: BLE001  (it is this caller's alone)
            done.append(error)
    return done


def _change_key(tx: Tx, wish: Change) -> Key:
    old = in_force(tx, wish.tenant, wish.key_id)
    if wish.by is not None:
        wish.may(known(tx, wish.tenant, wish.by))
    new = wish.to(old)
    if "operator" not in new.scopes:
        _keep_an_operator(list_keys(tx, wish.tenant), old)
    values = {
        "new_label": new.label,
        "new_scopes": json.dumps(sorted(new.scopes)),
        "new_mailboxes": None if new.mailboxes is None else json.dumps(new.mailboxes),
        "new_transactional": int(new.transactional),
        "new_per_minute": new.per_minute,
    }
    tx.run(_change, {"tenant": wish.tenant, "id_": wish.key_id, **values})
    said = {
        "key": new.id,
        "scopes": sorted(new.scopes),
        "mailboxes": new.mailboxes,
        "requestsPerMinute": new.per_minute,
    }
    _tell(tx, wish.tenant, "key.changed", wish.actor, said)
    return new


def _keep_an_operator(keys: Iterable[Key], going: Key) -> None:
    """Refuse to lose the last key that is in force and a person's."""
    left = [k for k in keys if k.id != going.id and k.status == "active" and "operator" in k.scopes]
    if "operator" in going.scopes and going.status == "active" and not left:
        msg = "this is the last operator key; make another one first"
        raise ConflictError("last_operator_key", msg)


def _key(row: Row) -> Key:
    return Key(
        row["id"],
        row["tenant"],
        row["prefix"],
        row["label"],
        frozenset(json.loads(row["scopes"])),
        None if row["mailboxes"] is None else tuple(json.loads(row["mailboxes"])),
        row["agent"],
        bool(row["transactional"]),
        row["status"],
        from_us(row["created_us"]),
        maybe_time(row["used_us"]),
        row["created_by"],
        row["per_minute"],
    )
