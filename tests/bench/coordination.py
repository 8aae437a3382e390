"""What agents ask beside sending, next to a no-op endpoint, and what listeners cost: `python -m tests.bench.coordination`.

Prints heartbeats, acquisitions and releases per second at 64 clients, each with an agent and a key of its own, as ratios to
a no-op endpoint that reads the same body, taken round by round; the mark is 0.2. Then by how many MiB a gateway's memory
grows with 1000 listeners, and whether each of them hears every event; the mark is 100 MiB.
"""

import argparse
import asyncio
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from tests import servers
from tests.bench.accept import noop
from tests.bench.judge import databases, spread
from tests.bench.sessions import memory

CLIENTS = 64
MARK = 0.2
LISTENERS = 1000
MEMORY_MARK = 100.0
AT_ONCE = 50
EVENTS = 200

Made = Callable[[int], tuple[str, str, object]]
"""Makes request number n: method, path, body."""


class Client:
    """One kept connection with one key."""

    def __init__(self, port: int, key: str) -> None:
        self.port = port
        self.head = f" HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        self.head += "Content-Type: application/json\r\nContent-Length: "
        self.lines: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: object) -> bytes:
        """The body of the answer, which must be a 200."""
        if self.lines is None:
            self.lines = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.lines
        data = b"" if body is None else json.dumps(body).encode()
        writer.write(f"{method} {path}{self.head}{len(data)}\r\n\r\n".encode() + data)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        answer = await reader.readexactly(length)
        if head[9:12] != b"200":
            raise SystemExit(f"{method} {path}: {head[9:12].decode()} {answer[:300].decode()}")
        return answer

    def close(self) -> None:
        if self.lines is not None:
            self.lines[1].close()


async def rate(port: int, keys: list[str], count: int, make: Made) -> tuple[float, dict[int, bytes]]:
    """How many requests a second all clients make together, and the answers by number."""
    numbers, answers = iter(range(count)), dict[int, bytes]()
    clients = [Client(port, key) for key in keys]

    async def work(client: Client, which: int) -> None:
        for number in numbers:
            answers[number] = await client.ask(*make(number * CLIENTS + which))

    begin = time.perf_counter()
    async with asyncio.timeout(120):
        await asyncio.gather(*(work(client, which) for which, client in enumerate(clients)))
    took = time.perf_counter() - begin
    for client in clients:
        client.close()
    return count / took, answers


def fleet(port: int, operator: str) -> list[str]:
    """So many agents, each with a key that is bound to it."""
    keys = []
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {operator}"}) as client:
        for number in range(CLIENTS):
            client.post("/v1/agent/register", json={"agentName": f"agent-{number}"}).raise_for_status()
            wish = {"label": f"agent {number}", "agentName": f"agent-{number}"}
            keys.append(client.post("/v1/agent/keys", json=wish).raise_for_status().json()["rawKey"])
    return keys


async def speed(port: int, base: int, keys: list[str], rounds: int, count: int) -> dict[str, list[tuple[float, float]]]:
    """Rates of each act and of the no-op endpoint beside it, round by round."""
    found: dict[str, list[tuple[float, float]]] = {"heartbeat": [], "acquire": [], "release": []}
    for number in range(rounds + 1):

        def wish(n: int, run: int = number) -> tuple[str, str, object]:
            return (
                "POST",
                "/v1/agent/coordination/lease",
                {"contactEmail": f"r{run}-{n}@example.net", "intent": "bench"},
            )

        def empty(n: int, run: int = number) -> tuple[str, str, object]:
            return "POST", "/lease", {"contactEmail": f"r{run}-{n}@example.net", "intent": "bench"}

        plain, _ = await rate(base, keys, count, empty)
        beats, _ = await rate(port, keys, count, lambda _: ("POST", "/v1/agent/coordination/heartbeat", {}))
        taken, answers = await rate(port, keys, count, wish)
        # Whoever has taken it gives it back: a key is bound to its agent.
        ours: dict[str, list[str]] = {}
        for one in map(json.loads, answers.values()):
            ours.setdefault(one["agentName"], []).append(one["id"])
        back = await released(port, keys, ours)
        if number:  # the first round warms up
            for name, got in (("heartbeat", beats), ("acquire", taken), ("release", back)):
                found[name].append((got, plain))
    return found


