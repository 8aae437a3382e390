"""The composition root: store, intake, relay, doors and rooms are put together here, started and stopped in order.

The only module that knows the policies.
"""

import asyncio
import contextlib
import gc
import logging
import signal
import socket
from collections.abc import Iterator

import uvicorn

import policies
from gateway import coordination, events
from gateway.core.delivery import Retry
from gateway.core.judge import Rule
from gateway.doors import smtp
from gateway.doors.auth import Authenticator
from gateway.doors.context import Context
from gateway.doors.http import create_app
from gateway.doors.http.inlet import body_limit
from gateway.doors.http.line import Line
from gateway.doors.mcp import mount
from gateway.doors.waiters import Waiters
from gateway.intake.intake import Intake, Terms
from gateway.intake.waiting import ReleaseLoop
from gateway.relay.keeper import Keeper
from gateway.relay.pool import Pool
from gateway.relay.smarthost import Smarthost
from gateway.relay.worker import Pace, Worker
from gateway.settings import Settings, split_bind, split_unknown
from gateway.store import Store
from gateway.store.writer import Writer

log = logging.getLogger(__name__)


class _Server(uvicorn.Server):
    """Uvicorn without signal handlers of its own: the gateway stops its parts in its own order."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the gateway."""
        yield


def rules_of(settings: Settings) -> tuple[Rule, ...]:
    """The rules that these settings make of the table. Raises ValueError with one line where a section is wrong."""
    return policies.rules(settings.policies, settings.policy_defaults())


def smarthost_of(settings: Settings) -> Smarthost:
    """The smarthost of these settings. Raises ValueError with one line, which names the setting and no password."""
    try:
        return Smarthost.parse(
            settings.smarthost,
            settings.smarthost_ca or None,
            hostname=settings.hostname,
            connect_timeout=settings.connect_timeout_seconds,
            command_timeout=settings.command_timeout_seconds,
            reply_timeout=settings.reply_timeout_seconds,
        )
    except ValueError as error:
        msg = f"SMARTHOST: {error}"
        raise ValueError(msg) from None


def _listening(bind: str) -> socket.socket:
    """A socket that listens there. Raises OSError."""
    host, port = split_bind(bind)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=2048)


def _check_doors(settings: Settings) -> None:
    """Refuse an address that nobody would listen on, and one where nobody could log in. Raises ValueError."""
    if settings.inbound_bind:
        msg = "INBOUND_BIND: this version has no such door; leave it empty"
        raise ValueError(msg)
    if "smtp" in settings.roles and (settings.smtp_bind or settings.smtps_bind):
        smtp.certificate_and_trust(settings)


def _listening_for(settings: Settings, name: str) -> socket.socket | None:
    """The socket of a door by its setting, or `None` where that is empty. Raises ValueError that names it."""
    bind = getattr(settings, name)
    try:
        return _listening(bind) if bind else None
    except OSError as error:
        msg = f"{name.upper()}: {bind} cannot be listened on: {error.strerror}"
        raise ValueError(msg) from None


