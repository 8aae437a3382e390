"""A line that moves: a lease in it was given back or has run out, and the first has not yet been told who has the contact now."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from gateway import coordination
from gateway.coordination import leases, queue
from gateway.store.contacts import Acquire, Held, Lease
from tests.coordination.test_waiting import crowd, line_up, waiting, wish
from tests.doors.door import LEASE, Door
from tests.world import PAT

PATIENCE = 20
SHORT = 0.8 / 60
"""Minutes of a lease that ends by itself: time enough to line up."""


@dataclass
class Look:
    """The looks of those who wait: when one has begun, and that they go on."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Look:
    """Who waits looks at the store when the test says so."""
    look, still = Look(), leases._still

    async def slow(*given: Any) -> None:
        look.begun.set()
        await look.go.wait()
        await still(*given)

    monkeypatch.setattr(leases, "_still", slow)
    return look


async def moving(
    door: Door, look: Look, monkeypatch: pytest.MonkeyPatch, *, how: str
) -> "asyncio.Task[httpx.Response]":
    """A line with `one` in it, for a contact that `a` had until it gave it back, or until its lease had run out."""
    await crowd(door)
    short = {"durationMinutes": SHORT} if how == "runs out" else {}
    held = (await door.post(LEASE, {"contactEmail": PAT} | short)).json()
    (task,) = await line_up(door, ("one",))
    if how == "given back":
        await door.call("DELETE", f"{LEASE}/{held['id']}")
    async with asyncio.timeout(PATIENCE):
        await look.begun.wait()
    monkeypatch.setattr(queue, "LOOK", 60)
    return task


def lines(door: Door) -> tuple[object, object]:
    """Who waits, and how many of each caller."""
    line = door.context.part(coordination.Queue)
    return line._lines, line._callers


async def soon(task: "asyncio.Task[httpx.Response]") -> dict[str, Any]:
    """The answer, which comes by itself."""
    async with asyncio.timeout(PATIENCE):
        body: dict[str, Any] = (await task).json()
    return body


def ahead(door: Door, conflict: dict[str, Any]) -> bool:
    """Whether the time to come back is still to come."""
    return datetime.fromisoformat(conflict["retryAt"]) > door.world.now


HOW = pytest.mark.parametrize("how", ["given back", "runs out"])


async def test_a_lease_that_ends_by_itself_wakes_the_line(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "LOOK", 60)
    ended = (await door.post(LEASE, {"contactEmail": PAT, "durationMinutes": SHORT})).json()["expiresAt"]
    (task,) = await line_up(door, ("b",), 20)

    got = (await task).json()

    assert got["agentId"] == door.world.agent["b"]
    assert datetime.fromisoformat(got["createdAt"]) - datetime.fromisoformat(ended) < timedelta(seconds=10)


async def test_an_extended_lease_is_waited_for_until_its_new_end(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "LOOK", 60)
    await crowd(door)
    await door.post(LEASE, {"contactEmail": PAT, "durationMinutes": SHORT})
    (task,) = await line_up(door, ("one",), 5)

    longer = (await door.post(LEASE, {"contactEmail": PAT, "durationMinutes": 2 * SHORT})).json()
    passing = (await door.post(LEASE, {"contactEmail": PAT}, by="b")).json()
    got = await soon(task)

    assert passing["leaseHolder"]["expiresAt"] == passing["retryAt"] == longer["expiresAt"]
    assert got["agentId"] == door.world.agent["one"]
    assert got["createdAt"] >= longer["expiresAt"]


