"""Keys over HTTP: who am I, make, list, revoke. Nobody gives away more than their own key can do."""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from gateway.core.address import AddressError
from gateway.core.errors import GatewayError
from gateway.core.record import Document, instant
from gateway.doors.auth import Grant, with_implied
from gateway.doors.fields import Name, Shape, Words
from gateway.doors.http.described import PROBLEMS, asks, takes
from gateway.doors.http.inlet import Needs, context_of, query, reader_of, take
from gateway.doors.http.problems import reply
from gateway.doors.refusal import Refusal, forbidden, missing
from gateway.store import agents, keys, revoke
from gateway.store.agents import Agent
from gateway.store.keys import Key, NewKey
from gateway.store.tx import Tx
from gateway.store.writer import Rank

router = APIRouter(tags=["keys"], responses=PROBLEMS)
Anybody = Annotated[Grant, Depends(Needs(*keys.SCOPES))]
Asking = Annotated[Grant, Depends(Needs("read", "send"))]
Managing = Annotated[Grant, Depends(Needs("manage"))]

Scope = Literal["read", "send", "manage", "operator"]


class Nothing(Shape):
    """An empty object."""


class KeyRequest(Shape):
    """A key to make."""

    unsupported: ClassVar = frozenset({"mailboxScopes"})

    label: Words
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=4, default_factory=lambda: ["read", "send"])]
    mailboxes: Annotated[list[Name], Field(min_length=1, max_length=1000)] | None = Field(
        None, description="Ids or addresses; without it, all that the caller's own key has."
    )
    scope_all_mailboxes: bool | None = None
    agent_name: Name | None = Field(None, description="Bind it to this agent, by name or id.")
    transactional: bool = Field(default=False, description="It may send mail that neither holds nor is held.")

    @classmethod
    def clashes(cls, given: dict[str, Any]) -> list[tuple[str, str]]:
        """All mailboxes, or some."""
        everything, some = given.get("scopeAllMailboxes"), given.get("mailboxes")
        if everything is True and some is not None:
            return [("mailboxes", "stands beside scopeAllMailboxes")]
        return [("mailboxes", "is required")] if everything is False and some is None else []


class Revocation(Shape):
    """What becomes of mail that the key has under way."""

    queued: Literal["keep", "cancel"] = "keep"


@router.post("/v1/agent/whoami", openapi_extra=takes(Nothing, optional=True))
async def whoami(request: Request, grant: Anybody) -> Response:
    """Say whose key this is, as which agent it acts, and what it may do."""
    await take(request, Nothing, grant, optional=True)
    boxes = [{"id": box.id, "address": box.address, "status": box.status} for box in grant.own_mailboxes]
    return reply(
        {
            "tenant_id": grant.tenant,
            "key_id": grant.key_id,
            "key_prefix": grant.prefix,
            "agent_id": grant.agent,
            "scopes": sorted(grant.scopes, key=keys.SCOPES.index),
            "scope_all_mailboxes": grant.mailboxes is None,
            "mailboxes": boxes,
            "transactional": grant.transactional,
        }
    )


@router.get("/v1/agent/agents")
async def list_agents(request: Request, grant: Asking) -> Response:
    """List the tenant's agents, oldest first."""
    grant.same_tenant(request.query_params.get("tenantId"))

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
        "metadata": agent.metadata,
        "lastHeartbeat": instant(agent.heartbeat_at),
        "registeredAt": instant(agent.created_at),
    }


@router.post("/v1/agent/keys", openapi_extra=takes(KeyRequest))
async def create_key(request: Request, grant: Managing) -> Response:
    """Make a key within one's own scope; its secret is in this answer and nowhere else."""
    asked = await take(request, KeyRequest, grant)
    context = context_of(request)
    boxes = _boxes(request, asked, grant)
    _within(grant, with_implied(asked.scopes), boxes, transactional=asked.transactional)
    bound: str | None = None
    if asked.agent_name is not None:
        bound = (await context.read(grant.tenant, lambda tx: _agent(tx, grant, asked.agent_name or ""))).id
    wish = NewKey(grant.tenant, asked.label, tuple(dict.fromkeys(asked.scopes)), boxes, bound, asked.transactional)
    key, raw = await context.writer.do(Rank.FORBID, (grant.tenant,), keys.create_keys, wish)
    return reply(_described(key) | {"rawKey": raw})


