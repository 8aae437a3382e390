"""A send as it is kept: the record that receipts, look-ups and traces are made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

from gateway.core.delivery import State
from gateway.core.verdict import HOLD, Decision, Finding

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """One recipient's delivery; times UTC, `code` 0 where no reply has come, `due_at` the next attempt or release."""

    id: str
    contact: str
    address: str
    role: str
    state: State
    attempts: int = 0
    due_at: datetime | None = None
    reason: str = ""
    detail: str = ""
    code: int = 0
    enhanced: str = ""
    text: str = ""
    permitted_at: datetime | None = None
    changed_at: datetime | None = None
    assumed: bool = False
    forbidden: str = ""

    @property
    def tried(self) -> bool:
        """Whether an attempt has come to its end: one that a 421 at connect ended does not count, but has been."""
        return self.attempts > 0 or self.code > 0


@dataclass(frozen=True, slots=True)
class Record:
    """One logical send: who, as whom, under which key, what was decided last, and its deliveries."""

    id: str
    tenant: str
    mailbox: str
    agent: str | None
    key_id: str | None
    actor: str
    idempotency_key: str
    fingerprint: str
    kind: str
    subject: str
    message_id: str
    header_from: str
    reverse_path: str | None
    size: int
    door: str
    created_at: datetime
    decided_at: datetime
    decision_no: int
    decision: Document
    deliveries: tuple[DeliveryRecord, ...]
    campaign: str | None = None
    thread: str | None = None
    in_reply_to: str | None = None
    not_before: datetime | None = None
    send_reason: str | None = None
    tokens: dict[str, int] = field(default_factory=dict)
    approved: frozenset[str] = frozenset()
    repeats: int = 0
    digest: str = ""
    derived_key: bool = False
    template: str | None = None

    @property
    def refused(self) -> bool:
        """Whether every recipient is blocked and none was ever permitted: such a record does not use up its key."""
        return all(d.state is State.BLOCKED and d.permitted_at is None for d in self.deliveries)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the author of a send gets back: the record, whether it is an earlier one's, and warnings (slugs)."""

    record: Record
    replayed: bool = False
    warnings: tuple[str, ...] = ()


def document(decision: Decision, **about: object) -> Document:
    """A decision as JSON-ready text: verdict, reason, the rules asked, all findings; `about` adds who and which token."""
    strictest = decision.strictest
    return {
        "verdict": decision.verdict.name.lower(),
        "reason": strictest.reason.slug if strictest else None,
        "rules": list(decision.rules),
        "findings": [finding_document(f, decision) for f in decision.findings],
        "strictest": decision.findings.index(strictest) if strictest else None,
        "retry_at": instant(decision.retry_at),
        "at": instant(decision.at),
        **about,
    }


def finding_document(finding: Finding, decision: Decision) -> Document:
    """One finding as JSON-ready text."""
    reason = finding.reason
    return {
        "policy": finding.policy,
        "reason": reason.slug,
        "verdict": reason.verdict.name.lower(),
        "recipient": finding.recipient,
        "until": instant(finding.until),
        "estimate": finding.estimate,
        "observed": finding.observed,
        "approved": decision.weight(finding) != finding.verdict,
        "mark": finding.mark if reason.verdict is HOLD else None,
        "detail": finding.text,
        "next": reason.next,
        "code": reason.code,
        "enhanced": reason.enhanced,
        "strict": reason.strict,
        "extra": plain(finding.extra),
    }


def instant(moment: datetime | None) -> str | None:
    """ISO 8601 in UTC with Z (SEMANTICS 7); fractions only where there are some."""
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def plain(value: object) -> Any:  # noqa: ANN401  (JSON)
    """A nested document as JSON can hold it; times are replaced by text, and so is all that JSON does not know."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in cast("Sequence[object]", value)]
    return str(value)  # what a policy says of its finding must not break the writing of everybody's decisions
