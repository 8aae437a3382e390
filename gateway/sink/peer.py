"""A client's line as the scripted server sees it: reads commands and bodies, writes, upgrades to TLS, breaks off."""

import asyncio
import socket
import ssl
import struct
from collections.abc import Callable


class Gone(Exception):  # noqa: N818 - it tells an ordinary end, not an error
    """The client has closed the connection, or it was broken off here."""


class Peer(asyncio.Protocol):
    """One connection: bytes in `buffer` until somebody reads them."""

    def __init__(self, opened: Callable[["Peer"], None], closed: Callable[["Peer"], None]) -> None:
        self.buffer = bytearray()
        self.transport: asyncio.Transport | None = None
        self._opened = opened
        self._closed = closed
        self._eof = False
        self._news: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes the transport; after STARTTLS it is another one."""
        first = self.transport is None
        self.transport = transport  # type: ignore[assignment]
        if first:
            self._opened(self)

    def data_received(self, data: bytes) -> None:
        """Keeps what arrives."""
        self.buffer += data
        self._wake()

    def eof_received(self) -> None:
        """Notes that the client has nothing more to say; the transport then closes."""
        self._eof = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Notes the end."""
        del exc
        self._eof = True
        self._wake()
        self._closed(self)

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def more(self) -> None:
        """Waits until something new has arrived; raises Gone when nothing can."""
        if self._eof:
            raise Gone
        self._news = asyncio.get_running_loop().create_future()
        await self._news

    async def line(self) -> bytes:
        """Returns the next line with its end; raises Gone at the end of the connection."""
        while (end := self.buffer.find(b"\n")) < 0:
            await self.more()
        line = bytes(self.buffer[: end + 1])
        del self.buffer[: end + 1]
        return line

    async def body(self) -> bytes:
        """Returns a body as it came, without the final dot (CRLF dot CRLF, nothing else ends it); raises Gone."""
        start = 0
        while True:
            if self.buffer.startswith(b".\r\n"):
                end = 0
            elif (end := self.buffer.find(b"\r\n.\r\n", start) + 2) == 1:
                start = max(0, len(self.buffer) - 4)
                await self.more()
                continue
            body = bytes(self.buffer[:end])
            del self.buffer[: end + 3]
            return body

    def write(self, data: bytes) -> None:
        """Writes; raises Gone where the line is dead."""
        if self.transport is None or self.transport.is_closing():
            raise Gone
        self.transport.write(data)

    def listen(self, *, on: bool) -> None:
        """Stops or goes on reading from the network."""
        if self.transport is not None and not self.transport.is_closing():
            (self.transport.resume_reading if on else self.transport.pause_reading)()

    async def upgrade(self, context: ssl.SSLContext) -> None:
        """Speaks TLS from here on and forgets what came before it (RFC 3207, 4.2); raises Gone where that fails."""
        self.buffer.clear()
        if self.transport is None:
            raise Gone
        loop = asyncio.get_running_loop()
        try:
            self.transport = await loop.start_tls(self.transport, self, context, server_side=True)
        except OSError as error:
            raise Gone from error

    def close(self) -> None:
        """Ends the connection in order: what was written still goes out."""
        if self.transport is not None:
            self.transport.close()

    def reset(self) -> None:
        """Ends the connection by a TCP reset."""
        if self.transport is None:
            return
        sock = self.transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()
