"""The races between two agents, of whom one calls the tools for models and the other the routes of HTTP.

As in `test_races.py`: real gateways and agents as processes, one gateway on SQLite, two on PostgreSQL, each round about
somebody new, both agents in either part, the whole history checked at the end. The clock of the agent with the tools is two
hours ahead.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.faults import test_races as races
from tests.faults.conftest import Place
from tests.faults.stage import a_stage
from tests.faults.test_races import HOURS, Arena, Race
from tests.faults.test_races_by_mail import Turns

FEW = 8


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    """How often a race is run: a few times, 200 with `--slow`."""
    return 200 if request.config.getoption("--slow") else FEW


@asynccontextmanager
async def an_arena(place: Place, seed: int) -> AsyncIterator[Arena]:
    """The agent with the tools at one gateway, the other at the other where there are two."""
    async with a_stage(place.url, place.key) as stage:
        first, *more = await asyncio.gather(*(stage.gateway() for _ in range(1 + place.postgres)))
        model, caller = await asyncio.gather(
            stage.agent(first, "model", HOURS, mcp=True), stage.agent((more or [first])[0], "caller")
        )
        yield Turns(stage, model, caller, random.Random(seed))


RACES: tuple[Race, ...] = (
    races.casing,
    races.pause_past_expiry,
    races.wake_while_another_acquires,
    races.retry_after_a_timeout,
    races.suppression_during_a_lease,
    races.cooldown_after_release,
    races.a_wrong_clock,
    races.release_and_acquire,
    races.both_send,
)
"""All are run on one stage: most of the time goes into starting processes."""


async def test_each_race_between_tools_and_routes_has_one_outcome(place: Place, seed: int, rounds: int) -> None:
    async with an_arena(place, seed) as arena:
        for race in RACES:
            for number in range(rounds):
                await race(arena, f"pat-{number}@{race.__name__.replace('_', '-')}.example.net")
        await arena.stage.drained()

        for act in ("send", "acquire", "renew", "release"):
            did = {call.agent for call in arena.stage.calls if call.act == act and call.answer is not None}
            assert did == {"model", "caller"}, act
        assert arena.stage.judged() == []
