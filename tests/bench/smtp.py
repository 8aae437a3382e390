"""Mail from smtp-source through judge, store and relay to smtp-sink, beside a tuned Postfix: `python -m tests.bench.smtp`.

Both servers are private processes on the same disk, both relay to the same sink, and the loads take turns: a ratio is of one
round. A mail counts as relayed once the sink has answered its final dot. Recipients are new in each run. Each may hold as many
connections to the sink as serve it best: the gateway 50, Postfix 20 (50 brought it nothing). The mark is 1.0 at 20 sessions.
Needs Postfix, its two test programs, and root; home and /var/tmp must not be in memory, where a flush is free. What else runs
on the machine takes its share from one process, the gateway, before it takes it from Postfix's many.
"""

import argparse
import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.bench.judge import databases, spread
from tests.counterparts import postfix
from tests.counterparts.programs import SENDER, path_of
from tests.counterparts.stand import standing

MARK, AT = 1.0, 20
WARM = 200
PATIENCE = 120.0
CONNECTIONS = 50
"""RELAY_CONCURRENCY."""
SETTINGS = (
    "relayhost = [127.0.0.1]:{port}",
    "smtpd_relay_restrictions = permit_mynetworks, reject",
    "smtpd_delay_reject = no",
    "smtpd_client_connection_count_limit = 0",
    "smtpd_client_connection_rate_limit = 0",
    "smtp_tls_security_level = none",
    "smtpd_tls_security_level = none",
    "in_flow_delay = 0",
    "default_process_limit = 200",
    "default_destination_concurrency_limit = 20",
    "initial_destination_concurrency = 20",
    "smtp_connection_cache_destinations = [127.0.0.1]:{port}",
    "smtp_connection_reuse_time_limit = 300s",
    "qmgr_message_active_limit = 20000",
    "receive_override_options = no_address_mappings, no_header_body_checks",
    "maillog_file =",
)
"""Postfix at its best as a relay, without a log."""


class Sink:
    """smtp-sink with its counter: how many mails it has answered, and when it answered the last one."""

    def __init__(self, port: int) -> None:
        user = ["-u", "nobody"] if os.geteuid() == 0 else []
        command = [path_of("smtp-sink") or "smtp-sink", "-c", *user, f"127.0.0.1:{port}", "1000"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.count, self.when = 0, 0.0
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        tail = b""
        with self.process.stdout as stream:
            while chunk := os.read(stream.fileno(), 65_536):
                tail = (tail + chunk)[-200:]
                found = re.findall(rb"mesg=(\d+)[\r\n]", tail)
                with self._news:
                    if found and int(found[-1]) != self.count:
                        self.count, self.when = int(found[-1]), time.perf_counter()
                        self._news.notify_all()

    def until(self, count: int) -> float:
        """When it had answered so many in all; ends the program where it does not come to that."""
        with self._news:
            if not self._news.wait_for(lambda: self.count >= count, PATIENCE):
                raise SystemExit(f"the sink has {self.count} mails of {count}")
            return self.when

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()
        self._reader.join()


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is measured: the port at which it takes mail."""

    name: str
    port: int


def load(sink: Sink, peer: Peer, count: int, sessions: int, run: str) -> tuple[float, float]:
    """One run; returns mails accepted and mails relayed in a second."""
    base, words = sink.count, ["-N", "-d", "-l4096", f"-m{count}", f"-s{sessions}", "-f", SENDER]
    command = [
        path_of("smtp-source") or "smtp-source",
        *words,
        "-t",
        f"{run}@example.net",
        f"inet:127.0.0.1:{peer.port}",
    ]
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    accepted = time.perf_counter()
    if done.returncode:
        raise SystemExit(f"the load failed at {peer.name}: {done.stderr}")
    relayed = max(sink.until(base + count), accepted)  # the last 250 to the client comes at the latest then
    return count / (accepted - begin), count / (relayed - begin)


@contextlib.contextmanager
def both(kind: str) -> Iterator[tuple[Sink, Peer, Peer]]:
    """The sink, the gateway and Postfix, all running."""
    with contextlib.ExitStack() as stack:
        sink = Sink(port := postfix.free_port())
        stack.callback(sink.stop)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        url = stack.enter_context(databases(kind))()
        smarthost, trust = f"smtp://127.0.0.1:{port}", "127.0.0.0/8=bench"
        ours = stack.enter_context(standing(url, folder, smarthost, smtp_trust=trust, relay_concurrency=CONNECTIONS))
        ours.agent("bench")
        lines = [line.format(port=port) for line in SETTINGS]
        theirs = stack.enter_context(postfix.running("postfix.example.net", *lines))
        yield sink, Peer("gateway", ours.port()), Peer("postfix", theirs.port)


def measure(kind: str, rounds: int, count: int, sessions: list[int]) -> bool:
    """Print a line for each number of sessions; whether the mark is met."""
    good = True
    with both(kind) as (sink, ours, theirs):
        for peer in (ours, theirs):
            load(sink, peer, WARM, min(AT, WARM), "warm")
        for many in sessions:
            some = max(count // 8, 100) if many == 1 else count
            rates: dict[str, list[tuple[float, float]]] = {ours.name: [], theirs.name: []}
            for number in range(rounds):
                for peer in (ours, theirs) if number % 2 else (theirs, ours):
                    rates[peer.name].append(load(sink, peer, some, many, f"r{many}-{number}"))
            accepted, relayed = (
                [a[which] / b[which] for a, b in zip(rates[ours.name], rates[theirs.name], strict=True)]
                for which in (0, 1)
            )
            rate, base = (statistics.median(one[1] for one in rates[name]) for name in (ours.name, theirs.name))
            print(
                f"{kind} {many:3} sessions: {rate:.0f}/s relayed of {base:.0f}/s Postfix = {spread(relayed)}; "
                f"accepted {spread(accepted)}",
                flush=True,
            )
            if many == AT:
                good = statistics.median(relayed) >= MARK
                print(f"{kind}: at least {MARK} of Postfix at {AT} sessions:", "yes" if good else "no")
    return good


def main() -> int:
    """Run and print; exit 1 where the mark is missed, 2 where the programs are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--sessions", type=int, nargs="+", default=[AT])
    options = parser.parse_args()
    missing = [name for name in ("postfix", "smtp-source", "smtp-sink") if path_of(name) is None]
    if missing or os.geteuid() != 0:
        print(f"not installed: {', '.join(missing)}" if missing else "Postfix can only be started by root")
        return 2
    return 0 if measure(options.database, options.rounds, options.count, options.sessions) else 1


if __name__ == "__main__":
    sys.exit(main())
