"""Who waits at this process for which contact, served in the order in which they came (`waitSeconds`).

Only the first of a line asks the store; it asks again when a lease on the contact was given back here, when one has run out,
and every LOOK seconds for what other processes do. Processes do not know each other's lines.
"""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from gateway.store.contacts import Acquire, Held, Lease

LOOK = 1.0
"""Seconds between two attempts of who is first in line."""
MOST = 100
"""Requests of one caller that wait at once; one more is answered at once with who has the contact."""
SOONEST = 0.01
"""Seconds to wait at least: a lease that ends now has not yet ended."""

Attempt = Callable[[Acquire], Awaitable[Lease | Held]]
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
    turn: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class _Line:
    """`held` is by whom the contact was held when it was looked at last."""

    held: Held
    waiters: deque[_Waiter] = field(default_factory=deque)


class Queue:
    """All lines of a process."""

    def __init__(self) -> None:
        """Nobody waits yet."""
        self._lines: dict[tuple[str, str], _Line] = {}
        self._callers: Counter[str] = Counter()
        self._ended = False

    async def acquire(self, wish: Acquire, wait: Wait, attempt: Attempt) -> Lease | Held:
        """Acquire now, or in its turn while `wait` lasts; else what stands in the way is returned. `attempt` tries once.

        Who does not wait does not pass by those who do. Of one caller MOST wait at once.
        """
        line = self._lines.get((wish.tenant, wish.contact))
        if line is None or wish.operator_reason is not None or line.held.agent == wish.agent:
            got = await attempt(wish)
        else:
            got = line.held
        if isinstance(got, Lease) or wait.seconds <= 0 or self._ended or self._callers[wait.caller] >= MOST:
            return got
        self._callers[wait.caller] += 1
        try:
            wait.begins()
            return await self._wait(wish, got, wait, attempt)
        finally:
            self._callers[wait.caller] -= 1
            if not self._callers[wait.caller]:
                del self._callers[wait.caller]

    async def _wait(self, wish: Acquire, held: Held, wait: Wait, attempt: Attempt) -> Lease | Held:
        place = (wish.tenant, wish.contact)
        line = self._lines.setdefault(place, _Line(held))
        waiter = _Waiter()
        line.waiters.append(waiter)
        until = asyncio.get_running_loop().time() + wait.seconds
        try:
            while await self._turn(line, waiter, until) and not await wait.gone():
                got = await attempt(wish)
                if isinstance(got, Lease):
                    line.held = Held(got.agent, got.agent_name, got.expires_at, "lease", got.expires_at)
                    return got
                line.held = got
            return line.held
        finally:
            first = line.waiters[0] is waiter
            line.waiters.remove(waiter)
            if not line.waiters:
                self._lines.pop(place, None)
            elif first:
                line.waiters[0].turn.set()

    async def _turn(self, line: _Line, waiter: _Waiter, until: float) -> bool:
        """Wait until it is this waiter's turn to try; `False` when its time is over."""
        loop = asyncio.get_running_loop()
        while not self._ended:
            left = until - loop.time()
            if left <= 0:
                return False
            first = line.waiters[0] is waiter
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(SOONEST, min(left, LOOK)) if first else left):
                    await waiter.turn.wait()
            waiter.turn.clear()
            if line.waiters[0] is waiter and (first or loop.time() < until):
                return not self._ended
        return False

    def freed(self, tenant: str, contact: str) -> None:
        """A lease on this contact was given back here."""
        line = self._lines.get((tenant, contact))
        if line is not None:
            line.waiters[0].turn.set()

    def end(self) -> None:
        """Let nobody wait any longer: the gateway stops."""
        self._ended = True
        for line in self._lines.values():
            for waiter in line.waiters:
                waiter.turn.set()
