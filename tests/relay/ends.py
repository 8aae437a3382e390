"""Both ends of an attempt: a smarthost that behaves as a script says, and our pool of connections to it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gateway.core.delivery import Outcome, Reply
from gateway.relay.attempt import attempt
from gateway.relay.outgoing import Outgoing
from gateway.relay.pool import Pool
from gateway.relay.smarthost import Smarthost
from gateway.sink import Sink
from tests.smtp import ca_file, server_tls

SCHEMES = {"plain": "smtp", "starttls": "smtp+starttls", "implicit": "smtps"}

every_way = pytest.mark.parametrize("way", list(SCHEMES))
"""Runs a test without TLS, with STARTTLS and with TLS from the start."""


def serial(way: str = "plain") -> str:
    """Put before a script it takes PIPELINING away."""
    return 'EHLO "250-up.example.net\\r\\n{}250 8BITMIME"\n'.format("250-STARTTLS\\r\\n" if way == "starttls" else "")


def outgoing(**changes: object) -> Outgoing:
    """A mail with good defaults."""
    body = b"Subject: hello\r\n\r\nhi\r\n..\r\n"
    fields: dict[str, object] = {
        "envelope_from": "agent@example.com",
        "recipient": "pat@example.net",
        "body": body,
        "size": len(body),
    }
    return Outgoing(**(fields | changes))  # type: ignore[arg-type]


@dataclass
class Ends:
    """What a test acts on; `asked` counts the permits asked for, `steps` are those that were reached."""

    sink: Sink
    pool: Pool
    now: float = 0.0
    asked: int = 0
    steps: list[str] = field(default_factory=list)
    late: list[Reply] = field(default_factory=list)

    async def attempt(
        self,
        mail: Outgoing | None = None,
        permit: Callable[[], Awaitable[str | None]] | None = None,
        step: Callable[[str], Awaitable[None]] | None = None,
        *,
        wants_late: bool = False,
    ) -> Outcome:
        """Makes an attempt; the clock is `now`."""

        async def asking() -> str | None:
            self.asked += 1
            return await permit() if permit else None

        async def stepping(name: str) -> None:
            self.steps.append(name)
            if step:
                await step(name)

        return await attempt(
            self.pool,
            mail or outgoing(),
            asking,
            boot_clock=lambda: self.now,
            step=stepping,
            late_reply=self.late.append if wants_late else None,
        )


@asynccontextmanager
async def ends(
    folder: Path,
    way: str = "plain",
    script: str | Path | None = "# well behaved",
    *,
    auth: tuple[str, str] | None = None,
    receive_buffer: int | None = None,
    command_timeout: float = 5.0,
    reply_timeout: float = 5.0,
    **pool: float,
) -> AsyncIterator[Ends]:
    """Starts the smarthost and makes the pool; ends both."""
    tls = None if way == "plain" else server_tls()
    sink = Sink(script=script, tls=tls, implicit=way == "implicit", auth=auth, receive_buffer=receive_buffer)
    async with sink:
        login = f"{auth[0]}:{auth[1]}@" if auth else ""
        smarthost = Smarthost.parse(
            f"{SCHEMES[way]}://{login}127.0.0.1:{sink.port}",
            ca_file(folder),
            hostname="gw.example.com",
            connect_timeout=command_timeout,
            command_timeout=command_timeout,
            reply_timeout=reply_timeout,
        )
        both = Ends(sink, Pool(smarthost, **pool))  # type: ignore[arg-type]
        try:
            yield both
        finally:
            await both.pool.aclose(grace=1.0)
