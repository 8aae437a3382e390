"""When keys were last used: noted in memory as requests come, written down once a minute in one transaction of its own.

No request waits for it. What was noted since the last minute is lost where a process is killed, and nothing else.
"""

import asyncio
import logging
from collections.abc import Callable

from gateway.core.errors import GatewayError
from gateway.store import Store, key_uses
from gateway.store.tx import Tx

log = logging.getLogger(__name__)

EVERY = 60.0
"""Seconds between two times that uses are written down."""


class Uses:
    """The last uses of a process that are not yet in the store."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        """Know of none; `clock` gives seconds."""
        self._store = store
        self._clock = clock
        self._noted: dict[tuple[str, str], float] = {}
        self._loop: asyncio.Task[None] | None = None

    def note(self, tenant: str, key_id: str) -> None:
        """A key was used now."""
        self._noted[tenant, key_id] = self._clock()

    def start(self) -> None:
        """Begin to write down."""
        self._loop = asyncio.create_task(self._run(), name="uses")

    async def stop(self) -> None:
        """Write down what is left, and no more."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.wait({self._loop})
        await self.flush()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            await self.flush()

    async def flush(self) -> None:
        """Write down what was noted; where the store cannot take it now, that is tried again with the next."""
        noted, self._noted = self._noted, {}
        if not noted:
            return
        now = self._clock()
        ages = {key: now - at for key, at in noted.items()}

        def write(tx: Tx) -> None:
            key_uses.note_uses(tx, ages)

        try:
            await asyncio.to_thread(self._store.write, {tenant for tenant, _ in noted}, write)
        except GatewayError as error:
            log.warning("the last uses of keys could not be written", extra={"cause": str(error)})
            self._noted = noted | self._noted
