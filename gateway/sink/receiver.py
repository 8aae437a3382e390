"""The well-behaved sink, on aiosmtpd: takes every mail that is well-formed and says no only where a standard says so.

It differs from the bare library where that is rude to clients or blind: an error of ours is a 451 without its text,
AUTH is offered on implicit TLS too, PIPELINING is announced (RFC 2920; the library reads commands one after the other,
which is all it asks for), and the bytes of a mail are kept as they came.
"""

import asyncio
import hmac
import logging
import ssl
from dataclasses import dataclass
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from gateway.sink.box import Box

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Manners:
    """How a sink receives: `size` is the announced limit in bytes (RFC 1870), `auth` a pair of login and password."""

    hostname: str = "sink.example.net"
    size: int = 33_554_432
    tls: ssl.SSLContext | None = None
    implicit: bool = False
    auth: tuple[str, str] | None = None


class Handler:
    """The hooks that aiosmtpd calls for one connection."""

    def __init__(self, box: Box, manners: Manners) -> None:
        self._box = box
        self._auth = manners.auth
        self.session = box.session()

    async def handle_EHLO(
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        """Announces PIPELINING, and AUTH only where there is somebody to log in."""
        del server, envelope
        session.host_name = hostname
        first, *rest = [line for line in responses if self._auth or not line.startswith("250-AUTH")]
        return [first, "250-PIPELINING", *rest]

    async def handle_MAIL(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Takes any reverse-path, after the login where one is asked for (RFC 4954, 6)."""
        del server
        if self._auth and not session.authenticated:
            return "530 5.7.0 Authentication required"
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 2.1.0 Ok"

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Takes any recipient but the empty one and one with control characters, which the library lets pass."""
        del server, session
        if address == "<>" or not address.isprintable():
            return "553 5.1.3 Bad recipient address"
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return "250 2.1.5 Ok"

    async def handle_DATA(self, server: "Receiver", session: Session, envelope: Envelope) -> str:
        """Takes the mail; a Maildir that cannot be written is a 452 (RFC 5321, 4.2.3)."""
        del session
        sender = envelope.mail_from
        content = bytes(envelope.original_content or b"")
        try:
            mail = self._box.take(
                self.session, None if sender == "<>" else sender, envelope.rcpt_tos, content, server.raw()
            )
        except OSError:
            log.exception("a mail could not be kept")
            return "452 4.3.1 Cannot keep it now"
        return f"250 2.0.0 Taken as {mail.number}"

    async def handle_exception(self, error: Exception) -> str:
        """Answers 451 to a fault of ours; the library would say 500 and show the text of the exception."""
        log.error("fault in a session", exc_info=error)
        return "451 4.3.0 Local error"

    def authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: LoginPassword
    ) -> AuthResult:
        """Compares login and password with the only pair that is known here."""
        del server, session, envelope, mechanism
        login, password = (value.encode() for value in self._auth or ("", ""))
        known = hmac.compare_digest(data.login, login) & hmac.compare_digest(data.password, password)
        return AuthResult(success=bool(self._auth) and bool(known), handled=False)


class Receiver(SMTP):
    """One connection of the well-behaved sink."""

    def __init__(self, box: Box, manners: Manners, loop: asyncio.AbstractEventLoop, open_: "set[Any]") -> None:
        handler = Handler(box, manners)
        super().__init__(
            handler,
            data_size_limit=manners.size,
            enable_SMTPUTF8=True,
            hostname=manners.hostname,
            ident="sink",
            tls_context=None if manners.implicit else manners.tls,
            auth_require_tls=manners.tls is not None and not manners.implicit,
            authenticator=handler.authenticate,
            loop=loop,
        )
        self._box = box
        self._open = open_
        self._tap: bytearray | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Joins the open connections; called once more after STARTTLS."""
        super().connection_made(transport)
        self._open.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        """Leaves the open connections."""
        super().connection_lost(error)
        self._open.discard(self)
        self._box.changed()

    def data_received(self, data: bytes) -> None:
        """Keeps a copy of what arrives while a body is read."""
        if self._tap is not None:
            self._tap += data
        super().data_received(data)

    async def smtp_DATA(self, arg: str) -> None:
        """Reads a body, with its bytes tapped from the point where the library begins to read."""
        self._tap = bytearray(self._unread())
        try:
            await super().smtp_DATA(arg)
        finally:
            self._tap = None

    def raw(self) -> bytes:
        """Returns the body as it came, without the final dot; only while the handler of DATA runs."""
        tap = self._tap or bytearray()
        return bytes(tap[: len(tap) - len(self._unread())].removesuffix(b".\r\n"))

    def _unread(self) -> bytearray:
        """Returns what has arrived and was not read yet; the library clears the same buffer at STARTTLS."""
        unread: bytearray = self._reader._buffer  # type: ignore[attr-defined]  # noqa: SLF001
        return unread

    @property
    def work(self) -> "asyncio.Task[None] | None":
        """The task that serves this connection."""
        return self._handler_coroutine
