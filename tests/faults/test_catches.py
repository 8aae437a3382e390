"""The suite catches: the gateway is broken on purpose, in each way of `BREAKS`, and each is found within a few rounds.

Each fault goes into the gateways of a race or of a kill that are otherwise the ones of `test_races.py` and its kin and of
`test_kills.py`. For each it is said which check of the history or which assertion finds it: what is found by anything
else, or by an answer or a log that tells of an error, is not found, for it does not show what it should. Controls show
that slowness alone, which some of the faults need, is no fault, and that a gateway that falls over is no finding.
"""

import inspect
import random
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.faults import test_marks as marks
from tests.faults import test_races as races
from tests.faults import test_races_by_mail as by_mail
from tests.faults.breaks_of_rules import BREAKS
from tests.faults.conftest import Place
from tests.faults.found import Finding, finding, is_caught, trouble
from tests.faults.stage import a_stage
from tests.faults.test_catches_by_kills import FOUND_BY_KILLS
from tests.faults.test_races import Arena, Race, acquire, send, told
from tests.history import CHECKS

ROUNDS = 100
"""Rounds within which a race must find a fault."""
FEW = 8
"""Rounds in which a control finds nothing."""
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


@dataclass(frozen=True, slots=True)
class Hunt:
    """A race that finds a fault; `by` are the checks and the words of assertions that may, each of them a proof.

    `armed` is what else is armed, `gateways` how many there are (two need PostgreSQL), `skew` by how many seconds the
    first one's host has a wrong clock.
    """

    race: Race
    by: tuple[str, ...]
    gateways: int = 1
    armed: Mapping[str, Any] = field(default_factory=dict)
    skew: float = 0.0

    def kind(self) -> str:
        """The fixture with the place for it."""
        return "sqlite_place" if self.gateways == 1 else "postgres_place"


FOUND_BY_RACES: dict[str, Hunt] = {
    "drop_the_lock": Hunt(races.both_send, ("none_within_a_cooldown", "sum(call.accepted for call in first) == 1"), 2),
    "read_the_clock_before_the_lock": Hunt(races.suppression_during_a_lease, ("causes_come_before_their_effects",), 2),
    "settle_without_the_lock": Hunt(
        settle_and_send, ("none_within_a_cooldown", "not any(call.accepted for call in answers)"), 2, LATE_SETTLE
    ),
    "look_up_facts_inside_the_permit": Hunt(races.suppression_during_a_lease, ("none_to_the_suppressed",), 2),
    "check_suppression_only_at_acceptance": Hunt(
        races.suppression_during_a_lease, ("none_to_the_suppressed",), 1, SLOW_PERMIT
    ),
    "forget_the_key_of_a_blocked_send": Hunt(blocked_and_asked_again, ("one_id_for_one_key",)),
    "bump_tokens_in_flight": Hunt(send_and_keep, ("tokens_rise",)),
    "keep_the_case_of_a_contact": Hunt(races.casing, ("for a in answers) == [False, True]",)),
    "lease_by_the_hosts_clock": Hunt(races.a_wrong_clock, ('["renewed"] for call in kept]',), 2, {}, races.HOURS),
    "write_no_stamp": Hunt(
        races.cooldown_after_release,
        ("none_within_a_cooldown", '["reason"]) == ("blocked", "cooldown")', 'told(early)["reason"] in'),
    ),
    "look_up_the_key_outside_the_transaction": Hunt(
        races.retry_after_a_timeout, ("one_id_for_one_key", "for name in same}"), 2
    ),
}
"""By fault."""


@asynccontextmanager
async def an_arena(place: Place, seed: int, hunt: Hunt, name: str) -> AsyncIterator[Arena]:
    """An arena with broken gateways."""
    armed = {**hunt.armed, "break": name}
    async with a_stage(place.url, place.key) as stage:
        first = await stage.gateway(**armed, skew=hunt.skew)
        second = await stage.gateway(**armed) if hunt.gateways > 1 else first
        yield Arena(stage, await stage.agent(first, "one"), await stage.agent(second, "two"), random.Random(seed))


async def first_fault(
    arena: Arena, race: Race, rounds: int = ROUNDS, by: Collection[str] = tuple(CHECKS)
) -> Finding | None:
    """Run a race until it goes wrong, by an assertion or by one of these, and say how; None where it never does."""
    for number in range(rounds):
        wrong: AssertionError | KeyError | None = None
        try:
            await race(arena, marks.person(number, race))
        except (AssertionError, KeyError) as error:  # an answer without what the race asks of it is another answer
            wrong = error
        assert [served.process.poll() for served in arena.stage.gateways if served.process.poll() is not None] == []
        found = finding(f"in round {number}", wrong, arena.stage.judged(drained=False))
        if found is not None and (wrong is not None or found.is_by(by)):
            return found
    await arena.stage.drained()
    return finding("at the end", None, arena.stage.judged())


