"""What is told of leases: each beginning, extension and end once, whoever notices it."""

import asyncio
from typing import Any

import pytest

from gateway.store import events, journal, lease_events
from gateway.store.tx import Tx
from gateway.store.writer import Rank
from tests.world import PAT, TENANT, World


def told(world: World) -> list[tuple[str, str, int]]:
    """Every event of leases: name, contact, token."""

    def read(tx: Tx) -> list[Any]:
        return journal.after(tx, TENANT, "", limit=10_000)

    entries = world.store.read(read, (TENANT,))
    return [(e.name, e.contact, e.data["token"]) for e in entries if e.name.startswith("lease.")]


async def sweep(world: World) -> int:
    """One look for leases that have run out; how many tenants had such."""
    found = world.store.read(lease_events.over)
    for tenant in found:
        await world.nodes[0].writer.do(Rank.LEASE, (tenant,), lease_events.tell, tenant)
    return len(found)


async def test_a_lease_that_runs_out_is_told_once(world: World) -> None:
    await world.lease("a", seconds=60)
    assert await sweep(world) == 0

    world.advance(61)

    assert (await sweep(world), await sweep(world)) == (1, 0)
    assert told(world) == [("lease.acquired", PAT, 1), ("lease.expired", PAT, 1)]


async def test_one_that_was_given_back_has_not_run_out(world: World) -> None:
    lease = await world.lease("a", seconds=60)
    await world.release(lease.id)
    world.advance(61)

    assert await sweep(world) == 0
    assert [name for name, *_ in told(world)] == ["lease.acquired", "lease.released"]


async def test_one_that_was_extended_is_told_then_and_runs_out_later(world: World) -> None:
    lease = await world.lease("a", seconds=60)
    await world.renew(lease.id, lease.token, seconds=600)
    await world.lease("a", seconds=500)
    world.advance(61)
    assert await sweep(world) == 0

    world.advance(500)
    await sweep(world)

    assert [name for name, *_ in told(world)] == ["lease.acquired", "lease.extended", "lease.extended", "lease.expired"]


async def test_whoever_takes_the_contact_before_the_sweep_tells_of_the_end_first(world: World) -> None:
    await world.lease("a", seconds=60)
    world.advance(61)

    await world.lease("b", seconds=600)
    swept = await sweep(world)

    assert swept == 0
    assert told(world) == [("lease.acquired", PAT, 1), ("lease.expired", PAT, 1), ("lease.acquired", PAT, 2)]


async def test_after_the_sweep_it_is_not_told_again(world: World) -> None:
    await world.lease("a", seconds=60)
    world.advance(61)
    await sweep(world)

    await world.lease("b", seconds=600)

    assert [name for name, *_ in told(world)] == ["lease.acquired", "lease.expired", "lease.acquired"]


async def test_many_that_end_are_told_page_by_page(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_events, "AT_ONCE", 4)
    for number in range(11):
        await world.lease("a", f"p{number}@example.net", seconds=60 + number // 3)
    world.advance(99)

    rounds = 0
    while await sweep(world):
        rounds += 1

    ends = [contact for name, contact, _ in told(world) if name == "lease.expired"]
    assert sorted(ends) == sorted(f"p{number}@example.net" for number in range(11))
    assert rounds == 3


async def test_those_that_end_at_the_same_time_are_told_together(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_events, "AT_ONCE", 2)
    await asyncio.gather(*(world.lease("a", f"p{number}@example.net", seconds=60) for number in range(9)))
    world.advance(61)

    await sweep(world)
    await sweep(world)

    assert len([name for name, *_ in told(world) if name == "lease.expired"]) == 9


def test_more_events_than_four_digits_count_stay_in_order_in_one_transaction(world: World) -> None:
    def write(tx: Tx) -> None:
        events.append(tx, [events.Event(TENANT, "consent.recorded", data={"n": 0})])
        for _ in range(0xFFFF - 1):
            tx.serial()
        events.append(tx, [events.Event(TENANT, "consent.recorded", data={"n": n}) for n in (1, 2)])

    world.store.write((TENANT,), write)
    world.store.write((TENANT,), lambda tx: events.append(tx, [events.Event(TENANT, "consent.withdrawn")]))

    found = world.store.read(lambda tx: journal.after(tx, TENANT, "", limit=10_000), (TENANT,))
    assert [one.data.get("n") for one in found if one.name.startswith("consent.")] == [0, 1, 2, None]
    assert all(journal.ID.fullmatch(one.id) for one in found)


def test_an_id_of_an_older_log_comes_before_what_was_written_later(world: World) -> None:
    world.store.write((TENANT,), lambda tx: events.append(tx, [events.Event(TENANT, "consent.recorded")]))
    (last,) = world.store.read(lambda tx: journal.after(tx, TENANT, "", limit=10_000), (TENANT,))[-1:]
    old = last.id[:-6] + "ffff"
    world.store.write((TENANT,), lambda tx: events.append(tx, [events.Event(TENANT, "consent.withdrawn")]))

    found = world.store.read(lambda tx: journal.after(tx, TENANT, old, limit=10_000), (TENANT,))
    assert journal.ID.fullmatch(old)
    assert [one.name for one in found] == ["consent.withdrawn"]
