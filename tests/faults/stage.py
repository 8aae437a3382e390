"""Where races and kills are played: a store, a sink, gateways and agents as processes, and the history of all they do."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from gateway.sink import Mail, Sink
from gateway.store import dialect_of, schema
from tests import servers
from tests.databases import Prepare
from tests.faults.agent import now
from tests.faults.meetings import Meeting
from tests.history import Arrival, Call, History, Violation, arrivals_of, read_rows, violations
from tests.servers import Served

HOST = "gw.example.com"
ACTS = {
    "send": ("POST", "/v1/agent/request-send"),
    "batch": ("POST", "/v1/agent/batch/request-send"),
    "acquire": ("POST", "/v1/agent/coordination/lease"),
    "renew": ("PUT", "/v1/agent/coordination/lease/{lease}"),
    "release": ("DELETE", "/v1/agent/coordination/lease/{lease}"),
    "suppress": ("POST", "/v1/suppressions"),
    "register": ("POST", "/v1/agent/register"),
    "make_key": ("POST", "/v1/agent/keys"),
    "resolve": ("POST", "/v1/agent/requests/{request}/resolve"),
    "cancel": ("DELETE", "/v1/agent/sends/{request}"),
    "find": ("GET", "/v1/agent/requests?idempotencyKey={key}"),
}
AHEAD = 0.004
"""Seconds between the word to begin and the barrier: the orders must have come through by then."""
LOOK = 0.02
SETTLED = ("relayed", "unknown", "blocked", "bounced", "cancelled", "expired", "delivered")


@dataclass(frozen=True, slots=True)
class Order:
    """One act of one agent in a round; `late` is by how many seconds it begins after the barrier.

    `names` fill the path; with `hang_up` the agent reads no answer and leaves so many seconds later.
    """

    agent: "Player"
    act: str
    body: Mapping[str, Any] | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    late: float = 0.0
    hang_up: float | None = None
    prefer: str | None = None

    def line(self, start: float) -> str:
        """The order as its agent reads it."""
        method, path = ACTS[self.act]
        order = {"at": start + self.late, "method": method, "path": path.format(**self.names), "body": self.body}
        return json.dumps(order | {"hangUp": self.hang_up, "prefer": self.prefer}) + "\n"


class Player:
    """An agent's process; `behind` is by how many seconds it began its last act too late."""

    def __init__(self, name: str, process: "asyncio.subprocess.Process") -> None:
        self.name = name
        self.process = process
        self.id = ""
        self.behind = 0.0

    def pause(self) -> None:
        """SIGSTOP."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    async def carry_out(self, order: Order, start: float) -> Call:
        """Hand the order over and read what came of it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(order.line(start).encode())
        await self.process.stdin.drain()
        async with asyncio.timeout(servers.PATIENCE):
            told = json.loads(await self.process.stdout.readline())
        self.behind = told["behind"]
        body = {**(order.body or {}), **order.names}
        return Call(self.name, order.act, told["asked"], body, told["answered"], told["status"], told["answer"])

    async def end(self) -> None:
        """Close its input, and wait until it has gone."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.go_on()
        async with asyncio.timeout(servers.PATIENCE):
            await self.process.wait()


@dataclass
class Stage:
    """All that takes part in one test."""

    url: str
    key: str
    sink: Sink
    settings: dict[str, Any]
    folder: Path
    gateways: list[Served] = field(default_factory=list)
    players: list[Player] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    meetings: list[Meeting] = field(default_factory=list)

    async def gateway(self, roles: str = "http,relay", **armed: Any) -> Served:
        """Start a gateway; `armed` are the orders of `armed.py`."""
        extra = {"ARMED": json.dumps(armed)} if armed else {}
        module = "tests.faults.armed" if armed else "gateway"
        served = await asyncio.to_thread(
            servers.start, self.url, roles=roles, module=module, extra=extra, **self.settings
        )
        self.gateways.append(served)
        return served

    async def player(
        self, served: Served, key: str, name: str, skew: float = 0.0, ca: str = "", *, mcp: bool = False
    ) -> Player:
        """Start an agent's process that calls this gateway with this key; with `ca` its mails go over SMTP, else `mcp` may be."""
        more = (str(served.smtp_port(secure=True)), name, ca) if ca else ()
        module = "tests.faults.mailer" if ca else "tests.faults.model" if mcp else "tests.faults.agent"
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module, str(served.port), key, str(skew), *more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.players.append(Player(name, process))
        return self.players[-1]

    async def agent(self, served: Served, name: str, skew: float = 0.0, ca: str = "", *, mcp: bool = False) -> Player:
        """Start an agent with a key that is bound to it; with `ca` its mails go over SMTP, with `mcp` it calls tools."""
        operator = await self.player(served, self.key, "operator")
        made = await self.one(
            Order(operator, "make_key", {"label": name, "scopes": ["read", "send", "manage", "operator"]})
        )
        assert made.answer is not None, made
        assert made.status == 200, made
        player = await self.player(served, made.answer["rawKey"], name, skew, ca, mcp=mcp)
        done = await self.one(Order(player, "register", {"agentName": name, "bindKey": True}))
        assert done.answer is not None, done
        assert done.answer["apiKeyBinding"] == "bound", done
        player.id = done.answer["id"]
        return player

    async def together(self, *orders: Order) -> list[Call]:
        """Let agents act at one barrier; every act enters the history."""
        start = time.monotonic() + AHEAD
        calls = await asyncio.gather(*(order.agent.carry_out(order, start) for order in orders))
        self.calls += calls
        if len(orders) > 1:
            self.meetings.append(Meeting(tuple(calls), max(order.agent.behind for order in orders)))
        return calls

    async def one(self, order: Order) -> Call:
        """Let one agent act."""
        return (await self.together(order))[0]

    def wake(self, served: Served) -> None:
        """Continue a gateway that was stopped."""
        served.process.send_signal(signal.SIGCONT)

    def took(self, mail: Mail) -> None:
        """Note what the sink took."""
        self.arrivals += arrivals_of(mail, now())

    async def drained(self, seconds: float = 60.0) -> None:
        """Return once nothing is on its way; raises TimeoutError."""
        await asyncio.to_thread(self._drained, time.monotonic() + seconds)

    async def until(self, ready: Callable[[History], object], seconds: float = servers.PATIENCE) -> None:
        """Return once the history so far is as it should be; raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while not ready(await asyncio.to_thread(self.history)):  # noqa: ASYNC110 - others write into the store
                await asyncio.sleep(LOOK)

    def _drained(self, until: float) -> None:
        engine = dialect_of(self.url).engine
        standing = sa.select(schema.deliveries.c.id).where(schema.deliveries.c.state.not_in(SETTLED)).limit(1)
        try:
            while True:
                with engine.connect() as connection:
                    if connection.execute(standing).first() is None:
                        return
                if time.monotonic() > until:
                    raise TimeoutError(f"still on their way: {self._standing()}")
                time.sleep(LOOK)
        finally:
            engine.dispose()

    def _standing(self) -> list[tuple[str, str]]:
        return [(row["id"], row["state"]) for row in read_rows(self.url).deliveries if row["state"] not in SETTLED]

    def history(self, **about: Any) -> History:
        """All that happened."""
        return History(list(self.calls), list(self.arrivals), read_rows(self.url), **about)

    def judged(self, **about: Any) -> list[Violation]:
        """What is wrong with all that happened."""
        return violations(self.history(**about))

    async def judged_at_last(self, **about: Any) -> list[Violation]:
        """As `judged`, once nobody is left who could still send: whoever lives is ended, by SIGTERM.

        Each must end with 0; the sink has nobody connected any more.
        """
        living = [served for served in self.gateways if served.process.poll() is None]
        codes = await asyncio.gather(*(asyncio.to_thread(served.stop) for served in living))
        assert codes == [0] * len(living)
        await self.sink.until(lambda: not self.sink.connected, servers.PATIENCE)
        return self.judged(**about)


@asynccontextmanager
async def a_stage(url: str, key: str, **settings: Any) -> AsyncIterator[Stage]:
    """A stage without gateways and agents; ends whatever was started on it. `script` is for the sink, all else settings."""
    async with Sink(script=settings.pop("script", None), receive_buffer=settings.pop("receive_buffer", None)) as sink:
        usual = {
            "smarthost": f"smtp://127.0.0.1:{sink.port}",
            "hostname": HOST,
            "claim_seconds": 5,
            "retry_first_seconds": 0.2,
            "retry_max_seconds": 2,
            "reply_timeout_seconds": 20,
        }
        with tempfile.TemporaryDirectory() as folder:
            stage = Stage(url, key, sink, usual | settings, Path(folder))
            sink.box._on_mail = stage.took
            try:
                yield stage
            finally:
                for player in stage.players:
                    await player.end()
                for served in stage.gateways:
                    await asyncio.to_thread(end, served)


def end(served: Served) -> None:
    """End a gateway in whatever state it is."""
    if served.process.poll() is None:
        served.process.send_signal(signal.SIGCONT)
        served.kill()


def stopped(served: Served) -> None:
    """Return once the process has been stopped by SIGSTOP; raises TimeoutError."""
    until = time.monotonic() + servers.PATIENCE
    while os.waitid(os.P_PID, served.process.pid, os.WSTOPPED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() > until:
            raise TimeoutError(f"process {served.process.pid} did not stop")
        time.sleep(LOOK)


def interleavings(dice: random.Random, count: int, spread: float = 0.004) -> Iterable[float]:
    """By how much each of `count` acts begins after the barrier: seconds, up to `spread`; a third of the time none at all."""
    return [0.0 if dice.random() < 1 / 3 else dice.uniform(0, spread) for _ in range(count)]


def prepared(keys: dict[str, str], folder: Path) -> Prepare:
    """The `prepare` of `Databases.fresh`: a store with tenant, mailbox and operator key, which goes into `keys` by kind."""

    def prepare(url: str) -> None:
        made = servers.init(url, folder / f"{url.partition(':')[0]}.toml")
        keys[url.partition(":")[0]] = made["rawKey"]

    return prepare
