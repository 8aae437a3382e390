"""Settles: what an attempt came to is written under its claim number and the tenant's lock (ARCHITECTURE 8, 9).

What becomes of the delivery is decided by `core/settle`; here it is written, with what follows from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from gateway.core.delivery import Outcome, Retry, State, Unknown, allowed
from gateway.core.mail import Kind
from gateway.core.settle import Settlement, Standing, reply_of, settle
from gateway.store import events, stamps, suppressions
from gateway.store.dialect import Dialect, Row
from gateway.store.outbox import Claim, rows_of
from gateway.store.schema import attempts
from gateway.store.statements import altered
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
US = 1_000_000


@dataclass(frozen=True, slots=True)
class Report:
    """What an attempt came to, with the jitter `roll` in [0, 1) and the retry settings."""

    claim: Claim
    outcome: Outcome
    retry: Retry
    roll: float


def _update(_: Dialect) -> sa.Executable:
    words = ("reason", "code", "enhanced", "text", "detail")
    names = ("state", "attempts", "due_us", "changed_us", "judged_us", "since_us", *words)
    return altered(**{name: sa.bindparam(f"new_{name}") for name in names})


def _end_attempt(_: Dialect) -> sa.Executable:
    """Once for each outcome: what is told again after a commit in doubt moves no time. No doubt replaces a reply.

    An attempt that had no permit of its own does not take over an earlier one's.
    """
    came_to = sa.bindparam("came_to", type_=sa.Text)
    at = sa.bindparam("at", type_=sa.BigInteger)
    doubtful = came_to.in_([sa.literal_column("'unknown'"), sa.literal_column("'givenback'")])
    known = attempts.c.outcome != sa.literal_column("''")
    return (
        sa.update(attempts)
        .where(attempts.c.tenant == TENANT, attempts.c.delivery_id == sa.bindparam("id_"))
        .where(attempts.c.claim_no == sa.bindparam("no"), attempts.c.outcome != came_to)
        .where(sa.not_(sa.and_(doubtful, known)))
        .values(
            ended_us=sa.bindparam("now"),
            permitted_us=sa.func.coalesce(attempts.c.permitted_us, sa.case((at >= attempts.c.started_us, at))),
            outcome=came_to,
            code=sa.bindparam("reply"),
            enhanced=sa.bindparam("status"),
            text=sa.bindparam("words"),
        )
    )


def settle_all(tx: Tx, reports: Sequence[Report]) -> list[State | None]:
    """Settle attempts under the tenants' locks; returns the new state of each, `None` where only the words were kept."""
    rounds: list[list[int]] = []  # two reports about one delivery (unknown, then a late reply) are two rounds
    for index, report in enumerate(reports):
        same = (report.claim.tenant, report.claim.delivery)
        fits = (r for r in rounds if all((reports[i].claim.tenant, reports[i].claim.delivery) != same for i in r))
        place = next(fits, None)
        if place is None:
            rounds.append(place := [])
        place.append(index)
    states: list[State | None] = [None] * len(reports)
    for indexes in rounds:
        for index, state in zip(indexes, _settle_round(tx, [reports[i] for i in indexes]), strict=True):
            states[index] = state
    return states


def _settle_round(tx: Tx, reports: Sequence[Report]) -> list[State | None]:
    found: dict[tuple[str, str], Row] = {}
    for tenant in sorted({r.claim.tenant for r in reports}):
        ids = [r.claim.delivery for r in reports if r.claim.tenant == tenant]
        found |= {(tenant, r["id"]): r for r in tx.rows(rows_of, {"tenant": tenant, "ids": tx.array(ids)})}
    changes: list[dict[str, Any]] = []
    ended: list[dict[str, Any]] = []
    happened: list[events.Event] = []
    states: list[State | None] = []
    moved: list[tuple[Claim, Row, Settlement]] = []
    for report in reports:
        tenant = report.claim.tenant
        row = found.get((tenant, report.claim.delivery))
        if row is None:  # stopped in flight, then judged anew for fewer people
            states.append(None)
            continue
        now = tx.now_of(tenant)
        old = State(row["state"])
        age = (now - (row["since_us"] or row["created_us"])) / US
        standing = Standing(old, row["claim_no"], row["forbidden"], row["attempts"], age, bool(row["assumed"]))
        change = settle(standing, report.claim.claim_no, report.outcome, report.retry, report.roll)
        ended.append(_ended(report, row, now))
        states.append(change.state)
        if change.state is None:
            continue
        _check(old, change.state, report.claim.delivery)
        changes.append(_changed(report, row, change, now))
        happened.append(_event(report, row, change))
        moved.append((report.claim, row, change))
    tx.many(_update, changes)
    tx.many(_end_attempt, ended)
    events.append(tx, happened)
    for one in moved:  # only now: what a suppression stops must not be written over by another's retry
        _consequences(tx, *one)
    return states


