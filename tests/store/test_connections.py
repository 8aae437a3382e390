"""Connections of a store that is closed: none is left open, whatever goes on at that moment."""

import gc
import threading

from gateway.store.tx import Tx
from tests.world import World


def test_a_read_that_ends_after_the_store_was_closed_leaves_no_connection(world: World) -> None:
    begun, closed = threading.Event(), threading.Event()
    seen: list[bool] = []

    def look(_: Tx) -> bool:
        begun.set()
        return closed.wait(10)

    reading = threading.Thread(target=lambda: seen.append(world.store.read(look)))
    reading.start()
    assert begun.wait(10)
    world.store.close()
    closed.set()
    reading.join(10)

    assert seen == [True]
    assert world.store._readers == []
    gc.collect()  # a connection of PostgreSQL that is still open says so as it is collected
    assert world.store.read(lambda tx: tx.now_us) > 0
