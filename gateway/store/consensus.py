"""Votes among agents as they stand now: found, listed, counted, and as a fact for the judge. How they are cast: voting.py.

How a consensus stands is read by the store's clock, so what has run out is expired before any sweep has seen it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from gateway.core.asks import Ask
from gateway.core.consensus import ACTIVE_SECONDS, ConsensusAnswer, ConsensusAsk, Status, Vote, standing
from gateway.core.errors import NotFoundError
from gateway.store.clock import from_us, maybe_time
from gateway.store.dialect import Dialect, Row
from gateway.store.fleet import consensus, pending, votes
from gateway.store.schema import agents
from gateway.store.tx import Tx

if TYPE_CHECKING:
    from gateway.store.facts import Look

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
US = 1_000_000
LATEST = 2**62
"""Microseconds that no consensus reaches."""


@dataclass(frozen=True, slots=True)
class Consensus:
    """What is or was voted on; times UTC. `active` counts the agents that are there now, `voters` maps agents to votes."""

    id: str
    requested_by: str
    action: str
    contact: str
    address: str
    reason: str
    status: Status
    timeout_at: datetime
    created_at: datetime
    decided_at: datetime | None
    active: int
    voters: Mapping[str, Vote]

    def count(self, vote: Vote) -> int:
        """How many agents have voted so."""
        return sum(one is vote for one in self.voters.values())


@dataclass(frozen=True, slots=True)
class Cast:
    """A vote that stands, with how its consensus stood after it; `created_at` UTC."""

    id: str
    consensus: str
    agent: str
    vote: Vote
    reason: str | None
    created_at: datetime
    status: Status


def by_id(d: Dialect) -> sa.Executable:
    """Rows by id."""
    return sa.select(consensus).where(d.owned(consensus.c.id, "ids"))


def _active(_: Dialect) -> sa.Executable:
    return sa.select(sa.func.count().label("there")).where(
        agents.c.tenant == TENANT, agents.c.heartbeat_us > sa.bindparam("since")
    )


def _votes_on(d: Dialect) -> sa.Executable:
    return sa.select(votes).where(d.owned(votes.c.consensus, "ids")).order_by(votes.c.created_us, votes.c.agent)


def active(tx: Tx, tenant: str) -> int:
    """How many agents have been there less than five minutes ago."""
    since = tx.now_of(tenant) - ACTIVE_SECONDS * US
    return int(tx.rows(_active, {"tenant": tenant, "since": since})[0]["there"])


def find(tx: Tx, tenant: str, which: str) -> Consensus:
    """A consensus as it stands now. Raises NotFoundError."""
    rows = tx.rows(by_id, {"tenant": tenant, "ids": tx.array([which])})
    if not rows:
        raise NotFoundError("no such consensus")
    return whole(tx, tenant, rows)[0]


def votes_on(tx: Tx, tenant: str, which: str) -> list[Cast]:
    """The votes that stand, oldest first. Raises NotFoundError."""
    status = find(tx, tenant, which).status
    rows = tx.rows(_votes_on, {"tenant": tenant, "ids": tx.array([which])})
    return [cast(row, status) for row in rows]


def cast(row: Row, status: Status) -> Cast:
    """A row of the table as a vote, where its consensus stands so."""
    said, at = Vote(row["vote"]), from_us(row["created_us"])
    return Cast(row["id"], row["consensus"], row["agent"], said, row["reason"], at, status)


def _page(_: Dialect) -> sa.Executable:
    late = sa.and_(pending, consensus.c.timeout_us <= sa.bindparam("now", type_=sa.BigInteger))
    stands = sa.case((late, sa.literal_column("'expired'")), else_=consensus.c.status)
    place = sa.tuple_(consensus.c.created_us, consensus.c.id)
    before = sa.tuple_(sa.bindparam("at", type_=sa.BigInteger), sa.bindparam("seen", type_=sa.Text))
    return (
        sa.select(consensus)
        .where(consensus.c.tenant == TENANT, place < before)
        .where(_if_given("wanted", stands), _if_given("person", consensus.c.contact))
        .order_by(consensus.c.created_us.desc(), consensus.c.id.desc())
        .limit(sa.bindparam("top"))
    )


def _if_given(name: str, column: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """Equal to a parameter, or that is `None`: a database must be told its type."""
    given = sa.cast(sa.bindparam(name), sa.Text)
    return sa.or_(given.is_(None), column == given)


def page(
    tx: Tx, tenant: str, status: str | None, contact: str | None, *, after: tuple[int, str] | None, limit: int
) -> tuple[list[Consensus], tuple[int, str] | None]:
    """What stands so and is about this person key (`None`: all), newest first, and the place where the next page begins.

    A place is a time in microseconds and an id, those of the last one that was seen.
    """
    at, seen = after or (LATEST, "")
    asked = {"tenant": tenant, "wanted": status, "person": contact, "now": tx.now_of(tenant)}
    rows = tx.rows(_page, asked | {"at": at, "seen": seen, "top": limit + 1})
    shown = rows[:limit]
    place = (shown[-1]["created_us"], shown[-1]["id"]) if len(rows) > limit else None
    return whole(tx, tenant, shown), place


def whole(tx: Tx, tenant: str, rows: Sequence[Row]) -> list[Consensus]:
    """Rows with the votes on them."""
    if not rows:
        return []
    there = active(tx, tenant)
    said: dict[str, dict[str, Vote]] = {row["id"]: {} for row in rows}
    for row in tx.rows(_votes_on, {"tenant": tenant, "ids": tx.array(said)}):
        said[row["consensus"]][row["agent"]] = Vote(row["vote"])
    return [
        Consensus(
            row["id"],
            row["requested_by"],
            row["action"],
            row["contact"],
            row["address"],
            row["reason"],
            stands_now(row, tx.now_of(tenant)),
            from_us(row["timeout_us"]),
            from_us(row["created_us"]),
            maybe_time(row["decided_us"]),
            there,
            said[row["id"]],
        )
        for row in rows
    ]


def stands_now(row: Row, now_us: int) -> Status:
    """How the consensus of a row stands at this time."""
    return standing(Status(row["status"]), late=row["timeout_us"] <= now_us)


def load_consensus(look: "Look", asks: Sequence[ConsensusAsk]) -> dict[Ask[Any], Any]:
    """How each consensus stands now; one that no sweep has ended yet has expired all the same."""
    rows = look.rows(by_id, "ids", (ask.consensus for ask in asks))
    found = {
        row["id"]: ConsensusAnswer(stands_now(row, look.now_us), row["contact"], from_us(row["timeout_us"]))
        for row in rows
    }
    return {ask: found.get(ask.consensus, ConsensusAnswer()) for ask in asks}
