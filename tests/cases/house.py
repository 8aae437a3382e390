"""The gateway that a case is played on: a store, a smarthost that keeps a record, keys, a clock that is moved.

Where a case kills it or starts several, gateways are processes (`tests/servers.py`); else one runs in this loop, put
together as `gateway serve` does it, with its doors on the loopback.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy as sa

from gateway.app import Gateway
from gateway.core.address import parse
from gateway.core.delivery import State
from gateway.settings import given
from gateway.sink import Sink
from gateway.store import Store, agents, dialect_of, forbid, keys, migrate
from gateway.store.clock import from_us
from gateway.store.dialect import Dialect
from gateway.store.facts import slot, window
from gateway.store.schema import counters, deliveries, sends
from gateway.store.tx import Profile, Tx
from tests import servers
from tests.databases import Databases
from tests.smtp import ca_file, server_files, server_tls
from tests.world import set_time

HOST = "gw.example.com"
TENANT = "default"
AGENTS = ("agent-a", "agent-b")
OPERATOR = "operator"
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
PATIENCE = 60.0
LOOK = 0.01
BUSY = (State.CLAIMED, State.PERMITTED)
DUE = (State.QUEUED, State.SCHEDULED)

_made: dict[str, dict[str, str]] = {}
"""The raw keys of the prepared store, by kind of database."""


def prepared(url: str) -> None:
    """Fill an empty database: two agents with a mailbox and a bound key each, an operator; the `prepare` of Databases."""
    dialect = dialect_of(url)
    migrate(dialect)
    with contextlib.closing(Store(dialect)) as store:
        set_time(store, BEGINNING)
    with contextlib.closing(Store(dialect)) as store:  # time never runs backwards for a process that has seen it
        store.write((), lambda tx: agents.add_tenant(tx, TENANT))
        _made[url.partition(":")[0]] = store.write((TENANT,), _seed)


def _seed(tx: Tx) -> dict[str, str]:
    raw: dict[str, str] = {}
    known = agents.register(tx, [agents.Register(TENANT, name) for name in AGENTS])
    for name, registered in zip(AGENTS, known, strict=True):
        box = agents.add_mailbox(tx, TENANT, parse(f"{name}@{HOST}"))
        wish = keys.NewKey(TENANT, name, ("read", "send", "manage"), (box.id,), registered.agent.id)
        ((_, raw[name]),) = keys.create_keys(tx, [wish])
    ((_, raw[OPERATOR]),) = keys.create_keys(tx, [keys.NewKey(TENANT, OPERATOR, keys.SCOPES)])
    return raw


@dataclass
class House:
    """A place to play one case; `settings` are the gateway's, `outside` makes gateways processes, `smtp` opens that door."""

    url: str
    keys: dict[str, str]
    sink: Sink
    folder: Path
    settings: dict[str, Any]
    outside: bool = False
    start_at: datetime = START
    smtp: bool = False
    gateway: Gateway | None = None
    served: list[servers.Served] = field(default_factory=list)
    moved: float = 0.0
    _looker: Store | None = None
    _clients: list[httpx.AsyncClient] = field(default_factory=list)

    # --- gateways -----------------------------------------------------------------------------------------------------

    async def up(self, count: int = 1, armed: dict[str, Any] | None = None, others: str = "relay") -> None:
        """Start a gateway, and `count` - 1 more with the roles `others`; `armed` are steps of `tests/faults/armed.py`."""
        if not self.outside:
            values = self.settings | self._doors() | {"database_url": self.url, "http_bind": "127.0.0.1:0"}
            self.gateway = Gateway(given(values))
            await self.gateway.start()
            ports = [self.gateway.http_port]
        else:
            await self.process("http,smtp,relay" if self.smtp else "http,relay", armed)
            await asyncio.gather(*(self.process(others, armed) for _ in range(count - 1)))
            ports = [served.port for served in self.served if served.port]
        self._clients = [httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) for port in ports]

    async def process(self, roles: str, armed: dict[str, Any] | None = None) -> None:
        """Start one more process."""
        extra = {"ARMED": json.dumps({"steps": armed})} if armed else {}
        module = "tests.faults.armed" if armed else "gateway"
        plain = {name: value for name, value in self.settings.items() if name != "policies"}
        config = self.folder / "policies.toml"
        config.write_text(_toml(self.settings.get("policies", {})), encoding="utf-8")
        plain |= self._doors() | {
            "config": config,
            "allow_special_use": ",".join(self.settings.get("allow_special_use", ())),
        }
        started = asyncio.to_thread(servers.start, self.url, roles=roles, module=module, extra=extra, **plain)
        self.served.append(await started)

    def _doors(self) -> dict[str, Any]:
        """Settings of the SMTP door, with both listeners."""
        if not self.smtp:
            return {}
        pair = server_files(self.folder)
        return {"smtp_bind": "127.0.0.1:0", "smtps_bind": "127.0.0.1:0", "tls_cert": pair, "tls_key": pair}

    def smtp_port(self, listener: str) -> int:
        """The port of a listener of the SMTP door: submission (STARTTLS) or submissions."""
        secure = {"submission": False, "submissions": True}[listener]
        if self.gateway is None:
            return self.served[0].smtp_port(secure=secure)
        assert self.gateway.smtp is not None
        sock = self.gateway.smtp.secure if secure else self.gateway.smtp.plain
        assert sock is not None
        return int(sock.getsockname()[1])

    async def down(self, *, kill: bool = False) -> None:
        """Stop every gateway, or kill it (processes only)."""
        for client in self._clients:
            await client.aclose()
        self._clients.clear()
        if self.gateway is not None:
            await self.gateway.stop()
            self.gateway = None
        for served in self.served:
            if served.process.poll() is None:
                await asyncio.to_thread(served.kill if kill else served.stop)
        self.served.clear()

    async def died(self) -> None:
        """Return once the first process has ended by itself; the others are killed."""
        await asyncio.to_thread(self.served[0].process.wait, PATIENCE)
        await self.down(kill=True)

    async def call(self, method: str, path: str, by: str, *, at: int = 0, **more: Any) -> httpx.Response:
        """Call a route with the key of `by`; `at` chooses among gateways that take calls."""
        headers = {"Authorization": f"Bearer {self.keys[by]}"} | dict(more.pop("headers", {}) or {})
        client = self._clients[at % len(self._clients)]
        return await client.request(method, path, headers=headers, **more)

    # --- the store ----------------------------------------------------------------------------------------------------

    @property
    def store(self) -> Store:
        """A store to look into, beside the gateway's."""
        if self._looker is None:
            self._looker = Store(dialect_of(self.url))
        return self._looker

    def let_go(self) -> None:
        """Close the store that was looked into; it is opened anew when it is needed."""
        if self._looker is not None:
            self._looker.close()
            self._looker = None

    @property
    def now(self) -> datetime:
        """The store's time."""
        return self.store.read(lambda tx: tx.now)

    async def set_clock(self, to: datetime) -> None:
        """Set the store's clock, and with it the smarthost's."""
        self.moved += (to - self.now).total_seconds()
        await asyncio.to_thread(set_time, self.store, to)

    async def advance(self, seconds: float) -> None:
        """Move the clock on."""
        await self.set_clock(self.now + timedelta(seconds=seconds))

    def write(self, work: Callable[[Tx], object]) -> None:
        """Do something to the tenant in one transaction."""
        self.store.write((TENANT,), work)

    def alias(self, aliases: dict[str, str]) -> None:
        """Set the tenant's domain aliases."""

        def save(tx: Tx) -> None:
            agents.save_profile(tx, TENANT, Profile(aliases, own_domains=frozenset({HOST})))

        self.write(save)

    def freeze(self) -> None:
        """Let all mails have come in at one instant: the store's clock cannot stand still, so their rows are told so."""
        self.write(lambda tx: tx.run(_at_one_instant, {"at": tx.now_us}))

    def use_up(self) -> None:
        """Let one unit be used up in this hour, by nobody in particular."""

        def use(tx: Tx) -> None:
            at = slot("tenant", TENANT, "hour", window(from_us(tx.now_us), "hour")[0])
            tx.run(_one_unit, {"tenant": TENANT, "slot": at, "used": 1})

        self.write(use)

    def pause(self, *, paused: bool) -> None:
        """Close or open the relay."""
        self.store.write((), lambda tx: forbid.pause_relay(tx, paused=paused))

    async def quiet(self, seconds: float = PATIENCE) -> None:
        """Return once nothing is on its way or due; raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while await asyncio.to_thread(self._standing):  # noqa: ASYNC110 - others write into the store
                await asyncio.sleep(LOOK)

    def _standing(self) -> bool:
        return self.store.read(lambda tx: tx.row(_standing, {"now": tx.now_us}) is not None)


def _at_one_instant(_: Dialect) -> sa.Executable:
    return sa.update(sends).values(created_us=sa.bindparam("at"))


def _one_unit(dialect: Dialect) -> sa.Executable:
    made: sa.Executable = dialect.upsert(counters).on_conflict_do_update(
        index_elements=[counters.c.tenant, counters.c.slot], set_={"used": 1}
    )
    return made


def _standing(_: Dialect) -> sa.Executable:
    busy, due = (sa.or_(*(deliveries.c.state == sa.literal_column(f"'{one}'") for one in some)) for some in (BUSY, DUE))
    ripe = sa.and_(due, deliveries.c.due_us <= sa.bindparam("now"))
    return sa.select(deliveries.c.id).where(sa.or_(busy, ripe)).limit(1)


def _toml(policies: dict[str, dict[str, Any]]) -> str:
    lines = []
    for name, options in policies.items():
        lines += [f"[policies.{name}]", *(f"{option} = {json.dumps(value)}" for option, value in options.items())]
    return "\n".join(lines) + "\n"


@contextlib.asynccontextmanager
async def a_house(
    databases: Databases, folder: Path, script: str, start_at: datetime, **settings: Any
) -> AsyncIterator[House]:
    """A house with a smarthost that plays `script`; `outside`, `smtp`, `login` and `tls` beside the gateway's settings."""
    outside, login, tls = settings.pop("outside", False), settings.pop("login", ""), settings.pop("tls", False)
    smtp = settings.pop("smtp", False)
    with databases.fresh(prepared) as url:
        moved: list[House] = []
        sink = Sink(
            script=script,
            tls=server_tls() if tls else None,
            clock=lambda: asyncio.get_running_loop().time() + (moved[0].moved if moved else 0.0),
        )
        async with sink:
            scheme = "smtp+starttls" if tls else "smtp"
            at = f"{scheme}://{login + '@' if login else ''}127.0.0.1:{sink.port}"
            usual: dict[str, Any] = {"smarthost": at, "hostname": HOST, "claim_seconds": 5}
            if tls:
                usual["smarthost_ca"] = str(ca_file(folder))
            with contextlib.closing(Store(dialect_of(url))) as passing:  # no gateway has seen another time
                set_time(passing, start_at)
            house = House(
                url, dict(_made[url.partition(":")[0]]), sink, folder, usual | settings, outside, start_at, smtp
            )
            moved.append(house)
            try:
                yield house
            finally:
                await house.down(kill=True)
                house.let_go()
