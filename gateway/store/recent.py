"""Answers the asks about mail that has set out not long ago (core/recent): by person, by thread."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from gateway.core.asks import Ask
from gateway.core.mail import Kind
from gateway.core.recent import Recent, RecentAsk, ThreadAsk
from gateway.store.clock import from_us
from gateway.store.dialect import Dialect
from gateway.store.schema import deliveries, sends

if TYPE_CHECKING:
    from gateway.store.facts import Look

US = 1_000_000
SET_OUT = ("queued", "claimed", "permitted", "unknown", "relayed", "delivered")
"""States of what is on its way or has arrived, as far as anybody knows."""


def _lately() -> tuple[sa.ColumnElement[bool], ...]:
    after: sa.BindParameter[int] = sa.bindparam("after", type_=sa.BigInteger)
    states = deliveries.c.state.in_([sa.literal_column(f"'{state}'") for state in SET_OUT])
    return deliveries.c.since_us > after, states


def recent_rows(d: Dialect) -> sa.Executable:
    """Deliveries to persons that have set out since a time, with what their sends say; oldest first."""
    found = d.look_up(deliveries, deliveries.c.contact, "keys", *_lately())
    send = sa.and_(sends.c.tenant == found.c.tenant, sends.c.id == found.c.send_id)
    columns = [found.c[name] for name in ("contact", "send_id", "since_us", "mailbox", "kind", "thread")]
    return (
        sa.select(*columns, sends.c.sketch, sends.c.in_reply_to)
        .select_from(found.join(sends, send))
        .order_by(found.c.since_us, found.c.send_id)
    )


def load_recents(look: "Look", asks: Sequence[RecentAsk]) -> dict[Ask[Any], Any]:
    """Mail to each person, in one statement for the longest time that is asked about."""
    after = look.now_us - max(ask.seconds for ask in asks) * US
    found: defaultdict[str, list[Recent]] = defaultdict(list)
    for row in look.rows(recent_rows, "keys", (a.key for a in asks), after=after):
        since, answers = from_us(row["since_us"]), row["in_reply_to"] or row["thread"] or ""
        one = Recent(row["send_id"], since, row["mailbox"], Kind(row["kind"]), bytes(row["sketch"]), answers)
        found[row["contact"]].append(one)
    now = from_us(look.now_us)
    return {ask: tuple(r for r in found.get(ask.key, ()) if r.since > now - _span(ask)) for ask in asks}


def thread_rows(d: Dialect) -> sa.Executable:
    """Sends of threads of which something has set out since a time, with their first setting out."""
    found = d.look_up(deliveries, deliveries.c.thread, "threads", *_lately())
    since = sa.func.min(found.c.since_us).label("since_us")
    return (
        sa.select(found.c.thread, found.c.send_id, since)
        .group_by(found.c.thread, found.c.send_id)
        .order_by(since, found.c.send_id)
    )


def load_threads(look: "Look", asks: Sequence[ThreadAsk]) -> dict[Ask[Any], Any]:
    """Mail of each thread, in one statement for the longest time that is asked about."""
    after = look.now_us - max(ask.seconds for ask in asks) * US
    found: defaultdict[str, list[tuple[str, datetime]]] = defaultdict(list)
    for row in look.rows(thread_rows, "threads", (a.thread for a in asks), after=after):
        found[row["thread"]].append((row["send_id"], from_us(row["since_us"])))
    now = from_us(look.now_us)
    return {ask: tuple(p for p in found.get(ask.thread, ()) if p[1] > now - _span(ask)) for ask in asks}


def _span(ask: RecentAsk | ThreadAsk) -> timedelta:
    return timedelta(seconds=ask.seconds)
