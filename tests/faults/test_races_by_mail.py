"""The races between two agents, of whom one hands its mails in over SMTP and the other over HTTP.

As in `test_races.py`: real gateways and agents as processes, one gateway on SQLite, two on PostgreSQL, each round about
somebody new, both agents in either part, the whole history checked at the end. The agent that mails logs in under TLS and
gives key and token in headers; its clock is two hours ahead. Of about every other mail the envelope is taken before the
round begins, so that an agent may fall asleep between RCPT and DATA.
"""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.faults import test_races as races
from tests.faults.agent import now
from tests.faults.conftest import Place
from tests.faults.stage import Order, Player, a_stage, interleavings
from tests.faults.test_races import HOURS, Arena, Race, acquire, send, told
from tests.history import SLACK, moment
from tests.smtp import ca_file, server_files

FEW = 8
LONGER = 0.04
"""Seconds by which a request begins later than a mail that it is to race: a mail takes several commands."""


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    """How often a race is run: a few times, 200 with `--slow`."""
    return 200 if request.config.getoption("--slow") else FEW


@dataclass(frozen=True, slots=True)
class Turns(Arena):
    """Two agents who take each part in turn."""

    _turns: Iterator[bool] = field(default_factory=lambda: itertools.cycle((True, False)))

    def both(self) -> tuple[Player, Player]:
        """The two agents, each time the other way round."""
        return (self.one, self.two) if next(self._turns) else (self.two, self.one)


@asynccontextmanager
async def an_arena(place: Place, folder: Path, seed: int, **armed: Any) -> AsyncIterator[Arena]:
    """The agent that mails at one gateway, the other at the other where there are two; all alike armed."""
    pair = server_files(folder)
    doors = {"smtps_bind": "127.0.0.1:0", "tls_cert": pair, "tls_key": pair}
    async with a_stage(place.url, place.key, **doors) as stage:
        starts = [stage.gateway("http,smtp,relay", **armed), *([stage.gateway(**armed)] if place.postgres else [])]
        first, *more = await asyncio.gather(*starts)
        mailer, caller = await asyncio.gather(
            stage.agent(first, "mailer", HOURS, str(ca_file(folder))), stage.agent((more or [first])[0], "caller")
        )
        yield Turns(stage, mailer, caller, random.Random(seed))


async def casing(arena: Arena, person: str) -> None:
    """One takes a contact, the other writes to it by another spelling: one gets its way, unless the mail has left before."""
    stage, mailer, caller = arena.stage, arena.one, arena.two
    shifts = [*interleavings(arena.dice, 2, LONGER), *interleavings(arena.dice, 2)]
    shouted = person.replace("pat", "Pat").replace("example.net", "Example.NET")
    other = person.replace("pat", "bee")

    wrote, taken = await stage.together(
        send(mailer, shouted, person, late=shifts[2]), acquire(caller, person, late=shifts[0])
    )
    held, sent = await stage.together(
        acquire(mailer, other.upper(), late=shifts[3]), send(caller, other, other, late=shifts[1] / 3)
    )

    for mail, lease in ((wrote, taken), (sent, held)):
        answer = told(lease)
        if mail.accepted and not answer.get("conflict"):
            (at,) = (one.at for one in stage.arrivals if one.message_id == told(mail)["messageId"])
            assert at <= moment(answer["createdAt"]) + SLACK, (mail, lease)
            continue
        assert mail.accepted == bool(answer.get("conflict")), (mail, lease)
        assert mail.accepted or told(mail)["reason"] == "lease_conflict", mail
        assert mail.accepted is False or answer["leaseHolder"]["kind"] == "send", lease


async def retry_after_a_timeout(arena: Arena, person: str) -> None:
    """A mail whose answer nobody read is asked for again at the other door, at once: one id, one message id, one mail."""
    stage, (one, two) = arena.stage, arena.both()
    hang_up = send(one, person, person, hang_up=arena.dice.choice([0.0, arena.dice.uniform(0, 0.01)]))
    (late,) = interleavings(arena.dice, 1, LONGER)

    _, first = await stage.together(hang_up, send(two, person, person, late=late))
    second = await stage.one(send(one, person, person))

    same = ("requestId", "messageId", "idempotencyKey")
    assert {name: told(first)[name] for name in same} == {name: told(second)[name] for name in same}
    assert told(second)["replayed"] is True


async def a_wrong_clock(arena: Arena, person: str) -> None:
    """A mail that is dated two hours ahead is judged by the store's clock: an expired token sends nothing, a live one does."""
    stage, agents = arena.stage, arena.both()
    brief = [told(c) for c in await stage.together(*(acquire(a, f"{a.name}-{person}", races.BRIEF) for a in agents))]
    long = [told(c) for c in await stage.together(*(acquire(a, f"{a.name}-also-{person}") for a in agents))]
    over = (max(moment(lease["expiresAt"]) for lease in brief) - now() + SLACK) / 1_000_000

    def sends(about: str, leases: list[dict[str, Any]], late: float) -> list[Order]:
        pairs = zip(agents, leases, strict=True)
        names = (f"{a.name}-{about}{person}" for a in agents)
        return [send(a, to, to, le["fencingToken"], late=late) for to, (a, le) in zip(names, pairs, strict=True)]

    gone = await stage.together(*sends("", brief, over))
    kept = await stage.together(*sends("also-", long, 0.0))

    assert [told(call).get("reason") for call in gone] == ["lease_expired"] * 2
    assert [call.accepted for call in kept] == [True, True]


RACES: tuple[Race, ...] = (
    casing,
    races.pause_past_expiry,
    races.wake_while_another_acquires,
    retry_after_a_timeout,
    races.suppression_during_a_lease,
    races.cooldown_after_release,
    a_wrong_clock,
)
"""All are run on one stage: most of the time goes into starting processes."""


async def test_each_race_between_two_doors_has_one_outcome(
    place: Place, tmp_path: Path, seed: int, rounds: int
) -> None:
    async with an_arena(place, tmp_path, seed) as arena:
        for race in RACES:
            for number in range(rounds):
                await race(arena, f"pat-{number}@{race.__name__.replace('_', '-')}.example.net")
        await arena.stage.drained()

        sent = {call.agent for call in arena.stage.calls if call.act == "send" and call.answer is not None}
        assert sent == {"mailer", "caller"}
        assert arena.stage.judged() == []
