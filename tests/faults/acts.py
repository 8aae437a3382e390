"""What a crowd does beside plain mail to new people: the cards that its dice deal, each a few requests in a row.

A refusal is as good an answer as any other. Leases are all for the same time, and it is short: they run out while the crowd
goes on, and their tokens are used long after.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.faults.cast import Company, Member

if TYPE_CHECKING:
    from tests.faults.crowd import Crowd, Line

Person = str
Body = dict[str, Any]
FRESH = "fresh"
MINUTES = 0.05
"""Of every lease: 3 s."""
TRIES = 4
"""How many people an agent asks for until it finds one who is free."""
WORDS = 12
"""In a mail to somebody who gets many, so that no two read alike."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A lease that an agent was once given."""

    agent: Member
    person: Person
    lease: str
    token: int


def new(crowd: "Crowd", company: Company) -> Body:
    """A mail to a new person."""
    name = f"p{crowd.number(company.tenant)}"
    return {"to": f"{name}@example.net", "subject": name, "text": "hello\n", "idempotencyKey": name}


def to(crowd: "Crowd", company: Company, person: Person) -> Body:
    """A mail to this person, in words of its own."""
    name = f"m{crowd.number(company.tenant)}"
    words = " ".join(f"{crowd.dice.getrandbits(40):x}" for _ in range(WORDS))
    return {"to": person, "subject": name, "text": f"{words}\n", "idempotencyKey": name}


async def fresh(crowd: "Crowd", line: "Line", company: Company) -> None:
    """The operator writes to a new person."""
    await crowd.send(line, company.operator, new(crowd, company))


async def shared(crowd: "Crowd", line: "Line", company: Company) -> None:
    """Anybody writes to somebody who is written to again and again, perhaps suppressed by now."""
    known = crowd.suppressed and crowd.dice.random() < 0.25
    person = crowd.dice.choice(crowd.suppressed) if known else crowd.person()
    await crowd.send(line, crowd.dice.choice(company.members), to(crowd, company, person))


async def several(crowd: "Crowd", line: "Line", company: Company) -> None:
    """Anybody writes to several new people at once, now and then to a known one among them."""
    await crowd.send(line, crowd.dice.choice(company.members), to_several(crowd, company))


def to_several(crowd: "Crowd", company: Company) -> Body:
    """A mail to four new people, or to three and a known one."""
    body = new(crowd, company)
    name = body["subject"]
    known = crowd.person() if crowd.dice.random() < 0.3 else f"{name}-d@example.net"
    return body | {"cc": [f"{name}-b@example.net", known], "bcc": [f"{name}-c@example.net"]}


async def batch(crowd: "Crowd", line: "Line", company: Company) -> None:
    """The operator sends several mails in one request."""
    more = [to_several(crowd, company), to(crowd, company, crowd.person())]
    await crowd.send_many(line, company.operator, [new(crowd, company), *more, new(crowd, company)])


async def taken(crowd: "Crowd", line: "Line", company: Company, people: Iterable[Person]) -> Taken | None:
    """An agent takes the first of these people who is free, and writes by its token."""
    agent = crowd.dice.choice(company.agents)
    for person in people:
        got = (
            await crowd.do(line, agent, "acquire", {"contactEmail": person, "durationMinutes": MINUTES})
        ).answer or {}
        if "fencingToken" in got:
            held = Taken(agent, person, got["id"], got["fencingToken"])
            crowd.taken.append(held)
            await crowd.send(line, agent, to(crowd, company, person) | {"fencingToken": held.token})
            return held
    return None


async def keep(crowd: "Crowd", line: "Line", company: Company) -> None:
    """An agent takes somebody and keeps the lease for a while longer; then it lapses."""
    held = await taken(crowd, line, company, (crowd.person() for _ in range(TRIES)))
    if held is not None:
        wish = {"fencingToken": held.token, "durationMinutes": MINUTES}
        await crowd.do(line, held.agent, "renew", wish, lease=held.lease)


async def give_back(crowd: "Crowd", line: "Line", company: Company) -> None:
    """An agent takes a newcomer, writes again before it may, gives the lease back, and asks once more under the same key."""
    held = await taken(crowd, line, company, [crowd.newcomer()])
    if held is not None:
        again = to(crowd, company, held.person) | {"fencingToken": held.token}
        await crowd.send(line, held.agent, again)
        await crowd.do(line, held.agent, "release", lease=held.lease)
        await crowd.send(line, held.agent, again)


async def late(crowd: "Crowd", line: "Line", company: Company) -> None:
    """An agent writes by a token that it got some time ago, whatever has become of its lease."""
    mine = [one for one in crowd.taken[-20:] if one.agent in company.agents]
    if not mine:
        await keep(crowd, line, company)
        return
    old = crowd.dice.choice(mine)
    await crowd.send(line, old.agent, to(crowd, company, old.person) | {"fencingToken": old.token})


async def suppress(crowd: "Crowd", line: "Line", company: Company) -> None:
    """The operator suppresses somebody while mail to that person sets out; then it is tried once more."""
    person = crowd.person()
    wish = {"recipientEmail": person, "reasonCode": "unsubscribe", "scope": "tenant"}
    crowd.leaves(person)
    await asyncio.gather(
        crowd.send(line, crowd.dice.choice(company.members), to(crowd, company, person)),
        crowd.do(line, company.operator, "suppress", wish),
    )
    await crowd.send(line, crowd.dice.choice(company.members), to(crowd, company, person))


async def cancel(crowd: "Crowd", line: "Line", company: Company) -> None:
    """The operator takes a mail back that has just been accepted; most have left by then."""
    sent = await crowd.send(line, company.operator, new(crowd, company))
    if sent.accepted and sent.answer is not None:
        await crowd.do(line, company.operator, "cancel", request=sent.answer["requestId"])


CARDS: Mapping[str, Callable[["Crowd", "Line", Company], Awaitable[None]]] = {
    FRESH: fresh,
    "shared": shared,
    "several": several,
    "batch": batch,
    "keep": keep,
    "give back": give_back,
    "late": late,
    "suppress": suppress,
    "cancel": cancel,
}
DECK = (*[FRESH] * 11, "shared", "shared", "keep", "give back", "late", "several", "batch", "suppress", "cancel")
