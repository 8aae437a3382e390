"""The store's clock is the only one: never back, never still, whatever the machines' clocks do."""

import threading
from datetime import timedelta

from gateway.core.delivery import Deferred, State
from gateway.store import Store, Tx
from tests.databases import PostgresServer
from tests.world import START, TENANT, World, a_world, set_time, until_somebody_waits_for_a_lock

HOUR = 3_600_000_000


class Boot:
    """A boot-time clock that a test moves by hand (microseconds)."""

    def __init__(self) -> None:
        self.us = 1_000_000

    def __call__(self) -> int:
        return self.us


def now_of(store: Store) -> int:
    """The time of one committed transaction of the tenant."""
    return store.write((TENANT,), lambda tx: tx.now_us)


def restarted(world: World, boot: Boot) -> Store:
    """The store as a new process opens it."""
    return world.node(store=Store.open(world.url, boot=boot)).store


def test_a_moved_clock_is_moved_for_every_node(world: World) -> None:
    other = world.node().store
    before = now_of(world.store)

    world.advance(90)

    assert now_of(other) >= before + 90_000_000


def test_every_transaction_has_a_later_time_than_the_one_before(world: World) -> None:
    nodes = [world.store, world.node().store]

    times = [now_of(nodes[n % 2]) for n in range(40)]

    assert times == sorted(set(times))


def test_time_goes_on_by_a_microsecond_where_no_clock_moves(world: World) -> None:
    store = restarted(world, Boot())
    last = now_of(store)
    set_time(store, START - timedelta(hours=1))

    times = [now_of(store) for _ in range(3)]

    assert times == [last + 1, last + 2, last + 3]


def test_a_clock_set_back_an_hour_between_two_processes_takes_no_time_back(world: World) -> None:
    last = now_of(world.store)
    set_time(world.store, START - timedelta(hours=1))
    boot = Boot()
    store = restarted(world, boot)

    first = now_of(store)
    boot.us += 5_000_000
    second = now_of(store)

    assert first > last
    assert second >= first + 5_000_000


def test_readers_see_time_go_on_while_the_clock_is_behind(world: World) -> None:
    last = now_of(world.store)
    set_time(world.store, START - timedelta(hours=1))
    boot = Boot()
    store = restarted(world, boot)

    def read(tx: Tx) -> int:
        return tx.now_us

    first = store.read(read, (TENANT,))
    boot.us += 5_000_000

    assert first > last
    assert store.read(read, (TENANT,)) >= first + 5_000_000


def test_transactions_without_a_tenant_see_time_go_on_while_the_clock_is_behind(world: World) -> None:
    last = now_of(world.store)
    set_time(world.store, START - timedelta(hours=1))
    boot = Boot()
    store = restarted(world, boot)

    first = store.write((), lambda tx: tx.now_us)
    boot.us += 5_000_000

    assert first >= last
    assert store.write((), lambda tx: tx.now_us) >= first + 5_000_000


async def test_the_queue_goes_on_after_the_clock_was_set_back_an_hour(world: World) -> None:
    receipt = await world.send()
    await world.relay(await world.claim_of(receipt), Deferred("greylisted"))
    set_time(world.store, START - timedelta(hours=1))
    boot = Boot()
    node = world.node(store=Store.open(world.url, boot=boot))

    early = await world.claim(node=node)
    boot.us += 60_000_000
    claims = await world.claim(node=node)

    assert early == []
    assert [claim.send for claim in claims] == [receipt.record.id]


async def test_what_a_process_has_seen_never_goes_back_when_another_commits_earlier_times(world: World) -> None:
    now_of(world.store)
    set_time(world.store, START - timedelta(hours=1))
    boot = Boot()
    mine, other = restarted(world, boot), restarted(world, Boot())
    now_of(mine)
    boot.us += 5_000_000
    seen = mine.read(lambda tx: tx.now_us, (TENANT,))

    now_of(other)

    assert mine.read(lambda tx: tx.now_us, (TENANT,)) >= seen


async def test_cooldown_and_lease_hold_through_a_clock_set_back(world: World) -> None:
    lease = await world.lease("a", seconds=60)
    receipt = await world.send("a")
    await world.relay(await world.claim_of(receipt))
    set_time(world.store, START - timedelta(hours=1))

    again = await world.send("a")

    assert world.state(again) is State.BLOCKED
    assert again.record.decision["reason"] == "cooldown"
    assert (await world.lease("a", seconds=60)).token == lease.token


async def test_time_is_read_after_the_wait_for_the_lock(postgres_server: PostgresServer) -> None:
    async with a_world(postgres_server) as world:
        inside, go = threading.Event(), threading.Event()
        times: list[int] = []

        def hold(tx: Tx) -> None:
            inside.set()
            assert go.wait(30)

        waiting = world.node().store
        first = threading.Thread(target=lambda: world.store.write((TENANT,), hold))
        first.start()
        assert inside.wait(30)
        second = threading.Thread(target=lambda: times.append(now_of(waiting)))
        second.start()
        until_somebody_waits_for_a_lock(world.url)
        between = world.store.read(lambda tx: tx.now_us)
        go.set()
        first.join()
        second.join()

        assert times[0] >= between
