"""Answers of the HTTP door made small: what a model acts on, and nothing that nobody acts on."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from gateway.doors.mcp.tool import Answer, Told, snake

HOLDS = ("unknown", "pending_approval")
FAILED = ("blocked", "bounced", "cancelled", "expired")
FIRST = {"lease_required": "acquire_first", "lease_expired": "acquire_first"}
MEND = (
    "recipient_not_allowed",
    "invalid_message",
    "message_too_large",
    "sender_not_allowed",
    "mailbox_not_active",
    "mailbox_paused",
    "consensus_required",
)
NEXT = {
    "invalid_request": "mend the arguments that errors names, then call again",
    "agent_mismatch": "leave agent_name and agent_id out: your key acts as one agent alone",
    "agent_bound_to_key": "act as an agent of your own: register_agent with a new name",
    "agent_not_found": "register_agent first, or mend the name",
    "human_decision_required": "share decision_url with a person; do not call again",
    "insufficient_scope": "ask a person for a key with that scope",
    "unauthorized": "ask a person for a key that is good",
    "rate_limited": "call again after retry_after seconds",
    "overloaded": "call again after a second",
    "store_unavailable": "call again in a few seconds, with the same idempotency_key",
    "consensus_closed": "read get_consensus: it has been decided",
    "idempotency_key_reused": "read get_request with request_id first; use a new key only for a new message",
}
"""What to do about errors of the wire, where the answer does not say so itself."""
OURS = ("agent_mismatch", "agent_bound_to_key")
"""Errors whose own next action names members of a request."""
LATER = frozenset({429, 503})
ERROR_MEMBERS = ("requestId", "agentId", "keyAgentId", "scope", "status", "kind", "loosens", "limit")


def plain(body: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Some members of an answer, those that say something, by the names that a model knows."""
    return {snake(name): body[name] for name in names if body.get(name) not in (None, [], {}, "")}


def holder(body: Mapping[str, Any]) -> dict[str, Any]:
    """Who has the contact."""
    one = body.get("leaseHolder")
    if not one:
        return {}
    said = {"agent": one.get("agentName") or one.get("agentId"), "until": one.get("expiresAt"), "kind": one.get("kind")}
    return {"holder": said | ({"request_id": one["requestId"]} if one.get("requestId") else {})}


def refused(answer: Answer, names: Mapping[str, str] = MappingProxyType({})) -> Told:
    """An error of the wire: the call was wrong, is not allowed, or cannot be served now.

    `names` are the arguments whose members are called otherwise than they are.
    """
    body: Mapping[str, Any] = answer.body if isinstance(answer.body, dict) else {}
    slug = str(body.get("error", "failed"))
    later = answer.status in LATER
    said: dict[str, Any] = {"ok": False, "reason": slug, "detail": body.get("message", "it failed")}
    said |= plain(body, *ERROR_MEMBERS, "decisionUrl", "retryAfter")
    theirs = "" if slug in OURS else following(str(body.get("nextAction") or ""))
    said["next_action"] = theirs or NEXT.get(slug, "read detail; do not call again unchanged")
    said["repeat"] = "after_until" if later else "never" if slug == "human_decision_required" else "fix_first"
    if body.get("errors"):
        words = (("use fencingTokens", "send one mail to each"),)
        said["errors"] = [
            {"field": names.get(one["field"], snake(one["field"])), "message": _known(one["message"], words)}
            for one in body["errors"]
        ]
    return Told(said, error=True)


def _known(message: str, words: Iterable[tuple[str, str]]) -> str:
    """A sentence without names that no tool has."""
    for name, instead in words:
        message = message.replace(name, instead)
    return message


def faulty(faults: Iterable[tuple[str, str]]) -> Told:
    """Arguments that are wrong, before anybody was asked."""
    said = {"ok": False, "reason": "invalid_request", "detail": "some arguments are not valid"}
    said |= {"next_action": NEXT["invalid_request"], "repeat": "fix_first"}
    return Told(said | {"errors": [{"field": field, "message": why} for field, why in faults]}, error=True)


