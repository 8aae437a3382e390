"""The suite catches: the gateway is broken on purpose in thirteen ways, and each is found within a few rounds.

Each fault of `breaks.py` goes into the gateways of a race or of a kill that are otherwise the ones of `test_races.py` and
`test_kills.py`; a control shows that slowness alone, which some of the faults need, is no fault.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults import test_races as races
from tests.faults import test_races_by_mail as by_mail
from tests.faults.breaks import BREAKS
from tests.faults.conftest import Place
from tests.faults.crowd import Crowd, mail
from tests.faults.stage import Order, Stage, a_stage, stopped
from tests.faults.test_kills import gone, settled, under_load
from tests.faults.test_races import Arena, Race, acquire, an_arena, send, told
from tests.history import History

ROUNDS = 30
"""Rounds within which a race must find a fault."""
SLOW_PERMIT = {"steps": {"permit.before": {"do": "dawdle", "seconds": 0.02}}}

LATE_SETTLE = {"steps": {"reply.read": {"do": "dawdle", "seconds": 0.2}}}


async def settle_and_send(arena: Arena, person: str) -> None:
    """One sends; the other tries again and again while that mail is under way and when it has arrived."""
    stage, (one, two) = arena.stage, arena.both()
    first = send(one, person, f"first-{person}")
    sent = await stage.one(first)
    answers = [await stage.one(send(two, person, f"{n}-{person}")) for n in range(12)]

    assert told(sent)["status"] != "blocked"
    assert not any(call.accepted for call in answers)


async def blocked_and_asked_again(arena: Arena, person: str) -> None:
    """A send that the cooldown has blocked is asked for again under its key: it keeps its id."""
    stage, (one, two) = arena.stage, arena.both()
    await stage.one(send(one, person, f"first-{person}"))
    await stage.one(send(two, person, f"second-{person}"))
    await stage.one(send(two, person, f"second-{person}"))


async def send_and_keep(arena: Arena, person: str) -> None:
    """An agent sends by its token and asks for its lease again: the token has not moved."""
    stage, (one, _) = arena.stage, arena.both()
    lease = told(await stage.one(acquire(one, person)))
    await stage.one(send(one, person, person, lease["fencingToken"]))
    await stage.one(acquire(one, person))


FOUND_BY_RACES: dict[str, tuple[Race, dict[str, Any], bool]] = {
    "drop_the_lock": (races.both_send, {}, True),
    "read_the_clock_before_the_lock": (races.suppression_during_a_lease, {}, True),
    "settle_without_the_lock": (settle_and_send, LATE_SETTLE, True),
    "look_up_facts_inside_the_permit": (races.suppression_during_a_lease, {}, True),
    "check_suppression_only_at_acceptance": (races.suppression_during_a_lease, SLOW_PERMIT, False),
    "forget_the_key_of_a_blocked_send": (blocked_and_asked_again, {}, False),
    "bump_tokens_in_flight": (send_and_keep, {}, False),
}
"""By fault: the race that finds it, what else is armed, and whether it needs two gateways and so PostgreSQL."""


async def first_fault(arena: Arena, race: Race, rounds: int = ROUNDS) -> str | None:
    """Run a race until it goes wrong, and say how; None where it never does."""
    for number in range(rounds):
        try:
            await race(arena, f"pat-{number}@example.net")
        except AssertionError as error:
            return f"round {number}: {error}"
        if found := arena.stage.judged(drained=False):
            return f"round {number}: {found[0]}"
    await arena.stage.drained()
    return next((f"at the end: {one}" for one in arena.stage.judged()), None)


@pytest.mark.parametrize("name", FOUND_BY_RACES)
async def test_a_race_finds_the_fault(request: pytest.FixtureRequest, seed: int, name: str) -> None:
    race, armed, two_gateways = FOUND_BY_RACES[name]
    place: Place = request.getfixturevalue("postgres_place" if two_gateways else "sqlite_place")
    async with an_arena(place, seed, armed | {"break": name}) as arena:
        found = await first_fault(arena, race)

        print(f"seed {seed}, {name}: {found}")  # noqa: T201 - the numbers of a run
        assert found is not None


FOUND_BY_MAIL: dict[str, Race] = {
    "ignore_the_token_over_smtp": races.pause_past_expiry,
    "use_another_key_over_smtp": by_mail.retry_after_a_timeout,
}
"""Faults of the SMTP door, and the race between both doors that finds it."""


@pytest.mark.parametrize("name", FOUND_BY_MAIL)
async def test_a_race_between_two_doors_finds_the_fault(
    sqlite_place: Place, tmp_path: Path, seed: int, name: str
) -> None:
    async with by_mail.an_arena(sqlite_place, tmp_path, seed, **{"break": name}) as arena:
        found = await first_fault(arena, FOUND_BY_MAIL[name])

        print(f"seed {seed}, {name}: {found}")  # noqa: T201 - the numbers of a run
        assert found is not None


@pytest.mark.parametrize("race", [races.both_send, settle_and_send, blocked_and_asked_again, send_and_keep])
async def test_slowness_alone_is_no_fault(place: Place, seed: int, race: Race) -> None:
    async with an_arena(place, seed, SLOW_PERMIT | {"break": "dawdle"}) as arena:
        assert await first_fault(arena, race, 8) is None


# --- kills ------------------------------------------------------------------------------------------------------------

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
FOUND_BY_KILLS: dict[str, tuple[Play, str | None]] = {
    "skip_the_claim_number": (a_sleeper_and_its_heir, LATE_REPLY),
    "take_half_a_reply_as_a_yes": (half_a_reply, NOT_TAKEN),
    "try_again_what_is_unknown": (a_kill_after_the_dot, None),
    "answer_before_the_commit": (a_kill_after_an_answer, None),
}
"""By fault: what is played, and how the smarthost behaves."""


async def played(place: Place, seed: int, play: Play, script: str | None, name: str) -> list[str]:
    """Play it once, and say what is wrong."""
    async with a_stage(place.url, place.key, script=script) as stage:
        await play(stage, Crowd(stage, random.Random(seed)), name)
        await stage.drained()
        return [str(one) for one in stage.judged()]


@pytest.mark.parametrize("name", FOUND_BY_KILLS)
async def test_a_kill_finds_the_fault(place: Place, seed: int, name: str) -> None:
    found = await played(place, seed, *FOUND_BY_KILLS[name], name)

    print(f"seed {seed}, {name}: {found}")  # noqa: T201 - the numbers of a run
    assert found


@pytest.mark.parametrize("name", FOUND_BY_KILLS)
async def test_without_the_fault_the_kill_finds_nothing(place: Place, seed: int, name: str) -> None:
    assert await played(place, seed, *FOUND_BY_KILLS[name], "") == []


def test_every_fault_is_to_be_found() -> None:
    assert set(BREAKS) == {*FOUND_BY_RACES, *FOUND_BY_KILLS, *FOUND_BY_MAIL, "dawdle"}
