"""`requests ...`: look at a send, cancel it, or decide about one that waits for a person."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from gateway.cli import options, printing
from gateway.cli.answers import explain, objects
from gateway.cli.api import Api, part
from gateway.cli.printing import clean, member

RequestId = Annotated[str, typer.Argument(metavar="REQUEST_ID", help="The send's id, req_...")]


class Choice(StrEnum):
    """What a person may decide about a send."""

    RETRY = "retry"
    ASSUME_SENT = "assume_sent"
    CANCEL = "cancel"
    APPROVE = "approve"
    REJECT = "reject"


def show(
    request_id: Annotated[
        str | None, typer.Argument(metavar="[REQUEST_ID]", help="The send's id; or name it by --idempotency-key.")
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option("--idempotency-key", metavar="KEY", help="The key it was sent with.")
    ] = None,
    mailbox_id: Annotated[
        str | None, typer.Option("--mailbox-id", metavar="ID", help="The mailbox of that key, where several know it.")
    ] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Show every decision, attempt and event of it.")] = False,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Show what became of a send: its state, each recipient, and why."""
    if (request_id is None) == (idempotency_key is None):
        raise typer.BadParameter("give either REQUEST_ID or --idempotency-key", param_hint="REQUEST_ID")
    api = Api(url, key, as_json=as_json)
    if idempotency_key is not None:
        query = {"idempotencyKey": idempotency_key} | ({"mailboxId": mailbox_id} if mailbox_id else {})
        found = api.ask("GET", "/v1/agent/requests", query=query).body
        request_id = str(member(found, "requestId"))
    else:
        found = None
    name = part(str(request_id))
    if trace:
        told = api.ask("GET", f"/v1/ops/trace/{name}").body
        if as_json:
            printing.document(told)
        else:
            tell(told)
        return
    if found is None:
        found = api.ask("GET", f"/v1/agent/requests/{name}").body
    if as_json:
        printing.document(found)
    else:
        explain(found)


def resolve(
    request_id: RequestId,
    decision: Annotated[
        Choice,
        typer.Option(
            "--decision",
            help="Of an unknown delivery: retry (it may arrive twice), assume_sent or cancel; of held mail: approve or reject.",
        ),
    ],
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Why; it is kept in the audit.")
    ] = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Decide, as a person with an operator key, about a send that is unknown or held."""
    body = {"decision": decision.value} | ({"reason": reason} if reason else {})
    path = f"/v1/agent/requests/{part(request_id)}/resolve"
    answer = Api(url, key, as_json=as_json).ask("POST", path, body=body).body
    if as_json:
        printing.document(answer)
    else:
        explain(answer)


def cancel(
    request_id: RequestId,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Stop every recipient's mail that has not left. Exit code 1: for some it was too late."""
    path = f"/v1/agent/sends/{part(request_id)}"
    answer = Api(url, key, as_json=as_json).ask("DELETE", path).body
    cancelled = bool(member(answer, "cancelled"))
    if as_json:
        printing.document(answer)
    elif cancelled:
        printing.line("cancelled: nothing has left", "good")
    else:
        printing.line(f"not cancelled: {member(answer, 'reason')}", "bad")
        printing.pairs([("status", member(answer, "status")), ("recipients", counted(member(answer, "counts")))])
    if not cancelled:
        raise typer.Exit(1)


def counted(counts: object) -> str:
    """How many recipients are in which state, in words."""
    items = counts.items() if isinstance(counts, dict) else ()
    return ", ".join(f"{clean(number)} {clean(state)}" for state, number in items)


def tell(trace: dict[str, Any]) -> None:
    """Print a trace: the send, the rules of its decisions, each attempt, and what happened to it, in order."""
    about = member(trace, "request") or {}
    allow = member(trace, "policyDecision", "allow")
    verdict = "allowed" if allow else f"refused: {clean(member(trace, 'policyDecision', 'reason'))}"
    printing.line(f"{member(about, 'id')}: {member(about, 'status')} ({verdict})", "good" if allow else "bad")
    names = [("to", "recipientEmail"), ("subject", "subject"), ("agent", "agentId"), ("created", "createdAt")]
    names += [("key", "idempotencyKey"), ("message id", "messageId"), ("because", "sendReason")]
    printing.pairs([(name, member(about, field)) for name, field in names])
    lines = objects(member(trace, "policyDecision", "auditEvents"))
    words = [
        (one.get("rule"), "pass" if one.get("passed") else "no", one.get("reason"), one.get("detail")) for one in lines
    ]
    printing.table(("rule", "said", "reason", "detail"), words)
    decided = [
        [one.get(name) for name in ("no", "at", "moment", "verdict", "reason")]
        for one in objects(trace.get("decisions"))
    ]
    if len(decided) > 1:
        printing.table(("decision", "at", "moment", "verdict", "reason"), decided)
    tries = [
        [one.get("recipient"), one.get("startedAt"), one.get("outcome"), *_said(one)]
        for one in objects(trace.get("attempts"))
    ]
    if tries:
        printing.table(("attempt to", "started", "outcome", "code", "reply"), tries)
    happened = [_happened(one) for one in objects(trace.get("events"))]
    printing.table(("at", "event", "contact", "by", "what"), happened)


def _happened(event: dict[str, Any]) -> tuple[object, ...]:
    """An event: when, what, whom it is about, whose act it was, and what was said to it."""
    data = event.get("data") or {}
    said = ", ".join(clean(data[name]) for name in ("decision", "reason", "why") if data.get(name))
    return (event.get("at"), event.get("name"), event.get("contact"), data.get("by") or event.get("actor"), said)


def _said(attempt: dict[str, Any]) -> tuple[object, str]:
    """A server's code, and its words with their enhanced code."""
    words = [clean(attempt[name]) for name in ("enhanced", "text") if attempt.get(name)]
    return attempt.get("code"), " ".join(words)
