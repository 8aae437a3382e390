"""What a dead process held is taken up, and a living one is never robbed (ARCHITECTURE 9)."""

import os
import subprocess
import sys

import pytest

from gateway.core.delivery import Deferred, GivenBack, Relayed, State
from gateway.relay.keeper import Keeper, Watch
from gateway.store import Store, epochs, schema
from tests.world import OK, World

BUSY = Deferred("451")
SECONDS = 30.0


class Boot:
    """A boot-time clock that a test moves by hand."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> int:
        return round(self.seconds * 1_000_000)


@pytest.fixture
def boot() -> Boot:
    return Boot()


def keeper(world: World, boot: Boot) -> Keeper:
    """The keeper of a node of its own, whose clock is `boot`."""
    node = world.node(store=Store.open(world.url, boot=boot))
    return Keeper(node.store, node.writer, SECONDS)


def beat(store: Store) -> None:
    """One sign of life."""
    store.serving = True
    store.write((), lambda _: None)


async def wait_out(watcher: Keeper, boot: Boot, seconds: float = SECONDS) -> int:
    """Looks as the keeper would while time goes by; returns how many deliveries were taken up."""
    taken = await watcher.recover()
    for _ in range(int(seconds / watcher.interval) + 1):
        boot.seconds += watcher.interval
        taken += await watcher.recover()
    return taken


async def test_what_a_silent_process_had_claimed_goes_again(world: World, boot: Boot) -> None:
    watcher = keeper(world, boot)
    beat(world.store)
    receipt = await world.send()
    old = await world.claim_of(receipt)

    taken = await wait_out(watcher, boot)

    assert taken == 1
    assert world.state(receipt) is State.QUEUED
    assert await world.permit(old) is not None
    assert (await world.claim_of(receipt, world.nodes[1])).claim_no == 2


async def test_what_a_silent_process_had_permitted_is_unknown(world: World, boot: Boot) -> None:
    watcher = keeper(world, boot)
    beat(world.store)
    receipt = await world.send()
    await world.permit(await world.claim_of(receipt))

    assert await wait_out(watcher, boot) == 1
    assert world.state(receipt) is State.UNKNOWN
    assert [row["last_by"] for row in world.rows_of(schema.contacts)] == [receipt.record.id]
    assert await world.claim() == []


async def test_what_was_marked_keeps_its_mark(world: World, boot: Boot) -> None:
    watcher = keeper(world, boot)
    beat(world.store)
    receipt = await world.send()
    claim = await world.claim_of(receipt)
    await world.permit(claim)
    await world.suppress()

    await wait_out(watcher, boot)

    assert world.state(receipt) is State.UNKNOWN
    assert await world.settle(claim, GivenBack("late")) is State.BLOCKED


async def test_a_process_that_beats_is_never_robbed(world: World, boot: Boot) -> None:
    watcher = keeper(world, boot)
    receipt = await world.send()
    await world.claim_of(receipt)
    for _ in range(20):
        beat(world.store)
        boot.seconds += watcher.interval
        assert await watcher.recover() == 0

    assert world.state(receipt) is State.CLAIMED


async def test_a_watcher_that_slept_itself_has_seen_nothing(world: World, boot: Boot) -> None:
    watcher = keeper(world, boot)
    beat(world.store)
    await world.claim_of(await world.send())

    await watcher.recover()
    boot.seconds += 3600

    assert await watcher.recover() == 0


async def test_nobody_is_robbed_by_a_clock_that_jumps(world: World, boot: Boot) -> None:
    watcher = keeper(world, boot)
    beat(world.store)
    await world.claim_of(await world.send())
    await watcher.recover()
    world.advance(100_000)
    boot.seconds += 1

    assert await watcher.recover() == 0


async def test_a_process_that_wakes_after_it_was_taken_for_dead_sends_nothing(world: World, boot: Boot) -> None:
    watcher = keeper(world, boot)
    beat(world.store)
    receipt = await world.send()
    old = await world.claim_of(receipt)
    await wait_out(watcher, boot)
    new = await world.claim_of(receipt, world.nodes[1])

    assert await world.permit(old) == "claimed by another"
    assert await world.settle(old, BUSY) is None
    assert await world.permit(new) is None


async def test_a_process_that_wakes_between_permit_and_dot_gives_the_mail_back(world: World, boot: Boot) -> None:
    watcher = keeper(world, boot)
    beat(world.store)
    receipt = await world.send()
    claim = await world.claim_of(receipt)
    await world.permit(claim)
    await wait_out(watcher, boot)

    assert await world.settle(claim, GivenBack("late")) is State.QUEUED
    await world.look()
    assert await world.relay(await world.claim_of(receipt)) is State.RELAYED


async def test_a_reply_that_the_watcher_did_not_wait_for_still_counts(world: World, boot: Boot) -> None:
    watcher = keeper(world, boot)
    beat(world.store)
    receipt = await world.send()
    claim = await world.claim_of(receipt)
    await world.permit(claim)
    await wait_out(watcher, boot)

    assert await world.settle(claim, Relayed(OK)) is State.RELAYED


async def test_a_process_that_comes_back_beats_again(world: World, boot: Boot) -> None:
    watcher = keeper(world, boot)
    beat(world.store)
    await world.claim_of(await world.send())
    await wait_out(watcher, boot)
    gone = world.store.epoch not in [row["id"] for row in world.rows_of(schema.epochs)]

    beat(world.store)

    assert gone
    assert world.store.epoch in [row["id"] for row in world.rows_of(schema.epochs)]


async def test_two_watchers_take_up_once(world: World, boot: Boot) -> None:
    watchers = [keeper(world, boot), keeper(world, boot)]
    beat(world.store)
    receipt = await world.send()
    await world.claim_of(receipt)

    taken = [0, 0]
    for _ in range(8):
        for n, watcher in enumerate(watchers):
            taken[n] += await watcher.recover()
        boot.seconds += 5

    assert sum(taken) == 1
    assert world.state(receipt) is State.QUEUED


async def test_claims_of_a_process_that_has_no_epoch_any_more_are_taken_up(world: World, boot: Boot) -> None:
    """It was forgotten while it claimed, and died before it beat again."""
    watcher = keeper(world, boot)
    receipt = await world.send()
    await world.claim_of(receipt)
    assert world.rows_of(schema.epochs) == []

    assert await wait_out(watcher, boot) == 1
    assert world.state(receipt) is State.QUEUED


@pytest.fixture
def ended_process() -> str:
    """How a process that has ended had named itself."""
    code = "from gateway.store.epochs import host; print(host())"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.strip()


async def test_a_process_of_this_machine_that_is_gone_is_dead_at_once(
    world: World, boot: Boot, ended_process: str
) -> None:
    watcher = keeper(world, boot)
    beat(world.store)
    receipt = await world.send()
    await world.claim_of(receipt)
    epoch = world.store.epoch

    def move(tx: object) -> None:
        epochs.forget(tx, epoch)  # type: ignore[arg-type]
        tx.run(epochs._insert, {"id": epoch, "host": ended_process, "beat": 1, "group_no": 1, "seen_us": 0})  # type: ignore[attr-defined]

    world.store.serving = False
    world.store.write((), move)

    assert await watcher.recover() == 1
    assert world.state(receipt) is State.QUEUED


def test_this_process_is_not_gone_and_a_stranger_is_not_judged() -> None:
    mine = epochs.host()

    assert not epochs.gone(mine)
    assert not epochs.gone("")
    assert not epochs.gone("another-boot another-space 1 1")
    assert epochs.gone(" ".join([*mine.split()[:2], str(os.getpid()), "1"]))


def test_a_watch_leaves_its_own_epoch_alone() -> None:
    watch = Watch("mine", SECONDS, 5.0)

    dead = [watch.look([("mine", "", 1), ("other", "", 1)], now) for now in range(0, 40, 5)]

    assert dead == [[], [], [], [], [], [], ["other"], ["other"]]


async def test_a_keeper_that_leaves_takes_its_epoch_along_unless_it_still_holds_something(world: World) -> None:
    first, second = world.node(), world.node()
    for node in (first, second):
        life = Keeper(node.store, node.writer, SECONDS)
        await life.start()
        if node is second:
            await world.send()
            await world.claim(node=second)
        await life.stop()

    assert [row["id"] for row in world.rows_of(schema.epochs)] == [second.store.epoch]
