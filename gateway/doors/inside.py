"""A request that is made inside this process: the application answers as it would over the wire, without a connection."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Scope

SAME = ("asgi", "http_version", "scheme", "client", "server")
"""What the request inside has of the one that it is made for."""
LOOK = 0.25
"""Seconds between two looks whether the outer caller is still there."""


async def carry(
    app: ASGIApp,
    outer: Mapping[str, Any],
    method: str,
    path: str,
    *,
    query: str = "",
    body: bytes = b"",
    headers: Iterable[tuple[bytes, bytes]] = (),
    gone: Callable[[], Awaitable[bool]] | None = None,
    **members: object,
) -> tuple[int, Any]:
    """Make a request of the application for the one in `outer` (its scope); returns status and decoded JSON.

    `headers` are all that it has beside those of a body; `members` are put into its scope. `gone` says whether the outer
    caller has hung up: then this one has too; without it nobody hangs up, and what was begun is carried out.
    """
    about = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())] if body else []
    scope: Scope = {
        **{name: outer[name] for name in SAME if name in outer},
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": quote(path).encode(),
        "query_string": query.encode("latin-1"),
        "root_path": "",
        "headers": [*headers, *about],
        "gateway.headers": [],
        **members,
    }
    coming: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    said: list[Message] = []

    async def receive() -> Message:
        if coming:
            return coming.pop()
        if gone is None:
            await asyncio.Event().wait()  # who asks whether the caller has hung up must not hear that it has
        else:
            while not await gone():  # noqa: ASYNC110  (nothing tells of it)
                await asyncio.sleep(LOOK)
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        said.append(message)

    await app(scope, receive, send)
    status: int = next(one["status"] for one in said if one["type"] == "http.response.start")
    answer = b"".join(one.get("body", b"") for one in said if one["type"] == "http.response.body")
    return status, json.loads(answer) if answer else None
