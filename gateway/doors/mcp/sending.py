"""The tools for sending: send, try, send many, look, take back; and what to know before."""

from collections import Counter
from typing import Any

from gateway.doors.mcp import told
from gateway.doors.mcp.tool import Answer, Arguments, Ask, Told, members

SEND = "/v1/agent/request-send"
LISTED = ("requestId", "status", "reason", "subject", "createdAt")
HEADER_AGENT = "X-Agent-Id"
UNREADABLE = 422
PAGE = 10
REFUSED_SHOWN = 10
IDS_SHOWN = 20
"""Up to so many mails a batch's ids are told: of more nobody reads them, and list_requests has them."""
TIMELINE = 10


def _people(value: Any) -> Any:  # noqa: ANN401  (a model's argument)
    return [value] if isinstance(value, str) else value


def _mail(given: Arguments, without: tuple[str, ...] = ("agent_name",)) -> dict[str, Any]:
    """The members of a send; as whom it is sent stands in a header, for all mails of a batch."""
    body = members(given, without=without)
    for name in ("to", "cc", "bcc", "replyTo"):
        if name in body:
            body[name] = _people(body[name])
    files = body.get("attachments")
    if isinstance(files, list):
        body["attachments"] = [members(one) if isinstance(one, dict) else one for one in files]
    return body


def _as(given: Arguments) -> dict[str, str] | None:
    """The header that says as whom; `None` where no header can hold the name: then nothing may be sent as somebody else."""
    name = given.get("agent_name")
    if name is None:
        return {}
    good = isinstance(name, str) and name.isascii() and name.isprintable() and name.strip()
    return {HEADER_AGENT: name} if good else None


NOBODY = (("agent_name", "must be a name or id in ASCII; use the agent's id"),)


async def send_email(given: Arguments, ask: Ask) -> Told:
    """Send one mail."""
    if (who := _as(given)) is None:
        return told.faulty(NOBODY)
    return told.of_send(await ask("POST", SEND, body=_mail(given), headers=who))


async def dry_run(given: Arguments, ask: Ask) -> Told:
    """Try one mail."""
    if (who := _as(given)) is None:
        return told.faulty(NOBODY)
    found = told.of_send(await ask("POST", SEND, body=_mail(given) | {"dryRun": True}, headers=who))
    if found.body["ok"]:
        found.body["next_action"] = f"nothing was sent; send_email would be {found.body['status']}"
    return found


async def batch_send(given: Arguments, ask: Ask) -> Told:
    """Send many."""
    if (who := _as(given)) is None:
        return told.faulty(NOBODY)
    sends = given["sends"]
    items = [_mail(one, ()) if isinstance(one, dict) else one for one in sends] if isinstance(sends, list) else sends
    answer = await ask("POST", "/v1/agent/batch/request-send", body={"sends": items}, headers=who)
    if not answer.good:
        return told.refused(answer)
    results = [{"number": number, **_item(one)} for number, one in enumerate(answer.body["results"])]
    return Told(_of_many(results))


def _item(one: dict[str, Any]) -> dict[str, Any]:
    """What is said of one mail of a batch."""
    if one["status"] == "error":
        return {"status": "error"} | told.refused(Answer(UNREADABLE, one)).body
    return told.small(one)


def _of_many(results: list[dict[str, Any]]) -> dict[str, Any]:
    """What is said of a batch: what was refused, one by one where they are few."""
    refused = [one for one in results if not one["ok"]]
    body: dict[str, Any] = {"ok": not refused, "count": len(results), "refused": refused[:REFUSED_SHOWN]}
    if len(refused) > REFUSED_SHOWN:
        body["refused_by_reason"] = dict(Counter(one["reason"] for one in refused))
    if len(results) <= IDS_SHOWN:
        body["request_ids"] = [one.get("request_id") for one in results]
    body["next_action"] = (
        "read each refused one's next_action; the others are on their way"
        if refused
        else "nothing; all are on their way"
    )
    return body | {"repeat": "harmless"}


async def get_request(given: Arguments, ask: Ask) -> Told:
    """Where one mail stands."""
    if given.get("request_id") is not None:
        answer = await ask("GET", f"/v1/agent/requests/{told.segment(given['request_id'])}")
    elif given.get("idempotency_key") is not None:
        answer = await ask("GET", "/v1/agent/requests", query={"idempotencyKey": str(given["idempotency_key"])})
    else:
        return told.faulty([("request_id", "is required, or idempotency_key")])
    found = told.of_send(answer)
    if answer.good:
        about = told.plain(answer.body, "subject", "agentId", "messageId", "deliveryStatus", "counts")
        found.body.update({"ok": True, "to": _whom(answer.body)}, **about)
    return found


async def list_requests(given: Arguments, ask: Ask) -> Told:
    """Mails, newest first."""
    query = {name: str(value) for name, value in members(given).items()} | {"limit": str(given.get("limit") or PAGE)}
    answer = await ask("GET", "/v1/agent/requests", query=query)
    if not answer.good:
        return told.refused(answer)
    items = [told.plain(one, *LISTED) | {"to": _whom(one)} for one in answer.body["items"]]
    return Told({"ok": True, "items": items} | told.plain(answer.body, "nextCursor"))


