"""The list of sends: filters, pages that stay whole while others write, cursors, and who sees what."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from gateway.core.delivery import Bounced, Deferred, Outcome, Relayed, Reply, Unknown
from gateway.core.record import instant
from gateway.core.status import status
from gateway.store import pages
from gateway.store.clock import to_us
from gateway.store.pages import STATUSES, Place, Wanted
from gateway.store.schema import suppressions
from tests.doors.door import Door, faults, problem
from tests.doors.test_requests import other_tenants_key
from tests.world import BOXES, OK, PAT, TENANT, World

REQUESTS = "/v1/agent/requests"
BATCH = "/v1/agent/batch/request-send"


async def listed(door: Door, by: str = "a", **query: Any) -> dict[str, Any]:
    """A page."""
    answer = await door.get(REQUESTS, params=query, by=by)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    assert body.keys() == {"items", "nextCursor"}
    return body


async def ids(door: Door, by: str = "a", **query: Any) -> list[str]:
    """The requests of all pages."""
    found: list[str] = []
    while True:
        page = await listed(door, by, **query)
        found += [one["requestId"] for one in page["items"]]
        if page["nextCursor"] is None:
            return found
        query["cursor"] = page["nextCursor"]


async def some(door: Door, count: int, first: int = 0, **shared: Any) -> list[str]:
    """Sends to as many people, all at one time; their ids."""
    items = [{"recipientEmail": f"p{n}@example.net", "dedupeKey": f"k{n}"} for n in range(first, first + count)]
    answer = await door.post(BATCH, {"sends": items, "text": "hi"} | shared)
    return [one["requestId"] for one in answer.json()["results"]]


# --- pages ------------------------------------------------------------------------------------------------------------


async def test_sends_are_listed_newest_first_each_as_it_is_shown_alone(door: Door) -> None:
    first = await door.accepted(to="p1@example.net", idempotencyKey="k1")
    door.world.advance(60)
    second = await door.accepted(to="p2@example.net", idempotencyKey="k2", campaignAction="spring")

    page = await listed(door)

    assert [one["requestId"] for one in page["items"]] == [second["requestId"], first["requestId"]]
    assert page["items"][0] == (await door.get(f"{REQUESTS}/{second['requestId']}")).json()
    assert page["nextCursor"] is None


async def test_rows_of_one_time_are_neither_lost_nor_repeated_at_a_border(door: Door) -> None:
    known = await some(door, 40)
    times = {one["createdAt"] for one in (await listed(door))["items"]}

    for limit in (1, 7, 39, 40, 41):
        assert sorted(await ids(door, limit=limit)) == sorted(known)
    assert len(times) == 1


async def test_new_rows_between_pages_do_not_disturb(door: Door) -> None:
    known = await some(door, 10)
    first = await listed(door, limit=4)
    door.world.advance(1)
    await some(door, 5, first=10)

    rest = await ids(door, limit=4, cursor=first["nextCursor"])

    assert sorted([one["requestId"] for one in first["items"]] + rest) == sorted(known)


async def test_a_send_that_is_judged_again_keeps_its_place(door: Door) -> None:
    await door.world.suppress(PAT)
    refused = (await door.send(to=PAT, idempotencyKey="k")).json()["requestId"]
    door.world.advance(60)
    known = await some(door, 3)
    for entry in door.world.rows_of(suppressions):
        await door.world.unsuppress(entry["id"])
    await door.accepted(to=PAT, idempotencyKey="k", text="other")

    assert (await ids(door, limit=2))[-1] == refused
    assert len(known) == 3


async def test_a_page_has_fifty_rows_and_at_most_two_hundred(door: Door) -> None:
    await some(door, 210)

    assert len((await listed(door))["items"]) == 50
    assert len((await listed(door, limit=200))["items"]) == 200
    for limit in ("0", "201", "-1", "x", "1.5", ""):
        assert faults(await door.get(REQUESTS, params={"limit": limit})) == ["limit"]


async def test_the_last_page_that_is_full_has_no_cursor(door: Door) -> None:
    await some(door, 4)

    page = await listed(door, limit=4)

    assert len(page["items"]) == 4
    assert page["nextCursor"] is None


async def test_what_is_rare_is_found_over_several_pages(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "SCAN", 10)
    monkeypatch.setattr(pages, "PIECE", 5)
    rare = [(await some(door, 1, first=100 * n + 1, campaignAction="rare"))[0] for n in range(3)]
    door.world.advance(1)
    await some(door, 23, first=10)

    first = await listed(door, campaignAction="rare", limit=2)

    assert first["items"] == []
    assert first["nextCursor"] is not None
    assert sorted(await ids(door, campaignAction="rare", limit=2)) == sorted(rare)


# --- filters ----------------------------------------------------------------------------------------------------------


async def test_each_filter_finds_what_fits(door: Door) -> None:
    usual, other = (door.world.box[box].id for box in BOXES)
    await door.world.suppress("p4@example.net")
    sent = {
        "plain": await some(door, 1, first=1, mailboxId=usual),
        "boxed": await some(door, 1, first=2, mailboxId=other),
        "campaign": await some(door, 1, first=3, mailboxId=usual, campaignAction="spring"),
        "blocked": await some(door, 1, first=4, mailboxId=usual),
        "thread": await some(door, 1, first=5, mailboxId=usual, threadId="thr_1"),
        "reply": await some(door, 1, first=6, mailboxId=usual, kind="reply"),
    }
    by_other = (
        await door.send(by="b", to="p7@example.net", cc="Copy@example.net", idempotencyKey="k7", mailboxId=usual)
    ).json()
    sent["agent"] = [by_other["requestId"]]

    for query, name in (
        ({"mailboxId": other}, "boxed"),
        ({"campaignAction": "spring"}, "campaign"),
        ({"status": "blocked"}, "blocked"),
        ({"reason": "suppressed"}, "blocked"),
        ({"threadId": "thr_1"}, "thread"),
        ({"kind": "reply"}, "reply"),
        ({"agent": "b"}, "agent"),
        ({"agent": door.world.agent["b"]}, "agent"),
        ({"recipientEmail": "COPY@example.net"}, "agent"),
        ({"recipientEmail": "p4@example.net", "status": "blocked"}, "blocked"),
    ):
        assert await ids(door, **query) == sent[name], query
    assert await ids(door, recipientEmail="p4@example.net", status="queued") == []
    assert len(await ids(door, status="queued")) == 6
    assert len(await ids(door)) == 7


async def test_times_bound_the_list_from_the_first_up_to_before_the_last(door: Door) -> None:
    at, sent = [], []
    for number in range(3):
        sent += await some(door, 1, first=number)
        at.append((await listed(door, limit=1))["items"][0]["createdAt"])
        door.world.advance(60)

    assert await ids(door, since=at[1]) == [sent[2], sent[1]]
    assert await ids(door, until=at[1]) == [sent[0]]
    assert await ids(door, since=at[1], until=at[2], limit=1) == [sent[1]]
    assert faults(await door.get(REQUESTS, params={"since": at[1], "until": at[1]})) == ["until"]
    assert faults(await door.get(REQUESTS, params={"since": "yesterday"})) == ["since"]


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ({"status": "sent"}, ["status"]),
        ({"kind": "spam"}, ["kind"]),
        ({"recipientEmail": "nobody"}, ["recipientEmail"]),
        ({"colour": "red", "offset": "1"}, ["colour", "offset"]),
        ({"idempotencyKey": "a", "status": "queued", "cursor": "x"}, ["cursor", "status"]),
    ],
)
async def test_what_is_no_filter_is_named(wire: Door, query: dict[str, str], fields: list[str]) -> None:
    assert sorted(faults(await wire.get(REQUESTS, params=query))) == fields


async def test_who_or_what_is_not_there_is_told_so(door: Door) -> None:
    problem(await door.get(REQUESTS, params={"agent": "nobody"}), 404, "agent_not_found")
    problem(await door.get(REQUESTS, params={"mailboxId": "mbx_nowhere"}), 404, "mailbox_not_found")


async def _settled(world: World) -> None:
    """One send in each state that an attempt can lead to."""
    reply = Reply(550, "5.7.1", "no")
    outcomes: list[Outcome] = [
        Relayed(OK),
        Bounced("no", reply),
        Unknown("cut off"),
        Deferred("later", Reply(451, "4.0.0", "later")),
    ]
    for claim, outcome in zip(await world.claim(limit=4), outcomes, strict=True):
        await world.relay(claim, outcome)
    await world.claim(limit=1)
    await world.permit((await world.claim(limit=1))[0])


async def test_every_status_finds_what_has_it(door: Door) -> None:
    """The words of the list are those of the sends, whatever their recipients have come to."""
    await some(door, 8)
    await _settled(door.world)
    await door.call("DELETE", f"/v1/agent/sends/{(await some(door, 1, first=20))[0]}")
    await some(door, 1, first=21, scheduledAt=instant(door.world.now + timedelta(hours=1)))
    await door.world.suppress("p22@example.net")
    await some(door, 1, first=22)
    await door.send(to=["x1@example.net", "x2@example.net", "x3@example.net"], idempotencyKey="x")
    ends: list[Outcome] = [Relayed(OK), Unknown("cut off")]
    for claim, outcome in zip(await door.world.claim(limit=2), ends, strict=True):
        await door.world.relay(claim, outcome)

    everything = (await listed(door, limit=200))["items"]

    seen = {one["status"] for one in everything}
    assert seen >= {
        "queued",
        "relayed",
        "bounced",
        "unknown",
        "deferred",
        "relaying",
        "cancelled",
        "scheduled",
        "blocked",
    }
    for name in STATUSES:
        expected = [one["requestId"] for one in everything if one["status"] == name]
        assert await ids(door, status=name) == expected


# --- cursors ----------------------------------------------------------------------------------------------------------


def _cut(cursor: str) -> str:
    return cursor[:-3]


def _at_true(cursor: str) -> str:
    """The same place at a time that is no number; for some databases it is one."""
    _, last, mark = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    return urlsafe_b64encode(json.dumps([True, last, mark]).encode()).decode().rstrip("=")


BROKEN: dict[str, Callable[[str], str]] = {
    "cut": _cut,
    "longer": lambda cursor: cursor + "AAAA",
    "with a stranger": lambda cursor: cursor[:5] + "!" + cursor[5:],
    "no base64": lambda _: "§",
    "no cursor": lambda _: "bm90aGluZw",
    "a list of others": lambda _: "WzEsMiwzXQ",
    "a number without end": lambda _: "WzFlOTk5LCJhIiwiYiJd",
    "a place with a NUL": lambda _: "WzEsIlx1MDAwMCIsImIiXQ",
    "a time that is true": _at_true,
    "empty": lambda _: "",
}


@pytest.mark.parametrize("name", list(BROKEN))
async def test_a_broken_cursor_is_refused(door: Door, name: str) -> None:
    await some(door, 3)
    cursor = (await listed(door, limit=1))["nextCursor"]

    answer = await door.get(REQUESTS, params={"limit": 1, "cursor": BROKEN[name](cursor)})

    assert faults(answer) == ["cursor"]


async def test_a_cursor_of_another_list_is_refused(door: Door) -> None:
    await some(door, 3)
    cursor = (await listed(door, limit=1))["nextCursor"]
    stranger = await other_tenants_key(door)

    assert faults(await door.get(REQUESTS, params={"status": "queued", "cursor": cursor})) == ["cursor"]
    assert faults(await door.get(REQUESTS, params={"cursor": cursor}, by=stranger)) == ["cursor"]
    assert len((await listed(door, limit=200, cursor=cursor))["items"]) == 2


# --- who sees what ----------------------------------------------------------------------------------------------------


async def test_a_key_of_one_mailbox_sees_its_sends_alone(door: Door) -> None:
    boxes = [door.world.box[box].id for box in BOXES]
    sent = [await some(door, 3, first=10 * n, mailboxId=box) for n, box in enumerate(boxes)]
    door.add_key("desk", mailboxes=(boxes[1],), scopes=("read",))

    assert sorted(await ids(door, by="desk", limit=2)) == sorted(sent[1])
    assert await ids(door, by="desk", recipientEmail="p0@example.net") == []
    problem(await door.get(REQUESTS, params={"mailboxId": boxes[0]}, by="desk"), 403, "mailbox_scope_denied")


async def test_another_tenant_sees_nothing(door: Door) -> None:
    await some(door, 3)
    door.keys["other"] = await other_tenants_key(door)

    assert await ids(door, by="other") == []
    problem(await door.get(REQUESTS, params={"tenantId": "other"}), 403, "tenant_mismatch")


async def test_who_may_neither_read_nor_send_sees_nothing(door: Door) -> None:
    problem(await door.get(REQUESTS, by=None), 401, "unauthorized")


# --- the store --------------------------------------------------------------------------------------------------------


async def test_a_page_is_read_by_its_index_alone(world: World) -> None:
    for number in range(5):
        await world.send(to=f"p{number}@example.net")

    def first(tx: Any) -> Any:  # noqa: ANN401 - a page
        return pages.page(tx, TENANT, Wanted(), after=Place(to_us(world.now) + 1, ""), limit=2)

    found, following = world.store.read(first, (TENANT,))

    assert len(found) == 2
    assert all(status(one.deliveries)[0] == "queued" for one in found)
    assert all(newer.created_at >= older.created_at for newer, older in pairwise(found))
    assert following == Place(to_us(found[-1].created_at), found[-1].id)


async def test_a_person_or_thread_with_very_many_sends_is_found_as_well(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, changed in (("FEW", 2), ("SCAN", 4), ("PIECE", 2)):
        monkeypatch.setattr(pages, name, changed)
    sent = [
        await some(door, 1, first=n, threadId="thr_1") if n % 2 else await some(door, 1, first=n, threadId="thr_2")
        for n in range(8)
    ]

    found = await ids(door, limit=3, threadId="thr_1")

    assert sorted(found) == sorted(one[0] for one in sent[1::2])
    assert sorted(await ids(door, limit=3, threadId="thr_2", kind="outreach")) == sorted(one[0] for one in sent[::2])
