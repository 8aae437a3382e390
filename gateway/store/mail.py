"""Send records are written with deliveries, decision, counters and event in the transaction that judged them.

`Judged` is what the judge hands over, `record` writes a batch; `records.py` reads them back.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from gateway.core.delivery import State
from gateway.core.mail import Submission
from gateway.core.record import DeliveryRecord, Record, document
from gateway.core.verdict import Decision
from gateway.store import alarms, conflicts, events, units, voting
from gateway.store.clock import from_us, maybe_us, to_us
from gateway.store.dialect import Dialect
from gateway.store.schema import contents, decisions, deliveries, sends
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
DERIVED_LIFE_US = 24 * 3600 * 1_000_000


@dataclass(frozen=True, slots=True)
class Judged:
    """A submission with its decision; `state` is how its deliveries are born, `prior` the refused record it replaces."""

    mail: Submission
    body: bytes
    decision: Decision
    state: State
    send_reason: str | None = None
    prior: Record | None = None


def write(tx: Tx, tenant: str, pairs: Sequence[tuple[Judged, Record]], *, counted: frozenset[tuple[str, str]]) -> None:
    """Write a batch of decisions with their records; `counted` are the (scope, window) pairs that quotas read.

    A request that was judged twice in the batch (a refused key tried again) keeps both decisions and its last record.
    """
    last = {r.id: index for index, (_, r) in enumerate(pairs)}
    kept = [pair for index, pair in enumerate(pairs) if last[pair[1].id] == index]
    numbers = _forget(tx, tenant, [r.id for j, r in kept if j.prior is not None])
    tx.many(_insert_content, [_content_row(j, r) for j, r in kept if not _blocked(j)])
    tx.many(_insert_send, [_send_row(j, r) for j, r in kept])
    tx.many(_insert_delivery, [row for j, r in kept for row in _delivery_rows(j, r, numbers.get(r.id, 0))])
    tx.many(insert_decision, [decision_row(r, j.mail.moment.value) for j, r in pairs])
    units.count(tx, tenant, [j.mail for j, _ in pairs if not _blocked(j)], counted)
    voting.wait(tx, tenant, [j.mail for j, _ in kept if not _blocked(j)])
    conflicts.record(tx, tenant, [(j.mail, j.decision) for j, _ in pairs])
    events.append(tx, [_event(j, r) for j, r in pairs])
    for judged, _ in pairs:
        alarms.go_off(tx, judged.mail, judged.decision)


def _blocked(judged: Judged) -> bool:
    return judged.state is State.BLOCKED


def build(tx: Tx, tenant: str, judged: Judged) -> Record:
    """Make the record of a decision as `write` keeps it and `records.find` reads it back."""
    mail, prior, now = judged.mail, judged.prior, from_us(tx.now_of(tenant))
    born = [
        DeliveryRecord(
            f"{mail.id}.{n}",
            r.address.key,
            r.address.spec,
            r.role,
            judged.state,
            due_at=max(now, mail.not_before) if mail.not_before else now,
            reason=judged.decision.reason.slug if judged.decision.reason else "",
            changed_at=now,
        )
        for n, r in enumerate(mail.envelope.recipients, 1)
    ]
    about = {"agent": mail.agent, "key": mail.key_id, "mailbox": mail.mailbox, "tokens": dict(mail.tokens)}
    return Record(
        mail.id,
        tenant,
        mail.mailbox,
        mail.agent,
        mail.key_id,
        mail.actor,
        mail.idempotency_key,
        mail.fingerprint,
        mail.kind.value,
        mail.content.subject,
        mail.content.message_id,
        ", ".join(mail.content.header_from),
        mail.envelope.reverse_path,
        mail.content.size,
        mail.door,
        prior.created_at if prior else now,
        now,
        prior.decision_no + 1 if prior else 1,
        document(judged.decision, override=mail.override, consensus=mail.consensus, **about),
        tuple(born),
        mail.campaign,
        mail.thread,
        mail.content.in_reply_to,
        mail.not_before,
        judged.send_reason,
        dict(mail.tokens),
        frozenset(),
        0,
        mail.content.digest,
        mail.derived_key,
        mail.template,
    )


def _insert_content(d: Dialect) -> sa.Executable:
    """A body is written once, but for a send that was stopped in flight and is judged anew with what it says now."""
    insert = d.upsert(contents)
    made: sa.Executable = insert.on_conflict_do_update(
        index_elements=[contents.c.tenant, contents.c.send_id], set_={"body": insert.excluded.body}
    )
    return made


def _content_row(judged: Judged, record: Record) -> dict[str, Any]:
    return {"tenant": record.tenant, "send_id": record.id, "body": judged.body}


def _insert_send(_: Dialect) -> sa.Executable:
    return sa.insert(sends)


def _send_row(judged: Judged, record: Record) -> dict[str, Any]:
    mail, now = judged.mail, to_us(record.decided_at)
    return {
        "tenant": record.tenant,
        "id": record.id,
        "mailbox": record.mailbox,
        "agent": record.agent,
        "key_id": record.key_id,
        "actor": record.actor,
        "idem_key": record.idempotency_key,
        "idem_slot": record.idempotency_key,
        "idem_until_us": now + DERIVED_LIFE_US if mail.derived_key else None,
        "fingerprint": record.fingerprint,
        "digest": record.digest,
        "kind": record.kind,
        "campaign": record.campaign,
        "thread": record.thread,
        "tokens": json.dumps(record.tokens) if record.tokens else "{}",
        "reverse_path": record.reverse_path,
        "header_from": json.dumps(mail.content.header_from),
        "subject": record.subject,
        "message_id": record.message_id,
        "in_reply_to": record.in_reply_to,
        "sketch": mail.content.sketch,
        "size": record.size,
        "not_before_us": maybe_us(record.not_before),
        "door": record.door,
        "send_reason": record.send_reason,
        "template": record.template,
        "override": mail.override,
        "approved": json.dumps(sorted(record.approved)) if record.approved else "[]",
        "created_us": to_us(record.created_at),
        "decided_us": now,
        "decision_no": record.decision_no,
        "repeats": record.repeats,
    }


def _insert_delivery(_: Dialect) -> sa.Executable:
    return sa.insert(deliveries)


def _delivery_rows(judged: Judged, record: Record, claim_no: int) -> list[dict[str, Any]]:
    """The rows of a send; `claim_no` is the highest that any of its deliveries has had."""
    now = to_us(record.decided_at)
    return [
        {
            "tenant": record.tenant,
            "id": d.id,
            "send_id": record.id,
            "contact": d.contact,
            "address": d.address,
            "role": d.role,
            "internal": int(r.internal),
            "kind": record.kind,
            "mailbox": record.mailbox,
            "actor": record.actor,
            "thread": record.thread,
            "digest": record.digest,
            "state": d.state.value,
            "claim_no": claim_no,
            "epoch": "",
            "due_us": maybe_us(d.due_at) or now,
            "created_us": now,
            "since_us": now if d.state is State.QUEUED else None,
            "judged_us": now,
            "not_before_us": maybe_us(record.not_before),
            "attempts": 0,
            "tried": 0,
            "assumed": 0,
            "dsn": r.dsn.dump(),
            "forbidden": "",
            "reason": d.reason,
            "detail": "",
            "code": 0,
            "enhanced": "",
            "text": "",
            "permitted_us": None,
            "changed_us": now,
        }
        for d, r in zip(record.deliveries, judged.mail.envelope.recipients, strict=True)
    ]


def insert_decision(_: Dialect) -> sa.Executable:
    """A decision's row."""
    return sa.insert(decisions)


