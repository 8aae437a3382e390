"""Records of sends with good defaults, made from the decision and the states that a test names; and what is told of them."""

from collections.abc import Iterable
from typing import Any

from gateway.core.delivery import State
from gateway.core.record import DeliveryRecord, Document, Receipt, Record, document
from gateway.core.status import answer
from gateway.core.verdict import Decision, Finding
from policies import reasons
from tests.builders import NOW, PAT

RULES = ("recipient", "lease", "suppression", "cooldown", "quota")
REASON = {reason.slug: reason for reason in reasons()}
POLICY = {
    "recipient_not_allowed": "recipient",
    "lease_conflict": "lease",
    "suppressed": "suppression",
    "cooldown": "cooldown",
    "hourly_limit_exceeded": "quota",
    "daily_limit_exceeded": "quota",
    "message_too_large": "quota",
    "unknown_outstanding": "lease",
}


def a_decision(*findings: Finding, approved: Iterable[str] = ()) -> Decision:
    """A decision of five rules about one mail; without a finding it lets the mail pass."""
    return Decision(findings, RULES, NOW, frozenset(approved))


def a_delivery(state: State = State.QUEUED, reason: str = "", **changes: Any) -> DeliveryRecord:
    """The delivery to pat@example.com, not tried yet."""
    usual: dict[str, Any] = {"id": "r-1.1", "contact": PAT, "address": PAT, "role": "to"}
    return DeliveryRecord(**{**usual, "state": state, "reason": reason, **changes})


def a_record(*deliveries: DeliveryRecord, decision: Decision | None = None, **changes: Any) -> Record:
    """Request r-1, with one queued delivery where none is given, let pass where no decision is given."""
    usual: dict[str, Any] = {
        "id": "r-1",
        "tenant": "tenant-1",
        "mailbox": "mailbox-1",
        "agent": "agent-a",
        "key_id": "key-1",
        "actor": "agent-a",
        "idempotency_key": "once-1",
        "fingerprint": "fingerprint-1",
        "kind": "outreach",
        "subject": "hello",
        "message_id": "m-1@example.com",
        "header_from": "agent@example.com",
        "reverse_path": "agent@example.com",
        "size": 2000,
        "door": "http",
        "created_at": NOW,
        "decided_at": NOW,
        "decision_no": 1,
        "decision": document(decision or a_decision()),
        "deliveries": deliveries or (a_delivery(),),
    }
    return Record(**{**usual, **changes})


def decided(state: State, *findings: Finding, approved: Iterable[str] = (), **changes: Any) -> Record:
    """A send to one person in the state in which a decision with these findings has just left it."""
    decision = a_decision(*findings, approved=approved)
    reason = decision.reason.slug if decision.reason else ""
    return a_record(a_delivery(state, reason), decision=decision, **changes)


def finding(slug: str, recipient: str | None = PAT, *, observed: bool = False, **about: Any) -> Finding:
    """A finding with one of the table's reasons, signed by its policy."""
    return REASON[slug].about(recipient, **about).by(POLICY[slug], observed=observed)


def told(record: Record, **receipt: Any) -> Document:
    """The answer about a record."""
    return answer(Receipt(record, **receipt))
