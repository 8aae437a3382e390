"""Contacts: one row per person with lease, fencing token and last contact; acquire, renew, release (SEMANTICS 6).

The token rises by one on every new acquisition and never falls. The store's clock alone decides what lives.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gateway.core.mail import Kind
from gateway.store import events, forbid, lease_events
from gateway.store.clock import from_us
from gateway.store.dialect import Dialect, Row
from gateway.store.facts import contact_rows, live_rows
from gateway.store.schema import agents, contacts
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
US = 1_000_000
LOOK_AGAIN_US = 60 * US


@dataclass(frozen=True, slots=True)
class Lease:
    """A live lease; times UTC."""

    id: str
    contact: str
    address: str
    agent: str
    agent_name: str
    token: int
    intent: str
    acquired_at: datetime
    expires_at: datetime
    withdrew: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """Why a contact cannot be had now: by a lease, or by mail in flight (kind "send"); until when, as far as is known.

    `retry_at` is when to come back: most mail in flight is settled long before its time is over.
    """

    agent: str
    agent_name: str
    until: datetime
    kind: str
    retry_at: datetime
    request: str | None = None


@dataclass(frozen=True, slots=True)
class Acquire:
    """A wish for a contact: `seconds` to hold it; an operator takes it over at once and says why.

    Where leases are not `enforced`, it stops no mail.
    """

    tenant: str
    agent: str
    contact: str
    address: str
    intent: str
    seconds: float
    flight_max: float = 3600.0
    operator_reason: str | None = None
    enforced: bool = True


@dataclass(frozen=True, slots=True)
class Renew:
    """A wish to keep a lease: it must live, and the token must be the newest."""

    tenant: str
    agent: str | None
    lease: str
    token: int | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Release:
    """A wish to give a lease back; `agent` limits it to that agent's own leases, `token` to the newest one."""

    tenant: str
    agent: str | None
    lease: str
    token: int | None = None


@dataclass(frozen=True, slots=True)
class Released:
    """Whether a lease was given back, else why not; `in_flight` lists requests that still hold the contact."""

    released: bool
    reason: str = ""
    in_flight: tuple[str, ...] = ()
    contact: str = ""


def _upsert(d: Dialect) -> sa.Executable:
    insert = d.upsert(contacts)
    names = ("lease_id", "owner", "token", "foreign_token", "intent", "address", "acquired_us", "expires_us")
    made: sa.Executable = insert.on_conflict_do_update(
        index_elements=[contacts.c.tenant, contacts.c.key], set_={n: insert.excluded[n] for n in names}
    )
    return made


def _extend(_: Dialect) -> sa.Executable:
    return (
        sa.update(contacts)
        .where(contacts.c.tenant == TENANT, contacts.c.key == sa.bindparam("contact"))
        .values(expires_us=sa.bindparam("until"), intent=sa.bindparam("purpose"))
    )


def acquire(tx: Tx, wishes: Sequence[Acquire]) -> list[Lease | Held]:
    """Give contacts to agents, in order. Extending one's own live lease keeps token and id (SEMANTICS 6)."""
    return [_acquire(tx, wish) for wish in wishes]


def _acquire(tx: Tx, wish: Acquire) -> Lease | Held:
    now = tx.now_of(wish.tenant)
    row = tx.row(contact_rows, {"tenant": wish.tenant, "keys": tx.array([wish.contact])})
    alive = row is not None and row["expires_us"] > now
    until = now + round(wish.seconds * US)
    if row is not None and alive and row["owner"] == wish.agent:
        return _extended(tx, wish, row, until)
    operator = wish.operator_reason is not None
    if row is not None and alive and not operator:
        ends = from_us(row["expires_us"])
        return Held(row["owner"], row["owner_name"] or "", ends, "lease", ends)
    # A permit, which takes no tenant's lock, comes before this look or after it.
    forbid.lock(tx, wish.tenant, wish.contact)
    flights = _flights_of_others(tx, wish)
    for flight in flights if not operator else ():
        young = now < flight["since_us"] + round(wish.flight_max * US)
        if flight["state"] == "permitted" or young:
            return _held_by(flight, wish, now)
    # Unknown mail holds nobody off, but an operator's word marks it too.
    stops = wish.enforced and (flights or operator)
    withdrew = forbid.take_over(tx, wish.tenant, wish.contact, wish.agent) if stops else ()
    token = (row["token"] if row else 0) + 1
    lease_id = str(uuid.uuid4())
    foreign = row["foreign_token"] if row else 0
    if row and row["owner"] not in ("", wish.agent):
        foreign = row["token"]
    if row:
        lease_events.tell_if_over(tx, wish.tenant, row)
    tx.run(
        _upsert,
        {
            "tenant": wish.tenant,
            "key": wish.contact,
            "lease_id": lease_id,
            "owner": wish.agent,
            "token": token,
            "foreign_token": foreign,
            "intent": wish.intent,
            "address": wish.address,
            "acquired_us": now,
            "expires_us": until,
            "last_us": None,
            "last_by": "",
        },
    )
    data: dict[str, Any] = {"lease": lease_id, "token": token, "withdrew": list(withdrew)}
    if operator:
        data |= {"override": wish.operator_reason, "formerAgentId": row["owner"] if row and alive else None}
    events.append(tx, [events.Event(wish.tenant, "lease.acquired", contact=wish.contact, actor=wish.agent, data=data)])
    return _lease(tx, wish, lease_id, token, now, until, withdrew)


