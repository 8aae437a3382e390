"""A gateway that is up, and clients of both kinds with keys of their own."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gateway.client import Client
from gateway.client.call import Call, plain
from tests import servers
from tests.client.asked import BOTH, Asked, Either


@dataclass(frozen=True, slots=True)
class Place:
    """Where a gateway is, the operator's key to it, and its store."""

    url: str
    key: str
    store: str

    def new_key(self, **more: Any) -> dict[str, Any]:
        """A new key of the tenant, as the gateway answers it."""
        body = {"label": "a test", "scopes": ["read", "send"], **more}
        with Client(self.url, self.key) as client:
            made: dict[str, Any] = client.ask(Call("POST", "/v1/agent/keys", plain, body))
            return made


@pytest.fixture(scope="package")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A gateway whose relay rests: what is sent stays queued."""
    folder = tmp_path_factory.mktemp("client")
    store = f"sqlite:///{folder / 'gateway.db'}"
    made = servers.init(store, folder / "profile.toml")
    with servers.serving(store, roles="http") as served:
        yield Place(f"http://127.0.0.1:{served.port}", made["rawKey"], store)


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No variable of the gateway's, and a home without profiles."""
    for name in [name for name in os.environ if name.startswith("GATEWAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


Make = Callable[..., Either]


@pytest.fixture(params=BOTH, ids=["blocking", "awaited"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Makes clients of one kind, and closes them at the end."""
    made: list[Asked] = []

    def act(*args: Any, **more: Any) -> Either:
        made.append(request.param(*args, **more))
        return made[-1]

    yield act
    for one in made:
        one.close()


@pytest.fixture
def operator(make: Make, place: Place) -> Either:
    """A client with the operator's key."""
    return make(place.url, place.key)


@pytest.fixture
def agent(make: Make, place: Place) -> Callable[[str], Either]:
    """Makes a client with a key of its own that is bound to a new agent."""

    def act(name: str) -> Either:
        made = make(place.url, place.new_key()["rawKey"])
        assert made.register(name, bind_key=True).api_key_binding == "bound"
        return made

    return act


@pytest.fixture
def at(request: pytest.FixtureRequest) -> str:
    """A recipient of this test alone."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name.lower())
    return f"{name[-50:].strip('-')}@example.net"


@pytest.fixture
def name(at: str) -> str:
    """An agent's name of this test alone."""
    return at.partition("@")[0]
