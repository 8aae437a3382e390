"""Contacts: one row per person with lease, fencing token and last contact. What is wished for them is shaped here.

Taking, keeping and giving back is in `leases.py`; a `Book` is what it reads and writes.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gateway.store import events, forbid, lease_events
from gateway.store.dialect import Dialect, Row
from gateway.store.facts import contact_rows
from gateway.store.schema import agents, contacts
from gateway.store.tx import Tx

COLUMNS = tuple(contacts.c)
LEASE = ("lease_id", "owner", "token", "foreign_token", "intent", "address", "acquired_us", "expires_us")
"""The columns that a lease is; who was last in touch is written by others."""


class AnothersLeaseError(Exception):
    """The lease is another agent's, and the asking key may not touch that one's leases."""

    def __init__(self, agent: str) -> None:
        """Name the agent that has it."""
        super().__init__(f"the lease is another agent's: {agent}")
        self.agent = agent


@dataclass(frozen=True, slots=True)
class Lease:
    """A live lease; times UTC."""

    id: str
    contact: str
    address: str
    agent: str
    agent_name: str
    token: int
    intent: str
    acquired_at: datetime
    expires_at: datetime
    withdrew: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """Why a contact cannot be had now: by a lease, or by mail in flight (kind "send"); until when, as far as is known.

    `retry_at` is when to come back: most mail in flight is settled long before its time is over.
    """

    agent: str
    agent_name: str
    until: datetime
    kind: str
    retry_at: datetime
    request: str | None = None


@dataclass(frozen=True, slots=True)
class Acquire:
    """A wish for a contact: `seconds` to hold it; an operator takes it over at once and says why.

    Where leases are not `enforced`, it stops no mail.
    """

    tenant: str
    agent: str
    contact: str
    address: str
    intent: str
    seconds: float
    flight_max: float = 3600.0
    operator_reason: str | None = None
    enforced: bool = True


@dataclass(frozen=True, slots=True)
class Renew:
    """A wish to keep a lease for `seconds` from now: it must live, and the token must be the newest.

    `agent` limits it to that agent's own leases. `bound` says whether the asking key is bound to that agent: then it has
    no other's lease, and an unbound key has none of an agent that acts by its own key alone; `None` asks for neither.
    """

    tenant: str
    agent: str | None
    lease: str
    token: int | None
    seconds: float
    bound: bool | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """A wish to give a lease back; `token` limits it to the newest one, `agent` and `bound` as in `Renew`."""

    tenant: str
    agent: str | None
    lease: str
    token: int | None = None
    bound: bool | None = None


@dataclass(frozen=True, slots=True)
class Released:
    """Whether a lease was given back, else why not; `in_flight` lists requests that still hold the contact."""

    released: bool
    reason: str = ""
    in_flight: tuple[str, ...] = ()
    contact: str = ""


Wish = Acquire | Renew | Release


def _by_lease(d: Dialect) -> sa.Executable:
    return sa.select(contacts).where(d.owned(contacts.c.lease_id, "ids"))


def _names(d: Dialect) -> sa.Executable:
    return sa.select(agents.c.id, agents.c.name).where(d.owned(agents.c.id, "ids"))


def _upsert(d: Dialect) -> sa.Executable:
    insert = d.upsert(contacts).from_select([c.name for c in COLUMNS], d.records("rows", COLUMNS))
    made: sa.Executable = insert.on_conflict_do_update(
        index_elements=[contacts.c.tenant, contacts.c.key], set_={n: insert.excluded[n] for n in LEASE}
    )
    return made


class Book:
    """The contacts of one tenant that some wishes are about: read at once, changed in the wishes' order, written at once.

    `freed` are contacts whose lease was given back before its end.
    """

    def __init__(self, tx: Tx, tenant: str, wishes: Iterable[Wish]) -> None:
        """Read the contacts, the mail in flight to them, and the names of who wants one or has such mail."""
        self.tx, self.tenant, self.now = tx, tenant, tx.now_of(tenant)
        self.freed: set[str] = set()
        self._changed: dict[str, dict[str, Any]] = {}
        self._happened: list[events.Event] = []
        self._told: int | None = None
        keys, ids, who = set[str](), set[str](), set[str]()
        for wish in wishes:
            if isinstance(wish, Acquire):
                keys.add(wish.contact)
                who.add(wish.agent)
            else:
                ids.add(wish.lease)
        found = self._look(contact_rows, "keys", keys) + self._look(_by_lease, "ids", ids)
        self.rows: dict[str, dict[str, Any]] = {}
        for row in found:
            self.rows.setdefault(row["key"], dict(row))
        self._leases = {row["lease_id"]: row for row in self.rows.values()}
        # A permit, which takes no tenant's lock, comes before this look or after it.
        self.flights: defaultdict[str, list[Row]] = defaultdict(list)
        for row in forbid.live_to(tx, tenant, sorted(keys | self.rows.keys())):
            self.flights[row["contact"]].append(row)
        who |= {row["actor"] for rows in self.flights.values() for row in rows}
        named = self._look(_names, "ids", who) if keys else []
        self._names = {row["id"]: row["name"] for row in named}

    def _look(self, builder: Any, name: str, values: Iterable[str]) -> list[Row]:  # noqa: ANN401  (a statement)
        values = sorted(values)
        return self.tx.rows(builder, {"tenant": self.tenant, name: self.tx.array(values)}) if values else []

    def take_over(self, contact: str, agent: str) -> tuple[str, ...]:
        """Stop the mail in flight of everybody but `agent` to a contact. Returns the request ids."""
        self._tell()
        return forbid.take_over(self.tx, self.tenant, contact, agent)

    def name(self, agent: str) -> str:
        """An agent's name; "" where it has gone."""
        return str(self._names.get(agent, ""))

    def of_lease(self, lease: str) -> dict[str, Any] | None:
        """The row of the contact that this lease is on; `None` where the contact has another lease since, or none."""
        row = self._leases.get(lease)
        return row if row is not None and row["lease_id"] == lease else None

    def change(self, key: str, **values: Any) -> dict[str, Any]:
        """Change the row of a contact, or begin it. Returns it."""
        fresh = {"tenant": self.tenant, "key": key, "last_us": None, "last_by": ""}
        row = self._changed[key] = self.rows.setdefault(key, fresh)
        row |= values
        return row

    def tell(self, event: events.Event) -> None:
        """Note what has happened."""
        self._happened.append(event)

    def told(self) -> int:
        """Up to when it has been told which leases have run out (microseconds)."""
        if self._told is None:
            self._told = lease_events.told(self.tx, self.tenant)
        return self._told

    def write(self) -> None:
        """Write what was changed and what has happened."""
        if self._changed:
            rows = [{c.name: row[c.name] for c in COLUMNS} for _, row in sorted(self._changed.items())]
            self.tx.run(_upsert, {"rows": json.dumps(rows)})
        forbid.bring_forward(self.tx, self.tenant, self.freed)
        self._tell()

    def _tell(self) -> None:
        events.append(self.tx, self._happened)
        self._happened = []
