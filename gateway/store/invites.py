"""Invitations: who holds one makes itself a key once, within the reach of the key that has invited.

Stored as prefix and SHA-256, never as such. What comes of one is settled under the tenant's lock: two claims, one key.
"""

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from gateway.core.errors import ConflictError, NotFoundError
from gateway.store import agents, events, keys
from gateway.store.agents import Agent, Register
from gateway.store.clock import from_us
from gateway.store.dialect import Dialect, Row
from gateway.store.fleet import invites as table
from gateway.store.keys import Key, NewKey, key_hash
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
TOKEN_PREFIX = "ga_inv_"  # noqa: S105  (how every token begins)
PREFIX_LENGTH = len(TOKEN_PREFIX) + 8
PENDING, CLAIMED, REVOKED, EXPIRED = "pending", "claimed", "revoked", "expired"
SECOND_US = 1_000_000
TRIED_MAX = 100
"""Numbers that are tried behind a name before one by chance."""


@dataclass(frozen=True, slots=True)
class New:
    """An invitation to make: what its key may do (`mailboxes` `None`: all), the agent's name, for how long (seconds).

    `created_by` is the id of the key that invites; what may go with it sees that key as it is under the lock, and raises.
    """

    tenant: str
    label: str
    scopes: tuple[str, ...]
    mailboxes: tuple[str, ...] | None
    agent: str | None
    per_minute: int | None
    seconds: int
    created_by: str
    actor: str
    may: Callable[[Key], None]


@dataclass(frozen=True, slots=True)
class Invite:
    """An invitation without its token: pending, claimed, revoked or expired; times UTC."""

    id: str
    tenant: str
    prefix: str
    label: str
    scopes: frozenset[str]
    mailboxes: tuple[str, ...] | None
    agent: str | None
    per_minute: int | None
    status: str
    key_id: str | None
    created_by: str
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Claim:
    """A wish to make an invitation's key; `name` is the agent's where the invitation names none.

    `may` sees the key that invited, as it is under the lock, and the invitation; it raises where that key may no longer give
    what was promised.
    """

    tenant: str
    id: str
    name: str
    may: Callable[[Key, Invite], None]


def _insert(_: Dialect) -> sa.Executable:
    return sa.insert(table)


def _by_hash(_: Dialect) -> sa.Executable:
    return sa.select(table).where(table.c.hash == sa.bindparam("digest"))


def _one(_: Dialect) -> sa.Executable:
    return sa.select(table).where(table.c.tenant == TENANT, table.c.id == sa.bindparam("id_"))


def _pending(_: Dialect) -> sa.Executable:
    alive = (table.c.status == PENDING, table.c.expires_us > sa.bindparam("now", type_=sa.BigInteger()))
    return sa.select(table).where(table.c.tenant == TENANT, *alive).order_by(table.c.created_us.desc(), table.c.id)


def _settle(_: Dialect) -> sa.Executable:
    return (
        sa.update(table)
        .where(table.c.tenant == TENANT, table.c.id == sa.bindparam("id_"))
        .values(status=sa.bindparam("to"), key_id=sa.bindparam("made"))
    )


def create(tx: Tx, wishes: Sequence[New]) -> list[tuple[Invite, str] | Exception]:
    """Make invitations, each on its own; each with its token, which is shown this once, or what `may` raised."""
    done: list[tuple[Invite, str] | Exception] = []
    for wish in wishes:
        try:
            done.append(_create(tx, wish))
        except Exception as error:  # noqa: BLE001  (it is this caller's alone)
            done.append(error)
    return done


def _create(tx: Tx, wish: New) -> tuple[Invite, str]:
    wish.may(keys.known(tx, wish.tenant, wish.created_by))
    raw = TOKEN_PREFIX + secrets.token_urlsafe(32)
    now = tx.now_of(wish.tenant)
    row = {
        "tenant": wish.tenant,
        "id": f"inv_{secrets.token_hex(8)}",
        "prefix": raw[:PREFIX_LENGTH],
        "hash": key_hash(raw),
        "label": wish.label,
        "scopes": json.dumps(sorted(wish.scopes)),
        "mailboxes": None if wish.mailboxes is None else json.dumps(wish.mailboxes),
        "agent": wish.agent,
        "per_minute": wish.per_minute,
        "status": PENDING,
        "key_id": None,
        "created_by": wish.created_by,
        "created_us": now,
        "expires_us": now + wish.seconds * SECOND_US,
    }
    tx.run(_insert, row)
    _tell(tx, wish.tenant, "invite.created", wish.actor, {"inviteId": str(row["id"]), "label": wish.label})
    return _invite(row, now), raw


def find_by_token(tx: Tx, raw: str) -> Invite | None:
    """The invitation with this token, of whatever tenant and in whatever state."""
    row = tx.row(_by_hash, {"digest": key_hash(raw)})
    return None if row is None else _invite(row, tx.now_us)


