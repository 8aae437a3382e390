"""What time alone brings about among agents: once a second it is looked for, and written under its tenants' locks.

A look is one cheap statement for each job; nothing is written where nothing is due. All that is due by the clock reads so
before this has run: it brings the events, and lets go what waits.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.core.errors import StoreUnavailableError
from gateway.store import Store, lease_events, voting
from gateway.store.tx import Tx
from gateway.store.writer import Rank, Work, Writer

log = logging.getLogger(__name__)

LOOK = 1.0
"""Seconds between two looks."""


@dataclass(frozen=True, slots=True)
class Job:
    """Something that time brings about: `due` reads which tenants it is due for, `work` does it for a list of tenants."""

    name: str
    due: Callable[[Tx], Sequence[str]]
    work: Work


JOBS = (
    Job("leases", lease_events.over, lease_events.tell),
    Job("consensus", voting.overdue, voting.expire),
)


class Clock:
    """Looks once a second for what time has brought about, until it is stopped."""

    def __init__(self, store: Store, writer: Writer, jobs: Sequence[Job] = JOBS) -> None:
        """Start nothing."""
        self.store = store
        self.writer = writer
        self.jobs = tuple(jobs)
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look."""
        self._loop = asyncio.create_task(self._run(), name="clock")

    async def stop(self) -> None:
        """Look no more."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.wait({self._loop})

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
            except StoreUnavailableError as error:
                log.warning("what is due cannot be looked for now", extra={"cause": str(error)})
            except Exception:
                log.exception("a look for what is due failed")
            await asyncio.sleep(LOOK)

    async def look(self) -> int:
        """Do what is due, of each job for all its tenants at once. Returns for how many. Raises StoreUnavailableError."""
        found = await asyncio.to_thread(self.store.read, lambda tx: [list(job.due(tx)) for job in self.jobs])
        due = [(job, tenant) for job, tenants in zip(self.jobs, found, strict=True) for tenant in tenants]
        done = await asyncio.gather(*(self._do(job, tenant) for job, tenant in due), return_exceptions=True)
        for (job, tenant), result in zip(due, done, strict=True):
            if isinstance(result, StoreUnavailableError):
                raise result
            if isinstance(result, BaseException):
                log.error("what is due failed", exc_info=result, extra={"job": job.name, "tenant": tenant})
        return len(due)

    async def _do(self, job: Job, tenant: str) -> Any:  # noqa: ANN401  (each job has its own result)
        return await self.writer.do(Rank.FORBID, (tenant,), job.work, tenant)
