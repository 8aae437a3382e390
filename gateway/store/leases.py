"""Leases on contacts: taken, kept, given back, listed (SEMANTICS 6).

The token rises by one on every new acquisition and never falls. The store's clock alone decides what lives.
"""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gateway.core.mail import Kind
from gateway.store import events, keys, lease_events
from gateway.store.clock import from_us
from gateway.store.contacts import Acquire, AnothersLeaseError, Book, Held, Lease, Release, Released, Renew, Wish
from gateway.store.dialect import Dialect, Row
from gateway.store.schema import agents, contacts
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
US = 1_000_000
LOOK_AGAIN_US = 60 * US
Answer = Lease | Held | datetime | str | Released | AnothersLeaseError | None


def serve(tx: Tx, wishes: Sequence[Wish]) -> list[Answer]:
    """Do what is wished, in order: a lease or who has the contact; a lease's new end (UTC) or why not; what was released.

    Why not is lease_expired or stale_fencing_token; AnothersLeaseError where `bound` forbids it. Those of one tenant cost
    as many statements as one alone does.
    """
    tenants = sorted({wish.tenant for wish in wishes})  # rows are locked in one order, in all transactions
    books = {tenant: Book(tx, tenant, [w for w in wishes if w.tenant == tenant]) for tenant in tenants}
    done = [_serve(books[wish.tenant], wish) for wish in wishes]
    for book in books.values():
        book.write()
    return done


def _serve(book: Book, wish: Wish) -> Answer:
    if isinstance(wish, Acquire):
        return _acquire(book, wish)
    return _renew(book, wish) if isinstance(wish, Renew) else _release(book, wish)


def _acquire(book: Book, wish: Acquire) -> Lease | Held | None:
    """Give the contact to the agent. Extending one's own live lease keeps token and id.

    `None` where the contact is free and the wish is to keep it.
    """
    now, row = book.now, book.rows.get(wish.contact)
    until = now + round(wish.seconds * US)
    alive = book.lives(wish.contact)
    operator = wish.operator_reason is not None
    if row is not None and alive and row["owner"] == wish.agent:
        return _lease(book, wish, _extend(book, row, until, wish.intent))
    if row is not None and alive and not operator:
        ends, left = from_us(row["expires_us"]), (row["expires_us"] - now) / US
        return Held(row["owner"], row.get("owner_name") or book.name(row["owner"]), ends, "lease", ends, left)
    flights = _flights_of_others(book, wish)
    for flight in flights if not operator else ():
        young = now < flight["since_us"] + round(wish.flight_max * US)
        if flight["state"] == "permitted" or young:
            return _held_by(book, flight, wish)
    if wish.keeps:
        return None
    if row is not None and row["owner"] and 0 < row["expires_us"] <= now and row["expires_us"] > book.told():
        book.tell(lease_events.happened(wish.tenant, "expired", row))
    # Unknown mail holds nobody off, but an operator's word marks it too.
    stops = wish.enforced and (flights or operator)
    withdrew = book.take_over(wish.contact, wish.agent) if stops else ()
    former = row["owner"] if row is not None and alive else None
    row = book.change(wish.contact, **_taken(wish, row, now, until))
    data: dict[str, Any] = {"lease": row["lease_id"], "token": row["token"], "withdrew": list(withdrew)}
    if operator:
        data |= {"override": wish.operator_reason, "formerAgentId": former}
    book.tell(events.Event(wish.tenant, "lease.acquired", contact=wish.contact, actor=wish.agent, data=data))
    return _lease(book, wish, row, withdrew)


def _taken(wish: Acquire, before: dict[str, Any] | None, now: int, until: int) -> dict[str, Any]:
    """The columns of a new lease on a contact that has the row `before`, if any."""
    foreign = before["foreign_token"] if before else 0
    if before and before["owner"] not in ("", wish.agent):
        foreign = before["token"]
    return {
        "lease_id": str(uuid.uuid4()),
        "owner": wish.agent,
        "owner_name": None,
        "token": (before["token"] if before else 0) + 1,
        "foreign_token": foreign,
        "intent": wish.intent,
        "address": wish.address,
        "acquired_us": now,
        "expires_us": until,
    }


def _extend(book: Book, row: dict[str, Any], until: int, intent: str) -> dict[str, Any]:
    row = book.change(row["key"], expires_us=until, intent=intent)
    book.tell(lease_events.happened(book.tenant, "extended", row, until))
    return row


def _flights_of_others(book: Book, wish: Acquire) -> list[Row]:
    """Mail in flight of other agents that keeps the contact, oldest first."""
    others = [
        row
        for row in book.flights(wish.contact)
        if row["state"] != "unknown" and not row["internal"] and Kind(row["kind"]).leased and row["actor"] != wish.agent
    ]
    return sorted(others, key=lambda row: (row["since_us"], row["send_id"]))


