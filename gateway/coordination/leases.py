"""Leases on contacts: take, keep, give back, list. The store's clock alone decides what lives (SEMANTICS 6)."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from gateway.coordination.queue import Queue, Wait
from gateway.core.record import Document, instant
from gateway.core.verdict import Mode
from gateway.doors.auth import FREE_AGENT, Grant, known_agent, unauthorized
from gateway.doors.context import Context
from gateway.doors.fields import Name, Person, Shape, Token, TokenText, Words
from gateway.doors.http.described import PROBLEMS, asks, takes
from gateway.doors.http.guard import LEAVE
from gateway.doors.http.inlet import Needs, agent_of, context_of, query, take
from gateway.doors.http.problems import problem, reply
from gateway.doors.http.sends import WAIT_MAX, wishes_of
from gateway.doors.refusal import Faults, forbidden
from gateway.settings import Settings
from gateway.store import leases
from gateway.store.contacts import Acquire, AnothersLeaseError, Held, Lease, Release, Released, Renew, Wish
from gateway.store.tx import Tx
from gateway.store.writer import Rank

router = APIRouter(tags=["coordination"], responses=PROBLEMS)
Asking = Annotated[Grant, Depends(Needs("read", "send"))]
Writing = Annotated[Grant, Depends(Needs("send"))]

HALF_AN_HOUR = 30.0
CONFLICT = 409
OWN_LEASE = "name a lease of the key's own agent: only its holder keeps it or gives it back"
NOWHERE = "nowhere"
"""An id that no lease has."""

Minutes = Annotated[float, Field(ge=0.001, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, le=WAIT_MAX, allow_inf_nan=False)]
_LEASE = re.compile(r"[A-Za-z0-9-]{1,64}")


class Wanted(Shape):
    """A contact to take."""

    contact_email: Person
    agent_id: Name | None = Field(None, description="The agent that takes it; a bound key's own without it.")
    agent_name: Name | None = Field(None, description="The same by name.")
    intent: Name = "general"
    duration_minutes: Minutes = HALF_AN_HOUR
    override_reason: Words | None = Field(None, description="An operator's reason to take it over at once.")
    wait_seconds: Seconds = Field(
        default=0.0, description="How long to wait where another agent has it; at each process in the order of arrival."
    )


class Kept(Shape):
    """A lease to keep."""

    fencing_token: Token | None = Field(None, description="The lease's token: it must be the newest.")
    duration_minutes: Minutes = HALF_AN_HOUR
    agent_id: Name | None = None
    agent_name: Name | None = None


class Sought(Shape):
    """Which leases are listed."""

    contact_email: Person | None = Field(None, description="Only the one on this contact.")
    agent: Name | None = Field(None, description="Only those of this agent, by id or name.")


class Given(Shape):
    """A lease to give back."""

    fencing_token: TokenText | None = Field(
        None, description="The lease's token: an old one is told apart from a lapsed one."
    )


@router.post("/v1/agent/coordination/lease", openapi_extra=takes(Wanted))
async def acquire_lease(request: Request, grant: Writing) -> Response:
    """Take a contact for an agent, or extend the lease that it has. Where another has it: 200 with `conflict`; strict 409."""
    asked = await take(request, Wanted, grant)
    if asked.override_reason is not None:
        grant.need("operator")
    named = [who for who in (asked.agent_id, asked.agent_name) if who is not None]
    agent = await agent_of(request, grant, named, operator=asked.override_reason is not None)
    if agent is None:
        raise Faults([("agentName", "an agent is needed: agentName, agentId, or a key that is bound to one")])
    context = context_of(request)
    wish = Acquire(
        grant.tenant,
        agent,
        asked.contact_email.key,
        asked.contact_email.spec,
        asked.intent,
        _seconds(asked.duration_minutes, context.settings),
        operator_reason=asked.override_reason,
        **_lease_policy(context.settings),
    )

    waited = False

    async def attempt(wish: Acquire) -> Lease | Held | None:
        if waited:
            await _still(request, grant, wish)
        answer: Lease | Held | None = await _do(context, grant, wish)
        return answer

    def begins() -> None:
        nonlocal waited
        waited = True
        request.scope.get(LEAVE, lambda: None)()  # who waits is none of the requests that are under way

    wait = Wait(asked.wait_seconds, grant.key_id, begins, request.is_disconnected)
    got = await context.part(Queue).acquire(wish, wait, attempt)
    if isinstance(got, Lease):
        return reply(_shown(got, grant) | ({"withdrew": list(got.withdrew)} if got.withdrew else {}))
    body = _conflict(got)
    if wishes_of(request).strict:
        return problem(CONFLICT, "lease_conflict", "another agent has this contact", body)
    return reply(body)


async def _still(request: Request, grant: Grant, wish: Acquire) -> None:
    """Look again at the key of somebody who has waited: much can change in half a minute. Raises Refusal."""
    now = await context_of(request).auth.of_key(grant.tenant, grant.key_id)
    if now is None:
        raise unauthorized()
    now.need("send")
    await agent_of(request, now, [wish.agent])


def _lease_policy(settings: Settings) -> dict[str, Any]:
    """What the lease policy's own section says: how long mail in flight closes a contact, and whether leases stop mail."""
    said = {**settings.policy_defaults()["lease"], **settings.policies.get("lease", {})}
    return {"flight_max": float(str(said["flight_max"])), "enforced": said.get("mode", Mode.ENFORCE) == Mode.ENFORCE}


