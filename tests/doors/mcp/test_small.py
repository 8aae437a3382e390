"""Results stay small, for each is read by a model: their size in tokens, taken as a quarter of their characters."""

import json
from typing import Any

import pytest

from gateway.doors.mcp.coordinating import SHOWN
from gateway.doors.mcp.server import INSTRUCTIONS, TOOLS
from tests.doors.door import LEASE
from tests.doors.mcp.client import Served, Session
from tests.world import PAT

COMMON = 600
"""Tokens that a common result may have."""
INPUTS = 6000
"""Tokens of what a client tells its model of all tools: name, sentence, arguments."""
LONG = "x" * 60
MANY = 30


def tokens(value: Any) -> float:  # noqa: ANN401  (JSON)
    """How many there are, about."""
    return len(value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))) / 4


async def much(served: Served, one: Session) -> dict[str, Any]:
    """A past: thirty mails to one person by replies, thirty leases, refusals; the last mail."""
    for number in range(MANY):
        body = {"contactEmail": f"held{number}@example.net", "durationMinutes": 60, "intent": LONG}
        await served.door.post(LEASE, body, by="b")
    mail = {"subject": LONG, "text": LONG, "thread_id": LONG, "send_reason": LONG, "kind": "reply"}
    mail |= {"in_reply_to": f"<{LONG}@example.net>"}
    said = {}
    for number in range(MANY):
        said = await one.call("send_email", to=PAT, **mail | {"subject": f"{LONG} {number}"})
    return said


async def test_common_results_are_small(served: Served) -> None:
    async with served.connect("a") as one:
        sent = await much(served, one)
        people = [f"{LONG[:40]}{number}@example.net" for number in range(10)]
        asked = await one.call("create_consensus", action=LONG, contact_email=PAT, reason=LONG)
        results = {
            "sent": sent,
            "to ten": await one.call("send_email", to=people, subject=LONG, text=LONG),
            "tried": await one.call("dry_run", to="held1@example.net", subject=LONG, text=LONG),
            "refused": await one.call("send_email", to="held0@example.net", subject=LONG, text=LONG),
            "wrong": await one.call("send_email", to="nobody", subject="x\ny", cc="nobody", fencing_token=-1),
            "looked": await one.call("get_request", request_id=sent["request_id"]),
            "held": await one.call("acquire_lease", contact_email="held0@example.net"),
            "leased": await one.call("acquire_lease", contact_email="free@example.net", intent=LONG),
            "vote": asked,
            "me": await one.call("who_am_i"),
            "budget": await one.call("check_budget"),
            "suppression": await one.call("check_suppression", contact_email=PAT),
            "cancelled": await one.call("cancel_send", request_id=sent["request_id"]),
        }

    assert sent["ok"] is True, sent
    assert {name: size for name, said in results.items() if (size := tokens(said)) >= COMMON} == {}


async def test_lists_have_pages_that_are_small_and_lead_on_to_the_end(served: Served) -> None:
    async with served.connect("a") as one:
        await much(served, one)
        for tool, items, most in (("list_requests", "items", 10), ("list_leases", "leases", SHOWN)):
            pages = [await one.call(tool)]
            while "next_cursor" in pages[-1]:
                pages.append(await one.call(tool, cursor=pages[-1]["next_cursor"]))
            ids = [row.get("request_id") or row["lease_id"] for page in pages for row in page[items]]

            assert len(ids) == len(set(ids)) == MANY, tool
            assert max(len(page[items]) for page in pages) == most
            assert max(map(tokens, pages)) < COMMON * (2 if tool == "list_leases" else 1.5)
        known = await one.call("contact_timeline", contact_email=PAT)
        read = await one.client.read_resource("gateway://leases")

    assert len(known["mails"]) == 10
    assert tokens(known) < COMMON * 1.5
    assert len(json.loads(read.contents[0].text)) == SHOWN  # type: ignore[union-attr]


@pytest.mark.parametrize("cursor", ["-1", "one", "1e3", "9" * 30])
async def test_a_cursor_of_ones_own_making_is_refused(wired: Served, cursor: str) -> None:
    async with wired.connect("a") as one:
        said = await one.call("list_leases", cursor=cursor)

    assert (said["ok"], said["errors"][0]["field"]) == (False, "cursor")


async def test_many_refused_in_a_batch_do_not_fill_a_page(served: Served) -> None:
    await served.door.world.suppress(PAT)
    sends = [{"to": PAT, "subject": "hi", "text": "hello", "idempotency_key": f"k{n}"} for n in range(100)]
    async with served.connect("a") as one:
        said = await one.call("batch_send", sends=sends)

    assert (said["count"], said["refused_by_reason"]) == (100, {"suppressed": 100})
    assert [one["number"] for one in said["refused"]] == list(range(10))
    assert tokens(said) < COMMON * 1.5


def test_the_tools_take_little_room_in_a_models_head() -> None:
    listed = [(tool.name, tool.says, tool.input_schema) for tool in TOOLS]

    assert tokens(listed) < INPUTS
    assert tokens(INSTRUCTIONS) < COMMON
