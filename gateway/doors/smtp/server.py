"""The door as a whole: two addresses to listen on, one certificate that can be renewed, sessions that end in order."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from gateway.doors.context import Context
from gateway.doors.smtp.house import House, Limits, Trust, read_trust, tls_context
from gateway.doors.smtp.session import Session
from gateway.doors.smtp.talk import HANDSHAKE_SECONDS
from gateway.intake.glance import Glance
from gateway.settings import Settings

log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.1
"""How long nobody is taken after a connection could not be."""
STOP_SECONDS = 10.0
"""How long mail that is being judged is waited for when the door closes."""


def certificate_and_trust(settings: Settings) -> tuple[ssl.SSLContext | None, Trust]:
    """What the settings say of TLS and of trusted networks. Raises ValueError with one line that names the wrong one."""
    tls = tls_context(settings.tls_cert, settings.tls_key) if settings.tls_cert else None
    trust = read_trust(settings.smtp_trust)
    if settings.smtps_bind and tls is None:
        raise ValueError("SMTPS_BIND: it needs TLS_CERT; `gateway tls self-signed` makes a certificate for trying out")
    if settings.smtp_bind and tls is None and not trust:
        raise ValueError("SMTP_BIND: nobody could log in without TLS: it needs TLS_CERT, or SMTP_TRUST for networks")
    return tls, trust


def a_house(context: Context, limits: Limits | None = None) -> House:
    """The inside of a door by the settings. Raises ValueError as `certificate_and_trust` does."""
    settings = context.settings
    own = limits or Limits(idle_seconds=settings.smtp_idle_seconds, message_bytes=settings.max_message_bytes)
    tls, trust = certificate_and_trust(settings)
    return House(context, Glance(context.store, context.intake.rules), own, tls=tls, trust=trust)


@dataclass(slots=True)
class SmtpDoor:
    """Takes submissions on the sockets that it is given: `plain` with STARTTLS, `secure` with TLS from the first byte."""

    house: House
    plain: socket.socket | None = None
    secure: socket.socket | None = None
    _work: "set[asyncio.Task[None]]" = field(default_factory=set)

    async def start(self) -> None:
        """Listen."""
        for sock, implicit in ((self.plain, False), (self.secure, True)):
            if sock is None:
                continue
            sock.settimeout(0)
            self._do(self._accept(sock, implicit=implicit))
            host, port, *_ = sock.getsockname()
            log.info(
                "smtp.listening", extra={"host": host, "port": port, "tls": "implicit" if implicit else "starttls"}
            )

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="smtp")
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _accept(self, listening: socket.socket, *, implicit: bool) -> None:
        """Take connections as they come. Those who have not begun with TLS are counted too."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, peer = await loop.sock_accept(listening)
            except OSError:  # out of files, or the client has gone already
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            address = str(peer[0])
            session = Session(self.house, loop, address, refusal := self.house.room_for(address))
            self.house.enter(session)
            if refusal and implicit:  # not worth the handshake
                sock.close()
                self.house.leave(session)
                continue
            self._do(self._begin(session, sock, self.house.tls if implicit else None))

    async def _begin(self, session: Session, sock: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Give a connection to its session, under TLS where that comes first."""
        patience = None if tls is None else HANDSHAKE_SECONDS
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: session, sock, ssl=tls, ssl_handshake_timeout=patience
            )
        except OSError as error:  # an SSLError is one
            log.info("smtp.no_tls", extra={"client": session.address, "cause": type(error).__name__})
            sock.close()
        finally:
            if session.transport is None:
                self.house.leave(session)

    def reload(self) -> None:
        """Read certificate and key again, for all connections to come; where they are wrong, the old ones stay."""
        settings = self.house.context.settings
        if self.house.tls is None:
            return
        try:
            self.house.tls = tls_context(settings.tls_cert, settings.tls_key)
        except ValueError as error:
            log.error("smtp.certificate_not_loaded", extra={"cause": str(error)})  # noqa: TRY400  (the line says it)
        else:
            log.info("smtp.certificate_loaded")

    async def stop(self) -> None:
        """Close the door: who is between two commands is sent away, who has handed in a mail gets its answer."""
        for task in self._work:
            task.cancel()
        sessions: list[Session] = list(self.house.sessions)
        for session in sessions:
            session.leave()
        works = [session.work for session in sessions if session.work is not None]
        if works:
            _, late = await asyncio.wait(works, timeout=STOP_SECONDS)
            for work in late:
                work.cancel()
        for session in list(self.house.sessions):
            session.break_off()
        await asyncio.gather(*self._work, return_exceptions=True)
        for sock in (self.plain, self.secure):
            if sock is not None:
                sock.close()
