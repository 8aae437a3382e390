"""The registry: tenants, mailboxes and agents; their API keys are in `keys.py`."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gateway.core.address import Address
from gateway.core.errors import NotFoundError
from gateway.store import events, keys
from gateway.store.clock import from_us
from gateway.store.dialect import Dialect, Row
from gateway.store.schema import agents, mailboxes, tenants
from gateway.store.tx import Profile, Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")


@dataclass(frozen=True, slots=True)
class Mailbox:
    """A sender's address; times UTC.

    `options`: demands ("", lease, token, both), may_reply, transactional, require_consensus, unknown (by kind),
    cooldown (seconds), allowed (patterns of core/allowlist). What is missing is as usual.
    """

    id: str
    address: str
    key: str
    status: str
    options: dict[str, Any]
    display_name: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Agent:
    """A registered agent; times UTC. `options`: allowed (patterns of core/allowlist), owner, config (agent_config.py)."""

    id: str
    name: str
    role: str
    metadata: dict[str, Any]
    created_at: datetime
    heartbeat_at: datetime
    options: dict[str, Any] = field(default_factory=dict)


def _insert_tenant(_: Dialect) -> sa.Executable:
    return sa.insert(tenants)


def _tenant(_: Dialect) -> sa.Executable:
    return sa.select(tenants).where(tenants.c.id == TENANT)


def _save_profile(_: Dialect) -> sa.Executable:
    return sa.update(tenants).where(tenants.c.id == TENANT).values(profile=sa.bindparam("document"))


def has_tenant(tx: Tx, tenant: str) -> bool:
    """Whether the tenant exists."""
    return tx.row(_tenant, {"tenant": tenant}) is not None


def add_tenant(tx: Tx, tenant: str) -> None:
    """Make a tenant with an empty profile."""
    row = {"id": tenant, "last_us": tx.now_us, "profile": Profile().dump(), "created_us": tx.now_us}
    tx.run(_insert_tenant, row)


def save_profile(tx: Tx, tenant: str, profile: Profile) -> None:
    """Replace the tenant's profile, for the rest of this transaction too, which must hold the tenant's lock."""
    tx.run(_save_profile, {"tenant": tenant, "document": profile.dump()})
    tx.tenants[tenant] = (tx.now_of(tenant), profile)


def _insert_mailbox(_: Dialect) -> sa.Executable:
    return sa.insert(mailboxes)


def _mailboxes(_: Dialect) -> sa.Executable:
    return sa.select(mailboxes).where(mailboxes.c.tenant == TENANT).order_by(mailboxes.c.created_us, mailboxes.c.id)


def _set_status(_: Dialect) -> sa.Executable:
    return (
        sa.update(mailboxes)
        .where(mailboxes.c.tenant == TENANT, mailboxes.c.id == sa.bindparam("id_"))
        .values(status=sa.bindparam("to"))
    )


def _set_options(_: Dialect) -> sa.Executable:
    return (
        sa.update(mailboxes)
        .where(mailboxes.c.tenant == TENANT, mailboxes.c.id == sa.bindparam("id_"))
        .values(options=sa.bindparam("document"))
    )


def add_mailbox(tx: Tx, tenant: str, address: Address, options: dict[str, Any] | None = None) -> Mailbox:
    """Add a sender's address and count its domain among the tenant's own. An existing one is returned as it is."""
    for found in list_mailboxes(tx, tenant):
        if found.key == address.key:
            return found
    box = insert_mailbox(tx, tenant, address, "active", options or {})
    own_domain(tx, tenant, address.domain)
    return box


def insert_mailbox(
    tx: Tx, tenant: str, address: Address, status: str, options: dict[str, Any], display_name: str | None = None
) -> Mailbox:
    """Write a new mailbox."""
    now = tx.now_of(tenant)
    row = {
        "tenant": tenant,
        "id": f"mbx_{secrets.token_hex(8)}",
        "address": address.spec,
        "key": address.key,
        "display_name": display_name,
        "status": status,
        "options": json.dumps(options),
        "created_us": now,
        "updated_us": now,
    }
    tx.run(_insert_mailbox, row)
    return mailbox_of(row)


def own_domain(tx: Tx, tenant: str, domain: str) -> None:
    """Count a domain among the tenant's own."""
    profile = tx.profile(tenant)
    save_profile(tx, tenant, replace(profile, own_domains=profile.own_domains | {domain}))


def list_mailboxes(tx: Tx, tenant: str) -> list[Mailbox]:
    """All mailboxes, oldest first."""
    return [mailbox_of(row) for row in tx.rows(_mailboxes, {"tenant": tenant})]


def mailbox_of(row: Row) -> Mailbox:
    """A row of the table as a mailbox."""
    return Mailbox(
        row["id"],
        row["address"],
        row["key"],
        row["status"],
        json.loads(row["options"]),
        row["display_name"],
        from_us(row["created_us"]),
        from_us(row["updated_us"]),
    )


def set_mailbox_status(tx: Tx, tenant: str, mailbox: str, status: str) -> None:
    """Set a mailbox to active or paused; raises NotFoundError. What happens to its mail is `forbid.hold_mailbox`."""
    if not tx.run(_set_status, {"tenant": tenant, "id_": mailbox, "to": status}):
        msg = "no such mailbox"
        raise NotFoundError(msg)


