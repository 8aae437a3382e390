"""The append-only record of what happened; `journal.py` reads it. What kinds of events there are says core/event.py."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from gateway.core.event import BY_NAME
from gateway.store.dialect import Dialect
from gateway.store.schema import events
from gateway.store.tx import Tx


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened: its name, and what it was about."""

    tenant: str
    name: str
    send_id: str = ""
    contact: str = ""
    actor: str = ""
    data: dict[str, Any] = field(default_factory=dict)


def _insert(_: Dialect) -> sa.Executable:
    return sa.insert(events)


def _of_send(_: Dialect) -> sa.Executable:
    return (
        sa.select(events)
        .where(events.c.tenant == sa.bindparam("tenant"), events.c.send_id == sa.bindparam("send_id"))
        .order_by(events.c.at_us, events.c.id)
    )


def _of_moment(_: Dialect) -> sa.Executable:
    within = (events.c.id >= sa.bindparam("first"), events.c.id < sa.bindparam("beyond"))
    return sa.select(events.c.name, events.c.data).where(events.c.tenant == sa.bindparam("tenant"), *within)


def append(tx: Tx, happened: Sequence[Event]) -> None:
    """Write events at the transaction's time, under the locks of their tenants. Raises KeyError for an unknown kind.

    Under its lock a tenant has every time once, and the lock is let go only after the commit: so time and serial make an id,
    and a tenant's ids are seen in their order. A reader who goes on after the last id that it has seen misses nothing.
    """
    rows = [
        {
            "tenant": event.tenant,
            "id": f"evt_{tx.now_of(event.tenant):014x}{tx.serial():06x}",
            "name": BY_NAME[event.name].name,
            "at_us": tx.tenants[event.tenant][0],
            "send_id": event.send_id,
            "contact": event.contact,
            "actor": event.actor,
            "data": json.dumps(event.data) if event.data else "{}",
        }
        for event in happened
    ]
    tx.many(_insert, rows)


def of_send(tx: Tx, tenant: str, send_id: str) -> list[dict[str, Any]]:
    """All events of one send, oldest first: name, microseconds, contact, actor, data."""
    rows = tx.rows(_of_send, {"tenant": tenant, "send_id": send_id})
    return [
        {k: row[k] for k in ("id", "name", "at_us", "contact", "actor")} | {"data": json.loads(row["data"])}
        for row in rows
    ]


def of_moment(tx: Tx, tenant: str, at_us: int) -> list[tuple[str, dict[str, Any]]]:
    """Name and data of all events of one transaction, found by its time (microseconds), which begins their ids."""
    moment = {"first": f"evt_{at_us:014x}", "beyond": f"evt_{at_us + 1:014x}"}
    return [(row["name"], json.loads(row["data"])) for row in tx.rows(_of_moment, {"tenant": tenant, **moment})]