@HOW
async def test_the_former_holder_does_not_pass_by_those_who_wait(
    door: Door, look: Look, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    first = await moving(door, look, monkeypatch, how=how)

    again = asyncio.create_task(door.post(LEASE, {"contactEmail": PAT}))
    waits = asyncio.create_task(door.post(LEASE, wish()))
    await waiting(door, 3)
    look.go.set()
    got, told = await soon(first), await soon(again)
    await door.call("DELETE", f"{LEASE}/{got['id']}", by="one")
    later = await soon(waits)

    assert got["agentId"] == told["leaseHolder"]["agentId"] == door.world.agent["one"]
    assert told["retryAt"] == got["expiresAt"]
    assert (later["agentId"], later["fencingToken"]) == (door.world.agent["a"], got["fencingToken"] + 1)
    assert lines(door) == ({}, {})


@HOW
async def test_who_comes_while_the_line_moves_is_told_of_the_new_holder(
    door: Door, look: Look, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    first = await moving(door, look, monkeypatch, how=how)

    passing = asyncio.create_task(door.post(LEASE, {"contactEmail": PAT}, by="b"))
    await waiting(door, 2)
    look.go.set()
    got, told = await soon(first), await soon(passing)

    assert told["leaseHolder"]["agentId"] == got["agentId"] == door.world.agent["one"]
    assert told["retryAt"] == got["expiresAt"]
    assert lines(door) == ({}, {})


@HOW
async def test_who_comes_while_the_line_moves_gets_the_contact_in_its_turn(
    door: Door, look: Look, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    first = await moving(door, look, monkeypatch, how=how)

    passing = asyncio.create_task(door.post(LEASE, {"contactEmail": PAT}, by="b"))
    await waiting(door, 2)
    first.cancel()
    await asyncio.wait([first])
    look.go.set()

    assert (await soon(passing)).get("agentId") == door.world.agent["b"]
    assert lines(door) == ({}, {})


@HOW
async def test_who_waits_shortly_is_not_kept_by_a_line_that_has_moved(
    door: Door, look: Look, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    first = await moving(door, look, monkeypatch, how=how)

    second = asyncio.create_task(door.post(LEASE, wish(30), by="two"))
    await waiting(door, 2)
    shortly = asyncio.create_task(door.post(LEASE, wish(0.5), by="b"))
    await waiting(door, 3)
    look.go.set()
    got, told = await soon(first), await soon(shortly)

    assert told["leaseHolder"]["agentId"] == got["agentId"]
    assert not second.done()
    door.context.part(coordination.Queue).end()
    assert (await soon(second))["leaseHolder"]["agentId"] == got["agentId"]


@HOW
async def test_a_line_that_moves_for_long_is_not_waited_for(
    door: Door, look: Look, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    first = await moving(door, look, monkeypatch, how=how)
    monkeypatch.setattr(queue, "LOOK", 0.1)

    told = await soon(asyncio.create_task(door.post(LEASE, {"contactEmail": PAT}, by="b")))

    assert told["conflict"] is True
    assert ahead(door, told)
    assert not first.done()
    look.go.set()
    assert (await soon(first))["agentId"] == door.world.agent["one"]


async def test_who_may_not_wait_is_not_sent_to_a_time_that_is_over(
    door: Door, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "MOST", 1)
    first = await moving(door, look, monkeypatch, how="runs out")

    told = await soon(asyncio.create_task(door.post(LEASE, wish(), by="one")))

    assert told["conflict"] is True
    assert ahead(door, told)
    look.go.set()
    assert (await soon(first))["agentId"] == door.world.agent["one"]


async def test_a_renewal_that_the_line_has_not_seen_is_no_obstacle_to_the_holder(
    door: Door, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = (await door.post(LEASE, {"contactEmail": PAT, "durationMinutes": SHORT})).json()
    (task,) = await line_up(door, ("b",))
    monkeypatch.setattr(queue, "LOOK", 60)

    await door.call("PUT", f"{LEASE}/{held['id']}", {"durationMinutes": 30})
    async with asyncio.timeout(PATIENCE):
        await look.begun.wait()
    again = asyncio.create_task(door.post(LEASE, {"contactEmail": PAT}))
    await waiting(door, 2)
    look.go.set()
    kept = await soon(again)

    assert (kept.get("id"), kept.get("fencingToken")) == (held["id"], held["fencingToken"])
    assert not task.done()
    door.context.part(coordination.Queue).end()
    assert (await soon(task))["retryAt"] == kept["expiresAt"]


async def test_the_holder_is_never_told_that_it_stands_in_its_own_way(
    door: Door, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = (await door.post(LEASE, {"contactEmail": PAT, "durationMinutes": SHORT})).json()
    await line_up(door, ("b",))
    await door.call("PUT", f"{LEASE}/{held['id']}", {"durationMinutes": 30})
    async with asyncio.timeout(PATIENCE):
        await look.begun.wait()
    monkeypatch.setattr(queue, "LOOK", 0.02)
    monkeypatch.setattr(leases, "_still", _at_once)

    kept = await soon(asyncio.create_task(door.post(LEASE, {"contactEmail": PAT})))

    assert (kept.get("id"), kept.get("fencingToken")) == (held["id"], held["fencingToken"])
    look.go.set()


async def _at_once(*_: Any) -> None:
    """The look of who is not the first."""


async def test_whose_agent_gets_the_contact_is_not_kept_waiting_for_it(door: Door) -> None:
    await crowd(door)
    held = (await door.post(LEASE, {"contactEmail": PAT})).json()
    first, between, second = await line_up(door, ("one", "two", "one"), 30)

    await door.call("DELETE", f"{LEASE}/{held['id']}")
    got, same = await soon(first), await soon(second)

    assert (same["id"], same["fencingToken"]) == (got["id"], got["fencingToken"])
    assert not between.done()
    door.context.part(coordination.Queue).end()
    assert (await soon(between))["retryAt"] == same["expiresAt"]


async def test_at_a_stop_nobody_stands_in_a_line_that_moves(
    door: Door, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await moving(door, look, monkeypatch, how="given back")
    passing = asyncio.create_task(door.post(LEASE, {"contactEmail": PAT}, by="b"))
    await waiting(door, 2)

    door.context.part(coordination.Queue).end()

    assert (await soon(passing))["conflict"] is True
    look.go.set()
    assert (await soon(first))["agentId"] == door.world.agent["one"]


async def test_who_gives_back_and_takes_in_one_moment_stands_in_the_line(
    door: Door, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    do, asks, given_back = leases._do, asyncio.Event(), asyncio.Event()

    async def between(context: Any, grant: Any, wish: Any) -> Any:  # noqa: ANN401  (as it is called)
        if not isinstance(wish, Acquire) or look.go.is_set():
            return await do(context, grant, wish)
        asks.set()
        await given_back.wait()
        answer = await do(context, grant, wish)
        look.go.set()
        return answer

    held = (await door.post(LEASE, {"contactEmail": PAT})).json()
    (task,) = await line_up(door, ("b",))
    monkeypatch.setattr(leases, "_do", between)

    again = asyncio.create_task(door.post(LEASE, {"contactEmail": PAT}))
    async with asyncio.timeout(PATIENCE):
        await asks.wait()
    await door.world.release(held["id"])
    given_back.set()
    got, told = await soon(task), await soon(again)

    assert got.get("agentId") == door.world.agent["b"]
    assert told["leaseHolder"]["agentId"] == door.world.agent["b"]


async def test_a_wish_to_keep_takes_nothing_anew(door: Door) -> None:
    world = door.world

    assert await world.acquire("a", keeps=True) is None
    lease = await world.lease("a")
    kept = await world.acquire("a", keeps=True)
    other = await world.acquire("b", keeps=True)

    assert isinstance(kept, Lease)
    assert (kept.id, kept.token) == (lease.id, lease.token)
    assert isinstance(other, Held)
    await world.release(lease.id)
    assert await world.acquire("a", keeps=True) is None
    assert (await world.lease("b")).token == lease.token + 1


@pytest.mark.parametrize("seconds", [0, 0.5, 20])
@pytest.mark.parametrize("moves", [False, True], ids=["stands", "moves"])
async def test_its_own_mail_in_flight_closes_the_contact_to_others_alone(
    door: Door, seconds: float, moves: bool
) -> None:
    held = (await door.post(LEASE, {"contactEmail": PAT})).json()
    await door.send(by="a", fencingToken=held["fencingToken"])
    if not moves:
        await door.call("DELETE", f"{LEASE}/{held['id']}")
    (task,) = await line_up(door, ("b",))
    if moves:
        await door.call("DELETE", f"{LEASE}/{held['id']}")
    before = door.context.writer.jobs

    again = await soon(asyncio.create_task(door.post(LEASE, wish(seconds))))

    assert again.get("agentId") == door.world.agent["a"], again
    assert door.context.writer.jobs - before < 10
    assert not task.done()
    door.context.part(coordination.Queue).end()
    assert (await soon(task))["leaseHolder"]["agentId"] == door.world.agent["a"]
