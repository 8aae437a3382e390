"""The one place where the neutral words of the cases become ours: settings, routes, fields, decisions, states.

A case names what it is about; rules that it does not name are off here, so that three mails in a row to one person are
no fault of their own.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from gateway.core.record import instant

Setup = Mapping[str, Any]

# --- settings ---------------------------------------------------------------------------------------------------------

QUIET_RULES = {"duplicate": {"mode": "off"}, "loop": {"mode": "off"}}
SETTINGS = {
    "cooldown_seconds": 0,
    "connect_timeout_seconds": 1,
    "command_timeout_seconds": 5,
    "reply_timeout_seconds": 1,
}
SPECIAL_USE = ("test", "local", "localhost")
ACTS = {"suppress", "suppressed", "leases", "domain_aliases"}
"""What a `setup` asks the driver to do, not the gateway to be."""
LEAST_BYTES = 1024
"""The least that the largest message may be set to; a case that wants less has its mails made longer by as much."""
NOTHING_TO_SET = {
    "upstream", "dns", "database", "processes", "seconds", "tz", "near_duplicate", "tool_timeout_s", "relay_delay_s"
}  # fmt: skip
"""Words of a `setup` that are so in every house (no look-up of names, a sink), or that an act reads."""


def settings_of(setup: Setup) -> dict[str, Any]:
    """Our settings for what a case sets up; raises ValueError for a word that is not known here."""
    made: dict[str, Any] = dict(SETTINGS)
    rules: dict[str, dict[str, Any]] = {name: dict(options) for name, options in QUIET_RULES.items()}
    for word, value in setup.items():
        match word:
            case "cooldown_seconds" | "max_lateness_seconds" | "unknown":
                made[word] = value
            case "profile":
                made["allow_special_use"] = SPECIAL_USE if value == "quickstart" else ()
            case "quota":
                rules["quota"] = _quota(value)
            case "quota_per_hour":  # 0 is no limit here: it is a unit that the driver uses up
                rules["quota"] = {"agent_hour": value} if value else {"tenant_hour": 1}
            case "max_size":
                made["max_message_bytes"] = max(value, LEAST_BYTES)
            case _ if word.startswith("allow"):  # a misspelt one too: the gateway itself has to refuse it
                rules["recipient"] = {ALLOW_LISTS.get(word, word): value}
            case _ if word not in ACTS | NOTHING_TO_SET:
                raise ValueError(f"setup {word!r} is not known to the driver")
    if setup.get("near_duplicate"):
        del rules["duplicate"]
    return made | {"policies": rules}


def _quota(by_agent: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Limits of an agent; the windows are ours (`tables.DIFFERS`)."""
    names = {"per_hour": "agent_hour", "per_day": "agent_day", "per_month": "agent_month"}
    limits = [{names[name]: value for name, value in said.items() if name in names} for said in by_agent.values()]
    if any(one != limits[0] for one in limits):
        raise ValueError("limits that differ by agent are not known to the driver")
    return limits[0]


ALLOW_LISTS = {"allow_domains": "allowed_recipients"}

# --- routes and fields ------------------------------------------------------------------------------------------------

ROUTES = {"/v1/leases": "/v1/agent/coordination/lease", "/v1/sends": "/v1/agent/requests"}
SUPPRESSION_REASONS = {"manual": "manual_dnc", "unsubscribe": "unsubscribe", "complaint": "complaint"}
SMTP = "SMTP"
"""Method and path of what was handed in over SMTP."""
HOLD, TOKEN, LATENESS = "holdSeconds", "leaseToken", "maxLatenessSeconds"


def path_of(path: str) -> str:
    """Our path for a neutral one."""
    for neutral, ours in ROUTES.items():
        if path == neutral or path.startswith((f"{neutral}?", f"{neutral}/")):
            return ours + path[len(neutral) :]
    return path


