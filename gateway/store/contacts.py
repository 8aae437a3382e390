"""Contacts: one row per person with lease, fencing token and last contact. What is wished for them is shaped here.

Taking, keeping and giving back is in `leases.py`; a `Book` is what it reads and writes.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gateway.store import events, forbid, lease_events
from gateway.store.dialect import Dialect, Row
from gateway.store.facts import contact_rows, live_rows
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

    `retry_at` is when to come back: most mail in flight is settled long before its time is over. `left` are the seconds
    until then by the store's clock, which nobody else's need agree with.
    """

    agent: str
    agent_name: str
    until: datetime
    kind: str
    retry_at: datetime
    left: float
    request: str | None = None


@dataclass(frozen=True, slots=True)
class Acquire:
    """A wish for a contact: `seconds` to hold it; an operator takes it over at once and says why.

    Where leases are not `enforced`, it stops no mail. One that `keeps` extends the lease that the agent has, and takes
    nothing anew.
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
    keeps: bool = False


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

    `freed` are contacts whose lease was given back before its end, `under_way` are live deliveries to those that may be.
    Who only keeps a lease, or finds another's, touches no mail.
    """

    def __init__(self, tx: Tx, tenant: str, wishes: Sequence[Wish]) -> None:
        """Read the contacts, the mail in flight that matters to the wishes, and the names of who wants a contact."""
        self.tx, self.tenant, self.now = tx, tenant, tx.now_of(tenant)
        self.freed: set[str] = set()
        self._changed: dict[str, dict[str, Any]] = {}
        self._happened: list[events.Event] = []
        self._told: int | None = None
        taking = [wish for wish in wishes if isinstance(wish, Acquire)]
        leases = {wish.lease for wish in wishes if not isinstance(wish, Acquire)}
        found = self._look(contact_rows, "keys", {wish.contact for wish in taking}) + self._look(
            _by_lease, "ids", leases
        )
        self.rows: dict[str, dict[str, Any]] = {}
        for row in found:
            self.rows.setdefault(row["key"], dict(row))
        self._leases = {row["lease_id"]: row for row in self.rows.values()}
        self._flights: dict[str, list[Row]] = {}
        back = [self._leases.get(wish.lease) for wish in wishes if isinstance(wish, Release)]
        given = {row["key"] for row in back if row is not None}
        free = {w.contact for w in taking if w.operator_reason is not None or not self.lives(w.contact)}
        self._fly(free | (given & {w.contact for w in taking}))  # at once: rows are locked in the order of ids
        self.under_way: defaultdict[str, list[Row]] = defaultdict(list)
        for row in self._look(live_rows, "keys", given):
            self.under_way[row["contact"]].append(row)
        self._names: dict[str, str] = {}
        others = {row["actor"] for rows in self._flights.values() for row in rows}
        self._learn({wish.agent for wish in taking} | others)

    def _look(self, builder: Any, name: str, values: Iterable[str]) -> list[Row]:  # noqa: ANN401  (a statement)
        values = sorted(values)
        return self.tx.rows(builder, {"tenant": self.tenant, name: self.tx.array(values)}) if values else []

    def _fly(self, keys: Iterable[str]) -> None:
        """Read what is in flight to contacts that may be taken, and lock it.

        A permit, which takes no tenant's lock, comes before this look or after it.
        """
        keys = sorted(keys)
        self._flights |= {key: [] for key in keys}
        for row in forbid.live_to(self.tx, self.tenant, keys) if keys else ():
            self._flights[row["contact"]].append(row)

    def _learn(self, agents: Iterable[str]) -> None:
        self._names |= dict.fromkeys(agents, "") | {row["id"]: row["name"] for row in self._look(_names, "ids", agents)}

    def lives(self, contact: str) -> bool:
        """Whether a contact has a lease that lives."""
        row = self.rows.get(contact)
        return row is not None and bool(row["expires_us"] > self.now)

    def flights(self, contact: str) -> list[Row]:
        """The live deliveries to a contact that is to be taken, locked."""
        return self._flights[contact]

    def take_over(self, contact: str, agent: str) -> tuple[str, ...]:
        """Stop the mail in flight of everybody but `agent` to a contact. Returns the request ids."""
        self._tell()
        return forbid.take_over(self.tx, self.tenant, contact, agent)

    def name(self, agent: str) -> str:
        """An agent's name; "" where it has gone."""
        if agent not in self._names:
            self._learn([agent])
        return self._names[agent]

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
