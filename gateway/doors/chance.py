"""Random bytes, fetched from the system many at a time: one call each costs more than all else about an id."""

import os

POOL = 4096
_pool = bytearray()


def chance(count: int) -> bytes:
    """The next `count` random bytes (at most POOL); called on the loop's thread only."""
    if len(_pool) < count:
        _pool[:] = os.urandom(POOL)
    taken = bytes(_pool[:count])
    del _pool[:count]
    return taken
