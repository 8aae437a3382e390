"""Gateways are killed, stopped and ended under load, at named steps and at random moments; the history shows no harm.

On SQLite the gateway that died is started again; on PostgreSQL another one lives on and takes up what it held.
"""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests import servers
from tests.faults.conftest import Place
from tests.faults.crowd import COOLDOWN, Crowd, mail
from tests.faults.stage import Order, Stage, a_stage, stopped
from tests.servers import Served

COMMITS = ("commit.before", "commit.after")
STEPS = (*COMMITS, "claimed", "permit.before", "body.sent", "permit.committed", "dot.sent", "reply.read")
FAR = 40
"""A step is met at random up to so many times before it kills; a commit is met more often than a mail."""


@asynccontextmanager
async def under_load(crowd: Crowd, *gateways: Served) -> AsyncIterator[None]:
    """Let the crowd send while the block runs."""
    going = asyncio.Event()
    going.set()
    work = asyncio.create_task(crowd.work(gateways, going))
    try:
        yield
    finally:
        going.clear()
        await work


@asynccontextmanager
async def a_crowded_stage(place: Place, seed: int, hang_ups: float = 0.0) -> AsyncIterator[tuple[Stage, Crowd]]:
    """A stage with a mixed crowd."""
    async with a_stage(place.url, place.key, cooldown_seconds=COOLDOWN) as stage:
        yield stage, Crowd.mixed(stage, seed, hang_ups)


async def all_wrong(stage: Stage, crowd: Crowd, what: str, **about: Any) -> list[object]:
    """What is wrong in the end: a promise broken, or an act that the crowd never came to.

    Prints what was played, with its numbers.
    """
    print(f"{what}: {crowd.shares()}")  # noqa: T201 - the numbers of a run
    broken = await stage.judged_at_last(cooldown=COOLDOWN, **about)
    missing = [f"there was nothing {kind}" for kind, count in crowd.kinds().items() if not count]
    return [*broken, *missing]


async def gone(served: Served) -> None:
    """Return once the process has killed itself."""
    await asyncio.to_thread(served.process.wait, servers.PATIENCE)
    assert served.process.returncode == -signal.SIGKILL


async def killed_at(stage: Stage, crowd: Crowd, step: str, others: list[Served]) -> None:
    """One gateway kills itself at a step, under load."""
    on = crowd.dice.randrange(2, FAR)
    try:
        victim = await stage.gateway(steps={step: {"do": "kill", "on": on}})
    except servers.EndedError as ended:  # it wrote so often before it was ready
        assert ended.code == -signal.SIGKILL  # noqa: PT017
        return
    async with under_load(crowd, victim, *others):
        await gone(victim)


async def killed_sometime(stage: Stage, crowd: Crowd, others: list[Served]) -> None:
    """One gateway is killed at a random moment, counted in mails that the sink has taken."""
    victim = await stage.gateway()
    async with under_load(crowd, victim, *others):
        await stage.sink.wait(len(stage.sink.mails) + crowd.dice.randrange(1, 60), servers.PATIENCE)
        await asyncio.to_thread(victim.kill)


async def settled(stage: Stage, crowd: Crowd, others: list[Served]) -> None:
    """Have a gateway, go on a little, ask again for all that was not answered, and wait until nothing is on its way."""
    served = others[0] if others else await stage.gateway()
    await crowd.go_on(served)
    await crowd.ask_again(served)
    await stage.drained()


async def survivors(stage: Stage, place: Place) -> list[Served]:
    """On PostgreSQL a gateway that lives through all kills."""
    return [await stage.gateway()] if place.postgres else []


async def test_kills_at_every_step_lose_nothing_and_double_nothing(place: Place, seed: int, rounds: int) -> None:
    async with a_crowded_stage(place, seed, hang_ups=0.05) as (stage, crowd):
        others = await survivors(stage, place)
        steps = STEPS if rounds == 20 else STEPS * 13
        for step in steps:
            await killed_at(stage, crowd, step, others)
        await settled(stage, crowd, others)

        assert await all_wrong(stage, crowd, f"{len(steps)} kills at steps") == []


async def test_kills_at_random_moments_lose_nothing_and_double_nothing(place: Place, seed: int, rounds: int) -> None:
    async with a_crowded_stage(place, seed, hang_ups=0.05) as (stage, crowd):
        others = await survivors(stage, place)
        kills = 6 if rounds == 20 else 100
        for _ in range(kills):
            await killed_sometime(stage, crowd, others)
        await settled(stage, crowd, others)

        assert await all_wrong(stage, crowd, f"{kills} kills at random") == []