def of_send(answer: Answer) -> Told:
    """A send, or its dry run."""
    if not answer.good:
        return refused(answer)
    body: Mapping[str, Any] = answer.body
    said = {"ok": body["status"] not in FAILED} | plain(body, "status", "requestId", "idempotencyKey")
    if body.get("replayed"):
        said["replayed"] = True
    said |= plain(body, "reason", "detail") | holder(body)
    if body.get("retryAt"):
        said["until"] = body["retryAt"]
    said |= plain(body, "used", "limit", "scheduledAt", "unknownRequestId", "firstRequestId")
    said |= plain({"warnings": [one for one in body.get("warnings") or () if one != BETWEEN_US]}, "warnings")
    said["next_action"] = following(body.get("nextAction") or STANDS.get(body["status"], GOES))
    said["repeat"] = _repeat(body)
    if said["repeat"] == "fix_first":
        said["errors"] = [_wrong(one) for one in body["findings"] if one["verdict"] == "refuse"]
    people = [
        {"email": one["email"], "status": one["status"]} | plain(one, "reason", "detail") for one in body["recipients"]
    ]
    if len(people) > 1 and (len({one["status"] for one in people}) > 1 or any("reason" in one for one in people)):
        said["recipients"] = people
    return Told(said)


FIELDS = {"identity": "from", "consensus": "require_consensus_id", "content": "text"}
"""The arguments that policies are about, where a finding names none."""
WORDS = {
    "fix": "mend what errors names, then call again with the same idempotency_key",
    "ask for that request first; use a new key only for a new message": NEXT["idempotency_key_reused"],
    "use your own mailbox": "use your own mailbox (who_am_i lists them) as from, and leave kind out if errors speaks of it",
    "schedule after retryAt or drop": "send it again with scheduled_at after `until`, or drop it",
    "wait until retryAt": "call again after `until`",
    "retryAt": "`until`",
    "requireConsensusId": "require_consensus_id",
}
"""Next actions, or parts of them, that a model knows by other names; the longest first."""
_PARTS = re.compile("|".join(map(re.escape, list(WORDS)[3:])))
GOES = "nothing; it is on its way"
STANDS = {
    "scheduled": "nothing; it goes at scheduled_at",
    "deferred": "nothing; it is tried again by itself",
    "relayed": "nothing; it has left",
    "delivered": "nothing; it has arrived",
    "cancelled": "nothing; it does not go any more",
    "bounced": "it did not arrive; do not send it again, look at recipients and tell a person",
    "expired": "it was too late to be useful and does not go; write anew, with a new key, if it still matters",
}
"""What there is to do about a mail that stands so."""
BETWEEN_US = "derived_key"
"""A warning that says what the tool's description has said."""


def following(text: str) -> str:
    """A next action in the words of the tools."""
    return WORDS.get(text) or _PARTS.sub(lambda found: WORDS[found[0]], text)


def _wrong(finding: Mapping[str, Any]) -> dict[str, Any]:
    """What is to be mended."""
    field = finding.get("field") or FIELDS.get(finding["rule"], finding["rule"])
    said = {"field": field, "message": finding.get("why") or finding["detail"]}
    return said | plain(finding, "recipient", "limit")


def _repeat(body: Mapping[str, Any]) -> str:
    """What sending it again would do."""
    if body["status"] != "blocked":
        return "never" if body["status"] in HOLDS else "harmless"
    reason = str(body.get("reason"))
    if reason in FIRST:
        return FIRST[reason]
    if any(one["reason"] == reason and one["verdict"] == "defer" for one in body["findings"]):
        return "after_until"
    return "fix_first" if reason in MEND else "never"


def of_lease(answer: Answer) -> Told:
    """An acquisition."""
    if not answer.good:
        return refused(answer)
    body: Mapping[str, Any] = answer.body
    if body.get("conflict"):
        said = {"ok": False, "reason": body["reason"], **holder(body), "until": body["retryAt"]}
        return Told(said | {"next_action": following(body["nextAction"]), "repeat": "after_until"})
    said = {"ok": True, "lease_id": body["id"], "until": body["expiresAt"]}
    said |= plain(body, "fencingToken", "contactEmail", "agentName", "intent", "withdrew")
    said["next_action"] = "send with fencing_token; renew_lease before `until` while you work; release_lease when done"
    return Told(said)


def small(body: Mapping[str, Any]) -> dict[str, Any]:
    """A send's answer among others."""
    return of_send(Answer(200, body)).body


def lease(body: Mapping[str, Any]) -> dict[str, Any]:
    """A lease that somebody has."""
    said = plain(body, "contactEmail", "fencingToken", "intent")
    return {
        "lease_id": body["id"],
        "agent": body.get("agentName") or body["agentId"],
        "until": body["expiresAt"],
        **said,
    }


def segment(value: object) -> str:
    """An argument as one part of a path; "." and ".." are ids like others and no steps of it (RFC 3986, section 5.2.4)."""
    text = quote(str(value), safe="")
    return text if text.strip(".") else text.replace(".", "%2E")
