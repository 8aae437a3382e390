"""What stands around all routes: the Host check, the headers of every answer, and one dull answer to what nobody expected.

So many requests may be under way at once; more are told to come again, but for probes.

The Host check is for browsers whose name server was made to point a stranger's name at a loopback address (DNS
rebinding); probes of an orchestrator, which call by address, may ask for `/healthz` and `/readyz`.
"""

import asyncio
import logging
import secrets
import traceback
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.doors.http.problems import PROBLEM, dumped

log = logging.getLogger(__name__)

PROBES = frozenset({"/healthz", "/readyz"})
POLICY = b"content-security-policy"
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
MORE_HEADERS = "gateway.headers"
"""The member of a request's scope that holds a list of headers for its answer, whatever that will be."""

LEAVE = "gateway.leave"
"""The member of a request's scope that takes it out of the number of those under way: it may last for days."""

REQUESTS_MAX = 1000
"""Requests that one process has under way at once."""

CLOSED = (POLICY, b"default-src 'none'; frame-ancestors 'none'")


class Guard:
    """The outermost layer of the door."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        """Let in requests for these names; `*` among them lets in all."""
        self.app = app
        self.under_way = 0
        self.hosts = None if "*" in hosts else frozenset(name.lower().removesuffix(".") for name in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, where not too many are under way."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope[MORE_HEADERS] = []
        self.under_way += 1
        counted = True

        def leave() -> None:
            nonlocal counted
            self.under_way -= counted
            counted = False

        scope[LEAVE] = leave
        try:
            await self._serve(scope, receive, send)
        finally:
            leave()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False
        headed = scope["method"] == "HEAD"
        if headed:  # the routes see a GET, of which only the head is sent (RFC 9110 9.3.2)
            scope = {**scope, "method": "GET"}

        async def sending(message: Message) -> None:
            nonlocal started
            if headed and started:
                return
            if message["type"] == "http.response.start":
                started = True
                headers = list(message.get("headers", ()))
                headers += scope[MORE_HEADERS]
                own = any(name == POLICY for name, _ in headers)
                message["headers"] = [*headers, *HEADERS] if own else [*headers, *HEADERS, CLOSED]
            await send(message)
            if headed:  # a stream would never end by itself
                await send({"type": "http.response.body", "body": b""})

        if not self._meant(scope):
            await _answer(
                sending, 421, "misdirected_request", "this gateway is not called by this name; see ALLOWED_HOSTS"
            )
            return
        upgrade = _upgrade(scope)
        if upgrade:
            scope[MORE_HEADERS].append((b"connection", b"close"))  # what comes after such a head is no HTTP any more
            if upgrade == b"websocket":
                await _answer(sending, 400, "websocket_not_supported", "this gateway speaks HTTP/1.1 and no WebSocket")
                return
        if self.under_way > REQUESTS_MAX and scope["path"] not in PROBES:
            scope[MORE_HEADERS].append((b"retry-after", b"1"))
            await _answer(sending, 503, "overloaded", "too many requests are under way; nothing was done, ask again")
            return
        await self._carry_out(scope, receive, sending, lambda: started)

    async def _carry_out(self, scope: Scope, receive: Receive, send: Send, started: Callable[[], bool]) -> None:
        """Let the routes answer, and answer in their place what they do not; `started` says whether an answer has begun."""
        try:
            await self.app(scope, receive, send)
        except asyncio.CancelledError:  # the gateway stops, and has waited for this one long enough
            if started():
                raise
            scope[MORE_HEADERS].append((b"retry-after", b"1"))
            await _answer(send, 503, "overloaded", "the gateway is stopping; ask again, with the same key")
        except Exception as error:
            number = secrets.token_hex(8)
            log.error("a request failed", extra={"id": number, "path": scope["path"], **cause(error)})  # noqa: TRY400
            if started():
                raise
            await _answer(send, 500, "internal_error", "something went wrong here; it was logged under this id", number)

    def _meant(self, scope: Scope) -> bool:
        if self.hosts is None or scope["path"] in PROBES:
            return True
        given = [value for name, value in scope["headers"] if name == b"host"]
        return len(given) == 1 and _name(given[0].decode("latin-1")) in self.hosts


def _name(host: str) -> str:
    """The name in a Host header, without its port, in lower case."""
    name, bracket, _ = host.rpartition("]")
    return (name + bracket if bracket else host.partition(":")[0]).lower().removesuffix(".")


def _upgrade(scope: Scope) -> bytes:
    """The protocol that the caller would rather speak, in lower case; empty where none is named."""
    return next((bytes(value).strip().lower() for name, value in scope["headers"] if name == b"upgrade"), b"")


def cause(error: BaseException) -> dict[str, object]:
    """What went wrong, for the operator's log: kind and places, never the text, which may hold what was sent."""
    frames = traceback.extract_tb(error.__traceback__)
    return {"kind": type(error).__qualname__, "at": [f"{f.filename}:{f.lineno} {f.name}" for f in frames[-12:]]}


async def _answer(send: Send, status: int, slug: str, message: str, number: str | None = None) -> None:
    body = dumped({"error": slug, "message": message} | ({"id": number} if number else {}))
    headers = [(b"content-type", PROBLEM.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