def suppression(email: str, reason: str = "manual") -> dict[str, Any]:
    """The body that suppresses a person."""
    return {"recipientEmail": email, "reasonCode": SUPPRESSION_REASONS.get(reason, reason)}


def lease(contact: str, seconds: float) -> dict[str, Any]:
    """The body that takes a contact."""
    return {"contactEmail": contact, "durationMinutes": seconds / 60}


def body_of(path: str, body: Mapping[str, Any], now: datetime, tokens: Mapping[str, int]) -> dict[str, Any]:
    """Our body for a neutral one; `tokens` are the saved fencing tokens by name."""
    if path == "/v1/suppressions":
        return suppression(body["email"], body.get("reason", "manual"))
    if path == "/v1/leases":
        return lease(body["contact"], body["seconds"])
    made = {name: value for name, value in body.items() if name not in (HOLD, TOKEN, LATENESS, "category")}
    if HOLD in body:
        made["scheduledAt"] = instant(now + timedelta(seconds=body[HOLD]))
    if TOKEN in body:
        made["fencingToken"] = tokens[str(body[TOKEN]).removesuffix(".token")]
    if "category" in body:
        made["kind"] = body["category"]
    return made


# --- decisions and states ---------------------------------------------------------------------------------------------

DECISIONS = {
    "suppressed": "suppressed",
    "cooldown": "cooldown",
    "lease_conflict": "lease_conflict",
    "lease_expired": "lease_expired",
    "stale_fencing_token": "stale_token",
    "idempotency_key_reused": "key_mismatch",
    "near_duplicate": "near_duplicate",
    "hourly_limit_exceeded": "quota",
    "daily_limit_exceeded": "quota",
    "monthly_limit_exceeded": "quota",
}
STATES = {
    "queued": "queued",
    "scheduled": "queued",
    "relaying": "queued",
    "deferred": "deferred",
    "relayed": "delivered_to_relay",
    "delivered": "delivered_to_relay",
    "bounced": "failed",
    "blocked": "blocked",
    "unknown": "unknown",
    "expired": "expired",
    "pending_approval": "held",
    "cancelled": "cancelled",
}


def decisions_of(status: int, body: Any) -> set[str]:  # noqa: ANN401  (JSON)
    """The neutral words that are true of an answer to a send."""
    if not isinstance(body, dict):
        return {"refused"}
    if status >= 400:
        return {"refused", DECISIONS.get(str(body.get("error")), str(body.get("error")))}
    if body.get("status") == "blocked":
        reason = str(body.get("reason"))
        return {"blocked", DECISIONS.get(reason, reason)}
    said = {"expired"} if body.get("status") == "expired" else set()
    if body.get("status") == "pending_approval":
        said |= {"held", DECISIONS.get(str(body.get("reason")), "held")}
    else:
        said.add("accepted")
    return said | {"replayed"} if body.get("replayed") else said


@dataclass(frozen=True, slots=True)
class Said:
    """One answer: the step it belongs to, who asked for what, and what came back."""

    step: int
    agent: str
    method: str
    path: str
    asked: dict[str, Any] | None
    status: int
    body: Any
    headers: Mapping[str, str]
    text: str
    seconds: float = 0.0

    @property
    def is_send(self) -> bool:
        """Whether a mail was asked for."""
        return self.path in {"/v1/agent/request-send", SMTP}

    @property
    def decisions(self) -> set[str]:
        """The neutral words for it."""
        return decisions_of(self.status, self.body)

    @property
    def accepted(self) -> bool:
        """Whether a mail was taken, or had been under this key."""
        return self.is_send and "accepted" in self.decisions and self.body.get("requestId") is not None

    @property
    def key(self) -> str:
        """The idempotency key that was asked with."""
        return str((self.asked or {}).get("idempotencyKey", ""))


def asked_of(step: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a step asks for as an object, where it is one."""
    if "json" in step:
        return dict(step["json"])
    try:
        read = json.loads(step["raw_body"])
    except (KeyError, ValueError):
        return None
    return read if isinstance(read, dict) else None
