"""`gateway mcp` as clients start it: the official client speaks with it over stdio, a real gateway answers behind it."""

import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

from gateway.doors.mcp.server import TOOLS
from tests import servers
from tests.conftest import migrated
from tests.databases import SqliteFiles
from tests.doors.mcp.client import Session
from tests.doors.mcp.raw import ABOUT
from tests.world import PAT

SETTINGS: dict[str, Any] = {"roles": "http", "hostname": "gw.example.com"}


@dataclass
class Place:
    """A gateway that runs on a store of its own, and its operator's key; `errors` takes what the program says on stderr."""

    url: str
    key: str
    folder: Path
    served: servers.Served

    @property
    def environment(self) -> dict[str, str]:
        """What a client gives to the program that it starts."""
        where = f"http://127.0.0.1:{self.served.port}"
        own = {"url": where, "key": self.key, "profile": self.folder / "none.toml"}
        return servers.environment(**own) | {"PYTHONPATH": str(Path(__file__).parents[3])}

    @property
    def errors(self) -> Path:
        """The file for stderr."""
        return self.folder / "stderr"

    @contextlib.asynccontextmanager
    async def connect(self, **env: str) -> AsyncIterator[Session]:
        """The official client and the program that it has started."""
        program = StdioServerParameters(
            command=sys.executable, args=["-m", "gateway", "mcp"], env=self.environment | env, cwd=self.folder
        )
        with self.errors.open("a") as errors:
            async with Client(stdio_client(program, errlog=errors)) as client:
                yield Session(client)

    def again(self) -> None:
        """Starts the gateway anew where it was."""
        bind = f"127.0.0.1:{self.served.port}"
        self.served = servers.start(self.url, **SETTINGS, extra={"GATEWAY_HTTP_BIND": bind})


@pytest.fixture
def place(sqlite_files: SqliteFiles, tmp_path: Path) -> Iterator[Place]:
    with sqlite_files.fresh(migrated) as url:
        key = servers.init(url, tmp_path / "profile.toml")["rawKey"]
        made = Place(url, key, tmp_path, servers.start(url, **SETTINGS))
        try:
            yield made
        finally:
            made.served.kill()


async def test_it_sends_is_refused_and_shows_what_there_is(place: Place) -> None:
    async with place.connect() as one:
        listed = {tool.name for tool in (await one.client.list_tools()).tools}
        me = await one.call("register_agent", agent_name="writer")
        lease = await one.call("acquire_lease", contact_email=PAT, duration_minutes=5)
        sent = await one.call(
            "send_email", to=PAT, subject="hi", text="hello", fencing_token=lease["fencing_token"], idempotency_key="k"
        )
        again = await one.call("send_email", to=PAT, subject="more", text="again", idempotency_key="l")
        leases = await one.client.read_resource("gateway://leases")
        mail = await one.client.read_resource(f"gateway://requests/{sent['request_id']}")
        prompt = await one.client.get_prompt("take_over_a_contact", {"contact": PAT})
        names = [found.name for found in (await one.client.list_prompts()).prompts]
        with pytest.raises(MCPError, match="send_request_not_found"):
            await one.client.read_resource("gateway://requests/req_none")

    assert listed == {tool.name for tool in TOOLS}
    assert me["binding"] == "bound"
    assert (sent["ok"], sent["status"]) == (True, "queued")
    assert (again["ok"], again["reason"], again["repeat"]) == (False, "cooldown", "after_until")
    assert [held["contactEmail"] for held in json.loads(leases.contents[0].text)] == [PAT]  # type: ignore[union-attr]
    assert json.loads(mail.contents[0].text)["requestId"] == sent["request_id"]  # type: ignore[union-attr]
    assert PAT in prompt.messages[0].content.text  # type: ignore[union-attr]
    assert names == ["send_one_mail_safely", "take_over_a_contact"]
    assert place.errors.read_text() == ""


async def test_a_gateway_that_is_away_is_a_result_and_works_again_when_it_is_back(place: Place) -> None:
    mail = {"to": PAT, "subject": "hi", "text": "hello", "idempotency_key": "once"}
    async with place.connect() as one:
        first = await one.call("send_email", **mail)
        place.served.stop()
        away = await one.call("send_email", **mail)
        looked = await one.call("who_am_i")
        with pytest.raises(MCPError, match="gateway_unreachable"):
            await one.client.read_resource("gateway://leases")
        place.again()
        back = await one.call("send_email", **mail)

    assert (away["ok"], away["reason"], away["repeat"]) == (False, "gateway_unreachable", "after_until")
    assert "call again with the same idempotency_key" in away["next_action"]
    assert place.key not in json.dumps(away)
    assert looked["reason"] == "gateway_unreachable"
    assert (back["ok"], back["replayed"], back["request_id"]) == (True, True, first["request_id"])
    assert place.errors.read_text() == ""


