"""Who may not try to log in for a while: failed logins are counted by network address and by the name that was given.

Keys have 256 random bits, so nobody guesses one; this keeps those who try from costing anything. It keeps its counts in
the process alone.
"""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

V = TypeVar("V")

KEPT_MAX = 10_000
"""Addresses and names that are remembered at once, each."""
NAME_MAX = 128
TRUSTED_SECONDS = 86_400.0
"""How long an address that has logged in with a name is not held up by what others do with that name."""
IPV6_SITE = 64
"""Bits of an IPv6 address that stand for one place."""


@dataclass(slots=True)
class Lockout:
    """`tries` failures within `seconds` lock an address out for as long; ten times as many lock a name.

    A locked name locks out only those addresses that have not logged in with it lately: else a stranger could lock out
    an agent. `pause` (seconds) is how long a first failure is left without an answer; it doubles up to `pause_max`.
    """

    tries: int = 10
    seconds: float = 600.0
    pause: float = 0.5
    pause_max: float = 5.0
    clock: Callable[[], float] = time.monotonic
    _failed: "OrderedDict[tuple[str, str], tuple[int, float]]" = field(default_factory=OrderedDict)
    _passed: "OrderedDict[tuple[str, str], float]" = field(default_factory=OrderedDict)

    def locked(self, address: str, name: str) -> bool:
        """Whether somebody there may not try now, or not with this name."""
        site, who = _site(address), _name(name)
        if self._count(("address", site)) >= self.tries:
            return True
        known = self._passed.get((site, who))
        if known is not None and self.clock() < known + TRUSTED_SECONDS:
            return False
        return self._count(("name", who)) >= self.tries * 10

    def failed(self, address: str, name: str) -> float:
        """Count a failure; returns the seconds to wait before it is answered."""
        until = self.clock() + self.seconds
        for slot in (("address", _site(address)), ("name", _name(name))):
            _keep(self._failed, slot, (self._count(slot) + 1, until))
        return min(self.pause * 2.0 ** (self._count(("address", _site(address))) - 1), self.pause_max)

    def passed(self, address: str, name: str) -> None:
        """Forget what failed at this address: who has a key may have mistyped it."""
        site = _site(address)
        self._failed.pop(("address", site), None)
        _keep(self._passed, (site, _name(name)), self.clock())

    def _count(self, slot: tuple[str, str]) -> int:
        count, until = self._failed.get(slot, (0, 0.0))
        return count if self.clock() < until else 0


def _keep(table: "OrderedDict[tuple[str, str], V]", slot: tuple[str, str], value: V) -> None:
    """Put something into a table that never holds more than KEPT_MAX; the oldest goes first."""
    table[slot] = value
    table.move_to_end(slot)
    while len(table) > KEPT_MAX:
        table.popitem(last=False)


def _site(address: str) -> str:
    """An address, or the network of one site where it is of IPv6."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, IPV6_SITE), strict=False))
    return str(found)


def _name(name: str) -> str:
    return name[:NAME_MAX].lower()
