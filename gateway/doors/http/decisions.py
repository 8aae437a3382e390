"""What agents have asked for and only a person may do: list, look at, confirm, reject (`human` keeps it).

To confirm is to make the kept request oneself: it runs through this same application with the confirming key, so that every
check and every lock applies again, and its answer, which may hold a new key's secret, goes to who confirms and nowhere else.
"""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from gateway.core.errors import NotFoundError, StoreUnavailableError
from gateway.core.record import Document, instant
from gateway.doors.auth import Grant
from gateway.doors.context import Context
from gateway.doors.fields import Count, Shape, Words
from gateway.doors.http.described import PROBLEMS, asks, takes
from gateway.doors.http.human import ASKING, CONFIRMING, HUMAN, PATH
from gateway.doors.http.inlet import Needs, context_of, query, take
from gateway.doors.http.problems import problem, reply
from gateway.doors.inside import carry
from gateway.doors.refusal import Refusal, missing
from gateway.store import confirming, decisions
from gateway.store.decisions import Act, Decision, Wish
from gateway.store.tx import Tx
from gateway.store.writer import Rank

log = logging.getLogger(__name__)
router = APIRouter(tags=["decisions"], responses=PROBLEMS)
Asking = Annotated[Grant, Depends(Needs("read", "send"))]

ROWS_MAX = 500
SKIP_MAX = 1_000_000
REFUSED = 400
"""The lowest status of an answer that says no."""
FORBIDDEN = 403
CONFLICT = 409

Meaning = tuple[str, str, tuple[str, ...]]
"""What a refusal says that only a person can turn: kind, id, what it loosens."""
Noting = Callable[[Tx, Sequence[Act]], list[Decision | Exception]]


class DecisionsListed(Shape):
    """Which decisions are shown, newest first."""

    status: Literal["pending", "confirming", "confirmed", "rejected", "expired"] | None = Field(
        None, description="Only those; without it, all."
    )
    limit: Annotated[Count, Field(ge=1, le=ROWS_MAX)] = 100
    offset: Annotated[Count, Field(le=SKIP_MAX)] = 0


class DecisionAsked(Shape):
    """A look at one decision."""


class Verdict(Shape):
    """What a person decides."""

    decision: Literal["confirm", "reject"]
    reason: Words | None = Field(None, description="Why; who has asked sees it, and it goes into the log of events.")


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
    """Show the request that waits for a person, as it was made, what became of it, and why (`reason`)."""
    query(request, DecisionAsked, grant)

    def read(tx: Tx) -> Document:
        found = decisions.find(tx, grant.tenant, decision_id, _mine(grant))
        return _shown(found) | {"reason": decisions.why(tx, found)}

    if not decision_id.isprintable():
        raise _unknown()
    try:
        return reply(await context_of(request).read(grant.tenant, read))
    except NotFoundError:
        raise _unknown() from None


@router.post(PATH + "/{decision_id}", openapi_extra=takes(Verdict))
async def decide(request: Request, decision_id: str, grant: Asking) -> Response:
    """Confirm a request that waits (an operator's key) or reject it; the key that asked may take its own back (reject).

    To confirm makes the request with the confirming key, once: `result` is its answer. Where that says no, the decision waits
    on, and the answer is 409 `decision_not_carried_out` with the `result`. Where it means something else by now than what was
    shown, the answer is 409 `decision_changed`, and it waits on as what it is now.
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
    """Carry a decision out that nobody else can confirm from here on, and let it wait again where that fails.

    What is confirmed is what was shown: the one who asked asks once more, and must be refused for the same.
    """
    claimed = await context.writer.do(Rank.FORBID, (act.tenant,), confirming.claim, act)
    act = replace(act, claimed_at=claimed.decided_at)
    asker = await context.auth.of_key(act.tenant, claimed.wish.asked_by)
    if asker is None:
        return await _ended(context, act)
    status, body = await _made(request, claimed, asker)
    refused = _refused(status, body)
    if refused is not None and not _same(refused, claimed.wish):
        return await _differs(context, act, refused)
    if refused is not None:
        status, body = await _made(request, claimed)
    after = confirming.done if status < REFUSED else confirming.put_back
    found = await _noted(context, after, act) or claimed
    result = {"status": status, "body": body}
    said = {"decisionId": found.id, "decision": "confirm", "status": found.status, "result": result}
    if status < REFUSED:
        return reply(said)
    return problem(CONFLICT, "decision_not_carried_out", "what was asked for was refused; see its result", said)


async def _ended(context: Context, act: Act) -> Response:
    found = await context.writer.do(Rank.FORBID, (act.tenant,), confirming.drop, act)
    words = "the key that asked for this is revoked; nobody can confirm it any more"
    return problem(CONFLICT, "asking_key_revoked", words, {"decisionId": found.id, "status": found.status})


async def _differs(context: Context, act: Act, now: Meaning) -> Response:
    found = await context.writer.do(Rank.FORBID, (act.tenant,), confirming.put_back, replace(act, now=now))
    said = {"decisionId": found.id, "status": found.status, "kind": now[0], "id": now[1], "loosens": list(now[2])}
    words = "this would loosen something else now than what was shown; look at it again"
    return problem(CONFLICT, "decision_changed", words, said)


async def _noted(context: Context, after: Noting, act: Act) -> Decision | None:
    """Write down what became of a decision; `None` where that cannot be done."""
    try:
        return await context.writer.do(Rank.FORBID, (act.tenant,), after, act)
    except StoreUnavailableError:  # what was done is done: its answer, which may hold a key, must not be lost
        log.warning("what became of a decision could not be written down", extra={"decision": act.id})
        return None


def _refused(status: int, body: Any) -> Meaning | None:  # noqa: ANN401  (JSON)
    """What a refusal says that only a person can turn; `None` for every other answer."""
    if status != FORBIDDEN or body["error"] != HUMAN or "kind" not in body:
        return None
    return body["kind"], body["id"], tuple(body["loosens"])


def _same(now: Meaning, shown: Wish) -> bool:
    return (*now[:2], set(now[2])) == (shown.kind, shown.about, set(shown.loosens))


async def _made(request: Request, decision: Decision, asker: Grant | None = None) -> tuple[int, Any]:
    """Make the kept request in this process, as who confirms it, or as who asked for it; its status and its body."""
    wish, outer = decision.wish, request.scope
    kept = (b"host", b"authorization") if asker is None else (b"host",)
    headers = [one for one in outer["headers"] if one[0] in kept]
    members: dict[str, Any] = {CONFIRMING: decision.id} | ({} if asker is None else {ASKING: asker})
    return await carry(
        outer["app"],
        outer,
        wish.method,
        wish.path,
        query=wish.query,
        body=wish.body.encode(),
        headers=headers,
        **members,
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
