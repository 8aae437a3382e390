"""Brings the demo's world up in one loop: a fresh SQLite file, a sink, a gateway on a free port, two agents with keys.

It looks neither at the environment nor at a profile, and everything is on the loopback.
"""

import contextlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.app import Gateway
from gateway.cli.found import found, opened
from gateway.cli.tls import CERTIFICATE, KEY, made
from gateway.client import AsyncClient, GatewayError
from gateway.client.call import Call, plain
from gateway.client.where import Place
from gateway.core.address import parse
from gateway.settings import given
from gateway.sink import Sink
from gateway.store.keys import NewKey, create_keys

TENANT = "demo"
MAILBOX = "agent@gw.example.com"
AGENTS = ("outreach-agent", "support-agent")
ANSWER_SECONDS = 20.0

Body = dict[str, Any]


@dataclass(slots=True)
class Actor:
    """Somebody with a key of their own who talks to the gateway over HTTP."""

    name: str
    key: str
    client: AsyncClient
    id: str = ""

    async def ask(self, method: str, path: str, body: Body | None = None, **more: Any) -> Body:
        """Ask and return the JSON of the answer, whatever its status, with that as `httpStatus`. Raises Unreachable."""
        try:
            answer = await self.client.answer(Call(method, path, plain, body, **more))
        except GatewayError as error:
            if not error.status:
                raise
            return error.body | {"httpStatus": error.status}
        found: Any = answer.body
        return found | {"httpStatus": answer.status} if isinstance(found, dict) else found

    async def lease(self, contact: str, minutes: float = 30) -> Body:
        """Try to take a contact."""
        body = {"contactEmail": contact, "intent": "demo", "durationMinutes": minutes}
        return await self.ask("POST", "/v1/agent/coordination/lease", body)

    async def send(self, *to: str, key: str, text: str = "Hello from the demo.", wait: int = 0, **more: Any) -> Body:
        """Ask for a mail to be sent, and with `wait` (seconds) for word of the relay."""
        body = {"to": list(to), "subject": "A demo of the gateway", "text": text, "idempotencyKey": key, **more}
        headers = {"Prefer": f"wait={wait}"} if wait else {}
        return await self.ask("POST", "/v1/agent/request-send", body, headers=headers)


@dataclass(slots=True)
class Stage:
    """The demo's world while it is up; `certificate` (PEM) is the SMTP door's, whose port speaks TLS from the start."""

    url: str
    sink: Sink
    operator: Actor
    agents: tuple[Actor, Actor]
    smtp_port: int
    certificate: str
    _closing: contextlib.AsyncExitStack = field(repr=False)

    async def close_gateway(self) -> None:
        """Stop the gateway as SIGTERM would: what it has accepted and can relay, it has relayed when this returns."""
        await self._closing.aclose()


@contextlib.asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    """Bring everything up and take it down again; raises ValueError or OSError where that cannot be done."""
    with tempfile.TemporaryDirectory(prefix="gateway-demo-") as folder:
        async with Sink() as sink, contextlib.AsyncExitStack() as closing:
            url = f"sqlite:///{Path(folder) / 'gateway.db'}"
            keys = _prepare(url)
            certificate = _certify(Path(folder))
            settings = given(
                {
                    "database_url": url,
                    "http_bind": "127.0.0.1:0",
                    "smtps_bind": "127.0.0.1:0",
                    "tls_cert": str(Path(folder) / CERTIFICATE),
                    "tls_key": str(Path(folder) / KEY),
                    "smarthost": f"smtp://127.0.0.1:{sink.port}",
                    "hostname": "gw.example.com",
                    "log_level": "error",
                }
            )
            gateway = Gateway(settings)
            await gateway.start()
            closing.push_async_callback(gateway.stop)
            here = f"http://127.0.0.1:{gateway.http_port}"
            actors = [
                Actor(name, key, AsyncClient(Place(here, key), timeout=ANSWER_SECONDS)) for name, key in keys.items()
            ]
            for one in actors:
                await closing.enter_async_context(one.client)
            operator, *agents = actors
            yield Stage(here, sink, operator, (agents[0], agents[1]), gateway.smtps_port, certificate, closing)


def _certify(folder: Path) -> str:
    """Make a certificate as `gateway tls self-signed` does; returns it in PEM."""
    certificate, key = made(["localhost"], 1)
    (folder / CERTIFICATE).write_bytes(certificate)
    (folder / KEY).write_bytes(key)
    return certificate.decode()


def _prepare(url: str) -> dict[str, str]:
    """Found the tenant and make a key for each agent, as `gateway init` and `gateway keys create` do."""
    store = opened(url)
    try:
        raw = found(store, TENANT, parse(MAILBOX)).raw_key
        assert raw is not None, "the database is new"  # noqa: S101
        made = store.write([TENANT], lambda tx: create_keys(tx, [NewKey(TENANT, name) for name in AGENTS]))
        return {"operator": raw} | {key.label: secret for key, secret in made}
    finally:
        store.close()
