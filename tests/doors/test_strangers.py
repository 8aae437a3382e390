"""What strangers send to the port: it is answered clearly, in the one envelope, and fills no log."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import uvicorn

from gateway.doors.http.line import Line, most_connections
from tests.doors.door import PROBLEM, Door, a_door
from tests.doors.test_real_server import PATIENCE, Server, answer_of
from tests.world import World


class Narrow(Line):
    """A line that has room for two."""

    connections_max = 2


@pytest_asyncio.fixture
async def narrow(sqlite_world: World) -> AsyncIterator[tuple[int, Door]]:
    """The port of a door that has room for two connections."""
    async with a_door(sqlite_world) as door:
        config = uvicorn.Config(
            door.app, port=0, http=Narrow, ws="none", log_config=None, lifespan="off", access_log=False
        )
        server = Server(config)
        serving = asyncio.create_task(server.serve())
        await server.opened.wait()
        try:
            yield int(server.servers[0].sockets[0].getsockname()[1]), door
        finally:
            server.should_exit = True
            await serving


async def asked(port: int, octets: bytes) -> tuple[int, dict[str, str], dict[str, str], bytes]:
    """The answer to some octets, and what comes after it until the line is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(octets)
        async with asyncio.timeout(PATIENCE):
            status, headers, body = await answer_of(reader)
            return status, headers, body, await reader.read()
    finally:
        writer.close()


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


async def test_a_websocket_gets_a_clear_answer_and_no_line_in_the_log(
    narrow: tuple[int, Door], caplog: pytest.LogCaptureFixture
) -> None:
    lines = ["GET /v1/events HTTP/1.1", "Host: localhost", "Connection: Upgrade", "Upgrade: websocket"]
    lines += ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13", "", ""]

    status, headers, body, rest = await asked(narrow[0], "\r\n".join(lines).encode())

    assert (status, headers["content-type"], body["error"]) == (400, PROBLEM, "websocket_not_supported")
    assert (headers["connection"], rest, warned(caplog)) == ("close", b"", [])


@pytest.mark.parametrize("octets", [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"EHLO example.net\r\n\r\n"])
async def test_what_is_no_http_gets_a_clear_answer_and_no_line_in_the_log(
    narrow: tuple[int, Door], caplog: pytest.LogCaptureFixture, octets: bytes
) -> None:
    status, headers, body, _ = await asked(narrow[0], octets)

    assert (status, headers["content-type"], body["error"]) == (400, PROBLEM, "invalid_http")
    assert warned(caplog) == []


async def test_one_connection_more_than_there_is_room_for_is_told_so_and_closed(narrow: tuple[int, Door]) -> None:
    port, door = narrow
    head = (
        f"GET /v1/agent/whoami HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {door.keys['a']}\r\n\r\n".encode()
    )
    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
    for reader, writer in held:
        writer.write(head)
        assert (await answer_of(reader))[0] == 200

    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(PATIENCE):
        status, headers, body = await answer_of(reader)
        rest = await reader.read()

    writer.close()
    assert (status, headers["content-type"], body["error"], rest) == (503, PROBLEM, "overloaded", b"")
    assert (headers["retry-after"], headers["connection"]) == ("1", "close")
    held[0][1].write(head)
    assert (await answer_of(held[0][0]))[0] == 200
    for _, writer in held:
        writer.close()


@pytest.mark.parametrize(("files", "connections"), [(1024, 896), (20, 16), (10**6, 4096), (-1, 4096)])
def test_connections_leave_files_for_everything_else(
    monkeypatch: pytest.MonkeyPatch, files: int, connections: int
) -> None:
    monkeypatch.setattr("gateway.doors.http.line.resource.getrlimit", lambda _: (files, files))

    assert most_connections() == connections
