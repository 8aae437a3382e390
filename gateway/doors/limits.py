"""How often a caller may ask: so many requests a minute for a key that has a limit, so many wrong keys for an address.

Both are buckets in the memory of this process: with several processes each counts for itself, and a start begins anew.
"""

import ipaddress
import math
from collections.abc import Callable
from dataclasses import dataclass

from gateway.doors.refusal import Refusal

MINUTE = 60.0
GUESSES = 60
"""Wrong keys from one address before it has to wait; then one more each second."""
GUESSES_SECONDS = 60.0
ADDRESSES_MAX = 10_000
"""Addresses that are remembered at once; the one that has been quiet for longest is forgotten."""
KEYS_MAX = 10_000
NETWORK_BITS = 64
"""Of an IPv6 address: what one customer has."""


@dataclass(slots=True)
class Bucket:
    """Tokens that come back evenly: `size` of them in `seconds`."""

    size: int
    seconds: float
    left: float
    at: float

    def fill(self, now: float) -> None:
        """Let in what has come back since."""
        self.left = min(float(self.size), self.left + max(0.0, now - self.at) * self.size / self.seconds)
        self.at = now

    @property
    def wait(self) -> float:
        """Seconds until there is a whole token."""
        return max(0.0, 1 - self.left) * self.seconds / self.size

    @property
    def full_in(self) -> float:
        """Seconds until all are back."""
        return (self.size - self.left) * self.seconds / self.size


@dataclass(frozen=True, slots=True)
class Allowance:
    """Where a key stands after a request: its limit a minute, what is left, whole seconds until all is back."""

    limit: int
    remaining: int
    reset: int
    wait: int = 0

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The fields of draft-ietf-httpapi-ratelimit-headers-06, which most clients know."""
        said = {"limit": self.limit, "remaining": self.remaining, "reset": self.reset}
        return [(f"ratelimit-{name}".encode(), str(value).encode()) for name, value in said.items()]


class Limits:
    """The buckets of one process."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin with none; `clock` gives seconds."""
        self._clock = clock
        self._keys: dict[str, Bucket] = {}
        self._addresses: dict[str, Bucket] = {}

    def spend(self, key_id: str, per_minute: int) -> Allowance:
        """Count a request of a key; where nothing was left, `wait` says for how many seconds, and it must be refused."""
        bucket = self._taken(self._keys, key_id, KEYS_MAX, per_minute, MINUTE)
        if bucket.size != per_minute:  # an operator has changed it meanwhile
            bucket = Bucket(per_minute, MINUTE, bucket.left * per_minute / bucket.size, bucket.at)
        self._keys[key_id] = bucket
        wait = 0 if bucket.left >= 1 else _whole(bucket.wait)
        bucket.left -= not wait
        return Allowance(per_minute, int(bucket.left), math.ceil(bucket.full_in), wait)

    def refuse_guesses(self, address: str | None) -> None:
        """Refuse a key that was never good where too many wrong ones have come from an address. Raises Refusal 429."""
        bucket = self._addresses.get(_network(address))
        if address is None or bucket is None:
            return
        bucket.fill(self._clock())
        if bucket.left < 1:
            raise Refusal(
                429, "too_many_wrong_keys", "too many wrong keys came from this address", retryAfter=_whole(bucket.wait)
            )

    def note_guess(self, address: str | None) -> None:
        """Count a wrong key against an address, where that is known."""
        if address is None:
            return
        name = _network(address)
        bucket = self._taken(self._addresses, name, ADDRESSES_MAX, GUESSES, GUESSES_SECONDS)
        bucket.left = max(0.0, bucket.left - 1)
        self._addresses[name] = bucket

    def _taken(self, among: dict[str, Bucket], name: str, most: int, size: int, seconds: float) -> Bucket:
        """The bucket of this name, filled up to now and taken out, so that putting it back makes it the newest."""
        now = self._clock()
        bucket = among.pop(name, None)
        if bucket is None:
            while len(among) >= most:
                among.pop(next(iter(among)))
            return Bucket(size, seconds, float(size), now)
        bucket.fill(now)
        return bucket


def _whole(seconds: float) -> int:
    """Whole seconds, at least one."""
    return max(1, math.ceil(seconds))


def _network(address: str | None) -> str:
    """The address, or the network of one of IPv6."""
    try:
        found = ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return address or ""
    if isinstance(found, ipaddress.IPv6Address):
        return str(found.ipv4_mapped or ipaddress.ip_network((int(found), NETWORK_BITS), strict=False))
    return str(found)
