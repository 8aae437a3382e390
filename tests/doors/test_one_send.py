"""One key, one send: replays, keys in headers, derived keys, races (SEMANTICS 5)."""

import asyncio

import pytest

from tests.databases import Databases
from tests.doors.door import Door, a_door, problem
from tests.world import BOXES, PAT, a_world

STRICT = {"Prefer": "handling=strict"}


async def test_a_replay_is_quiet_and_says_so(door: Door) -> None:
    first = await door.accepted()
    before = door.world.rows()

    answer = await door.send(to=["Pat@Example.NET"], idempotencyKey=..., dedupeKey="once")

    assert answer.headers["idempotent-replayed"] == "true"
    assert answer.json() == first | {"replayed": True}
    assert door.world.rows() == before


@pytest.mark.parametrize("given", ["once", '"once"', " once "])
async def test_the_key_may_come_in_a_header(door: Door, given: str) -> None:
    await door.accepted()

    answer = await door.send(idempotencyKey=..., headers={"Idempotency-Key": given})
    both = await door.send(headers={"Idempotency-Key": given})

    assert answer.json()["replayed"] is True
    assert both.json()["replayed"] is True


async def test_a_key_of_another_message_is_refused_for_everybody(door: Door) -> None:
    first = await door.accepted()

    for headers in ({}, STRICT):
        body = problem(await door.send(subject="other", headers=headers), 422, "idempotency_key_reused")
        assert body["requestId"] == first["requestId"]
        assert body["nextAction"]
    assert (await door.send(idempotencyKey="ONCE", to="other@example.net")).json()["status"] == "queued"


async def test_a_key_belongs_to_its_mailbox(door: Door) -> None:
    first = await door.accepted(from_=BOXES[0])
    other = await door.accepted(from_=BOXES[1], to="other@example.net")

    assert first["requestId"] != other["requestId"]


async def test_without_a_key_one_is_derived_and_the_answer_says_so(door: Door) -> None:
    first = await door.accepted(idempotencyKey=...)
    again = (await door.send(idempotencyKey=...)).json()

    assert first["warnings"] == ["derived_key"]
    assert again["replayed"] is True
    assert again["requestId"] == first["requestId"]


@pytest.mark.parametrize(
    "changes",
    [{"subject": "x"}, {"text": "x"}, {"threadId": "t"}, {"campaignAction": "c"}, {"to": "other@example.net"}],
)
async def test_another_mail_has_another_derived_key(door: Door, changes: dict[str, str]) -> None:
    first = await door.accepted(idempotencyKey=...)

    other = (await door.send(idempotencyKey=..., **changes)).json()

    assert other["idempotencyKey"] != first["idempotencyKey"]


async def test_of_thirty_at_once_one_is_decided_and_no_one_fails(databases: Databases) -> None:
    async with a_world(databases) as world:
        world.node(threads=True)
        world.nodes.reverse()
        async with a_door(world) as door:
            answers = await asyncio.gather(*(door.send() for _ in range(30)))

    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["requestId"] for answer in answers}) == 1
    assert [answer.json()["replayed"] for answer in answers].count(False) == 1


async def test_a_refused_key_is_judged_anew_under_its_id(door: Door) -> None:
    entry, _ = await door.world.suppress(PAT)
    blocked = (await door.send()).json()
    await door.world.unsuppress(entry.id)

    taken = await door.accepted()

    assert taken["requestId"] == blocked["requestId"]
    assert taken["replayed"] is False
