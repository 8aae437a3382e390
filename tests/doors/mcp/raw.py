"""A session of the protocol as it is on the wire, for what the official client would never say."""

from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx

VERSION = "2025-11-25"
BOTH = "application/json, text/event-stream"
ABOUT = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


@dataclass(slots=True)
class Raw:
    """A client with one key; `session` is what the server named."""

    http: httpx.AsyncClient
    key: str
    session: str = ""
    numbers: Any = field(default_factory=lambda: count(1))

    def headers(self, **more: str) -> dict[str, str]:
        """Those of a request in the session."""
        usual = {"Authorization": f"Bearer {self.key}", "Accept": BOTH, "Content-Type": "application/json"}
        own = {"Mcp-Session-Id": self.session, "Mcp-Protocol-Version": VERSION} if self.session else {}
        return usual | own | more

    async def post(self, body: object, **more: str) -> httpx.Response:
        """Says something; bytes as they are, all else as JSON."""
        how: dict[str, Any] = {"content": body} if isinstance(body, bytes) else {"json": body}
        return await self.http.post("/mcp", headers=self.headers(**more), **how)

    async def ask(self, method: str, **params: Any) -> httpx.Response:
        """Asks for something."""
        return await self.post({"jsonrpc": "2.0", "id": next(self.numbers), "method": method, "params": params})

    async def open(self) -> httpx.Response:
        """Opens a session; the answer, whatever it is."""
        answer = await self.ask("initialize", **ABOUT)
        if answer.status_code == 200:
            self.session = answer.headers["mcp-session-id"]
            await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    async def call(self, name: str, **given: Any) -> dict[str, Any]:
        """Calls a tool; its result."""
        answer = await self.ask("tools/call", name=name, arguments=given)
        assert answer.status_code == 200, answer.text
        said: dict[str, Any] = answer.json()["result"]["structuredContent"]
        return said

    async def read(self, uri: str) -> Any:  # noqa: ANN401  (an answer of the protocol)
        """Reads a resource; the answer of the protocol."""
        return (await self.ask("resources/read", uri=uri)).json()
