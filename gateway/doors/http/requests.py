"""What became of a send: its record, its whole history, and a person's decision about one that waits for it."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from gateway.core.record import Document, Record, instant
from gateway.core.status import delivery_status, status, trace
from gateway.doors import answers
from gateway.doors.auth import Grant
from gateway.doors.fields import Shape, Words
from gateway.doors.http.described import PROBLEMS, asks, takes
from gateway.doors.http.inlet import Needs, OfTenant, context_of, query, take
from gateway.doors.http.problems import reply
from gateway.doors.http.sends import REQUEST, unknown
from gateway.store import events, records
from gateway.store.clock import from_us, maybe_time
from gateway.store.tx import Tx
from gateway.store.waiting import Resolve

router = APIRouter(tags=["requests"], responses=PROBLEMS)
Asking = Annotated[Grant, Depends(Needs("read", "send"))]
Reading = Annotated[Grant, Depends(Needs("read"))]
Deciding = Annotated[Grant, Depends(Needs("operator"))]


class Decision(Shape):
    """What a person decides about a send that is unknown (retry, assume_sent, cancel) or held (approve, reject)."""

    unsupported: ClassVar = frozenset({"note"})

    decision: Literal["retry", "assume_sent", "cancel", "approve", "reject"]
    reason: Words | None = Field(None, description="Words for the audit.")


def visible(found: Record | None, grant: Grant) -> Record:
    """The record, where this caller may know of it. Raises Refusal 404."""
    if found is None or not grant.covers(found.mailbox):
        raise unknown()
    return found


def _by_id(tx: Tx, grant: Grant, request_id: str) -> Record:
    if REQUEST.fullmatch(request_id) is None:
        raise unknown()
    return visible(records.find(tx, grant.tenant, [request_id]).get(request_id), grant)


@router.get("/v1/agent/requests/{request_id}", openapi_extra=asks(OfTenant))
async def show_request(request: Request, request_id: str, grant: Asking) -> Response:
    """Tell where a send stands: its status, each recipient's state and reply, the last decision with its findings."""
    query(request, OfTenant, grant)
    return reply(answers.stored(await context_of(request).read(grant.tenant, lambda tx: _by_id(tx, grant, request_id))))


@router.post("/v1/agent/requests/{request_id}/resolve", openapi_extra=takes(Decision))
async def resolve_request(request: Request, request_id: str, grant: Deciding) -> Response:
    """Decide about a send that waits for a person; of several at once the first decides, the others are told so (409)."""
    asked = await take(request, Decision, grant)
    context = context_of(request)
    await context.read(grant.tenant, lambda tx: _by_id(tx, grant, request_id))
    wish = Resolve(grant.tenant, request_id, asked.decision, grant.actor, asked.reason or "")
    intake = context.intake
    record = await (intake.approve(wish) if asked.decision == "approve" else intake.resolve(wish))
    return reply(answers.stored(record) | {"decision": asked.decision})


@router.get("/v1/ops/trace/{request_id}", openapi_extra=asks(OfTenant))
async def trace_request(request: Request, request_id: str, grant: Reading) -> Response:
    """Tell all that was decided about a send, all attempts, and all that happened, oldest first."""
    query(request, OfTenant, grant)

    def history(tx: Tx) -> Document:
        record = _by_id(tx, grant, request_id)
        return _history(
            record,
            records.decisions_of(tx, grant.tenant, request_id),
            records.attempts_of(tx, grant.tenant, request_id),
            events.of_send(tx, grant.tenant, request_id),
        )

    return reply(await context_of(request).read(grant.tenant, history))


def _history(
    record: Record, decisions: Sequence[Any], attempts: Sequence[Any], happened: Sequence[Document]
) -> Document:
    """The trace on the wire of Molted's public API, and beside it everything that the store knows."""
    name, _ = status(record.deliveries)
    said = trace(record)
    return {
        "request": answers.stored(record)
        | {
            "id": record.id,
            "recipientEmail": record.deliveries[0].address if record.deliveries else None,
            "status": name,
            "deliveryStatus": delivery_status(name),
            "idempotencyKey": record.idempotency_key,
            "sendReason": record.send_reason,
            "door": record.door,
            "keyId": record.key_id,
            "tokens": record.tokens,
        },
        "policyDecision": {**said["decision"], "auditEvents": said["auditEvents"]},
        "deliveryEvents": [
            {"eventType": e["name"], "occurredAt": instant(from_us(e["at_us"]))}
            for e in happened
            if e["name"].startswith("delivery.")
        ],
        "decisions": [
            {"no": d["no"], "moment": d["moment"], "at": instant(from_us(d["at_us"])), **json.loads(d["document"])}
            for d in decisions
        ],
        "attempts": [_attempt(a) for a in attempts],
        "events": [_event(e) for e in happened],
    }


def _attempt(row: Any) -> Document:  # noqa: ANN401  (a row)
    return {
        "recipient": row["address"],
        "claimNumber": row["claim_no"],
        "startedAt": instant(from_us(row["started_us"])),
        "permittedAt": instant(maybe_time(row["permitted_us"])),
        "endedAt": instant(maybe_time(row["ended_us"])),
        "outcome": row["outcome"] or None,
        "code": row["code"] or None,
        "enhanced": row["enhanced"] or None,
        "text": row["text"] or None,
    }


def _event(happened: Document) -> Document:
    return {
        "id": happened["id"],
        "name": happened["name"],
        "at": instant(from_us(happened["at_us"])),
        "contact": happened["contact"] or None,
        "actor": happened["actor"] or None,
        "data": happened["data"],
    }