def _whom(one: dict[str, Any]) -> str:
    people = [person["email"] for person in one["recipients"]]
    return people[0] if len(people) == 1 else f"{people[0]} and {len(people) - 1} more"


async def cancel_send(given: Arguments, ask: Ask) -> Told:
    """Take one back."""
    answer = await ask("DELETE", f"/v1/agent/sends/{told.segment(given['request_id'])}")
    if not answer.good:
        return told.refused(answer)
    if answer.body["cancelled"]:
        return Told({"ok": True, "status": "cancelled", "next_action": "nothing; it does not go"})
    said = told.plain(answer.body, "reason", "status", "counts")
    return Told(
        {"ok": False, **said, "next_action": "it has left, or may have: read get_request", "repeat": "harmless"}
    )


CONTACT = {"email": "contact_email"}


async def check_suppression(given: Arguments, ask: Ask) -> Told:
    """Whether somebody may be mailed at all."""
    answer = await ask("GET", "/v1/suppressions/check", query={"email": str(given["contact_email"])})
    if not answer.good:
        return told.refused(answer, CONTACT)
    body = {"ok": True, "suppressed": answer.body["suppressed"]} | told.plain(answer.body, "scope")
    if answer.body["reason"]:
        body["reason_code"] = answer.body["reason"]
    body["next_action"] = (
        "stop; it binds every agent" if body["suppressed"] else "nothing stands in the way of that kind"
    )
    return Told(body)


async def check_budget(given: Arguments, ask: Ask) -> Told:
    """How much may still be sent: by the tenant, by the agent, from the mailbox."""
    me = await ask("GET", "/v1/agent/whoami")
    if not me.good:
        return told.refused(me)
    boxes = {one["address"]: one["id"] for one in me.body["mailboxes"]}
    sender = given.get("from") or next(iter(boxes), None)
    if sender is not None and sender not in boxes:
        return told.faulty([("from", f"is not one of your mailboxes, which are {', '.join(boxes)}")])
    wanted = {"agent": given.get("agent_name") or me.body["agent_id"], "mailboxId": boxes.get(str(sender))}
    query = {name: str(value) for name, value in wanted.items() if value is not None}
    answer = await ask("GET", "/v1/agent/budget", query=query)
    if not answer.good:
        return told.refused(answer)
    said: dict[str, Any] = {"ok": True}
    parts = {"tenant": answer.body, "agent": answer.body.get("agent"), "mailbox": answer.body.get("mailbox")}
    for whose, part in parts.items():
        limits = {name: _window(part[name]) for name in WINDOWS if part and part.get(name, {}).get("limit")}
        if limits:
            said[whose] = limits
    return Told(said if len(said) > 1 else said | {"detail": "no limit is set"})


WINDOWS = ("hourly", "daily", "monthly")


def _window(one: dict[str, Any]) -> dict[str, Any]:
    return {"used": one["used"], "limit": one["limit"], "remaining": one["remaining"], "until": one["resetsAt"]}


async def contact_timeline(given: Arguments, ask: Ask) -> Told:
    """All that is known of one person: suppression, lease, the last mails."""
    person = str(given["contact_email"])
    check = await ask("GET", "/v1/suppressions/check", query={"email": person})
    leases = await ask("GET", "/v1/agent/coordination/leases", query={"contactEmail": person})
    mails = await ask("GET", "/v1/agent/requests", query={"recipientEmail": person, "limit": str(TIMELINE)})
    for answer in (check, leases, mails):
        if not answer.good:
            return told.refused(answer, CONTACT)
    said: dict[str, Any] = {"ok": True, "suppressed": check.body["suppressed"]}
    if leases.body:
        said["lease"] = told.lease(leases.body[0])
    said["mails"] = [told.plain(one, *LISTED) | {"agent_id": one.get("agentId")} for one in mails.body["items"]]
    said["next_action"] = _before(said)
    return Told(said)


def _before(known: dict[str, Any]) -> str:
    """What to do with what is known of a person."""
    if known["suppressed"]:
        return "stop; it binds every agent"
    if "lease" in known:
        return "acquire_lease: it is yours already, or you are told when it ends"
    return "read the last mails, then acquire_lease"


async def who_am_i(_: Arguments, ask: Ask) -> Told:
    """Whose key this is."""
    answer = await ask("GET", "/v1/agent/whoami")
    if not answer.good:
        return told.refused(answer)
    boxes = [one["address"] for one in answer.body["mailboxes"]]
    said = {name: answer.body[name] for name in ("tenant_id", "agent_id", "agent_name", "scopes", "transactional")}
    if "operator" in answer.body["scopes"]:
        following = "tell the person that this is an operator's key, and ask for one made for an agent"
    elif answer.body["agent_id"] is not None:
        following = "nothing; you are agent_name"
    else:
        following = "register_agent, so that leases and votes are yours"
    return Told({"ok": True, **said, "mailboxes": boxes, "next_action": following})
