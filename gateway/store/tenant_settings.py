"""What a tenant has set for all its mail, changed in one transaction: agents may tighten, people loosen.

The settings are the tenant's profile (`tx.Profile`), which every decision of the tenant reads under its lock.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa

from gateway.core.controls import loosened
from gateway.core.errors import HumanDecisionError, NotFoundError
from gateway.store import agents, events
from gateway.store.agents import Agent
from gateway.store.dialect import Dialect
from gateway.store.schema import agents as registry
from gateway.store.schema import tenants
from gateway.store.tx import Profile, Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
CONTROLS = ("cooldown", "physical_address", "require_consent", "internal", "unknown", "allowed")


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the profile: `values` by its fields; `enter` and `leave` are person keys for the tenant's own people.

    `person` says whether a person's key asks. `default_cooldown` (seconds) is what the gateway's own settings say.
    """

    tenant: str
    actor: str
    person: bool
    values: Mapping[str, Any] = field(default_factory=dict)
    enter: frozenset[str] = frozenset()
    leave: frozenset[str] = frozenset()
    default_cooldown: int = 0


def change(tx: Tx, wishes: Sequence[Change]) -> list[Profile | Exception]:
    """Change profiles, each on its own; HumanDecisionError where an agent would loosen something."""
    return [_change(tx, wish) for wish in wishes]


def _change(tx: Tx, wish: Change) -> Profile | Exception:
    old = tx.profile(wish.tenant)
    new = replace(old, **wish.values)
    new = replace(new, internal=(new.internal | wish.enter) - wish.leave)
    loosens = loosened(_controls(old), _controls(new), {"cooldown": wish.default_cooldown})
    if loosens and not wish.person:
        return HumanDecisionError("tenant-settings", wish.tenant, loosens)
    if new != old:
        agents.save_profile(tx, wish.tenant, new)
        changed = [name for name in CONTROLS if getattr(old, name) != getattr(new, name)]
        data = {"changed": changed, "loosened": loosens}
        events.append(tx, [events.Event(wish.tenant, "settings.changed", actor=wish.actor, data=data)])
    return new


def _controls(profile: Profile) -> dict[str, Any]:
    return {name: getattr(profile, name) for name in CONTROLS}


def _tenants(_: Dialect) -> sa.Executable:
    return sa.select(tenants.c.id).limit(2)


def several_tenants(tx: Tx) -> bool:
    """Whether the store has more than one tenant."""
    return len(tx.rows(_tenants, {})) > 1


def _set_agent_options(_: Dialect) -> sa.Executable:
    return (
        sa.update(registry)
        .where(registry.c.tenant == TENANT, registry.c.id == sa.bindparam("id_"))
        .values(options=sa.bindparam("document"))
    )


def set_agent_options(tx: Tx, tenant: str, agent: str, options: dict[str, Any]) -> None:
    """Replace an agent's options; registering it again leaves them as they are."""
    tx.run(_set_agent_options, {"tenant": tenant, "id_": agent, "document": json.dumps(options)})


@dataclass(frozen=True, slots=True)
class AgentChange:
    """A change of what an agent (by id or name) may do: its allow list; `None` takes the list away."""

    tenant: str
    who: str
    actor: str
    person: bool
    allowed: list[str] | None


def change_agent(tx: Tx, wishes: Sequence[AgentChange]) -> list[Agent | Exception]:
    """Change agents' options, each on its own; NotFoundError, HumanDecisionError."""
    return [_change_agent(tx, wish) for wish in wishes]


def _change_agent(tx: Tx, wish: AgentChange) -> Agent | Exception:
    agent = agents.find_agent(tx, wish.tenant, wish.who)
    if agent is None:
        return NotFoundError("no such agent")
    changed = {"allowed": wish.allowed}
    options = {**agent.options, **changed}
    loosens = loosened({"allowed": agent.options.get("allowed")}, changed, {})
    if loosens and not wish.person:
        return HumanDecisionError("agent-config", agent.id, loosens)
    set_agent_options(tx, wish.tenant, agent.id, options)
    data = {"agent": agent.id, "changed": json.dumps(changed), "loosened": loosens}
    events.append(tx, [events.Event(wish.tenant, "agent.changed", actor=wish.actor, data=data)])
    return replace(agent, options=options)
