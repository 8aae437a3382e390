"""The tenant's own settings over HTTP, its team's addresses, and an agent's allow list.

A tenant's own value wins over the gateway's. An agent may tighten; what loosens needs an operator's key.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field, StringConstraints

from gateway.core.address import AddressError
from gateway.core.errors import NotFoundError
from gateway.core.record import Document
from gateway.doors.auth import Grant
from gateway.doors.context import Context
from gateway.doors.fields import Person, Shape, Text
from gateway.doors.http import controls
from gateway.doors.http.controls import ALLOWED_WORDS, COOLDOWN_WORDS, UNKNOWN_WORDS, Minutes, Patterns, Unknown
from gateway.doors.http.described import PROBLEMS, asks, takes
from gateway.doors.http.inlet import Needs, context_of, query, reader_of, take
from gateway.doors.http.keys import shown as agent_shown
from gateway.doors.http.problems import reply
from gateway.doors.refusal import Refusal, forbidden, missing
from gateway.store import agents, tenant_settings
from gateway.store.agents import Agent
from gateway.store.tenant_settings import AgentChange, Change
from gateway.store.tx import Profile, Tx

router = APIRouter(tags=["settings"], responses=PROBLEMS)
Reading = Annotated[Grant, Depends(Needs("read", "send"))]
Managing = Annotated[Grant, Depends(Needs("manage"))]

TEAM_MAX = 1000
CREATED = 201


class Whose(Shape):
    """Whose settings they are."""


class SettingsPatch(Shape):
    """What is to change of the tenant's settings; what is not named stays, null is as usual."""

    cooldown_minutes: Minutes | None = Field(None, description=COOLDOWN_WORDS)
    physical_address: Annotated[Text, StringConstraints(max_length=500)] | None = Field(
        None,
        description="The postal address of who sends, for the foot of marketing mail; it is kept, and put nowhere.",
    )
    require_consent_for_marketing: bool = Field(
        default=False, description="Outreach needs a consent, whatever the gateway's own setting for that policy is."
    )
    internal_addresses: Annotated[list[Person], Field(max_length=TEAM_MAX)] = Field(
        default=[],
        description="The tenant's own people beside its mailboxes' domains: no lease and no cooldown bind them.",
    )
    unknown: Unknown | None = Field(None, description=UNKNOWN_WORDS)
    allowed_recipient_domains: Patterns | None = Field(None, description=ALLOWED_WORDS)


class AgentPatch(Shape):
    """What is to change of an agent."""

    allowed_recipient_domains: Patterns | None = Field(description=ALLOWED_WORDS)


class TeamAddress(Shape):
    """One of the tenant's own people."""

    email: Person


@router.get("/v1/agent/config/settings", openapi_extra=asks(Whose))
async def show_settings(request: Request, grant: Reading) -> Response:
    """Show what the tenant has set, and what holds where it has set nothing."""
    query(request, Whose, grant)
    context = context_of(request)
    profile = await context.read(grant.tenant, lambda tx: tx.profile(grant.tenant))
    return reply(_shown(profile, context))


@router.patch("/v1/agent/config/settings", openapi_extra=takes(SettingsPatch))
async def change_settings(request: Request, grant: Managing) -> Response:
    """Change the tenant's settings; what loosens one needs an operator's key (`loosens` names what)."""
    asked = await take(request, SettingsPatch, grant)
    controls.for_all_mailboxes(grant)
    context = context_of(request)
    values = controls.stored(asked, context, ("cooldown_minutes", "unknown", "allowed_recipient_domains"))
    if values.get("allowed") is not None:
        values["allowed"] = frozenset(values["allowed"])
    if "unknown" in values:
        values["unknown"] = values["unknown"] or {}
    given = asked.model_fields_set
    if "physical_address" in given:
        values["physical_address"] = asked.physical_address or None
    if "require_consent_for_marketing" in given:
        values["require_consent"] = asked.require_consent_for_marketing
    if "internal_addresses" in given:
        values["internal"] = frozenset(one.key for one in asked.internal_addresses)
    return reply(_shown(await _change(context, grant, values=values), context))


async def _change(context: Context, grant: Grant, **what: Any) -> Profile:
    """Carry a change out; `what` are fields of Change."""
    usual = controls.usual_cooldown(context)
    wish = Change(grant.tenant, grant.actor, controls.person(grant), default_cooldown=usual, **what)
    try:
        return await context.act(grant, tenant_settings.change, wish)
    finally:
        context.auth.forget()


