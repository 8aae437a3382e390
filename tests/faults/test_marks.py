"""A mail is forbidden while the smarthost thinks about its dot, and then the smarthost puts it off: it never goes again.

What has its permit cannot be called back; who forbids it marks its row. Here the smarthost answers 451 at the very moment
at which the recipient is suppressed, the contact taken over by another agent, or the send cancelled, a few milliseconds
before or after it. Whichever comes first, the outcome is one: the mail is stopped for that reason and has not arrived.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from tests.faults.conftest import Place
from tests.faults.found import trouble
from tests.faults.stage import AHEAD, Order, a_stage
from tests.faults.test_races import Arena, Race, acquire, send, told
from tests.servers import PATIENCE

NOT_NOW = 'DOT NEW WAIT "451 4.3.0 Not now"'
"""The first mail to each address waits for the word, and is put off."""
SPREAD = 0.02
"""Seconds within which both the act and the answer of the smarthost begin."""
LONG = {"retry_first_seconds": 3, "retry_max_seconds": 3}
"""The pause before a second attempt: longer than any act takes."""


@asynccontextmanager
async def an_arena(place: Place, seed: int, **armed: Any) -> AsyncIterator[Arena]:
    """Two agents as in `test_races.py`, and a smarthost that puts off the first mail to everybody."""
    async with a_stage(place.url, place.key, script=NOT_NOW, **LONG) as stage:
        first = await stage.gateway(**armed)
        second = await stage.gateway(**armed) if place.postgres else first
        yield Arena(stage, await stage.agent(first, "one"), await stage.agent(second, "two"), random.Random(seed))


async def at_the_dot(arena: Arena, order: Order) -> dict[str, Any]:
    """Send, and return once the smarthost has the whole mail and says nothing yet."""
    arena.stage.sink.record.go.clear()
    sent = told(await arena.stage.one(order))
    await arena.stage.sink.until(lambda: arena.stage.sink.waiting == 1, PATIENCE)
    return sent


async def put_off_meanwhile(arena: Arena, order: Order) -> dict[str, Any]:
    """Let the smarthost answer while somebody acts; returns what the act was answered, when no mail is under way any more."""
    asyncio.get_running_loop().call_later(AHEAD + arena.dice.uniform(0, SPREAD), arena.stage.sink.go)
    (call,) = await arena.stage.together(replace(order, late=arena.dice.uniform(0, SPREAD)))
    await arena.stage.sink.until(lambda: not arena.stage.sink.waiting, PATIENCE)
    await arena.stage.drained()
    return told(call)


def end(arena: Arena, sent: dict[str, Any]) -> tuple[str, str, int]:
    """State and reason of a mail's delivery, and how often it came."""
    history = arena.stage.history()
    (row,) = history.of_send[sent["requestId"]]
    return row["state"], row["reason"], history.count(row)


async def suppressed_at_the_dot(arena: Arena, person: str) -> None:
    """The other agent suppresses the recipient."""
    one, two = arena.both()
    wish = {"recipientEmail": person, "reasonCode": "unsubscribe", "scope": "tenant"}
    sent = await at_the_dot(arena, send(one, person, person))

    await put_off_meanwhile(arena, Order(two, "suppress", wish))

    assert end(arena, sent) == ("blocked", "suppressed", 0)


async def taken_over_at_the_dot(arena: Arena, person: str) -> None:
    """The other agent takes the contact over by an operator's word; its own mail then goes."""
    one, two = arena.both()
    lease = told(await arena.stage.one(acquire(one, person)))
    sent = await at_the_dot(arena, send(one, person, f"old-{person}", lease["fencingToken"]))
    wish = {"contactEmail": person, "durationMinutes": 10, "overrideReason": "the first agent is to stop"}

    taken = await put_off_meanwhile(arena, Order(two, "acquire", wish))
    good = told(await arena.stage.one(send(two, person, f"new-{person}", taken["fencingToken"], prefer="wait=20")))

    assert end(arena, sent) == ("blocked", "stale_fencing_token", 0)
    assert end(arena, good) == ("relayed", "", 1)


async def cancelled_at_the_dot(arena: Arena, person: str) -> None:
    """The sender changes its mind."""
    one, _ = arena.both()
    sent = await at_the_dot(arena, send(one, person, person))

    await put_off_meanwhile(arena, Order(one, "cancel", names={"request": sent["requestId"]}))

    assert end(arena, sent) == ("cancelled", "cancelled", 0)


RACES: tuple[Race, ...] = (suppressed_at_the_dot, taken_over_at_the_dot, cancelled_at_the_dot)
"""All are run on one stage: most of the time goes into starting processes."""


def person(number: int, race: Race) -> str:
    """Somebody new."""
    return f"pat-{number}@{race.__name__.replace('_', '-')}.example.net"


async def test_what_is_forbidden_at_the_dot_and_put_off_never_goes(place: Place, seed: int, rounds: int) -> None:
    few = rounds // 2
    async with an_arena(place, seed) as arena:
        for race in RACES:
            for number in range(few):
                await race(arena, person(number, race))
        history = arena.stage.history()

        marked = [row for row in history.rows.deliveries if row["forbidden"]]
        print(f"{len(marked)} of {len(RACES) * few} were marked before they were put off")  # noqa: T201 - the numbers
        assert 0 < len(marked) < len(RACES) * few
        assert arena.stage.judged() == []
    assert trouble(arena.stage) == []
