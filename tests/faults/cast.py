"""Who takes part under load: a tenant and a neighbour in the same store, each with an operator and two agents of its own."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.cli.found import found
from gateway.core.address import parse
from gateway.store import Store, agents, keys
from gateway.store.tx import Tx

TENANT, NEIGHBOUR = "default", "neighbour"
AGENTS = ("one", "two")


@dataclass(frozen=True, slots=True)
class Member:
    """Who asks by a key of a tenant; an agent's key is bound to it."""

    tenant: str
    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Company:
    """A tenant's operator and its agents."""

    operator: Member
    agents: Sequence[Member] = ()

    @property
    def tenant(self) -> str:
        """The tenant's name."""
        return self.operator.tenant

    @property
    def members(self) -> list[Member]:
        """All who may send."""
        return [self.operator, *self.agents]


def companies(url: str, key: str) -> list[Company]:
    """Make the agents of the tenant whose operator has this key, and a neighbour, past the gateway."""
    store = Store.open(url)
    try:
        other = found(store, NEIGHBOUR, parse("agent@neighbour.example.com")).raw_key
        assert other is not None
        return [_company(store, Member(TENANT, "operator", key)), _company(store, Member(NEIGHBOUR, "operator", other))]
    finally:
        store.close()


def _company(store: Store, operator: Member) -> Company:
    tenant = operator.tenant

    def hire(tx: Tx) -> list[Member]:
        hired = agents.register(tx, [agents.Register(tenant, name) for name in AGENTS])
        wishes = [keys.NewKey(tenant, one.agent.name, agent=one.agent.id) for one in hired]
        return [Member(tenant, key.label, raw) for key, raw in keys.create_keys(tx, wishes)]

    return Company(operator, store.write((tenant,), hire))
