"""The smarthost: where it is, what it demands of us and we of it, and how a connection to it is opened.

TLS is required except to the loopback or where the URL says `?tls=off`. A password is never sent in clear: not on a
promise of STARTTLS that is then missing, not to another machine whatever the URL says; only a loopback URL with an
explicit `?tls=off` may. Certificates and names are always checked.

Whatever goes wrong here is a fault between two servers and no fault of a mail: it defers, also where the reply is 5yz.
"""

import contextlib
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import aiosmtplib

from gateway.core.delivery import Reply
from gateway.relay.place import Place, ehlo_name, read
from gateway.relay.reply import clean, compose
from gateway.relay.wire import Offers, Wire

TEMPORARY = 421
UNKNOWN_COMMAND = frozenset({500, 502, 504})
"""What a server says to EHLO that knows only HELO (RFC 5321, 3.2 and 4.2.4). Any other no is a no to us, for now or for
good: with HELO it would seem to be a server without extensions, and mail would bounce that needs them."""


class Unreachable(Exception):  # noqa: N818 - says what the smarthost is
    """No connection that can be used; `counts` is false where the smarthost only asked us to come later (421)."""

    def __init__(self, why: str, reply: Reply | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.reply = reply
        self.counts = reply is None or reply.code != TEMPORARY


@dataclass(frozen=True, slots=True)
class Smarthost:
    """One smarthost; times in seconds. `hostname` is the name we give in EHLO, as an A-label or address literal."""

    place: Place
    hostname: str = "localhost"
    connect_timeout: float = 30.0
    command_timeout: float = 120.0
    reply_timeout: float = 600.0
    context: ssl.SSLContext | None = field(default=None, repr=False, compare=False)

    @staticmethod
    def parse(
        url: str,
        ca: str | Path | None = None,
        *,
        hostname: str = "localhost",
        connect_timeout: float = 30.0,
        command_timeout: float = 120.0,
        reply_timeout: float = 600.0,
    ) -> "Smarthost":
        """Reads `smtp://`, `smtp+starttls://` or `smtps://` with optional `user:password@` (percent-encoded).

        `ca` is a file of certificates (PEM) that are trusted instead of the system's. Raises ValueError with one line,
        which never holds the password.
        """
        place = read(url)
        context = None
        if place.tls != "off":
            try:
                context = ssl.create_default_context(cafile=ca)
            except OSError as error:  # ssl.SSLError is one
                raise ValueError(f"the file of certificates {str(ca)!r} cannot be read: {error.strerror}") from None
        return Smarthost(place, ehlo_name(hostname), connect_timeout, command_timeout, reply_timeout, context)

    def __str__(self) -> str:
        return str(self.place)

    async def connect(self) -> Wire:
        """Opens a connection, up to the point where MAIL may be said; raises Unreachable."""
        place = self.place
        client = aiosmtplib.SMTP(
            hostname=place.host,
            port=place.port,
            local_hostname=self.hostname,
            timeout=self.command_timeout,
            use_tls=place.tls == "implicit",
            start_tls=False,  # below, so that its lack is an error and not an opportunity
            tls_context=self.context,
        )
        try:
            with self._explained("greeting", self.connect_timeout):
                await client.connect(timeout=self.connect_timeout)
            await self._greet(client)
            if place.tls == "starttls":
                await self._upgrade(client)
            if place.username:
                with self._explained("AUTH", self.command_timeout):
                    await client.login(place.username, place.password)
            return self._hand_over(client)
        except BaseException:
            client.close()
            raise

    async def _greet(self, client: aiosmtplib.SMTP) -> None:
        with self._explained("EHLO", self.command_timeout):
            try:
                await client.ehlo()
            except aiosmtplib.SMTPHeloError as error:
                if error.code not in UNKNOWN_COMMAND or not client.is_connected:
                    raise
                await client.helo()

    async def _upgrade(self, client: aiosmtplib.SMTP) -> None:
        if not client.supports_extension("starttls"):
            raise Unreachable(f"TLS is required, and {self} does not offer STARTTLS")
        with self._explained("STARTTLS", self.command_timeout):
            await client.starttls()
        await self._greet(client)

    def _hand_over(self, client: aiosmtplib.SMTP) -> Wire:
        transport, protocol = client.transport, client.protocol
        if transport is None or protocol is None or transport.is_closing():
            raise Unreachable(f"{self} closed the connection")
        if getattr(protocol, "_buffer", b""):
            raise Unreachable(f"{self} spoke before it was asked")
        size = client.esmtp_extensions.get("size")
        offers = Offers(
            pipelining=client.supports_extension("pipelining"),
            size=None if size is None else int(size) if size.isdecimal() else 0,
            eight_bit=client.supports_extension("8bitmime"),
            smtputf8=client.supports_extension("smtputf8"),
            dsn=client.supports_extension("dsn"),
        )
        return Wire(transport, offers)  # type: ignore[arg-type]  # create_connection gives no other kind

    @contextlib.contextmanager
    def _explained(self, stage: str, seconds: float) -> Iterator[None]:
        """Turns every way in which the library fails into Unreachable."""
        try:
            yield
        except aiosmtplib.SMTPResponseException as error:
            text = error.message.encode("utf-8", "replace").decode()
            if not 200 <= error.code <= 599:  # noqa: PLR2004 - RFC 5321, 4.2
                raise Unreachable(f"{self} gave an unreadable reply to {stage}: {clean(text)[:80]}") from None
            reply = compose(error.code, text.split("\n"))
            raise Unreachable(f"{self} answered {reply.code} to {stage}", reply) from None
        except TimeoutError:
            raise Unreachable(f"{self} did not answer to {stage} within {seconds:g} s") from None
        except ssl.SSLCertVerificationError as error:
            raise Unreachable(f"the certificate of {self} is not trusted: {error.verify_message}") from None
        except aiosmtplib.SMTPConnectError as error:
            cause = error.__cause__
            if isinstance(cause, ssl.SSLCertVerificationError):
                raise Unreachable(f"the certificate of {self} is not trusted: {cause.verify_message}") from None
            raise Unreachable(f"no connection to {self}: {clean(str(error.message))[:200]}") from None
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:  # ValueError: a challenge that is no base64
            raise Unreachable(f"{self} failed at {stage}: {clean(str(error))[:200]}") from None
