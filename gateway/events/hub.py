"""The hub: reads the log once for all who listen at this process, and keeps the newest events at hand.

Each tenant with listeners has a channel. The log is read when this process has committed something, and every POLL seconds
for what other processes commit. Whoever is slower than the channel's memory reads the store itself: nothing is lost.
"""

import asyncio
import contextlib
import logging
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncIterator, Sequence

from gateway.core.errors import StoreUnavailableError
from gateway.events.wire import Piece, frame
from gateway.store import Store, journal
from gateway.store.journal import Entry
from gateway.store.tx import Tx

log = logging.getLogger(__name__)

POLL = 0.25
"""Seconds between two looks for what other processes have committed."""
SOONEST = 0.02
"""Seconds between two looks at least: a look takes along what a busy process has committed meanwhile."""
KEPT = 2048
"""Events that a channel remembers."""
PAGE = 500
"""Events that are read at once."""


class Channel:
    """The newest events of one tenant, and the bell that tells its listeners of more."""

    def __init__(self, tenant: str, last: str) -> None:
        """Begin after the event with the id `last`."""
        self.tenant = tenant
        self.last = last
        self.listeners = 0
        self.bell = asyncio.Event()
        self._before = last  # the id before the first event that is kept
        self._kept: deque[Piece] = deque()

    def publish(self, entries: Sequence[Entry]) -> None:
        """Take in what came after `last`, and ring."""
        for entry in entries:
            if len(self._kept) == KEPT:
                self._before = self._kept.popleft().entry.id
            self._kept.append(Piece(entry, frame(entry, self.tenant)))
        self.last = entries[-1].id
        self.ring()

    def ring(self) -> None:
        """Wake all who wait for this bell; the next wait is for another one."""
        bell, self.bell = self.bell, asyncio.Event()
        bell.set()

    def after(self, last: str) -> list[Piece] | None:
        """What is kept after an event; `None` where that is longer ago than the channel remembers."""
        if last < self._before:
            return None
        if last >= self.last:
            return []
        begin = bisect_right(self._kept, last, key=lambda piece: piece.entry.id)
        return [self._kept[n] for n in range(begin, len(self._kept))]


class Hub:
    """All channels of a process, and the task that fills them while somebody listens."""

    def __init__(self, store: Store) -> None:
        """Start nothing: the first listener does."""
        self.store = store
        self.closing = False
        self.tasks: set[asyncio.Task[None]] = set()
        self._channels: dict[str, Channel] = {}
        self._hint = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Something was committed here."""
        if self._channels:
            self._hint.set()

    @contextlib.asynccontextmanager
    async def listening(self, tenant: str) -> AsyncIterator[Channel]:
        """The channel of a tenant for as long as somebody listens. Raises StoreUnavailableError."""
        channel = self._channels.get(tenant)
        if channel is None:
            last = await self.newest(tenant)
            channel = self._channels.setdefault(tenant, Channel(tenant, last))
        channel.listeners += 1
        if self._reader is None or self._reader.done():
            self._reader = asyncio.create_task(self._read(), name="events")
        try:
            yield channel
        finally:
            channel.listeners -= 1
            if not channel.listeners and self._channels.get(tenant) is channel:
                del self._channels[tenant]

    async def older(self, tenant: str, last: str) -> list[Piece]:
        """A page of what came after an event, from the store. Raises StoreUnavailableError."""
        found = await asyncio.to_thread(
            self.store.read, lambda tx: journal.after(tx, tenant, last, limit=PAGE), (tenant,)
        )
        return [Piece(entry, frame(entry, tenant)) for entry in found]

    async def newest(self, tenant: str) -> str:
        """The id of the last event, from the store; "" where there is none. Raises StoreUnavailableError."""
        return await asyncio.to_thread(self.store.read, lambda tx: journal.newest(tx, tenant), (tenant,))

    async def too_far(self, tenant: str, last: str, most: int) -> bool:
        """Whether more than `most` events came after an event. Raises StoreUnavailableError."""
        return await asyncio.to_thread(self.store.read, lambda tx: journal.more_than(tx, tenant, last, most), (tenant,))

    async def _read(self) -> None:
        while self._channels:
            try:
                if await self._look():
                    continue
            except StoreUnavailableError as error:
                log.warning("the log of events cannot be read now", extra={"cause": str(error)})
            await asyncio.sleep(SOONEST)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL):
                    await self._hint.wait()

    async def _look(self) -> bool:
        """Read what is new for every channel. Returns whether there may be more at once."""
        self._hint.clear()
        wanted = {tenant: channel.last for tenant, channel in self._channels.items()}

        def read(tx: Tx) -> dict[str, list[Entry]]:
            return {tenant: journal.after(tx, tenant, last, limit=PAGE) for tenant, last in wanted.items()}

        found = await asyncio.to_thread(self.store.read, read)
        for tenant, entries in found.items():
            channel = self._channels.get(tenant)
            if entries and channel is not None and channel.last == wanted[tenant]:
                channel.publish(entries)
        return any(len(entries) == PAGE for entries in found.values())

    async def stop(self) -> None:
        """End all streams, and look no more."""
        self.closing = True
        ending = [*self.tasks, *([] if self._reader is None else [self._reader])]
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending, timeout=5)
