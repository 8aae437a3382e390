"""Who calls: an API key becomes a grant, a grant and a wish become the agent as which something is done.

A key that was looked up is believed for a second at most; sends ask about it again under the lock, so a revoked key
sends nothing. The texts for strangers are the same whatever was wrong with a key, and no key is ever logged or kept.
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from gateway.core.address import KeyRules
from gateway.doors.limits import Limits
from gateway.doors.refusal import Refusal, forbidden, missing
from gateway.doors.uses import Uses
from gateway.store import Store, agents, keys
from gateway.store.agents import Mailbox
from gateway.store.tx import Profile, Tx

FRESH_SECONDS = 1.0
"""How long a key that was looked up is believed."""

KEPT_MAX = 10_000
"""Keys that are remembered at once, and such as have been good once."""

OWN_AGENT = "leave agentName out: the key acts as its own agent"
FREE_AGENT = "use that agent's own key, or act as an agent that no key is bound to"
ONE_AGENT = "name one agent"
"""What to do where a caller cannot act as the agent that was named."""

RAW_KEY = re.compile(r"gk_live_[A-Za-z0-9_-]{43}")
IMPLIED = {"operator": keys.SCOPES, "manage": ("read", "send", "manage")}
"""Scopes that have others within them."""


@dataclass(frozen=True, slots=True)
class Tenancy:
    """What a door knows of the tenant: its profile, its rules for person keys, its mailboxes, oldest first, their domains."""

    profile: Profile
    rules: KeyRules
    mailboxes: tuple[Mailbox, ...]
    own_domains: frozenset[str]


@dataclass(frozen=True, slots=True)
class Grant:
    """What a caller may do. `agent` is the id of the agent that the key is bound to, `mailboxes` `None` for all.

    `key_id` is empty for a caller in a trusted network, who has no key. `limits` are requests a minute, each with the id of
    the key that is charged.
    """

    tenant: str
    key_id: str
    agent: str | None
    mailboxes: tuple[str, ...] | None
    scopes: frozenset[str]
    transactional: bool
    tenancy: Tenancy
    prefix: str = ""
    per_minute: int | None = None
    used_at: datetime | None = None
    limits: tuple[tuple[str, int], ...] = ()

    @property
    def actor(self) -> str:
        """Who acts, for the audit."""
        return self.agent or f"key:{self.key_id}"

    def covers(self, mailbox: str) -> bool:
        """Whether the grant reaches this mailbox."""
        return self.mailboxes is None or mailbox in self.mailboxes

    @property
    def own_mailboxes(self) -> tuple[Mailbox, ...]:
        """The mailboxes that it may act for: in the key's order, else oldest first."""
        if self.mailboxes is None:
            return self.tenancy.mailboxes
        known = {box.id: box for box in self.tenancy.mailboxes}
        return tuple(known[name] for name in self.mailboxes if name in known)

    def need(self, *scopes: str) -> None:
        """Refuse who has none of these scopes."""
        if self.scopes.isdisjoint(scopes):
            raise forbidden(
                "insufficient_scope", f"this needs a key with the scope {' or '.join(scopes)}", scope=scopes[0]
            )

    def same_tenant(self, tenant: str | None) -> None:
        """Refuse who names another tenant than the key's own."""
        if tenant is not None and tenant != self.tenant:
            raise forbidden("tenant_mismatch", "the key belongs to another tenant")


def with_implied(scopes: Iterable[str]) -> frozenset[str]:
    """Scopes with all that are within them."""
    return frozenset(inner for scope in scopes for inner in (scope, *IMPLIED.get(scope, ())))