def _held_by(book: Book, flight: Row, wish: Acquire) -> Held:
    until = max(flight["since_us"] + round(wish.flight_max * US), book.now + US)
    again, name = min(until, book.now + LOOK_AGAIN_US), book.name(flight["actor"])
    left = (again - book.now) / US
    return Held(flight["actor"], name, from_us(until), "send", from_us(again), left, flight["send_id"])


def _lease(book: Book, wish: Acquire, row: dict[str, Any], withdrew: tuple[str, ...] = ()) -> Lease:
    return Lease(
        row["lease_id"],
        wish.contact,
        wish.address,
        wish.agent,
        book.name(wish.agent),
        row["token"],
        wish.intent,
        from_us(row["acquired_us"]),
        from_us(row["expires_us"]),
        withdrew,
    )


def _not_theirs(book: Book, wish: Renew | Release, row: dict[str, Any] | None) -> AnothersLeaseError | None:
    """Why the asking key may not touch the lease, if it may not."""
    if row is None or wish.bound is None or row["owner"] == wish.agent:
        return None
    if wish.bound or keys.is_bound(book.tx, book.tenant, row["owner"]):
        return AnothersLeaseError(row["owner"])
    return None


def _renew(book: Book, wish: Renew) -> datetime | str | AnothersLeaseError:
    """Keep a lease that lives."""
    row, now = book.of_lease(wish.lease), book.now
    if (error := _not_theirs(book, wish, row)) is not None:
        return error
    if row is None:  # the contact has been acquired anew since, or there never was such a lease
        return "stale_fencing_token" if wish.token is not None else "lease_expired"
    if wish.agent is not None and row["owner"] != wish.agent:
        return "stale_fencing_token"
    if wish.token is not None and wish.token < row["token"]:
        return "stale_fencing_token"
    if row["expires_us"] <= now or (wish.token is not None and wish.token > row["token"]):
        return "lease_expired"
    until = now + round(wish.seconds * US)
    _extend(book, row, until, row["intent"])
    return from_us(until)


def _release(book: Book, wish: Release) -> Released | AnothersLeaseError:
    """End a lease; the token stays. An old id, or another agent's lease, is not released."""
    row, now = book.of_lease(wish.lease), book.now
    if (error := _not_theirs(book, wish, row)) is not None:
        return error
    if wish.token is not None and (row is None or wish.token < row["token"]):
        return Released(released=False, reason="stale_fencing_token")  # the contact has been acquired anew since
    if row is None or row["expires_us"] <= now or (wish.token is not None and wish.token > row["token"]):
        return Released(released=False, reason="lease_expired")
    if wish.agent is not None and row["owner"] != wish.agent:
        return Released(released=False, reason="not_your_lease")
    row = book.change(row["key"], expires_us=0)
    book.freed.add(row["key"])
    flying = [r for r in book.under_way.get(row["key"], ()) if r["actor"] == row["owner"] and r["state"] != "unknown"]
    book.tell(lease_events.happened(wish.tenant, "released", row))
    return Released(released=True, in_flight=tuple(sorted({r["send_id"] for r in flying})), contact=row["key"])


def _alive() -> sa.Select[Any]:
    owner = sa.and_(agents.c.tenant == contacts.c.tenant, agents.c.id == contacts.c.owner)
    return (
        sa.select(contacts, agents.c.name.label("owner_name"))
        .select_from(contacts.outerjoin(agents, owner))
        .where(contacts.c.tenant == TENANT, contacts.c.expires_us > sa.bindparam("now"))
        .order_by(contacts.c.acquired_us.desc(), contacts.c.key)
    )


def _living(_: Dialect) -> sa.Executable:
    return _alive()


def _living_of(_: Dialect) -> sa.Executable:
    return _alive().where(contacts.c.owner == sa.bindparam("who"))


def _living_on(_: Dialect) -> sa.Executable:
    return _alive().where(contacts.c.key == sa.bindparam("contact"))


def living(tx: Tx, tenant: str, contact: str | None = None, agent: str | None = None) -> list[Lease]:
    """The leases that live by the store's clock, newest first: all, or those on one contact (its key), or of one agent."""
    statement = _living_on if contact is not None else _living_of if agent is not None else _living
    about = {"tenant": tenant, "now": tx.now_of(tenant)}
    more = {"contact": contact} if contact is not None else {} if agent is None else {"who": agent}
    rows = [row for row in tx.rows(statement, about | more) if agent in (None, row["owner"])]
    return [
        Lease(
            r["lease_id"],
            r["key"],
            r["address"],
            r["owner"],
            r["owner_name"] or "",
            r["token"],
            r["intent"],
            from_us(r["acquired_us"]),
            from_us(r["expires_us"]),
        )
        for r in rows
    ]
