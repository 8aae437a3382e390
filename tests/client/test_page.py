"""The examples of docs/client.md are run, and print what they say behind each `print`."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway import client
from gateway.client.call import Call, plain
from gateway.client.verbs import Verb, Verbs
from tests import servers

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A gateway in which nothing has happened yet, named by the environment."""
    store = f"sqlite:///{tmp_path / 'gateway.db'}"
    made = servers.init(store, tmp_path / "profile.toml")
    with servers.serving(store, roles="http") as served:
        monkeypatch.setenv("GATEWAY_URL", f"http://127.0.0.1:{served.port}")
        monkeypatch.setenv("GATEWAY_KEY", made["rawKey"])
        yield


def test_every_example_prints_what_the_page_says(new: None, capsys: pytest.CaptureFixture[str]) -> None:
    said = [line for block in BLOCKS for line in re.findall(r"print\(.*\)  # (.*)$", block, re.MULTILINE)]
    known: dict[str, object] = {"__name__": "__main__"}

    for block in BLOCKS:
        exec(compile(block, "docs/client.md", "exec"), known)  # noqa: S102 - our own page
    for name in ("client", "agent"):
        known[name].close()  # type: ignore[attr-defined]

    assert len(said) > 10
    assert capsys.readouterr().out.splitlines() == said


def test_the_readme_shows_one_that_works(
    new: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = re.findall(
        r"^```python\n(import os\nfrom gateway\.client .*?)^```$",
        (ROOT / "README.md").read_text(),
        re.DOTALL | re.MULTILINE,
    )
    with client.Client() as operator:
        operator.register("outreach-agent")
        wish = {"label": "outreach", "agentName": "outreach-agent"}
        monkeypatch.setenv("A", operator.ask(Call("POST", "/v1/agent/keys", plain, wish))["rawKey"])

    exec(compile(found[0], "README.md", "exec"), {})  # noqa: S102 - our own page

    assert capsys.readouterr().out == "queued\n"


def test_every_error_is_described() -> None:
    errors = [name for name in client.__all__ if issubclass(getattr(client, name), client.GatewayError)]

    assert [name for name in errors if f"`{name}`" not in PAGE] == []


def test_every_method_that_is_named_is_there() -> None:
    verbs = {name for name, value in vars(Verbs).items() if isinstance(value, Verb)} | {
        "requests",
        "listen",
        "lease",
        "ask",
    }
    called = set(re.findall(r"\bclient\.(\w+)\(", PAGE))

    assert called <= verbs
    assert {"send", "whoami", "events", "listen"} <= called
