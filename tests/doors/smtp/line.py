"""The SMTP door on a world: real sockets on port 0, certificates of this run, and a client that says what it is told."""

import asyncio
import contextlib
import socket
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from gateway.doors.lockout import Lockout
from gateway.doors.smtp import House, Limits, SmtpDoor, a_house
from tests.doors.door import Door
from tests.smtp import Talk, authority, server_tls
from tests.world import BOXES, PAT

FAST = Lockout(pause=0.0)
HEAD = f"From: {BOXES[0]}\r\nTo: {PAT}\r\nSubject: hello\r\n"
MAIL = HEAD + "Message-ID: <one@gw.example.com>\r\nDate: Wed, 04 Mar 2026 12:00:00 +0000\r\n\r\nhi\r\n"


def listening() -> socket.socket:
    """A socket on a free port of the loopback."""
    return socket.create_server(("127.0.0.1", 0))


def client_tls() -> ssl.SSLContext:
    """The client's side of TLS."""
    context = ssl.create_default_context()
    authority("ours").configure_trust(context)
    return context


def a_mail(*headers: str, head: str = HEAD, message_id: str = "one", text: str = "hi") -> str:
    """A whole mail with these headers more."""
    more = "".join(f"{header}\r\n" for header in headers)
    return f"{head}Message-ID: <{message_id}@gw.example.com>\r\n{more}\r\n{text}\r\n"


@dataclass
class Submit:
    """The SMTP door beside the HTTP door of one world; `plain` and `secure` are its ports."""

    door: Door
    house: House
    smtp: SmtpDoor
    plain: int = 0
    secure: int = 0
    accepted: list[str] = field(default_factory=list)

    def key(self, name: str = "a") -> str:
        """An API key by its name in the HTTP door."""
        return self.door.keys[name]

    @contextlib.asynccontextmanager
    async def talk(self, *, secure: bool = False) -> AsyncIterator["Client"]:
        """Connects; the greeting is read."""
        tls = client_tls() if secure else None
        port = self.secure if secure else self.plain
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=tls, server_hostname="localhost" if tls else None
        )
        client = Client(reader, writer)
        try:
            assert (await client.reply()).startswith("220 ")
            yield client
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    @contextlib.asynccontextmanager
    async def session(self, by: str = "a", name: str | None = None) -> AsyncIterator["Client"]:
        """A session under TLS that is logged in."""
        async with self.talk(secure=True) as client:
            await client.ehlo()
            reply = await client.log_in(name or by, self.key(by))
            assert reply.startswith("235 "), reply
            yield client

    async def send(self, mail: str | bytes = MAIL, to: tuple[str, ...] = (PAT,), by: str = "a", **more: Any) -> str:
        """Sends one mail in a session of its own; the reply to the dot."""
        async with self.session(by) as client:
            return await client.send(mail, to, **more)

    async def empty(self) -> None:
        """Returns once no session is open any more."""
        async with asyncio.timeout(5):
            while self.house.sessions:  # noqa: ASYNC110  (the door tells nobody that somebody has gone)
                await asyncio.sleep(0)

    def body_of(self, reply: str) -> bytes:
        """The bytes that would be relayed of a mail that was accepted."""
        return self.door.message(request_of(reply))


def request_of(reply: str) -> str:
    """The request's id in a reply."""
    return next(word.rstrip(";") for word in reply.split() if word.startswith("req_"))


class Client(Talk):
    """The test's client."""

    async def ehlo(self, name: str = "agent.example.com") -> str:
        """EHLO."""
        return await self.say(f"EHLO {name}")

    async def log_in(self, name: str, key: str) -> str:
        """AUTH PLAIN in one line."""
        return await self.say("AUTH PLAIN " + b64encode(f"\0{name}\0{key}".encode()).decode())

    async def envelope(self, to: tuple[str, ...] = (PAT,), sender: str = BOXES[0], more: str = "") -> list[str]:
        """MAIL and RCPT; the replies to RCPT."""
        reply = await self.say(f"MAIL FROM:<{sender}>{more}")
        assert reply.startswith("250 "), reply
        return [await self.say(f"RCPT TO:<{person}>") for person in to]

    async def send(self, mail: str | bytes = MAIL, to: tuple[str, ...] = (PAT,), **more: Any) -> str:
        """A whole transaction; all recipients must be taken. The reply to the dot."""
        replies = await self.envelope(to, **more)
        assert all(reply.startswith("250 ") for reply in replies), replies
        return await self.content(mail)

    async def content(self, mail: str | bytes = MAIL) -> str:
        """DATA and a mail; the reply to the dot."""
        assert (await self.say("DATA")).startswith("354 ")
        data = mail.encode() if isinstance(mail, str) else mail
        return await self.say(data.replace(b"\r\n.", b"\r\n..") + b".\r\n")

    async def upgrade(self) -> None:
        """Goes over to TLS after 220."""
        await self.writer.start_tls(client_tls(), server_hostname="localhost")

    @property
    def closed(self) -> bool:
        """Whether the other side has closed and everything was read."""
        return self.reader.at_eof()


@contextlib.asynccontextmanager
async def a_submit(door: Door, limits: Limits | None = None, **settings: Any) -> AsyncIterator[Submit]:
    """Opens the SMTP door of a world, with a certificate, at two ports."""
    context = door.context
    values = context.settings.model_copy(update=settings)
    house = a_house(replaced(context, settings=values), limits)
    house.tls = server_tls("localhost", "127.0.0.1")
    house.lockout = Lockout(pause=0.0)
    plain, secure = listening(), listening()
    smtp = SmtpDoor(house, plain, secure)
    await smtp.start()
    try:
        yield Submit(door, house, smtp, plain.getsockname()[1], secure.getsockname()[1])
    finally:
        await smtp.stop()


def replaced(context: Any, **changes: Any) -> Any:  # noqa: ANN401
    """A frozen thing with changes."""
    from dataclasses import replace

    return replace(context, **changes)
