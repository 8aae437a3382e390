"""The grouped writer: one transaction takes everyone who waits along, and one poisonous job harms only itself."""

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from gateway.core.errors import StoreUnavailableError
from gateway.store import Store, Tx, schema
from gateway.store import writer as module
from gateway.store.writer import MAX_DECISIONS, Rank, Writer
from tests.world import TENANT, World


@pytest.fixture
def gate(world: World) -> "Gate":
    """A writer with a thread whose first group waits until the test lets it go."""
    return Gate(world)


class Gate:
    """Holds the writer's thread inside a group, so that others gather."""

    def __init__(self, world: World) -> None:
        self.writer = world.node(threads=True).writer
        self._inside = threading.Event()
        self._go = threading.Event()

    def _wait(self, tx: Tx, jobs: Sequence[None]) -> Sequence[None]:
        self._inside.set()
        assert self._go.wait(30)
        return jobs

    async def close(self) -> "asyncio.Task[None]":
        """Returns once a group is under way and waits."""
        task = asyncio.create_task(self.writer.do(Rank.FORBID, (), self._wait, None))
        assert await asyncio.to_thread(self._inside.wait, 30)
        return task

    def open(self) -> None:
        self._go.set()


def echo(seen: list[Any]) -> Any:  # noqa: ANN401
    """Work that answers each job with its argument and notes it."""

    def work(tx: Tx, jobs: Sequence[Any]) -> Sequence[Any]:
        seen.extend(jobs)
        return jobs

    return work


async def test_whoever_waits_goes_into_the_next_group(gate: Gate) -> None:
    first = await gate.close()
    work = echo([])
    rest = [asyncio.create_task(gate.writer.do(Rank.LEASE, (TENANT,), work, n)) for n in range(20)]
    await asyncio.sleep(0)
    gate.open()

    assert await asyncio.gather(*rest) == list(range(20))
    await first
    assert (gate.writer.groups, gate.writer.jobs) == (2, 21)


async def test_inside_a_group_what_forbids_comes_first_and_decisions_last(gate: Gate) -> None:
    await gate.close()
    seen: list[Rank] = []
    work = echo(seen)
    ranks = [Rank.DECIDE, Rank.CLAIM, Rank.LEASE, Rank.SETTLE, Rank.PERMIT, Rank.FORBID]
    tasks = [asyncio.create_task(gate.writer.do(rank, (TENANT,), work, rank)) for rank in ranks]
    await asyncio.sleep(0)
    gate.open()
    await asyncio.gather(*tasks)

    assert seen == [Rank.FORBID, Rank.PERMIT, Rank.SETTLE, Rank.LEASE, Rank.CLAIM, Rank.DECIDE]


async def test_a_group_has_at_most_so_many_decisions_and_leaves_no_permit_behind(gate: Gate) -> None:
    await gate.close()
    groups: list[list[str]] = []

    def work(tx: Tx, jobs: Sequence[str]) -> Sequence[str]:
        groups.append(list(jobs))
        return jobs

    names = [f"d{n}" for n in range(MAX_DECISIONS + 10)]
    tasks = [asyncio.create_task(gate.writer.do(Rank.DECIDE, (TENANT,), work, name)) for name in names]
    tasks += [asyncio.create_task(gate.writer.do(Rank.PERMIT, (), work, f"p{n}")) for n in range(3)]
    await asyncio.sleep(0)
    gate.open()
    await asyncio.gather(*tasks)

    assert groups == [["p0", "p1", "p2"], names[:MAX_DECISIONS], names[MAX_DECISIONS:]]


async def test_too_many_that_wait_are_turned_away(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 3)
    await gate.close()
    tasks = [asyncio.create_task(gate.writer.do(Rank.LEASE, (), echo([]), n)) for n in range(4)]
    await asyncio.sleep(0)
    gate.open()

    results = await asyncio.gather(*tasks, return_exceptions=True)

    assert results[:3] == [0, 1, 2]
    assert isinstance(results[3], StoreUnavailableError)


async def test_a_poisonous_job_harms_only_itself(world: World) -> None:
    """The group is rolled back and tried again one by one: nothing of the failed tries stays, nothing is done twice."""
    insert = schema.counters.insert()

    def work(tx: Tx, jobs: Sequence[int]) -> Sequence[int]:
        for n in jobs:
            tx.run(_insert_counter, {"tenant": TENANT, "slot": f"slot {n}", "used": n})
            if n == 3:
                raise ValueError("poison")
        return jobs

    results = await asyncio.gather(
        *(world.nodes[0].writer.do(Rank.LEASE, (TENANT,), work, n) for n in range(6)), return_exceptions=True
    )

    assert insert is not None
    assert [result for result in results if not isinstance(result, BaseException)] == [0, 1, 2, 4, 5]
    assert isinstance(results[3], ValueError)
    assert [row["used"] for row in world.rows_of(schema.counters)] == [0, 1, 2, 4, 5]


def _insert_counter(_: object) -> Any:  # noqa: ANN401
    return schema.counters.insert()


async def test_a_poisonous_kind_of_job_harms_no_other_kind(world: World) -> None:
    def poison(tx: Tx, jobs: Sequence[int]) -> Sequence[int]:
        raise ValueError("poison")

    bad = world.nodes[0].writer.do(Rank.FORBID, (TENANT,), poison, 0)
    results = await asyncio.gather(bad, world.send(), world.acquire("a"), return_exceptions=True)

    assert isinstance(results[0], ValueError)
    assert not any(isinstance(result, BaseException) for result in results[1:])


