"""A gateway that is up, for all tests of this folder that only need one, and a runner for commands in this process."""

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.cli.processes import House, Up, up

Run = Callable[..., Result]


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A folder of its own for commands that are run as processes."""
    return House(tmp_path)


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A sink and a gateway, shared: each test writes to recipients of its own."""
    with up(tmp_path_factory.mktemp("up")) as all_of_it:
        yield all_of_it


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This process without variables of the gateway, its profile and its database below a folder of its own."""
    for name in [name for name in os.environ if name.startswith("GATEWAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GATEWAY_PROFILE", str(tmp_path / "profile.toml"))
    monkeypatch.setenv("GATEWAY_DATABASE_URL", f"sqlite:///{tmp_path / 'gateway.db'}")
    monkeypatch.setenv("GATEWAY_HOSTNAME", "gw.example.com")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(bare: Path) -> Iterator[Run]:
    """Runs a command in this process, and returns what it printed and its exit code."""
    from gateway.cli.tree import app

    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level

    def act(*args: str, stdin: str | bytes = "") -> Result:
        return CliRunner().invoke(app, list(args), input=stdin)

    yield act
    root.handlers[:] = handlers  # `serve` sets logging up for its process
    root.setLevel(level)


@pytest.fixture
def at(run: Run, running: Up) -> Run:
    """Runs a command in this process against the gateway that is up, with the operator's key."""

    def act(*args: str, key: str | None = None, stdin: str | bytes = "") -> Result:
        return run(*args, "--url", running.url, "--key", key or running.key, stdin=stdin)

    return act
