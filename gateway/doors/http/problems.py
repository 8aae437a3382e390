"""Every error leaves as `application/problem+json` (RFC 9457) with `{error: "<slug>", message, ...}` and nothing else."""

import json
from collections.abc import Mapping
from types import MappingProxyType

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match

from gateway.core.errors import ConflictError, HumanDecisionError, NotFoundError, StoreUnavailableError
from gateway.core.verdict import KEY_REUSED, STORE_UNAVAILABLE
from gateway.doors.auth import unauthorized
from gateway.doors.http import human
from gateway.doors.refusal import HumanRefusal, Refusal
from gateway.store.guarded import KeyGoneError

PROBLEM = "application/problem+json"
RETRY_SECONDS = 2
"""What `Retry-After` says where nothing better is known."""

UNAUTHORIZED, NOT_ALLOWED = 401, 405
_ENCODER = json.JSONEncoder(separators=(",", ":"))
BREAKS_OFF = frozenset({408, 413})
"""The rest of the body is not read, so the connection cannot be used again."""

SLUGS = {404: "not_found", 405: "method_not_allowed"}
WORDS = {404: "there is no such route", 405: "this route does not know this method"}


def reply(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer, in ASCII: nothing in it can act on a terminal or end a line."""
    return Response(dumped(body), status, headers, "application/json")


def problem(
    status: int,
    slug: str,
    message: str,
    extra: Mapping[str, object] = MappingProxyType({}),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An error as the wire has it, with `extra` members."""
    return Response(dumped({"error": slug, "message": message, **extra}), status, headers, PROBLEM)


def dumped(body: object) -> bytes:
    """JSON without blanks."""
    return _ENCODER.encode(body).encode()


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)  # noqa: S101  (for the type checker)
    if isinstance(error, HumanRefusal):
        members = await human.said(request, error.kind, error.about, error.loosens)
        return problem(error.status, error.slug, error.message, members)
    headers: dict[str, str] = {}
    if error.status == UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if error.status in BREAKS_OFF:
        headers["Connection"] = "close"
    if "retryAfter" in error.extra:
        headers["Retry-After"] = str(error.extra["retryAfter"])
    return problem(error.status, error.slug, error.message, error.extra, headers)


async def _routing(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  (for the type checker)
    slug, words = SLUGS.get(error.status_code, "refused"), WORDS.get(error.status_code, "refused")
    headers = error.headers
    if error.status_code == NOT_ALLOWED:  # all that this path knows, in whatever route (RFC 9110 15.5.6)
        fits = [one for one in request.app.routes if one.matches(request.scope)[0] is not Match.NONE]
        known = {method for one in fits for method in getattr(one, "methods", None) or ()}
        headers = {"Allow": ", ".join(sorted(known | ({"HEAD"} if "GET" in known else set())))}
    return problem(error.status_code, slug, words, headers=headers)


async def _key_gone(request: Request, _: Exception) -> Response:
    return await _refusal(request, unauthorized())


async def _not_found(_: Request, error: Exception) -> Response:
    return problem(404, "not_found", str(error))


async def _conflict(_: Request, error: Exception) -> Response:
    assert isinstance(error, ConflictError)  # noqa: S101  (for the type checker)
    status = KEY_REUSED.strict if error.slug == KEY_REUSED.slug else 409
    return problem(status, error.slug, str(error), error.extra)


async def _human(request: Request, error: Exception) -> Response:
    assert isinstance(error, HumanDecisionError)  # noqa: S101  (for the type checker)
    members = await human.said(request, error.kind, error.about, error.loosens)
    return problem(403, human.HUMAN, str(error), members)


async def _unavailable(_: Request, __: Exception) -> Response:
    reason = STORE_UNAVAILABLE
    words = f"{reason.text}; the same request with the same key may be repeated"
    return problem(reason.strict, reason.slug, words, {"nextAction": reason.next}, {"Retry-After": str(RETRY_SECONDS)})


async def _gone(_: Request, __: Exception) -> Response:
    return problem(400, "client_disconnected", "the body did not come to its end")


def install(app: FastAPI) -> None:
    """Let the application answer all known errors in this way; what nobody expected is answered by the guard."""
    app.add_exception_handler(Refusal, _refusal)
    app.add_exception_handler(HTTPException, _routing)
    app.add_exception_handler(KeyGoneError, _key_gone)
    app.add_exception_handler(NotFoundError, _not_found)
    app.add_exception_handler(ConflictError, _conflict)
    app.add_exception_handler(HumanDecisionError, _human)
    app.add_exception_handler(StoreUnavailableError, _unavailable)
    app.add_exception_handler(ClientDisconnect, _gone)
