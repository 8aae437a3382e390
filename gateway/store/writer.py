"""The grouped writer: one transaction at a time, and it takes everyone who waits along (ARCHITECTURE 1, idea 2).

While one transaction runs in the writer's thread, newcomers gather; when it ends they go together into the next: group
commit without a timer. Inside a group the order is fixed by rank, because it changes answers: what forbids comes before
what permits, what settles before what decides.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby
from typing import Any, TypeVar

from gateway.core.errors import CommitInDoubtError, StoreBusyError, StoreUnavailableError
from gateway.store import Store
from gateway.store.tx import Tx

A = TypeVar("A")
R = TypeVar("R")
log = logging.getLogger(__name__)

MAX_DECISIONS = 64
MAX_WAITING = 20_000
DEADLINE = 45.0
"""Seconds for one group, above every time-out of the database: only a COMMIT can last longer (a standby that hangs)."""


class Rank(IntEnum):
    """The order of acts inside one group."""

    FORBID = 0  # suppress, cancel, pause, resolve, expiry, recovery, settings
    PERMIT = 1
    SETTLE = 2
    LEASE = 3
    CLAIM = 4
    DECIDE = 5


Work = Callable[[Tx, Sequence[Any]], Sequence[Any]]
"""Does all waiting jobs of one kind; returns a result for each, an exception where a job alone failed."""


@dataclass(slots=True)
class Job:
    """One act that waits for its group."""

    rank: Rank
    tenants: tuple[str, ...]
    work: Work
    argument: Any
    future: "asyncio.Future[Any]"


class Writer:
    """Gathers jobs on the loop and runs them in groups in one thread (or inline, for tests that step by hand)."""

    def __init__(self, store: Store, *, inline: bool = False) -> None:
        """Start nothing: the thread is made by the first group."""
        self.store = store
        self.after: Callable[[], None] = lambda: None  # called on the loop after each group
        self._waiting: deque[Job] = deque()
        self._running: asyncio.Task[None] | None = None
        self._executor = None if inline else ThreadPoolExecutor(1, thread_name_prefix="writer")
        self.groups = 0
        self.jobs = 0

    async def do(
        self,
        rank: Rank,
        tenants: Sequence[str],
        work: Callable[[Tx, Sequence[A]], Sequence[R] | Sequence[R | Exception]],
        argument: A,
    ) -> R:
        """Run `work` for `argument` in the next group and return its result once that is committed.

        `work` is the same function for all jobs that may be done together. A caller that is cancelled cancels nothing.
        Raises what `work` gave for this argument, or StoreUnavailableError.
        """
        if len(self._waiting) >= MAX_WAITING:
            msg = "too many requests wait for the store"
            raise StoreUnavailableError(msg)
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(Job(rank, tuple(tenants), work, argument, future))
        if self._running is None:
            self._running = asyncio.create_task(self._drain())
        result: R = await future
        return result

    async def _drain(self) -> None:
        try:
            while self._waiting:
                batch = self._take()
                if self._executor is None:
                    results = self._run(batch)
                else:
                    results = await self._in_thread(self._executor, batch)
                for job, result in zip(batch, results, strict=True):
                    if job.future.done():  # its caller has gone; the work stands all the same
                        continue
                    if isinstance(result, BaseException):
                        job.future.set_exception(result)
                    else:
                        job.future.set_result(result)
                self.after()
        finally:
            self._running = None

    async def _in_thread(self, executor: ThreadPoolExecutor, batch: list[Job]) -> list[Any]:
        """Run a group in the writer's thread; a group beyond its deadline is broken off, and its outcome looked up."""
        work = asyncio.get_running_loop().run_in_executor(executor, self._run, batch)
        while True:
            done, _ = await asyncio.wait({work}, timeout=DEADLINE)
            if done:
                return work.result()
            log.error("a transaction is stuck and is broken off", extra={"jobs": len(batch)})
            self.store.abort()

    def _take(self) -> list[Job]:
        """Everyone who waits, but at most MAX_DECISIONS decisions; permits and settles are never left behind."""
        batch: list[Job] = []
        rest: deque[Job] = deque()
        decisions = 0
        for job in self._waiting:
            decisions += job.rank is Rank.DECIDE
            (rest if job.rank is Rank.DECIDE and decisions > MAX_DECISIONS else batch).append(job)
        self._waiting = rest
        batch.sort(key=lambda job: job.rank)
        return batch

    def _run(self, batch: list[Job]) -> list[Any]:
        """Run a group; retry it whole once, then job by job, so that one poisonous row harms only itself."""
        self.groups += 1
        self.jobs += len(batch)
        try:
            return self._together(batch)
        except (CommitInDoubtError, StoreBusyError) as error:
            # After a doubt a second try might do all of it twice: the callers know what may be repeated. After a wait for
            # a lock it would make them wait as long again before they hear of it.
            return [error] * len(batch)
        except Exception as error:  # noqa: BLE001  (whatever it was, nothing of it was committed)
            log.warning("a group failed and is tried again", extra={"jobs": len(batch), "cause": repr(error)})
        try:
            return self._together(batch)
        except StoreUnavailableError as error:
            return [error] * len(batch)
        except Exception as error:
            if len(batch) == 1:
                log.exception("a job failed")
                return [error]
        return [result for job in batch for result in self._run_alone(job)]

    def _run_alone(self, job: Job) -> list[Any]:
        try:
            return self._together([job])
        except Exception as error:
            log.exception("a job failed", extra={"tenants": job.tenants})
            return [error]

    def _together(self, batch: list[Job]) -> list[Any]:
        def work(tx: Tx) -> list[Any]:
            results: list[Any] = []
            for _, run in groupby(batch, key=lambda job: (job.rank, job.work)):
                jobs = list(run)
                done = jobs[0].work(tx, [job.argument for job in jobs])
                if len(done) != len(jobs):
                    msg = f"{len(done)} results for {len(jobs)} jobs"
                    raise AssertionError(msg)
                results += done
            return results

        return self.store.write({tenant for job in batch for tenant in job.tenants}, work)

    async def close(self) -> None:
        """Wait for the group that runs and for all who wait, then end the thread."""
        while self._running is not None:
            await asyncio.wait({self._running})
        if self._executor is not None:
            self._executor.shutdown()
