"""`requests list`: sends, newest first, by what is asked of them."""

from typing import Annotated, Any

import typer

from gateway.cli import options, printing
from gateway.cli.answers import objects
from gateway.cli.api import Api
from gateway.cli.printing import member

PAGE = 200


def list_requests(
    status: Annotated[
        str | None, typer.Option("--status", metavar="STATUS", help="Where it stands now, e.g. queued or blocked.")
    ] = None,
    recipient: Annotated[
        str | None, typer.Option("--recipient", metavar="ADDRESS", help="Somebody in to, cc or bcc.")
    ] = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="AGENT", help="Who sent it, by id or name.")] = None,
    mailbox_id: Annotated[
        str | None, typer.Option("--mailbox-id", metavar="ID", help="The mailbox that it was sent from.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="KIND", help="outreach, reply or transactional.")
    ] = None,
    campaign: Annotated[str | None, typer.Option("--campaign", metavar="NAME", help="Its campaignAction.")] = None,
    thread: Annotated[str | None, typer.Option("--thread", metavar="ID", help="Its threadId.")] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="REASON", help="The reason that any of its recipients has.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Made at this time or later: ISO 8601 with an offset.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Made before this time.")] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="How many at most.")] = 50,
    cursor: Annotated[
        str | None, typer.Option("--cursor", metavar="CURSOR", help="Go on where the list before has ended.")
    ] = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """List sends, newest first; where there are more, the cursor to go on with is told on stderr."""
    asked = {"status": status, "recipientEmail": recipient, "agent": agent, "mailboxId": mailbox_id, "kind": kind}
    asked |= {"campaignAction": campaign, "threadId": thread, "reason": reason, "since": since, "until": until}
    query = {name: value for name, value in (asked | {"cursor": cursor}).items() if value is not None}
    rows, following = _pages(Api(url, key, as_json=as_json), query, limit)
    if as_json:
        printing.document({"items": rows, "nextCursor": following})
        return
    fields = ("requestId", "createdAt", "status", "reason", "agentId", "subject")
    told = [(*map(one.get, fields[:4]), _people(one), *map(one.get, fields[4:])) for one in rows]
    printing.table(("request", "made", "status", "reason", "to", "agent", "subject"), told)
    if following is not None:
        printing.note(f"there are more: --cursor {following}")


def _pages(api: Api, query: dict[str, str], limit: int) -> tuple[list[dict[str, Any]], str | None]:
    """As many rows as were asked for, from as many pages as that takes."""
    rows: list[dict[str, Any]] = []
    with api.kept():
        while True:
            size = {"limit": str(min(PAGE, limit - len(rows)))}
            page = api.ask("GET", "/v1/agent/requests", query=query | size, patient=True).body
            rows += objects(member(page, "items"))
            following = member(page, "nextCursor")
            if following is None or len(rows) >= limit:
                return rows, None if following is None else str(following)
            query = query | {"cursor": str(following)}


def _people(send: dict[str, Any]) -> str:
    """The first recipient, and how many more there are."""
    people = [str(one.get("email")) for one in objects(send.get("recipients"))]
    more = f" and {len(people) - 1} more" if len(people) > 1 else ""
    return f"{people[0]}{more}" if people else ""
