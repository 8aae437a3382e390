"""The face of both sinks: a server on a port, its mails, ways to wait for them; `run` is the engine of the command."""

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, Self

from gateway.sink.box import Box, Line, Mail
from gateway.sink.peer import Peer
from gateway.sink.play import Play
from gateway.sink.receiver import Manners, Receiver
from gateway.sink.script import Script
from gateway.sink.scripted import Dialogue, Record


@dataclass(eq=False)
class Sink:
    """An SMTP server for the loopback, as an async context manager: `async with Sink() as sink: ... sink.port`.

    `script` (a Script, its text, or a path to it) makes it the scripted server, which keeps a transcript; without one
    it is the well-behaved server on aiosmtpd. `tls` is offered by STARTTLS, or spoken from the start with `implicit`;
    `auth` is a pair of login and password that MAIL then asks for. `maildir` is a folder in which every mail is kept
    before it is answered. `receive_buffer` (bytes) makes the kernel take less from a client than is usual, `clock`
    (seconds) is what UNTIL in a script goes by. `on_mail` is called with each mail; `keep=False` forgets it afterwards.
    """

    _: KW_ONLY
    script: Script | Path | str | None = None
    bind: tuple[str, int] = ("127.0.0.1", 0)
    maildir: Path | None = None
    tls: ssl.SSLContext | None = None
    implicit: bool = False
    auth: tuple[str, str] | None = None
    hostname: str = "sink.example.net"
    size: int = 33_554_432
    receive_buffer: int | None = None
    clock: Callable[[], float] = time.monotonic
    on_mail: Callable[[Mail], None] | None = None
    keep: bool = True
    port: int = field(init=False, default=0)
    box: Box = field(init=False)
    record: Record = field(init=False)
    _open: "set[Any]" = field(init=False, default_factory=set)
    _tasks: "set[asyncio.Task[None]]" = field(init=False, default_factory=set)
    _server: asyncio.Server | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.box = Box(maildir=self.maildir, on_mail=self.on_mail, keep=self.keep)
        if isinstance(self.script, Path):
            self.script = Script.load(self.script)
        elif isinstance(self.script, str):
            self.script = Script.parse(self.script)

    async def __aenter__(self) -> Self:
        """Listens; raises OSError where the port cannot be had."""
        loop = asyncio.get_running_loop()
        self.record = Record()
        manners = Manners(self.hostname, self.size, self.tls, self.implicit, self.auth)
        self._server = await loop.create_server(
            self._factory(loop, manners), sock=self._socket(), ssl=self.tls if self.implicit else None, backlog=1000
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Stops listening and breaks off what is still open."""
        if self._server is not None:
            self._server.close()
        tasks = set(self._tasks) | {one.work for one in self._open if isinstance(one, Receiver) and one.work}
        for one in list(self._open):
            if one.transport is not None:
                one.transport.abort()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()

    def _socket(self) -> socket.socket:
        host, port = self.bind
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        sock = socket.socket(family, kind, proto)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if self.receive_buffer is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer)
            sock.bind(address)
        except OSError:
            sock.close()
            raise
        return sock

    def _factory(self, loop: asyncio.AbstractEventLoop, manners: Manners) -> Callable[[], asyncio.BaseProtocol]:
        script = self.script
        if not isinstance(script, Script):
            return lambda: Receiver(self.box, manners, loop, self._open)
        play = Play(script, self.clock)

        def opened(peer: Peer) -> None:
            self._open.add(peer)
            number = self.box.session()
            dialogue = Dialogue(peer, number, self.box, play, self.record, manners, secure=manners.implicit)
            task = loop.create_task(dialogue.run())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        def closed(peer: Peer) -> None:
            self._open.discard(peer)
            self.box.changed()

        return lambda: Peer(opened, closed)

    @property
    def mails(self) -> list[Mail]:
        """The mails taken so far, in order."""
        return self.box.mails

    @property
    def sessions(self) -> int:
        """How many clients have connected."""
        return self.box.sessions

    @property
    def connected(self) -> int:
        """How many clients are connected now."""
        return len(self._open)

    @property
    def transcript(self) -> list[Line]:
        """Every line that was said, of all connections; empty without a script."""
        return self.record.transcript

    @property
    def commands(self) -> list[str]:
        """The commands in the transcript, as text without line ends."""
        return [line.data.decode("utf-8", "replace").rstrip("\r\n") for line in self.transcript if line.speaker == "C"]

    @property
    def data_phases(self) -> int:
        """How often a body was asked for (354); 0 without a script."""
        return self.record.data_phases

    @property
    def dots(self) -> int:
        """How many bodies came whole, whatever was answered; 0 without a script."""
        return self.record.dots

    @property
    def waiting(self) -> int:
        """How many connections stand still at a WAIT of the script."""
        return self.record.waiting

    def go(self) -> None:
        """Lets every WAIT of the script go on, now and later."""
        self.record.go.set()

    async def wait(self, count: int = 1, timeout: float = 5.0) -> list[Mail]:  # noqa: ASYNC109 - the words of a test
        """Returns the mails once there are `count`; raises TimeoutError after `timeout` seconds."""
        await self.box.until(lambda: self.box.taken >= count, timeout)
        return self.mails

    async def until(self, ready: Callable[[], bool], timeout: float = 5.0) -> None:  # noqa: ASYNC109 - same
        """Returns once `ready()`, asked after everything that happens here, is true; raises TimeoutError."""
        await self.box.until(ready, timeout)

    def hang_up(self, last: str = "") -> None:
        """Ends every open connection, after one unasked reply where `last` is given."""
        for one in list(self._open):
            if last:
                one.transport.write(last.encode() + b"\r\n")
            one.transport.close()


async def run(
    bind: tuple[str, int],
    maildir: Path | None = None,
    script: Script | Path | None = None,
    on_mail: Callable[[Mail], None] | None = None,
    ready: Callable[[int], None] | None = None,
) -> None:
    """Serves until it is cancelled; `ready` is called with the port once it listens. Raises OSError as `Sink` does."""
    async with Sink(script=script, bind=bind, maildir=maildir, on_mail=on_mail, keep=False) as sink:
        if ready is not None:
            ready(sink.port)
        await asyncio.get_running_loop().create_future()
