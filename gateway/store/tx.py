"""One transaction: run named statements, know the time, know the tenant's profile."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gateway.core.address import KeyRules
from gateway.store.clock import from_us
from gateway.store.dialect import Builder, Dialect, Row, compiled
from gateway.store.schema import clock, tenants

Params = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Profile:
    """What a tenant has set once for all its mail.

    `aliases` map domains to domains, `internal` are person keys and `own_domains` domains of the tenant's own people
    (no lease, no cooldown); `unknown` is the setting of SEMANTICS 5 by kind, where it differs from the gateway's.
    `cooldown` in seconds, `None` where the gateway's holds; `allowed` is the tenant's allow list (core/allowlist), `None`
    where there is none; `require_consent` turns the policy on for the tenant; `humanizer` is for other programs
    (core/humanizer).
    """

    aliases: Mapping[str, str] = field(default_factory=dict)
    internal: frozenset[str] = frozenset()
    own_domains: frozenset[str] = frozenset()
    unknown: Mapping[str, str] = field(default_factory=dict)
    cooldown: int | None = None
    allowed: frozenset[str] | None = None
    require_consent: bool = False
    physical_address: str | None = None
    humanizer: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def load(cls, document: str) -> "Profile":
        """Read a profile from the tenant's row."""
        raw = json.loads(document)
        return cls(
            raw.get("aliases", {}),
            frozenset(raw.get("internal", ())),
            frozenset(raw.get("own_domains", ())),
            raw.get("unknown", {}),
            raw.get("cooldown"),
            None if raw.get("allowed") is None else frozenset(raw["allowed"]),
            raw.get("require_consent", False),
            raw.get("physical_address"),
            raw.get("humanizer", {}),
        )

    def dump(self) -> str:
        """Write the profile for the tenant's row."""
        return json.dumps(
            {
                "aliases": dict(self.aliases),
                "internal": sorted(self.internal),
                "own_domains": sorted(self.own_domains),
                "unknown": dict(self.unknown),
                "cooldown": self.cooldown,
                "allowed": None if self.allowed is None else sorted(self.allowed),
                "require_consent": self.require_consent,
                "physical_address": self.physical_address,
                "humanizer": dict(self.humanizer),
            }
        )

    @property
    def rules(self) -> KeyRules:
        """The rules by which this tenant's person keys are made."""
        return KeyRules(aliases=self.aliases)

    @property
    def required(self) -> frozenset[str]:
        """The policies that the tenant wants enforced for all its mail."""
        return frozenset({"consent"}) if self.require_consent else frozenset()

    def is_internal(self, key: str, domain: str) -> bool:
        """Whether a recipient is one of the tenant's own."""
        return domain in self.own_domains or key in self.internal


def read_clock(d: Dialect) -> sa.Executable:
    """The database's clock with its offset (a seam for tests), the tenants' last times and profiles."""
    now = (d.micros() + clock.c.offset_us).label("now_us")
    join = tenants.join(clock, sa.true())
    columns = (tenants.c.id, tenants.c.last_us, tenants.c.profile)
    return sa.select(*columns, now).select_from(join).where(d.within(tenants.c.id, "ids"))


def read_plain_clock(d: Dialect) -> sa.Executable:
    """The database's clock with its offset, where no tenant is concerned."""
    latest = sa.select(sa.func.max(tenants.c.last_us)).scalar_subquery()
    return sa.select((d.micros() + clock.c.offset_us).label("now_us"), clock.c.relay_paused, latest.label("last_us"))


def _gate(_: Dialect) -> sa.Executable:
    return sa.select(clock.c.relay_paused)


def _offset(_: Dialect) -> sa.Executable:
    return sa.select(clock.c.offset_us)


def _set_offset(_: Dialect) -> sa.Executable:
    return sa.update(clock).values(offset_us=sa.bindparam("offset"))


def clock_offset(tx: "Tx") -> int:
    """By how many microseconds the store's clock is ahead of the database's: 0 but in tests (ARCHITECTURE 7, seams)."""
    return int(tx.rows(_offset, {})[0]["offset_us"])


def set_clock_offset(tx: "Tx", offset_us: int) -> None:
    """Move the store's clock for all processes, from the next transaction on; time still never runs backwards."""
    tx.run(_set_offset, {"offset": offset_us})


def write_clock(_: Dialect) -> sa.Executable:
    """Keep the tenant's last time."""
    return sa.update(tenants).where(tenants.c.id == sa.bindparam("t")).values(last_us=sa.bindparam("now_us"))


class Statements:
    """The texts of all statements for one database, compiled when first used."""

    def __init__(self, dialect: Dialect) -> None:
        """Start with none."""
        self.dialect = dialect
        self._made: dict[Builder, tuple[str, dict[str, Any]]] = {}

    def made(self, builder: Builder) -> tuple[str, dict[str, Any]]:
        """The statement's text and its constants."""
        found = self._made.get(builder)
        if found is None:
            found = self._made[builder] = compiled(self.dialect, builder)
        return found


class Tx:
    """An open transaction; `now` is the store's time, read after the locks were taken."""

    def __init__(self, dialect: Dialect, statements: Statements, cursor: Any) -> None:  # noqa: ANN401
        """Wrap a cursor whose transaction is open."""
        self.dialect = dialect
        self._statements = statements
        self._cursor = cursor
        self.now_us = 0
        self._serial = 0
        self.tenants: dict[str, tuple[int, Profile]] = {}

    @property
    def now(self) -> datetime:
        """The store's time (UTC)."""
        return from_us(self.now_us)

    def now_of(self, tenant: str) -> int:
        """The tenant's own time in microseconds; one transaction may serve several tenants."""
        return self.tenants[tenant][0] if tenant in self.tenants else self.now_us

    def serial(self) -> int:
        """The next number in this transaction."""
        self._serial += 1
        return self._serial

    def profile(self, tenant: str) -> Profile:
        """The tenant's profile; raises KeyError where the transaction does not concern this tenant."""
        return self.tenants[tenant][1]

    def relay_paused(self) -> bool:
        """Whether an operator has stopped the relay: then nothing is claimed or permitted."""
        return bool(self.rows(_gate, {})[0]["relay_paused"])

    def _execute(self, builder: Builder, params: Params) -> None:
        text, constants = self._statements.made(builder)
        self._cursor.execute(text, {**params, **constants} if constants else params)

    def rows(self, builder: Builder, params: Params) -> list[Row]:
        """Run a statement and return all its rows, which answer by column name."""
        self._execute(builder, params)
        rows: list[Row] = self._cursor.fetchall()
        return rows

    def row(self, builder: Builder, params: Params) -> Row | None:
        """Run a statement and return its first row, if any."""
        rows = self.rows(builder, params)
        return rows[0] if rows else None

    def run(self, builder: Builder, params: Params) -> int:
        """Run a statement and return how many rows it changed."""
        self._execute(builder, params)
        return int(self._cursor.rowcount)

    def many(self, builder: Builder, params: Sequence[Params]) -> None:
        """Run a statement once for each set of parameters."""
        if len(params) == 1:
            self._execute(builder, params[0])
        elif params:
            text, constants = self._statements.made(builder)
            self._cursor.executemany(text, [{**p, **constants} for p in params] if constants else params)

    def array(self, values: Iterable[str]) -> Any:  # noqa: ANN401
        """The value of a list parameter."""
        return self.dialect.array(values)