async def released(port: int, keys: list[str], ours: dict[str, list[str]]) -> float:
    """The rate of releases; each client gives back what its agent has."""

    async def work(which: int) -> None:
        client = Client(port, keys[which])
        for lease in ours.get(f"agent-{which}", ()):
            await client.ask("DELETE", f"/v1/agent/coordination/lease/{lease}", None)
        client.close()

    begin = time.perf_counter()
    await asyncio.gather(*map(work, range(CLIENTS)))
    return sum(map(len, ours.values())) / (time.perf_counter() - begin)


async def listen(port: int, key: str, heard: list[int]) -> asyncio.StreamWriter:
    """One listener; what it hears is counted."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = "GET /v1/agent/events/stream?eventTypes=coordination.lease_acquired HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    writer.write(f"{head}Authorization: Bearer {key}\r\n\r\n".encode())
    await reader.readuntil(b"retry:")
    place = len(heard)
    heard.append(0)

    async def count() -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await reader.readuntil(b"\ndata: {")
                heard[place] += 1

    task = asyncio.create_task(count())
    task.add_done_callback(lambda _: None)
    _KEPT.append(task)
    return writer


_KEPT: list[Any] = []


async def crowd(served: servers.Served, key: str, listeners: int) -> tuple[float, float, list[int], float]:
    """MiB before and with all listeners, what each has heard, and in how many seconds after the last event all had."""
    port, heard = served.port, list[int]()
    before = memory(served.process.pid)
    writers: list[asyncio.StreamWriter] = []
    while len(writers) < listeners:
        some = min(AT_ONCE, listeners - len(writers))
        writers += await asyncio.gather(*(listen(port, key, heard) for _ in range(some)))
    client = Client(port, key)
    wish: dict[str, object] = {"agentName": "crowd", "intent": "bench"}
    await client.ask("POST", "/v1/agent/register", {"agentName": "crowd"})
    for number in range(EVENTS):
        await client.ask("POST", "/v1/agent/coordination/lease", wish | {"contactEmail": f"c{number}@example.net"})
    begin = time.perf_counter()
    async with asyncio.timeout(120):
        while min(heard) < EVENTS:  # noqa: ASYNC110 - a thousand readers count by themselves
            await asyncio.sleep(0.05)
    took = time.perf_counter() - begin
    after = memory(served.process.pid)
    client.close()
    for writer in writers:
        writer.transport.abort()
    return before, after, heard, took


def measure(kind: str, rounds: int, count: int, listeners: int) -> bool:
    """Print a line for each act and one for the listeners; whether the marks are met."""
    good = True
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(databases(kind))()
        key = servers.init(url, folder / "profile.toml")["rawKey"]
        served = stack.enter_context(servers.serving(url, roles="http", hostname="gw.example.com"))
        base = stack.enter_context(noop())
        keys = fleet(served.port, key)
        for name, pairs in asyncio.run(speed(served.port, base, keys, rounds, count)).items():
            ours, plain = (statistics.median(one[n] for one in pairs) for n in (0, 1))
            ratios = [got / other for got, other in pairs]
            met = statistics.median(ratios) >= MARK
            good &= met
            print(
                f"{kind} {name:9} {ours:.0f}/s of {plain:.0f}/s no-op = {spread(ratios)}; "
                f"at least {MARK}: {'yes' if met else 'no'}",
                flush=True,
            )
        before, after, heard, took = asyncio.run(crowd(served, key, listeners))
        met = after - before < MEMORY_MARK * listeners / LISTENERS and set(heard) == {EVENTS}
        print(
            f"{kind} {listeners} listeners: {after - before:.1f} MiB; each heard {min(heard)} to {max(heard)} of {EVENTS} "
            f"events, the last {took:.2f} s after it happened; under {MEMORY_MARK:g} MiB and none lost: "
            f"{'yes' if met else 'no'}"
        )
    return good and met


def main() -> int:
    """Run and print; exit 1 where a mark is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--listeners", type=int, default=LISTENERS)
    options = parser.parse_args()
    kinds = ("sqlite", "postgres") if options.database == "both" else (options.database,)
    met = [measure(kind, options.rounds, options.count, options.listeners) for kind in kinds]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
