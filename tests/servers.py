"""Real processes for tests: `gateway serve` on a free port, its log read as it comes, killed or stopped at will."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PATIENCE = 60
"""Seconds after which a process that does not do what it should is given up."""


class EndedError(AssertionError):
    """A process has ended before it was ready; `code` is its exit code, negative for a signal."""

    def __init__(self, code: int, lines: list[dict[str, Any]]) -> None:
        """Tell the code and the log."""
        super().__init__(f"the process ended with {code}: {lines}")
        self.code = code


def environment(**settings: object) -> dict[str, str]:
    """The environment of a process under test: no setting of the caller's, only those given."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
    return kept | {f"GATEWAY_{name.upper()}": str(value) for name, value in settings.items()}


def run_cli(*words: str, **settings: object) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "gateway", *words],
        env=environment(**settings),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def init(url: str, profile: Path, mailbox: str = "agent@gw.example.com") -> dict[str, Any]:
    """Make a migrated store with a tenant, a mailbox and an operator key; returns what `init --json` prints."""
    done = run_cli("init", "--json", "--mailbox", mailbox, database_url=url, profile=profile)
    assert done.returncode == 0, done.stderr
    made: dict[str, Any] = json.loads(done.stdout)
    return made


@dataclass
class Served:
    """A `gateway serve` that runs; `lines` is its log so far."""

    process: "subprocess.Popen[str]"
    lines: list[dict[str, Any]] = field(default_factory=list)
    port: int = 0
    _reader: threading.Thread | None = None
    _news: "queue.Queue[dict[str, Any]]" = field(default_factory=queue.Queue)

    def wait_for(self, event: str) -> dict[str, Any]:
        """The next log line of this event; EndedError when the process ends, queue.Empty when time is up."""
        while True:
            line = self._news.get(timeout=PATIENCE)
            self.lines.append(line)
            if line.get("event") == event:
                return line
            if line.get("event") == "END":
                raise EndedError(self.process.wait(PATIENCE), self.lines)

    def smtp_port(self, *, secure: bool) -> int:
        """The port of the SMTP door: of the listener with implicit TLS, or of the other one."""
        kind = "implicit" if secure else "starttls"
        return next(
            int(line["port"]) for line in self.lines if line.get("event") == "smtp.listening" and line["tls"] == kind
        )

    def read_log(self) -> None:
        """Turn stderr into lines, until it ends (run in a thread)."""
        assert self.process.stderr is not None
        with self.process.stderr as stream:
            for text in stream:
                try:
                    self._news.put(json.loads(text))
                except ValueError:
                    self._news.put({"event": "TEXT", "text": text})
        self._news.put({"event": "END"})

    def kill(self) -> None:
        """SIGKILL, and wait until it has gone."""
        self.process.kill()
        self._ended()

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self._ended()

    def _ended(self) -> int:
        code = self.process.wait(PATIENCE)
        assert self._reader is not None
        self._reader.join(PATIENCE)
        return code


def start(
    url: str,
    *,
    roles: str = "http,relay",
    module: str = "gateway",
    extra: Mapping[str, str] | None = None,
    **settings: object,
) -> Served:
    """Start a gateway on this store; with the http role its port is known when this returns.

    `extra` are variables of its environment that are no settings. Raises EndedError where it ends before it is ready.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module, "serve", "--roles", roles],
        env=environment(database_url=url, http_bind="127.0.0.1:0", **settings) | dict(extra or {}),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    served = Served(process)
    served._reader = threading.Thread(target=served.read_log, daemon=True)
    served._reader.start()
    try:
        if "http" in roles:
            served.port = served.wait_for("http.listening")["port"]
        served.wait_for("started")
    except BaseException:
        served.kill()
        raise
    return served


@contextmanager
def serving(url: str, **settings: Any) -> Iterator[Served]:
    """As `start`, ended when the block ends."""
    served = start(url, **settings)
    try:
        yield served
    finally:
        served.kill()
