"""The same conflict again and again: the third send is held, a person is told and decides (SEMANTICS 6)."""

import asyncio
from typing import Any

from tests.doors.door import LEASE, Door
from tests.world import PAT, TENANT

MAILS = 8


async def taken_by_a(door: Door, minutes: float = 30) -> dict[str, Any]:
    body: dict[str, Any] = (await door.post(LEASE, {"contactEmail": PAT, "durationMinutes": minutes}, by="a")).json()
    return body


async def attempt(door: Door, key: str, **more: Any) -> dict[str, Any]:
    body: dict[str, Any] = (await door.send(by="b", idempotencyKey=key, subject=key, **more)).json()
    return body


async def escalations(door: Door) -> list[dict[str, Any]]:
    query = {"eventTypes": "coordination.conflict_escalated"}
    items: list[dict[str, Any]] = (await door.get("/v1/agent/events", params=query, by="operator")).json()["items"]
    return items


async def test_the_third_send_waits_for_a_person_who_is_told_once(door: Door) -> None:
    await taken_by_a(door)

    answers = [await attempt(door, f"key-{number}") for number in range(4)]

    assert [one["status"] for one in answers] == ["blocked", "blocked", "pending_approval", "blocked"]
    assert [one["reason"] for one in answers[:3]] == ["lease_conflict", "lease_conflict", "conflict_escalated"]
    assert answers[2]["leaseHolder"]["agentName"] == "a"
    assert answers[2]["nextAction"] == "a person decides; do not resend"
    (told,) = await escalations(door)
    assert told["requestId"] == answers[2]["requestId"]
    assert told["recipientEmail"] == PAT
    assert told["agentId"] == door.world.agent["b"]


async def test_repeats_of_one_key_and_other_agents_do_not_count(door: Door) -> None:
    await taken_by_a(door)

    repeats = [await attempt(door, "same") for _ in range(4)]
    other = [(await door.send(by="free", idempotencyKey=f"f-{n}", subject=f"f{n}")).json() for n in range(2)]
    second = await attempt(door, "another")

    assert {one["reason"] for one in (*repeats, *other, second)} == {"lease_conflict"}
    assert await escalations(door) == []


async def test_after_an_hour_it_begins_anew(door: Door) -> None:
    await taken_by_a(door, minutes=240)
    await attempt(door, "one")
    await attempt(door, "two")

    door.world.advance(3601)

    assert (await attempt(door, "three"))["reason"] == "lease_conflict"


async def test_a_thread_counts_over_several_people(door: Door) -> None:
    people = [f"p{number}@example.net" for number in range(3)]
    for person in people:
        await door.post(LEASE, {"contactEmail": person}, by="a")

    answers = [await attempt(door, person, to=[person], threadId="thread-1") for person in people]

    assert [one["reason"] for one in answers] == ["lease_conflict", "lease_conflict", "conflict_escalated"]


async def test_a_batch_is_judged_as_its_mails_one_by_one(door: Door) -> None:
    await taken_by_a(door)

    answers = await asyncio.gather(*(attempt(door, f"key-{number}") for number in range(MAILS)))

    assert sorted(one["reason"] for one in answers) == ["conflict_escalated", *["lease_conflict"] * (MAILS - 1)]


async def test_a_dry_run_says_what_the_send_would_meet(door: Door) -> None:
    await taken_by_a(door)
    await attempt(door, "one")
    await attempt(door, "two")

    dry = await attempt(door, "three", dryRun=True)
    again = await attempt(door, "three", dryRun=True)

    assert (dry["reason"], again["reason"]) == ("conflict_escalated", "conflict_escalated")
    assert (await attempt(door, "three"))["reason"] == "conflict_escalated"


async def test_approved_it_waits_for_the_lease_and_no_longer(door: Door) -> None:
    lease = await taken_by_a(door)
    held = [await attempt(door, f"key-{number}") for number in range(3)][2]["requestId"]

    approved = await door.post(f"/v1/agent/requests/{held}/resolve", {"decision": "approve"}, by="operator")
    waits = (await door.get(f"/v1/agent/requests/{held}")).json()
    too_early = await door.world.nodes[0].intake.release(TENANT, held)
    await door.call("DELETE", f"{LEASE}/{lease['id']}", by="a")
    await door.world.nodes[0].intake.release(TENANT, held)

    assert approved.status_code == 200
    assert (waits["status"], waits["reason"], too_early) == ("scheduled", "lease_conflict", None)
    assert (await door.get(f"/v1/agent/requests/{held}")).json()["status"] == "queued"


async def test_a_person_rejects_it(door: Door) -> None:
    await taken_by_a(door)
    held = [await attempt(door, f"key-{number}") for number in range(3)][2]["requestId"]

    rejected = await door.post(f"/v1/agent/requests/{held}/resolve", {"decision": "reject"}, by="operator")

    assert rejected.json()["status"] == "cancelled"
