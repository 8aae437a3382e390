"""Decisions as SMTP replies: code and enhanced code by the reason, then a slug, machine parts, and what to do (SEMANTICS 4).

`450 4.7.1 lease_conflict; holder=agent_...; until=2026-03-01T12:30:00Z; wait for release or hand off`. Several findings are
several lines, the strictest first.
"""

from collections.abc import Mapping
from urllib.parse import quote

from gateway.core.errors import ConflictError
from gateway.core.record import Document, Receipt, document
from gateway.core.status import status, strictest
from gateway.core.verdict import KEY_REUSED, Decision
from gateway.doors.refusal import Faults, Refusal

SAFE = "/:@+,.-_*!~ ()"
VALUE_MAX = 200
LINES_MAX = 20
"""Lines of one reply; further findings are in the record."""
HEAVY = ("defer", "refuse")
TOLD = frozenset({"leaseHolder", "cooldownExpiresAt"})
"""Members of a finding that are said by other parts of its line."""


def accepted(receipt: Receipt) -> list[str]:
    """The reply to a mail that was judged."""
    record = receipt.record
    name, _ = status(record.deliveries)
    if receipt.replayed:
        more = "; do not resend; ask or resolve" if name == "unknown" else ""
        return [f"250 2.0.0 already accepted as {record.id}; status={name}{more}"]
    if name == "blocked":
        return refused(record.decision, f"request={record.id}")
    warned = "".join(f"; warning={one}" for one in receipt.warnings)
    if name == "pending_approval":
        found = strictest(record)
        why = f"; {found['reason']}; {found['next']}" if found else ""
        return [f"250 2.0.0 held as {record.id}{why}{warned}"]
    if name == "scheduled":
        at = record.not_before.isoformat().replace("+00:00", "Z") if record.not_before else ""
        return [f"250 2.0.0 scheduled as {record.id}; at={at}{warned}"]
    return [f"250 2.0.0 accepted as {record.id}{warned}"]


def would(receipt: Receipt) -> list[str]:
    """The reply to a dry run: the refusal, or what would be."""
    name, _ = status(receipt.record.deliveries)
    if receipt.replayed:
        return [f"250 2.0.0 would_send; already accepted as {receipt.record.id}; status={name}"]
    if name == "blocked":
        return refused(receipt.record.decision)
    found = strictest(receipt.record)
    if name == "pending_approval" and found:
        return [f"250 2.0.0 would_hold; {found['reason']}; {found['next']}"]
    return ["250 2.0.0 would_send"]


def decided(decision: Decision) -> list[str]:
    """The reply to a recipient that was looked at; empty where nothing stands in the way."""
    return [] if decision.allow else refused(document(decision))


def refused(decision: Document, more: str = "") -> list[str]:
    """The reply of a decision that says no; `more` ends its first line."""
    findings = [f for f in decision["findings"] if f["verdict"] in HEAVY and not f["observed"] and not f["approved"]]
    index = decision["strictest"]
    if index is None:
        return ["451 4.3.0 policy_error; try again later"]
    first = decision["findings"][index]
    lines = [_line(first["code"], first, more)]
    lines += [_line(first["code"], one, "") for one in findings if one is not first]
    return lines[:LINES_MAX]


def _line(code: int, finding: Document, more: str) -> str:
    """One finding under the reply's code; the class of its enhanced code is that of the reply (RFC 2034 4)."""
    enhanced = f"{code // 100}{finding['enhanced'][1:]}"
    parts = [finding["reason"], *_parts(finding)]
    if not finding["extra"] and not finding["until"]:
        parts.append(finding["detail"])
    parts += [more] if more else []
    return f"{code} {enhanced} {'; '.join([*parts, finding['next']])}"


def _parts(finding: Document) -> list[str]:
    """Machine parts: whom it concerns, who holds the contact, until when, and the finding's own members."""
    parts: dict[str, object] = {}
    if finding["recipient"]:
        parts["recipient"] = finding["recipient"]
    holder = finding["extra"].get("leaseHolder")
    if isinstance(holder, Mapping):
        parts["holder"] = holder.get("agentId")
        parts["kind"] = holder.get("kind")
        parts["holder_request"] = holder.get("requestId")  # `request` alone is the refused mail's own
    if finding["until"]:
        parts["until"] = finding["until"]
    if finding["estimate"]:
        parts["estimate"] = "true"
    parts |= {name: value for name, value in finding["extra"].items() if name not in TOLD}
    return [f"{name}={plain(value)}" for name, value in parts.items() if isinstance(value, str | int | float)]


def plain(value: object) -> str:
    """A value as it may stand in a machine part: ASCII, no semicolon, no equals sign, not too long."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return quote(text[:VALUE_MAX], safe=SAFE)


def reused(error: ConflictError) -> list[str]:
    """The reply to a key that belongs to another message, and to whatever else is in the way of it."""
    if error.slug != KEY_REUSED.slug:
        return [f"554 5.5.4 {error.slug}; {error}"]
    about = f"; request={plain(error.extra['requestId'])}" if "requestId" in error.extra else ""
    return [f"{KEY_REUSED.code} {KEY_REUSED.enhanced} {KEY_REUSED.slug}{about}; {KEY_REUSED.next}"]


def not_taken(refusal: Refusal) -> list[str]:
    """The reply to what a door refuses before anything is judged."""
    if isinstance(refusal, Faults):
        return [f"554 5.6.0 invalid_message; field={plain(field)}; {why}" for field, why in refusal.faults[:LINES_MAX]]
    return [f"550 5.7.1 {refusal.slug}; {refusal.message}"]
