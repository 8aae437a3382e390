"""Law 5: two nodes, one cooldown. Concurrent nodes never both accept what only one may.

The transactions are started side by side, and each waits a moment before its commit for the other to come as far: where
nothing keeps them apart both have then judged before either has written, every time.
"""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.delivery import State
from gateway.core.errors import ConflictError
from gateway.core.record import Receipt
from gateway.store import Store, steps
from gateway.store.contacts import Lease
from tests.databases import Databases
from tests.world import Node, World, a_world, verdict

PATIENCE = 0.1
"""Seconds that a transaction waits at its commit for the other one, which a lock keeps from coming."""


class Meeting:
    """A place where two threads wait for each other; who comes alone goes on after a while."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.renew()

    def renew(self) -> None:
        self._barrier = threading.Barrier(2)

    def __call__(self) -> None:
        with contextlib.suppress(threading.BrokenBarrierError):
            self._barrier.wait(self.seconds)


class SideBySide:
    """Two nodes with a thread each, whose next transactions begin together."""

    def __init__(self, world: World) -> None:
        self.nodes = [world.node(threads=True), world.node(threads=True)]
        self.start, self.end = Meeting(10.0), Meeting(PATIENCE)
        for node in self.nodes:
            self._begin_together(node.store)

    def _begin_together(self, store: Store) -> None:
        begin = store.dialect.begin

        def together(cursor: Any, tenants: Sequence[str]) -> None:  # noqa: ANN401
            self.start()
            begin(cursor, tenants)

        store.dialect.begin = together  # type: ignore[method-assign]

    async def both(self, first: Awaitable[Any], second: Awaitable[Any]) -> list[Any]:
        """Runs two acts, one on each node."""
        self.start.renew()
        self.end.renew()
        steps.armed["commit.before"] = self.end
        try:
            return list(await asyncio.gather(first, second, return_exceptions=True))
        finally:
            steps.armed.clear()


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    steps.armed.clear()


def accepted(result: object) -> bool:
    """Whether an act got what only one may have."""
    if isinstance(result, Receipt):
        return not result.replayed and State.QUEUED in {delivery.state for delivery in result.record.deliveries}
    return isinstance(result, Lease)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two acts about one person, of which exactly one may succeed, and what the loser is told."""

    name: str
    acts: Callable[[World, tuple[Node, Node], str], tuple[Awaitable[Any], Awaitable[Any]]]
    loser: str


PAIRS = [
    Pair(
        "two agents send",
        lambda w, n, p: (w.send("a", p, node=n[0]), w.send("b", p, node=n[1])),
        "lease_conflict",
    ),
    Pair("one agent sends twice", lambda w, n, p: (w.send("a", p, node=n[0]), w.send("a", p, node=n[1])), "cooldown"),
    Pair("two agents acquire", lambda w, n, p: (w.acquire("a", p, node=n[0]), w.acquire("b", p, node=n[1])), "held"),
    Pair(
        "one acquires, another sends",
        lambda w, n, p: (w.acquire("a", p, node=n[0]), w.send("b", p, node=n[1])),
        "held or lease_conflict",
    ),
    Pair(
        "one key, twice",
        lambda w, n, p: (w.send("a", p, key=p, node=n[0]), w.send("a", p, key=p, node=n[1])),
        "replayed",
    ),
    Pair(
        "one key, two contents",
        lambda w, n, p: (
            w.send("a", p, key=p, node=n[0]),
            w.send("a", f"other-{p}", key=p, subject="another thing", node=n[1]),
        ),
        "idempotency_key_reused",
    ),
]


def lost(result: object) -> str:
    """What the loser was told, in a word."""
    if isinstance(result, ConflictError):
        return result.slug
    if isinstance(result, Receipt):
        return "replayed" if result.replayed else str(verdict(result)[1])
    return "held"


@settings(max_examples=4)
@given(rounds=st.lists(st.tuples(st.sampled_from(PAIRS), st.booleans()), min_size=3, max_size=6))
async def test_of_two_that_come_at_the_same_time_one_is_accepted(
    databases: Databases, rounds: list[tuple[Pair, bool]]
) -> None:
    async with a_world(databases) as world:
        side = SideBySide(world)
        for number, (pair, swapped) in enumerate(rounds):
            first, second = side.nodes[::-1] if swapped else side.nodes

            results = await side.both(*pair.acts(world, (first, second), f"p{number}@example.net"))

            won = [accepted(result) for result in results]
            assert won.count(True) == 1, (pair.name, results)
            assert lost(results[won.index(False)]) in pair.loser, pair.name


async def test_of_two_for_the_last_unit_one_goes(databases: Databases) -> None:
    async with a_world(databases, {"quota": {"tenant_hour": 1}}) as world:
        side = SideBySide(world)

        results = await side.both(
            world.send("a", "p0@example.net", node=side.nodes[0]), world.send("b", "p1@example.net", node=side.nodes[1])
        )

        assert sorted(verdict(result) for result in results) == [("defer", "hourly_limit_exceeded"), ("pass", None)]


async def test_a_suppression_beside_a_send_leaves_nothing_to_go(databases: Databases) -> None:
    async with a_world(databases) as world:
        side = SideBySide(world)
        for number in range(4):
            person = f"p{number}@example.net"

            receipt, _ = await side.both(
                world.send("a", person, node=side.nodes[0]), world.suppress(person, node=side.nodes[1])
            )

            assert world.state(receipt) is State.BLOCKED
        assert await world.claim() == []


async def test_a_refused_key_that_is_tried_again_twice_is_one_send(databases: Databases) -> None:
    async with a_world(databases) as world:
        side = SideBySide(world)
        entry, _ = await world.suppress()
        refused = await world.send(key="once")
        await world.unsuppress(entry.id)

        results = await side.both(
            world.send(key="once", node=side.nodes[0]), world.send(key="once", node=side.nodes[1])
        )

        assert {result.record.id for result in results} == {refused.record.id}
        assert [result.replayed for result in results].count(False) == 1
        assert len(await world.claim()) == 1
