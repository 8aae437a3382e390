"""A reader of Server-Sent Events that shows each frame as it came."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from tests.doors.door import Door

PATIENCE = 20
"""Seconds after which an event that does not come is a failure."""
STREAM = "/v1/agent/events/stream"


@dataclass(slots=True)
class Frame:
    """One frame: its fields as they stand there; `data` is decoded."""

    id: str = ""
    event: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    comment: str = ""


@dataclass(slots=True)
class Reader:
    """One open stream."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    last: str = ""
    buffer: bytes = b""

    async def open(self, head: bytes) -> None:
        """Asks, and reads the head of the answer."""
        self.writer.write(head)
        async with asyncio.timeout(PATIENCE):
            lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines[1:] if line)}

    async def frame(self) -> Frame | None:
        """The next frame, of whatever kind; `None` at the end."""
        while b"\n\n" not in self.buffer:
            async with asyncio.timeout(PATIENCE):
                size = int((await self.reader.readuntil(b"\r\n")).strip(), 16)
                self.buffer += (await self.reader.readexactly(size + 2))[:-2]
            if not size:
                return None
        text, _, self.buffer = self.buffer.partition(b"\n\n")
        frame = Frame()
        for line in text.decode("ascii").split("\n"):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                frame.data = json.loads(value)
            elif name in ("id", "event"):
                setattr(frame, name, value)
            elif not name:
                frame.comment = value
        self.last = frame.id or self.last
        return frame

    async def event(self) -> Frame:
        """The next frame that is an event."""
        while (frame := await self.frame()) is not None:
            if frame.event:
                return frame
        raise AssertionError("the stream has ended")

    async def events(self, count: int) -> list[Frame]:
        """So many events."""
        return [await self.event() for _ in range(count)]

    async def ended(self) -> bool:
        """Whether the stream comes to its end, with no event before it."""
        while (frame := await self.frame()) is not None:
            assert not frame.event, frame
        return True


@dataclass(slots=True)
class Served:
    """A door on a port."""

    door: Door
    port: int
    readers: list[Reader] = field(default_factory=list)

    async def listen(self, query: str = "", *, by: str = "operator", **headers: str) -> Reader:
        """Opens a stream; it waits until the first frame, so that all that happens from now on is told."""
        given = {"Authorization": f"Bearer {self.door.keys[by]}"} | {n.replace("_", "-"): v for n, v in headers.items()}
        lines = [f"GET {STREAM}{query} HTTP/1.1", "Host: localhost", *(f"{n}: {v}" for n, v in given.items()), "", ""]
        one = Reader(*await asyncio.open_connection("127.0.0.1", self.port))
        self.readers.append(one)
        await one.open("\r\n".join(lines).encode())
        if one.status == 200:
            await one.frame()
        return one

    async def close(self) -> None:
        """Closes all streams."""
        for one in self.readers:
            one.writer.close()
            with contextlib.suppress(ConnectionError):
                await one.writer.wait_closed()

    @contextlib.asynccontextmanager
    async def listening(self, query: str = "", **more: str) -> AsyncIterator[Reader]:
        """As `listen`, closed at the end."""
        one = await self.listen(query, **more)
        try:
            yield one
        finally:
            one.writer.close()
