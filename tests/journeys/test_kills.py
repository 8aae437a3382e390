"""`gateway serve` is killed while it sends, again and again; nothing is lost, nothing doubled, unknowns are named."""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.sink import Sink
from tests import servers
from tests.servers import Served

KILLS = 10
SENDERS = 8
ENDED = {"relayed", "unknown"}


@dataclass
class Agent:
    """Sends one mail after the other, each to somebody new; a send without an answer is tried again under its key."""

    number: int
    key: str
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    count: int = 0

    async def work(self, port: int, going: asyncio.Event) -> None:
        """Send until the gateway is gone."""
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
            while going.is_set():
                name = f"a{self.number}-{self.count}"
                try:
                    answer = await client.post("/v1/agent/request-send", json=mail(name), headers=self.headers)
                except httpx.HTTPError:
                    return  # nothing is known of this one: the next round asks again
                assert answer.status_code == 200, answer.text
                self.answers[name] = answer.json()
                self.count += 1

    @property
    def headers(self) -> dict[str, str]:
        """Its key."""
        return {"Authorization": f"Bearer {self.key}"}


def mail(name: str) -> dict[str, Any]:
    """A mail to one person under one key."""
    return {"to": f"{name}@example.net", "subject": name, "text": "hello\n", "idempotencyKey": name}


async def one_round(served: Served, agents: list[Agent], dice: random.Random, sink: Sink) -> None:
    """Let the agents send; kill the gateway at a random moment, counted in mails that the sink has taken."""
    going = asyncio.Event()
    going.set()
    work = [asyncio.create_task(agent.work(served.port, going)) for agent in agents]
    await sink.wait(len(sink.mails) + dice.randrange(1, 60), servers.PATIENCE)
    await asyncio.to_thread(served.kill)
    going.clear()
    await asyncio.gather(*work)


async def drained(port: int, agents: list[Agent]) -> dict[str, dict[str, Any]]:
    """Ask for every key again until all have ended: the answers tell what became of each."""
    records: dict[str, dict[str, Any]] = {}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as client, asyncio.timeout(120):
        for agent in agents:
            for number in range(agent.count + 1):
                name = f"a{agent.number}-{number}"
                prefer = {"Prefer": "wait=30"}
                answer = await client.post(
                    "/v1/agent/request-send", json=mail(name), headers={**agent.headers, **prefer}
                )
                records[name] = answer.json()
                while records[name]["status"] not in ENDED:
                    answer = await client.post(
                        "/v1/agent/request-send", json=mail(name), headers={**agent.headers, **prefer}
                    )
                    records[name] = answer.json()
    return records


@pytest.mark.parametrize("seed", [1])
async def test_ten_kills_lose_nothing_and_double_nothing(database_url: str, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    made = await asyncio.to_thread(servers.init, database_url, tmp_path / "profile.toml")
    agents = [Agent(n, made["rawKey"]) for n in range(SENDERS)]
    async with Sink() as sink:
        settings: dict[str, Any] = {
            "smarthost": f"smtp://127.0.0.1:{sink.port}",
            "retry_first_seconds": 1,
            "hostname": "gw.example.com",
        }
        for _ in range(KILLS):
            served = await asyncio.to_thread(servers.start, database_url, **settings)
            await one_round(served, agents, dice, sink)
        served = await asyncio.to_thread(servers.start, database_url, **settings)
        try:
            records = await drained(served.port, agents)
        finally:
            stopped = await asyncio.to_thread(served.stop)

        taken = Counter(name for one in sink.mails for name in one.recipients)

    assert stopped == 0
    assert max(taken.values()) == 1, f"doubled: {[name for name, count in taken.items() if count > 1]}"
    for name, record in records.items():
        if record["status"] == "relayed":
            assert taken[f"{name}@example.net"] == 1, f"{name} is called relayed and never arrived"
    for agent in agents:
        for name, answer in agent.answers.items():
            assert records[name]["requestId"] == answer["requestId"], f"{name} has two ids"
    unknown = [name for name, record in records.items() if record["status"] == "unknown"]
    arrived = sum(taken[f"{name}@example.net"] for name in unknown)
    print(f"seed {seed}: {len(records)} sends, {len(unknown)} unknown, of which {arrived} arrived")  # noqa: T201
