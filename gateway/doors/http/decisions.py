"""What agents have asked for and only a person may do: list, look at, confirm, reject (`human` keeps it).

To confirm is to make the kept request oneself: it runs through this same application with the confirming key, so that every
check and every lock applies again, and its answer, which may hold a new key's secret, goes to who confirms and nowhere else.
"""

import json
import logging
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from gateway.core.errors import NotFoundError, StoreUnavailableError
from gateway.core.record import Document, instant
from gateway.doors.auth import Grant
from gateway.doors.context import Context
from gateway.doors.fields import Count, Shape, Words
from gateway.doors.http.described import PROBLEMS, asks, takes
from gateway.doors.http.human import CONFIRMING, PATH
from gateway.doors.http.inlet import Needs, context_of, query, take
from gateway.doors.http.problems import problem, reply
from gateway.doors.inside import carry
from gateway.doors.refusal import Refusal, missing
from gateway.store import decisions
from gateway.store.decisions import Act, Decision
from gateway.store.tx import Tx
from gateway.store.writer import Rank

log = logging.getLogger(__name__)
router = APIRouter(tags=["decisions"], responses=PROBLEMS)
Asking = Annotated[Grant, Depends(Needs("read", "send"))]

ROWS_MAX = 500
SKIP_MAX = 1_000_000
REFUSED = 400
"""The lowest status of an answer that says no."""
CONFLICT = 409


class DecisionsListed(Shape):
    """Which decisions are shown, newest first."""

    status: Literal["pending", "confirmed", "rejected", "expired"] | None = Field(
        None, description="Only those; without it, all."
    )
    limit: Annotated[Count, Field(ge=1, le=ROWS_MAX)] = 100
    offset: Annotated[Count, Field(le=SKIP_MAX)] = 0


class DecisionAsked(Shape):
    """A look at one decision."""


class Verdict(Shape):
    """What a person decides."""

    decision: Literal["confirm", "reject"]
    reason: Words | None = Field(None, description="Why; it goes into the log of events.")


@router.get(PATH, openapi_extra=asks(DecisionsListed))
async def list_decisions(request: Request, grant: Asking) -> Response:
    """List what waits or has waited for a person, newest first; a key that is no operator's sees what it has asked for."""
    asked = query(request, DecisionsListed, grant)

    def read(tx: Tx) -> list[Decision]:
        some: dict[str, Any] = {"status": asked.status, "limit": asked.limit, "offset": asked.offset}
        return decisions.listed(tx, grant.tenant, mine=_mine(grant), **some)

    return reply([_shown(one) for one in await context_of(request).read(grant.tenant, read)])


@router.get(PATH + "/{decision_id}", openapi_extra=asks(DecisionAsked))
async def show_decision(request: Request, decision_id: str, grant: Asking) -> Response:
    """Show the request that waits for a person, as it was made, and what became of it."""
    query(request, DecisionAsked, grant)

    def read(tx: Tx) -> Decision:
        return decisions.find(tx, grant.tenant, decision_id, _mine(grant))

    if not decision_id.isprintable():
        raise _unknown()
    try:
        return reply(_shown(await context_of(request).read(grant.tenant, read)))
    except NotFoundError:
        raise _unknown() from None


@router.post(PATH + "/{decision_id}", openapi_extra=takes(Verdict))
async def decide(request: Request, decision_id: str, grant: Asking) -> Response:
    """Confirm a request that waits (an operator's key) or reject it; the key that asked may take its own back (reject).

    To confirm makes the request with the confirming key, once: `result` is its answer. Where that says no, the decision waits
    on, and the answer is 409 `decision_not_carried_out` with the `result`.
    """
    asked = await take(request, Verdict, grant)
    if not decision_id.isprintable():
        raise _unknown()
    context, act = context_of(request), Act(grant.tenant, decision_id, grant.actor, _mine(grant), asked.reason)
    try:
        if asked.decision == "confirm":
            grant.need("operator")
            return await _confirmed(request, context, act)
        found = await context.writer.do(Rank.FORBID, (grant.tenant,), decisions.reject, act)
    except NotFoundError:
        raise _unknown() from None
    return reply({"decisionId": found.id, "decision": asked.decision, "status": found.status})


async def _confirmed(request: Request, context: Context, act: Act) -> Response:
    """Carry a decision out that nobody else can confirm any more from here on, and let it wait again where that fails."""
    claimed = await context.writer.do(Rank.FORBID, (act.tenant,), decisions.claim, act)
    status, body = await _carried_out(request, claimed)
    after = decisions.done if status < REFUSED else decisions.put_back
    found = claimed
    try:
        found = await context.writer.do(Rank.FORBID, (act.tenant,), after, act)
    except StoreUnavailableError:  # what was done is done: its answer, which may hold a key, must not be lost
        log.warning("what became of a decision could not be written down", extra={"decision": act.id, "status": status})
    result = {"status": status, "body": body}
    said = {"decisionId": found.id, "decision": "confirm", "status": found.status, "result": result}
    if status < REFUSED:
        return reply(said)
    return problem(CONFLICT, "decision_not_carried_out", "what was asked for was refused; see its result", said)


async def _carried_out(request: Request, decision: Decision) -> tuple[int, object]:
    """Make the kept request in this process, as who confirms it; its status and its body."""
    wish, outer = decision.wish, request.scope
    headers = [one for one in outer["headers"] if one[0] in (b"host", b"authorization")]
    return await carry(
        outer["app"],
        outer,
        wish.method,
        wish.path,
        query=wish.query,
        body=wish.body.encode(),
        headers=headers,
        **{CONFIRMING: decision.id},
    )


def _mine(grant: Grant) -> str | None:
    """The key whose wishes alone the caller may see; `None` for a person, who sees all."""
    return None if "operator" in grant.scopes else grant.key_id


def _unknown() -> Refusal:
    return missing("decision_not_found", "there is no such decision")


def _shown(decision: Decision) -> Document:
    wish = decision.wish
    return {
        "id": decision.id,
        "tenantId": wish.tenant,
        "status": decision.status,
        "kind": wish.kind,
        "about": wish.about,
        "loosens": list(wish.loosens),
        "request": {
            "method": wish.method,
            "path": wish.path,
            "query": wish.query,
            "body": json.loads(wish.body) if wish.body else None,
        },
        "askedByKeyId": wish.asked_by,
        "askedBy": wish.actor,
        "createdAt": instant(decision.created_at),
        "expiresAt": instant(decision.expires_at),
        "decidedAt": instant(decision.decided_at),
        "decidedBy": decision.decided_by,
    }
