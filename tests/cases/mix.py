"""Many callers at once that do a mix of things for a while."""

import asyncio
import random
import statistics
from typing import Any

from tests.cases import words
from tests.cases.play import LEASES, SUPPRESSIONS, Play

SEND = "/v1/agent/request-send"


async def mixed(play: Play, number: int, step: dict[str, Any], seconds: float) -> None:
    """Let `parallel` callers do what the mix names for so long, spread over all gateways."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    deeds = step["step"]["mix"]
    await asyncio.gather(*(_caller(play, number, deeds, who, until) for who in range(step["parallel"])))
    times = sorted(one.seconds for one in play.said)
    p99 = statistics.quantiles(times, n=100)[98]
    play.notes.append(f"{len(times)} calls in {seconds:g} s, p99 {p99 * 1000:.0f} ms")


async def _caller(play: Play, number: int, deeds: list[str], who: int, until: float) -> None:
    dice = random.Random(who)
    lease: dict[str, Any] | None = None
    request = ""
    turn = 0
    while asyncio.get_running_loop().time() < until:
        turn += 1
        person = f"p{who}-{turn}@example.com"
        match dice.choice(deeds):
            case "POST send":
                body = {"to": person, "subject": "hello", "text": "hi\n", "idempotencyKey": person}
                said = await play.call(number, "POST", SEND, "agent-a", json=body, at=who)
                request = said.body.get("requestId") or request
            case "POST lease":
                said = await play.call(number, "POST", LEASES, "agent-b", json=words.lease(person, 60), at=who)
                lease = said.body if "id" in said.body else lease
            case "POST renew":
                if lease:
                    await play.call(number, "PUT", f"{LEASES}/{lease['id']}", "agent-b", json={}, at=who)
            case "GET status":
                if request:
                    await play.call(number, "GET", f"/v1/agent/requests/{request}", "agent-a", at=who)
            case "POST suppression":
                body = words.suppression(f"gone-{person}")
                await play.call(number, "POST", SUPPRESSIONS, "agent-a", json=body, at=who)
            case other:
                raise ValueError(f"{other!r} is not known to the driver")