@router.get("/v1/agent/keys")
async def list_keys(request: Request, grant: Managing) -> Response:
    """List the tenant's keys without their secrets, oldest first, revoked ones too."""
    grant.same_tenant(request.query_params.get("tenantId"))
    if grant.mailboxes is not None:
        raise forbidden("mailbox_scope_denied", "this needs a key for all mailboxes")

    def read(tx: Tx) -> list[Key]:
        return keys.list_keys(tx, grant.tenant)

    return reply([_described(key) for key in await context_of(request).read(grant.tenant, read)])


@router.delete("/v1/agent/keys/{key_id}", openapi_extra=asks(Revocation))
async def revoke_key(request: Request, key_id: str, grant: Managing) -> Response:
    """End a key at once; `queued=cancel` stops its mail that has not left in the same transaction."""
    asked = query(request, Revocation, grant)
    context = context_of(request)

    def read(tx: Tx) -> list[Key]:
        return keys.list_keys(tx, grant.tenant)

    known = next((key for key in await context.read(grant.tenant, read) if key.id == key_id), None)
    if known is None:
        raise missing("key_not_found", "there is no such key")
    if known.id != grant.key_id:
        _within(grant, with_implied(known.scopes), known.mailboxes, transactional=known.transactional)
    wish = (grant.tenant, key_id, asked.queued == "cancel")
    try:
        key, stopped = await context.writer.do(Rank.FORBID, (grant.tenant,), _revoke_all, wish)
    finally:
        context.auth.forget()
    return reply(_described(key) | {"status": "revoked", "revoked": True, "cancelled": stopped})


def _revoke_all(tx: Tx, wishes: Sequence[tuple[str, str, bool]]) -> list[tuple[Key, list[str]] | Exception]:
    """Each on its own: one that cannot be revoked harms no other."""
    done: list[tuple[Key, list[str]] | Exception] = []
    for tenant, key_id, cancel in wishes:
        try:
            done.append(revoke.revoke(tx, tenant, key_id, cancel_queued=cancel))
        except GatewayError as error:
            done.append(error)
    return done


def _boxes(request: Request, asked: KeyRequest, grant: Grant) -> tuple[str, ...] | None:
    """The ids of the mailboxes asked for; `None` for all. Raises Refusal."""
    if asked.mailboxes is None:
        return None if asked.scope_all_mailboxes else grant.mailboxes
    reader = reader_of(request, grant)
    found: list[str] = []
    for name in asked.mailboxes:
        try:
            person = reader.sender(name).key
        except AddressError:
            person = ""
        box = next((box for box in grant.tenancy.mailboxes if name == box.id or person == box.key), None)
        if box is None:
            raise forbidden("mailbox_not_owned", "there is no such mailbox in this tenant")
        found.append(box.id)
    return tuple(dict.fromkeys(found))


def _within(grant: Grant, scopes: frozenset[str], boxes: Sequence[str] | None, *, transactional: bool = False) -> None:
    """Refuse what reaches beyond the caller's own key."""
    wider = grant.mailboxes is not None and (boxes is None or not set(boxes) <= set(grant.mailboxes))
    given = transactional and "operator" not in grant.scopes
    if not scopes <= grant.scopes or wider or given:
        raise forbidden("human_decision_required", "this reaches beyond your own key; an operator may do it")


def _agent(tx: Tx, grant: Grant, who: str) -> Agent:
    """The agent to bind a key to: one's own, one that no key answers for, or, for an operator, any."""
    found = agents.find_agent(tx, grant.tenant, who)
    if found is None:
        raise missing("agent_not_found", "there is no such agent")
    free = found.id == grant.agent or not keys.is_bound(tx, grant.tenant, found.id)
    if not free and "operator" not in grant.scopes:
        raise Refusal(403, "agent_bound_to_key", "another key is bound to this agent", agentId=found.id)
    return found


def _described(key: Key) -> Document:
    """A key without its secret."""
    return {
        "id": key.id,
        "tenantId": key.tenant,
        "keyPrefix": key.prefix,
        "label": key.label,
        "status": key.status,
        "scopes": sorted(key.scopes, key=keys.SCOPES.index),
        "agentId": key.agent,
        "scopeAllMailboxes": key.mailboxes is None,
        "mailboxes": list(key.mailboxes or ()),
        "transactional": key.transactional,
        "createdAt": instant(key.created_at),
        "lastUsedAt": instant(key.used_at),
    }
