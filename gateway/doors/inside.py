"""A request that is made inside this process: the application answers as it would over the wire, without a connection."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Scope

SAME = ("asgi", "http_version", "scheme", "client", "server")
"""What the request inside has of the one that it is made for."""


async def carry(
    app: ASGIApp,
    outer: Mapping[str, Any],
    method: str,
    path: str,
    *,
    query: str = "",
    body: bytes = b"",
    headers: Iterable[tuple[bytes, bytes]] = (),
    **members: object,
) -> tuple[int, Any]:
    """Make a request of the application for the one in `outer` (its scope); returns status and decoded JSON.

    `headers` are all that it has beside those of a body; `members` are put into its scope.
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
    gone: list[Message] = []

    async def receive() -> Message:
        if not coming:
            await asyncio.Event().wait()  # who asks whether the caller has hung up must not hear that it has
        return coming.pop()

    async def send(message: Message) -> None:
        gone.append(message)

    await app(scope, receive, send)
    status: int = next(one["status"] for one in gone if one["type"] == "http.response.start")
    answer = b"".join(one.get("body", b"") for one in gone if one["type"] == "http.response.body")
    return status, json.loads(answer) if answer else None
