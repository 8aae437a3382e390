"""The release loop: mail that waited is judged again when it is due, ended when it is too late; unknown mail by setting."""

import asyncio
import logging
from collections.abc import Callable

from gateway.core.delivery import State
from gateway.core.errors import GatewayError, StoreUnavailableError
from gateway.intake.intake import Intake
from gateway.store import uploads, waiting
from gateway.store.waiting import Resolve, Ripe
from gateway.store.writer import Rank

log = logging.getLogger(__name__)

LOOK = 0.5
"""Seconds between two looks for mail that is due."""
AT_ONCE = 64
STUCK_MAX = 1000
"""Sends that could not be released, for whatever reason, and are looked beyond."""
SWEEP = 5.0
"""Seconds between two looks at held and unknown mail, and at uploads whose day is over."""
PAGE = 500


class ReleaseLoop:
    """Looks for waiting mail that time has ripened."""

    def __init__(self, intake: Intake, unknown: Callable[[str], tuple[str, int]], default_unknown: str) -> None:
        """`unknown` reads a setting like "retry_once_after:1h" into its act and seconds (SEMANTICS 5)."""
        self.intake = intake
        self.read_setting = unknown
        self.default_unknown = default_unknown
        self._loop: asyncio.Task[None] | None = None
        self._stuck = 0

    def start(self) -> None:
        """Begin to look."""
        self._loop = asyncio.create_task(self._run(), name="release")

    async def stop(self) -> None:
        """Look no more."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.wait({self._loop})

    async def _run(self) -> None:
        swept = float("-inf")
        while True:
            try:
                more = await self.look()
                if self.intake.store.boot() / 1_000_000 - swept >= SWEEP:
                    await self.sweep()
                    swept = self.intake.store.boot() / 1_000_000
            except StoreUnavailableError as error:
                log.warning("waiting mail cannot be looked at now", extra={"cause": str(error)})
                more = 0
            except Exception:
                log.exception("a look at waiting mail failed")
                more = 0
            if more < AT_ONCE:
                await asyncio.sleep(LOOK)

    async def look(self) -> int:
        """Release what is due. Returns how many sends were; those that could not be keep nobody else back."""
        fresh_us = round(self.intake.terms.rejudge_after * 1_000_000)
        store = self.intake.store
        pairs = await asyncio.to_thread(
            store.read, lambda tx: waiting.due_for_release(tx, fresh_us=fresh_us, limit=AT_ONCE + self._stuck)
        )
        done = await asyncio.gather(*(self.intake.release(t, r) for t, r in pairs), return_exceptions=True)
        for (_, request), result in zip(pairs, done, strict=True):
            if isinstance(result, StoreUnavailableError):
                raise result
            if isinstance(result, BaseException):
                log.error("a release failed", exc_info=result, extra={"request": request})
        moved = sum(result is not None and not isinstance(result, BaseException) for result in done)
        self._stuck = min(len(pairs) - moved, STUCK_MAX)
        return moved

    async def sweep(self) -> None:
        """Let time decide about all that waits open, a page at a time."""
        last: Ripe | None = None
        while True:
            page = await asyncio.to_thread(
                self.intake.store.read, lambda tx, after=last: waiting.open_page(tx, after, limit=PAGE)
            )
            for one in page:
                await self._ripen(one)
            if len(page) < PAGE:
                break
            last = page[-1]
        await self._clear()

    async def _clear(self) -> None:
        """Take away uploads whose day is over; nobody finds them any more."""
        over = await asyncio.to_thread(self.intake.store.read, uploads.expired)
        if over:
            tenants = sorted({tenant for tenant, _ in over})
            await self.intake.writer.do(Rank.FORBID, tenants, uploads.sweep, over)

    async def _ripen(self, one: Ripe) -> None:
        intake = self.intake
        if one.state is State.HELD:
            if one.lateness_us >= intake.terms.max_lateness * 1_000_000:
                await intake.writer.do(Rank.FORBID, (one.tenant,), waiting.expire, (one.tenant, one.delivery))
            return
        setting = one.unknown.get(one.kind) or one.unknown.get("*") or self.default_unknown
        act, seconds = self.read_setting(setting)
        if act == "hold" or one.age_us < seconds * 1_000_000:
            return
        if act == "retry_once_after" and one.tried:
            return
        decision = "retry" if act == "retry_once_after" else "assume_sent"
        try:
            about = (one.delivery, one.changed_us)
            await intake.resolve(Resolve(one.tenant, one.request, decision, "setting", setting, *about))
        except StoreUnavailableError:
            raise
        except GatewayError as error:  # somebody else was quicker
            log.info("an unknown delivery was decided meanwhile", extra={"delivery": one.delivery, "cause": str(error)})
