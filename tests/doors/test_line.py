"""What stands below the door: heads that are too large, too slow, or no HTTP at all."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import uvicorn
from starlette.types import Receive, Scope, Send

from gateway.doors.http.line import Line
from tests.doors.door import PROBLEM
from tests.doors.test_real_server import PATIENCE, Server, answer_of

HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


class Hasty(Line):
    """A line that does not wait long."""

    head_seconds = 0.2


async def app(_: Scope, __: Receive, send: Send) -> None:
    """Answers whatever is asked, without a look at the body."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"{}"})


@contextlib.asynccontextmanager
async def listening(kind: type[Line]) -> AsyncIterator[int]:
    """A server with such lines; yields its port."""
    server = Server(uvicorn.Config(app, port=0, http=kind, log_config=None, lifespan="off", access_log=False))
    serving = asyncio.create_task(server.serve())
    await server.opened.wait()
    try:
        yield int(server.servers[0].sockets[0].getsockname()[1])
    finally:
        server.should_exit = True
        await serving


@pytest_asyncio.fixture
async def port() -> AsyncIterator[int]:
    """The port of a server with the usual lines."""
    async with listening(Line) as number:
        yield number


@pytest_asyncio.fixture
async def hasty() -> AsyncIterator[int]:
    """The port of a server that does not wait long."""
    async with listening(Hasty) as number:
        yield number


async def refusal(port: int, *pieces: bytes) -> tuple[int, str]:
    """What these octets are answered with; the line must be closed after it. A closed line without answer is (0, "")."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            with contextlib.suppress(ConnectionError):
                await writer.drain()
        async with asyncio.timeout(PATIENCE):
            try:
                status, headers, body = await answer_of(reader)
            except asyncio.IncompleteReadError as error:
                if error.partial:
                    raise
                return 0, ""
            rest = await reader.read()
    finally:
        writer.close()
    assert (headers["content-type"], headers["connection"], rest) == (PROBLEM, "close", b"")
    assert headers["x-content-type-options"] == "nosniff"
    return status, str(body["error"])


@pytest.mark.parametrize(
    "octets",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"EHLO client.example.net\r\n",
        HEAD + b"X: a\0b\r\n\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_refused_like_all_else(port: int, octets: bytes) -> None:
    assert await refusal(port, octets) == (400, "invalid_http")


@pytest.mark.parametrize("start", [HEAD + b"X: ", b"GET /"])
async def test_a_head_without_end_is_broken_off(port: int, start: bytes) -> None:
    async def feed(writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while not writer.is_closing():
                writer.write(b"a" * 65_536)
                await writer.drain()

    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(start)
    feeding = asyncio.create_task(feed(writer))
    try:
        async with asyncio.timeout(PATIENCE):
            status = (await reader.readline()).split()[1]
    finally:
        feeding.cancel()
        writer.close()
        await asyncio.wait({feeding})

    assert status == b"431"


async def test_a_head_of_many_pieces_within_the_limit_is_read(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in (HEAD, *(b"X-%d: %b\r\n" % (n, b"a" * 1000) for n in range(50)), b"\r\n"):
        writer.write(piece)
        await writer.drain()
    async with asyncio.timeout(PATIENCE):
        status, _, body = await answer_of(reader)
    writer.close()

    assert (status, body) == (200, {})


async def test_a_head_that_stops_midway_is_given_up(hasty: int) -> None:
    assert await refusal(hasty, HEAD) == (408, "request_timeout")


@pytest.mark.parametrize("octets", [b"", b"\r\n"])
async def test_a_connection_that_asks_nothing_is_closed(hasty: int, octets: bytes) -> None:
    assert await refusal(hasty, octets) == (0, "")


@pytest.mark.parametrize("more", [b"\r\n", HEAD, b"GE"])
async def test_the_next_head_on_a_used_connection_has_its_time_too(hasty: int, more: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", hasty)
    writer.write(HEAD + b"\r\n")
    async with asyncio.timeout(PATIENCE):
        first = await answer_of(reader)
        writer.write(more)
        rest = await reader.read()
    writer.close()

    assert first[0] == 200
    assert rest == b"" or json.loads(rest.partition(b"\r\n\r\n")[2])["error"] == "request_timeout"


async def test_a_body_that_is_not_read_does_not_hold_the_connection(hasty: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", hasty)
    writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n")
    async with asyncio.timeout(PATIENCE):
        await answer_of(reader)
        writer.write(b"a")
        rest = await reader.read()
    writer.close()

    assert rest == b""