def decision_row(record: Record, moment: str) -> dict[str, Any]:
    """The row of a record's last decision."""
    return {
        "tenant": record.tenant,
        "send_id": record.id,
        "no": record.decision_no,
        "at_us": to_us(record.decided_at),
        "moment": moment,
        "verdict": record.decision["verdict"],
        "reason": record.decision["reason"] or "",
        "document": json.dumps(record.decision),
    }


def _delete_deliveries(d: Dialect) -> sa.Executable:
    return sa.delete(deliveries).where(d.owned(deliveries.c.send_id, "ids"))


def _delete_sends(d: Dialect) -> sa.Executable:
    return sa.delete(sends).where(d.owned(sends.c.id, "ids"))


def _claim_numbers(d: Dialect) -> sa.Executable:
    return (
        sa.select(deliveries.c.send_id, sa.func.max(deliveries.c.claim_no).label("highest"))
        .where(d.owned(deliveries.c.send_id, "ids"))
        .group_by(deliveries.c.send_id)
    )


def _forget(tx: Tx, tenant: str, ids: Sequence[str]) -> dict[str, int]:
    """Take away refused records that are judged anew and written again; their decisions and attempts stay in the trace.

    Returns the highest claim number of each: being judged again never resets it (ARCHITECTURE 9).
    """
    if not ids:
        return {}
    about = {"tenant": tenant, "ids": tx.array(ids)}
    numbers = {row["send_id"]: row["highest"] for row in tx.rows(_claim_numbers, about)}
    tx.run(_delete_deliveries, about)
    tx.run(_delete_sends, about)
    return numbers


def _repeat(_: Dialect) -> sa.Executable:
    return (
        sa.update(sends)
        .where(sends.c.tenant == TENANT, sends.c.id == sa.bindparam("id_"))
        .values(repeats=sends.c.repeats + 1)
    )


def count_repeat(tx: Tx, tenant: str, request: str) -> None:
    """An equal refusal within a minute only counts up (SEMANTICS 5)."""
    tx.run(_repeat, {"tenant": tenant, "id_": request})


def _event(judged: Judged, record: Record) -> events.Event:
    names = {State.BLOCKED: "policy.blocked", State.HELD: "send.held", State.SCHEDULED: "send.scheduled"}
    name = names.get(judged.state, "send.queued")
    data: dict[str, Any] = {"reason": record.decision["reason"]} if record.decision["reason"] else {}
    people = [d.contact for d in record.deliveries]
    if len(people) > 1:
        data["recipients"] = people
    return events.Event(record.tenant, name, record.id, people[0] if len(people) == 1 else "", record.actor, data)