def _check(old: State, new: State, delivery: str) -> None:
    if old is not new and not allowed(old, new):
        msg = f"no transition {old} -> {new} for {delivery}"
        raise AssertionError(msg)


def _words(outcome: Outcome) -> tuple[int, str, str]:
    reply = reply_of(outcome)
    return (reply.code, reply.enhanced, reply.text) if reply else (0, "", getattr(outcome, "why", ""))


def _changed(report: Report, row: Row, change: Settlement, now: int) -> dict[str, Any]:
    code, enhanced, text = _words(report.outcome)
    assert change.state is not None  # noqa: S101  (for the type checker; the caller has looked)
    return {
        "tenant": report.claim.tenant,
        "id_": report.claim.delivery,
        "new_state": change.state.value,
        "new_attempts": change.attempts,
        "new_due_us": row["due_us"] if change.due_in is None else now + round(change.due_in * US),
        # An unknown one held nobody off: what has happened since is looked at before it goes a second time.
        "new_judged_us": 0 if row["state"] == State.UNKNOWN else row["judged_us"],
        "new_since_us": now if row["state"] == State.UNKNOWN and change.state is State.QUEUED else row["since_us"],
        "new_reason": change.reason,
        "new_detail": getattr(report.outcome, "why", ""),
        "new_code": code,
        "new_enhanced": enhanced,
        "new_text": text,
        "new_changed_us": now,
    }


def _had_permit(claimed: Claim, row: Row) -> bool:
    """Whether the row's permit was given to this claim, and not to an earlier or later one."""
    return bool(row["claim_no"] == claimed.claim_no and row["state"] != State.CLAIMED)


def _ended(report: Report, row: Row, now: int) -> dict[str, Any]:
    code, enhanced, text = _words(report.outcome)
    return {
        "tenant": report.claim.tenant,
        "id_": report.claim.delivery,
        "no": report.claim.claim_no,
        "now": now,
        "at": row["permitted_us"] if _had_permit(report.claim, row) else None,
        "came_to": type(report.outcome).__name__.lower(),
        "reply": code,
        "status": enhanced,
        "words": text,
    }


def _event(report: Report, row: Row, change: Settlement) -> events.Event:
    names = {State.QUEUED: "delivery.deferred", State.RELAYED: "delivery.relayed"}
    assert change.state is not None  # noqa: S101
    name = names.get(change.state, f"delivery.{change.state.value}")
    data = {"delivery": report.claim.delivery, "attempt": change.attempts}
    if change.reason:
        data["reason"] = change.reason
    return events.Event(report.claim.tenant, name, report.claim.send, row["contact"], row["actor"], data)


def _consequences(tx: Tx, claimed: Claim, row: Row, change: Settlement) -> None:
    """Stamp the contact, and suppress an address that the smarthost says is gone."""
    if change.stamp and not row["internal"] and Kind(row["kind"]).starts_cooldown:
        stamps.stamp(tx, claimed.tenant, row["contact"], claimed.send)
    if change.suppress:
        found = suppressions.New(row["contact"], row["address"], "tenant", "hard_bounce", source="smarthost")
        suppressions.add_one(tx, claimed.tenant, found)


def lost(claimed: Claim, why: str) -> Report:
    """The report of a permitted delivery whose worker has died: nobody knows."""
    return Report(claimed, Unknown(why), Retry(), 0.0)
