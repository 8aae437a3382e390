"""Who waits at this process for which contact, served in the order in which they came (`waitSeconds`).

Only the first of a line asks the store; it asks again when a lease on the contact was given back here, when the one that it
has seen has run out, and every LOOK seconds for what other processes do. Processes do not know each other's lines.

A line moves from when a lease was given back, or has run out, until the store has said who has the contact now. Meanwhile
everybody stands in it, the former holder too. At other times the holder passes it by and keeps what it has, and who does not
wait is told what was seen last.
"""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from math import inf

from gateway.store.contacts import Acquire, Held, Lease

LOOK = 1.0
"""Seconds between two attempts of who is first in line, and how long a line that moves is waited for by who does not wait."""
MOST = 100
"""Requests of one caller that wait at once; one more is answered at once with who has the contact."""
SOONEST = 0.01
"""Seconds to wait at least: a lease that ends now has not yet ended."""

Attempt = Callable[[Acquire], Awaitable[Lease | Held | None]]
"""`None` where the contact is free and the wish is to keep it."""
Gone = Callable[[], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Wait:
    """How long somebody waits (seconds), who it is, what to do when it begins, and whether they have hung up since.

    For who has hung up nothing is taken.
    """

    seconds: float
    caller: str
    begins: Callable[[], None]
    gone: Gone


@dataclass(slots=True, eq=False)
class _Waiter:
    """An agent in a line; it goes at `until`, but not before `least` while the line moves (times of the loop)."""

    agent: str
    until: float
    least: float
    turn: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class _Line:
    """`held` is by whom the contact was held when it was looked at last, `ends` when its time is over.

    `freed` is when a lease was given back, `looked` when the last look began (times of the loop).
    """

    held: Held
    ends: float
    looked: float
    freed: float = -inf
    waiters: deque[_Waiter] = field(default_factory=deque)

    def moves(self) -> bool:
        """Whether something has ended that nobody has looked at since."""
        return self.freed > self.looked or _now() >= self.ends

    def of(self, agent: str) -> bool:
        """Whether this agent has the contact, as far as is known; it is not in its own way then."""
        return self.held.agent == agent and not self.moves()

    def leased_by(self, agent: str) -> bool:
        """Whether it has the contact by a lease, which it may keep.

        Else it is its mail in flight that closes the contact, to all others: who waits could not have it yet.
        """
        return self.of(agent) and self.held.kind == "lease"

    def left(self, waiter: _Waiter) -> float:
        """Seconds that somebody goes on waiting."""
        return (waiter.least if self.moves() else waiter.until) - _now()

    def saw(self, held: Held, began: float) -> None:
        """Take note of a look that began at `began`, and wake whom it concerns.

        That is who has the contact itself, and behind the first those who may not wait any longer now.
        """
        self.held, self.ends, self.looked = held, _now() + held.left, max(began, self.looked)
        for number, waiter in enumerate(self.waiters):
            if (number and waiter.until < waiter.least) or waiter.agent == held.agent:
                waiter.turn.set()

    def answer(self) -> Held:
        """What stands in the way; where that should be over, the time to come back is after the next look."""
        late = _now() - self.ends
        if late < 0:
            return self.held
        return replace(self.held, retry_at=self.held.retry_at + timedelta(seconds=late + LOOK), left=LOOK)


def _now() -> float:
    return asyncio.get_running_loop().time()


class Queue:
    """All lines of a process."""

    def __init__(self) -> None:
        """Nobody waits yet."""
        self._lines: dict[tuple[str, str], _Line] = {}
        self._callers: Counter[str] = Counter()
        self._ended = False

    async def acquire(self, wish: Acquire, wait: Wait, attempt: Attempt) -> Lease | Held:
        """Acquire now, or in its turn while `wait` lasts; else what stands in the way is returned. `attempt` tries once.

        Who does not wait does not pass by those who do, and stands in a line that moves for LOOK seconds at most. Of one
        caller MOST wait at once.
        """
        got, stands = await self._passing(wish, attempt), wait.seconds > 0
        stays = not self._ended and self._callers[wait.caller] < MOST
        line = self._lines.get((wish.tenant, wish.contact))
        if got is None and line is not None:
            got, stands = line.answer(), stands or line.moves()
            if not (stands and stays):
                return await self._said(wish, got, attempt)
        if got is None:  # the line has gone meanwhile
            got = await self._take(wish, attempt)
        if isinstance(got, Lease) or not (stands and stays):
            return got
        self._callers[wait.caller] += 1
        try:
            wait.begins()
            return await self._wait(wish, got, wait, attempt)
        finally:
            self._callers[wait.caller] -= 1
            if not self._callers[wait.caller]:
                del self._callers[wait.caller]

    async def _passing(self, wish: Acquire, attempt: Attempt) -> Lease | Held | None:
        """What somebody gets who need not stand in the line, or where there is none; `None` for who has to."""
        line = self._lines.get((wish.tenant, wish.contact))
        if line is None or wish.operator_reason is not None:
            return await self._take(wish, attempt)
        if not line.of(wish.agent):
            return None
        return await self._try(replace(wish, keeps=line.leased_by(wish.agent)), attempt)

    async def _take(self, wish: Acquire, attempt: Attempt) -> Lease | Held:
        got = await self._try(wish, attempt)
        assert got is not None  # noqa: S101  (only who keeps is told that the contact is free)
        return got

    async def _said(self, wish: Acquire, held: Held, attempt: Attempt) -> Lease | Held:
        """The answer of a line, unless it would name the asking agent itself, which then keeps what it has."""
        if held.agent != wish.agent:
            return held
        return await self._try(replace(wish, keeps=held.kind == "lease"), attempt) or held

    async def _try(self, wish: Acquire, attempt: Attempt) -> Lease | Held | None:
        """Ask the store, and tell the line, if there is one by then."""
        began = _now()
        got = await attempt(wish)
        line, seen = self._lines.get((wish.tenant, wish.contact)), got
        if isinstance(seen, Lease):
            seen = Held(seen.agent, seen.agent_name, seen.expires_at, "lease", seen.expires_at, wish.seconds)
        if seen is None:  # given back, or run out, in the same moment
            self.freed(wish.tenant, wish.contact)
        elif line is not None:
            line.saw(seen, began)
        return got

    async def _wait(self, wish: Acquire, held: Held, wait: Wait, attempt: Attempt) -> Lease | Held:
        place, now = (wish.tenant, wish.contact), _now()
        line = self._lines.setdefault(place, _Line(held, now + held.left, now))
        waiter = _Waiter(wish.agent, now + wait.seconds, now + max(wait.seconds, LOOK))
        line.waiters.append(waiter)
        try:
            while await self._turn(line, waiter):
                if await wait.gone():
                    return line.answer()
                keeps = line.waiters[0] is not waiter and (line.leased_by(wish.agent) or not line.of(wish.agent))
                got = await self._try(replace(wish, keeps=keeps), attempt)
                if isinstance(got, Lease):
                    return got
            return line.answer() if self._ended else await self._said(wish, line.answer(), attempt)
        finally:
            first = line.waiters[0] is waiter
            line.waiters.remove(waiter)
            if not line.waiters:
                self._lines.pop(place, None)
            elif first:
                line.waiters[0].turn.set()

    async def _turn(self, line: _Line, waiter: _Waiter) -> bool:
        """Wait until it is this waiter's turn to try, or its agent has the contact; `False` when its time is over."""
        while not self._ended:
            left = line.left(waiter)
            if left <= 0:
                return False
            first = line.waiters[0] is waiter
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(SOONEST, min(left, LOOK, line.ends - _now())) if first else left):
                    await waiter.turn.wait()
            waiter.turn.clear()
            if line.of(waiter.agent) or (line.waiters[0] is waiter and (first or line.left(waiter) > 0)):
                return not self._ended
        return False

    def freed(self, tenant: str, contact: str) -> None:
        """A lease on this contact was given back here."""
        line = self._lines.get((tenant, contact))
        if line is not None:
            line.freed = _now()
            line.waiters[0].turn.set()

    def end(self) -> None:
        """Let nobody wait any longer: the gateway stops."""
        self._ended = True
        for line in self._lines.values():
            for waiter in line.waiters:
                waiter.turn.set()
