"""What agents and their tenant set for programs that rewrite mail in a human voice: the humanizer, on or off, its style.

This gateway rewrites nothing. It keeps these settings, lets nobody but a person turn the humanizer on, and says what holds.
"""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import ConfigDict, Field

from gateway.core.errors import NotFoundError
from gateway.core.humanizer import PROVIDER
from gateway.core.record import Document
from gateway.doors.auth import Grant, known_agent
from gateway.doors.fields import Name, Shape
from gateway.doors.http.controls import for_all_mailboxes, person
from gateway.doors.http.described import PROBLEMS, asks, takes
from gateway.doors.http.inlet import Needs, context_of, query, take_given
from gateway.doors.http.problems import reply
from gateway.doors.refusal import forbidden, missing
from gateway.store import agent_config
from gateway.store.agent_config import Change
from gateway.store.agents import Agent
from gateway.store.tx import Profile, Tx
from gateway.store.writer import Rank

router = APIRouter(tags=["coordination"], responses=PROBLEMS)
Reading = Annotated[Grant, Depends(Needs("read", "send"))]
Managing = Annotated[Grant, Depends(Needs("manage"))]

Style = Literal["casual", "professional", "friendly"]
KEYS = ("humanizer_enabled", "humanizer_style", "humanizer_provider")
IGNORED = "humanizer_provider_ignored"
OWN = "name the key's own agent"
PATH = "/v1/agent/agents/{agent_id}/config"
ON_WORDS = (
    "Whether programs that rewrite mail are to do it; this gateway does not. To turn it on needs an operator's key."
)
STYLE_WORDS = "The voice; to change it while the humanizer is on needs an operator's key."
PROVIDER_WORDS = "Accepted and ignored, with a warning; it is always read as anthropic."


class AgentConfig(Shape):
    """What is to change of an agent's config; what is not named stays, and keys that are not known are dropped."""

    model_config = ConfigDict(extra="ignore", alias_generator=None)

    tenant_id: Name | None = Field(None, alias="tenantId", description="The key's own tenant; another one is refused.")
    humanizer_enabled: bool = Field(default=False, description=ON_WORDS)
    humanizer_style: Style = Field(default="professional", description=STYLE_WORDS)
    humanizer_provider: Name = Field(default=PROVIDER, description=PROVIDER_WORDS)

    @classmethod
    def clashes(cls, given: dict[str, Any]) -> list[tuple[str, str]]:
        """One of the keys that are known."""
        known = any(name in given for name in KEYS)
        return [] if known else [(KEYS[0], f"one of {', '.join(KEYS)} is needed")]


class Humanizer(Shape):
    """What is to hold for all of the tenant's mail, where its agents set nothing of their own."""

    enabled: bool = Field(description=ON_WORDS)
    style: Style = Field(default="professional", description=STYLE_WORDS)
    provider: Name = Field(default=PROVIDER, description=PROVIDER_WORDS)


class ConfigAsked(Shape):
    """A look at an agent's config."""


class HumanizerAsked(Shape):
    """Whose humanizer."""

    agent_id: Name | None = Field(None, description="The agent, by id or name, whose `effective` is shown.")


@router.get(PATH, openapi_extra=asks(ConfigAsked))
async def show_config(request: Request, agent_id: str, grant: Reading) -> Response:
    """Show an agent's config, by its id or name; it is empty where nothing was set."""
    query(request, ConfigAsked, grant)

    def read(tx: Tx) -> Agent:
        return known_agent(tx, grant.tenant, agent_id)

    return reply(agent_config.config_of(await context_of(request).read(grant.tenant, read)))


@router.put(PATH, openapi_extra=takes(AgentConfig))
async def change_config(request: Request, agent_id: str, grant: Managing) -> Response:
    """Change an agent's config, by its id or name; it counts as a heartbeat. Off goes always, on needs an operator's key.

    A key that is bound to an agent changes that agent's alone. This gateway rewrites no mail: it keeps the keys, for programs
    that do.
    """
    asked, given = await take_given(request, AgentConfig, grant)
    for_all_mailboxes(grant)
    context = context_of(request)
    agent = await context.read(grant.tenant, lambda tx: known_agent(tx, grant.tenant, agent_id))
    if grant.agent not in (None, agent.id) and not person(grant):
        raise forbidden("agent_mismatch", "the key is bound to another agent", keyAgentId=grant.agent, nextAction=OWN)
    values = {name: getattr(asked, name) for name in KEYS[:2] if name in given}
    wish = Change(grant.tenant, agent.id, grant.actor, person(grant), values)
    try:
        config = await context.writer.do(Rank.FORBID, (grant.tenant,), agent_config.change, wish)
    except NotFoundError:
        raise missing("agent_not_found", "there is no such agent") from None
    return reply({"agentId": agent.id, "config": config, "updated": True} | _warnings(KEYS[2] in given))


@router.get("/v1/agent/config/humanizer", openapi_extra=asks(HumanizerAsked))
async def show_humanizer(request: Request, grant: Reading) -> Response:
    """Show the tenant's humanizer, and in `effective` what holds: for an agent's mail where one is named."""
    asked = query(request, HumanizerAsked, grant)

    def read(tx: Tx) -> Document:
        agent = None if asked.agent_id is None else known_agent(tx, grant.tenant, asked.agent_id)
        return _shown(tx.profile(grant.tenant), agent)

    return reply(await context_of(request).read(grant.tenant, read))


@router.put("/v1/agent/config/humanizer", openapi_extra=takes(Humanizer))
async def change_humanizer(request: Request, grant: Managing) -> Response:
    """Turn the tenant's humanizer off, or with an operator's key on. This gateway rewrites no mail; it keeps the setting."""
    asked, given = await take_given(request, Humanizer, grant)
    for_all_mailboxes(grant)
    context = context_of(request)
    values: dict[str, Any] = {name: getattr(asked, name) for name in ("enabled", "style") if name in given}
    wish = Change(grant.tenant, None, grant.actor, person(grant), values)
    await context.writer.do(Rank.FORBID, (grant.tenant,), agent_config.change, wish)
    profile = await context.read(grant.tenant, lambda tx: tx.profile(grant.tenant))
    return reply(_shown(profile, None) | {"updated": True} | _warnings("provider" in given))


def _shown(profile: Profile, agent: Agent | None) -> Document:
    found = agent_config.holds(profile, agent)
    return {
        "enabled": bool(profile.humanizer.get("enabled")),
        "style": profile.humanizer.get("style"),
        "provider": PROVIDER,
        "effective": {"enabled": found.enabled, "style": found.style},
    }


def _warnings(ignored: bool) -> Document:  # noqa: FBT001  (whether a provider was named)
    return {"warnings": [IGNORED]} if ignored else {}
