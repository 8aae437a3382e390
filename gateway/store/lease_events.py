"""What is told of leases: that one was extended or given back, and, by a sweep, that one has run out.

A lease ends by the clock, in no transaction. Up to which time its tenant's ends have been told is a mark; a lease that was
given back has no end any more.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from gateway.core.record import instant
from gateway.store import events
from gateway.store.clock import from_us
from gateway.store.dialect import Dialect
from gateway.store.schema import contacts, marks, tenants
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
MARK = "lease.expired"
AT_ONCE = 500
"""Leases of one tenant that one sweep tells of."""


def happened(tenant: str, what: str, row: Mapping[str, Any], until: int | None = None) -> events.Event:
    """That a lease, by its contact's row, was `extended` until a time (microseconds), `released`, or has `expired`."""
    data = {"lease": row["lease_id"], "token": row["token"]}
    if until is not None:
        data["expiresAt"] = instant(from_us(until))
    return events.Event(tenant, f"lease.{what}", contact=row["key"], actor=row["owner"], data=data)


def _mark(_: Dialect) -> sa.Executable:
    return sa.select(marks.c.at_us).where(marks.c.tenant == TENANT, marks.c.name == sa.literal_column(f"'{MARK}'"))


def told(tx: Tx, tenant: str) -> int:
    """Up to when (microseconds) it has been told which leases have run out."""
    found = tx.row(_mark, {"tenant": tenant})
    return found["at_us"] if found else 0


def _over(_: Dialect) -> sa.Executable:
    mark = sa.and_(marks.c.tenant == tenants.c.id, marks.c.name == sa.literal_column(f"'{MARK}'"))
    since = sa.func.coalesce(marks.c.at_us, sa.literal_column("0"))
    first = (  # and not "is there one", for which PostgreSQL may read the whole table
        sa.select(contacts.c.expires_us)
        .where(contacts.c.tenant == tenants.c.id, contacts.c.expires_us > since)
        .order_by(contacts.c.expires_us)
        .limit(sa.literal_column("1"))
        .correlate(tenants, marks)
        .scalar_subquery()
    )
    known = tenants.outerjoin(marks, mark)
    return sa.select(tenants.c.id).select_from(known).where(first <= sa.bindparam("now")).order_by(tenants.c.id)


def over(tx: Tx) -> list[str]:
    """The tenants that have leases of whose end nobody has been told."""
    return [row["id"] for row in tx.rows(_over, {"now": tx.now_us})]


def _ended(_: Dialect) -> sa.Executable:
    return (
        sa.select(contacts)
        .where(contacts.c.tenant == TENANT, contacts.c.expires_us > sa.bindparam("since"))
        .where(contacts.c.expires_us <= sa.bindparam("now"))
        .order_by(contacts.c.expires_us, contacts.c.key)
    )


def _page_ends(_: Dialect) -> sa.Executable:
    return (
        sa.select(contacts.c.expires_us)
        .where(contacts.c.tenant == TENANT, contacts.c.expires_us > sa.bindparam("since"))
        .where(contacts.c.expires_us <= sa.bindparam("now"))
        .order_by(contacts.c.expires_us)
        .limit(1)
        .offset(sa.bindparam("many"))
    )


def _set_mark(d: Dialect) -> sa.Executable:
    insert = d.upsert(marks)
    made: sa.Executable = insert.on_conflict_do_update(
        index_elements=[marks.c.tenant, marks.c.name], set_={"at_us": insert.excluded.at_us}
    )
    return made


def tell(tx: Tx, asked: Sequence[str]) -> list[int]:
    """Tell of the leases of tenants that have run out, each once; about AT_ONCE at a time. Returns how many, by tenant."""
    return [_tell(tx, tenant) for tenant in asked]


def _tell(tx: Tx, tenant: str) -> int:
    about = {"tenant": tenant, "since": told(tx, tenant), "now": tx.now_of(tenant)}
    last = tx.row(_page_ends, {**about, "many": AT_ONCE})
    if last is not None:
        about["now"] = last["expires_us"]  # with all that end at the same time: the mark is a time
    rows = tx.rows(_ended, about)
    events.append(tx, [happened(tenant, "expired", row) for row in rows])
    tx.run(_set_mark, {"tenant": tenant, "name": MARK, "at_us": about["now"]})
    return len(rows)
