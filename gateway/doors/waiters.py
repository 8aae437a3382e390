"""Callers who wait until a send of theirs has had its relay attempt, which another process may make."""

import asyncio
import contextlib

from gateway.core.delivery import IN_FLIGHT, State
from gateway.core.record import DeliveryRecord, Record
from gateway.store import Store, records

LOOK = 0.05
"""Seconds between two looks at a send that somebody waits for: its relay may be another process."""


class Waiters:
    """Callers who wait for a send's relay attempt (`Prefer: wait`)."""

    def __init__(self, store: Store) -> None:
        """Look the sends up in `store`; once `ended` is true nobody waits any longer."""
        self.store = store
        self.ended = False
        self._events: dict[tuple[str, str], list[asyncio.Event]] = {}

    def settled(self, tenant: str, request: str) -> None:
        """Wake whoever waits for this send."""
        for event in self._events.get((tenant, request), ()):
            event.set()

    async def wait(self, tenant: str, request: str, seconds: float) -> Record | None:
        """Return the record once every recipient that was due has had its attempt, or as it is after `seconds`."""
        loop = asyncio.get_running_loop()
        until, event = loop.time() + seconds, asyncio.Event()
        waiting = self._events.setdefault((tenant, request), [])
        waiting.append(event)
        try:
            while True:
                event.clear()
                record = await asyncio.to_thread(self._look, tenant, request)
                left = until - loop.time()
                if record is None or self.ended or not any(_on_its_way(d) for d in record.deliveries) or left <= 0:
                    return record
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(LOOK, left)):
                        await event.wait()
        finally:
            waiting.remove(event)
            if not waiting:
                self._events.pop((tenant, request), None)

    def _look(self, tenant: str, request: str) -> Record | None:
        return self.store.read(lambda tx: records.find(tx, tenant, [request]).get(request), (tenant,))


def _on_its_way(delivery: DeliveryRecord) -> bool:
    return delivery.state in IN_FLIGHT and not (delivery.state is State.QUEUED and delivery.tried)
