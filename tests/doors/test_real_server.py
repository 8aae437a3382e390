"""The door behind a real server on a real port: what only the wire can show."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import httpx
import pytest
import pytest_asyncio
import uvicorn

from gateway.doors.http import batched
from gateway.store.schema import sends
from gateway.store.steps import armed
from tests.doors.door import SEND, Door, a_door, a_send
from tests.world import World

PATIENCE = 20
"""Seconds after which an answer that does not come is a failure."""


class Server(uvicorn.Server):
    """A server that leaves signals alone, and says when it is open."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.opened = asyncio.Event()

    async def startup(self, sockets: "list[Any] | None" = None) -> None:
        await super().startup(sockets)
        self.opened.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@dataclass(slots=True)
class Served:
    """A door on a port."""

    door: Door
    port: int

    async def speak(self, *pieces: bytes) -> tuple[int, dict[str, str], Any]:
        """Sends octets as they are and reads one answer: status, headers, decoded body."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            for piece in pieces:
                writer.write(piece)
                with contextlib.suppress(ConnectionError):
                    await writer.drain()
            async with asyncio.timeout(PATIENCE):
                return await answer_of(reader)
        finally:
            writer.close()

    def head(self, *lines: str) -> bytes:
        """The head of a request to send by the key `a`."""
        usual = (f"POST {SEND} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {self.door.keys['a']}")
        return "\r\n".join([*usual, "Content-Type: application/json", *lines, "", ""]).encode()


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], Any]:
    """One answer with a length."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers["content-length"]))
    return int(head[0].split()[1]), headers, json.loads(body)


@pytest_asyncio.fixture
async def served(sqlite_world: World) -> AsyncIterator[Served]:
    """A door for messages of 2048 bytes, behind uvicorn."""
    async with a_door(sqlite_world, max_message_bytes=2048) as door:
        server = Server(uvicorn.Config(door.app, port=0, log_config=None, lifespan="off", access_log=False))
        serving = asyncio.create_task(server.serve())
        await server.opened.wait()
        try:
            yield Served(door, server.servers[0].sockets[0].getsockname()[1])
        finally:
            server.should_exit = True
            await serving


async def test_a_client_sends_over_the_wire(served: Served) -> None:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{served.port}") as client:
        headers = {"Authorization": f"Bearer {served.door.keys['a']}"}
        first = await client.post(SEND, json=a_send(), headers=headers)
        again = await client.post(SEND, json=a_send(), headers=headers)

    assert first.json()["status"] == "queued"
    assert again.headers["idempotent-replayed"] == "true"


async def test_a_body_that_comes_in_pieces_is_taken(served: Served) -> None:
    text = json.dumps(a_send()).encode()
    pieces = [b"%x\r\n%b\r\n" % (1, text[n : n + 1]) for n in range(len(text))]

    status, _, body = await served.speak(served.head("Transfer-Encoding: chunked"), *pieces, b"0\r\n\r\n")

    assert (status, body["status"]) == (200, "queued")


async def test_a_body_without_end_is_broken_off(served: Served) -> None:
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"

    status, headers, body = await served.speak(served.head("Transfer-Encoding: chunked"), piece, piece)

    assert (status, body["error"], headers["connection"]) == (413, "body_too_large", "close")


async def test_a_body_that_says_it_is_too_large_is_refused_before_it_comes(served: Served) -> None:
    status, headers, body = await served.speak(served.head("Content-Length: 100000000"))

    assert (status, body["error"], headers["connection"]) == (413, "body_too_large", "close")


async def test_a_body_that_never_ends_is_given_up(served: Served) -> None:
    served.door.app.state.context = replace(served.door.context, body_seconds=0.05)

    status, headers, body = await served.speak(served.head("Content-Length: 100"), b"{")

    assert (status, body["error"], headers["connection"]) == (408, "request_timeout", "close")


async def test_who_has_no_key_is_answered_before_a_body_comes(served: Served) -> None:
    head = served.head("Content-Length: 1000").replace(b"gk_live_", b"gk_dead_")

    status, _, body = await served.speak(head)

    assert (status, body["error"]) == (401, "unauthorized")


async def test_a_client_that_hangs_up_in_its_body_harms_nobody(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(served.head("Content-Length: 100") + b'{"to"')
    await writer.drain()
    writer.close()
    await writer.wait_closed()

    text = json.dumps(a_send()).encode()
    status, _, body = await served.speak(served.head(f"Content-Length: {len(text)}"), text)

    assert (status, body["status"]) == (200, "queued")
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_client_that_hangs_up_after_its_body_cancels_nothing(served: Served) -> None:
    text = json.dumps(a_send()).encode()
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)
    armed["commit.before"] = writer.transport.abort
    try:
        writer.write(served.head(f"Content-Length: {len(text)}") + text)
        taken = asyncio.Event()
        served.door.context.intake.wake = taken.set
        async with asyncio.timeout(PATIENCE):
            await taken.wait()
    finally:
        armed.clear()

    status, _, body = await served.speak(served.head(f"Content-Length: {len(text)}"), text)

    assert (status, body["replayed"]) == (200, True)


@pytest.mark.parametrize("host", [b"evil.example.com", b"\xff", b"a b"])
async def test_odd_names_are_misdirected_or_refused(served: Served, host: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(b"GET /docs HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
    async with asyncio.timeout(PATIENCE):
        line = await reader.readline()
    writer.close()

    assert int(line.split()[1]) in {400, 421}


# --- batches that are streamed ----------------------------------------------------------------------------------------

BATCH = "/v1/agent/batch/request-send"
ITEMS = [{"to": f"p{n}@example.net", "dedupeKey": f"k{n}", "text": "hi"} for n in range(6)]


@contextlib.asynccontextmanager
async def a_batch_in_progress(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[httpx.Response, asyncio.Event]]:
    """A stream of six mails in groups of two, whose second group waits for the event."""
    monkeypatch.setattr(batched, "GROUP_ITEMS", 2)
    intake, gate, calls = served.door.context.intake, asyncio.Event(), count()
    submit_all = intake.submit_all

    async def gated(tickets: Any) -> Any:  # noqa: ANN401 - as the intake's own
        if next(calls) == 1:
            await gate.wait()
        return await submit_all(tickets)

    monkeypatch.setattr(intake, "submit_all", gated)
    headers = {"Authorization": f"Bearer {served.door.keys['a']}", "Accept": "application/x-ndjson"}
    async with (
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{served.port}", timeout=PATIENCE) as client,
        client.stream("POST", BATCH, json={"sends": ITEMS}, headers=headers) as answer,
    ):
        yield answer, gate
    gate.set()


async def test_lines_come_as_soon_as_their_group_is_decided(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_batch_in_progress(served, monkeypatch) as (answer, gate):
        lines = answer.aiter_lines()
        early = [json.loads(await anext(lines)) for _ in range(2)]
        known = len(served.door.world.rows_of(sends))
        gate.set()
        *late, totals = [json.loads(line) async for line in lines]

    assert [one["index"] for one in early + late] == list(range(6))
    assert known == 2
    assert (totals["total"], totals["queued"]) == (6, 6)


async def test_a_client_that_leaves_loses_nothing_that_was_decided(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_batch_in_progress(served, monkeypatch) as (answer, _):
        first = json.loads(await anext(answer.aiter_lines()))
    monkeypatch.undo()

    again = await served.door.post(BATCH, {"sends": ITEMS})

    body = again.json()
    assert body["results"][0]["requestId"] == first["requestId"]
    assert [one["replayed"] for one in body["results"][:2]] == [True, True]
    assert (body["queued"], len(served.door.world.rows_of(sends))) == (6, 6)
