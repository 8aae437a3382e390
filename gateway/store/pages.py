"""Pages of sends, newest first, by what is asked of them; a page begins where the one before has ended.

A person or a thread with few sends is found by an index. Else sends are looked at one by one in the order of another, so a
page costs the same however many there are, and what is rare among very many is found over several: a page looks at no more
than SCAN.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gateway.core.delivery import State
from gateway.core.record import Record
from gateway.core.status import ORDER, WORST
from gateway.store import records
from gateway.store.clock import to_us
from gateway.store.dialect import Dialect
from gateway.store.schema import deliveries, sends
from gateway.store.tx import Tx

STATUSES = (*ORDER, *WORST, "blocked")
"""Every status of a send; it has the first of these that any recipient is in."""
SCAN = 5000
"""Sends that a page looks at, at most."""
PIECE = 500
"""Sends that are looked at in one statement."""
FEW = 1000
"""Deliveries to a person or of a thread up to which they are looked up by that."""
LATEST = 2**62
"""Microseconds that no send reaches."""

COLUMNS = ("agent", "mailbox", "kind", "campaign", "thread")
"""Columns of a send that may be asked for."""

_RANKS = {name: rank for rank, name in enumerate(STATUSES)}
_WORDS = {State.HELD: "pending_approval", State.CLAIMED: "relaying", State.PERMITTED: "relaying"}


@dataclass(frozen=True, slots=True)
class Place:
    """A send in the order of pages: its time in microseconds, and its id, since many have the same time."""

    at_us: int
    id: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which sends are looked for; `None` for all. `contact` is a person key, `since` counts, `until` does not.

    `mailboxes` are those that the caller may know of.
    """

    status: str | None = None
    contact: str | None = None
    agent: str | None = None
    mailbox: str | None = None
    kind: str | None = None
    campaign: str | None = None
    thread: str | None = None
    reason: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    mailboxes: tuple[str, ...] | None = None

    @property
    def everything(self) -> bool:
        """Whether no send within the times is left out."""
        asked = (self.status, self.contact, self.agent, self.mailbox, self.kind, self.campaign, self.thread)
        return all(one is None for one in (*asked, self.reason, self.mailboxes))


def page(tx: Tx, tenant: str, wanted: Wanted, *, after: Place | None, limit: int) -> tuple[list[Record], Place | None]:
    """Records beyond `after`, newest first, and where the next page begins; `None` where there is none."""
    found: list[str] = []
    looked, place = 0, after or Place(LATEST if wanted.until is None else to_us(wanted.until), "")
    params, few = _params(tx, tenant, wanted), _few(tx, tenant, wanted)
    builder, scan = (_piece, SCAN) if few is None else (_among, 1)
    while looked < scan:
        top = limit + 1 - len(found) if wanted.everything else PIECE if few is None else FEW
        more = {"at": place.at_us, "seen": place.id, "top": top, "ids": tx.array(few or ())}
        rows = tx.rows(builder, params | more)
        for row in rows:
            if row["fits"] and len(found) == limit:
                return _records(tx, tenant, found), place
            place = Place(row["created_us"], row["id"])
            if row["fits"]:
                found.append(row["id"])
        looked += len(rows)
        if len(rows) < top or few is not None:
            return _records(tx, tenant, found), None
    return _records(tx, tenant, found), place


def _few(tx: Tx, tenant: str, wanted: Wanted) -> set[str] | None:
    """The sends to the person or of the thread that are asked for; `None` where there are many, or neither is asked for."""
    for builder, name in ((_to_contact, wanted.contact), (_of_thread, wanted.thread)):
        if name is not None:
            rows = tx.rows(builder, {"tenant": tenant, "name": name, "top": FEW + 1})
            if len(rows) <= FEW:
                return {row["send_id"] for row in rows}
    return None


def _to_contact(_: Dialect) -> sa.Executable:
    return _sends_where(deliveries.c.contact)


def _of_thread(_: Dialect) -> sa.Executable:
    return _sends_where(deliveries.c.thread)