def _seconds(minutes: float, settings: Settings) -> float:
    if minutes > settings.lease_max_minutes:
        raise Faults([("durationMinutes", f"must be at most {settings.lease_max_minutes:g}")])
    return minutes * 60


def _conflict(held: Held) -> Document:
    holder: Document = {
        "agentId": held.agent,
        "agentName": held.agent_name,
        "expiresAt": instant(held.until),
        "kind": held.kind,
    }
    if held.request is not None:
        holder["requestId"] = held.request
    body: Document = {"conflict": True, "reason": "lease_conflict", "leaseHolder": holder}
    body |= {"retryAt": instant(held.retry_at), "nextAction": "stop; wait for release or hand off"}
    return body | ({"estimate": True} if held.kind == "send" else {})


def _shown(lease: Lease, grant: Grant) -> Document:
    """A lease on the wire of Molted's public API, with its token."""
    return {
        "id": lease.id,
        "tenantId": grant.tenant,
        "agentId": lease.agent,
        "agentName": lease.agent_name,
        "contactEmail": lease.address,
        "intent": lease.intent,
        "fencingToken": lease.token,
        "expiresAt": instant(lease.expires_at),
        "createdAt": instant(lease.acquired_at),
    }


@router.put("/v1/agent/coordination/lease/{lease_id}", openapi_extra=takes(Kept))
async def renew_lease(request: Request, lease_id: str, grant: Writing) -> Response:
    """Keep a lease that lives, from now on for the duration; `renewed: false` says why not (strict: 409)."""
    asked = await take(request, Kept, grant)
    context = context_of(request)
    named = [who for who in (asked.agent_id, asked.agent_name) if who is not None]
    agent = await agent_of(request, grant, named)
    seconds = _seconds(asked.duration_minutes, context.settings)
    bound = grant.agent is not None
    wish = Renew(grant.tenant, agent, _known(lease_id), asked.fencing_token, seconds, bound)
    done: datetime | str = await _do(context, grant, wish)
    if not isinstance(done, str):
        return reply({"renewed": True, "expiresAt": instant(done)})
    then = next(one.next for one in context.reasons if one.slug == done)
    body = {"renewed": False, "reason": done, "nextAction": then}
    if wishes_of(request).strict:
        return problem(CONFLICT, done, f"the lease was not renewed; {then}", body)
    return reply(body)


@router.delete("/v1/agent/coordination/lease/{lease_id}", openapi_extra=asks(Given))
async def release_lease(request: Request, lease_id: str, grant: Writing) -> Response:
    """Give a contact back; `inFlight` names mail of the holder's that is still on its way and closes it a little longer."""
    asked = query(request, Given, grant)
    context = context_of(request)
    agent = await agent_of(request, grant)
    wish = Release(grant.tenant, agent, _known(lease_id), asked.fencing_token, grant.agent is not None)
    done: Released = await _do(context, grant, wish)
    if done.released:
        context.part(Queue).freed(grant.tenant, done.contact)
    if not done.released:
        return reply({"released": False, "reason": done.reason})
    return reply({"released": True} | ({"inFlight": list(done.in_flight)} if done.in_flight else {}))


def _known(lease_id: str) -> str:
    """The lease's id, or one that no lease has where it cannot be one."""
    return lease_id if _LEASE.fullmatch(lease_id) else NOWHERE


async def _do(context: Context, grant: Grant, wish: Wish) -> Any:  # noqa: ANN401  (its own answer)
    """Do what is wished. A bound key has only its own leases, another those of agents that no key is bound to.

    Raises Refusal.
    """
    try:
        return await context.writer.do(Rank.LEASE, (grant.tenant,), leases.serve, wish)
    except AnothersLeaseError as error:
        if grant.agent is not None:
            raise forbidden(
                "agent_mismatch", "another agent has this lease", keyAgentId=grant.agent, nextAction=OWN_LEASE
            ) from None
        raise forbidden(
            "agent_bound_to_key",
            "another agent has this lease, and acts by its own key alone",
            agentId=error.agent,
            nextAction=FREE_AGENT,
        ) from None


@router.get("/v1/agent/coordination/leases", openapi_extra=asks(Sought))
async def list_leases(request: Request, grant: Asking) -> Response:
    """List the tenant's leases that live, newest first; or those on one contact, or of one agent."""
    asked = query(request, Sought, grant)

    def read(tx: Tx) -> Sequence[Lease]:
        agent = None if asked.agent is None else known_agent(tx, grant.tenant, asked.agent).id
        return leases.living(tx, grant.tenant, None if asked.contact_email is None else asked.contact_email.key, agent)

    return reply([_shown(lease, grant) for lease in await context_of(request).read(grant.tenant, read)])
