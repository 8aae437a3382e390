"""Real processes of ours for tests: one command to its end, or one that stays; everything below one folder."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from typing import Any

PATIENCE = 60.0
"""Seconds that a process may take for anything here; shared machines stall."""


def _heed() -> None:
    """Let a command be interrupted, though whoever runs the tests in the background may ignore that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has come to its end."""

    code: int
    out: str
    err: str

    @property
    def body(self) -> Any:  # noqa: ANN401 - JSON
        """What it printed as JSON."""
        return json.loads(self.out)


@dataclass(slots=True)
class House:
    """A folder with a database, a profile and an environment of its own."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
        own = {
            "HOME": str(self.folder),
            "GATEWAY_PROFILE": str(self.profile),
            "GATEWAY_DATABASE_URL": f"sqlite:///{self.folder / 'gateway.db'}",
            "GATEWAY_HTTP_BIND": "127.0.0.1:0",
            "GATEWAY_HOSTNAME": "gw.example.com",
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "PYTHONUNBUFFERED": "1",
        }
        self.env = kept | own | self.env

    @property
    def profile(self) -> Path:
        """Where its profile is."""
        return self.folder / "config" / "profile.toml"

    def run(self, *args: str, stdin: str = "", env: dict[str, str] | None = None) -> Ended:
        """Run `gateway` with these arguments to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "gateway", *args],
            input=stdin,
            env=self.env | (env or {}),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    @contextlib.contextmanager
    def stay(self, *args: str, env: dict[str, str] | None = None) -> Iterator["Staying"]:
        """Start `gateway` with these arguments; it is ended with the block, by force where it has not ended itself."""
        process = subprocess.Popen(
            [sys.executable, "-m", "gateway", *args],
            env=self.env | (env or {}),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_heed,  # noqa: PLW1509 - it sets a signal and no more
        )
        staying = Staying(process)
        try:
            yield staying
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(PATIENCE)
            staying.close()


class Staying:
    """A process that stays, and the lines that it prints."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.out: Queue[str] = Queue()
        self.err: Queue[str] = Queue()
        self.seen: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=pair, daemon=True)
            for pair in ((process.stdout or (), self.out), (process.stderr or (), self.err))
        ]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(stream: Iterable[str], lines: "Queue[str]") -> None:
        for line in stream:
            lines.put(line.rstrip("\n"))

    def line(self, pattern: str, *, err: bool = False) -> "re.Match[str]":
        """Wait for a line that holds the pattern; fails when the process ends or time is up without one."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            ended = self.process.poll() is not None and not any(reader.is_alive() for reader in self._readers)
            with contextlib.suppress(Empty):
                line = (self.err if err else self.out).get(timeout=0.05)
                self.seen.append(line)
                if found := re.search(pattern, line):
                    return found
                continue
            if ended:
                break
        raise AssertionError(f"no line with {pattern!r} in {self.seen}")

    def event(self, name: str) -> dict[str, Any]:
        """Wait for a line of the log with this event."""
        found = self.line(rf'^{{.*"event": "{re.escape(name)}".*}}$', err=True)
        return dict(json.loads(found[0]))

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, wait for the end, and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        """Let go of the pipes."""
        for reader in self._readers:
            reader.join(PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


@dataclass(slots=True)
class Up:
    """A sink, a gateway that relays to it, and an operator's key; the house's profile points there."""

    house: House
    url: str
    key: str
    address: str
    sink: Staying
    gateway: Staying


@contextlib.contextmanager
def up(folder: Path, **settings: str) -> Iterator[Up]:
    """Bring a sink and a gateway up on free ports; `settings` are variables without their prefix."""
    house = House(folder, {f"GATEWAY_{name.upper()}": value for name, value in settings.items()})
    with house.stay("sink", "--bind", "127.0.0.1:0") as sink:
        port = sink.line(r"listening on .*:(\d+)$", err=True)[1]
        house.env["GATEWAY_SMARTHOST"] = f"smtp://127.0.0.1:{port}"
        made = house.run("init", "--json")
        assert made.code == 0, made.err
        with house.stay("serve") as gateway:
            port = gateway.event("http.listening")["port"]
            url = f"http://127.0.0.1:{port}"
            yield Up(house, url, made.body["rawKey"], made.body["address"], sink, gateway)
