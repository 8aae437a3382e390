"""The line below the door: a head has a size and a time, and what is no HTTP is answered like every other error.

The server has no such limits with this parser: a head without end would fill the memory, one that never comes would
hold its connection for good. Bodies have their limits in `inlet`. What strangers get wrong is answered and not logged.
"""

import asyncio
import logging
import resource
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from gateway.doors.http.guard import CLOSED, HEADERS
from gateway.doors.http.problems import PROBLEM, dumped

log = logging.getLogger(__name__)
log.setLevel(logging.ERROR)  # the server's warnings are about what strangers send: anybody could fill the log

CONNECTIONS_MAX = 4096
FILES_KEPT = 128
"""Open files of the process that are not for connections: the store's, the relay's."""


def most_connections() -> int:
    """How many connections one process keeps open: CONNECTIONS_MAX, or what its limit of open files allows."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CONNECTIONS_MAX if files == resource.RLIM_INFINITY else max(16, min(CONNECTIONS_MAX, files - FILES_KEPT))


class Line(HttpToolsProtocol):
    """One connection of a client."""

    head_max: ClassVar[int] = 65_536
    """Bytes of a request's line and headers; one read of the socket more may be looked at."""
    head_seconds: ClassVar[float] = 30.0
    """How long a head may take to come, from the connection, or from its first byte on one that was used before."""

    connections_max: ClassVar[int] = most_connections()
    """Connections at once; one more is told so and closed."""

    _in_head = False
    _size = 0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a head."""
        super().connection_made(transport)
        self.logger = log
        if len(self.connections) > self.connections_max:
            self._refuse(503, "overloaded", "too many connections are open; ask again", (b"retry-after", b"1"))
            return
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._came()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """A head begins."""
        self._in_head, self._size = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """It is whole."""
        self._in_head = False
        self._came()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Read on, and look at what a head that is not yet whole has cost."""
        within = self._in_head
        super().data_received(data)
        if self.transport.is_closing():
            return
        if within and self._in_head:
            self._size += len(data)
            if self._size > self.head_max:
                self._refuse(431, "head_too_large", f"the head is larger than {self.head_max} bytes")
                return
        # Its type says never None; before the first request it is.
        between = self.cycle is None or self.cycle.response_complete  # type: ignore[redundant-expr]
        if between and self._deadline is None and self.timeout_keep_alive_task is None:
            self._expect()  # whatever came, be it an empty line, has ended the wait for the next request

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  (the server's own words)
        """Answer what is no HTTP."""
        self._refuse(400, "invalid_http", "this is not a request of HTTP/1.1")

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing in the log: the guard answers a WebSocket's head, and others are served as they are."""

    def _expect(self) -> None:
        self._deadline = self.loop.call_later(self.head_seconds, self._overdue)

    def _came(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _overdue(self) -> None:
        self._deadline = None
        if self._in_head:
            self._refuse(408, "request_timeout", f"the head did not come within {self.head_seconds:g} seconds")
        else:
            self.transport.close()

    def _refuse(self, status: int, slug: str, message: str, *more: tuple[bytes, bytes]) -> None:
        body = dumped({"error": slug, "message": message})
        said = [(b"content-type", PROBLEM.encode()), (b"content-length", str(len(body)).encode())]
        lines = [
            name + b": " + value + b"\r\n"
            for name, value in (*said, *more, *HEADERS, CLOSED, (b"connection", b"close"))
        ]
        self.transport.write(b"".join([STATUS_LINE[status], *lines, b"\r\n", body]))
        self.transport.close()
