"""One connection of the SMTP door: lines in, replies out, TLS, time and faults; what the commands mean is `session`'s.

It is aiosmtpd's protocol with everything of it taken over that reads: the library lets bare LF end a command, keeps it
in bodies, cancels what it has begun when a client hangs up, and answers a fault of ours with its text.
"""

import asyncio
import logging
import ssl
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import ClassVar, cast

from aiosmtpd.smtp import SMTP

from gateway.core.errors import StoreUnavailableError
from gateway.core.verdict import STORE_UNAVAILABLE
from gateway.doors.smtp.house import House
from gateway.doors.smtp.lines import Gone, Lines, Malformed

log = logging.getLogger(__name__)

COMMAND_MAX = {"AUTH": 12_288, "MAIL": 1024, "RCPT": 2048}
"""Octets of a command with its CRLF where extensions make it longer than 512 (RFC 5321 4.5.3.1.4, 4.1.1.11)."""
COMMAND_FAIR = 512
REPLY_MAX = 512
"""Octets of a reply line with its CRLF (RFC 5321 4.5.3.1.5)."""
HANDSHAKE_SECONDS = 30.0
LINGER_SECONDS = 5.0
"""How long a client may take to read the last reply."""


class _NoHooks:
    """A handler of the library's that has nothing to say."""

    def __dir__(self) -> Iterable[str]:
        return ()


NO_HOOKS = _NoHooks()


