"""Waiting for a contact: in the order of arrival, to the end of the lease, no longer than was asked for."""

import asyncio
from typing import Any

import httpx
import pytest

from gateway import coordination
from gateway.coordination import queue
from tests.doors.door import LEASE, Door, faults, problem
from tests.world import PAT

KEYS = "/v1/agent/keys"
CHANGES = [
    (("DELETE", f"{KEYS}/{{}}", None), 401, "unauthorized"),
    (("PATCH", f"{KEYS}/{{}}", {"scopes": ["read"]}), 403, "insufficient_scope"),
    (("POST", f"{KEYS}/{{}}/bind", {"agentName": "five"}), 403, "agent_mismatch"),
]
NAMES = ("one", "two", "three", "four", "five")


async def crowd(door: Door) -> None:
    """Five agents, each with a key of its own."""
    for name in NAMES:
        made = await door.post("/v1/agent/register", {"agentName": name}, by="operator")
        door.world.agent[name] = made.json()["id"]
        door.add_key(name, agent=name)


def wish(seconds: float = 20, **more: Any) -> dict[str, Any]:
    return {"contactEmail": PAT, "waitSeconds": seconds} | more


async def waiting(door: Door, count: int) -> None:
    """Until so many stand in line."""
    line = door.context.part(coordination.Queue)._lines
    async with asyncio.timeout(20):
        while sum(len(one.waiters) for one in line.values()) < count:  # noqa: ASYNC110 - the line has no bell of its own
            await asyncio.sleep(0)


async def line_up(door: Door, names: tuple[str, ...], seconds: float = 20) -> list["asyncio.Task[httpx.Response]"]:
    """One after the other begins to wait."""
    tasks = []
    for number, name in enumerate(names, 1):
        tasks.append(asyncio.create_task(door.post(LEASE, wish(seconds), by=name)))
        await waiting(door, number)
    return tasks


async def test_those_who_wait_are_served_in_the_order_in_which_they_came(door: Door) -> None:
    await crowd(door)
    held = (await door.post(LEASE, {"contactEmail": PAT}, by="a")).json()
    order = ("three", "one", "five", "two", "four")
    tasks = await line_up(door, order)

    for number, name in enumerate(order):
        await door.call("DELETE", f"{LEASE}/{held['id']}", by="a" if number == 0 else order[number - 1])
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=20)
        (task,) = done
        held = task.result().json()
        assert held["agentId"] == door.world.agent[name]
        tasks.remove(task)

    assert tasks == []


async def test_who_does_not_wait_does_not_pass_by_those_who_do(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "LOOK", 60)
    await crowd(door)
    held = (await door.post(LEASE, {"contactEmail": PAT}, by="a")).json()
    (task,) = await line_up(door, ("one",))
    door.context.part(coordination.Queue).freed = lambda *_: None  # type: ignore[method-assign]  # the line hears late

    await door.call("DELETE", f"{LEASE}/{held['id']}", by="a")
    passing = (await door.post(LEASE, {"contactEmail": PAT}, by="b")).json()
    door.context.part(coordination.Queue)._lines[next(iter(door.context.part(coordination.Queue)._lines))].waiters[
        0
    ].turn.set()

    assert passing["conflict"] is True
    assert (await task).json()["agentId"] == door.world.agent["one"]


async def test_the_holder_extends_its_lease_though_others_wait(door: Door) -> None:
    held = (await door.post(LEASE, {"contactEmail": PAT}, by="a")).json()
    (task,) = await line_up(door, ("b",))

    again = (await door.post(LEASE, {"contactEmail": PAT, "durationMinutes": 60}, by="a")).json()
    await door.call("DELETE", f"{LEASE}/{held['id']}", by="a")
    got = (await task).json()
    kept = (await door.post(LEASE, {"contactEmail": PAT}, by="b")).json()

    assert (again["id"], again["fencingToken"]) == (held["id"], held["fencingToken"])
    assert (kept["id"], kept["fencingToken"]) == (got["id"], got["fencingToken"])


async def test_a_lease_that_runs_out_is_noticed(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "LOOK", 0.02)
    await door.post(LEASE, {"contactEmail": PAT, "durationMinutes": 5}, by="a")
    (task,) = await line_up(door, ("b",))

    door.world.advance(301)

    assert (await task).json()["agentId"] == door.world.agent["b"]


