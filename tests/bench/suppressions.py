"""A list of suppressions in and out through a gateway that sends meanwhile: `python -m tests.bench.suppressions`.

Prints rows per second and seconds of `gateway suppressions import` and `export`, the CPU time of gateway and command, which
says more where others use the machine, and the slowest answer of a send beside each. The mark is 60 s for 10^6 rows; the
addresses are in no order, which is the dearest case for an index.
"""

import argparse
import contextlib
import hashlib
import http.client
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests import servers
from tests.bench.judge import databases

MARK = 60.0
"""Seconds for 10^6 rows."""
PAUSE = 0.05
"""Seconds between two sends."""


class Sender:
    """Sends to somebody new again and again, and keeps how long each answer took, in seconds."""

    def __init__(self, port: int, key: str) -> None:
        self.port = port
        self.key = key
        self.times: list[float] = []
        self.bad: list[str] = []
        self._end = threading.Event()

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """Send while the block runs."""
        self.times, self._end = [], threading.Event()
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            thread.join()

    def _run(self) -> None:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        while not self._end.wait(PAUSE):
            name = f"send-{time.monotonic_ns()}"
            mail = {"to": [f"{name}@example.com"], "subject": name, "text": name, "idempotencyKey": name}
            begin = time.perf_counter()
            line.request("POST", "/v1/agent/request-send", json.dumps(mail), headers)
            answer = line.getresponse()
            said = answer.read()
            self.times.append(time.perf_counter() - begin)
            if b'"queued"' not in said:
                self.bad.append(said[:300].decode(errors="replace"))
        line.close()

    @property
    def spread(self) -> str:
        """Median and slowest, in milliseconds."""
        times = sorted(self.times) or [0.0]
        return f"{len(times)} sends beside it, median {times[len(times) // 2] * 1000:.0f} ms, slowest {times[-1] * 1000:.0f} ms"


def write_list(path: Path, rows: int) -> None:
    """A list of persons in no order, one domain in a hundred lines."""
    with path.open("w", encoding="utf-8") as target:
        target.write("email,domain,reasonCode,source\n")
        for n in range(rows):
            name = hashlib.md5(b"%d" % n, usedforsecurity=False).hexdigest()[:12]
            who = f",{name}.example.org" if n % 100 == 0 else f"{name}@example.net,"
            target.write(f"{who},hard_bounce,bench\n")


def cpu(pid: int) -> float:
    """Seconds of CPU that a process has used, where the system tells it (Linux)."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return float("nan")


def timed(words: str, rows: int, sender: Sender, pid: int, *command: str, **settings: str) -> float:
    """Run a command beside the sender; prints a line and returns seconds."""
    with sender.busy():
        begin, ours, theirs = time.perf_counter(), os.times(), cpu(pid)
        done = servers.run_cli(*command, **settings)
        took, ended = time.perf_counter() - begin, os.times()
    spent = ended.children_user + ended.children_system - ours.children_user - ours.children_system
    if done.returncode or sender.bad:
        raise SystemExit(f"{words} failed: {done.stdout}{done.stderr}{sender.bad[:1]}")
    print(
        f"{words}: {rows} rows in {took:.1f} s, {rows / took:.0f}/s; {sender.spread}; "
        f"CPU: gateway {cpu(pid) - theirs:.0f} s, command {spent:.0f} s",
        flush=True,
    )
    return took


def main() -> int:
    """Run and print; exit 1 where the mark is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    servers.PATIENCE = 600
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(databases(options.database))()
        key = servers.init(url, folder / "profile.toml")["rawKey"]
        served = stack.enter_context(servers.serving(url, roles="http", hostname="gw.example.com"))
        gateway = {"url": f"http://127.0.0.1:{served.port}", "key": key}
        file, out = folder / "list.csv", folder / "out.csv"
        write_list(file, options.rows)
        sender = Sender(served.port, key)
        pid = served.process.pid
        kind, suppress = options.database, ("suppressions", "import")
        took = timed(f"{kind} import", options.rows, sender, pid, *suppress, str(file), **gateway)
        timed(f"{kind} export", options.rows, sender, pid, "suppressions", "export", str(out), **gateway)
        with out.open("rb") as lines:
            same = sum(1 for _ in lines) == options.rows + 1
    good = same and took <= MARK * options.rows / 1_000_000
    print(f"as asked, all rows and {MARK:.0f} s for 10^6:", "yes" if good else "no")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
