"""Keys over HTTP: who am I, make, list, change, revoke. Nobody gives away more than their own key can do."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request, Response

from gateway.core.errors import ConflictError, GatewayError, NotFoundError
from gateway.core.record import Document, instant
from gateway.doors.answers import of_key
from gateway.doors.auth import Grant, with_implied
from gateway.doors.fields import Shape
from gateway.doors.http.described import PROBLEMS, asks, takes
from gateway.doors.http.human import meant
from gateway.doors.http.inlet import Needs, OfTenant, context_of, query, take
from gateway.doors.http.key_reach import (
    KIND,
    agent_for,
    boxes_of,
    limit_within,
    scopes_of,
    touchable,
    unchanged,
    within,
)
from gateway.doors.http.key_wishes import KeyChange, KeyRequest
from gateway.doors.http.problems import reply
from gateway.doors.refusal import Refusal, forbidden, missing
from gateway.store import agents, keys, revoke
from gateway.store.agents import Agent
from gateway.store.keys import Change, Key, NewKey
from gateway.store.tx import Tx
from gateway.store.writer import Rank

router = APIRouter(tags=["keys"], responses=PROBLEMS)
Anybody = Annotated[Grant, Depends(Needs(*keys.SCOPES))]
Asking = Annotated[Grant, Depends(Needs("read", "send"))]
Managing = Annotated[Grant, Depends(Needs("manage"))]


class Nothing(Shape):
    """An empty object."""


class Revocation(Shape):
    """What becomes of mail that the key has under way."""

    queued: Literal["keep", "cancel"] = "keep"


@router.post("/v1/agent/whoami", openapi_extra=takes(Nothing, optional=True))
async def whoami(request: Request, grant: Anybody) -> Response:
    """Say whose key this is, as which agent it acts, and what it may do."""
    await take(request, Nothing, grant, optional=True)
    return await _who(request, grant)


@router.get("/v1/agent/whoami", openapi_extra=asks(OfTenant))
async def who_is_it(request: Request, grant: Anybody) -> Response:
    """The same, for callers who would rather GET it."""
    query(request, OfTenant, grant)
    return await _who(request, grant)


async def _who(request: Request, grant: Grant) -> Response:
    def find(tx: Tx) -> Agent | None:
        return agents.find_agent(tx, grant.tenant, grant.agent or "")

    agent = None if grant.agent is None else await context_of(request).read(grant.tenant, find)
    boxes = [{"id": box.id, "address": box.address, "status": box.status} for box in grant.own_mailboxes]
    return reply(
        {
            "tenant_id": grant.tenant,
            "key_id": grant.key_id,
            "key_prefix": grant.prefix,
            "agent_id": grant.agent,
            "agent_name": None if agent is None else agent.name,
            "scopes": sorted(grant.scopes, key=keys.SCOPES.index),
            "scope_all_mailboxes": grant.mailboxes is None,
            "mailboxes": boxes,
            "transactional": grant.transactional,
            "requests_per_minute": grant.per_minute,
            "last_used_at": instant(grant.used_at),
        }
    )


@router.get("/v1/agent/agents", openapi_extra=asks(OfTenant))
async def list_agents(request: Request, grant: Asking) -> Response:
    """List the tenant's agents, oldest first."""
    query(request, OfTenant, grant)

    def read(tx: Tx) -> list[Agent]:
        return agents.list_agents(tx, grant.tenant)

    return reply([shown(agent, grant.tenant) for agent in await context_of(request).read(grant.tenant, read)])


def shown(agent: Agent, tenant: str) -> Document:
    """An agent on the wire of Molted's public API."""
    return {
        "id": agent.id,
        "tenantId": tenant,
        "agentName": agent.name,
        "agentRole": agent.role,
        "owner": agent.options.get("owner"),
        "metadata": agent.metadata,
        "lastHeartbeat": instant(agent.heartbeat_at),
        "registeredAt": instant(agent.created_at),
    }


@router.post("/v1/agent/keys", openapi_extra=takes(KeyRequest))
async def create_key(request: Request, grant: Managing) -> Response:
    """Make a key within one's own scope; its secret is in this answer and nowhere else."""
    asked = await take(request, KeyRequest, grant)
    context = context_of(request)
    boxes, scopes = boxes_of(request, asked, grant), scopes_of(asked) or tuple(dict.fromkeys(asked.scopes))
    meant(request, _meant(asked, grant, scopes, boxes))
    within(grant, with_implied(scopes), boxes, transactional=asked.transactional)
    limit = asked.requests_per_minute or grant.per_minute  # a key of one that is limited is no way around the limit
    limit_within(grant, limit, was=grant.per_minute)
    bound = None if "operator" in grant.scopes else grant.agent
    if asked.agent_name is not None:
        bound = (await context.read(grant.tenant, lambda tx: agent_for(tx, grant, asked.agent_name or ""))).id
    wish = NewKey(grant.tenant, asked.label, scopes, boxes, bound, asked.transactional)
    wish = replace(wish, created_by=grant.key_id, per_minute=limit, actor=grant.actor)
    made = (wish, lambda maker: unchanged(grant, maker))
    try:
        key, raw = await context.writer.do(Rank.FORBID, (grant.tenant,), keys.create_under, made)
    except ConflictError as error:
        context.auth.forget()
        raise forbidden(error.slug, str(error), **error.extra) from None
    except Refusal:
        context.auth.forget()
        raise
    return reply(of_key(key) | {"rawKey": raw})


