"""Programs of this machine: found or skipped with a plain reason, run to their end, and sinks that see what they sent."""

import asyncio
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

import pytest

from gateway.sink import Mail, Sink
from tests.servers import PATIENCE, environment

T = TypeVar("T")

PLACES = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
"""Where programs are looked for: servers often lie where an ordinary user's PATH does not lead."""
NODE_MODULES = "COUNTERPARTS_NODE_MODULES"
"""The variable that names the folder with packages for node; without it, one in the user's cache."""
SENDER = "agent@gw.example.com"


def path_of(name: str) -> str | None:
    """The program's path, or `None` where it is not installed."""
    return shutil.which(name, path=PLACES)


def node_modules() -> Path:
    """The folder in which packages for node are looked for; .ci/run installs them there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get(NODE_MODULES) or cache / "agent-mail-gateway" / "node_modules")


def needs(*names: str) -> pytest.MarkDecorator:
    """Skips where one of the programs is missing, and where Postfix is wanted by somebody who is not root."""
    missing = [name for name in names if path_of(name) is None]
    reason = f"not installed: {', '.join(missing)}" if missing else ""
    if not reason and "postfix" in names and os.geteuid() != 0:
        reason = "Postfix can only be started by root"
    return pytest.mark.skipif(bool(reason), reason=reason or "installed")


def needs_package(name: str) -> pytest.MarkDecorator:
    """Skips where a package for node, or node itself, is missing."""
    there = path_of("node") is not None and (node_modules() / name).is_dir()
    return pytest.mark.skipif(not there, reason=f"not installed for node: {name} (looked for in {NODE_MODULES})")


def inspector() -> Path:
    """The launcher of the MCP inspector, which has a folder of its own beside the other packages."""
    modules = node_modules().parent / "inspector" / "node_modules"
    return modules / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"


def needs_inspector() -> pytest.MarkDecorator:
    """Skips where the MCP inspector, or node itself, is missing."""
    there = path_of("node") is not None and inspector().is_file()
    return pytest.mark.skipif(
        not there, reason=f"not installed for node: the MCP inspector (looked for in {inspector()})"
    )


def run(
    name: str, *words: str, given: bytes = b"", variables: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end on this input, with these variables more; its output is read as UTF-8."""
    done = subprocess.run(
        [path_of(name) or name, *words],
        input=given,
        capture_output=True,
        env=environment() | dict(variables or {}),
        timeout=PATIENCE,
        check=False,
    )
    out, err = (stream.decode("utf-8", "replace") for stream in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


class Sinking:
    """A sink on a loop and a thread of its own, for tests that start programs and wait for them."""

    def __init__(self, **wishes: Any) -> None:
        self.sink = Sink(**wishes)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self.sink.__aenter__())
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._do(self.sink.__aexit__(*exc_info))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE + 5)

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.sink.port

    def until(self, ready: Callable[[], bool]) -> None:
        """Return once it is so; raises TimeoutError."""
        self._do(self.sink.until(ready, PATIENCE))

    def mail_to(self, person: str) -> Mail:
        """The first mail for a person, waited for."""
        self.until(lambda: bool(self.mails_to(person)))
        return self.mails_to(person)[0]

    def mail_with(self, words: bytes) -> Mail:
        """The first mail in which these words stand, waited for."""
        self.until(lambda: any(words in mail.content for mail in self.sink.mails))
        return next(mail for mail in self.sink.mails if words in mail.content)

    def mails_to(self, person: str) -> list[Mail]:
        """The mails for a person so far."""
        return [mail for mail in list(self.sink.mails) if person in mail.recipients]