class Talk(SMTP):
    """What is said on one connection; `session` subclasses it with the commands.

    `address` is the client's, `refusal` what it is told where there is no room for it.
    """

    commands: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        """Note which commands a session knows."""
        super().__init_subclass__()
        cls.commands = tuple(name for name in dir(cls) if name.startswith("smtp_"))

    def __init__(self, house: House, loop: asyncio.AbstractEventLoop, address: str, refusal: str = "") -> None:
        super().__init__(
            NO_HOOKS, hostname=house.hostname, enable_SMTPUTF8=True, timeout=house.limits.idle_seconds, loop=loop
        )
        self.house = house
        self.lines = Lines(self._listen_to)
        self.address = address
        self.secure = False
        self.faults = 0
        self._refusal = refusal
        self._over = False
        self._last: asyncio.TimerHandle | None = None

    def __dir__(self) -> Iterable[str]:
        """The commands alone: the library goes through all names of each new connection, and finds no others."""
        return self.commands

    # --- what the loop calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the conversation."""
        self.secure = transport.get_extra_info("sslcontext") is not None
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Keep what arrives for whoever reads."""
        self.lines.feed(data)

    def eof_received(self) -> bool | None:
        """Note that the client has nothing more to say; what it has said is still answered, where that can be."""
        self.lines.end()
        return None if self.secure else True

    def connection_lost(self, error: Exception | None) -> None:
        """Leave the sessions; what was handed in meanwhile is judged all the same."""
        self.house.leave(self)
        self.lines.end()
        if self._last is not None:
            self._last.cancel()
        super().connection_lost(error)

    def _listen_to(self, *, on: bool) -> None:
        transport = cast("asyncio.Transport | None", self.transport)
        if transport is not None and not transport.is_closing():
            (transport.resume_reading if on else transport.pause_reading)()

    def _timeout_cb(self) -> None:
        """Say that time is up and go."""
        self.hang_up("421 4.4.2 no more time")

    # --- the conversation ---

    async def _handle_client(self) -> None:
        """Talk from the greeting to the end; whatever happens, the connection is closed afterwards."""
        try:
            if self._refusal:
                await self.push(self._refusal)
                return
            await self.push(f"220 {self.hostname} ESMTP")
            while not self._over:
                await self._next()
        except (Gone, OSError):
            pass
        except Exception:
            log.exception("smtp.fault")
        finally:
            self.hang_up()

    async def _next(self) -> None:
        """One command and its reply."""
        self._reset_timeout()
        try:
            line = await self.lines.line()
            verb, _, argument = line.partition(b" ")
            command = verb.decode("ascii", "replace").upper()
            if len(line) + 2 > COMMAND_MAX.get(command, COMMAND_FAIR):
                raise Malformed("500 5.5.2", "the line is too long")  # noqa: TRY301  (refused like all others)
            method = self._smtp_methods.get(command)
            if method is None:
                raise Malformed("500 5.5.1", "there is no such command")  # noqa: TRY301  (same)
            await method(_text(argument))
        except Malformed as error:
            await self.fault(f"{error.code} {error.why}")
        except StoreUnavailableError:
            reason = STORE_UNAVAILABLE
            await self.push(f"{reason.code} {reason.enhanced} {reason.slug}; {reason.next}")
        except (Gone, OSError):
            raise
        except Exception:
            log.exception("smtp.fault")
            await self.push("451 4.3.0 local error; try again later")

    async def push(self, status: str | bytes | Sequence[str]) -> None:
        """Say a reply; a list is one of several lines, each with its code. Raises Gone."""
        lines = (
            [status.decode() if isinstance(status, bytes) else status] if isinstance(status, str | bytes) else status
        )
        transport = cast("asyncio.Transport | None", self.transport)
        if transport is None or transport.is_closing():
            raise Gone
        transport.write(_reply(lines))
        await self._writer.drain()

    async def fault(self, text: str) -> None:
        """Answer what no working client says; who says too much of it is sent away."""
        self.faults += 1
        if self.faults > self.house.limits.faults:
            self.hang_up("421 4.7.0 too many errors")
            raise Gone
        await self.push(text)

    async def ask(self, challenge: str) -> bytes:
        """Say 334 and return the line that answers it. Raises as `Lines.line` does."""
        await self.push(f"334 {challenge}")
        return await self.lines.line()

    def take_time(self, seconds: float) -> None:
        """Give so much time from now on, until something else is said about time."""
        self._reset_timeout(seconds)

    async def upgrade(self) -> None:
        """Speak TLS from here on. Raises Gone, also where something came before that was not under TLS (RFC 3207 4.2)."""
        transport, context = cast("asyncio.Transport | None", self.transport), self.house.tls
        if transport is None or context is None or self.lines.pending:
            raise Gone
        # No await between the look at what is pending and the change of protocol within start_tls.
        started = self.loop.start_tls(
            transport, self, context, server_side=True, ssl_handshake_timeout=HANDSHAKE_SECONDS
        )
        try:
            self.transport = await started
        except (OSError, ssl.SSLError) as error:
            log.info("smtp.no_tls", extra={"client": self.address, "cause": type(error).__name__})
            raise Gone from None
        self.secure = True

    def hang_up(self, last: str = "") -> None:
        """End the connection in order, after a last reply; a client that does not read it is not waited for."""
        self._over = True
        transport = cast("asyncio.Transport | None", self.transport)
        if transport is None or transport.is_closing():
            return
        if last:
            with suppress(OSError, RuntimeError):  # uvloop raises on a transport that was broken off
                transport.write(_reply([last]))
        transport.close()
        self._last = self.loop.call_later(LINGER_SECONDS, transport.abort)

    def leave(self) -> None:
        """End the session as soon as nothing is being done for it."""
        self._over = True
        if self.lines.waiting:
            self.hang_up("421 4.3.2 the gateway is closing")

    def break_off(self) -> None:
        """End the connection at once."""
        transport = cast("asyncio.Transport | None", self.transport)
        if transport is not None:
            transport.abort()

    @property
    def work(self) -> "asyncio.Task[None] | None":
        """The task that serves this connection."""
        return self._handler_coroutine


def _text(argument: bytes) -> str:
    """A command's argument; octets that are no UTF-8 stay visible as such, for the command to refuse."""
    return argument.decode("utf-8", "surrogateescape").strip(" \t")


def _reply(lines: Sequence[str]) -> bytes:
    """Reply lines as they go out: printable, each within its limit, all but the last with a hyphen behind the code."""
    out = bytearray()
    for number, line in enumerate(lines, 1):
        mark = "-" if number < len(lines) else " "
        text = "".join(char if char.isprintable() else "?" for char in line[4:])
        data = text.encode("utf-8", "replace")[: REPLY_MAX - 6]
        out += line[:3].encode() + mark.encode() + data.decode("utf-8", "ignore").encode() + b"\r\n"
    return bytes(out)
