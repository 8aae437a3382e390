"""What the outside is told of a record: status words, counts, findings, next action (SEMANTICS 3 and 4)."""

from collections.abc import Iterable
from typing import Any

from gateway.core.delivery import State
from gateway.core.record import DeliveryRecord, Document, Receipt, Record, instant

ORDER = ("pending_approval", "scheduled", "queued", "relaying", "deferred", "unknown")
"""A send's status is the first of these that any recipient is in."""
WORST = ("bounced", "expired", "cancelled", "relayed", "delivered")
"""Else, unless all are blocked, the worst of these."""

WAIT = "nothing; it is tried again by itself"
FIXED_NEXT = {
    "unknown": "do not resend; ask or resolve",
    "pending_approval": "a person decides; do not resend",
    "deferred": WAIT,
}
STOPPED = ("blocked", "pending_approval")
LATER = {
    "suppressed": ("the recipient is suppressed", "stop; it binds every agent"),
    "stale_fencing_token": ("another agent has this contact", "discard the draft; never resend with the old token"),
    "mailbox_paused": ("the mailbox is paused", FIXED_NEXT["pending_approval"]),
}
"""Words and next action by what can stop a mail after it was accepted."""
DELIVERY_STATUS = {
    "queued": "queued",
    "relaying": "accepted",
    "deferred": "deferred",
    "relayed": "sent",
    "delivered": "delivered",
    "bounced": "bounced",
    "unknown": "accepted",
    "cancelled": "failed",
    "expired": "failed",
}


def word(delivery: DeliveryRecord) -> str:
    """The public word for a delivery's state."""
    match delivery.state:
        case State.QUEUED:
            return "deferred" if delivery.tried else "queued"
        case State.CLAIMED | State.PERMITTED:
            return "relaying"
        case State.HELD:
            return "pending_approval"
        case other:
            return other.value


def status(deliveries: Iterable[DeliveryRecord]) -> tuple[str, dict[str, int]]:
    """The send's status, and how many recipients are in which state."""
    counts: dict[str, int] = {}
    for delivery in deliveries:
        name = word(delivery)
        counts[name] = counts.get(name, 0) + 1
    return next((name for name in (*ORDER, *WORST) if name in counts), "blocked"), counts


def strictest(record: Record) -> Document | None:
    """The finding that gave the last decision its reason, as long as the send is where that decision has left it.

    A suppression, a take-over or a pause that came later has its own reason in the deliveries.
    """
    index = record.decision["strictest"]
    if index is None:
        return None
    finding: Document = record.decision["findings"][index]
    name, _ = status(record.deliveries)
    return finding if any(d.reason == finding["reason"] and word(d) == name for d in record.deliveries) else None


def answer(receipt: Receipt) -> Document:
    """The body of a send's answer (SEMANTICS 4), with those members of Molted's public API that say the same."""
    record = receipt.record
    name, counts = status(record.deliveries)
    finding = strictest(record)
    body: Document = {
        "requestId": record.id,
        "status": name,
        **(_since(record, name) if finding is None else _decided(record, name, finding)),
        "messageId": record.message_id,
        "idempotencyKey": record.idempotency_key,
        "replayed": receipt.replayed,
        "policyTrace": trace(record),
        "findings": [public_finding(f) for f in record.decision["findings"]],
        "recipients": [recipient(d) for d in record.deliveries],
        "counts": counts,
        "warnings": list(receipt.warnings),
    }
    if record.not_before:
        body["scheduledAt"] = instant(record.not_before)
    waiting = [d.due_at for d in record.deliveries if word(d) == "deferred" and d.due_at]
    if waiting:
        body["nextAttemptAt"] = instant(min(waiting))
    if finding is not None:  # leaseHolder, cooldownExpiresAt, used, limit, ...: the strictest's go before the others'
        for one in (finding, *_binding(record)):
            _add(body, one["extra"])
    return body


def _binding(record: Record) -> list[Document]:
    """The findings that stand in the way: neither observed only nor approved by a person."""
    return [f for f in record.decision["findings"] if not f["observed"] and not f["approved"]]


