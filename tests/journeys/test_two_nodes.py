"""Several gateways on one store share cooldown, leases and work."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from gateway.sink import Sink
from tests import servers
from tests.servers import Served

HOST = "gw.example.com"


@asynccontextmanager
async def running(url: str, roles: str, sink: Sink) -> AsyncIterator[Served]:
    """A gateway process with these roles, stopped properly at the end."""
    served = await asyncio.to_thread(
        servers.start, url, roles=roles, smarthost=f"smtp://127.0.0.1:{sink.port}", hostname=HOST
    )
    try:
        yield served
    finally:
        assert await asyncio.to_thread(served.stop) == 0


def client(served: Served, key: str) -> httpx.AsyncClient:
    """Calls one node with one key."""
    return httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{served.port}", headers={"Authorization": f"Bearer {key}"}, timeout=30
    )


async def agent(operator: httpx.AsyncClient, served: Served, name: str) -> httpx.AsyncClient:
    """Register an agent with a key of its own, bound to it; returns its client."""
    made = await operator.post("/v1/agent/keys", json={"label": name, "scopes": ["read", "send"]})
    assert made.status_code == 200, made.text
    own = client(served, made.json()["rawKey"])
    done = await own.post("/v1/agent/register", json={"agentName": name, "bindKey": True})
    assert done.json()["apiKeyBinding"] == "bound", done.text
    return own


def mail(to: str, key: str) -> dict[str, Any]:
    return {"to": to, "subject": key, "text": "hello\n", "idempotencyKey": key}


async def test_two_nodes_on_one_postgres_share_cooldown_leases_and_work(postgres_url: str, tmp_path: Path) -> None:
    made = await asyncio.to_thread(servers.init, postgres_url, tmp_path / "profile.toml")
    async with (
        Sink() as sink,
        running(postgres_url, "http,relay", sink) as first,
        running(postgres_url, "http,relay", sink) as second,
        client(first, made["rawKey"]) as operator,
    ):
        one, two = await agent(operator, first, "one"), await agent(operator, second, "two")

        lease = (await one.post("/v1/agent/coordination/lease", json={"contactEmail": "pat@example.net"})).json()
        meets = (await two.post("/v1/agent/coordination/lease", json={"contactEmail": "Pat@Example.net"})).json()
        blocked = (await two.post("/v1/agent/request-send", json=mail("pat@example.net", "two-1"))).json()
        prefer = {"Prefer": "wait=20"}
        sent = (await one.post("/v1/agent/request-send", json=mail("pat@example.net", "one-1"), headers=prefer)).json()
        released = (await one.delete(f"/v1/agent/coordination/lease/{lease['id']}")).json()
        cooling = (await two.post("/v1/agent/request-send", json=mail("pat@example.net", "two-2"))).json()
        races = await asyncio.gather(
            *(
                c.post("/v1/agent/request-send", json=mail("sam@example.net", f"race-{n}"))
                for n, c in enumerate([one, two] * 10)
            )
        )
        work = await asyncio.gather(
            *(
                c.post("/v1/agent/request-send", json=mail(f"p{n}@example.net", f"w-{n}"))
                for n, c in enumerate([one, two] * 20)
            )
        )
        await sink.wait(1 + 1 + 40, 60)
        await one.aclose()
        await two.aclose()

        taken = Counter(name for m in sink.mails for name in m.recipients)
        assert meets["conflict"] is True
        assert meets["leaseHolder"]["agentId"] == lease["agentId"]
        assert (blocked["status"], blocked["reason"]) == ("blocked", "lease_conflict")
        assert sent["status"] == "relayed"
        assert released["released"] is True
        assert (cooling["status"], cooling["reason"]) == ("blocked", "cooldown")
        assert sum(r.json()["status"] != "blocked" for r in races) == 1
        assert all(r.json()["status"] != "blocked" for r in work)
        assert set(taken.values()) == {1}
        assert len({m.session for m in sink.mails}) > 1


async def test_an_http_node_and_a_relay_node_share_one_sqlite_file(sqlite_url: str, tmp_path: Path) -> None:
    made = await asyncio.to_thread(servers.init, sqlite_url, tmp_path / "profile.toml")
    async with (
        Sink() as sink,
        running(sqlite_url, "http", sink) as door,
        running(sqlite_url, "relay", sink),
        client(door, made["rawKey"]) as operator,
    ):
        prefer = {"Prefer": "wait=20"}
        sent = (
            await operator.post("/v1/agent/request-send", json=mail("pat@example.net", "k1"), headers=prefer)
        ).json()
        cooling = (await operator.post("/v1/agent/request-send", json=mail("pat@example.net", "k2"))).json()

        assert sent["status"] == "relayed"
        assert cooling["reason"] == "cooldown"
        assert [m.recipients for m in sink.mails] == [("pat@example.net",)]