def _meant(asked: KeyRequest, grant: Grant, scopes: Sequence[str], boxes: Sequence[str] | None) -> Document:
    """The wish without what it leaves to the caller's own key: a person who confirms it has another one."""
    wish: Document = {"label": asked.label, "scopes": list(scopes), "transactional": asked.transactional}
    wish |= {"scopeAllMailboxes": True} if boxes is None else {"mailboxes": list(boxes)}
    more = {
        "agentName": asked.agent_name or grant.agent,
        "requestsPerMinute": asked.requests_per_minute or grant.per_minute,
    }
    return wish | {name: value for name, value in more.items() if value is not None}


@router.get("/v1/agent/keys", openapi_extra=asks(OfTenant))
async def list_keys(request: Request, grant: Managing) -> Response:
    """List the tenant's keys without their secrets, oldest first, revoked ones too."""
    query(request, OfTenant, grant)
    if grant.mailboxes is not None:
        raise forbidden("mailbox_scope_denied", "this needs a key for all mailboxes")

    def read(tx: Tx) -> list[Key]:
        return keys.list_keys(tx, grant.tenant)

    return reply([of_key(key) for key in await context_of(request).read(grant.tenant, read)])


@router.patch("/v1/agent/keys/{key_id}", openapi_extra=takes(KeyChange))
async def change_key(request: Request, key_id: str, grant: Anybody) -> Response:
    """Narrow one's own key, or one that it has made; an operator changes any key within their own reach."""
    asked = await take(request, KeyChange, grant)
    context = context_of(request)
    boxes = None if asked.mailboxes is None and asked.mailbox_scopes is None else boxes_of(request, asked, grant)

    def to(key: Key) -> Key:
        return _changed(key, asked, boxes, grant)

    wish = Change(grant.tenant, key_id, grant.actor, to, grant.key_id, lambda asker: unchanged(grant, asker))
    try:
        key = await context.writer.do(Rank.FORBID, (grant.tenant,), keys.change_keys, wish)
    except NotFoundError:
        raise missing("key_not_found", "there is no such key") from None
    finally:
        context.auth.forget()
    return reply(of_key(key))


def _changed(key: Key, asked: KeyChange, boxes: tuple[str, ...] | None, grant: Grant) -> Key:
    """The key as it is to be. Raises Refusal where the caller may not do that."""
    person = "operator" in grant.scopes
    touchable(key, grant)
    scopes = scopes_of(asked) or asked.scopes or key.scopes
    new = replace(
        key,
        label=asked.label or key.label,
        scopes=frozenset(scopes),
        mailboxes=None if asked.scope_all_mailboxes else boxes or key.mailboxes,
        transactional=key.transactional if asked.transactional is None else asked.transactional,
        per_minute=asked.requests_per_minute if "requests_per_minute" in asked.model_fields_set else key.per_minute,
    )
    reach = grant if person else replace(grant, scopes=with_implied(key.scopes), mailboxes=key.mailboxes)
    limit_within(grant, new.per_minute, was=key.per_minute, about=key.id)
    given = new.transactional and not key.transactional
    for one in (key, new):
        within(reach, with_implied(one.scopes), one.mailboxes, transactional=given, about=(KIND, key.id))
    return new


@router.delete("/v1/agent/keys/{key_id}", openapi_extra=asks(Revocation))
async def revoke_key(request: Request, key_id: str, grant: Managing) -> Response:
    """End one's own key, or one that it has made, at once; an operator ends any key within their own reach.

    `queued=cancel` stops its mail that has not left in the same transaction.
    """
    asked = query(request, Revocation, grant)
    context = context_of(request)

    def read(tx: Tx) -> list[Key]:
        return keys.list_keys(tx, grant.tenant)

    known = next((key for key in await context.read(grant.tenant, read) if key.id == key_id), None)
    if known is None:
        raise missing("key_not_found", "there is no such key")
    touchable(known, grant)
    if grant.key_id not in (known.id, known.created_by):
        reached = with_implied(known.scopes), known.mailboxes
        within(grant, *reached, transactional=known.transactional, about=(KIND, known.id))
    wish = (grant.tenant, key_id, asked.queued == "cancel", grant.actor)
    try:
        key, stopped = await context.writer.do(Rank.FORBID, (grant.tenant,), _revoke_all, wish)
    finally:
        context.auth.forget()
    return reply(of_key(key) | {"status": "revoked", "revoked": True, "cancelled": stopped})


def _revoke_all(tx: Tx, wishes: Sequence[tuple[str, str, bool, str]]) -> list[tuple[Key, list[str]] | Exception]:
    """Each on its own: one that cannot be revoked harms no other."""
    done: list[tuple[Key, list[str]] | Exception] = []
    for tenant, key_id, cancel, actor in wishes:
        try:
            done.append(revoke.revoke(tx, tenant, key_id, cancel_queued=cancel, actor=actor))
        except GatewayError as error:
            done.append(error)
    return done
