"""Mail that waited is judged again: its rows are read back as a submission, and the new decision is written over them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa

from gateway.core.address import Address
from gateway.core.consensus import awaited
from gateway.core.delivery import State
from gateway.core.mail import Content, Envelope, Kind, Moment, Recipient, Submission
from gateway.core.record import Record, document
from gateway.core.verdict import Decision
from gateway.store import alarms, forbid, mail, records
from gateway.store.clock import EPOCH, from_us, maybe_time, to_us
from gateway.store.dialect import Dialect, Row
from gateway.store.schema import deliveries, sends
from gateway.store.statements import altered, of_send
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
AHEAD_US = 3600 * 1_000_000
"""By how much at most a retry goes before what was accepted later.

Enough that new mail does not pass a backlog while that drains; and no more, so that mail which the smarthost puts off
again and again cannot keep new mail from going.
"""


@dataclass(frozen=True, slots=True)
class Waiting:
    """One send's deliveries that are to be judged again, as a submission; `deadline` (UTC) is when it is too late."""

    record: Record
    mail: Submission
    rows: tuple[Row, ...]
    untried: bool
    counts_from: datetime


def _said(_: Dialect) -> sa.Executable:
    return sa.select(sends.c.header_from, sends.c.sketch).where(
        sends.c.tenant == TENANT, sends.c.id == sa.bindparam("send")
    )


def waiting(tx: Tx, tenant: str, request: str, states: Iterable[State], *, fresh_us: int | None) -> Waiting | None:
    """Read the deliveries of a send that are in `states`; with `fresh_us` only those that are due and judged before it."""
    now, wanted = tx.now_of(tenant), set(states)
    rows = [r for r in tx.rows(of_send, {"tenant": tenant, "send": request}) if State(r["state"]) in wanted]
    if fresh_us is not None:
        stale = now - fresh_us
        rows = [r for r in rows if r["due_us"] <= now and (r["state"] == State.SCHEDULED or r["judged_us"] <= stale)]
    found = records.find(tx, tenant, [request]).get(request)
    if not rows or found is None:
        return None
    since = min((r["since_us"] for r in rows if r["since_us"] is not None), default=None)
    (said,) = tx.rows(_said, {"tenant": tenant, "send": request})
    return Waiting(
        found,
        _submission(found, rows, maybe_time(since), said),
        tuple(rows),
        not any(r["attempts"] for r in rows),
        max(found.not_before or EPOCH, from_us(rows[0]["created_us"])),
    )


def _submission(found: Record, rows: Sequence[Row], since: datetime | None, said: Row) -> Submission:
    content = Content(
        found.digest,
        found.size,
        found.message_id,
        tuple(json.loads(said["header_from"])),
        found.subject,
        found.in_reply_to,
        sketch=bytes(said["sketch"]),
    )
    return Submission(
        found.id,
        found.tenant,
        found.mailbox,
        found.agent,
        found.key_id,
        Envelope(found.reverse_path, tuple(_recipient(r) for r in rows)),
        content,
        found.idempotency_key,
        found.fingerprint,
        Kind(found.kind),
        found.tokens,
        found.thread,
        found.campaign,
        found.not_before,
        found.derived_key,
        found.door,
        found.decision.get("override"),
        template=found.template,
        consensus=awaited(found.decision, found.approved),
        moment=Moment.RELEASE,
        since=since,
    )


def _recipient(row: Row) -> Recipient:
    local, _, domain = row["address"].rpartition("@")
    return Recipient(Address(local, domain, row["contact"]), row["role"], bool(row["internal"]))


def _decide(_: Dialect) -> sa.Executable:
    return (
        sa.update(sends)
        .where(sends.c.tenant == TENANT, sends.c.id == sa.bindparam("send"))
        .values(decision_no=sa.bindparam("number"), decided_us=sa.bindparam("now"), approved=sa.bindparam("names"))
    )


def _judged(_: Dialect) -> sa.Executable:
    """Mail that was not tried since it was last judged keeps its place; all other is due as `place` says.

    A retry's own time is jittered and says nothing of its age. Nothing is due since before it was first let go.
    """
    now: sa.BindParameter[int] = sa.bindparam("now", type_=sa.BigInteger)
    place: sa.BindParameter[int] = sa.bindparam("place", type_=sa.BigInteger)
    since = sa.func.coalesce(deliveries.c.since_us, now)
    waits = deliveries.c.changed_us <= deliveries.c.judged_us
    due = sa.case((waits, deliveries.c.due_us), (since > place, since), else_=place)
    return altered(judged_us=now, due_us=due, reason=sa.literal_column("''"), since_us=since)


def _still(_: Dialect) -> sa.Executable:
    """It is held, perhaps for another reason than before, and no longer in flight."""
    return altered(reason=sa.bindparam("why"), since_us=sa.null())


def _postpone(_: Dialect) -> sa.Executable:
    return altered(due_us=sa.bindparam("at"), reason=sa.bindparam("why"))


def write(tx: Tx, case: Waiting, decision: Decision, to: State | None, due_at: datetime | None) -> Record:
    """Write the decision of a release; `to` is the new state (`None`: it stays and is asked again at `due_at`)."""
    tenant, found = case.record.tenant, case.record
    now, reason = tx.now_of(tenant), decision.reason.slug if decision.reason else ""
    about = {"agent": found.agent, "key": found.key_id, "mailbox": found.mailbox, "tokens": found.tokens}
    written = replace(
        found,
        decision=document(decision, override=case.mail.override, consensus=found.decision.get("consensus"), **about),
        decision_no=found.decision_no + 1,
        decided_at=from_us(now),
        approved=decision.approved,
    )
    names = json.dumps(sorted(decision.approved))
    tx.run(_decide, {"tenant": tenant, "send": found.id, "number": written.decision_no, "now": now, "names": names})
    tx.run(mail.insert_decision, mail.decision_row(written, Moment.RELEASE.value))
    alarms.go_off(tx, case.mail, decision)
    ids = [{"tenant": tenant, "id_": r["id"]} for r in case.rows]
    if to is not None:
        forbid.move(tx, tenant, [r for r in case.rows if r["state"] != to], to, reason)
    if to is State.QUEUED:
        # Of what is released in one transaction the first stays the first.
        tx.many(_judged, [i | {"now": now, "place": now - AHEAD_US + tx.serial()} for i in ids])
    elif to is State.HELD:
        tx.many(_still, [i | {"why": reason} for i in ids])
    elif due_at is not None:
        tx.many(_postpone, [i | {"at": to_us(due_at), "why": reason} for i in ids])
    return records.find(tx, tenant, [found.id])[found.id]


def expire(tx: Tx, case: Waiting) -> Record:
    """End deliveries that are too late to be useful."""
    forbid.move(tx, case.record.tenant, case.rows, State.EXPIRED, "too_late")
    return records.find(tx, case.record.tenant, [case.record.id])[case.record.id]
