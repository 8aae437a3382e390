"""Adoption: a key invites a new agent, and whoever holds the invitation's token makes the agent's own key with it, once.

An invitation gives no more than the key that invites could give, and nothing that this key has lost when it is claimed.
"""

import asyncio
import re
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from gateway.coordination.register import AgentName, agent_name
from gateway.core.errors import NotFoundError
from gateway.core.record import Document, instant
from gateway.doors.auth import Grant, with_implied
from gateway.doors.fields import Name, Shape, Words
from gateway.doors.http.controls import for_all_mailboxes, person
from gateway.doors.http.described import PROBLEMS, asks, takes
from gateway.doors.http.human import meant
from gateway.doors.http.inlet import Needs, context_of, query, take, take_from_stranger
from gateway.doors.http.key_reach import BEYOND, LIMIT, boxes_of, scopes_of, unchanged, within
from gateway.doors.http.key_wishes import EACH, Boxes, PerMinute, Scope, Scoped, scope_clashes
from gateway.doors.http.problems import reply
from gateway.doors.refusal import HumanRefusal, Refusal, forbidden, missing
from gateway.store import invites
from gateway.store.invites import Claim, Invite, New
from gateway.store.keys import SCOPES, Key
from gateway.store.tx import Tx
from gateway.store.writer import Rank

router = APIRouter(tags=["adoption"], responses=PROBLEMS)
Managing = Annotated[Grant, Depends(Needs("manage"))]

KIND = "adopt-invite"
DAY = 1440
LONGEST = 43_200
"""Minutes that an invitation may last at most: thirty days."""
MINUTE = 60
CLAIM_MAX = 65_536
"""Bytes of a stranger's claim."""
NAME_MAX = 120
GONE = 410
TOKEN = re.compile(r"ga_inv_[A-Za-z0-9_-]{43}")


class InviteRequest(Shape):
    """An invitation to make: what the key of who claims it may do."""

    label: Words = Field(description="What the key is for; without agentName the agent's name is made of it.")
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=4, default_factory=lambda: ["read", "send"])]
    mailboxes: Boxes | None = Field(
        None, description="Ids or addresses; without it, all that the caller's own key has."
    )
    mailbox_scopes: Scoped | None = Field(None, description=EACH)
    scope_all_mailboxes: bool | None = None
    agent_name: AgentName | None = Field(
        None, description="The agent's name; where a key answers for one of this name, a number is put behind it."
    )
    requests_per_minute: PerMinute | None = Field(
        None, description="Requests that the key may make in a minute; without it, the caller's own key's limit."
    )
    expires_minutes: Annotated[int, Field(ge=1, le=LONGEST)] = Field(
        DAY, description="Minutes for which it can be claimed."
    )

    @classmethod
    def clashes(cls, given: dict[str, Any]) -> list[tuple[str, str]]:
        """All mailboxes, or some."""
        return scope_clashes(given)


class InvitesAsked(Shape):
    """A look at the invitations."""


class ClaimRequest(Shape):
    """What a new agent was given."""

    token: Name = Field(description="The invitation's token, ga_inv_...")


@router.post("/v1/agent/adopt/invite", openapi_extra=takes(InviteRequest))
async def invite_agent(request: Request, grant: Managing) -> Response:
    """Invite an agent within one's own scope; the token is in this answer and nowhere else.

    A key that is bound to an agent speaks for that agent alone: to invite another one is a person's decision, as is all that
    reaches beyond the key.
    """
    asked = await take(request, InviteRequest, grant)
    boxes, scopes = boxes_of(request, asked, grant), scopes_of(asked) or tuple(dict.fromkeys(asked.scopes))
    limit = asked.requests_per_minute or grant.per_minute
    meant(request, _meant(asked, scopes, boxes, limit))
    within(grant, with_implied(scopes), boxes, about=(KIND, "new"))
    if grant.per_minute is not None and (limit or 0) > grant.per_minute and not person(grant):
        raise HumanRefusal(BEYOND, kind=KIND, about="new", loosens=[LIMIT])
    if grant.agent is not None and not person(grant):
        raise HumanRefusal(BEYOND, kind=KIND, about="new", loosens=["agentName"])

    def may(maker: Key) -> None:
        unchanged(grant, maker)

    context = context_of(request)
    wish = New(
        grant.tenant,
        asked.label,
        scopes,
        boxes,
        asked.agent_name,
        limit,
        asked.expires_minutes * MINUTE,
        grant.key_id,
        grant.actor,
        may,
    )
    try:
        made, raw = await context.writer.do(Rank.FORBID, (grant.tenant,), invites.create, wish)
    except Refusal:
        context.auth.forget()
        raise
    return reply(_shown(made) | {"token": raw})


