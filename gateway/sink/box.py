"""What a sink has seen: the mails it took, and a way to wait for them without sleeping."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.sink.maildir import deliver


@dataclass(frozen=True, slots=True)
class Mail:
    """One mail that was taken.

    `number` counts mails from 1 in the order in which they were taken and `session` counts connections from 1;
    `envelope_from` is None for the null reverse-path; `content` is the message as it was before dot-stuffing (RFC 5321
    4.5.2), `raw` the same bytes as they came over the wire, without the final dot (empty where the sink keeps none).
    """

    number: int
    session: int
    envelope_from: str | None
    recipients: tuple[str, ...]
    content: bytes
    raw: bytes


@dataclass(frozen=True, slots=True)
class Line:
    """One entry of a transcript: `speaker` is "C" (client), "S" (server) or "B" (a whole body as it came)."""

    session: int
    speaker: str
    data: bytes


class Box:
    """The mails of one sink, in memory and, where a folder is given, in a Maildir."""

    def __init__(
        self, *, maildir: Path | None = None, on_mail: Callable[[Mail], None] | None = None, keep: bool = True
    ) -> None:
        self.mails: list[Mail] = []
        self.taken = 0
        self.sessions = 0
        self._maildir = maildir
        self._on_mail = on_mail
        self._keep = keep
        self._numbers = itertools.count(1)
        self._waiting: list[asyncio.Future[None]] = []

    def session(self) -> int:
        """Counts a connection and returns its number, from 1."""
        self.sessions += 1
        self.changed()
        return self.sessions

    def take(
        self, session: int, envelope_from: str | None, recipients: Sequence[str], content: bytes, raw: bytes = b""
    ) -> Mail:
        """Keeps a mail and returns it; raises OSError, and keeps nothing, where the Maildir cannot be written."""
        mail = Mail(next(self._numbers), session, envelope_from, tuple(recipients), content, raw)
        if self._maildir is not None:
            deliver(self._maildir, mail.envelope_from, mail.recipients, mail.content)
        self.taken += 1
        if self._keep:
            self.mails.append(mail)
        if self._on_mail is not None:
            self._on_mail(mail)
        self.changed()
        return mail

    def changed(self) -> None:
        """Wakes those who wait in `until`."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Returns when `ready()` is true; it is asked after each change. Raises TimeoutError after `seconds`."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(seconds):
            while not ready():
                future: asyncio.Future[None] = loop.create_future()
                self._waiting.append(future)
                await future
