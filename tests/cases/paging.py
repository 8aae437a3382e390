"""Goes through the pages of a list while new rows come in, as an agent does, and notes what it saw."""

from typing import Any
from urllib.parse import quote

from tests.cases import words
from tests.cases.play import Play

PAGES_MAX = 100


async def page_through(play: Play, number: int, step: dict[str, Any]) -> None:
    """Read all pages; between two pages new mails are sent. Notes every id seen, in order."""
    path = words.path_of(step["path"])
    seen: list[str] = []
    known = {one.body["requestId"] for one in play.sends if one.accepted}
    cursor = ""
    for page in range(PAGES_MAX):
        said = await play.call(number, "GET", path + (f"&cursor={quote(cursor)}" if cursor else ""), "agent-a")
        if said.status != 200:
            play.fault(False, f"step {number}: {said.status} {said.text[:200]}")
            return
        seen += [row["requestId"] for row in said.body["items"]]
        cursor = said.body.get("nextCursor") or ""
        play.cursor = cursor or play.cursor
        if not cursor:
            break
        for new in range(step.get("insert_between_pages", 0)):
            body = {"to": [f"new{page}-{new}@example.com"], "subject": "new", "text": "hi\n"}
            mail = {"path": "/v1/agent/request-send", "json": body | {"idempotencyKey": f"new-{page}-{new}"}}
            await play.ask(number, mail)
    play.facts["rows_seen"] = [request for request in seen if request in known]
