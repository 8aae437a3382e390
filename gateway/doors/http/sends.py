"""Sending, and trying what sending would do: `request-send`, `simulate-send`, and taking a send back."""

import asyncio
import contextlib
import math
import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from starlette.routing import Route

from gateway.core.errors import NotFoundError, StoreUnavailableError
from gateway.core.record import Receipt, Record
from gateway.core.status import answer, status
from gateway.doors import answers, letter, stored
from gateway.doors.asked import SendRequest
from gateway.doors.auth import Grant
from gateway.doors.chance import new_request_id
from gateway.doors.fields import TOKEN_MAX
from gateway.doors.http.described import PROBLEMS, asks, header, takes
from gateway.doors.http.inlet import Needs, OfTenant, agent_of, context_of, query, reader_of, take
from gateway.doors.http.problems import PROBLEM, RETRY_SECONDS, dumped, problem, reply
from gateway.doors.letter import Letter
from gateway.doors.message import Terms
from gateway.doors.refusal import Faults, missing
from gateway.store import forbid
from gateway.store.writer import Rank

router = APIRouter(tags=["send"], responses=PROBLEMS)
SENDER = Needs("send")
Sending = Annotated[Grant, Depends(SENDER)]

LARGE = 262_144
"""Bytes of a message from which on it is made in a thread, so that others need not wait."""

WAIT_MAX = 30.0
"""Seconds that `Prefer: wait` may ask for at most."""
OVERLOADED = frozenset({429, 503})
REQUEST = re.compile(r"[!-~]{1,128}")

_KEY = re.compile(r"[!-~]{1,255}")
_HEADERS = [
    header("Idempotency-Key", "The same as idempotencyKey; quotes around it are taken off."),
    header("X-Agent-Id", "The agent as which a key without one acts, by id or name."),
    header("X-Fencing-Token", "The same as fencingToken."),
    header("Prefer", "handling=strict: a refusal has an error's status. wait=SECONDS: answer after the relay attempt."),
]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a caller prefers (RFC 7240): an error's status for a refusal, seconds to wait for the relay attempt."""

    strict: bool = False
    wait: float = 0.0


def wishes_of(request: Request) -> Wishes:
    """Read `Prefer`; what is not known there is left alone, as the standard wants it."""
    wishes = Wishes()
    given = request.headers.getlist("prefer")
    for one in ",".join(given).split(",") if given else ():
        name, _, value = (word.strip(' \t"').lower() for word in one.partition(";")[0].partition("="))
        if (name, value) in (("strict", ""), ("handling", "strict")):
            wishes = replace(wishes, strict=True)
        elif name == "wait" and re.fullmatch(r"\d{1,9}", value, re.ASCII):
            wishes = replace(wishes, wait=min(float(value), WAIT_MAX))
    return wishes


@router.post("/v1/agent/request-send", openapi_extra=takes(SendRequest) | {"parameters": _HEADERS, **SENDER.described})
async def request_send(request: Request) -> Response:
    """Judge a mail and, where nothing stands in the way, take it: decision, record and outbox are one commit."""
    grant = await SENDER(request)  # asked here, since `direct` knows no dependencies
    asked = await take(request, SendRequest, grant)
    made = await _letter(request, grant, asked, may_be_empty=False)
    if asked.dry_run:
        return await _simulated(request, made)
    context, wishes = context_of(request), wishes_of(request)
    receipt = await context.intake.submit(made.ticket)
    if wishes.wait and answers.under_way(receipt.record):
        with contextlib.suppress(StoreUnavailableError):  # it was taken all the same: the receipt says so
            record = await context.wait_for(grant.tenant, receipt.record.id, wishes.wait)
            receipt = replace(receipt, record=record or receipt.record)
    return _answered(receipt, strict=wishes.strict)


direct = Route("/v1/agent/request-send", request_send, methods=["POST"])
"""The same without what FastAPI does for routes with parameters, a seventh of this one's time; the other is its description."""


@router.post("/v1/agent/simulate-send", openapi_extra=takes(SendRequest) | {"parameters": _HEADERS})
async def simulate_send(request: Request, grant: Sending) -> Response:
    """Say what request-send would answer, and write nothing."""
    asked = await take(request, SendRequest, grant)
    return await _simulated(request, await _letter(request, grant, asked, may_be_empty=True))


async def _letter(request: Request, grant: Grant, asked: SendRequest, *, may_be_empty: bool) -> Letter:
    """The ticket of a request under the terms of its own headers. Raises Faults, Refusal."""
    terms = Terms(
        new_request_id(),
        context_of(request).store.about_now(grant.tenant),
        context_of(request).settings.hostname,
        await agent_of(request, grant),
        _idempotency_key(request, asked),
        _fencing_token(request),
    )
    return await letter_of(request, grant, asked, terms, may_be_empty=may_be_empty)


