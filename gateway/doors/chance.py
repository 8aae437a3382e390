"""Random bytes, fetched from the system many at a time: one call each costs more than all else about an id."""

import os
import time
from base64 import b32hexencode

POOL = 4096
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
    return f"req_{b32hexencode(int(time.time() * 1000).to_bytes(6) + chance(9)).decode().lower()}"
