"""What is kept beside an agent for programs that write in its name: its owner, its humanizer; and the tenant's humanizer.

An agent's key turns the humanizer off at any time; to turn it on, or to change its style while it is on, needs a person.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.core.errors import HumanDecisionError, NotFoundError
from gateway.core.humanizer import PROVIDER, Setting, effective, loosened, setting
from gateway.store import agents, events, heartbeats
from gateway.store.agents import Agent, Register, Registered
from gateway.store.tenant_settings import set_agent_options
from gateway.store.tx import Profile, Tx

KIND = "humanizer"
PREFIX = "humanizer_"
"""How an agent's keys begin; the tenant's have none."""
OWN_PROVIDER = {f"{PREFIX}provider": PROVIDER}


@dataclass(frozen=True, slots=True)
class Change:
    """A change of an agent's config (by id), or with `agent` `None` of the tenant's humanizer: `values` are merged into it."""

    tenant: str
    agent: str | None
    actor: str
    person: bool
    values: Mapping[str, Any]


def config_of(agent: Agent) -> dict[str, Any]:
    """The config of an agent as it is read; empty where nothing was ever set."""
    return dict(agent.options.get("config", {}))


def holds(profile: Profile, agent: Agent | None = None) -> Setting:
    """What holds for an agent's mail, or for that of none, as far as it is set for agent and tenant."""
    own = Setting() if agent is None else setting(config_of(agent), PREFIX)
    found = effective(agent=own, tenant=setting(profile.humanizer))
    return Setting(found.enabled, found.style)


def change(tx: Tx, wishes: Sequence[Change]) -> list[dict[str, Any] | Exception]:
    """Change configs, each on its own; the new one. NotFoundError, HumanDecisionError where no person asks for what loosens."""
    return [_tenant(tx, wish) if wish.agent is None else _agent(tx, wish, wish.agent) for wish in wishes]


def _agent(tx: Tx, wish: Change, who: str) -> dict[str, Any] | Exception:
    agent = agents.find_agent(tx, wish.tenant, who)
    if agent is None:
        return NotFoundError("no such agent")
    old, tenant = config_of(agent), setting(tx.profile(wish.tenant).humanizer)
    new = {**old, **wish.values, **OWN_PROVIDER}
    was, now = setting(old, PREFIX), setting(new, PREFIX)
    loosens = loosened(effective(agent=was, tenant=tenant), effective(agent=now, tenant=tenant), was, now)
    names = [f"{PREFIX}{name}" for name in loosens]
    if names and not wish.person:
        return HumanDecisionError(KIND, agent.id, names)
    heartbeats.beat(tx, [(wish.tenant, agent.id)])
    if new != old:
        set_agent_options(tx, wish.tenant, agent.id, {**agent.options, "config": new})
        changed = sorted(name for name in new if old.get(name) != new[name])
        data = {"agent": agent.id, "changed": changed, "loosened": names}
        events.append(tx, [events.Event(wish.tenant, "agent.changed", actor=wish.actor, data=data)])
    return new


def _tenant(tx: Tx, wish: Change) -> dict[str, Any] | Exception:
    profile = tx.profile(wish.tenant)
    old, new = dict(profile.humanizer), {**profile.humanizer, **wish.values}
    was, now = setting(old), setting(new)
    loosens = loosened(effective(tenant=was), effective(tenant=now), was, now)
    if loosens and not wish.person:
        return HumanDecisionError(KIND, wish.tenant, loosens)
    if new != old:
        agents.save_profile(tx, wish.tenant, replace(profile, humanizer=new))
        data = {"changed": ["humanizer"], "loosened": loosens}
        events.append(tx, [events.Event(wish.tenant, "settings.changed", actor=wish.actor, data=data)])
    return new


def register(tx: Tx, wishes: Sequence[tuple[Register, str | None]]) -> list[Registered]:
    """Put agents into the registry as `agents.register` does, each with its owner where one is named."""
    return [_register(tx, wish, owner) for wish, owner in wishes]


def _register(tx: Tx, wish: Register, owner: str | None) -> Registered:
    done = agents.register(tx, [wish])[0]
    if owner is None or not done.refreshed:
        return done
    options = {**done.agent.options, "owner": owner}
    set_agent_options(tx, wish.tenant, done.agent.id, options)
    return replace(done, agent=replace(done.agent, options=options))
