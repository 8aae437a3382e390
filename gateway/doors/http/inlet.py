"""How a route takes what it is given: the key first, then the body within its limits, then every bad field at once.

Nothing of a body is read before the key was found good. A body has a size, a time for the whole of it, and one type.
"""

import asyncio
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from fastapi import Request
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase
from pydantic import ValidationError

from gateway.core.address import KeyRules
from gateway.doors.auth import Grant, acting, unauthorized
from gateway.doors.context import Context
from gateway.doors.fields import Reader, Shape
from gateway.doors.http import strictjson
from gateway.doors.http.guard import MORE_HEADERS
from gateway.doors.http.human import ASKING, BODY, GRANT, READ
from gateway.doors.limits import Allowance
from gateway.doors.refusal import Faults, Refusal
from gateway.settings import Settings

S = TypeVar("S", bound=Shape)

LARGE = 32_768
"""Bytes of a body from which on it is read in a thread, so that others need not wait: that many addresses take time."""
ENVELOPE = 65_536
"""Bytes of a body beyond twice the largest message: base64 and escapes take room."""
FAULTS_MAX = 1000
"""Bad fields that are named at once."""

WORDS = {
    "missing": "is required",
    "extra_forbidden": "is not known",
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "float_type": "must be a number",
}
NOT_YET = "is documented, but not supported by this gateway"

_INDEX = re.compile(r"\[\d+\]")


class OfTenant(Shape):
    """Nothing but the tenant: the query of a route that has none of its own, or that takes a body."""


def context_of(request: Request) -> Context:
    """What this process gave to its door."""
    return cast("Context", request.scope["app"].state.context)


class Needs(SecurityBase):
    """A dependency of a route: a good key with one of these scopes; gives the `Grant`."""

    def __init__(self, *scopes: str) -> None:
        """Any of `scopes` is enough."""
        self.scopes = scopes
        self.model = HTTPBearer(description="An API key: gk_live_...")
        self.scheme_name = "key"
        self.described: dict[str, Any] = {"security": [{self.scheme_name: list(scopes)}]}

    async def __call__(self, request: Request) -> Grant:
        """Find out who calls. Raises Refusal 401, 403, 429."""
        grant: Grant = request.scope.get(ASKING) or await self._found(request)
        grant.need(*self.scopes)
        request.scope[GRANT] = grant
        return grant

    async def _found(self, request: Request) -> Grant:
        """What the key of the request may do; it is charged for it. Raises Refusal 401, 429."""
        given = request.headers.getlist("authorization")
        scheme, _, raw = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        if scheme.lower() != "bearer":
            raise unauthorized()
        auth = context_of(request).auth
        grant = await auth.grant(raw.strip(" "), None if request.client is None else request.client.host)
        if grant.limits:
            charged = [auth.limits.spend(*limit) for limit in grant.limits]
            _spend(request, max(charged, key=lambda one: (one.wait, -one.remaining)))
        return grant


def _spend(request: Request, allowance: Allowance) -> None:
    """Let the answer say where the key stands. Raises Refusal 429 where it has no request left."""
    request.scope[MORE_HEADERS].extend(allowance.headers)
    if allowance.wait:
        words = f"the key may make {allowance.limit} requests in a minute"
        raise Refusal(429, "rate_limited", words, limit=allowance.limit, retryAfter=allowance.wait)


# --- bodies and queries -----------------------------------------------------------------------------------------------


async def take(request: Request, shape: type[S], grant: Grant, *, optional: bool = False) -> S:
    """The body of a request in its shape; with `optional` an empty one is an empty object.

    Raises Faults (422) with every bad field, Refusal 400, 403, 408, 413, 415.
    """
    asked, _ = await take_given(request, shape, grant, optional=optional)
    return asked


async def take_given(
    request: Request, shape: type[S], grant: Grant, *, optional: bool = False
) -> tuple[S, dict[str, Any]]:
    """The same as `take`, and the object of JSON that it was read from. The query may name the tenant, and nothing else."""
    if request.scope["query_string"]:
        query(request, OfTenant, grant)
    data = await body(request)
    if not data and optional:
        data = b"{}"
    elif not data:
        raise Faults([("body", "is required")])
    else:
        _refuse_other_types(request)
    reader = reader_of(request, grant)
    if len(data) > LARGE:
        asked, given = await asyncio.to_thread(_read, data, shape, reader)
    else:
        asked, given = _read(data, shape, reader)
    grant.same_tenant(asked.tenant_id)
    return asked, given


