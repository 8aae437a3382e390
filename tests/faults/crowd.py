"""Many senders at once, in the test's own process: each writes to one new person after the other, each mail under a key.

A send whose answer did not come, because the gateway died or because the sender hung up, is asked for again under its key
until it is answered: what a careful agent does. All of it goes into the stage's history.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.faults.agent import now
from tests.faults.stage import Stage
from tests.history import Call
from tests.servers import PATIENCE, Served


def mail(name: str, text: str = "hello\n") -> dict[str, Any]:
    """A mail to a person of its own, under a key of its own."""
    return {"to": f"{name}@example.net", "subject": name, "text": text, "idempotencyKey": name}


@dataclass
class Crowd:
    """`senders` of them; `hang_ups` is the share of requests that leave without an answer, after a few milliseconds."""

    stage: Stage
    dice: random.Random
    senders: int = 8
    hang_ups: float = 0.0
    unanswered: dict[str, dict[str, Any]] = field(default_factory=dict)
    count: int = 0

    @property
    def headers(self) -> dict[str, str]:
        """The operator's key."""
        return {"Authorization": f"Bearer {self.stage.key}"}

    async def work(self, gateways: Sequence[Served], going: asyncio.Event) -> None:
        """Send to these gateways until `going` is cleared; who finds a gateway dead stops."""
        await asyncio.gather(*(self._sender(gateways[n % len(gateways)].port, going) for n in range(self.senders)))

    async def _sender(self, port: int, going: asyncio.Event) -> None:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client:
            while going.is_set():
                self.count += 1
                body = mail(f"p{self.count}")
                hurry = self.dice.uniform(0, 0.02) if self.dice.random() < self.hang_ups else None
                if not await self.ask(client, body, hurry) and hurry is None:
                    return

    async def ask(self, client: httpx.AsyncClient, body: dict[str, Any], hurry: float | None = None) -> bool:
        """Ask once; returns whether there was an answer. One of 503 is an answer that says to ask again."""
        asked = now()
        try:
            async with asyncio.timeout(hurry):
                answer = await client.post("/v1/agent/request-send", json=body, headers=self.headers)
        except (httpx.HTTPError, TimeoutError):
            self._note(Call("crowd", "send", asked, body), body)
            return False
        assert answer.status_code in {200, 503}, answer.text
        self._note(Call("crowd", "send", asked, body, now(), answer.status_code, answer.json()), body)
        return True

    def _note(self, call: Call, body: dict[str, Any]) -> None:
        self.stage.calls.append(call)
        if call.status == 200:
            self.unanswered.pop(body["idempotencyKey"], None)
        else:
            self.unanswered[body["idempotencyKey"]] = body

    async def ask_again(self, served: Served) -> None:
        """Ask for everything without an answer until there is one."""
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{served.port}", timeout=PATIENCE) as client:
            async with asyncio.timeout(PATIENCE):
                while self.unanswered:
                    await asyncio.gather(*(self.ask(client, body) for body in list(self.unanswered.values())[:8]))

    def shares(self) -> str:
        """How many sends there were, how many are unknown at the end, and how many of those had arrived."""
        history = self.stage.history()
        unknown = [row for row in history.rows.deliveries if row["state"] == "unknown"]
        arrived = sum(bool(history.count(row)) for row in unknown)
        return f"{len(history.rows.sends)} sends, {len(unknown)} unknown, of which {arrived} had arrived"