async def test_a_lease_that_another_node_gave_back_is_noticed(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "LOOK", 0.02)
    held = (await door.post(LEASE, {"contactEmail": PAT}, by="a")).json()
    (task,) = await line_up(door, ("b",))

    await door.world.release(held["id"])

    assert (await task).json()["agentId"] == door.world.agent["b"]


async def test_when_the_time_is_over_the_answer_is_the_usual_conflict(door: Door) -> None:
    await door.post(LEASE, {"contactEmail": PAT}, by="a")

    waited = await door.post(LEASE, wish(0.05), by="b")
    strict = await door.post(LEASE, wish(0.05), by="b", headers={"Prefer": "handling=strict"})
    at_once = await door.post(LEASE, wish(0), by="b")

    assert waited.json() == at_once.json()
    assert waited.json()["leaseHolder"]["agentId"] == door.world.agent["a"]
    assert (strict.status_code, strict.json()["error"]) == (409, "lease_conflict")
    assert door.context.part(coordination.Queue)._lines == {}


async def test_who_has_hung_up_gets_nothing(door: Door) -> None:
    held = (await door.post(LEASE, {"contactEmail": PAT}, by="a")).json()
    tasks = await line_up(door, ("b",))
    tasks[0].cancel()
    await asyncio.wait(tasks)

    await door.call("DELETE", f"{LEASE}/{held['id']}", by="a")

    assert (await door.get(f"{LEASE}s")).json() == []
    assert door.context.part(coordination.Queue)._lines == {}


async def test_at_a_stop_nobody_waits_any_longer(door: Door) -> None:
    await door.post(LEASE, {"contactEmail": PAT}, by="a")
    (task,) = await line_up(door, ("b",))

    door.context.part(coordination.Queue).end()

    assert (await task).json()["conflict"] is True
    assert (await door.post(LEASE, wish(30), by="b")).json()["conflict"] is True


async def test_of_one_caller_only_so_many_wait(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MOST", 2)
    await crowd(door)
    await door.post(LEASE, {"contactEmail": PAT}, by="a")
    tasks = [asyncio.create_task(door.post(LEASE, wish(20), by="one")) for _ in range(2)]
    await waiting(door, 2)

    third = await door.post(LEASE, wish(20), by="one")
    other = asyncio.create_task(door.post(LEASE, wish(20), by="two"))
    await waiting(door, 3)

    assert third.json()["conflict"] is True
    door.context.part(coordination.Queue).end()
    assert [answer.json()["conflict"] for answer in await asyncio.gather(*tasks, other)] == [True] * 3
    assert door.context.part(coordination.Queue)._callers == {}


@pytest.mark.parametrize("seconds", [-1, 31, "5", None, True])
async def test_a_wait_has_a_limit(wire: Door, seconds: object) -> None:
    assert faults(await wire.post(LEASE, wish() | {"waitSeconds": seconds})) == ["waitSeconds"]


async def test_leases_are_found_by_contact_and_by_agent(door: Door) -> None:
    await door.post(LEASE, {"contactEmail": PAT}, by="a")
    await door.post(LEASE, {"contactEmail": "kim@example.net"}, by="b")

    by_contact = (await door.get(f"{LEASE}s", params={"contactEmail": PAT.upper()})).json()
    by_agent = (await door.get(f"{LEASE}s", params={"agent": "b"})).json()
    nobody = (await door.get(f"{LEASE}s", params={"agent": "b", "contactEmail": PAT})).json()

    assert [one["agentName"] for one in by_contact] == ["a"]
    assert [one["contactEmail"] for one in by_agent] == ["kim@example.net"]
    assert nobody == []
    assert (await door.get(f"{LEASE}s", params={"agent": "who"})).status_code == 404


@pytest.mark.parametrize(("change", "status", "slug"), CHANGES)
async def test_a_key_that_was_changed_while_it_waited_gets_nothing(
    door: Door, change: tuple[str, str, dict[str, Any] | None], status: int, slug: str
) -> None:
    await crowd(door)
    held = (await door.post(LEASE, {"contactEmail": PAT}, by="a")).json()
    first, second = await line_up(door, ("one", "two"))
    method, path, body = change

    changed = await door.call(method, path.format(door.ids["one"]), body, by="operator")
    await door.call("DELETE", f"{LEASE}/{held['id']}", by="a")

    assert changed.status_code == 200, changed.text
    problem(await first, status, slug)
    assert (await second).json()["agentId"] == door.world.agent["two"]
