"""What an operator wants to know of the database: does it keep what it has acknowledged, and does its clock agree?"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa

from gateway.store import Store, agents, keys
from gateway.store.dialect import Dialect
from gateway.store.schema import tenants
from gateway.store.tx import Tx

US = 1_000_000


@dataclass(frozen=True, slots=True)
class Trait:
    """One property of the database as the gateway's own connection sees it; `wanted` is empty where any value will do."""

    name: str
    value: str
    wanted: str = ""

    @property
    def right(self) -> bool:
        """Whether the value is the one that is wanted."""
        return not self.wanted or self.value == self.wanted


@dataclass(frozen=True, slots=True)
class Health:
    """The database's traits, and how far its clock is ahead of this process's, in seconds."""

    traits: tuple[Trait, ...]
    ahead: float


def _pragma(name: str) -> Callable[[Dialect], sa.Executable]:
    return lambda _: sa.text(f"PRAGMA {name}")


def _show(name: str) -> Callable[[Dialect], sa.Executable]:
    return lambda _: sa.text(f"SHOW {name}")


def _sqlite_version(_: Dialect) -> sa.Executable:
    return sa.text("SELECT sqlite_version() AS version")


SQLITE = (("journal_mode", "wal"), ("synchronous", "FULL"), ("foreign_keys", "1"))
POSTGRES = (("synchronous_commit", ""), ("fsync", "on"), ("full_page_writes", "on"), ("server_version", ""))
SYNCHRONOUS = {"0": "OFF", "1": "NORMAL", "2": "FULL", "3": "EXTRA"}
"""How SQLite names its levels; it answers with the number."""


def look(store: Store) -> Health:
    """Ask the connection that writes; it waits for the store's lock and changes nothing. Raises StoreUnavailableError."""

    def work(tx: Tx) -> Health:
        traits = _sqlite(tx) if store.dialect.name == "sqlite" else _postgres(tx)
        return Health(traits, tx.now_us / US - time.time())

    return store.write([], work)


def _sqlite(tx: Tx) -> tuple[Trait, ...]:
    found = [Trait("version", str(tx.rows(_sqlite_version, {})[0]["version"]))]
    for name, wanted in SQLITE:
        value = str(tx.rows(_pragma(name), {})[0][name])
        found.append(Trait(name, SYNCHRONOUS.get(value, value) if name == "synchronous" else value, wanted))
    return tuple(found)


def _postgres(tx: Tx) -> tuple[Trait, ...]:
    found = []
    for name, wanted in POSTGRES:
        value = str(tx.rows(_show(name), {})[0][name])
        weak = name == "synchronous_commit" and value in ("off", "local")
        found.append(Trait(name, value, "on" if weak else wanted))
    return tuple(found)


def _tenants(_: Dialect) -> sa.Executable:
    return sa.select(tenants.c.id).order_by(tenants.c.created_us, tenants.c.id)


def overview(store: Store) -> list[tuple[str, int, int]]:
    """Each tenant, oldest first, with the number of its mailboxes and of its operator keys that are in force."""

    def work(tx: Tx) -> list[tuple[str, int, int]]:
        return [(name, len(agents.list_mailboxes(tx, name)), _operators(tx, name)) for name in _names(tx)]

    return store.read(work)


def _names(tx: Tx) -> list[str]:
    return [row["id"] for row in tx.rows(_tenants, {})]


def _operators(tx: Tx, tenant: str) -> int:
    return sum("operator" in key.scopes and key.status == "active" for key in keys.list_keys(tx, tenant))
