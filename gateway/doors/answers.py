"""What a caller is told of a send, of its dry run (SEMANTICS 4) and of a key, in no protocol's terms."""

from gateway.core.delivery import State
from gateway.core.record import Document, Receipt, Record, instant
from gateway.core.status import answer, delivery_status, status, strictest
from gateway.store.keys import SCOPES, Key

LATE = {"suppressed": 403, "no_consent": 403, "stale_fencing_token": 409}
"""HTTP status of a strict refusal for what blocked a mail after it had been accepted."""
CONFLICT = 409
HELD = 202
OK = 200


def under_way(record: Record) -> bool:
    """Whether a first attempt is still to come, or one is being made."""
    return any(
        d.state in (State.CLAIMED, State.PERMITTED) or (d.state is State.QUEUED and not d.tried)
        for d in record.deliveries
    )


def strict_status(record: Record) -> int:
    """The HTTP status that the table of SEMANTICS 4 gives to a record as it stands: 200, 202 for held, 4xx or 5xx."""
    name, _ = status(record.deliveries)
    if name == "pending_approval":
        return HELD
    if name != "blocked":
        return OK
    finding = strictest(record)
    if finding is not None and finding["verdict"] != "pass":
        return int(finding["strict"])
    return next((LATE[d.reason] for d in record.deliveries if d.reason in LATE), CONFLICT)


def stored(record: Record) -> Document:
    """A record as it is told when somebody asks for it."""
    name, _ = status(record.deliveries)
    template, _, version = (record.template or "").partition(":")
    return answer(Receipt(record)) | {
        "deliveryStatus": delivery_status(name),
        "kind": record.kind,
        "mailboxId": record.mailbox,
        "agentId": record.agent,
        "threadId": record.thread,
        "campaignAction": record.campaign,
        "templateId": template or None,
        "templateVersion": int(version) if version else None,
        "subject": record.subject,
        "createdAt": instant(record.created_at),
        "decidedAt": instant(record.decided_at),
        "repeats": record.repeats,
    }


def simulated(receipt: Receipt, sender: str) -> Document:
    """A dry run's answer: that of a send without ids, and the members of Molted's simulation.

    `sender` is the address in From.
    """
    record = receipt.record
    body = answer(receipt)
    findings = [f for f in record.decision["findings"] if not f["observed"] and not f["approved"]]
    reasons = {f["reason"] for f in findings}
    later = body["status"] == "scheduled"
    suppression = next((f["extra"] for f in findings if f["reason"] == "suppressed"), None)
    body |= {
        "requestId": None,
        "messageId": None,
        "wouldAllow": body["status"] != "blocked",
        "simulation": True,
        "resolvedFromAddress": sender,
        "rateLimited": any(str(reason).endswith("_limit_exceeded") for reason in reasons),
        "wouldDefer": later,
        "policyContext": {
            "hasDuplicate": receipt.replayed,
            "isCooldownHit": "cooldown" in reasons,
            "isSuppressed": suppression is not None,
            "isDisengaged": False,
            "hasActiveOpportunity": False,
            "isTenantPaused": False,
            "templateApproved": True,
            "templateLintPassed": True,
            "isBillingBlocked": False,
            "billingPlan": "self_hosted",
        },
    }
    if suppression is not None:
        body["suppressionInfo"] = {name: suppression[name] for name in ("scope", "reasonCode")}
    if later and record.not_before is not None:
        body["scheduledFor"] = record.not_before.date().isoformat()
    return body


def of_key(key: Key) -> Document:
    """A key without its secret."""
    scopes = sorted(key.scopes, key=SCOPES.index)
    permissions = [scope for scope in scopes if scope != "operator"]
    return {
        "id": key.id,
        "tenantId": key.tenant,
        "keyPrefix": key.prefix,
        "label": key.label,
        "status": key.status,
        "scopes": scopes,
        "agentId": key.agent,
        "scopeAllMailboxes": key.mailboxes is None,
        "mailboxes": list(key.mailboxes or ()),
        "mailboxScopes": [{"mailboxId": box, "permissions": permissions} for box in key.mailboxes or ()],
        "transactional": key.transactional,
        "requestsPerMinute": key.per_minute,
        "createdByKeyId": key.created_by,
        "createdAt": instant(key.created_at),
        "lastUsedAt": instant(key.used_at),
    }
