"""Votes are asked for, cast, decided in the transaction of the vote that decides, or run out (rule: core/consensus).

Mail that waits for a consensus is let go in the transaction that ends it, to be judged again. How many agents are active is
counted when a vote is cast.
"""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from gateway.core.consensus import WAITS, Status, Vote, outcome
from gateway.core.errors import ConflictError, NotFoundError
from gateway.core.mail import Submission
from gateway.store import events, forbid
from gateway.store.consensus import Cast, Consensus, by_id, cast, stands_now, whole
from gateway.store.dialect import Dialect, Row
from gateway.store.fleet import awaited, consensus, pending, votes
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
US = 1_000_000
SWEPT = 500
"""Consensuses of one tenant that one sweep ends."""


@dataclass(frozen=True, slots=True)
class New:
    """A wish to have something voted on; `key` and `address` are the person's, `seconds` how long votes are taken."""

    tenant: str
    agent: str
    action: str
    key: str
    address: str
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Ballot:
    """A wish to vote; an earlier vote of the same agent is replaced."""

    tenant: str
    consensus: str
    agent: str
    vote: Vote
    reason: str | None = None


def _insert(_: Dialect) -> sa.Executable:
    return sa.insert(consensus)


def create(tx: Tx, wishes: Sequence[New]) -> list[Consensus]:
    """Begin votes; each is pending until it is decided or its time has passed."""
    return [_create(tx, wish) for wish in wishes]


def _create(tx: Tx, wish: New) -> Consensus:
    now = tx.now_of(wish.tenant)
    row = {
        "tenant": wish.tenant,
        "id": str(uuid.uuid4()),
        "requested_by": wish.agent,
        "action": wish.action,
        "contact": wish.key,
        "address": wish.address,
        "reason": wish.reason,
        "status": Status.PENDING.value,
        "timeout_us": now + max(1, round(wish.seconds * US)),
        "created_us": now,
        "decided_us": None,
    }
    tx.run(_insert, row)
    _note(tx, wish.tenant, "requested", row, wish.agent, status=Status.PENDING.value, reason=wish.reason)
    return whole(tx, wish.tenant, [row])[0]


def _note(tx: Tx, tenant: str, what: str, row: Row, actor: str, **more: Any) -> None:
    data = {"consensus": row["id"], "action": row["action"], **more}
    events.append(tx, [events.Event(tenant, f"consensus.{what}", contact=row["contact"], actor=actor, data=data)])


# --- voting -----------------------------------------------------------------------------------------------------------


def _upsert_vote(d: Dialect) -> sa.Executable:
    insert = d.upsert(votes)
    made: sa.Executable = insert.on_conflict_do_update(
        index_elements=[votes.c.tenant, votes.c.consensus, votes.c.agent],
        set_={name: insert.excluded[name] for name in ("id", "vote", "reason", "created_us")},
    )
    return made


def _close(_: Dialect) -> sa.Executable:
    return (
        sa.update(consensus)
        .where(consensus.c.tenant == TENANT, consensus.c.id == sa.bindparam("id_"))
        .values(status=sa.bindparam("to"), decided_us=sa.bindparam("at"))
    )


def vote(tx: Tx, wishes: Sequence[Ballot]) -> list[Cast | Exception]:
    """Cast votes, in order; the one that decides closes the vote and lets go what waits for it.

    Gives NotFoundError, or ConflictError `consensus_closed` (with `status`) where it is decided or its time has passed.
    """
    return [_vote(tx, wish) for wish in wishes]


def _vote(tx: Tx, wish: Ballot) -> Cast | Exception:
    tenant, now = wish.tenant, tx.now_of(wish.tenant)
    rows = tx.rows(by_id, {"tenant": tenant, "ids": tx.array([wish.consensus])})
    if not rows:
        return NotFoundError("no such consensus")
    stood = stands_now(rows[0], now)
    if stood is not Status.PENDING:
        return ConflictError("consensus_closed", "the vote is over; this one was not counted", status=stood.value)
    row = {
        "tenant": tenant,
        "consensus": wish.consensus,
        "agent": wish.agent,
        "id": str(uuid.uuid4()),
        "vote": wish.vote.value,
        "reason": wish.reason,
        "created_us": now,
    }
    tx.run(_upsert_vote, row)
    (after,) = whole(tx, tenant, rows)
    counted = {"approve": after.count(Vote.APPROVE), "reject": after.count(Vote.REJECT), "activeAgents": after.active}
    status = outcome(counted["approve"], counted["reject"], after.active)
    _note(tx, tenant, "voted", rows[0], wish.agent, vote=wish.vote.value, status=status.value)
    if status is not Status.PENDING:
        tx.run(_close, {"tenant": tenant, "id_": wish.consensus, "to": status.value, "at": now})
        _note(tx, tenant, "decided", rows[0], wish.agent, status=status.value, **counted)
        _let_go(tx, tenant, [wish.consensus])
    return cast(row, status)


# --- time that has passed, and mail that waits ------------------------------------------------------------------------


def _overdue(_: Dialect) -> sa.Executable:
    return _past(consensus.c.tenant)


def _late(_: Dialect) -> sa.Executable:
    """Those of one tenant; an expression in place of its column leaves the index on what is open as the only way."""
    return _past(consensus).where(consensus.c.tenant.concat(sa.literal_column("''")) == TENANT)


def _past(*what: sa.Column[str] | sa.Table) -> sa.Select[Any]:
    late = (pending, consensus.c.timeout_us <= sa.bindparam("now"))
    return sa.select(*what).where(*late).order_by(consensus.c.timeout_us).limit(sa.bindparam("top"))


def overdue(tx: Tx) -> list[str]:
    """The tenants that have something pending whose time has passed."""
    return sorted({row["tenant"] for row in tx.rows(_overdue, {"now": tx.now_us, "top": SWEPT})})


def expire(tx: Tx, tenants: Sequence[str]) -> list[int]:
    """End what is pending although its time has passed, and let go what waits for it. Returns how many, by tenant."""
    return [_expire(tx, tenant) for tenant in tenants]


def _expire(tx: Tx, tenant: str) -> int:
    rows = tx.rows(_late, {"tenant": tenant, "now": tx.now_of(tenant), "top": SWEPT})
    to = Status.EXPIRED.value
    for row in rows:
        tx.run(_close, {"tenant": tenant, "id_": row["id"], "to": to, "at": None})
        _note(tx, tenant, "expired", row, "", status=to)
    _let_go(tx, tenant, [row["id"] for row in rows])
    return len(rows)


def _wait(d: Dialect) -> sa.Executable:
    made: sa.Executable = d.upsert(awaited).on_conflict_do_nothing()
    return made


def wait(tx: Tx, tenant: str, mails: Iterable[Submission]) -> None:
    """Note which sends name a consensus, so that its end finds them."""
    named = [(mail.consensus, mail.id) for mail in mails if mail.consensus is not None]
    tx.many(_wait, [{"tenant": tenant, "consensus": one, "send_id": send} for one, send in sorted(set(named))])


def _waiting(d: Dialect) -> sa.Executable:
    return sa.select(awaited.c.send_id).where(d.owned(awaited.c.consensus, "ids"))


def _let_go(tx: Tx, tenant: str, ids: Sequence[str]) -> None:
    sends = {row["send_id"] for row in tx.rows(_waiting, {"tenant": tenant, "ids": tx.array(ids)})} if ids else set()
    if sends:
        forbid.let_go_sends(tx, tenant, sorted(sends), WAITS)