def _meant(asked: InviteRequest, scopes: tuple[str, ...], boxes: tuple[str, ...] | None, limit: int | None) -> Document:
    """The wish without what it leaves to the caller's own key: a person who confirms it has another one."""
    wish: Document = {"label": asked.label, "scopes": list(scopes), "expiresMinutes": asked.expires_minutes}
    wish |= {"scopeAllMailboxes": True} if boxes is None else {"mailboxes": list(boxes)}
    more = {"agentName": asked.agent_name, "requestsPerMinute": limit}
    return wish | {name: value for name, value in more.items() if value is not None}


def _shown(invite: Invite) -> Document:
    """An invitation without its token."""
    return {
        "id": invite.id,
        "tenantId": invite.tenant,
        "tokenPrefix": invite.prefix,
        "label": invite.label,
        "status": invite.status,
        "scopes": sorted(invite.scopes, key=SCOPES.index),
        "scopeAllMailboxes": invite.mailboxes is None,
        "mailboxes": list(invite.mailboxes or ()),
        "agentName": invite.agent,
        "requestsPerMinute": invite.per_minute,
        "createdByKeyId": invite.created_by,
        "createdAt": instant(invite.created_at),
        "expiresAt": instant(invite.expires_at),
    }


@router.get("/v1/agent/adopt/pending", openapi_extra=asks(InvitesAsked))
async def list_invites(request: Request, grant: Managing) -> Response:
    """List the invitations that can still be claimed, newest first."""
    query(request, InvitesAsked, grant)
    for_all_mailboxes(grant)

    def read(tx: Tx) -> list[Invite]:
        return invites.pending(tx, grant.tenant)

    return reply([_shown(one) for one in await context_of(request).read(grant.tenant, read)])


@router.delete("/v1/agent/adopt/{invite_id}", openapi_extra=asks(InvitesAsked))
async def revoke_invite(request: Request, invite_id: str, grant: Managing) -> Response:
    """Take an invitation back that nobody has claimed; a claimed one is ended by revoking its key."""
    query(request, InvitesAsked, grant)
    for_all_mailboxes(grant)
    if not invite_id.isprintable():
        raise _unknown()
    wish = (grant.tenant, invite_id, grant.actor)
    try:
        await context_of(request).writer.do(Rank.FORBID, (grant.tenant,), invites.revoke, wish)
    except NotFoundError:
        raise _unknown() from None
    return reply({"revoked": True, "id": invite_id})


@router.post("/v1/adopt/claim", openapi_extra=takes(ClaimRequest))
async def claim_invite(request: Request) -> Response:
    """Make the key of an invitation, once: it is bound to an agent of its own, and is in this answer and nowhere else.

    A wrong token counts like a wrong key of the address that it came from.
    """
    context = context_of(request)
    address = None if request.client is None else request.client.host
    context.auth.limits.refuse_guesses(address)
    asked = await take_from_stranger(request, ClaimRequest, CLAIM_MAX)
    found = await asyncio.to_thread(context.store.read, lambda tx: invites.find_by_token(tx, asked.token))
    known = found is not None and asked.tenant_id in (None, found.tenant)
    if found is None or not known or TOKEN.fullmatch(asked.token) is None:
        context.auth.limits.note_guess(address)
        raise _unknown()
    if found.status == invites.EXPIRED:
        raise Refusal(GONE, "invite_expired", "this invitation has expired; ask for another one")
    wish = Claim(found.tenant, found.id, _fit(found.label), _still_there)
    try:
        invite, key, raw, agent = await context.writer.do(Rank.FORBID, (found.tenant,), invites.claim, wish)
    except NotFoundError:
        raise _unknown() from None
    said = {"apiKey": raw, "tenantId": found.tenant, "keyId": key.id, "label": invite.label, "agentId": agent.id}
    return reply(said | {"agentName": agent.name, "scopes": sorted(key.scopes, key=SCOPES.index)})


def _still_there(maker: Key, invite: Invite) -> None:
    """Refuse what the key that invited could not give any more. Raises Refusal."""
    reach = with_implied(maker.scopes)
    boxes = maker.mailboxes is None or (invite.mailboxes is not None and set(invite.mailboxes) <= set(maker.mailboxes))
    bound = maker.agent is not None and "operator" not in maker.scopes  # such a key invites nobody any more
    if maker.status != "active" or bound or not with_implied(invite.scopes) <= reach or not boxes:
        raise forbidden("invite_beyond_key", "the key that has invited may not give this any more")


def _fit(label: str) -> str:
    """A name for an agent, made of a label."""
    name = " ".join(label.split())[:NAME_MAX].strip() or "agent"
    try:
        return agent_name(name)
    except ValueError:
        return f"agent {name}"


def _unknown() -> Refusal:
    return missing("invite_not_found", "there is no such invitation")
