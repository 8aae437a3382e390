"""The HTTP door on a world: a real application on a real database, called in this loop by a client without a network."""

import base64
import contextlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any

import httpx
from fastapi import FastAPI

import policies
from gateway import coordination, events
from gateway.doors.auth import Authenticator
from gateway.doors.context import Context
from gateway.doors.http import create_app
from gateway.doors.http.inlet import body_limit
from gateway.doors.mcp import mount
from gateway.doors.waiters import Waiters
from gateway.settings import Settings
from gateway.store import keys
from gateway.store.keys import NewKey
from tests.world import PAT, TENANT, World

SEND = "/v1/agent/request-send"
SIMULATE = "/v1/agent/simulate-send"
LEASE = "/v1/agent/coordination/lease"
PROBLEM = "application/problem+json"


@dataclass(slots=True)
class Clock:
    """A clock that stands until a test moves it, in seconds."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass(slots=True)
class Door:
    """The door, its world, and keys by name: `a` and `b` are bound to those agents, `free` to none, `operator` is a person's."""

    world: World
    app: FastAPI
    client: httpx.AsyncClient
    context: Context
    clock: Clock
    keys: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)

    def add_key(self, name: str, **changes: Any) -> str:
        """Makes a key; `changes` are fields of NewKey, `agent` by its name."""
        if changes.get("agent"):
            changes["agent"] = self.world.agent[changes["agent"]]
        wish = NewKey(TENANT, name, **changes)
        ((key, raw),) = self.world.store.write((TENANT,), lambda tx: keys.create_keys(tx, [wish]))
        self.keys[name], self.ids[name] = raw, key.id
        return raw

    async def call(
        self, method: str, path: str, body: object = None, *, by: str | None = "a", **more: Any
    ) -> httpx.Response:
        """Calls a route with the key named `by`; `headers`, `content` and `params` are httpx's."""
        headers = dict(more.pop("headers", {}))
        if by is not None:
            headers["Authorization"] = f"Bearer {self.keys.get(by, by)}"
        return await self.client.request(method, path, json=body, headers=headers, **more)

    async def post(self, path: str, body: object = None, **more: Any) -> httpx.Response:
        """POST."""
        return await self.call("POST", path, body, **more)

    async def get(self, path: str, **more: Any) -> httpx.Response:
        """GET."""
        return await self.call("GET", path, **more)

    async def send(self, **changes: Any) -> httpx.Response:
        """Asks to send the usual mail with changes; `headers` are those of HTTP."""
        by, headers = changes.pop("by", "a"), changes.pop("headers", {})
        return await self.post(SEND, a_send(**changes), by=by, headers=headers)

    async def accepted(self, **changes: Any) -> dict[str, Any]:
        """Sends, and it must be taken; the answer."""
        answer = await self.send(**changes)
        body: dict[str, Any] = answer.json()
        assert answer.status_code == 200, answer.text
        assert body["status"] != "blocked", body
        return body

    def message(self, request: str) -> bytes:
        """The bytes that would be relayed for a send."""
        from gateway.store import records

        return self.world.store.read(lambda tx: records.bodies(tx, TENANT, [request]))[request]


def a_send(**changes: Any) -> dict[str, Any]:
    """The usual request; a member that is `...` is left out."""
    usual: dict[str, Any] = {"to": [PAT], "subject": "hello", "text": "hi\n", "idempotencyKey": "once"}
    return {name.rstrip("_"): value for name, value in (usual | changes).items() if value is not ...}


def b64(data: bytes | str) -> str:
    """Octets in base64."""
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


def faults(answer: httpx.Response, status: int = 422) -> list[str]:
    """The fields that a refusal names; it must be one of the kind that every refusal is."""
    assert answer.status_code == status, answer.text
    body = problem(answer, status, "invalid_request")
    assert all(set(one) == {"field", "message"} and one["message"] for one in body["errors"])
    return [one["field"] for one in body["errors"]]


def problem(answer: httpx.Response, status: int, slug: str) -> dict[str, Any]:
    """The members of an error, which must be of the one kind."""
    assert answer.headers["content-type"] == PROBLEM
    body: dict[str, Any] = answer.json()
    assert (answer.status_code, body["error"]) == (status, slug), answer.text
    assert body["message"]
    return body


@contextlib.asynccontextmanager
async def a_door(world: World, routers: Iterable[Any] = (), **settings: Any) -> AsyncIterator[Door]:
    """Opens the door of a world."""
    node, clock = world.nodes[0], Clock()
    values = Settings(hostname="gw.example.com", **settings)
    auth = Authenticator(node.store, clock=clock)
    wait = Waiters(node.store).wait
    hub = events.Hub(node.store)
    node.writer.after = hub.wake
    rooms = (coordination.router(), events.router(hub), *routers)
    parts = {coordination.Queue: coordination.Queue()}
    mcp = mount.Door(auth, body_limit(values))
    rooms = (*rooms, mcp.router())
    context = Context(
        values, node.store, node.writer, node.intake, auth, wait, rooms, parts=parts, reasons=policies.reasons()
    )
    await mcp.start()
    app = create_app(context)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        door = Door(world, app, client, context, clock)
        door.add_key("a", agent="a")
        door.add_key("b", agent="b")
        door.add_key("free")
        door.add_key("operator", scopes=keys.SCOPES)
        yield door
    await mcp.stop()
    await hub.stop()