def _sends_where(column: sa.Column[str]) -> sa.Executable:
    mine = (deliveries.c.tenant == sa.bindparam("tenant"), column == sa.bindparam("name"))
    return sa.select(deliveries.c.send_id).where(*mine).limit(sa.bindparam("top"))


def _records(tx: Tx, tenant: str, ids: list[str]) -> list[Record]:
    known = records.find(tx, tenant, ids) if ids else {}
    return [known[one] for one in ids]


def _params(tx: Tx, tenant: str, wanted: Wanted) -> dict[str, object]:
    return {
        "tenant": tenant,
        "since": 0 if wanted.since is None else to_us(wanted.since),
        "rank": None if wanted.status is None else str(_RANKS[wanted.status]),
        "contact": wanted.contact,
        "reason": wanted.reason,
        **{name: getattr(wanted, name) for name in COLUMNS},
        "scoped": None if wanted.mailboxes is None else "yes",
        "boxes": tx.array(wanted.mailboxes or ()),
    }


def _piece(d: Dialect) -> sa.Executable:
    """The next sends in the order of `sends_newest`, each with whether it is wanted."""
    return _flagged(d, sends, sends.c.created_us).where(sends.c.tenant == sa.bindparam("tenant"))


def _among(d: Dialect) -> sa.Executable:
    """The same of sends that are known by their ids; the sum keeps SQLite from passing all sends in their order instead."""
    found = d.look_up(sends, sends.c.id, "ids")
    return _flagged(d, found, found.c.created_us + sa.literal_column("0", sa.BigInteger))


def _flagged(d: Dialect, found: sa.Table | sa.Subquery, made: sa.ColumnElement[int]) -> sa.Select[Any]:
    fits = sa.and_(
        sa.or_(_given("scoped").is_(None), d.within(found.c.mailbox, "boxes")),
        *(_if_given(name, found.c[name] == _given(name)) for name in COLUMNS),
        *(
            _if_given(name, _of_send(found, deliveries.c.id).where(deliveries.c[name] == _given(name)).exists())
            for name in ("contact", "reason")
        ),
        _if_given("rank", _of_send(found, _rank()).scalar_subquery() == sa.cast(_given("rank"), sa.BigInteger)),
    )
    place = sa.tuple_(made, found.c.id)
    before = sa.tuple_(sa.bindparam("at", type_=sa.BigInteger), sa.bindparam("seen", type_=sa.Text))
    flag = sa.case((fits, sa.literal_column("1")), else_=sa.literal_column("0"))
    return (
        sa.select(found.c.id, found.c.created_us, flag.label("fits"))
        .where(place < before, made >= sa.bindparam("since", type_=sa.BigInteger))
        .order_by(made.desc(), found.c.id.desc())
        .limit(sa.bindparam("top"))
    )


def _given(name: str) -> sa.ColumnElement[str]:
    """A parameter that may be `None`: a database must be told its type."""
    return sa.cast(sa.bindparam(name), sa.Text)


def _if_given(name: str, test: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """A condition that holds for all where its parameter is `None`."""
    return sa.or_(_given(name).is_(None), test)


def _of_send(found: sa.Table | sa.Subquery, said: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Something about the deliveries of a send."""
    return sa.select(said).where(deliveries.c.tenant == found.c.tenant, deliveries.c.send_id == found.c.id)


def _rank() -> sa.ColumnElement[int]:
    """Which of STATUSES a send has: the first that any of its deliveries is in, by the words of `core/status`."""
    state, nothing = deliveries.c.state, sa.literal_column("0", sa.BigInteger)
    tried = sa.or_(deliveries.c.attempts > nothing, deliveries.c.code > nothing)
    waits = sa.and_(state == sa.literal_column(f"'{State.QUEUED}'"), tried)
    whens = [(state == sa.literal_column(f"'{one}'"), _number(_WORDS.get(one, one.value))) for one in State]
    return sa.func.min(sa.case((waits, _number("deferred")), *whens))


def _number(name: str) -> sa.ColumnElement[int]:
    return sa.literal_column(str(_RANKS[name]))