async def test_work_that_forgets_to_answer_leaves_nobody_waiting(world: World) -> None:
    def lazy(tx: Tx, jobs: Sequence[int]) -> Sequence[int]:
        return jobs[1:]

    async with asyncio.timeout(30):
        results = await asyncio.gather(
            *(world.nodes[0].writer.do(Rank.LEASE, (TENANT,), lazy, n) for n in range(3)),
            world.send(),
            return_exceptions=True,
        )

    assert [isinstance(result, AssertionError) for result in results] == [True, True, True, False]


async def test_a_passing_failure_is_not_noticed(world: World) -> None:
    outage = world.store.dialect.outages[0]
    tries: list[int] = []

    def work(tx: Tx, jobs: Sequence[int]) -> Sequence[int]:
        tries.append(len(jobs))
        if len(tries) == 1:
            raise outage("deadlock")
        return jobs

    results = await asyncio.gather(*(world.nodes[0].writer.do(Rank.LEASE, (TENANT,), work, n) for n in range(3)))

    assert results == [0, 1, 2]
    assert tries == [3, 3]


async def test_a_store_that_cannot_answer_answers_everybody(world: World) -> None:
    outage = world.store.dialect.outages[0]
    tries: list[int] = []

    def work(tx: Tx, jobs: Sequence[int]) -> Sequence[int]:
        tries.append(len(jobs))
        raise outage("disk full")

    results = await asyncio.gather(
        *(world.nodes[0].writer.do(Rank.LEASE, (TENANT,), work, n) for n in range(5)), return_exceptions=True
    )

    assert [type(result) for result in results] == [StoreUnavailableError] * 5
    assert tries == [5, 5]
    assert (await world.send()).record.deliveries


async def test_a_caller_that_is_cancelled_cancels_nothing(world: World, gate: Gate) -> None:
    await gate.close()
    counted = asyncio.create_task(gate.writer.do(Rank.LEASE, (TENANT,), _count_jobs, 1))
    other = asyncio.create_task(gate.writer.do(Rank.LEASE, (TENANT,), _count_jobs, 2))
    await asyncio.sleep(0)
    counted.cancel()
    await asyncio.wait({counted})
    gate.open()

    assert await other == 2
    assert counted.cancelled()
    assert [row["used"] for row in world.rows_of(schema.counters)] == [1, 2]


def _count_jobs(tx: Tx, jobs: Sequence[int]) -> Sequence[int]:
    for n in jobs:
        tx.run(_insert_counter, {"tenant": TENANT, "slot": f"slot {n}", "used": n})
    return jobs


async def test_close_waits_for_whoever_waits(gate: Gate) -> None:
    await gate.close()
    tasks = [asyncio.create_task(gate.writer.do(Rank.LEASE, (), echo([]), n)) for n in range(3)]
    await asyncio.sleep(0)
    closing = asyncio.create_task(gate.writer.close())
    gate.open()
    await closing

    assert [task.result() for task in tasks] == [0, 1, 2]


async def test_tenants_that_do_not_exist_harm_only_who_names_them(world: World) -> None:
    good = world.send()
    bad = world.nodes[0].writer.do(Rank.LEASE, ("nobody",), echo([]), 1)

    results = await asyncio.gather(good, bad, return_exceptions=True)

    assert not isinstance(results[0], BaseException)
    assert isinstance(results[1], Exception)


# --- lines that die ----------------------------------------------------------------------------------------------------


async def test_a_connection_that_died_between_two_groups_is_replaced(world: World) -> None:
    await world.send()
    assert world.store._writer is not None
    world.store._writer.close()

    assert (await world.send()).record.deliveries


async def test_readers_outlive_connections_that_died(world: World) -> None:
    world.store.read(lambda tx: tx.now_us)
    for connection in world.store._readers:
        connection.close()

    assert world.store.read(lambda tx: tx.now_us)


def test_all_connections_cut_by_the_database_are_replaced(postgres_url: str) -> None:
    store = Store.open(postgres_url)
    try:
        store.read(lambda tx: tx.now_us)
        store.write((), lambda tx: tx.now_us)
        with psycopg.connect(store.dialect.url, autocommit=True) as line:  # type: ignore[attr-defined]
            line.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

        assert store.read(lambda tx: tx.now_us)
        assert store.write((), lambda tx: tx.now_us)
    finally:
        store.close()


async def test_a_read_does_not_wait_for_a_write(world: World) -> None:
    inside, go = threading.Event(), threading.Event()

    def hold(tx: Tx) -> None:
        inside.set()
        assert go.wait(30)

    writing = threading.Thread(target=lambda: world.store.write((TENANT,), hold))
    writing.start()
    assert inside.wait(30)
    reading = threading.Thread(target=lambda: world.store.read(lambda tx: tx.now_us))
    reading.start()
    reading.join(5)
    waited = reading.is_alive()
    go.set()
    writing.join()
    reading.join()

    assert not waited


async def test_a_reader_can_write_nothing(world: World) -> None:
    with pytest.raises((sqlite3.Error, psycopg.Error, StoreUnavailableError)):
        world.store.read(lambda tx: tx.run(_insert_counter, {"tenant": TENANT, "slot": "x", "used": 1}))

    assert world.rows_of(schema.counters) == []


def test_a_writer_starts_no_thread_before_its_first_group(world: World) -> None:
    before = threading.active_count()

    Writer(world.store)

    assert threading.active_count() == before
