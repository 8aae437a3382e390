"""The stream of events: what is told to whom, from where, without a gap and without a double."""

import asyncio
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from gateway.events import hub, stream
from gateway.store import agents, events, journal, keys, schema
from gateway.store.keys import NewKey
from gateway.store.tx import Tx
from tests.doors.door import LEASE
from tests.events.reader import STREAM, Served
from tests.world import BOXES, PAT, TENANT

OTHER = "kim@example.net"


async def take(served: Served, contact: str = PAT, by: str = "a") -> dict[str, Any]:
    answer = await served.door.post(LEASE, {"contactEmail": contact}, by=by)
    body: dict[str, Any] = answer.json()
    return body


def names(frames: list[Any]) -> list[str]:
    return [frame.event for frame in frames]


def all_ids(served: Served) -> list[str]:
    def read(tx: Tx) -> list[str]:
        return [one.id for one in journal.after(tx, TENANT, "", limit=100_000)]

    return served.door.world.store.read(read, (TENANT,))


async def test_what_happens_is_told_at_once_with_all_that_is_known_of_it(served: Served) -> None:
    one = await served.listen()

    lease = await take(served)

    frame = await one.event()
    assert (one.status, one.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert one.headers["cache-control"] == "no-store"
    assert frame.event == frame.data["type"] == "coordination.lease_acquired"
    assert frame.id == frame.data["id"]
    assert frame.data["contactEmail"] == PAT
    assert frame.data["agentId"] == served.door.world.agent["a"]
    assert (frame.data["leaseId"], frame.data["fencingToken"]) == (lease["id"], lease["fencingToken"])
    assert frame.data["occurredAt"].endswith("Z")
    assert frame.data["tenantId"] == TENANT


async def test_a_send_is_told_with_its_request_and_its_recipients(served: Served) -> None:
    one = await served.listen()

    sent = await served.door.accepted(from_=BOXES[0])
    several = await served.door.accepted(to=[OTHER, "lou@example.net"], idempotencyKey="two")
    refused = (await served.door.send(by="b", to=[PAT], idempotencyKey="three")).json()

    first, second, third = await one.events(3)
    assert (first.event, first.data["requestId"]) == ("send.queued", sent["requestId"])
    assert first.data["recipientEmail"] == PAT
    assert first.data["mailboxId"] == served.door.world.box[BOXES[0]].id
    assert second.data["requestId"] == several["requestId"]
    assert second.data["recipients"] == [OTHER, "lou@example.net"]
    assert (third.event, third.data["reason"]) == ("policy.blocked", refused["reason"])


async def test_filters_are_by_type_by_group_and_by_person(served: Served) -> None:
    by_type = await served.listen("?eventTypes=coordination.lease_released")
    by_group = await served.listen("?eventTypes=send.*,suppression.*")
    by_person = await served.listen(f"?contactEmail={OTHER.upper()}")

    lease = await take(served)
    await served.door.call("DELETE", f"{LEASE}/{lease['id']}")
    await take(served, OTHER)
    await served.door.accepted(to=["lou@example.net", OTHER])

    assert names(await by_type.events(1)) == ["coordination.lease_released"]
    assert names(await by_group.events(1)) == ["send.queued"]
    assert names(await by_person.events(2)) == ["coordination.lease_acquired", "send.queued"]


async def test_who_comes_back_goes_on_where_it_was_without_gap_or_double(served: Served) -> None:
    async with served.listening() as one:
        await take(served)
        seen = await one.event()
    for number in range(5):
        await take(served, f"p{number}@example.net")

    by_query = await served.listen(f"?since={seen.id}")
    by_header = await served.listen(f"?since={all_ids(served)[0]}", Last_Event_ID=seen.id)
    await take(served, OTHER)

    for back in (by_query, by_header):
        frames = await back.events(6)
        assert [f.data["contactEmail"] for f in frames] == [*(f"p{n}@example.net" for n in range(5)), OTHER]


async def test_a_beat_says_how_far_the_log_was_read(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "BEAT", 0.05)
    one = await served.listen("?eventTypes=send.*")
    await take(served)

    last = all_ids(served)[-1]
    while one.last != last:
        frame = await one.frame()
        assert frame is not None
        assert frame.event == ""


async def test_whoever_is_slow_falls_behind_and_loses_nothing(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "KEPT", 5)
    monkeypatch.setattr(hub, "PAGE", 3)
    one = await served.listen()
    wanted = [f"p{number}@example.net" for number in range(40)]

    await asyncio.gather(*(take(served, contact) for contact in wanted))

    frames = await one.events(40)
    assert sorted(f.data["contactEmail"] for f in frames) == sorted(wanted)
    assert [f.id for f in frames] == sorted(f.id for f in frames)


async def test_a_gap_is_told_where_too_much_came_between_and_the_list_has_it(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "BACKLOG_MAX", 10)
    lease = await take(served)
    begin = all_ids(served)[-1]
    for number in range(20):
        await take(served, f"p{number}@example.net")

    one = await served.listen(f"?since={begin}")
    gap = await one.event()
    await served.door.call("DELETE", f"{LEASE}/{lease['id']}")
    then = await one.event()

    assert (gap.event, gap.id, gap.data["reason"]) == ("gap", "", "backlog_too_large")
    assert then.event == "coordination.lease_released"
    page = (await served.door.get("/v1/agent/events", params={"since": gap.data["since"]}, by="operator")).json()
    ids = [item["id"] for item in page["items"]]
    assert len(ids) == 21
    assert gap.data["until"] in ids
    assert ids[ids.index(gap.data["until"]) + 1 :] == [then.id]


async def test_a_mailbox_key_sees_its_own_mailbox_and_what_is_of_the_whole_tenant(served: Served) -> None:
    door = served.door
    box = door.world.box[BOXES[1]].id
    door.add_key("narrow", mailboxes=(box,))
    narrow = await served.listen(by="narrow")
    manager = await served.listen(by="operator")

    await door.accepted(from_=BOXES[0])
    change = await door.call("PATCH", f"/v1/agent/keys/{door.ids['free']}", {"label": "x"}, by="operator")
    await door.accepted(by="narrow", to=[OTHER], idempotencyKey="own")
    await take(served, "lou@example.net")

    assert change.status_code == 200
    assert names(await narrow.events(2)) == ["send.queued", "coordination.lease_acquired"]
    assert names([await manager.event()]) == ["send.queued"]
    seen = []
    while "key.changed" not in seen:
        seen.append((await manager.event()).event)


async def test_a_revoked_key_hears_no_more(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "CHECK", 0.0)
    served.door.add_key("going")
    one = await served.listen(by="going")

    await served.door.call("DELETE", f"/v1/agent/keys/{served.door.ids['going']}", by="operator")
    served.door.clock.now += 5
    await take(served)

    end = await one.event()
    assert (end.event, end.data) == ("end", {"reason": "unauthorized"})
    assert await one.ended()


async def test_what_another_node_commits_is_told_too(served: Served) -> None:
    one = await served.listen()
    other = served.door.world.node()

    await served.door.world.acquire("b", OTHER, node=other)

    assert (await one.event()).data["contactEmail"] == OTHER


async def test_another_tenant_hears_nothing(served: Served) -> None:
    store = served.door.world.store
    store.write((), lambda tx: agents.add_tenant(tx, "other"))
    ((_, raw),) = store.write(("other",), lambda tx: keys.create_keys(tx, [NewKey("other", "x")]))
    served.door.keys["stranger"] = raw
    stranger = await served.listen(by="stranger")
    own = await served.listen()
    await take(served)
    await own.event()
    page = (await served.door.get("/v1/agent/events", by="stranger")).json()

    assert {item["tenantId"] for item in page["items"]} <= {"other"}
    assert (stranger.status, stranger.buffer) == (200, b"")
    assert stranger.last in {"", page["since"]}  # of its own log, though it may not see all that stands there


@pytest.mark.parametrize(
    ("query", "headers", "field"),
    [
        ("?since=evt_1", {}, "since"),
        ("?eventTypes=send.nothing", {}, "eventTypes"),
        ("?eventTypes=", {}, "eventTypes"),
        ("?contactEmail=nobody", {}, "contactEmail"),
        ("?types=send.*", {}, "types"),
        ("", {"Last-Event-ID": "evt_zz"}, "Last-Event-ID"),
    ],
)
async def test_a_wrong_wish_is_named(served: Served, query: str, headers: dict[str, str], field: str) -> None:
    answer = await served.door.get(f"{STREAM}{query}", headers=headers)

    assert answer.status_code == 422
    assert [one["field"] for one in answer.json()["errors"]] == [field]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("foo.bar", ": foo.bar; the groups are send.*, "),
        ("x" * 60, f": {'x' * 60}; the groups are "),
        ("x" * 61, "; the groups are send.*, "),
        ("caf\u00e9", "; the groups are send.*, "),
        ("a\u0007b", "; the groups are send.*, "),
        ("coordination.lease_*", ": coordination.lease_*; only a whole group can be meant, as coordination.*"),
    ],
)
async def test_a_type_that_is_none_is_repeated_only_where_it_can_do_nothing(
    served: Served, name: str, said: str
) -> None:
    answer = await served.door.get("/v1/agent/events", params={"eventTypes": f"send.*,{name}"})

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["message"].startswith(f"names a type of event that there is not{said}")


