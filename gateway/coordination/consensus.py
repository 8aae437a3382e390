"""Votes among agents: ask for them, cast one, look at one or at all. The rule is in core/consensus (seed: consensus voting)."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field, StringConstraints

from gateway.core.consensus import Status, Vote, threshold
from gateway.core.errors import NotFoundError
from gateway.core.record import Document, instant
from gateway.doors.auth import Grant
from gateway.doors.fields import Count, Name, Person, Shape, Words
from gateway.doors.http.described import PROBLEMS, asks, takes
from gateway.doors.http.inlet import Needs, agent_of, context_of, query, take
from gateway.doors.http.problems import reply
from gateway.doors.refusal import Faults, Refusal, missing
from gateway.store import consensus, voting
from gateway.store.consensus import LATEST, Cast, Consensus
from gateway.store.tx import Tx
from gateway.store.voting import Ballot, New
from gateway.store.writer import Rank

router = APIRouter(tags=["coordination"], responses=PROBLEMS)
Asking = Annotated[Grant, Depends(Needs("read", "send"))]
Writing = Annotated[Grant, Depends(Needs("send"))]

FIVE_MINUTES = 5.0
WEEK = 7 * 24 * 60
"""Minutes for which votes are taken at most."""
ROWS_MAX = 200
"""Consensuses in one page."""
MINUTE = 60

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CURSOR = re.compile(rf"(\d{{1,19}})\.({_ID.pattern})", re.ASCII)
_NEXT = {
    Status.APPROVED: "act; the agents agreed",
    Status.REJECTED: "stop; the agents decided against it",
    Status.EXPIRED: "stop; nothing was decided in time",
}


class Proposal(Shape):
    """What the agents are to vote on."""

    contact_email: Person = Field(description="Whom the action is about.")
    reason: Words = Field(description="Why it is proposed.")
    action: Words | None = Field(None, description="What is proposed; needed here or as proposedAction.")
    proposed_action: Words | None = Field(None, description="The same as action.")
    requesting_agent_id: Name | None = Field(None, description="The agent that asks; a bound key's own without it.")
    proposer_agent: Name | None = Field(None, description="The same by name.")
    timeout_minutes: Annotated[float, Field(gt=0, le=WEEK, allow_inf_nan=False)] = Field(
        FIVE_MINUTES, description="How long votes are taken, in minutes; fractions are allowed."
    )

    @classmethod
    def clashes(cls, given: dict[str, Any]) -> list[tuple[str, str]]:
        """The action has two names and one value."""
        action, alias = given.get("action"), given.get("proposedAction")
        if action is None and alias is None:
            return [("action", "is required")]
        return [("proposedAction", "differs from action")] if None not in (action, alias) and action != alias else []


class Voice(Shape):
    """A vote."""

    vote: Literal["approve", "reject"] = Field(description="For or against it.")
    agent_id: Name | None = Field(None, description="The agent that votes; a bound key's own without it.")
    agent_name: Name | None = Field(None, description="The same by name.")
    reason: Words | None = Field(None, description="Why the agent votes so.")

    @classmethod
    def clashes(cls, given: dict[str, Any]) -> list[tuple[str, str]]:
        """Another word is no vote. Raises Refusal 400, as the seed documents it."""
        if "vote" in given and given["vote"] not in [one.value for one in Vote]:
            words = "must be approve or reject"
            errors = [{"field": "vote", "message": words}]
            raise Refusal(400, "invalid_request", f"vote {words}", errors=errors)
        return []


class Listed(Shape):
    """Which of them are shown."""

    status: Literal["pending", "approved", "rejected", "expired"] | None = Field(None, description="How it stands now.")
    contact_email: Person | None = Field(None, description="Whom the action is about.")
    limit: Annotated[Count, Field(ge=1, le=ROWS_MAX)] = 50
    cursor: Annotated[str, StringConstraints(max_length=100)] | None = Field(
        None, description="The `nextCursor` of the page before, with the same filters."
    )


class One(Shape):
    """Whose it is."""


@router.post("/v1/agent/coordination/consensus", openapi_extra=takes(Proposal))
async def create_consensus(request: Request, grant: Writing) -> Response:
    """Ask the other agents to vote; more than half of those that are active decide, until the time is over."""
    asked = await take(request, Proposal, grant)
    agent = await _speaker(request, grant, (asked.requesting_agent_id, asked.proposer_agent), "proposerAgent")
    wish = New(
        grant.tenant,
        agent,
        asked.action or asked.proposed_action or "",
        asked.contact_email.key,
        asked.contact_email.spec,
        asked.reason,
        asked.timeout_minutes * MINUTE,
    )
    made = await context_of(request).writer.do(Rank.FORBID, (grant.tenant,), voting.create, wish)
    return reply(_shown(made, grant, agent))


async def _speaker(request: Request, grant: Grant, named: Sequence[str | None], field: str) -> str:
    """The agent as which a caller speaks. Raises Refusal, Faults where there is none."""
    agent = await agent_of(request, grant, [who for who in named if who is not None])
    if agent is None:
        raise Faults([(field, f"an agent is needed: {field}, its id, or a key that is bound to one")])
    return agent


@router.get("/v1/agent/coordination/consensus", openapi_extra=asks(Listed))
async def list_consensus(request: Request, grant: Asking) -> Response:
    """List what was asked for votes, newest first, in pages of `items` with `nextCursor` (null on the last one)."""
    asked = query(request, Listed, grant)
    agent = await agent_of(request, grant)
    contact = None if asked.contact_email is None else asked.contact_email.key
    after = None if asked.cursor is None else _place(asked.cursor)

    def read(tx: Tx) -> tuple[list[Consensus], tuple[int, str] | None]:
        return consensus.page(tx, grant.tenant, asked.status, contact, after=after, limit=asked.limit)

    found, place = await context_of(request).read(grant.tenant, read)
    following = None if place is None else f"{place[0]}.{place[1]}"
    return reply({"items": [_shown(one, grant, agent) for one in found], "nextCursor": following})


def _place(cursor: str) -> tuple[int, str]:
    """Where a cursor points to. Raises Faults."""
    parts = _CURSOR.fullmatch(cursor)
    if parts is None or int(parts[1]) >= LATEST:
        raise Faults([("cursor", "is not one that a page gave")])
    return int(parts[1]), parts[2]


@router.get("/v1/agent/coordination/consensus/{consensus_id}", openapi_extra=asks(One))
async def show_consensus(request: Request, consensus_id: str, grant: Asking) -> Response:
    """Show how a vote stands, how many have voted how, and what to do: vote, wait, act or stop."""
    query(request, One, grant)
    agent = await agent_of(request, grant)
    which = _known(consensus_id)

    def read(tx: Tx) -> Consensus:
        return consensus.find(tx, grant.tenant, which)

    try:
        return reply(_shown(await context_of(request).read(grant.tenant, read), grant, agent))
    except NotFoundError:
        raise _missing() from None


@router.get("/v1/agent/coordination/consensus/{consensus_id}/votes", openapi_extra=asks(One))
async def list_votes(request: Request, consensus_id: str, grant: Asking) -> Response:
    """List the votes that stand, oldest first; an agent has one."""
    query(request, One, grant)
    which = _known(consensus_id)

    def read(tx: Tx) -> list[Cast]:
        return consensus.votes_on(tx, grant.tenant, which)

    try:
        return reply([_vote(one) for one in await context_of(request).read(grant.tenant, read)])
    except NotFoundError:
        raise _missing() from None


@router.post("/v1/agent/coordination/consensus/{consensus_id}/vote", openapi_extra=takes(Voice))
async def cast_vote(request: Request, consensus_id: str, grant: Writing) -> Response:
    """Vote, in place of the agent's earlier vote; 409 `consensus_closed` where it was decided or its time is over."""
    asked = await take(request, Voice, grant)
    agent = await _speaker(request, grant, (asked.agent_id, asked.agent_name), "agentName")
    wish = Ballot(grant.tenant, _known(consensus_id), agent, Vote(asked.vote), asked.reason)
    try:
        done = await context_of(request).writer.do(Rank.FORBID, (grant.tenant,), voting.vote, wish)
    except NotFoundError:
        raise _missing() from None
    return reply(_vote(done) | {"consensusStatus": done.status.value})