async def letter_of(request: Request, grant: Grant, asked: SendRequest, terms: Terms, *, may_be_empty: bool) -> Letter:
    """The ticket of what was asked; a large message is made in a thread. Raises Faults, Refusal."""
    if asked.override_reason is not None:
        grant.need("operator")
    if stored.names_something(asked):
        context = context_of(request)
        limit = context.settings.max_message_bytes
        asked = await asyncio.to_thread(stored.filled, context.store, asked, grant, limit)
    reader = reader_of(request, grant)
    if asked.size > LARGE:
        return await asyncio.to_thread(letter.write, asked, grant, reader, terms, may_be_empty=may_be_empty)
    return letter.write(asked, grant, reader, terms, may_be_empty=may_be_empty)


def _idempotency_key(request: Request, asked: SendRequest) -> str | None:
    given = request.headers.getlist("idempotency-key")
    if not given:
        return None
    key = given[0].strip()
    if len(key) > 1 and key.startswith('"') and key.endswith('"'):
        key = key[1:-1]
    if len(given) > 1 or _KEY.fullmatch(key) is None:
        raise Faults([("Idempotency-Key", "must be one key of 1 to 255 visible ASCII characters")])
    if key != (asked.idempotency_key or asked.dedupe_key or key):
        raise Faults([("Idempotency-Key", "differs from the key in the body")])
    return key


def _fencing_token(request: Request) -> int | None:
    given = request.headers.getlist("x-fencing-token")
    if not given:
        return None
    token = int(given[0]) if len(given) == 1 and re.fullmatch(r"\d{1,19}", given[0], re.ASCII) else -1
    if not 0 <= token <= TOKEN_MAX:
        raise Faults([("X-Fencing-Token", "must be one whole number")])
    return token


async def _simulated(request: Request, made: Letter) -> Response:
    context, strict = context_of(request), wishes_of(request).strict
    receipt = await asyncio.to_thread(context.intake.preview, made.ticket)
    return _rendered(receipt, answers.simulated(receipt, made.sender), strict=strict)


def _answered(receipt: Receipt, *, strict: bool) -> Response:
    return _rendered(receipt, answer(receipt), strict=strict)


def _rendered(receipt: Receipt, body: dict[str, object], *, strict: bool) -> Response:
    """A send's answer: 200 for all that was decided; where the caller is strict, with the table's status."""
    headers = {"Idempotent-Replayed": "true"} if receipt.replayed else {}
    code = answers.strict_status(receipt.record) if strict else answers.OK
    if code <= answers.HELD:
        return reply(body, code, headers)
    if code in OVERLOADED:
        headers["Retry-After"] = str(_seconds_until(body.get("retryAt"), receipt.record.decision["at"]))
    said = {"error": body.get("reason", "blocked"), "message": body.get("detail", "refused")}
    return Response(dumped(said | body), code, headers, PROBLEM)


def _seconds_until(moment: object, since: str) -> int:
    """Whole seconds, at least one, from one time of the store to another."""
    if not isinstance(moment, str):
        return RETRY_SECONDS
    left = datetime.fromisoformat(moment) - datetime.fromisoformat(since)
    return max(1, math.ceil(left.total_seconds()))


@router.delete("/v1/agent/sends/{request_id}", openapi_extra=asks(OfTenant))
async def cancel_send(request: Request, request_id: str, grant: Sending) -> Response:
    """Stop what has not left: every recipient not yet permitted ends, a permitted one does not go a second time."""
    query(request, OfTenant, grant)
    if REQUEST.fullmatch(request_id) is None:
        raise unknown()

    def may(record: Record) -> bool:
        return grant.covers(record.mailbox)

    wish = forbid.Cancel(grant.tenant, request_id, may, grant.actor)
    try:
        stopped, record = await context_of(request).writer.do(Rank.FORBID, (grant.tenant,), forbid.cancel, wish)
    except NotFoundError:
        raise unknown() from None
    if stopped:
        return reply({"cancelled": True, "requestId": request_id})
    name, counts = status(record.deliveries)
    body: dict[str, object] = {"cancelled": False, "reason": "not_cancellable", "status": name, "counts": counts}
    if not wishes_of(request).strict:
        return reply(body | {"requestId": request_id})
    return problem(409, "not_cancellable", "some of it has left, or may have", body | {"requestId": request_id})


def unknown() -> Exception:
    """There is no such send for this caller."""
    return missing("send_request_not_found", "there is no such request")
