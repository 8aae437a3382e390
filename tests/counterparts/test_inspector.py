"""The MCP inspector's command line against a real gateway, over streamable HTTP and over stdio."""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gateway.doors.mcp.server import TOOLS
from tests import servers
from tests.conftest import migrated
from tests.counterparts.programs import inspector, needs_inspector, run
from tests.databases import SqliteFiles

pytestmark = needs_inspector()

ROOT = str(Path(__file__).parent.parent.parent)
Ask = Callable[..., Any]


@dataclass(frozen=True)
class Way:
    """A gateway that runs, and the folder in which the inspector is run."""

    port: int
    key: str
    folder: Path

    def inspect(self, transport: str, *words: str) -> "tuple[int, str, str]":
        """The inspector's exit code and what it printed."""
        url = f"http://127.0.0.1:{self.port}"
        if transport == "http":
            target = [f"{url}/mcp", "--transport", "http", "--header", f"Authorization: Bearer {self.key}"]
        else:
            own = {"GATEWAY_URL": url, "GATEWAY_KEY": self.key, "PYTHONPATH": ROOT}
            given = [part for name, value in own.items() for part in ("-e", f"{name}={value}")]
            target = [sys.executable, "-m", "gateway", "mcp", *given]
        home = {"HOME": str(self.folder)}
        done = run("node", str(inspector()), "--cli", *target, *words, variables=home)
        return done.returncode, done.stdout, done.stderr

    def ask(self, transport: str, method: str, *words: str) -> Any:  # noqa: ANN401  (JSON)
        """What the inspector prints of an answer."""
        code, out, err = self.inspect(transport, "--method", method, *words)
        assert code == 0, out + err
        return json.loads(out)


@pytest.fixture(scope="module")
def way(sqlite_files: SqliteFiles, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    folder = tmp_path_factory.mktemp("inspector")
    with sqlite_files.fresh(migrated) as url:
        key = servers.init(url, folder / "profile.toml")["rawKey"]
        with servers.serving(url, roles="http", hostname="gw.example.com") as served:
            yield Way(served.port, key, folder)


TRANSPORTS = pytest.mark.parametrize("transport", ["http", "stdio"])


@TRANSPORTS
def test_the_inspector_lists_the_tools_and_finds_nothing_to_complain_about(way: Way, transport: str) -> None:
    code, out, err = way.inspect(transport, "--method", "tools/list", "--strict")

    assert (code, "Warning" in err) == (0, False), err
    assert [tool["name"] for tool in json.loads(out)["tools"]] == [tool.name for tool in TOOLS]


@TRANSPORTS
def test_the_inspector_sends_a_mail_and_hears_a_refusal(way: Way, transport: str) -> None:
    person = f"pat-{transport}@example.net"
    words = ("--tool-name", "send_email", "--tool-arg", f"to={person}", "subject=hi", "text=hello")

    sent = way.ask(transport, "tools/call", *words, "idempotency_key=first-" + transport)["structuredContent"]
    refused = way.ask(transport, "tools/call", *words, "idempotency_key=second-" + transport)

    assert (sent["ok"], sent["status"]) == (True, "queued")
    assert (refused["structuredContent"]["ok"], refused["structuredContent"]["reason"]) == (False, "cooldown")
    assert json.loads(refused["content"][0]["text"]) == refused["structuredContent"]


@TRANSPORTS
def test_the_inspector_reads_a_resource_and_gets_a_prompt(way: Way, transport: str) -> None:
    listed = way.ask(transport, "resources/list")["resources"]
    read = way.ask(transport, "resources/read", "--uri", "gateway://reasons")["contents"][0]
    prompt = way.ask(
        transport, "prompts/get", "--prompt-name", "take_over_a_contact", "--prompt-args", "contact=pat@example.net"
    )

    assert "gateway://reasons" in [one["uri"] for one in listed]
    assert "lease_conflict" in {one["reason"] for one in json.loads(read["text"])}
    assert "pat@example.net" in prompt["messages"][0]["content"]["text"]


def test_the_inspector_is_told_that_its_key_is_not_good(way: Way) -> None:
    stranger = Way(way.port, "gk_live_" + "x" * 43, way.folder)

    code, out, err = stranger.inspect("http", "--method", "tools/list")

    assert code != 0, out
    assert json.loads(err)["error"]["code"] == "auth_required"
