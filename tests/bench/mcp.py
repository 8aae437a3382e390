"""Tool calls beside the same requests over HTTP: `python -m tests.bench.mcp`.

Prints, for one client and for 16, sends per second by the tool and by the route, round by round in one run, the latency that
the tool adds, and the CPU of the gateway's process for each as a ratio; the mark is 3 times the route's CPU.
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests import servers
from tests.bench.judge import databases, spread
from tests.bench.load import TEXT

CLIENTS = (1, 16)
MARK = 3.0
VERSION = "2025-11-25"
Make = Callable[[int], tuple[str, object]]


def cpu(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Line:
    """One kept connection, with a session of its own where it speaks MCP."""

    def __init__(self, port: int, key: str) -> None:
        self.port = port
        self.head = f" HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
        self.more = ""
        self.session = ""

    async def open(self, *, mcp: bool) -> None:
        """Connect."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        if not mcp:
            return
        self.more = "Accept: application/json, text/event-stream\r\n"
        about = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        await self.ask("/mcp", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}, b"serverInfo")
        self.more += f"Mcp-Session-Id: {self.session}\r\nMcp-Protocol-Version: {VERSION}\r\n"
        await self.ask("/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}, b"")

    async def ask(self, path: str, body: object, expect: bytes) -> None:
        """One request and its answer, which must have `expect` in it."""
        data = json.dumps(body).encode()
        self.writer.write(f"POST {path}{self.head}{self.more}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        if "mcp-session-id: " in head and not self.session:
            self.session = head.split("mcp-session-id: ", 1)[1].split("\r\n", 1)[0]
        answer = await self.reader.readexactly(int(head.split("content-length: ", 1)[1].split("\r\n", 1)[0]))
        if expect not in answer:
            raise SystemExit(f"{path}: {head.splitlines()[0]} {answer[:300].decode()}")


async def rate(pid: int, port: int, key: str, clients: int, count: int, make: Make, *, mcp: bool) -> tuple[float, ...]:
    """Calls a second, the median time of one in milliseconds, and milliseconds of CPU for each."""
    lines = [Line(port, key) for _ in range(clients)]
    for line in lines:
        await line.open(mcp=mcp)
    numbers, times = iter(range(count)), list[float]()

    async def work(line: Line) -> None:
        for number in numbers:
            began = time.perf_counter()
            await line.ask(*make(number), b"queued")
            times.append(time.perf_counter() - began)

    used, began = cpu(pid), time.perf_counter()
    await asyncio.gather(*map(work, lines))
    took, used = time.perf_counter() - began, cpu(pid) - used
    for line in lines:
        line.writer.close()
    return count / took, statistics.median(times) * 1000, used / count * 1000


def measure(kind: str, rounds: int, count: int) -> bool:
    """Print a line for each number of clients; whether the mark is met."""
    good = True
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(databases(kind))()
        key = servers.init(url, folder / "profile.toml")["rawKey"]
        served = stack.enter_context(servers.serving(url, roles="http", hostname="gw.example.com"))
        pid, port = served.process.pid, served.port
        for clients in CLIENTS:
            found = []
            for number in range(rounds + 1):

                def route(n: int, run: str = f"h{clients}-{number}") -> tuple[str, object]:
                    mail = {"to": [f"{run}-{n}@example.net"], "subject": f"Hello {n}", "text": TEXT}
                    return "/v1/agent/request-send", mail | {"idempotencyKey": f"{run}-{n}"}

                def tool(n: int, run: str = f"m{clients}-{number}") -> tuple[str, object]:
                    mail = {"to": [f"{run}-{n}@example.net"], "subject": f"Hello {n}", "text": TEXT}
                    params = {"name": "send_email", "arguments": mail | {"idempotency_key": f"{run}-{n}"}}
                    return "/mcp", {"jsonrpc": "2.0", "id": n + 1, "method": "tools/call", "params": params}

                plain = asyncio.run(rate(pid, port, key, clients, count, route, mcp=False))
                ours = asyncio.run(rate(pid, port, key, clients, count, tool, mcp=True))
                if number:  # the first round warms up
                    found.append((ours, plain))
            ratios = [ours[2] / plain[2] for ours, plain in found]
            met = statistics.median(ratios) <= MARK
            good &= met
            speed, base = (statistics.median(one[n][0] for one in found) for n in (0, 1))
            added = statistics.median(ours[1] - plain[1] for ours, plain in found)
            print(
                f"{kind} {clients:2} clients: {speed:.0f} calls/s of {base:.0f}/s by the route, {added:+.2f} ms at the median; "
                f"CPU {spread(ratios)} of the route's; at most {MARK:g}: {'yes' if met else 'no'}",
                flush=True,
            )
    return good


def main() -> int:
    """Run and print; exit 1 where the mark is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args()
    kinds = ("sqlite", "postgres") if options.database == "both" else (options.database,)
    met = [measure(kind, options.rounds, options.count) for kind in kinds]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
