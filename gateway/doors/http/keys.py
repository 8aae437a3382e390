"""Keys over HTTP: who am I, make, list, change, revoke. Nobody gives away more than their own key can do."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request, Response

from gateway.core.address import AddressError
from gateway.core.errors import GatewayError, NotFoundError
from gateway.core.record import Document, instant
from gateway.doors.answers import of_key
from gateway.doors.auth import Grant, unauthorized, with_implied
from gateway.doors.fields import Shape
from gateway.doors.http.described import PROBLEMS, asks, takes
from gateway.doors.http.inlet import Needs, context_of, query, reader_of, take
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
    return _who(grant)


@router.get("/v1/agent/whoami")
async def who_is_it(request: Request, grant: Anybody) -> Response:
    """The same, for callers who would rather GET it."""
    grant.same_tenant(request.query_params.get("tenantId"))
    return _who(grant)


def _who(grant: Grant) -> Response:
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
            "requests_per_minute": grant.per_minute,
            "last_used_at": instant(grant.used_at),
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
    boxes, scopes = _boxes(request, asked, grant), _scopes(asked) or tuple(dict.fromkeys(asked.scopes))
    _within(grant, with_implied(scopes), boxes, transactional=asked.transactional)
    if asked.requests_per_minute is not None:
        grant.need("operator")
    bound = None if "operator" in grant.scopes else grant.agent
    if asked.agent_name is not None:
        bound = (await context.read(grant.tenant, lambda tx: _agent(tx, grant, asked.agent_name or ""))).id
    wish = NewKey(grant.tenant, asked.label, scopes, boxes, bound, asked.transactional)
    # A key of one that is limited cannot be a way around the limit.
    wish = replace(wish, created_by=grant.key_id, per_minute=asked.requests_per_minute or grant.per_minute)
    made = (wish, lambda maker: _unchanged(grant, maker))
    try:
        key, raw = await context.writer.do(Rank.FORBID, (grant.tenant,), keys.create_under, made)
    except Refusal:
        context.auth.forget()
        raise
    return reply(of_key(key) | {"rawKey": raw})


@router.get("/v1/agent/keys")
async def list_keys(request: Request, grant: Managing) -> Response:
    """List the tenant's keys without their secrets, oldest first, revoked ones too."""
    grant.same_tenant(request.query_params.get("tenantId"))
    if grant.mailboxes is not None:
        raise forbidden("mailbox_scope_denied", "this needs a key for all mailboxes")

    def read(tx: Tx) -> list[Key]:
        return keys.list_keys(tx, grant.tenant)

    return reply([of_key(key) for key in await context_of(request).read(grant.tenant, read)])


@router.patch("/v1/agent/keys/{key_id}", openapi_extra=takes(KeyChange))
async def change_key(request: Request, key_id: str, grant: Anybody) -> Response:
    """Narrow one's own key, or one that it has made; an operator changes any key within their own reach."""
    asked = await take(request, KeyChange, grant)
    if "requests_per_minute" in asked.model_fields_set:
        grant.need("operator")
    context = context_of(request)
    boxes = None if asked.mailboxes is None and asked.mailbox_scopes is None else _boxes(request, asked, grant)

    def to(key: Key) -> Key:
        return _changed(key, asked, boxes, grant)

    wish = Change(grant.tenant, key_id, grant.actor, to, grant.key_id, lambda asker: _unchanged(grant, asker))
    try:
        key = await context.writer.do(Rank.FORBID, (grant.tenant,), keys.change_keys, wish)
    except NotFoundError:
        raise missing("key_not_found", "there is no such key") from None
    finally:
        context.auth.forget()
    return reply(of_key(key))


def _unchanged(grant: Grant, key: Key) -> None:
    """Refuse a key that is no longer what it was when it was looked up: a grant is believed for a second, what it gives stays.

    Called under the lock. Raises Refusal.
    """
    if key.status != "active":
        raise unauthorized()
    now = (with_implied(key.scopes), key.mailboxes, key.agent, key.per_minute)
    if now != (grant.scopes, grant.mailboxes, grant.agent, grant.per_minute):
        raise forbidden("human_decision_required", "your own key has just been changed; ask again")