@pytest.mark.parametrize(
    ("step", "ends"),
    [
        ("claimed", ("relayed", 1)),
        ("permit.before", ("relayed", 1)),
        ("body.sent", ("relayed", 1)),
        ("permit.committed", ("unknown", 0)),
        ("dot.sent", ("unknown", 1)),
        ("reply.read", ("unknown", 1)),
    ],
)
async def test_what_a_kill_leaves_is_known_by_its_step(place: Place, step: str, ends: tuple[str, int]) -> None:
    async with a_stage(place.url, place.key) as stage:
        victim = await stage.gateway(steps={step: {"do": "kill"}})
        operator = await stage.player(victim, place.key, "operator")
        await stage.one(Order(operator, "send", mail("pat")))
        await gone(victim)
        await stage.sink.until(lambda: not stage.sink.connected, servers.PATIENCE)
        await stage.gateway()
        await stage.drained()
        broken = await stage.judged_at_last()
        (row,) = stage.history().rows.deliveries

        assert (row["state"], len(stage.arrivals)) == ends
        assert broken == []


async def test_a_kill_in_the_middle_of_a_body_repeats_it(place: Place) -> None:
    async with a_stage(place.url, place.key, script="BODY ONCE WAIT", receive_buffer=4096) as stage:
        victim = await stage.gateway()
        operator = await stage.player(victim, place.key, "operator")
        await stage.one(Order(operator, "send", mail("pat", "a long line of text\n" * 200_000)))
        await stage.sink.until(lambda: stage.sink.waiting == 1, servers.PATIENCE)
        await asyncio.to_thread(victim.kill)
        stage.sink.go()
        await stage.gateway()
        await stage.drained()
        broken = await stage.judged_at_last()
        (row,) = stage.history().rows.deliveries

        assert (row["state"], row["claim_no"], len(stage.arrivals)) == ("relayed", 2, 1)
        assert broken == []


STOPS = {
    "claimed": 2,
    "permit.before": 2,
    "permit.committed": 2,
    "dot.sent": 1,
    "reply.read": 1,
}
"""Where a worker stops for longer than CLAIM_SECONDS, and by which claim its mail leaves in the end."""


async def test_a_worker_that_sleeps_too_long_harms_nobody_when_it_wakes(place: Place) -> None:
    async with a_stage(
        place.url, place.key, claim_seconds=8
    ) as stage:  # longer than each of them lives before it stops
        door = await stage.gateway("http")
        operator = await stage.player(door, place.key, "operator")
        sleepers = []
        for step in STOPS:
            sleepers.append(await stage.gateway("relay", steps={step: {"do": "stop"}}))
            await stage.one(Order(operator, "send", mail(step)))
            await asyncio.to_thread(stopped, sleepers[-1])
        heir = await stage.gateway("relay")
        for _ in sleepers:
            await asyncio.to_thread(heir.wait_for, "a process has ended; its deliveries are taken up")
        between = {row["contact"].partition("@")[0]: row["state"] for row in stage.history().rows.deliveries}
        for sleeper in sleepers:
            stage.wake(sleeper)
        await stage.until(lambda history: {row["state"] for row in history.rows.deliveries} == {"relayed"})
        broken = await stage.judged_at_last()

        rows = {row["contact"].partition("@")[0]: row for row in stage.history().rows.deliveries}
        assert {name: between[name] for name in ("permit.committed", "dot.sent", "reply.read")} == dict.fromkeys(
            ("permit.committed", "dot.sent", "reply.read"), "unknown"
        )
        assert {name: (row["state"], row["claim_no"]) for name, row in rows.items()} == {
            name: ("relayed", claim) for name, claim in STOPS.items()
        }
        assert broken == []


async def test_sigterm_under_load_leaves_nothing_unknown(place: Place, seed: int) -> None:
    async with a_crowded_stage(place, seed) as (stage, crowd):
        others = await survivors(stage, place)
        codes: list[Any] = []
        for _ in range(4):
            served = await stage.gateway()
            async with under_load(crowd, served, *others):
                await stage.sink.wait(len(stage.sink.mails) + crowd.dice.randrange(5, 40), servers.PATIENCE)
                codes.append(await asyncio.to_thread(served.stop))
        await settled(stage, crowd, others)

        assert codes == [0, 0, 0, 0]
        assert await all_wrong(stage, crowd, "4 times SIGTERM") == []
        assert "unknown" not in {row["state"] for row in stage.history().rows.deliveries}