async def test_streams_are_none_of_the_requests_under_way(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    from gateway.doors.http import guard

    monkeypatch.setattr(guard, "REQUESTS_MAX", 1)
    readers = [await served.listen() for _ in range(5)]

    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{served.port}") as client:
        answer = await client.get("/v1/agent/whoami", headers={"Authorization": f"Bearer {served.door.keys['a']}"})
    await take(served)

    assert answer.status_code == 200
    assert {(await one.event()).event for one in readers} == {"coordination.lease_acquired"}


async def test_all_who_listen_hear_all_in_the_order_of_the_log(served: Served) -> None:
    readers = [await served.listen() for _ in range(8)]

    async def one_after_the_other(start: int) -> None:
        for number in range(10):
            await take(served, f"p{start}-{number}@example.net")

    await asyncio.gather(*map(one_after_the_other, range(5)))

    told = [[f.id for f in await one.events(50)] for one in readers]
    acquired = all_ids(served)[-50:]
    assert all(ids == acquired for ids in told)


FUTURE = "evt_" + "f" * 20


@pytest.mark.parametrize("given", [FUTURE, FUTURE[:-2]])
async def test_who_comes_from_where_the_log_never_was_is_told_and_hears_what_is_new(served: Served, given: str) -> None:
    await take(served)
    newest = all_ids(served)[-1]

    by_header, by_query = await served.listen(Last_Event_ID=given), await served.listen(f"?since={given}")
    gaps = [await one.event() for one in (by_header, by_query)]
    await take(served, OTHER)
    heard = [await one.event() for one in (by_header, by_query)]

    assert [(gap.event, gap.data) for gap in gaps] == [
        ("gap", {"reason": "unknown_id", "since": None, "until": newest}),
    ] * 2
    assert [frame.data["contactEmail"] for frame in heard] == [OTHER, OTHER]
    assert by_header.last == heard[0].id


async def test_a_reader_from_where_the_log_never_was_is_told_by_an_id_where_it_is_now(served: Served) -> None:
    await take(served)
    one = await served.listen(Last_Event_ID=FUTURE)
    await one.event()

    mark = await one.frame()

    assert mark is not None
    assert (mark.event, mark.id) == ("", all_ids(served)[-1])


async def test_who_has_read_further_than_this_process_has_missed_nothing(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "POLL", 3600.0)
    await served.listen()  # from here on the channel is there, and looks no more
    other = served.door.world.store.write
    other((TENANT,), lambda tx: events.append(tx, [events.Event(TENANT, "consent.recorded", contact=PAT)]))
    newest = all_ids(served)[-1]

    back = await served.listen(f"?since={newest}")
    await take(served, OTHER)

    assert (await back.event()).data.get("contactEmail") == OTHER


async def test_the_beginning_is_never_ahead_of_the_log(served: Served) -> None:
    store, all_of = served.door.world.store, sa.delete(schema.events).where(schema.events.c.tenant == "empty")
    store.write((), lambda tx: agents.add_tenant(tx, "empty"))
    ((_, raw),) = store.write(("empty",), lambda tx: keys.create_keys(tx, [NewKey("empty", "x")]))
    store.write(("empty",), lambda tx: tx.run(lambda _: all_of, {}))
    served.door.keys["empty"] = raw
    one = await served.listen(f"?since=evt_{'0' * 18}", by="empty")

    store.write(("empty",), lambda tx: events.append(tx, [events.Event("empty", "consent.recorded", contact=PAT)]))

    assert (await one.event()).event == "consent.recorded"


async def test_the_list_leads_back_who_comes_from_where_the_log_never_was(served: Served) -> None:
    await take(served)
    newest = all_ids(served)[-1]

    lost = (await served.door.get("/v1/agent/events", params={"since": FUTURE}, by="operator")).json()
    there = (await served.door.get("/v1/agent/events", params={"since": newest}, by="operator")).json()

    assert lost == there == {"items": [], "since": newest, "more": False}