def _touchable(key: Key, grant: Grant) -> None:
    """Refuse what only a person may do: to touch a key that is neither the caller's own nor made by it."""
    if "operator" not in grant.scopes and grant.key_id not in (key.id, key.created_by):
        raise forbidden("human_decision_required", "this is neither your own key nor one that it has made")


def _changed(key: Key, asked: KeyChange, boxes: tuple[str, ...] | None, grant: Grant) -> Key:
    """The key as it is to be. Raises Refusal where the caller may not do that."""
    person = "operator" in grant.scopes
    _touchable(key, grant)
    scopes = _scopes(asked) or asked.scopes or key.scopes
    new = replace(
        key,
        label=asked.label or key.label,
        scopes=frozenset(scopes),
        mailboxes=None if asked.scope_all_mailboxes else boxes or key.mailboxes,
        transactional=key.transactional if asked.transactional is None else asked.transactional,
        per_minute=asked.requests_per_minute if "requests_per_minute" in asked.model_fields_set else key.per_minute,
    )
    reach = grant if person else replace(grant, scopes=with_implied(key.scopes), mailboxes=key.mailboxes)
    given = new.transactional and not key.transactional
    for one in (key, new):
        _within(reach, with_implied(one.scopes), one.mailboxes, transactional=given)
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
    _touchable(known, grant)
    if grant.key_id not in (known.id, known.created_by):
        _within(grant, with_implied(known.scopes), known.mailboxes, transactional=known.transactional)
    wish = (grant.tenant, key_id, asked.queued == "cancel")
    try:
        key, stopped = await context.writer.do(Rank.FORBID, (grant.tenant,), _revoke_all, wish)
    finally:
        context.auth.forget()
    return reply(of_key(key) | {"status": "revoked", "revoked": True, "cancelled": stopped})


def _revoke_all(tx: Tx, wishes: Sequence[tuple[str, str, bool]]) -> list[tuple[Key, list[str]] | Exception]:
    """Each on its own: one that cannot be revoked harms no other."""
    done: list[tuple[Key, list[str]] | Exception] = []
    for tenant, key_id, cancel in wishes:
        try:
            done.append(revoke.revoke(tx, tenant, key_id, cancel_queued=cancel))
        except GatewayError as error:
            done.append(error)
    return done


def _scopes(asked: KeyRequest | KeyChange) -> tuple[str, ...]:
    """The scopes that `mailboxScopes` asks for, where it is there."""
    return tuple(dict.fromkeys(asked.mailbox_scopes[0].permissions)) if asked.mailbox_scopes else ()


def _boxes(request: Request, asked: KeyRequest | KeyChange, grant: Grant) -> tuple[str, ...] | None:
    """The ids of the mailboxes asked for; `None` for all. Raises Refusal."""
    named = asked.mailboxes or [one.mailbox_id for one in asked.mailbox_scopes or ()]
    if not named:
        return None if asked.scope_all_mailboxes else grant.mailboxes
    reader = reader_of(request, grant)
    found: list[str] = []
    for name in named:
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
    """The agent to bind a key to: a bound key's own, one that no key answers for, or, for an operator, any."""
    found = agents.find_agent(tx, grant.tenant, who)
    if found is None:
        raise missing("agent_not_found", "there is no such agent")
    if grant.agent not in (None, found.id) and "operator" not in grant.scopes:
        raise forbidden("human_decision_required", "this reaches beyond your own key; an operator may do it")
    free = found.id == grant.agent or not keys.is_bound(tx, grant.tenant, found.id)
    if not free and "operator" not in grant.scopes:
        raise Refusal(403, "agent_bound_to_key", "another key is bound to this agent", agentId=found.id)
    return found
