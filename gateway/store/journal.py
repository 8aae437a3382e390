"""The log of events as its readers go through it: what came after an id, in the order of commits (events.py writes it)."""

import json
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gateway.store.clock import from_us
from gateway.store.dialect import Dialect, Row
from gateway.store.schema import events, sends
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
ID = re.compile(r"evt_[0-9a-f]{18}(?:[0-9a-f]{2})?")
"""What the id of an event looks like: its time, 14 digits, and its place in a transaction, 6 (4 in logs of old).

As texts they have the order of the log, for no two transactions of a tenant have the same time.
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of the log; `send_id`, `mailbox`, `contact` and `actor` are empty where it is about none; `at` is UTC."""

    id: str
    name: str
    at: datetime
    send_id: str
    mailbox: str
    contact: str
    actor: str
    data: dict[str, Any] = field(default_factory=dict)


def _after(_: Dialect) -> sa.Executable:
    own = sa.and_(sends.c.tenant == events.c.tenant, sends.c.id == events.c.send_id)
    return (
        sa.select(events, sends.c.mailbox)
        .select_from(events.outerjoin(sends, own))
        .where(events.c.tenant == TENANT, events.c.id > sa.bindparam("last"))
        .order_by(events.c.id)
        .limit(sa.bindparam("top"))
    )


def after(tx: Tx, tenant: str, last: str, *, limit: int) -> list[Entry]:
    """The tenant's events after the one with the id `last` ("": from the first on), oldest first, at most `limit`."""
    return [_entry(row) for row in tx.rows(_after, {"tenant": tenant, "last": last, "top": limit})]


def _entry(row: Row) -> Entry:
    data: dict[str, Any] = json.loads(row["data"])
    mailbox = row["mailbox"] or data.get("mailbox") or data.get("mailboxId") or ""
    return Entry(
        row["id"], row["name"], from_us(row["at_us"]), row["send_id"], mailbox, row["contact"], row["actor"], data
    )


def _newest(_: Dialect) -> sa.Executable:
    return sa.select(sa.func.max(events.c.id).label("id")).where(events.c.tenant == TENANT)


def newest(tx: Tx, tenant: str) -> str:
    """The id of the tenant's last event; "" where nothing has happened yet."""
    return tx.rows(_newest, {"tenant": tenant})[0]["id"] or ""


def _beyond(_: Dialect) -> sa.Executable:
    return (
        sa.select(events.c.id)
        .where(events.c.tenant == TENANT, events.c.id > sa.bindparam("last"))
        .order_by(events.c.id)
        .limit(1)
        .offset(sa.bindparam("many"))
    )


def more_than(tx: Tx, tenant: str, last: str, many: int) -> bool:
    """Whether more than `many` events came after `last`."""
    return tx.row(_beyond, {"tenant": tenant, "last": last, "many": many}) is not None
