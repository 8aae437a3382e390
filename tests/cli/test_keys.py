"""`keys`: made, listed and revoked in the store; the secret is shown once."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gateway.profile import Profile, write
from gateway.store import Store
from gateway.store.agents import find_agent
from gateway.store.keys import find_key, key_hash
from tests.cli.conftest import Run
from tests.cli.processes import Up


@pytest.fixture
def ready(run: Run) -> Run:
    """A command runner on a database with tenant, mailbox and operator key."""
    assert run("init").exit_code == 0
    return run


def made(run: Run, *args: str) -> dict[str, Any]:
    result = run("keys", "create", "--label", "for a test", *args, "--json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def test_a_key_is_printed_once_and_kept_as_a_hash(ready: Run, bare: Path) -> None:
    key = made(ready)

    assert key["rawKey"].startswith(key["keyPrefix"])
    assert (key["scopes"], key["status"], key["scopeAllMailboxes"]) == (["read", "send"], "active", True)
    assert "rawKey" not in ready("keys", "list", "--json").stdout
    assert key["rawKey"].encode() not in (bare / "gateway.db").read_bytes()
    store = Store.open(f"sqlite:///{bare / 'gateway.db'}")
    found = store.read(lambda tx: find_key(tx, key["rawKey"]))
    store.close()
    assert found is not None
    assert found.id == key["id"]
    assert key_hash(key["rawKey"]) != key["rawKey"]


def test_for_people_the_key_stands_alone_on_its_line(ready: Run) -> None:
    result = ready("keys", "create", "--label", "mine")

    first, *rest = result.stdout.splitlines()
    assert first.startswith("gk_live_")
    assert first not in "\n".join(rest)
    assert "not shown again" in result.stderr


def test_scopes_mailboxes_and_transactional_are_kept(ready: Run) -> None:
    key = made(ready, "--scopes", "read, manage,read", "--mailbox", "AGENT@gw.example.com", "--transactional")

    assert key["scopes"] == ["read", "manage"]
    assert key["scopeAllMailboxes"] is False
    assert key["mailboxes"][0].startswith("mbx_")
    assert key["transactional"] is True


def test_a_key_for_an_agent_is_bound_to_it_and_registers_a_new_one(ready: Run, bare: Path) -> None:
    first, second = made(ready, "--agent", "outreach-agent"), made(ready, "--agent", "outreach-agent")

    store = Store.open(f"sqlite:///{bare / 'gateway.db'}")
    agent = store.read(lambda tx: find_agent(tx, "default", "outreach-agent"))
    store.close()
    assert agent is not None
    assert first["agentId"] == second["agentId"] == agent.id


def test_a_mailbox_that_is_not_there_makes_no_key(ready: Run) -> None:
    result = ready("keys", "create", "--label", "x", "--mailbox", "other@gw.example.com")

    assert result.exit_code == 1
    assert "no mailbox other@gw.example.com" in result.stderr
    assert len(json.loads(ready("keys", "list", "--json").stdout)) == 1


def test_a_revoked_key_is_listed_as_such(ready: Run) -> None:
    key = made(ready)

    result = ready("keys", "revoke", key["id"], "--json")

    gone = json.loads(result.stdout)
    assert (gone["id"], gone["status"], gone["cancelled"]) == (key["id"], "revoked", [])
    states = {one["id"]: one["status"] for one in json.loads(ready("keys", "list", "--json").stdout)}
    assert states[key["id"]] == "revoked"
    assert "revoked" in ready("keys", "list").stdout


def test_the_last_operator_key_cannot_be_revoked(ready: Run) -> None:
    (operator,) = json.loads(ready("keys", "list", "--json").stdout)

    result = ready("keys", "revoke", operator["id"])

    assert result.exit_code == 1
    assert "last operator key" in result.stderr


@pytest.mark.parametrize("args", [("list",), ("create", "--label", "x"), ("revoke", "key_1")])
def test_a_tenant_that_is_not_there_is_named(ready: Run, args: tuple[str, ...]) -> None:
    result = ready("keys", *args, "--tenant", "nobody")

    assert result.exit_code == 1
    assert "tenant nobody: no such tenant" in result.stderr


def test_a_key_that_is_not_there_cannot_be_revoked(ready: Run) -> None:
    result = ready("keys", "revoke", "key_nowhere")

    assert (result.exit_code, result.stderr) == (1, "error: no such key\n")


def test_a_database_that_was_never_made_is_not_made_by_looking(run: Run, bare: Path) -> None:
    result = run("keys", "list")

    assert result.exit_code == 2
    assert "gateway init" in result.stderr
    assert not (bare / "gateway.db").exists()


def test_with_a_url_keys_are_made_listed_and_revoked_over_http(at: Run) -> None:
    made = json.loads(at("keys", "create", "--label", "over http", "--transactional", "--json").stdout)
    mine = at("agents", "leases", key=made["rawKey"])
    revoked = json.loads(at("keys", "revoke", made["id"], "--queued", "cancel", "--json").stdout)
    listed = at("keys", "list").stdout

    assert made["scopes"] == ["read", "send"]
    assert mine.exit_code == 0
    assert (revoked["status"], revoked["cancelled"]) == ("revoked", [])
    assert re.search(rf"{made['id']} +{made['keyPrefix']} +over http +revoked +read,send", listed)
    assert at("keys", "list", key=made["rawKey"]).exit_code == 1


def test_store_and_door_describe_a_key_alike(at: Run, running: Up) -> None:
    here = running.house.run("keys", "list", "--json").body
    there = json.loads(at("keys", "list", "--json").stdout)

    assert here == there


def test_without_a_store_the_profile_s_gateway_is_asked(run: Run, running: Up) -> None:
    write(Profile(running.url, running.key))

    result = run("keys", "list", "--json")

    assert result.exit_code == 0, result.output
    assert running.key[:16] in [one["keyPrefix"] for one in json.loads(result.stdout)]
