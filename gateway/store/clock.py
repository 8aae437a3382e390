"""The store's clock: the only one that decides leases, cooldowns, quotas and due times (ARCHITECTURE 7).

Time never runs backwards and never stands still: it is the later of the database's clock and the last committed time plus
the boot-time elapsed since this process read it, and at least a microsecond after the last.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICRO = timedelta(microseconds=1)


def to_us(moment: datetime) -> int:
    """Microseconds since 1970 of an aware time."""
    return (moment - EPOCH) // MICRO


def from_us(us: int) -> datetime:
    """The aware UTC time of microseconds since 1970."""
    return EPOCH + timedelta(microseconds=us)


def maybe_us(moment: datetime | None) -> int | None:
    """As `to_us`, with nothing for nothing."""
    return None if moment is None else to_us(moment)


def maybe_time(us: int | None) -> datetime | None:
    """As `from_us`, with nothing for nothing."""
    return None if us is None else from_us(us)


def boot_us() -> int:
    """Microseconds since boot, time asleep included where the system has such a clock."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(clock) // 1000


class Steady:
    """Remembers, by tenant, the last time that this process was given and when (boot-time) that was.

    The name "" stands for transactions that concern no tenant.
    """

    def __init__(self, boot: Callable[[], int] = boot_us) -> None:
        """Take the boot-time clock, in microseconds; tests may give their own."""
        self._boot = boot
        self._seen: dict[str, tuple[int, int]] = {}

    def now(self, tenant: str, database_us: int, last_us: int) -> int:
        """The time for a transaction of `tenant`, given the database's clock and the last committed time."""
        boot = self._boot()
        seen_us, seen_boot = self._seen.get(tenant, (last_us, boot))
        now_us = max(database_us, last_us + 1, seen_us + (boot - seen_boot))
        self._seen[tenant] = (now_us, boot)
        return now_us

    def about(self, tenant: str) -> int | None:
        """The time by what this process was told last, without asking; `None` where it was told nothing."""
        seen = self._seen.get(tenant)
        return None if seen is None else seen[0] + self._boot() - seen[1]