def pending(tx: Tx, tenant: str) -> list[Invite]:
    """The invitations that can still be claimed, newest first."""
    now = tx.now_of(tenant)
    return [_invite(row, now) for row in tx.rows(_pending, {"tenant": tenant, "now": now})]


def revoke(tx: Tx, wishes: Sequence[tuple[str, str, str]]) -> list[Invite | Exception]:
    """Take invitations back, given by (tenant, id, who does it).

    NotFoundError where there is none, or none any more; ConflictError `invite_claimed`.
    """
    done: list[Invite | Exception] = []
    for tenant, invite_id, actor in wishes:
        found = _find(tx, tenant, invite_id)
        if found is None or found.status == REVOKED:
            done.append(NotFoundError("no such invitation"))
        elif found.status == CLAIMED:
            done.append(_claimed())
        else:
            tx.run(_settle, {"tenant": tenant, "id_": invite_id, "to": REVOKED, "made": None})
            _tell(tx, tenant, "invite.revoked", actor, {"inviteId": invite_id})
            done.append(found)
    return done


def claim(tx: Tx, wishes: Sequence[Claim]) -> list[tuple[Invite, Key, str, Agent] | Exception]:
    """Make the keys of invitations, each with its secret and bound to an agent of its own, each on its own.

    NotFoundError where there is no such invitation any more, or it has expired; ConflictError `invite_claimed`; or what `may`
    raised.
    """
    done: list[tuple[Invite, Key, str, Agent] | Exception] = []
    for wish in wishes:
        try:
            done.append(_claim(tx, wish))
        except Exception as error:  # noqa: BLE001  (it is this caller's alone)
            done.append(error)
    return done


def _claim(tx: Tx, wish: Claim) -> tuple[Invite, Key, str, Agent]:
    found = _find(tx, wish.tenant, wish.id)
    if found is not None and found.status == CLAIMED:
        raise _claimed()
    if found is None or found.status != PENDING:
        raise NotFoundError("no such invitation")
    maker = keys.known(tx, wish.tenant, found.created_by)
    wish.may(maker, found)
    name = _free_name(tx, wish.tenant, found.agent or wish.name, taken_over=found.agent is not None)
    agent = agents.register(tx, [Register(wish.tenant, name)])[0].agent
    new = NewKey(
        wish.tenant,
        found.label,
        tuple(sorted(found.scopes)),
        found.mailboxes,
        agent.id,
        created_by=found.created_by,
        per_minute=min((one for one in (found.per_minute, maker.per_minute) if one is not None), default=None),
        actor=agent.id,
    )
    ((key, raw),) = keys.create_keys(tx, [new])
    tx.run(_settle, {"tenant": wish.tenant, "id_": found.id, "to": CLAIMED, "made": key.id})
    _tell(tx, wish.tenant, "invite.claimed", agent.id, {"inviteId": found.id, "key": key.id, "agent": agent.id})
    return found, key, raw, agent


def _free_name(tx: Tx, tenant: str, wanted: str, *, taken_over: bool) -> str:
    """The name, or the first with a number behind it, that no key answers for; a registered agent is taken over by name alone.

    An agent's key is all that tells others that it speaks: an invitation gives nobody the name of one that has a key.
    """
    numbered = (f"{wanted}-{number}" for number in range(2, TRIED_MAX))
    for name in (wanted, *numbered):
        known = agents.find_agent(tx, tenant, name)
        if known is None or (taken_over and not keys.is_bound(tx, tenant, known.id)):
            return name
    return f"{wanted}-{secrets.token_hex(6)}"


def _find(tx: Tx, tenant: str, invite_id: str) -> Invite | None:
    row = tx.row(_one, {"tenant": tenant, "id_": invite_id})
    return None if row is None else _invite(row, tx.now_of(tenant))


def _claimed() -> ConflictError:
    return ConflictError("invite_claimed", "this invitation has made its key already")


def _tell(tx: Tx, tenant: str, name: str, actor: str, data: dict[str, str]) -> None:
    events.append(tx, [events.Event(tenant, name, actor=actor, data=dict(data))])


def _invite(row: Row, now_us: int) -> Invite:
    late = row["status"] == PENDING and row["expires_us"] <= now_us
    return Invite(
        row["id"],
        row["tenant"],
        row["prefix"],
        row["label"],
        frozenset(json.loads(row["scopes"])),
        None if row["mailboxes"] is None else tuple(json.loads(row["mailboxes"])),
        row["agent"],
        row["per_minute"],
        EXPIRED if late else row["status"],
        row["key_id"],
        row["created_by"],
        from_us(row["created_us"]),
        from_us(row["expires_us"]),
    )
