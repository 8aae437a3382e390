"""`mcp`: the tools for models over stdio, for clients that start a program; each call is made to a running gateway."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gateway.cli import options, printing

if TYPE_CHECKING:
    from gateway.client import AsyncClient
    from gateway.doors.mcp.tool import Answer, Ask

STILL_SENDING = ("POST",)
WAIT_MAX = 30.0


def mcp(url: options.Url = None, key: options.Key = None) -> None:
    """Serve the tools for models (Model Context Protocol) on stdin and stdout, against the gateway that --url names.

    A client such as an editor starts this; the gateway itself has the same tools at /mcp. It ends with its client.
    """
    from gateway.client import AsyncClient, NotSetUp

    try:
        client = AsyncClient(url, key)
    except NotSetUp as error:
        printing.fail(error.message, 2)
    asyncio.run(_serve(client))


async def _serve(client: "AsyncClient") -> None:
    from mcp.server.stdio import stdio_server

    from gateway.doors.mcp.server import server

    made = server(lambda _: asking(client))
    async with client, stdio_server() as (reading, writing):
        await made.run(reading, writing, made.create_initialization_options())


def asking(client: "AsyncClient") -> "Ask":
    """The way to a gateway by its client."""
    from gateway.client import GatewayError
    from gateway.client.call import Call
    from gateway.doors.mcp.tool import Answer

    async def ask(
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        call: Call[Any] = Call(
            method,
            path,
            lambda answer: answer,
            body,
            query or {},
            headers or {},
            wait=_wait(body),
            again=_again(method, body),
        )
        try:
            got = await client.answer(call)
        except GatewayError as error:
            return Answer(error.status, error.body) if error.status else _unreached(error)
        return Answer(got.status, got.body)

    return ask


def _again(method: str, body: Mapping[str, Any] | None) -> bool:
    """Whether a request may be repeated though the first may have been carried out: a send only with its key."""
    return method not in STILL_SENDING or bool(body and body.get("idempotencyKey"))


def _wait(body: Mapping[str, Any] | None) -> float:
    """Seconds that the gateway was asked to wait before it answers; it refuses what is more, or no number."""
    wish = (body or {}).get("waitSeconds")
    return min(max(float(wish), 0.0), WAIT_MAX) if isinstance(wish, int | float) else 0.0


def _unreached(error: Exception) -> "Answer":
    from gateway.doors.mcp.tool import Answer

    following = "call again with the same idempotency_key; it never sends twice. If it fails again, tell a person"
    return Answer(503, {"error": "gateway_unreachable", "message": str(error), "nextAction": following})