def _extended(tx: Tx, wish: Acquire, row: Row, until: int) -> Lease:
    tx.run(_extend, {"tenant": wish.tenant, "contact": wish.contact, "until": until, "purpose": wish.intent})
    lease_events.note(tx, wish.tenant, "extended", row, until)
    return _lease(tx, wish, row["lease_id"], row["token"], row["acquired_us"], until, ())


def _flights_of_others(tx: Tx, wish: Acquire) -> list[Row]:
    rows = tx.rows(live_rows, {"tenant": wish.tenant, "keys": tx.array([wish.contact])})
    return [
        r
        for r in rows
        if r["state"] != "unknown" and not r["internal"] and Kind(r["kind"]).leased and r["actor"] != wish.agent
    ]


def _held_by(flight: Row, wish: Acquire, now: int) -> Held:
    until = max(flight["since_us"] + round(wish.flight_max * US), now + US)
    again = from_us(min(until, now + LOOK_AGAIN_US))
    return Held(flight["actor"], flight["actor_name"] or "", from_us(until), "send", again, flight["send_id"])


def _name(_: Dialect) -> sa.Executable:
    return sa.select(agents.c.name).where(agents.c.tenant == TENANT, agents.c.id == sa.bindparam("agent"))


def _lease(
    tx: Tx, wish: Acquire, lease_id: str, token: int, since: int, until: int, withdrew: tuple[str, ...]
) -> Lease:
    row = tx.row(_name, {"tenant": wish.tenant, "agent": wish.agent})
    name = row["name"] if row else ""
    return Lease(
        lease_id,
        wish.contact,
        wish.address,
        wish.agent,
        name,
        token,
        wish.intent,
        from_us(since),
        from_us(until),
        withdrew,
    )


def _by_lease(_: Dialect) -> sa.Executable:
    return sa.select(contacts).where(contacts.c.tenant == TENANT, contacts.c.lease_id == sa.bindparam("lease"))


def renew(tx: Tx, wishes: Sequence[Renew]) -> list[datetime | str]:
    """Extend live leases; returns the new end (UTC) or why not: lease_expired or stale_fencing_token."""
    return [_renew(tx, wish) for wish in wishes]


def _renew(tx: Tx, wish: Renew) -> datetime | str:
    row = tx.row(_by_lease, {"tenant": wish.tenant, "lease": wish.lease})
    now = tx.now_of(wish.tenant)
    if row is None:  # the contact has been acquired anew since, or there never was such a lease
        return "stale_fencing_token" if wish.token is not None else "lease_expired"
    if wish.agent is not None and row["owner"] != wish.agent:
        return "stale_fencing_token"
    if wish.token is not None and wish.token < row["token"]:
        return "stale_fencing_token"
    if row["expires_us"] <= now or (wish.token is not None and wish.token > row["token"]):
        return "lease_expired"
    until = now + round(wish.seconds * US)
    keep = {"tenant": wish.tenant, "contact": row["key"], "until": until, "purpose": row["intent"]}
    tx.run(_extend, keep)
    lease_events.note(tx, wish.tenant, "extended", row, until)
    return from_us(until)


def release(tx: Tx, wishes: Sequence[Release]) -> list[Released]:
    """End leases; the token stays. An old id, or another agent's lease, is not released."""
    return [_release(tx, wish) for wish in wishes]


def _release(tx: Tx, wish: Release) -> Released:
    row = tx.row(_by_lease, {"tenant": wish.tenant, "lease": wish.lease})
    now = tx.now_of(wish.tenant)
    if wish.token is not None and (row is None or wish.token < row["token"]):
        return Released(released=False, reason="stale_fencing_token")  # the contact has been acquired anew since
    if row is None or row["expires_us"] <= now or (wish.token is not None and wish.token > row["token"]):
        return Released(released=False, reason="lease_expired")
    if wish.agent is not None and row["owner"] != wish.agent:
        return Released(released=False, reason="not_your_lease")
    tx.run(_extend, {"tenant": wish.tenant, "contact": row["key"], "until": 0, "purpose": row["intent"]})
    flying = tx.rows(live_rows, {"tenant": wish.tenant, "keys": tx.array([row["key"]])})
    ids = tuple(sorted({r["send_id"] for r in flying if r["actor"] == row["owner"] and r["state"] != "unknown"}))
    forbid.bring_forward(tx, wish.tenant, row["key"])
    lease_events.note(tx, wish.tenant, "released", row)
    return Released(released=True, in_flight=ids, contact=row["key"])
