"""HTTP accept, judged and durable, beside a no-op endpoint with the same model: `python -m tests.bench.accept`.

Both servers are processes of their own under the same loader; the gateway runs without its relay. Ratios are taken round
by round; the marks are 0.2 on SQLite and 0.12 on PostgreSQL at 64 clients.
"""

import argparse
import contextlib
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests import servers
from tests.bench.judge import databases, spread

CLIENTS = (1, 16, 64)
MARKS = {"sqlite": 0.2, "postgres": 0.12}


@contextlib.contextmanager
def noop() -> Iterator[int]:
    """The no-op endpoint; gives its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-m", "tests.bench.noop", str(port)])
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.1):
                break
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()


def load(port: int, clients: int, count: int, **more: str) -> dict[str, float]:
    """One run of the loader."""
    words = [f"--{name}={value}" for name, value in more.items()]
    command = [sys.executable, "-m", "tests.bench.load", f"--port={port}", f"--clients={clients}", f"--count={count}"]
    done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise SystemExit(f"the load failed: {done.stdout}{done.stderr}")
    result: dict[str, float] = json.loads(done.stdout)
    return result


def measure(kind: str, rounds: int, count: int) -> bool:
    """Print a line for each number of clients; whether the mark is met."""
    good = True
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(databases(kind))()
        key = servers.init(url, folder / "profile.toml")["rawKey"]
        served = stack.enter_context(servers.serving(url, roles="http", hostname="gw.example.com"))
        port = stack.enter_context(noop())
        load(served.port, 16, 300, key=key, run="warm", expect='"queued"')
        load(port, 16, 300, path="/noop", expect='"queued"')
        for clients in CLIENTS:
            some = max(count // 8, 100) if clients == 1 else count
            ratios, ours, theirs = [], [], []
            for number in range(rounds):
                base = load(port, clients, some, path="/noop", expect='"queued"')
                run = load(served.port, clients, some, key=key, run=f"r{clients}-{number}", expect='"queued"')
                ratios.append(run["rate"] / base["rate"])
                ours.append(run)
                theirs.append(base)
            rate = statistics.median(r["rate"] for r in ours)
            plain = statistics.median(r["rate"] for r in theirs)
            p50, p99 = (statistics.median(r[p] for r in ours) for p in ("p50", "p99"))
            print(
                f"{kind} {clients:3} clients: {rate:.0f}/s of {plain:.0f}/s no-op = {spread(ratios)}, "
                f"p50 {p50:.1f} ms, p99 {p99:.1f} ms",
                flush=True,
            )
            if clients == max(CLIENTS):
                good = statistics.median(ratios) >= MARKS[kind]
    print(f"{kind}: at least {MARKS[kind]} at {max(CLIENTS)} clients:", "yes" if good else "no")
    return good


def main() -> int:
    """Run and print; exit 1 where a mark is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=3000)
    options = parser.parse_args()
    kinds = MARKS if options.database == "both" else (options.database,)
    met = [measure(kind, options.rounds, options.count) for kind in kinds]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
