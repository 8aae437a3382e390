"""Suppressions by the thousand: a list comes in and goes out in pieces, each of them one short transaction.

The rules are those of a single entry (`suppressions`): none is weakened, and what a piece forbids is stopped in flight in
the same transaction. A piece leaves one event, not one for each entry.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from gateway.store import events, forbid, suppressions
from gateway.store.clock import from_us, maybe_us
from gateway.store.dialect import Dialect, Row, by_index
from gateway.store.facts import suppression_subjects
from gateway.store.schema import deliveries, live, sends
from gateway.store.schema import suppressions as table
from gateway.store.suppressions import New, Suppression
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
COLUMNS = tuple(table.c)
ROWS_MAX = 5000
"""Entries in a piece: at 10^6 entries in the list its transaction takes a fifth of a second (tests/bench/suppressions.py)."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Entries to add at once, for one tenant."""

    tenant: str
    entries: tuple[New, ...]
    created_by: str


@dataclass(frozen=True, slots=True)
class Added:
    """What became of a piece: entries written (new or renewed), entries that were as strong already, requests stopped."""

    written: int
    kept: int
    stopped: tuple[str, ...]


def _upsert(d: Dialect) -> sa.Executable:
    insert = d.upsert(table).from_select([c.name for c in COLUMNS], d.records("rows", COLUMNS))
    return suppressions.renewing(insert)


def add(tx: Tx, pieces: Sequence[Piece]) -> list[Added]:
    """Add all entries of each piece, in order."""
    return [_add(tx, piece) for piece in pieces]


def _add(tx: Tx, piece: Piece) -> Added:
    tenant, now = piece.tenant, tx.now_of(piece.tenant)
    written = 0
    for entries in _rounds(piece.entries):
        suppressions.share(tx, tenant, entries)
        # In the order of the index, which is by chance in no other: a page is then changed once, not over and over.
        rows = sorted((_row(tx, tenant, now, new) for new in entries), key=lambda row: row["subject"])
        written += tx.run(_upsert, {"rows": json.dumps(rows), "now": now})
    bound: defaultdict[str, set[str]] = defaultdict(set)
    for new in piece.entries:
        if new.expires_at is None or new.expires_at > from_us(now):
            bound[new.subject].add(new.campaign)
    stopped = forbid.stop_rows(tx, tenant, _forbidden(tx, tenant, bound), "suppressed", piece.created_by)
    data = {"written": written, "kept": len(piece.entries) - written, "stopped": stopped}
    events.append(tx, [events.Event(tenant, "suppression.imported", actor=piece.created_by, data=data)])
    return Added(written, len(piece.entries) - written, tuple(stopped))


def _rounds(entries: Iterable[New]) -> Iterator[list[New]]:
    """The entries in lists without a subject twice, in order: one statement cannot change one row twice."""
    left = list(entries)
    while left:
        seen: set[tuple[str, str]] = set()
        now: list[New] = []
        later: list[New] = []
        for new in left:
            slot = (new.subject, new.campaign)
            (later if slot in seen else now).append(new)
            seen.add(slot)
        yield now
        left = later


def _row(tx: Tx, tenant: str, now: int, new: New) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "id": f"sup_{now:014x}{tx.serial():05x}",  # in order: a list of 10^6 under ids by chance costs a page for each
        "subject": new.subject,
        "address": new.address,
        "scope": new.scope,
        "campaign": new.campaign,
        "reason_code": new.reason_code,
        "source": new.source,
        "created_by": new.created_by,
        "created_us": now,
        "expires_us": maybe_us(new.expires_at),
    }


# --- mail in flight ---------------------------------------------------------------------------------------------------


def _live_contacts(_: Dialect) -> sa.Executable:
    select = sa.select(deliveries.c.contact).distinct().where(deliveries.c.tenant == TENANT, live)
    return by_index(select, deliveries, "deliveries_live")


def _campaigns(d: Dialect) -> sa.Executable:
    return sa.select(sends.c.id, sends.c.campaign).where(d.owned(sends.c.id, "ids"))


def _forbidden(tx: Tx, tenant: str, bound: Mapping[str, set[str]]) -> list[Row]:
    """The live deliveries that these subjects forbid; each has the campaigns that it binds, "" for all mail."""
    contacts = {subject for subject in bound if "@" in subject}
    if len(contacts) < len(bound):
        known = [row["contact"] for row in tx.rows(_live_contacts, {"tenant": tenant})]
        contacts |= {one for one in known if any(s in bound for s in suppression_subjects(one))}
    rows = forbid.live_to(tx, tenant, sorted(contacts))
    binding = {r["id"]: set[str]().union(*(bound.get(s, ()) for s in suppression_subjects(r["contact"]))) for r in rows}
    some = {r["send_id"] for r in rows if "" not in binding[r["id"]]}
    of = {}
    if some:
        of = {r["id"]: r["campaign"] for r in tx.rows(_campaigns, {"tenant": tenant, "ids": tx.array(sorted(some))})}
    return [r for r in rows if "" in binding[r["id"]] or of[r["send_id"]] in binding[r["id"]]]


# --- the list as a whole ----------------------------------------------------------------------------------------------


def _page(_: Dialect) -> sa.Executable:
    alive = sa.or_(table.c.expires_us.is_(None), table.c.expires_us > sa.bindparam("now"))
    return (
        sa.select(table)
        .where(table.c.tenant == TENANT, table.c.id > sa.bindparam("after"), alive)
        .order_by(table.c.id)
        .limit(sa.bindparam("top"))
    )


def page(tx: Tx, tenant: str, *, after: str, limit: int) -> list[Suppression]:
    """Entries that live now beyond an id, in the order of ids, which never changes: who turns pages sees each one once."""
    rows = tx.rows(_page, {"tenant": tenant, "after": after, "now": tx.now_of(tenant), "top": limit})
    return [suppressions.entry(row) for row in rows]
