"""The official SDK's client, with a key."""

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.doors.door import Door

Result = dict[str, Any]


@dataclass(slots=True)
class Served:
    """A door on a port."""

    door: Door
    port: int

    @contextlib.asynccontextmanager
    async def connect(self, by: str = "a", path: str = "/mcp", **more: Any) -> AsyncIterator["Session"]:
        """A session of the key named `by`."""
        headers = {"Authorization": f"Bearer {self.door.keys.get(by, by)}"}
        async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
            transport = streamable_http_client(f"http://127.0.0.1:{self.port}{path}", http_client=http)
            async with Client(transport, **more) as client:
                yield Session(client)


@dataclass(slots=True)
class Session:
    """A connected client."""

    client: Client

    async def call(self, name: str, **given: Any) -> Result:
        """Calls a tool; its result as an object, which must be the same in both of its forms."""
        got = await self.client.call_tool(name, given)
        assert isinstance(got.structured_content, dict), got
        assert json.loads(got.content[0].text) == got.structured_content  # type: ignore[union-attr]
        assert got.is_error is False or got.structured_content["ok"] is False
        return got.structured_content
