"""`keys bind` and `keys unbind`, on the store and over HTTP; an agent's key is rotated by hand."""

import json
import re
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Run


def made(run: Run, *args: str) -> str:
    result = run("keys", "create", "--label", "for a test", *args, "--json")
    assert result.exit_code == 0, result.output
    return str(json.loads(result.stdout)["id"])


def test_in_the_store_a_key_is_bound_and_let_go(run: Run) -> None:
    assert run("init").exit_code == 0
    key = made(run)
    made(run, "--agent", "rotated")

    bound = run("keys", "bind", key, "--agent-name", "rotated", "--reason", "a second key")
    again = json.loads(run("keys", "bind", key, "--agent-name", "rotated", "--json").stdout)
    gone = run("keys", "unbind", key)
    nothing = run("keys", "unbind", key)

    assert re.match(rf"{key} acts as agent_\w+\n", bound.stdout), bound.output
    assert again["apiKeyBinding"] == "already_bound"
    assert gone.stdout == f"{key} acts as no agent any more\n"
    assert nothing.stdout == f"{key} acted as no agent\n"


def test_in_the_store_what_is_not_there_is_not_bound(run: Run) -> None:
    assert run("init").exit_code == 0
    key = made(run)

    nobody = run("keys", "bind", key, "--agent-name", "nobody")
    nowhere = run("keys", "unbind", "key_nowhere")

    assert (nobody.exit_code, nobody.stderr) == (1, "error: no such agent\n")
    assert (nowhere.exit_code, nowhere.stderr) == (1, "error: no such key\n")


@pytest.mark.parametrize("args", [(), ("--agent-id", "x", "--agent-name", "y")])
def test_one_agent_is_named(run: Run, args: tuple[str, ...]) -> None:
    result = run("keys", "bind", "key_1", *args)

    assert result.exit_code == 2
    assert "--agent-name" in result.output


def test_over_http_an_agents_key_is_rotated(at: Run) -> None:
    agent = json.loads(at("agents", "register", "--agent-name", "turning", "--no-bind-key", "--json").stdout)["id"]
    old, new = made(at), made(at)

    for key in (old, new):
        assert at("keys", "bind", key, "--agent-id", agent).stdout.startswith(f"{key} acts as {agent}\n")
    ended = at("keys", "revoke", old, "--json")
    refused = at("keys", "bind", old, "--agent-name", "turning")

    assert json.loads(ended.stdout)["agentId"] == agent
    assert refused.exit_code == 1
    assert "key_not_found" in refused.stderr
    assert json.loads(at("keys", "unbind", new, "--json").stdout)["unbound"] is True


@pytest.fixture
def paused(at: Run) -> Iterator[None]:
    """The relay that the package's tests share is closed, and open again afterwards."""
    assert at("relay", "pause").exit_code == 0
    yield
    at("relay", "resume")


@pytest.mark.usefixtures("paused")
def test_mail_that_waits_while_its_agents_key_is_rotated_is_relayed_as_its_agents(at: Run) -> None:
    agent = json.loads(at("agents", "register", "--agent-name", "waiting", "--no-bind-key", "--json").stdout)["id"]
    old = json.loads(at("keys", "create", "--label", "old", "--agent", "waiting", "--json").stdout)
    mail = ("send", "--subject", "s", "--text", "t", "--json")
    asked = [
        json.loads(at(*mail, "--to", f"waits{n}@example.net", "--idempotency-key", f"w{n}", key=old["rawKey"]).stdout)
        for n in range(3)
    ]

    new = json.loads(at("keys", "create", "--label", "new", "--agent", "waiting", "--json").stdout)
    ended = at("keys", "revoke", old["id"], "--queued", "keep", "--json")
    refused = at(*mail, "--to", "waits9@example.net", key=old["rawKey"])
    at("relay", "resume")
    again = [
        at(*mail, "--to", f"waits{n}@example.net", "--idempotency-key", f"w{n}", "--wait", key=new["rawKey"])
        for n in range(3)
    ]

    assert [one["status"] for one in asked] == ["queued"] * 3
    assert json.loads(ended.stdout)["cancelled"] == []
    assert refused.exit_code == 1
    assert "unauthorized" in refused.output
    told = [json.loads(one.stdout) for one in again]
    assert [one["requestId"] for one in told] == [one["requestId"] for one in asked]
    assert [one["status"] for one in told] == ["relayed"] * 3
    for one in told:
        shown = json.loads(at("requests", "show", one["requestId"], "--json", key=new["rawKey"]).stdout)
        assert shown["agentId"] == agent
    events = at("events", "list", "--json").stdout
    assert old["rawKey"] not in events