def _known(consensus_id: str) -> str:
    """An id as all of them look. Raises Refusal 404."""
    if _ID.fullmatch(consensus_id) is None:
        raise _missing()
    return consensus_id


def _missing() -> Refusal:
    return missing("consensus_not_found", "there is no such consensus request")


def _shown(found: Consensus, grant: Grant, agent: str | None) -> Document:
    """A consensus on the wire of Molted's public API, with the votes counted and what `agent` is to do."""
    body: Document = {
        "id": found.id,
        "tenantId": grant.tenant,
        "requestingAgentId": found.requested_by,
        "action": found.action,
        "contactEmail": found.address,
        "reason": found.reason,
        "status": found.status.value,
        "timeoutAt": instant(found.timeout_at),
        "createdAt": instant(found.created_at),
        "approve": found.count(Vote.APPROVE),
        "reject": found.count(Vote.REJECT),
    }
    if found.decided_at is not None:
        body["decidedAt"] = instant(found.decided_at)
    if found.status is Status.PENDING:
        body |= {"activeAgents": found.active, "threshold": threshold(found.active)}
        body["nextAction"] = "wait for the votes" if agent in found.voters else "vote: approve or reject"
    else:
        body["nextAction"] = _NEXT[found.status]
    return body


def _vote(cast: Cast) -> Document:
    return {
        "id": cast.id,
        "consensusRequestId": cast.consensus,
        "agentId": cast.agent,
        "vote": cast.vote.value,
        "reason": cast.reason,
        "createdAt": instant(cast.created_at),
    }