@pytest.mark.parametrize("name", FOUND_BY_RACES)
async def test_a_race_finds_the_fault(request: pytest.FixtureRequest, seed: int, name: str) -> None:
    hunt = FOUND_BY_RACES[name]
    async with an_arena(request.getfixturevalue(hunt.kind()), seed, hunt, name) as arena:
        found = await first_fault(arena, hunt.race, by=hunt.by)

    assert is_caught(arena.stage, name, found, hunt.by)


FOUND_BY_MAIL: dict[str, Hunt] = {
    "ignore_the_token_over_smtp": Hunt(
        races.pause_past_expiry, ("none_by_a_stale_token", '["reason"]) == ("blocked", "stale_fencing_token")')
    ),
    "lease_by_the_hosts_clock": Hunt(by_mail.a_wrong_clock, ("[call.accepted for call in kept]",), skew=races.HOURS),
    "use_another_key_over_smtp": Hunt(by_mail.retry_after_a_timeout, ("one_id_for_one_key", "for name in same}")),
}
"""Faults of the SMTP door, and the race between both doors that finds it."""


@pytest.mark.parametrize("name", FOUND_BY_MAIL)
async def test_a_race_between_two_doors_finds_the_fault(
    sqlite_place: Place, tmp_path: Path, seed: int, name: str
) -> None:
    hunt = FOUND_BY_MAIL[name]
    async with by_mail.an_arena(sqlite_place, tmp_path, seed, skew=hunt.skew, **{"break": name}) as arena:
        found = await first_fault(arena, hunt.race, by=hunt.by)

    assert is_caught(arena.stage, name, found, hunt.by)


FOUND_BY_MARKS: dict[Race, tuple[str, ...]] = {
    marks.suppressed_at_the_dot: ('("blocked", "suppressed", 0)',),
    marks.taken_over_at_the_dot: ('("blocked", "stale_fencing_token", 0)',),
    marks.cancelled_at_the_dot: ('("cancelled", "cancelled", 0)',),
}
"""By race with a smarthost that puts mail off: what finds that a mark is ignored."""


async def test_races_at_the_dot_find_the_fault(place: Place, seed: int) -> None:
    async with marks.an_arena(place, seed, **{"break": "ignore_the_mark"}) as arena:
        found = {race: await first_fault(arena, race, by=by) for race, by in FOUND_BY_MARKS.items()}

    for race, by in FOUND_BY_MARKS.items():
        assert is_caught(arena.stage, "ignore_the_mark", found[race], by)


# --- controls ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("race", [races.both_send, settle_and_send, blocked_and_asked_again, send_and_keep])
async def test_slowness_alone_is_no_fault(place: Place, seed: int, race: Race) -> None:
    hunt = Hunt(race, (), 2 if place.postgres else 1, SLOW_PERMIT)
    async with an_arena(place, seed, hunt, "dawdle") as arena:
        assert await first_fault(arena, race, FEW) is None
    assert trouble(arena.stage) == []


async def test_a_lease_by_the_hosts_clock_shows_only_where_that_is_wrong(postgres_place: Place, seed: int) -> None:
    hunt = replace(FOUND_BY_RACES["lease_by_the_hosts_clock"], skew=0.0)
    async with an_arena(postgres_place, seed, hunt, "lease_by_the_hosts_clock") as arena:
        assert await first_fault(arena, hunt.race, 3) is None
    assert trouble(arena.stage) == []


async def test_a_gateway_that_falls_over_is_no_finding(sqlite_place: Place, seed: int) -> None:
    hunt = FOUND_BY_RACES["bump_tokens_in_flight"]
    async with an_arena(sqlite_place, seed, hunt, "fit_no_longer") as arena:
        found = await first_fault(arena, hunt.race, by=hunt.by)
    kinds = [one.partition(" of ")[0] for one in trouble(arena.stage)]

    assert found is not None
    assert found.assertion == "told: assert call.status == 200, call"
    assert not found.is_by(hunt.by)
    assert "acquire was answered 500" in kinds
    assert any("TypeError" in one for one in kinds)
    assert not is_caught(arena.stage, "fit_no_longer", replace(found, assertion="", checks=frozenset(hunt.by)), hunt.by)


# --- nothing is left out ----------------------------------------------------------------------------------------------


def test_what_finds_a_fault_is_there() -> None:
    hunts = [(hunt.race, hunt.by) for hunt in (*FOUND_BY_RACES.values(), *FOUND_BY_MAIL.values())]
    named = [(inspect.getsource(race), one) for race, by in (*hunts, *FOUND_BY_MARKS.items()) for one in by]

    assert [one for source, one in named if one not in CHECKS and one not in source] == []
    assert [one for kill in FOUND_BY_KILLS.values() for one in kill.by if one not in CHECKS] == []


def test_every_fault_is_to_be_found() -> None:
    found = {*FOUND_BY_RACES, *FOUND_BY_MAIL, *FOUND_BY_KILLS, "ignore_the_mark"}

    assert found == set(BREAKS) - {"dawdle", "fit_no_longer"}
