"""A gateway that is told to stop does not wait for those who listen or wait for a contact."""

import asyncio
from pathlib import Path

import httpx

from tests import servers
from tests.databases import SqliteFiles
from tests.events.reader import STREAM


async def test_streams_and_waits_end_with_the_gateway(sqlite_files: SqliteFiles, tmp_path: Path) -> None:
    with sqlite_files.fresh() as url:
        key = servers.init(url, tmp_path / "profile.toml")["rawKey"]
        served = servers.start(url, hostname="gw.example.com")
        base, headers = f"http://127.0.0.1:{served.port}", {"Authorization": f"Bearer {key}"}
        lease = "/v1/agent/coordination/lease"
        async with httpx.AsyncClient(base_url=base, headers=headers, timeout=60) as client:
            for name in ("one", "two"):
                await client.post("/v1/agent/register", json={"agentName": name})
            await client.post(lease, json={"agentName": "one", "contactEmail": "pat@example.net"})
            wish = {"agentName": "two", "contactEmail": "pat@example.net", "waitSeconds": 30}
            waiting = asyncio.create_task(client.post(lease, json=wish))
            async with client.stream("GET", STREAM) as stream:
                pieces = stream.aiter_raw()
                await anext(pieces)

                code = await asyncio.to_thread(served.stop)
                rest = [piece async for piece in pieces]

            answer = await waiting

    assert (code, rest) == (0, [])
    assert answer.json()["conflict"] is True  # and not a 503, which ends what a stop has waited for in vain
    assert [line for line in served.lines if line.get("level") in ("ERROR", "CRITICAL")] == []
