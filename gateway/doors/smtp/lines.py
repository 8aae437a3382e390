"""What a client sends, as commands and bodies: CRLF alone ends a line, CRLF dot CRLF alone ends a body.

RFC 5321 2.3.8, 4.1.1.4 and 4.5.2. What is framed otherwise is refused and never repaired: two readers of one stream that
disagree about its ends are how a second, unjudged mail is smuggled. It knows no command and writes nothing.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

HIGH = 65_536
"""Unread bytes above which the network is no longer listened to; one read may bring as much on top."""
LONGEST = 12_288
"""Octets of the longest line of all, with its end: a base64 answer in AUTH (RFC 4954 4)."""
FLOOD = 1_048_576
"""Octets without a line end after which nobody waits for one any more."""

END = b"\r\n.\r\n"


class Gone(Exception):  # noqa: N818 - it tells an ordinary end, not an error
    """The client has nothing more to say, or cannot hear us."""


class Malformed(Exception):  # noqa: N818 - says what the line was
    """A line or body that is refused; `why` is dull, `code` the reply with its enhanced status code."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.why = why


class Listen(Protocol):
    """Switches reading from the network off and on."""

    def __call__(self, *, on: bool) -> None:
        """Read, or do not."""
        ...


class Lines:
    """The unread bytes of one connection; `listen` switches reading from the network off and on again."""

    def __init__(self, listen: Listen) -> None:
        self._kept = bytearray()
        self._listen = listen
        self._deaf = False
        self._eof = False
        self._news: asyncio.Future[None] | None = None

    # --- what the loop calls ---

    def feed(self, data: bytes) -> None:
        """Keep what has arrived."""
        self._kept += data
        if len(self._kept) > HIGH and not self._deaf:
            self._deaf = True
            self._listen(on=False)
        self._wake()

    def end(self) -> None:
        """Nothing more will arrive."""
        self._eof = True
        self._wake()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    # --- what a session calls ---

    @property
    def pending(self) -> bool:
        """Whether something has arrived that nobody has read."""
        return bool(self._kept)

    @property
    def waiting(self) -> bool:
        """Whether somebody waits for the client to say something."""
        return self._news is not None

    async def line(self) -> bytes:
        """The next command without its CRLF. Raises Gone, and Malformed where the line cannot be a command."""
        dropped = at = 0
        while (end := self._kept.find(b"\n", at)) < 0:
            at = len(self._kept)
            if at > LONGEST:  # nobody wants to hear the rest; only its end counts
                dropped, at = dropped + at, 0
                self._kept.clear()
            if dropped > FLOOD:
                raise Gone
            await self._more()
        line = self._take(end + 1)
        if dropped or len(line) > LONGEST:
            raise Malformed("500 5.5.2", "the line is too long")
        if not line.endswith(b"\r\n") or b"\r" in line[:-2]:
            raise Malformed("500 5.5.2", "a line ends in CRLF, and CR or LF may not stand alone")
        if b"\0" in line:
            raise Malformed("500 5.5.2", "the line holds a NUL")
        return line[:-2]

    async def body(self, limit: int, progress: Callable[[int], None]) -> bytes:
        """The body that follows 354, to its end, with the dots taken off (RFC 5321 4.5.2).

        A body of more than `limit` bytes is read to its end too and not kept. `progress` is called as it comes, with
        the bytes that are kept. Raises Gone, and Malformed where it must not be taken.
        """
        most = limit + limit // 3 + 1024  # at worst a line of one dot is stuffed: four bytes for three
        data, cut, at = bytearray(b"\r\n"), False, 0  # the CRLF of the DATA line: a dot may be all there is
        while (end := data.find(END, at)) < 0:
            at = max(0, len(data) - len(END) + 1)
            if len(data) > most:
                cut, at = True, 0
                del data[: -len(END)]
            if not self._kept:
                await self._more()
            data += self._take(len(self._kept))
            progress(len(data))
        self._kept[:0] = data[end + len(END) :]
        if cut or end > most:
            raise Malformed("552 5.3.4", "message_too_large")
        body = bytes(data[: end + 2]).replace(b"\r\n.", b"\r\n")[2:]
        if len(body) > limit:
            raise Malformed("552 5.3.4", "message_too_large")
        ends = body.count(b"\r\n")
        if not ends == body.count(b"\r") == body.count(b"\n"):
            raise Malformed("554 5.6.0", "invalid_message; field=message; holds line ends other than CRLF")
        if b"\0" in body:
            raise Malformed("554 5.6.0", "invalid_message; field=message; holds NUL characters")
        return body

    def forget(self) -> None:
        """Drop what has not been read."""
        self._kept.clear()

    async def _more(self) -> None:
        """Return once something new has arrived. Raises Gone when nothing can."""
        before = len(self._kept)
        if self._deaf:
            self._deaf = False
            self._listen(on=True)
        try:
            while len(self._kept) == before:
                if self._eof:
                    raise Gone
                self._news = asyncio.get_running_loop().create_future()
                await self._news
        finally:
            self._news = None

    def _take(self, count: int) -> bytes:
        taken = bytes(self._kept[:count])
        del self._kept[:count]
        return taken
