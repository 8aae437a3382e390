"""The door over streamable HTTP, at `/mcp` with and without the slash, in the gateway's process and with the same keys.

A session belongs to the key that opened it, and every call is made with the key that comes with it: a revoked key's session ends
at its next call.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gateway.doors.auth import Authenticator, Grant, unauthorized
from gateway.doors.inside import carry
from gateway.doors.mcp.server import Context, server
from gateway.doors.mcp.tool import Answer, Ask
from gateway.doors.refusal import Refusal

PATHS = ("/mcp", "/mcp/")
SESSIONS_MAX = 2000
"""Sessions that one process keeps."""
SESSIONS_OF_KEY = 500
"""Sessions of one key: a client that forgets to close its own must not shut out the others."""
VERSION = b"mcp-protocol-version"
OPENING = HANDSHAKE_PROTOCOL_VERSIONS
"""Versions of the protocol that have sessions."""
IDLE_SECONDS = 1800.0
"""After which a session that asks nothing is forgotten; its client begins another one."""
LEAVE = "gateway.leave"
"""What takes a request out of the number of those under way: a stream for the server's own messages may last for days."""
LAST_SECONDS = 5.0
"""How long a stop waits for calls that are under way: a call that is cut off leaves its model in doubt."""
logging.getLogger("mcp").setLevel(logging.ERROR)  # what strangers get wrong is answered and not logged


class Door:
    """The sessions of a process."""

    def __init__(self, auth: Authenticator, body_max: int) -> None:
        """Start nothing; bodies may have `body_max` bytes."""
        self.auth = auth
        self.manager = StreamableHTTPSessionManager(
            server(_asking),
            json_response=True,
            session_idle_timeout=IDLE_SECONDS,
            max_request_body_size=body_max,
            max_sessions=SESSIONS_MAX,
        )
        self._calls = 0
        self._stopping = False
        self._quiet = asyncio.Event()
        self._ending = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def router(self) -> APIRouter:
        """Its routes, for the application of the HTTP door."""
        made = APIRouter()
        made.routes += [Route(path, endpoint=_Endpoint(self)) for path in PATHS]
        return made

    async def start(self) -> None:
        """Serve sessions until `stop`."""
        opened = asyncio.Event()

        async def run() -> None:
            async with self.manager.run():
                opened.set()
                await self._ending.wait()

        self._running = asyncio.create_task(run(), name="mcp")
        await opened.wait()

    async def stop(self) -> None:
        """End all sessions, once their calls have come to an end; who comes meanwhile is told to come again."""
        self._stopping = True
        if self._calls:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._quiet.wait(), LAST_SECONDS)
        self._ending.set()
        if self._running is not None:
            await asyncio.wait({self._running})

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request of the protocol. Raises Refusal 401, 429, 503."""
        grant = await _granted(self.auth, Request(scope))
        if self._stopping:
            raise Refusal(503, "overloaded", "the gateway is stopping; ask again, with the same key", retryAfter=1)
        who = f"{grant.tenant}/{grant.key_id}"
        scope["user"] = AuthenticatedUser(AccessToken(token=grant.prefix, client_id=who, scopes=sorted(grant.scopes)))
        if scope["method"] == "GET":  # a stream; the end of its session is its own
            scope.get(LEAVE, lambda: None)()
            await self.manager.handle_request(scope, receive, send)
            return
        self._refuse_too_many(scope, who)
        self._calls += 1
        try:
            await self.manager.handle_request(scope, receive, send)
        finally:
            self._leave()

    def _refuse_too_many(self, scope: Scope, who: str) -> None:
        """Refuse a key another session where it has too many. Raises Refusal 429."""
        named = {name: value.decode("latin-1") for name, value in scope["headers"] if name.startswith(b"mcp-")}
        if b"mcp-session-id" in named or named.get(VERSION, OPENING[0]) not in OPENING:
            return
        owners = self.manager._session_owners.values()  # noqa: SLF001  (the SDK says it nowhere else)
        if sum(one["client_id"] == who for one in owners) >= SESSIONS_OF_KEY:
            raise Refusal(429, "too_many_sessions", "the key has too many sessions of MCP open", limit=SESSIONS_OF_KEY)

    def _leave(self) -> None:
        """A call has ended."""
        self._calls -= 1
        if self._stopping and not self._calls:
            self._quiet.set()


class _Endpoint:
    """An application of its own: the routing of the framework asks for a function of requests otherwise."""

    def __init__(self, door: Door) -> None:
        self.door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.door.serve(scope, receive, send)
        except Refusal as error:
            await _answer(error)(scope, receive, send)


def _answer(error: Refusal) -> Response:
    """A refusal before the protocol has begun, as the HTTP door says it."""
    body = json.dumps({"error": error.slug, "message": error.message} | error.extra).encode()
    headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}  # noqa: PLR2004
    if "retryAfter" in error.extra:
        headers["Retry-After"] = str(error.extra["retryAfter"])
    return Response(body, error.status, headers, "application/problem+json")


async def _granted(auth: Authenticator, request: Request) -> Grant:
    """Who calls. Raises Refusal."""
    given = request.headers.getlist("authorization")
    scheme, _, raw = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    if scheme.lower() != "bearer":
        raise unauthorized()
    return await auth.grant(raw.strip(" "), None if request.client is None else request.client.host)


def _asking(context: Context) -> Ask:
    """The way to the HTTP door for one call, with the key that came with it."""
    request = context.request
    assert request is not None  # noqa: S101  (over HTTP there is one)
    own = [one for one in request.scope["headers"] if one[0] in (b"host", b"authorization")]

    async def ask(
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        more = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
        data = b"" if body is None else json.dumps(body).encode()
        asked = urlencode(query or {})
        status, said = await carry(
            request.scope["app"],
            request.scope,
            method,
            path,
            query=asked,
            body=data,
            headers=[*own, *more],
            gone=request.is_disconnected,
        )
        return Answer(status, said)

    return ask
