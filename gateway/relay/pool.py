"""Connections to one smarthost that are kept between mails, so that greeting, TLS and login are not paid for each.

A connection that has become useless while it lay here is dropped without a word and another one taken; only a new
connection that fails is news (Unreachable). How many there are at once is the worker's business, not the pool's.
"""

import asyncio
import logging

from gateway.core.delivery import Reply
from gateway.relay.smarthost import Smarthost
from gateway.relay.wire import Lost, Wire

log = logging.getLogger(__name__)


class Closing(Exception):  # noqa: N818 - says what the pool is
    """The pool gives out no connection any more: the process is stopping."""


class Pool:
    """The connections to `smarthost`; `idle` is the longest rest in seconds, `max_uses` the mails on one connection.

    `linger` is how many seconds a connection is kept open for a reply that comes too late.
    """

    def __init__(self, smarthost: Smarthost, *, idle: float = 20.0, max_uses: int = 100, linger: float = 300.0) -> None:
        self.smarthost = smarthost
        self._idle = idle
        self._max_uses = max_uses
        self._linger = linger
        self._resting: list[tuple[float, Wire, asyncio.Future[Reply] | None]] = []
        self._lingering: set[Wire] = set()
        self._leaving: set[Wire] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._closing = False

    @property
    def resting(self) -> int:
        """How many connections wait for work."""
        return len(self._resting)

    async def acquire(self, *, fresh: bool = False) -> Wire:
        """Returns a connection that is ready for MAIL; with `fresh` a new one. Raises Unreachable and Closing."""
        while self._resting and not fresh:
            since, wire, reset = self._resting.pop()
            if self._now() - since <= self._idle and await self._ready(wire, reset):
                return wire
            self._leave(wire)
        self._check()
        wire = await self.smarthost.connect()
        try:
            self._check()
        except Closing:
            self._leave(wire)
            raise
        return wire

    def _check(self) -> None:
        if self._closing:
            raise Closing

    async def _ready(self, wire: Wire, reset: asyncio.Future[Reply] | None) -> bool:
        """Whether the connection is still there and has forgotten the mail before."""
        try:
            if reset is not None:
                async with asyncio.timeout(self.smarthost.command_timeout):
                    if (await reset).code >= 300:  # noqa: PLR2004 - 2yz
                        return False
            await wire.hear()
        except (Lost, TimeoutError):
            return False
        except BaseException:  # cancelled: nobody else knows of it any more
            wire.abort()
            raise
        return True

    def release(self, wire: Wire, *, reset: bool = False) -> None:
        """Takes a connection back after its mail; `reset` where a transaction was begun and not completed."""
        wire.uses += 1
        if self._closing or wire.uses >= self._max_uses or not wire.alive:
            self._leave(wire)
            return
        try:
            asked = wire.ask(b"RSET\r\n")[0] if reset else None
        except Lost:
            return
        self._resting.append((self._now(), wire, asked))
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(self._idle, self._swept)

    def linger(self, wire: Wire) -> None:
        """Keeps a connection open on which a reply may still come, and hangs up after a while."""
        if self._closing or not wire.alive:
            wire.abort()
            return
        self._lingering.add(wire)
        timer = asyncio.get_running_loop().call_later(self._linger, wire.abort, "no reply came")
        wire.closed.add_done_callback(lambda _: timer.cancel())
        wire.closed.add_done_callback(lambda _: self._lingering.discard(wire))

    async def aclose(self, grace: float = 1.0) -> None:
        """Says QUIT on resting connections, waits at most `grace` seconds for their end, and gives out no more.

        Connections in use stay as they are until they are released.
        """
        self._closing = True
        if self._sweep is not None:
            self._sweep.cancel()
        for _, wire, _ in self._resting:
            self._leave(wire)
        self._resting.clear()
        for wire in list(self._lingering):
            wire.abort("stopping")
        if self._leaving:
            await asyncio.wait([wire.closed for wire in self._leaving], timeout=grace)
        for wire in list(self._leaving):
            wire.abort()

    def _leave(self, wire: Wire) -> None:
        if not wire.alive:
            wire.abort()
            return
        self._leaving.add(wire)
        wire.closed.add_done_callback(lambda _: self._leaving.discard(wire))
        wire.quit()

    def _swept(self) -> None:
        """Says QUIT where the rest was long enough, and comes back for the others."""
        now = self._now()
        late = [wire for since, wire, _ in self._resting if now - since >= self._idle]
        self._resting = [rest for rest in self._resting if now - rest[0] < self._idle]
        for wire in late:
            self._leave(wire)
        self._sweep = None
        if self._resting:
            oldest = min(since for since, _, _ in self._resting)
            self._sweep = asyncio.get_running_loop().call_later(oldest + self._idle - now, self._swept)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
