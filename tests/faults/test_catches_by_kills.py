"""The faults that show only where a gateway is killed or stopped, or a smarthost breaks off; as `test_catches.py`."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from tests.faults.conftest import Place
from tests.faults.crowd import Crowd, mail
from tests.faults.found import Finding, finding, is_caught, trouble
from tests.faults.stage import Order, Stage, a_stage, stopped
from tests.faults.test_kills import gone, settled, under_load
from tests.history import History

Play = Callable[[Stage, Crowd, str], Awaitable[None]]


async def a_sleeper_and_its_heir(stage: Stage, crowd: Crowd, name: str) -> None:
    """A worker stops when it has given the body, its mail is claimed by another; it wakes, and the other goes on afterwards."""
    gate = stage.folder / "gate"
    door = await stage.gateway("http")
    operator = await stage.player(door, stage.key, "operator")
    sleeper = await stage.gateway("relay", **{"break": name}, steps={"body.sent": {"do": "stop"}})
    await stage.one(Order(operator, "send", mail("pat")))
    await asyncio.to_thread(stopped, sleeper)
    hold = {"permit.before": {"do": "hold", "gate": str(gate)}}
    heir = await stage.gateway("relay", **{"break": name}, steps=hold)
    await asyncio.to_thread(heir.wait_for, "armed")
    stage.wake(sleeper)
    await stage.until(lambda history: stage.sink.waiting or ended(history, 1))
    gate.touch()
    await stage.until(lambda history: len(stage.arrivals) > 1 or (ended(history, 1) and stage.sink.waiting))
    stage.sink.go()


def ended(history: History, claim: int) -> bool:
    """Whether the attempt with this claim number has come to an end."""
    return any(row["claim_no"] == claim and row["ended_us"] for row in history.rows.attempts)


async def half_a_reply(stage: Stage, crowd: Crowd, name: str) -> None:
    """The smarthost breaks off in the middle of its reply, and has not taken the mail."""
    served = await stage.gateway(**{"break": name})
    operator = await stage.player(served, stage.key, "operator")
    await stage.one(Order(operator, "send", mail("pat"), prefer="wait=20"))


async def a_kill_after_the_dot(stage: Stage, crowd: Crowd, name: str) -> None:
    """A gateway dies after a dot; another takes up what it held."""
    heir = await stage.gateway(**{"break": name})
    victim = await stage.gateway(steps={"dot.sent": {"do": "kill", "on": 5}})
    async with under_load(crowd, victim):
        await gone(victim)
    await crowd.ask_again(heir)


async def a_kill_after_an_answer(stage: Stage, crowd: Crowd, name: str) -> None:
    """A gateway without a relay dies when it has answered."""
    victim = await stage.gateway("http", **{"break": name})
    operator = await stage.player(victim, stage.key, "operator")
    await stage.one(Order(operator, "send", mail("pat")))
    await asyncio.to_thread(victim.kill)
    await settled(stage, crowd, [])


LATE_REPLY = "DOT ONCE WAIT"
NOT_TAKEN = 'DOT LOSE HALF "250 2.0.0 taken" DROP'


@dataclass(frozen=True, slots=True)
class Kill:
    """A play that finds a fault; `by` are the checks that may, `script` is how the smarthost behaves."""

    play: Play
    by: tuple[str, ...]
    script: str | None = None


FOUND_BY_KILLS: dict[str, Kill] = {
    "skip_the_claim_number": Kill(a_sleeper_and_its_heir, ("one_delivery_for_one_send",), LATE_REPLY),
    "take_half_a_reply_as_a_yes": Kill(half_a_reply, ("one_state_that_matches_the_sink",), NOT_TAKEN),
    "try_again_what_is_unknown": Kill(a_kill_after_the_dot, ("one_delivery_for_one_send",)),
    "answer_before_the_commit": Kill(a_kill_after_an_answer, ("answers_agree_with_the_record",)),
}
"""By fault."""


async def played(place: Place, seed: int, kill: Kill, name: str) -> tuple[Stage, Finding | None]:
    """Play it once, and say what is wrong."""
    async with a_stage(place.url, place.key, script=kill.script) as stage:
        await kill.play(stage, Crowd(stage, random.Random(seed)), name)
        await stage.drained()
        return stage, finding("at the end", None, stage.judged())


@pytest.mark.parametrize("name", FOUND_BY_KILLS)
async def test_a_kill_finds_the_fault(place: Place, seed: int, name: str) -> None:
    stage, found = await played(place, seed, FOUND_BY_KILLS[name], name)

    assert is_caught(stage, name, found, FOUND_BY_KILLS[name].by)


@pytest.mark.parametrize("name", FOUND_BY_KILLS)
async def test_without_the_fault_the_kill_finds_nothing(place: Place, seed: int, name: str) -> None:
    stage, found = await played(place, seed, FOUND_BY_KILLS[name], "")

    assert found is None
    assert trouble(stage) == []
