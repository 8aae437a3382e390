"""`events list` and `listen`, against a gateway that is up and one that goes and comes back."""

import json
import signal
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.processes import PATIENCE, House, Up, up


def registered(house: House, url: str, key: str, name: str) -> str:
    done = house.run("agents", "register", "--agent-name", name, "--no-bind-key", "--json", "--url", url, "--key", key)
    assert done.code == 0, done.err
    return str(done.body["id"])


def test_events_are_listed_by_what_they_are_and_whom_they_are_about(at: Run) -> None:
    at("suppressions", "add", "--email", "evented@example.net")
    at("suppressions", "add", "--email", "evented-not@example.net")

    listed = at("events", "list", "--contact", "evented@example.net", "--events", "suppression.*", "--json")
    shown = at("events", "list", "--contact", "evented@example.net")

    body = json.loads(listed.stdout)
    assert [(one["type"], one["contactEmail"]) for one in body["items"]] == [
        ("suppression.created", "evented@example.net")
    ]
    assert body["more"] is False
    row = shown.stdout.splitlines()[1].split()
    assert (row[0][-1], row[1:3]) == ("Z", ["suppression.created", "evented@example.net"])
    after = at("events", "list", "--since", body["since"], "--contact", "evented@example.net")
    assert after.stdout == "none\n"


def test_a_list_that_has_an_end_says_where_to_go_on(at: Run) -> None:
    for n in range(3):
        at("suppressions", "add", "--email", f"ended{n}@example.net")

    first = at("events", "list", "--limit", "2", "--json")
    told = at("events", "list", "--limit", "2")

    body = json.loads(first.stdout)
    assert (len(body["items"]), body["more"]) == (2, True)
    assert f"there are more: --since {body['since']}" in told.stderr


@pytest.mark.parametrize("args", [("--events", "nothing.*"), ("--since", "evt_1")])
def test_what_cannot_be_chosen_is_refused(at: Run, args: tuple[str, str]) -> None:
    for command in (("events", "list"), ("listen",)):
        result = at(*command, *args)

        assert result.exit_code == 1
        assert "error: 422 invalid_request" in result.stderr


def test_a_type_that_there_is_not_is_named_with_what_there_is(at: Run) -> None:
    for command in (("events", "list"), ("listen",)):
        unknown = at(*command, "--events", "send.*,foo.bar").stderr
        part = at(*command, "--events", "coordination.lease_*").stderr

        assert (
            "eventTypes: names a type of event that there is not: foo.bar; the groups are send.*, policy.*," in unknown
        )
        assert "coordination.lease_*; only a whole group can be meant, as coordination.*" in part


def test_events_are_printed_as_they_happen_until_ctrl_c(running: Up) -> None:
    where = ("--url", running.url, "--key", running.key)
    registered(running.house, running.url, running.key, "heard-before")
    since = running.house.run("events", "list", "--limit", "10000", "--json", *where).body["since"]
    with (
        running.house.stay("listen", "--events", "agent.*", "--since", since, *where) as words,
        running.house.stay("listen", "--events", "agent.*", "--since", since, "--json", *where) as objects,
    ):
        made = registered(running.house, running.url, running.key, "heard-now")

        assert f"agentId={made}" in words.line(r"^\S+Z  agent\.registered  ").string.split()
        assert json.loads(objects.line("agent.registered").string)["agentId"] == made
        assert words.stop(signal.SIGINT) == 0
        assert objects.stop(signal.SIGTERM) == 0


def test_a_gateway_that_comes_back_is_listened_to_again(tmp_path: Path) -> None:
    with up(tmp_path) as first:
        house, port = first.house, int(first.url.rpartition(":")[2])
        where = ("--url", first.url, "--key", first.key)
        since = house.run("events", "list", "--limit", "10000", "--json", *where).body["since"]
        with house.stay(
            "listen", "--json", "--events", "agent.*", *(("--since", since) if since else ()), *where
        ) as ear:
            one = registered(house, first.url, first.key, "one")
            assert json.loads(ear.line("agent.registered").string)["agentId"] == one
            assert first.gateway.stop() == 0
            ear.line("^the stream ended; connecting again$", err=True)
            ear.line("^no gateway answers at .*; asking again in", err=True)

            with house.stay("serve", "--bind", f"127.0.0.1:{port}") as again:
                again.event("http.listening")
                other = registered(house, first.url, first.key, "other")

                assert json.loads(ear.line("agent.registered").string)["agentId"] == other
                ear.line("^connected again$", err=True)
                assert ear.stop(signal.SIGINT) == 0


def test_a_key_that_is_revoked_ends_it_with_words(running: Up) -> None:
    made = running.house.run("keys", "create", "--label", "to be revoked", "--json").body
    first = ("--url", running.url, "--key", made["rawKey"])
    with running.house.stay("listen", "--events", "agent.registered", *first) as ear:
        for n in range(100):
            registered(running.house, running.url, running.key, f"until-heard-{n}")
            if not ear.out.empty():
                break
        running.house.run("keys", "revoke", made["id"], "--url", running.url, "--key", running.key)
        registered(running.house, running.url, running.key, "after-the-end")
        registered(running.house, running.url, running.key, "after-the-end-too")

        assert ear.process.wait(PATIENCE) == 1
        assert ear.line("error: ", err=True).string.strip() == "error: the key is good no longer"


def test_where_there_is_no_gateway_it_ends_as_any_command(run: Run) -> None:
    result = run("listen", "--url", "http://127.0.0.1:1", "--key", "gk_live_x")

    assert result.exit_code == 1
    assert "no gateway answers" in result.stderr