def _add(body: Document, extra: Document) -> None:
    """Add a finding's own members; none takes the place of one that is there."""
    for name, value in extra.items():
        body.setdefault(name, value)


def _decided(record: Record, name: str, finding: Document) -> Document:
    """Reason, words, next action and retry time of the last decision; mail that waits is not the author's to retry."""
    following = finding["next"] if name in STOPPED else WAIT
    if name == "pending_approval" and finding["verdict"] != "hold":  # held for a pause: it is not the author's to mend
        following = FIXED_NEXT[name]
    body: Document = {"reason": finding["reason"], "detail": finding["detail"], "nextAction": following}
    at = record.decision["retry_at"]
    if at:
        body["retryAt"] = at
        if any(f["estimate"] and f["until"] == at for f in _binding(record)):
            body["estimate"] = True
    return body


def _since(record: Record, name: str) -> Document:
    """Next action, and what has stopped the mail since it was decided, `suppressed` before any other reason."""
    reasons = [d.reason for d in record.deliveries if word(d) == name and d.reason] if name in STOPPED else []
    if reasons:
        reason = max(reasons, key=lambda one: one == "suppressed")
        detail, following = LATER.get(reason, ("it was stopped", "stop"))
        return {"reason": reason, "detail": detail, "nextAction": following}
    return {"nextAction": FIXED_NEXT[name]} if name in FIXED_NEXT else {}


def trace(record: Record) -> Document:
    """The policy trace on the wire of Molted's public API: the decision, and one line per rule or finding, in table order."""
    found = record.decision["findings"]
    lines: list[Document] = []
    for rule in record.decision["rules"]:
        said = [f for f in found if f["policy"] == rule]
        lines += [_audit(f) for f in said] or [{"rule": rule, "passed": True}]
    decision: Document = {"allow": record.decision["verdict"] in ("pass", "hold")}
    if record.decision["reason"]:
        decision["reason"] = record.decision["reason"]
    return {"decision": decision, "auditEvents": lines}


def _audit(finding: Document) -> Document:
    line = {"rule": finding["policy"], "passed": finding["observed"] or finding["approved"]}
    line |= {"reason": finding["reason"], "detail": finding["detail"]}
    if finding["observed"]:
        line["observed"] = True
    return line


def public_finding(finding: Document) -> Document:
    """One finding for the outside: rule, verdict, reason, whom it concerns, until when, what to do."""
    body: Document = {
        "rule": finding["policy"],
        "verdict": finding["verdict"],
        "reason": finding["reason"],
        "detail": finding["detail"],
        "nextAction": finding["next"],
    }
    if finding["recipient"]:
        body["recipient"] = finding["recipient"]
    if finding["until"]:
        body["retryAt"] = finding["until"]
    for flag in ("estimate", "observed", "approved"):
        if finding[flag]:
            body[flag] = True
    _add(body, finding["extra"])
    return body


def recipient(delivery: DeliveryRecord) -> Document:
    """One recipient's state, with the smarthost's words where there are some."""
    body: dict[str, Any] = {
        "email": delivery.address,
        "role": delivery.role,
        "status": word(delivery),
        "attempts": delivery.attempts,
    }
    if delivery.reason:
        body["reason"] = delivery.reason
    if delivery.code:
        body["reply"] = {"code": delivery.code, "enhanced": delivery.enhanced, "text": delivery.text}
    elif delivery.text:
        body["detail"] = delivery.text
    if delivery.state is State.QUEUED and delivery.tried and delivery.due_at:
        body["nextAttemptAt"] = instant(delivery.due_at)
    if delivery.assumed:
        body["assumed"] = True
    if delivery.changed_at:
        body["changedAt"] = instant(delivery.changed_at)
    return body


def delivery_status(name: str) -> str:
    """Molted's word for a send's status (SEMANTICS 3); scheduled, held and blocked keep theirs."""
    return DELIVERY_STATUS.get(name, name)
