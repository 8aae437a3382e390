"""The relay worker: claims due deliveries, attempts each, asks the permit, settles. Many processes may do so at once.

What it holds when it is stopped it gives back; what it had permitted it waits for, and calls unknown where no reply comes.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

from gateway.core.delivery import Deferred, GivenBack, Outcome, Reply, Retry, Unknown
from gateway.core.errors import StoreUnavailableError
from gateway.core.mime import stuff, to_seven_bit
from gateway.core.mimeascii import ascii_headers, form
from gateway.relay.attempt import attempt, verdict
from gateway.relay.outgoing import Outgoing, beside
from gateway.relay.pool import Pool
from gateway.store import Store, outbox, settles
from gateway.store.outbox import Claim, ClaimRequest
from gateway.store.settles import Report
from gateway.store.steps import astep
from gateway.store.writer import Rank, Writer

log = logging.getLogger(__name__)

POLL = 0.1
"""Seconds between two looks whether another process has put something into the outbox; a signal only hurries it."""
SETTLE_PAUSES = (0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True, slots=True)
class Pace:
    """How much at once, how long mail is fresh without being judged again (seconds), how long a stop may take (seconds)."""

    concurrency: int = 10
    rejudge_after: float = 600.0
    grace: float = 15.0
    late: float = 5.0


class Worker:
    """Keeps up to `pace.concurrency` attempts under way."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        pool: Pool,
        retry: Retry,
        pace: Pace | None = None,
        settled: Callable[[str, str], None] = lambda _tenant, _request: None,
        roll: Callable[[], float] = random.random,
    ) -> None:
        """Start nothing. `settled` is told tenant and request after each settle, `roll` is the jitter's dice."""
        self.store = store
        self.writer = writer
        self.pool = pool
        self.retry = retry
        self.pace = pace or Pace()
        self.settled = settled
        self.roll = roll
        self.stopping = False
        self._doubtful = False  # a claim may have been committed whose answer never came
        self._woken = asyncio.Event()
        self._under_way: dict[asyncio.Task[None], _Attempt] = {}
        self._late: set[asyncio.Task[None]] = set()
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look for due mail."""
        self._loop = asyncio.create_task(self._run(), name="relay")

    def wake(self) -> None:
        """Say that something new may be due."""
        self._woken.set()

    async def _run(self) -> None:
        while not self.stopping:
            try:
                await self._fill()
            except StoreUnavailableError as error:
                log.warning("the outbox cannot be read now", extra={"cause": str(error)})
                self._doubtful = True
                await self._pause(1.0)
            except Exception:
                log.exception("a claim failed")
                await self._pause(1.0)

    async def _fill(self) -> None:
        """Claim as much as there is room for; then wait for room, a signal, or the next look."""
        free = self.pace.concurrency - len(self._under_way)
        if free <= 0:
            await asyncio.wait(set(self._under_way), return_when=asyncio.FIRST_COMPLETED)
            return
        hurried = self._woken.is_set() or self._doubtful
        self._woken.clear()
        fresh_us = round(self.pace.rejudge_after * 1_000_000)
        if hurried or await asyncio.to_thread(self.store.read, lambda tx: outbox.any_due(tx, fresh_us)):
            holding = frozenset((job.claim.tenant, job.claim.delivery) for job in self._under_way.values())
            wish = ClaimRequest(self.store.epoch, free, fresh_us, holding if self._doubtful else None)
            claims: list[Claim] = await self.writer.do(Rank.CLAIM, await self._strays(), outbox.claim, wish)
            self._doubtful = False
            for claim in claims:
                self._begin(claim)
            if claims:
                return
        await self._pause(POLL)

    async def _strays(self) -> list[str]:
        """The tenants of whom something may be claimed that this worker knows nothing of."""
        if not self._doubtful:
            return []
        return await asyncio.to_thread(self.store.read, lambda tx: outbox.tenants_of(tx, self.store.epoch))

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()

    def _begin(self, claim: Claim) -> None:
        job = _Attempt(self, claim)
        task = asyncio.create_task(job.run(), name=f"attempt {claim.delivery}")
        self._under_way[task] = job
        task.add_done_callback(lambda t: self._under_way.pop(t, None))

    async def settle(self, claim: Claim, outcome: Outcome) -> None:
        """Write what became of an attempt, again and again until the store takes it.

        A claim must not run out into a second try of a mail whose reply we have read.
        """
        report = Report(claim, outcome, self.retry, self.roll())
        for pause in chain(SETTLE_PAUSES, repeat(SETTLE_PAUSES[-1])):
            try:
                await self.writer.do(Rank.SETTLE, (claim.tenant,), settles.settle_all, report)
            except StoreUnavailableError as error:
                log.warning("an outcome cannot be written now", extra={"delivery": claim.delivery, "cause": str(error)})
                if self.stopping and pause > 1:  # whoever takes up what we held will call it unknown
                    return
                await asyncio.sleep(pause)
            else:
                break
        _tell(claim, outcome)
        self.settled(claim.tenant, claim.send)
        self._woken.set()

    def late_reply(self, claim: Claim, reply: Reply) -> None:
        """A reply that came after its time settles the unknown, under the same claim number."""
        outcome = verdict(reply, "dot")
        if isinstance(outcome, Unknown):
            return
        task = asyncio.create_task(self.settle(claim, outcome))
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def stop(self) -> None:
        """Claim and permit nothing more, give back what has no permit, wait for the replies of what has one."""
        self.stopping = True
        self._woken.set()
        if self._loop is not None:
            await asyncio.wait({self._loop})
        for job in self._under_way.values():
            job.give_back()
        if self._under_way:
            await asyncio.wait(set(self._under_way), timeout=self.pace.grace)
        for job in list(self._under_way.values()):
            job.abandon()
        while self._under_way or self._late:
            await asyncio.wait({*self._under_way, *self._late})
        await self.pool.aclose()


class _Attempt:
    """One claim under way: the attempt, its permit, its settle."""

    def __init__(self, worker: Worker, claim: Claim) -> None:
        self.worker = worker
        self.claim = claim
        self.permitting = False
        self._work: asyncio.Task[Outcome] | None = None
        self._stopped: Outcome = GivenBack("stopping")

    async def run(self) -> None:
        """Attempt and settle; only the attempt is ever cancelled."""
        self._work = asyncio.create_task(self._attempt())
        await asyncio.wait({self._work})
        await self.worker.settle(self.claim, self._outcome(self._work))

    def _outcome(self, work: "asyncio.Task[Outcome]") -> Outcome:
        if work.cancelled():
            return self._stopped
        error = work.exception()
        if error is None:
            return work.result()
        log.error("an attempt failed", exc_info=error, extra={"delivery": self.claim.delivery})
        if not self.permitting:
            return Deferred("an error of the gateway's own")
        return Unknown("an error of the gateway's own")

    async def _attempt(self) -> Outcome:
        worker, claim = self.worker, self.claim
        await astep("claimed")
        mail = await beside(len(claim.body), outgoing, claim)
        return await attempt(
            worker.pool,
            mail,
            self._permit,
            boot_clock=lambda: worker.store.boot() / 1_000_000,
            late=worker.pace.late,
            step=astep,
            late_reply=lambda reply: worker.late_reply(claim, reply),
        )

    async def _permit(self) -> str | None:
        if self.worker.stopping:
            return "stopping"
        await astep("permit.before")
        self.permitting = True
        try:
            word: str | None = await self.worker.writer.do(Rank.PERMIT, (), outbox.permit, self.claim)
        except StoreUnavailableError:
            word = "the store could not be asked"
        if word is not None:
            self.permitting = False
        return word

    def give_back(self) -> None:
        """End the attempt where no permit has been asked."""
        if not self.permitting and self._work is not None:
            self._work.cancel()

    def abandon(self) -> None:
        """End the attempt whatever it waits for: after a permit nobody knows."""
        if self.permitting:
            self._stopped = Unknown("the gateway stopped while it waited for the reply")
        if self._work is not None:
            self._work.cancel()


def outgoing(claim: Claim) -> Outgoing:
    """The mail of a claim as it goes over the wire: one recipient, dot-stuffed."""
    return _written(claim, claim.body)


def _written(claim: Claim, body: bytes) -> Outgoing:
    return Outgoing(
        claim.reverse_path,
        claim.address,
        stuff(body),
        len(body),
        needs_smtputf8=not claim.address.isascii(),
        eight_bit=not body.isascii(),
        seven_bit=lambda: stuff(to_seven_bit(body)),
        headers=form(body),
        narrow=lambda: _written(claim, ascii_headers(body)),
        dsn=claim.dsn,
    )


def _tell(claim: Claim, outcome: Outcome) -> None:
    about: dict[str, Any] = {"delivery": claim.delivery, "outcome": type(outcome).__name__.lower()}
    reply = getattr(outcome, "reply", None)
    if reply is not None:
        about["code"] = reply.code
    if why := getattr(outcome, "why", ""):
        about["why"] = why
    log.info("attempt", extra=about)