def _shown(profile: Profile, context: Context) -> Document:
    usual = controls.usual_cooldown(context)
    return {
        "cooldownMinutes": controls.minutes(usual if profile.cooldown is None else profile.cooldown),
        "physicalAddress": profile.physical_address,
        "requireConsentForMarketing": profile.require_consent,
        "internalAddresses": sorted(profile.internal),
        "internalDomains": sorted(profile.own_domains),
        "domainAliases": dict(profile.aliases),
        "unknown": controls.unknown(profile.unknown) or context.settings.unknown,
        "allowedRecipientDomains": None if profile.allowed is None else sorted(profile.allowed),
        "own": sorted(_own(profile)),
    }


def _own(profile: Profile) -> list[str]:
    """The settings in which the tenant has a value of its own in place of the gateway's."""
    own = {"cooldownMinutes": profile.cooldown is not None, "unknown": bool(profile.unknown)}
    return [name for name, there in own.items() if there]


# --- the team ---------------------------------------------------------------------------------------------------------


@router.get("/v1/agent/notification-addresses", openapi_extra=asks(Whose))
async def list_team(request: Request, grant: Managing) -> Response:
    """List the tenant's own people: the settings' internalAddresses."""
    query(request, Whose, grant)
    controls.for_all_mailboxes(grant)
    profile = await context_of(request).read(grant.tenant, lambda tx: tx.profile(grant.tenant))
    return reply([_member(key, grant) for key in sorted(profile.internal)])


@router.post("/v1/agent/notification-addresses", status_code=CREATED, openapi_extra=takes(TeamAddress))
async def add_to_team(request: Request, grant: Managing) -> Response:
    """Count a person among the tenant's own (an operator's key); no lease and no cooldown bind mail to them."""
    asked = await take(request, TeamAddress, grant)
    controls.for_all_mailboxes(grant)
    if len(grant.tenancy.profile.internal | {asked.email.key}) > TEAM_MAX:
        raise forbidden("team_address_cap_reached", "there are as many as there may be", cap=TEAM_MAX)
    await _change(context_of(request), grant, enter=frozenset({asked.email.key}))
    return reply(_member(asked.email.key, grant), CREATED)


@router.delete("/v1/agent/notification-addresses/{address:path}", openapi_extra=asks(Whose))
async def remove_from_team(request: Request, address: str, grant: Managing) -> Response:
    """Count a person among the tenant's own no longer."""
    query(request, Whose, grant)
    controls.for_all_mailboxes(grant)
    context = context_of(request)
    try:
        key = reader_of(request, grant).person(address).key
    except AddressError:
        key = ""
    profile = await context.read(grant.tenant, lambda tx: tx.profile(grant.tenant))
    if key not in profile.internal:
        raise missing("team_address_not_found", "there is no such address")
    await _change(context, grant, leave=frozenset({key}))
    return reply({"deleted": True, "id": key})


def _member(key: str, grant: Grant) -> Document:
    return {"id": key, "tenantId": grant.tenant, "email": key, "status": "confirmed"}


# --- an agent's list --------------------------------------------------------------------------------------------------


@router.get("/v1/agent/agents/{agent_id}", openapi_extra=asks(Whose))
async def show_agent(request: Request, agent_id: str, grant: Reading) -> Response:
    """Show an agent, by id or name, with its allow list."""
    query(request, Whose, grant)

    def read(tx: Tx) -> Agent | None:
        return agents.find_agent(tx, grant.tenant, agent_id) if agent_id.isprintable() else None

    found = await context_of(request).read(grant.tenant, read)
    if found is None:
        raise _no_agent()
    return reply(_agent(found, grant))


@router.patch("/v1/agent/agents/{agent_id}", openapi_extra=takes(AgentPatch))
async def change_agent(request: Request, agent_id: str, grant: Managing) -> Response:
    """Change an agent's allow list; a narrower one may be set by anybody who manages, a wider one by an operator."""
    asked = await take(request, AgentPatch, grant)
    controls.for_all_mailboxes(grant)
    context = context_of(request)
    allowed = controls.stored(asked, context, ("allowed_recipient_domains",))["allowed"]
    wish = AgentChange(grant.tenant, agent_id, grant.actor, controls.person(grant), allowed)
    if not agent_id.isprintable():
        raise _no_agent()
    try:
        changed = await context.act(grant, tenant_settings.change_agent, wish)
    except NotFoundError:
        raise _no_agent() from None
    return reply(_agent(changed, grant))


def _no_agent() -> Refusal:
    return missing("agent_not_found", "there is no such agent")


def _agent(agent: Agent, grant: Grant) -> Document:
    return agent_shown(agent, grant.tenant) | {"allowedRecipientDomains": agent.options.get("allowed")}