async def take_from_stranger(request: Request, shape: type[S], most: int) -> S:
    """The body of a request without a key in its shape, at most `most` bytes of it. Raises Faults, Refusal 400, 408, 413, 415."""
    unknown = [(strictjson.path((name,)), WORDS["extra_forbidden"]) for name in request.query_params]
    if unknown:
        raise Faults(unknown)
    data = await body(request, most)
    if not data:
        raise Faults([("body", "is required")])
    _refuse_other_types(request)
    return shaped(data, shape, Reader(KeyRules(), frozenset(), frozenset(), datetime.now(UTC)))


def shaped(data: bytes, shape: type[S], reader: Reader) -> S:
    """A body as it was meant. Raises Faults, Refusal."""
    return _read(data, shape, reader)[0]


def _read(data: bytes, shape: type[S], reader: Reader) -> tuple[S, dict[str, Any]]:
    given = strictjson.loads(data)
    return of_shape(given, shape, reader), given


def query(request: Request, shape: type[S], grant: Grant) -> S:
    """The query of a request in its shape. Raises Faults, Refusal 403."""
    given: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if name in given:
            raise Faults([(strictjson.path((name,)), "stands twice in the query")])
        given[name] = value
    asked = of_shape(given, shape, reader_of(request, grant))
    grant.same_tenant(asked.tenant_id)
    request.scope[READ] = True
    return asked


def of_shape(given: Any, shape: type[S], reader: Reader) -> S:  # noqa: ANN401  (JSON)
    """A value of JSON as it was meant. Raises Faults with every bad field."""
    faults = shape.clashes(given) if isinstance(given, dict) else []
    try:
        asked = shape.model_validate(given, context=reader)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False, include_input=False)
        faults = [*(_fault(one, shape) for one in details), *faults]
    else:
        if not faults:
            return asked
    raise Faults(faults[:FAULTS_MAX])


def _fault(detail: Any, shape: type[Shape]) -> tuple[str, str]:  # noqa: ANN401  (an error of pydantic)
    place, kind = detail["loc"], detail["type"]
    words = WORDS.get(kind, detail["msg"])
    field = strictjson.path(tuple(part for part in place if part not in ("<map>", "<list>", "[key]")))
    if kind == "extra_forbidden" and _INDEX.sub("[]", field) in shape.unsupported:
        words = NOT_YET
    return field, words


def reader_of(request: Request, grant: Grant) -> Reader:
    """How this tenant's addresses are read."""
    tenancy = grant.tenancy
    context = context_of(request)
    now = context.store.about_now(grant.tenant)
    return Reader(tenancy.rules, context.settings.special_use, tenancy.own_domains, now)


def _refuse_other_types(request: Request) -> None:
    given = request.headers.getlist("content-type")
    kind, _, parameters = given[0].partition(";") if len(given) == 1 else ("", "", "")
    charset = parameters.strip(" \t;").lower().replace('"', "")
    if kind.strip().lower() != "application/json" or charset not in ("", "charset=utf-8", "charset=utf8"):
        raise Refusal(415, "unsupported_media_type", "the body must be application/json in UTF-8")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refusal(415, "unsupported_media_type", "the body must not be compressed")


def body_limit(settings: Settings) -> int:
    """The bytes that a body may have: the largest message's in base64, and what is around it."""
    return settings.max_message_bytes * 2 + ENVELOPE


async def body(request: Request, most: int | None = None) -> bytes:
    """The whole body, within its limits, of which `most` is its size in bytes. Raises Refusal 408, 413."""
    context = context_of(request)
    limit = body_limit(context.settings) if most is None else most
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > limit:
        raise _too_large(limit)
    pieces: list[bytes] = []
    total = 0
    try:
        async with asyncio.timeout(context.body_seconds):
            async for piece in request.stream():
                total += len(piece)
                if total > limit:
                    raise _too_large(limit)
                pieces.append(piece)
    except TimeoutError:
        raise Refusal(
            408, "request_timeout", f"the body did not come within {context.body_seconds:g} seconds"
        ) from None
    data = request.scope[BODY] = b"".join(pieces)
    return data


def _too_large(limit: int) -> Refusal:
    return Refusal(413, "body_too_large", f"the body is larger than {limit} bytes", limit=limit)


# --- headers ----------------------------------------------------------------------------------------------------------


async def agent_of(request: Request, grant: Grant, named: Iterable[str] = (), *, operator: bool = False) -> str | None:
    """The agent as which a request acts: the key's, else the one in X-Agent-Id or in `named`; see `auth.acting`."""
    who = [*request.headers.getlist("x-agent-id"), *named]
    if all(name == grant.agent for name in who):
        return grant.agent
    return await context_of(request).read(grant.tenant, lambda tx: acting(tx, grant, who, operator=operator))