def calm_the_collector() -> None:
    """Let Python look for circles of garbage less often, and not in what lives as long as the process.

    Every mail makes many objects without circles. In three pairs of runs of grouped decisions it took 15 to 32 % of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)


class Gateway:
    """One process of the gateway with the roles that its settings give it."""

    def __init__(self, settings: Settings) -> None:
        """Build all parts and start none. Raises ValueError with one line where a setting is wrong."""
        self.settings = settings
        _check_doors(settings)
        self.rules = rules_of(settings)
        self.smarthost = smarthost_of(settings)
        self.store = Store.open(settings.database_url)
        self.writer = Writer(self.store)
        terms = Terms(settings.rejudge_after_seconds, settings.max_lateness_seconds)
        self.intake = Intake(self.store, self.writer, self.rules, terms, self._wake)
        self.waiters = Waiters(self.store)
        self.hub = events.Hub(self.store)
        self.writer.after = self.hub.wake
        self.queue = coordination.Queue()
        self.auth = Authenticator(self.store)
        self.mcp = mount.Door(self.auth, body_limit(settings))
        self.worker: Worker | None = None
        self.keeper: Keeper | None = None
        self.release: ReleaseLoop | None = None
        self.clock: coordination.Clock | None = None
        self.context = Context(
            settings,
            self.store,
            self.writer,
            self.intake,
            self.auth,
            self.waiters.wait,
            (coordination.router(), events.router(self.hub), self.mcp.router()),
            parts={coordination.Queue: self.queue},
            reasons=policies.reasons(),
        )
        self.smtp: smtp.SmtpDoor | None = None
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self._socket: socket.socket | None = None
        self._started = False
        self._stopped = asyncio.Event()

    @property
    def http_port(self) -> int:
        """The port that the HTTP door listens on, where it does."""
        assert self._socket is not None, "the HTTP door is not open"  # noqa: S101
        return int(self._socket.getsockname()[1])

    @property
    def smtps_port(self) -> int:
        """The port of the SMTP door that speaks TLS from the start, where it does."""
        assert self.smtp is not None, "there is no SMTP door"  # noqa: S101
        assert self.smtp.secure is not None, "the SMTP door with implicit TLS is not open"  # noqa: S101
        return int(self.smtp.secure.getsockname()[1])

    def _wake(self) -> None:
        if self.worker is not None:
            self.worker.wake()

    async def start(self) -> None:
        """Start what the roles ask for; when it returns, the doors are open. Raises ValueError or OSError."""
        roles = set(self.settings.roles)
        if "http" in roles and self.settings.http_bind:
            self._socket = _listening(self.settings.http_bind)  # first: what cannot listen must not relay either
        if "smtp" in roles:
            plain, secure = (_listening_for(self.settings, name) for name in ("smtp_bind", "smtps_bind"))
            if plain or secure:
                self.smtp = smtp.SmtpDoor(smtp.a_house(self.context), plain, secure)
        if "relay" in roles:
            await self._start_relay()
        self.auth.uses.start()
        if self._socket is not None:
            await self.mcp.start()
            await self._start_http(self._socket)
        if self.smtp is not None:
            await self.smtp.start()
        self._started = True

    async def _start_relay(self) -> None:
        settings = self.settings
        retry = Retry(
            settings.retry_first_seconds, settings.retry_max_seconds, settings.give_up_seconds, settings.max_attempts
        )
        pace = Pace(settings.relay_concurrency, settings.rejudge_after_seconds)
        self.keeper = Keeper(self.store, self.writer, settings.claim_seconds)
        await self.keeper.start()
        self.worker = Worker(self.store, self.writer, Pool(self.smarthost), retry, pace, self.waiters.settled)
        self.worker.start()
        self.release = ReleaseLoop(self.intake, split_unknown, settings.unknown)
        self.release.start()
        self.clock = coordination.Clock(self.store, self.writer)
        self.clock.start()
        log.info("relay.started", extra={"smarthost": str(self.smarthost), "epoch": self.store.epoch})

    async def _start_http(self, listening: socket.socket) -> None:
        config = uvicorn.Config(
            create_app(self.context),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            timeout_keep_alive=30,
            http=Line,
            ws="none",
        )
        self._server = _Server(config)
        self._serving = asyncio.create_task(self._server.serve(sockets=[listening]), name="http")
        while not self._server.started:
            if self._serving.done():
                self._serving.result()
            await asyncio.sleep(0.005)
        log.info("http.listening", extra={"host": listening.getsockname()[0], "port": self.http_port})

    async def stop(self) -> None:
        """Close the doors, let the writer finish, give claims back, and leave the store."""
        self.waiters.ended = True  # what was taken is on disk: its answer need not wait for the relay
        self.queue.end()
        await self.hub.stop()
        await self.mcp.stop()
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await asyncio.wait({self._serving}, timeout=10)
        if self._socket is not None:
            self._socket.close()
        if self.smtp is not None:
            await self.smtp.stop()
        await self.auth.uses.stop()
        if self.clock is not None:
            await self.clock.stop()
        if self.release is not None:
            await self.release.stop()
        if self.worker is not None:
            await self.worker.stop()
        if self.keeper is not None:
            await self.keeper.stop()
        await self.writer.close()
        self.store.close()
        if self._started:  # else a wrong setting ended the start, and its one line is all there is to say
            log.info("stopped")

    def reload(self) -> None:
        """Read the SMTP door's certificate again."""
        if self.smtp is not None:
            self.smtp.reload()

    def request_stop(self) -> None:
        """Ask `run` to end; safe to call more than once."""
        self._stopped.set()

    async def run(self) -> None:
        """Start, serve until SIGTERM, SIGINT or `request_stop`, stop."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.request_stop)
        loop.add_signal_handler(signal.SIGHUP, self.reload)
        try:
            await self.start()
            calm_the_collector()
            log.info("started", extra={"roles": list(self.settings.roles)})
            await self._stopped.wait()
        finally:
            await self.stop()
