"""Leases looked up: which live, and whose one is; taking, keeping and giving them back is in `contacts.py`."""

import sqlalchemy as sa

from gateway.store.clock import from_us
from gateway.store.contacts import Lease
from gateway.store.dialect import Dialect
from gateway.store.schema import agents, contacts
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")


def _living(_: Dialect) -> sa.Executable:
    owner = sa.and_(agents.c.tenant == contacts.c.tenant, agents.c.id == contacts.c.owner)
    return (
        sa.select(contacts, agents.c.name.label("owner_name"))
        .select_from(contacts.outerjoin(agents, owner))
        .where(contacts.c.tenant == TENANT, contacts.c.expires_us > sa.bindparam("now"))
        .order_by(contacts.c.acquired_us.desc(), contacts.c.key)
    )


def living(tx: Tx, tenant: str) -> list[Lease]:
    """All leases that live by the store's clock, newest first."""
    rows = tx.rows(_living, {"tenant": tenant, "now": tx.now_of(tenant)})
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


def _owner(_: Dialect) -> sa.Executable:
    return sa.select(contacts.c.owner).where(contacts.c.tenant == TENANT, contacts.c.lease_id == sa.bindparam("lease"))


def owner_of(tx: Tx, tenant: str, lease: str) -> str | None:
    """The agent to whom a lease was given, by the lease's id; `None` where the contact has another lease since, or none."""
    row = tx.row(_owner, {"tenant": tenant, "lease": lease})
    return None if row is None else str(row["owner"])
