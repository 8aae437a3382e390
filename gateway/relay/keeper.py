"""Keeps this process alive in the store's eyes, and takes up what dead processes held.

A process is dead when it is plainly gone from this machine, or when its beat has stood still for CLAIM_SECONDS of this
watcher's own boot-time, seen in looks that never lay far apart: a watcher that slept itself has seen nothing.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.core.errors import StoreUnavailableError
from gateway.store import Store, epochs, waiting
from gateway.store.tx import Tx
from gateway.store.writer import Rank, Writer

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Seen:
    beat: int
    since: float


class Watch:
    """Decides which epochs are dead, from what is seen of their beats; pure but for the list of gone processes."""

    def __init__(self, own: str, claim_seconds: float, interval: float) -> None:
        """Watch all epochs but `own`."""
        self.own = own
        self.claim_seconds = claim_seconds
        self.interval = interval
        self._seen: dict[str, _Seen] = {}
        self._last_look = float("-inf")

    def look(self, beats: list[tuple[str, str, int]], now: float) -> list[str]:
        """Take note of (epoch, host, beat) as read at boot-time `now` (seconds); returns the dead."""
        if now - self._last_look > 3 * self.interval:
            self._seen.clear()
        self._last_look = now
        dead = []
        for epoch, host, beat in beats:
            if epoch == self.own:
                continue
            seen = self._seen.get(epoch)
            if seen is None or seen.beat != beat:
                seen = self._seen[epoch] = _Seen(beat, now)
            if now - seen.since >= self.claim_seconds or epochs.gone(host):
                dead.append(epoch)
        return dead


class Keeper:
    """Beats, and recovers the dead."""

    def __init__(self, store: Store, writer: Writer, claim_seconds: float) -> None:
        """Start nothing; `claim_seconds` is the silence after which a process is dead."""
        self.store = store
        self.writer = writer
        self.interval = min(5.0, claim_seconds / 6)
        self.watch = Watch(store.epoch, claim_seconds, self.interval)
        self._loop: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Join: from now on this process has an epoch in the store."""
        self.store.serving = True
        await self.writer.do(Rank.FORBID, (), _nothing, None)
        self._loop = asyncio.create_task(self._run(), name="keeper")

    async def stop(self) -> None:
        """Leave; called last, when nothing is held any more."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.wait({self._loop})
        self.store.serving = False
        with contextlib.suppress(StoreUnavailableError):
            await self.writer.do(Rank.FORBID, (), _leave, self.store.epoch)

    async def _run(self) -> None:
        while True:
            try:
                await self.writer.do(Rank.FORBID, (), _nothing, None)
                await self.recover()
            except StoreUnavailableError as error:
                log.warning("the store does not take the beat", extra={"cause": str(error)})
            except Exception:
                log.exception("a dead process's deliveries cannot be taken up")  # go on beating, or others take up ours
            await asyncio.sleep(self.interval)

    async def recover(self) -> int:
        """Take up what the dead held; returns how many deliveries."""
        beats = await asyncio.to_thread(self.store.read, epochs.beats)
        count = 0
        for epoch in self.watch.look(beats, self.store.boot() / 1_000_000):
            tenants = await asyncio.to_thread(self.store.read, lambda tx, e=epoch: epochs.tenants_of(tx, e))
            count += await self.writer.do(Rank.FORBID, tenants, waiting.recover, epoch)
            log.warning("a process has ended; its deliveries are taken up", extra={"epoch": epoch})
        return count


def _nothing(_: Tx, wishes: Sequence[None]) -> Sequence[None]:
    """The beat itself is written by every group of a process that serves."""
    return wishes


def _leave(tx: Tx, own: Sequence[str]) -> Sequence[None]:
    for epoch in own:
        if not epochs.tenants_of(tx, epoch):
            epochs.forget(tx, epoch)
    return [None] * len(own)
