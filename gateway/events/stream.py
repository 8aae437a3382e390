"""One listener's stream: Server-Sent Events (WHATWG HTML, section 9.2), from where it says it was, without a gap.

It goes no faster than its reader: whoever is slow falls behind and is served from the store. Only where more than BACKLOG_MAX
events lie between is a `gap` told, with the ids to read them by; then the stream goes on with what is new.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.core.errors import StoreUnavailableError
from gateway.doors.auth import Grant
from gateway.doors.http.guard import LEAVE
from gateway.doors.http.problems import dumped
from gateway.doors.refusal import Refusal
from gateway.events.hub import Channel, Hub
from gateway.events.wire import Filter, Piece, visible

BACKLOG_MAX = 10_000
"""Events that are caught up with on one stream."""
BEAT = 15.0
"""Seconds of silence after which a line is sent, so that both sides see that the other is there."""
CHECK = 1.0
"""Seconds for which a listener's key is believed."""
PATIENCE = 60.0
"""Seconds that a listener may take nothing before it is let go; it may come back and go on where it was."""
RETRY = b"retry: 2000\n\n"
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),  # a proxy that gathers the stream would hold events back
]

Again = Callable[[], Awaitable[Grant]]
"""Asks again what the key may do. Raises Refusal where it is good no longer."""


class Stream(Response):
    """The answer that does not end until its reader goes, its key is revoked, or the gateway stops."""

    media_type = "text/event-stream"

    def __init__(self, hub: Hub, grant: Grant, again: Again, wanted: Filter, since: str | None) -> None:
        """Tell `wanted` events after `since` (`None`: those from now on) as far as the key of `grant` may see them."""
        super().__init__(b"")
        self.hub = hub
        self.grant = grant
        self.again = again
        self.wanted = wanted
        self.since = since
        self._checked = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell events until there is nobody to tell them to."""
        scope.get(LEAVE, lambda: None)()  # it may last for days: it is none of the requests that are under way
        telling = asyncio.create_task(self._tell(send))
        hearing = asyncio.create_task(_gone(receive))
        self.hub.tasks.add(telling)
        try:
            await asyncio.wait({telling, hearing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.hub.tasks.discard(telling)
            for task in (telling, hearing):
                task.cancel()
            await asyncio.wait({telling, hearing})
        if not telling.cancelled() and telling.exception() is not None:
            telling.result()
        with contextlib.suppress(OSError):
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, send: Send) -> None:
        async with self.hub.listening(self.grant.tenant) as channel:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            last = channel.last if self.since is None else self.since
            await _say(send, RETRY if self.since is not None else RETRY[:-1] + _mark(last))
            with contextlib.suppress(TimeoutError):  # it takes nothing any more
                if last > channel.last:
                    last = await self._known(send, channel.tenant, last)
                await self._follow(send, channel, last)

    async def _known(self, send: Send, tenant: str, last: str) -> str:
        """Where a reader goes on that was beyond what this process has read: there, or at the log's end if it is beyond that.

        So it is after a restore of an older database: its ids were given anew, and nothing would ever be told.
        """
        newest: str | None = None
        while newest is None:
            try:
                newest = await self.hub.newest(tenant)
            except StoreUnavailableError:
                await asyncio.sleep(CHECK)
        if last > newest and int(last.removeprefix("evt_"), 16):  # 0 is before all events, also where there are none
            await _say(send, _gap("unknown_id", "", newest) + _mark(newest))
        return min(last, newest)

    async def _follow(self, send: Send, channel: Channel, last: str) -> None:
        """Go through the log from `last` on, and wait at its end. Returns when the key is good no longer."""
        reason = "backlog_too_large"
        while True:
            bell = channel.bell
            pieces = channel.after(last)
            if pieces is None:
                try:
                    if await self.hub.too_far(channel.tenant, last, BACKLOG_MAX):
                        missed, last = last, channel.last
                        await _say(send, _gap(reason, missed, last))
                        continue
                    pieces = await self.hub.older(channel.tenant, last)
                except StoreUnavailableError:
                    await asyncio.sleep(CHECK)
                    continue
            if not pieces:
                reason = "buffer_overflow"
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(BEAT):
                        await bell.wait()
                        continue
            if not await self._good():
                await _say(send, b'event: end\ndata: {"reason":"unauthorized"}\n\n')
                return
            last = pieces[-1].entry.id if pieces else last
            told = self._told(pieces)
            if told or not pieces:
                await _say(send, told or b": still here\n" + _mark(last))

    def _told(self, pieces: list[Piece]) -> bytes:
        grant, wanted = self.grant, self.wanted
        return b"".join(one.frame for one in pieces if wanted.wants(one.entry) and visible(one.entry, grant))

    async def _good(self) -> bool:
        """Whether the key may still listen; what it may see is learned anew."""
        if time.monotonic() - self._checked < CHECK:
            return True
        try:
            self.grant = await self.again()
        except Refusal:
            return False
        except StoreUnavailableError:
            return True  # it was good a moment ago, and is asked about again with the next event
        self._checked = time.monotonic()
        return True


def _mark(last: str) -> bytes:
    """An id without an event: the reader remembers how far it has come, though nothing of that was for it."""
    return b"id: " + last.encode() + b"\n\n" if last else b"\n"


def _gap(reason: str, missed: str, last: str) -> bytes:
    said = {"reason": reason, "since": missed or None, "until": last or None}
    return b"event: gap\ndata: " + dumped(said) + b"\n\n"


async def _say(send: Send, frames: bytes) -> None:
    """Send, for as long as the reader may take. Raises TimeoutError."""
    async with asyncio.timeout(PATIENCE):
        await send({"type": "http.response.body", "body": frames, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