def set_mailbox_options(tx: Tx, tenant: str, mailbox: str, options: dict[str, Any]) -> None:
    """Replace a mailbox's options; raises NotFoundError."""
    if not tx.run(_set_options, {"tenant": tenant, "id_": mailbox, "document": json.dumps(options)}):
        msg = "no such mailbox"
        raise NotFoundError(msg)


@dataclass(frozen=True, slots=True)
class Register:
    """A wish to be in the registry; with `bind` the key is bound to the agent; a `person` may refresh any agent."""

    tenant: str
    name: str
    role: str = "general"
    metadata: dict[str, Any] = field(default_factory=dict)
    key_id: str | None = None
    bind: bool = False
    person: bool = False


@dataclass(frozen=True, slots=True)
class Registered:
    """The agent, whether it was `refreshed`, and what became of the key (one of the six words of Molted's public API)."""

    agent: Agent
    binding: str
    bound_to: str | None = None
    refreshed: bool = True


def _upsert_agent(d: Dialect) -> sa.Executable:
    insert = d.upsert(agents)
    made: sa.Executable = insert.on_conflict_do_update(
        index_elements=[agents.c.tenant, agents.c.name],
        set_={n: insert.excluded[n] for n in ("role", "metadata", "heartbeat_us")},
    )
    return made


def _agent_by(_: Dialect) -> sa.Executable:
    either = sa.or_(agents.c.name == sa.bindparam("who"), agents.c.id == sa.bindparam("who"))
    return sa.select(agents).where(agents.c.tenant == TENANT, either)


def _agents(_: Dialect) -> sa.Executable:
    return sa.select(agents).where(agents.c.tenant == TENANT).order_by(agents.c.created_us, agents.c.id)


def register(tx: Tx, wishes: Sequence[Register]) -> list[Registered]:
    """Put agents into the registry or refresh them by name (upsert), and bind keys where asked."""
    return [_register(tx, wish) for wish in wishes]


def _register(tx: Tx, wish: Register) -> Registered:
    known = None if wish.key_id is None or wish.person else find_agent(tx, wish.tenant, wish.name)
    if known is not None and _of_another(tx, wish.tenant, known, wish.key_id or ""):
        done = _bind(tx, wish.tenant, known, wish.key_id or "") if wish.bind else Registered(known, "not_requested")
        return replace(done, refreshed=False)
    now = tx.now_of(wish.tenant)
    fresh = secrets.token_hex(6)
    row = {
        "tenant": wish.tenant,
        "id": f"agent_{fresh}",
        "name": wish.name,
        "role": wish.role,
        "metadata": json.dumps(wish.metadata),
        "options": "{}",
        "created_us": now,
        "heartbeat_us": now,
    }
    tx.run(_upsert_agent, row)
    agent = find_agent(tx, wish.tenant, wish.name)
    assert agent is not None  # noqa: S101  (just written)
    events.append(tx, [events.Event(wish.tenant, "agent.registered", actor=agent.id, data={"name": agent.name})])
    if not wish.bind:
        return Registered(agent, "not_requested")
    if wish.key_id is None:
        return Registered(agent, "not_applicable")
    return _bind(tx, wish.tenant, agent, wish.key_id)


def _of_another(tx: Tx, tenant: str, agent: Agent, key_id: str) -> bool:
    """Whether the agent acts by keys of its own, and this is none of them: it is left as it is."""
    return keys.is_bound(tx, tenant, agent.id) and keys.known(tx, tenant, key_id).agent != agent.id


def _bind(tx: Tx, tenant: str, agent: Agent, key_id: str) -> Registered:
    mine = next(k for k in keys.list_keys(tx, tenant) if k.id == key_id)
    if mine.agent == agent.id:
        return Registered(agent, "already_bound")
    if mine.agent is not None:
        return Registered(agent, "bound_to_other_agent", mine.agent)
    if keys.is_bound(tx, tenant, agent.id):
        return Registered(agent, "agent_has_other_key")
    keys.bind_key(tx, tenant, key_id, agent.id, actor=agent.id)
    return Registered(agent, "bound")


def find_agent(tx: Tx, tenant: str, who: str) -> Agent | None:
    """An agent by id or name."""
    row = tx.row(_agent_by, {"tenant": tenant, "who": who})
    return None if row is None else _agent(row)


def _agents_everywhere(_: Dialect) -> sa.Executable:
    either = sa.or_(agents.c.name == sa.bindparam("who"), agents.c.id == sa.bindparam("who"))
    return sa.select(agents.c.tenant, agents.c.id).where(either).order_by(agents.c.tenant).limit(2)


def find_everywhere(tx: Tx, who: str) -> list[tuple[str, str]]:
    """Tenant and id of the agents with this id or name, of all tenants; at most two: more need no telling apart."""
    return [(row["tenant"], row["id"]) for row in tx.rows(_agents_everywhere, {"who": who})]


def list_agents(tx: Tx, tenant: str) -> list[Agent]:
    """All agents, oldest first."""
    return [_agent(row) for row in tx.rows(_agents, {"tenant": tenant})]


def _agent(row: Row) -> Agent:
    return Agent(
        row["id"],
        row["name"],
        row["role"],
        json.loads(row["metadata"]),
        from_us(row["created_us"]),
        from_us(row["heartbeat_us"]),
        json.loads(row["options"]),
    )
