"""Where a client finds its gateway and its key, and what it brings along."""

import inspect
import pydoc
import subprocess
import sys
from pathlib import Path
from typing import assert_type

import pytest

from gateway import client, profile
from gateway.client import AsyncClient, Client, Event, Lease, NotSetUp, Sent
from gateway.client.verbs import Verb, Verbs
from gateway.client.where import find
from gateway.profile import Profile
from tests.client.conftest import Make, Place

SERVER = {
    "aiosmtpd",
    "aiosmtplib",
    "alembic",
    "fastapi",
    "pydantic",
    "sqlalchemy",
    "starlette",
    "typer",
    "uvicorn",
}


def test_it_brings_nothing_of_the_server_along() -> None:
    ours = "sorted(n for n in sys.modules if n.startswith('gateway') and not n.startswith('gateway.client'))"
    code = f"import sys, gateway.client; print([n for n in {sorted(SERVER)!r} if n in sys.modules], {ours})"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout == "[] ['gateway', 'gateway.profile']\n"


def test_both_clients_have_the_same_methods() -> None:
    def public(kind: type) -> dict[str, list[str]]:
        methods = {name: value for name, value in inspect.getmembers(kind) if not name.startswith("_")}
        plain = {name: value for name, value in methods.items() if inspect.isfunction(value)}
        return {name: list(inspect.signature(value).parameters) for name, value in plain.items()}

    assert public(Client) == public(AsyncClient)
    assert {"lease", "listen", "requests"} <= set(public(Client))


def test_every_method_has_its_sentence() -> None:
    verbs = {name: value for name, value in vars(Verbs).items() if isinstance(value, Verb)}

    assert len(verbs) > 20
    assert [name for name, value in verbs.items() if not value.__doc__] == []
    with Client("http://127.0.0.1:1", "gk_live_x") as one:
        assert [name for name in verbs if getattr(one, name).__doc__ != verbs[name].__doc__] == []
        assert list(inspect.signature(one.cancel).parameters) == ["request_id"]


def test_all_names_of_the_package_are_there() -> None:
    assert [name for name in client.__all__ if not hasattr(client, name)] == []
    assert client.__all__ == sorted(client.__all__)


def test_the_environment_says_where(make: Make, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_URL", place.url + "/")
    monkeypatch.setenv("GATEWAY_KEY", place.key)

    assert make().whoami().tenant_id == "default"


def test_the_profile_says_where(make: Make, place: Place) -> None:
    profile.write(Profile(place.url, place.key))

    assert make().whoami().tenant_id == "default"


def test_a_profile_is_chosen_by_its_name(make: Make, place: Place, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profile.write(Profile("http://127.0.0.1:1", "gk_live_other"))
    with profile.chosen("here"):
        profile.write(Profile(place.url, place.key))
    monkeypatch.setenv("GATEWAY_PROFILE", "here")

    assert make().whoami().tenant_id == "default"
    assert profile.names() == ["here", "profile"]
    assert profile.place() == bare / ".config" / "gateway" / "here.toml"


@pytest.mark.parametrize(
    ("url", "key", "where"),
    [
        ("ftp://127.0.0.1", "gk_live_x", "url"),
        ("http://127.0.0.1:99999", "gk_live_x", "url"),
        ("http://user@127.0.0.1", "gk_live_x", "url"),
        ("http://127.0.0.1", "two words", "key"),
        ("http://127.0.0.1", None, "key"),
    ],
)
def test_what_cannot_be_used_is_named(make: Make, url: str, key: str | None, where: str) -> None:
    with pytest.raises(NotSetUp) as caught:
        make(url, key)

    assert caught.value.where == where


def test_the_key_of_a_profile_goes_nowhere_else(make: Make) -> None:
    profile.write(Profile("https://mail.example.com", "gk_live_mine"))

    with pytest.raises(NotSetUp, match="is for another gateway"):
        make("https://elsewhere.example.com")


def test_the_key_does_not_show_where_the_place_is_shown() -> None:
    place = find("http://127.0.0.1:1", "gk_live_secret")

    assert place.key == "gk_live_secret"
    assert "secret" not in repr(place)


def test_a_key_in_clear_to_another_machine_is_warned_about(make: Make) -> None:
    with pytest.warns(UserWarning, match="without TLS"):
        make("http://mail.example.com", "gk_live_x")


def test_a_profile_that_others_may_read_is_warned_about(make: Make) -> None:
    profile.write(Profile("http://127.0.0.1:1", "gk_live_x")).chmod(0o644)

    with pytest.warns(UserWarning, match="chmod 600"):
        make()


async def typed(one: Client, other: AsyncClient) -> None:
    """What a type checker has to see; it is read by mypy and never run."""
    assert_type(one.acquire("pat@example.net"), Lease)
    assert_type(one.send("pat@example.net", subject="s", text="t"), Sent)
    assert_type(await other.send("pat@example.net", subject="s", text="t"), Sent)
    assert_type(list(one.requests(status="queued")), list[Sent])
    assert_type([event async for event in other.listen("send.*")], list[Event])
    one.send("pat@example.net", subjekt="s")  # type: ignore[call-arg]
    await other.vote("id", "maybe")  # type: ignore[arg-type]


def test_an_agent_that_no_header_can_hold_is_refused_at_once(make: Make) -> None:
    with pytest.raises(NotSetUp, match="ASCII"):
        make("http://127.0.0.1:1", "gk_live_x", agent="z\u00fcrich")


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_method_looks_like_one_on_the_class_too(kind: type[Client | AsyncClient]) -> None:
    signature = inspect.signature(kind.send)
    shown = pydoc.plain(pydoc.render_doc(kind))

    assert list(signature.parameters) == [*("self", "to", "idempotency_key", "wait_seconds", "strict", "agent", "mail")]
    assert signature.return_annotation is Sent
    assert kind.send.__name__ == "send"
    assert "send(self, to: str" in shown
    assert "Send a mail; what policy says is in the answer" in shown


def test_a_method_of_a_client_has_the_arguments_of_its_class() -> None:
    with Client("http://127.0.0.1:1", "gk_live_x") as one:
        of_client, of_class = inspect.signature(one.acquire), inspect.signature(Client.acquire)

    assert of_client.return_annotation is of_class.return_annotation is Lease
    assert list(of_client.parameters) == list(of_class.parameters)[1:]


def test_a_method_of_the_class_asks_with_the_client_that_it_is_given(place: Place) -> None:
    with Client(place.url, place.key) as one:
        assert Client.whoami(one) == one.whoami()


def test_both_clients_have_the_same_methods_with_the_same_arguments() -> None:
    def known(kind: type) -> dict[str, list[str]]:
        own = {name for name in dir(kind) if name[0] != "_" and callable(getattr(kind, name))}
        return {name: list(inspect.signature(getattr(kind, name)).parameters) for name in own}

    assert known(Client) == known(AsyncClient)
    assert {"send", "lease", "listen", "ask", "close"} <= set(known(Client))
