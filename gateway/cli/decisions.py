"""`decisions ...`: what agents ask for and only a person may do: list it, look at it, confirm it, reject it."""

import json
from enum import StrEnum
from typing import Annotated, Any

import typer

from gateway.cli import options, printing
from gateway.cli.answers import listed, objects, when
from gateway.cli.api import Api, part
from gateway.cli.printing import clean, member

PATH = "/v1/agent/decisions"
PAGE = 500
SECRETS = {"rawKey": "key", "token": "token"}
"""Members of an answer that are shown once, and what each is."""

Which = Annotated[
    str, typer.Argument(metavar="ID|LINK", help="The decision's id, dec_..., or the link that the refusal gave.")
]
Reason = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", help="Why; who has asked sees it, and it goes into the log of events."),
]


class Status(StrEnum):
    """What may have become of a decision."""

    PENDING = "pending"
    CONFIRMING = "confirming"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    EXPIRED = "expired"


def list_decisions(
    status: Annotated[Status | None, typer.Option("--status", help="Only those; without it, all.")] = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """List the newest requests that wait or have waited for a person; an agent's key sees its own."""
    query = {"limit": str(PAGE)} | ({"status": status.value} if status else {})
    found = Api(url, key, as_json=as_json).ask("GET", PATH, query=query).body
    if as_json:
        printing.document(found)
        return
    rows = [
        (one.get("id"), one.get("status"), one.get("kind"), _request(one), one.get("askedBy"), one.get("createdAt"))
        for one in objects(found)
    ]
    printing.table(("id", "status", "kind", "request", "asked by", "since"), rows)


def show(which: Which, url: options.Url = None, key: options.Key = None, as_json: options.Json = False) -> None:
    """Show a request that waits for a person, as it was made."""
    found = Api(url, key, as_json=as_json).ask("GET", _path(which)).body
    if as_json:
        printing.document(found)
        return
    printing.line(f"{member(found, 'kind')} {clean(member(found, 'about'))}: {member(found, 'status')}")
    body = member(found, "request", "body")
    rows = [("id", member(found, "id")), ("request", _request(found))]
    rows += [("body", json.dumps(body) if body else None), ("loosens", listed(member(found, "loosens")))]
    rows += [("asked by", member(found, "askedBy")), ("key", member(found, "askedByKeyId"))]
    rows += [("expires", when(member(found, "expiresAt"))), ("decided by", member(found, "decidedBy"))]
    rows += [("decided", when(member(found, "decidedAt"))), ("reason", member(found, "reason"))]
    printing.pairs(rows)


def confirm(
    which: Which,
    reason: Reason = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Carry the request out with one's own key, an operator's; prints its answer.

    The secret of a new key or invitation is alone on the first line of stdout, this once.
    """
    _decide(which, "confirm", reason, Api(url, key, as_json=as_json), as_json=as_json)


def reject(
    which: Which,
    reason: Reason = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Refuse a request; an agent's key takes its own back."""
    _decide(which, "reject", reason, Api(url, key, as_json=as_json), as_json=as_json)


def _decide(which: str, decision: str, reason: str | None, api: Api, *, as_json: bool) -> None:
    body = {"decision": decision} | ({"reason": reason} if reason else {})
    done = api.ask("POST", _path(which), body=body).body
    if as_json:
        printing.document(done)
        return
    result = member(done, "result", "body")
    result = result if isinstance(result, dict) else {}
    for name, what in SECRETS.items():
        if secret := result.pop(name, None):  # alone and first, as `keys create` prints it: a script reads that line
            printing.line(secret)
            printing.note(f"this is the {what}; it is not shown again", "")
    printing.line(f"{member(done, 'status')} {member(done, 'decisionId')}", "good")
    printing.pairs([(name, _text(value)) for name, value in result.items()])


def _path(which: str) -> str:
    """The route of a decision, of which the id or the whole link was given."""
    return f"{PATH}/{part(which.rstrip('/').rpartition('/')[2])}"


def _request(found: Any) -> str:  # noqa: ANN401  (JSON)
    """The request in one line."""
    method, path, query = (clean(member(found, "request", name)) for name in ("method", "path", "query"))
    return f"{method} {path}{'?' if query else ''}{query}"


def _text(value: object) -> object:
    return json.dumps(value) if isinstance(value, dict | list) and value else value
