"""Random bytes, fetched from the system many at a time: one call each costs more than all else about an id."""

import os
import time

POOL = 4096
_DIGITS = "0123456789abcdefghijklmnopqrstuv"
_PAIRS = [first + second for first in _DIGITS for second in _DIGITS]
_pool = bytearray()


def chance(count: int) -> bytes:
    """The next `count` random bytes (at most POOL); called on the loop's thread only."""
    if len(_pool) < count:
        _pool[:] = os.urandom(POOL)
    taken = bytes(_pool[:count])
    del _pool[:count]
    return taken


def new_request_id() -> str:
    """An id that sorts by time: 48 bits of milliseconds and 72 bits of chance, in 24 letters and digits."""
    number = (int(time.time() * 1000) & 0xFFFFFFFFFFFF) << 72 | int.from_bytes(chance(9))
    return "req_" + "".join([_PAIRS[number >> shift & 0x3FF] for shift in range(110, -1, -10)])
