"""The line to the smarthost from the first MAIL on: it knows at each moment whether anything may arrive.

The client library connects, upgrades to TLS and logs in; then this protocol takes the transport over, because the
library drops what arrives while it awaits nothing: a 421 or a 250 that comes too early must be seen before the final
dot is written, not guessed about afterwards. What arrives unasked or unreadable breaks the line for good.

It knows nothing of mails, permits or outcomes, and it never writes twice.
"""

import array
import asyncio
import fcntl
import select
import termios
from collections import deque
from dataclasses import dataclass

from gateway.core.delivery import Reply
from gateway.relay.reply import Replies, Unreadable

PIECE = 65_536
"""Bytes written at a time. A body above it also waits until the kernel has nothing unacknowledged: under TLS a buffer
can count as drained while megabytes have not left."""

LOOK = 0.005
"""Seconds between two looks at the kernel's queue."""

DOT = b".\r\n"
"""What ends a body that ends in CRLF (RFC 5321, 4.1.1.4)."""


class Lost(Exception):  # noqa: N818 - says what the line is
    """The line is dead or cannot be trusted; `why` is for the operator, `reply` what the smarthost said unasked."""

    def __init__(self, why: str, reply: Reply | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.reply = reply


class NotSent(Lost):
    """The line was already dead: no byte of what was to be written has left."""


@dataclass(frozen=True, slots=True)
class Offers:
    """What the smarthost announced (EHLO): `size` in bytes, 0 where it names no limit and None where it has none."""

    pipelining: bool = False
    size: int | None = None
    eight_bit: bool = False
    smtputf8: bool = False
    dsn: bool = False


class Wire(asyncio.Protocol):
    """One connection that is ready for MAIL; to be made in the loop's thread, on a transport with nothing unread."""

    def __init__(self, transport: asyncio.Transport, offers: Offers) -> None:
        self.offers = offers
        self.uses = 0
        self.broken = ""
        self.parting: Reply | None = None
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self._transport = transport
        self._replies = Replies()
        self._waiting: deque[asyncio.Future[Reply]] = deque()
        self._paused = False
        self._drained: asyncio.Future[None] | None = None
        self._fileno: int = transport.get_extra_info("socket").fileno()
        self._poll = select.poll()
        self._poll.register(self._fileno, select.POLLIN)
        # high=0 stalls for ever under TLS: there writing pauses at size >= high, also at 0.
        transport.set_write_buffer_limits(high=1, low=0)
        transport.set_protocol(self)

    # --- what the loop calls ---

    def data_received(self, data: bytes) -> None:
        """Hands each reply to the one who waits for it, in order."""
        try:
            for reply in self._replies.feed(data):
                if not self._waiting:
                    self.parting = reply
                    self._fail(f"unasked: {reply.code} {reply.text[:80]}")
                    return
                future = self._waiting.popleft()
                if not future.done():
                    future.set_result(reply)
        except Unreadable as error:
            self._fail(str(error))
            return
        if self._replies.begun and not self._waiting:
            self._fail(f"unasked: {self._replies.half}")

    def eof_received(self) -> None:
        """Counts half a reply as none; the transport then closes."""
        half = f" after half a reply: {self._replies.half}" if self._replies.begun else ""
        self._fail(f"closed by the smarthost{half}")

    def connection_lost(self, exc: Exception | None) -> None:
        """Fails whoever still waits."""
        self._fail(f"connection lost: {exc}" if exc else "connection lost")
        if not self.closed.done():
            self.closed.set_result(None)

    def pause_writing(self) -> None:
        """Notes that the transport holds bytes which have not left."""
        self._paused = True

    def resume_writing(self) -> None:
        """Notes that it holds none."""
        self._paused = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _fail(self, why: str) -> None:
        if not self.broken:
            self.broken = why
        error = Lost(self.broken, self.parting)
        for future in [*self._waiting, self._drained]:
            if future is not None and not future.done():
                future.set_exception(error)
                future.exception()  # nobody may be waiting: this keeps the loop from complaining about it
        self._waiting.clear()
        self._transport.abort()

    # --- what an attempt calls ---

    @property
    def alive(self) -> bool:
        """Whether something can still be written."""
        return not self.broken and not self._transport.is_closing()

    def ask(self, data: bytes, replies: int = 1) -> list[asyncio.Future[Reply]]:
        """Writes and returns one future for each reply that is due; raises NotSent where no byte has left.

        A future ends in a whole reply or in Lost.
        """
        if not self.alive:
            raise NotSent(self.broken or "connection closed", self.parting)
        futures: list[asyncio.Future[Reply]] = [self._loop.create_future() for _ in range(replies)]
        self._waiting.extend(futures)
        self._write(data)
        return futures

    def _write(self, data: bytes | memoryview) -> None:
        if not self.alive:
            raise NotSent(self.broken or "connection closed", self.parting)
        try:
            self._transport.write(data)
        except (OSError, RuntimeError) as error:  # uvloop raises on an aborted transport
            self._fail(f"cannot write: {error}")
            raise NotSent(self.broken, self.parting) from error

    def dot(self) -> asyncio.Future[Reply]:
        """Writes the final dot; raises NotSent where no byte of it has left. From its return on it may have arrived."""
        return self.ask(DOT)[0]

    async def body(self, data: bytes, patience: float) -> None:
        """Writes the body and returns when it has left this process; `patience` is the longest standstill, in seconds.

        Above `PIECE` it returns only when the other side has all of it. Raises Lost, also where a reply came meanwhile,
        and TimeoutError.
        """
        view = memoryview(data)
        for start in range(0, len(data), PIECE):
            self._write(view[start : start + PIECE])
            if self._paused:
                await self._drain(patience)
        if len(data) > PIECE:
            await self._acknowledged(patience)
        await self.hear()

    async def _drain(self, patience: float) -> None:
        async with asyncio.timeout(patience):
            while self._paused:
                if not self.alive:
                    raise Lost(self.broken or "connection closed", self.parting)
                self._drained = self._loop.create_future()
                await self._drained
        self._drained = None

    async def _acknowledged(self, patience: float) -> None:
        """Waits until the kernel holds nothing, twice in a row: the TLS layer may refill it from its own buffer."""
        deadline = self._loop.time() + patience
        least, empty = -1, 0
        while empty < 2:  # noqa: PLR2004 - twice
            queued = self._queued()
            empty = 0 if queued else empty + 1
            if least < 0 or queued < least:
                least, deadline = queued, self._loop.time() + patience
            if self._loop.time() > deadline:
                raise TimeoutError
            await asyncio.sleep(LOOK)
            if not self.alive:
                raise Lost(self.broken or "connection closed", self.parting)

    def _queued(self) -> int:
        count = array.array("i", [0])
        try:
            fcntl.ioctl(self._fileno, termios.TIOCOUTQ, count)
        except OSError:  # no such question on this system
            return 0
        return count[0]

    async def hear(self) -> None:
        """Lets the loop read what has already arrived, so that `alive` is true of now; raises Lost if it is not."""
        for _ in range(4):
            if not self.alive:
                break
            if not self._poll.poll(0):
                return
            await asyncio.sleep(0)
        if not self.alive:
            raise Lost(self.broken or "connection closed", self.parting)

    # --- the end ---

    def abort(self, why: str = "hung up") -> None:
        """Hangs up at once; what has not left stays here, and whoever waits gets Lost."""
        self._fail(why)

    def quit(self) -> None:
        """Says QUIT and closes without waiting for the answer: the mail's own reply has been read."""
        if self.alive:
            self.ask(b"QUIT\r\n")
            self.broken = "closed by us"
            self._transport.close()