class Authenticator:
    """Looks keys up, at most once a second each; one for all doors of a process."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Remember nothing yet; `clock` gives seconds."""
        self.limits = Limits(clock)
        self.uses = Uses(store, clock)
        self._store = store
        self._good: dict[str, None] = {}
        self._clock = clock
        self._kept: dict[str, tuple[float, Grant]] = {}
        self._asking: dict[str, asyncio.Task[Grant | None]] = {}
        self._turn = 0

    async def grant(self, raw: str, address: str | None = None) -> Grant:
        """What the holder of a key may do; `address` is where the caller is.

        Raises Refusal 401, and 429 for a key that was never good where too many wrong ones came from there;
        StoreUnavailableError.
        """
        name = keys.key_hash(raw)
        kept = self._kept.get(name)
        if kept is not None and self._clock() < kept[0]:
            found: Grant | None = kept[1]
        else:
            if name not in self._good:
                self.limits.refuse_guesses(address)
            found = await self._found(name, raw) if RAW_KEY.fullmatch(raw) else None
        if found is None:
            self.limits.note_guess(address)
            raise unauthorized()
        self.uses.note(found.tenant, found.key_id)
        return found

    async def of_key(self, tenant: str, key_id: str) -> Grant | None:
        """What a key may do at this moment; `None` for one that was revoked. Raises NotFoundError, StoreUnavailableError."""
        return await asyncio.to_thread(self._store.read, lambda tx: _in_force(tx, tenant, key_id), (tenant,))

    async def _found(self, name: str, raw: str) -> Grant | None:
        asking = self._asking.get(name)
        if asking is None:
            asking = self._asking[name] = asyncio.create_task(self._look_up(name, raw))
        return await asyncio.shield(asking)

    async def trusted(self, agent: str) -> Grant:
        """What an agent may do that sends without a key, from a trusted network: it sends from its tenant's mailboxes.

        The agent is named by id or name, which only one tenant may have. Raises Refusal, StoreUnavailableError.
        """
        name = f"agent {agent}"  # with its blank it is no key's hash
        kept = self._kept.get(name)
        if kept is not None and self._clock() < kept[0]:
            return kept[1]
        until, turn = self._clock() + FRESH_SECONDS, self._turn
        grant = await asyncio.to_thread(self._read_trusted, agent)
        if turn == self._turn:
            self._keep(name, until, grant)
        return grant

    def forget(self) -> None:
        """Believe nothing any more: a key, a binding or a mailbox has just been changed here."""
        self._turn += 1
        self._kept.clear()
        self._asking.clear()

    async def _look_up(self, name: str, raw: str) -> Grant | None:
        until, turn = self._clock() + FRESH_SECONDS, self._turn
        try:
            found = await asyncio.to_thread(self._read, raw)
        finally:
            if turn == self._turn:
                self._asking.pop(name, None)
        if turn == self._turn:  # else it may have been read before what has changed
            self._kept.pop(name, None)
            self._good.pop(name, None)
            if found is not None:
                self._keep(name, until, found)
                while len(self._good) >= KEPT_MAX:
                    self._good.pop(next(iter(self._good)))
                self._good[name] = None
        return found

    def _keep(self, name: str, until: float, grant: Grant) -> None:
        while len(self._kept) >= KEPT_MAX:
            self._kept.pop(next(iter(self._kept)))
        self._kept[name] = (until, grant)

    def _read_trusted(self, who: str) -> Grant:
        found = self._store.read(lambda tx: agents.find_everywhere(tx, who))
        if len(found) != 1:
            raise forbidden("agent_not_found", "the agent of this network is not known, or several tenants have it")
        tenant, agent = found[0]
        tenancy = self._store.read(lambda tx: _tenancy(tx, tenant), (tenant,))
        return Grant(tenant, "", agent, None, frozenset({"send"}), transactional=False, tenancy=tenancy)

    def _read(self, raw: str) -> Grant | None:
        key = self._store.read(lambda tx: keys.find_key(tx, raw))
        return None if key is None else self._store.read(lambda tx: _granted(tx, key), (key.tenant,))


def _granted(tx: Tx, key: keys.Key) -> Grant:
    return Grant(
        key.tenant,
        key.id,
        key.agent,
        key.mailboxes,
        with_implied(key.scopes),
        key.transactional,
        _tenancy(tx, key.tenant),
        key.prefix,
        key.per_minute,
        key.used_at,
        _limits(tx, key),
    )


def _in_force(tx: Tx, tenant: str, key_id: str) -> Grant | None:
    key = keys.known(tx, tenant, key_id)
    return _granted(tx, key) if key.status == "active" else None


def _limits(tx: Tx, key: keys.Key) -> tuple[tuple[str, int], ...]:
    """The limits that bind a key: its own, and those of the keys that it descends from, who share them with it."""
    known = {} if key.created_by is None else {one.id: one for one in keys.list_keys(tx, key.tenant)}
    line = [key]
    while (maker := known.pop(line[-1].created_by or "", None)) is not None:
        line.append(maker)
    return tuple((one.id, one.per_minute) for one in line if one.per_minute is not None)


def _tenancy(tx: Tx, tenant: str) -> Tenancy:
    profile = tx.profile(tenant)
    boxes = tuple(agents.list_mailboxes(tx, tenant))
    domains = frozenset(box.address.rpartition("@")[2] for box in boxes)
    return Tenancy(profile, profile.rules, boxes, domains)


def unauthorized() -> Refusal:
    """One wording for no key, a malformed one, an unknown one and a revoked one."""
    return Refusal(401, "unauthorized", "a valid API key is needed: Authorization: Bearer gk_live_...")


def acting(tx: Tx, grant: Grant, named: Iterable[str], *, operator: bool = False) -> str | None:
    """The id of the agent as which a caller acts, who may have named one by id or name, in several places.

    A bound key acts as its own agent alone. Another key names an agent that no key is bound to; `operator` lets a person
    name any. `None` where nobody is named. Raises Refusal: agent_not_found, agent_mismatch, agent_bound_to_key.
    """
    ids = {known_agent(tx, grant.tenant, who).id for who in named}
    if grant.agent is not None:
        if ids - {grant.agent}:
            raise forbidden(
                "agent_mismatch", "the key is bound to another agent", keyAgentId=grant.agent, nextAction=OWN_AGENT
            )
        return grant.agent
    if len(ids) > 1:
        raise forbidden("agent_mismatch", "more than one agent is named", nextAction=ONE_AGENT)
    for agent in ids:
        if not operator and keys.is_bound(tx, grant.tenant, agent):
            raise forbidden(
                "agent_bound_to_key", "another key is bound to this agent", agentId=agent, nextAction=FREE_AGENT
            )
        return agent
    return None


def known_agent(tx: Tx, tenant: str, who: str) -> agents.Agent:
    """The agent of this id or name. Raises Refusal 404."""
    found = agents.find_agent(tx, tenant, who) if who.isprintable() else None
    if found is None:
        raise missing("agent_not_found", "there is no such agent")
    return found