@pytest.mark.parametrize("name", [".", ".."])
async def test_dots_are_ids_that_there_are_not(place: Place, name: str) -> None:
    async with place.connect() as one:
        for tool, (what, more) in BY_ID.items():
            dots, unknown = [await one.call(tool, **{what: which}, **more) for which in (name, "nothing")]

            assert dots["ok"] is False, tool
            assert dots["reason"] == unknown["reason"], tool
        with pytest.raises(MCPError, match="send_request_not_found"):
            await one.client.read_resource(f"gateway://requests/{name}")


BY_ID: dict[str, tuple[str, dict[str, Any]]] = {
    "get_request": ("request_id", {}),
    "cancel_send": ("request_id", {}),
    "release_lease": ("lease_id", {}),
    "renew_lease": ("lease_id", {"fencing_token": 1}),
    "get_consensus": ("consensus_id", {}),
    "vote": ("consensus_id", {"vote": "approve", "agent_name": "agent"}),
}
"""Tools with an argument that becomes a part of a path, and what else they need."""


async def test_a_key_that_is_not_good_is_a_result(place: Place) -> None:
    wrong = "gk_live_" + "x" * 43
    async with place.connect(GATEWAY_KEY=wrong) as one:
        said = await one.call("who_am_i")

    assert (said["ok"], said["reason"]) == (False, "unauthorized")
    assert said["next_action"] == "ask a person for a key that is good"
    assert wrong not in json.dumps(said)
    assert place.errors.read_text() == ""


async def test_it_waits_for_a_contact_as_long_as_it_was_asked_to(place: Place) -> None:
    async with place.connect() as one:
        await one.call("register_agent", agent_name="first", bind_key=False)
        await one.call("register_agent", agent_name="second", bind_key=False)
        held = await one.call("acquire_lease", contact_email=PAT, agent_name="first", duration_minutes=0.03)
        got = await one.call("acquire_lease", contact_email=PAT, agent_name="second", wait_seconds=30)

    assert held["ok"] is True
    assert (got["ok"], got["agent_name"]) == (True, "second")


@pytest.mark.parametrize(
    ("body", "seconds"),
    [(None, 0), ({}, 0), ({"waitSeconds": 30}, 30), ({"waitSeconds": 1e9}, 30), ({"waitSeconds": "long"}, 0)],
)
def test_the_client_is_as_patient_as_the_gateway(body: dict[str, Any] | None, seconds: float) -> None:
    from gateway.cli.mcp import _wait

    assert _wait(body) == seconds


WORDS = (sys.executable, "-m", "gateway", "mcp")


def started(place: Place, **env: str | None) -> "subprocess.CompletedProcess[str]":
    """The program with nothing on its stdin, run to its end; a variable that is `None` is not there."""
    return subprocess.run(
        WORDS,
        stdin=subprocess.DEVNULL,
        env={name: value for name, value in (place.environment | env).items() if value is not None},
        cwd=place.folder,
        capture_output=True,
        text=True,
        timeout=servers.PATIENCE,
        check=False,
    )


ASKED: tuple[object, ...] = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": ABOUT},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "who_am_i", "arguments": {}}},
    {"jsonrpc": "2.0", "id": 3, "method": "tools/burn"},
    {"jsonrpc": "2.0", "id": 4, "method": "ping"},
)


def test_there_is_nothing_on_stdout_but_the_protocol(place: Place) -> None:
    pipe = subprocess.PIPE
    program = subprocess.Popen(
        WORDS, env=place.environment, cwd=place.folder, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )
    with program:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write("this is no JSON\n" + "".join(f"{json.dumps(one)}\n" for one in ASKED))
        program.stdin.flush()
        said: dict[object, dict[str, Any]] = {}
        while not said.keys() >= {1, 2, 3, 4}:
            one = json.loads(program.stdout.readline())
            said[one.get("id")] = one
        rest, errors = program.communicate(timeout=servers.PATIENCE)

    assert {one["jsonrpc"] for one in said.values()} == {"2.0"}
    assert said[2]["result"]["structuredContent"]["ok"] is True
    assert said[3]["error"]["code"] == -32601
    assert (program.returncode, rest, place.key in f"{said}{errors}") == (0, "", False)
    assert "Traceback" not in errors


@pytest.mark.parametrize("missing", ["GATEWAY_URL", "GATEWAY_KEY"])
def test_without_a_key_it_ends_with_code_2_and_one_line(place: Place, missing: str) -> None:
    done = started(place, GATEWAY_KEY=None, **({"GATEWAY_URL": None} if missing == "GATEWAY_URL" else {}))

    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert "gateway init" in done.stderr


def test_a_url_that_is_none_ends_it_with_code_2_and_one_line(place: Place) -> None:
    done = started(place, GATEWAY_URL="ftp://127.0.0.1")

    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
