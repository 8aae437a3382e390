"""`agents` and `suppressions` against a gateway that is up, with the names and flags of Molted's command line."""

import json
import re
from typing import Any

from tests.cli.conftest import Run
from tests.cli.processes import Up


def agent(running: Up, at: Run, name: str) -> str:
    """A new key, bound to a new agent of this name."""
    made = running.house.run("keys", "create", "--label", name, "--json")
    assert made.code == 0, made.err
    key = str(made.body["rawKey"])
    result = at("agents", "register", "--agent-name", name, "--agent-role", "outbound", "--json", key=key)
    assert json.loads(result.stdout)["apiKeyBinding"] == "bound", result.output
    return key


def leased(at: Run, key: str, contact: str, *args: str) -> dict[str, Any]:
    result = at("agents", "lease", "--contact-email", contact, *args, "--json", key=key)
    return dict(json.loads(result.stdout))


def test_an_agent_is_registered_with_role_and_metadata(at: Run) -> None:
    args = ("--agent-name", "catalogued", "--metadata", '{"team": "x"}', "--no-bind-key")

    made = json.loads(at("agents", "register", *args, "--json").stdout)

    assert made["id"].startswith("agent_")
    assert (made["agentRole"], made["apiKeyBinding"]) == ("general", "not_requested")
    assert made["id"] in at("agents", "list").stdout
    listed = json.loads(at("agents", "list", "--json").stdout)
    assert [one["agentName"] for one in listed if one["id"] == made["id"]] == ["catalogued"]


def test_a_key_that_cannot_be_bound_is_a_warning_and_no_failure(at: Run, running: Up) -> None:
    key = agent(running, at, "first-of-two")

    result = at("agents", "register", "--agent-name", "second-of-two", key=key)

    assert result.exit_code == 0
    assert re.search(r"warning: the key was not bound: bound_to_other_agent \(agent_\w+\)", result.stderr)
    assert "registered second-of-two" in result.stdout


def test_a_heartbeat_is_noted(at: Run, running: Up) -> None:
    key = agent(running, at, "beating")
    before = listed_as(at, "beating")["lastHeartbeat"]

    own = at("agents", "heartbeat", key=key)
    other = at("agents", "heartbeat", "--agent-name", "nobody-known", "--json", key=key)

    assert (own.exit_code, own.stdout.strip()) == (0, "noted")
    assert listed_as(at, "beating")["lastHeartbeat"] > before
    assert other.exit_code != 0
    assert "agent_not_found" in other.output


def listed_as(at: Run, name: str) -> dict[str, Any]:
    """An agent as the list has it."""
    agents = json.loads(at("agents", "list", "--json").stdout)
    return dict(next(one for one in agents if one["agentName"] == name))


def test_a_lease_is_taken_renewed_listed_and_released(at: Run, running: Up) -> None:
    key = agent(running, at, "leaser")

    taken = leased(at, key, "leased@example.net", "--intent", "outbound_sales", "--duration", "5")
    token = str(taken["fencingToken"])
    renewed = at("agents", "renew-lease", taken["id"], "--fencing-token", token, "--duration", "0.5", key=key)
    leases = at("agents", "leases")
    released = at("agents", "release-lease", taken["id"], key=key)
    again = at("agents", "release-lease", taken["id"], key=key)

    assert renewed.exit_code == 0
    assert "renewed until" in renewed.stdout
    assert re.search(rf"leased@example\.net +\S+ +{token} +outbound_sales", leases.stdout), leases.stdout
    assert (released.exit_code, released.stdout.splitlines()[0]) == (0, "released")
    assert again.exit_code == 1
    assert again.stdout.startswith("not released: ")


def test_a_conflict_ends_with_code_1_and_names_the_holder(at: Run, running: Up) -> None:
    holder, other = agent(running, at, "holder"), agent(running, at, "other")
    leased(at, holder, "wanted@example.net")

    lease = at("agents", "lease", "--contact-email", "WANTED@example.net", key=other)
    send = at("send", "--to", "wanted@example.net", "--subject", "s", "--text", "t", key=other)

    for result in (lease, send):
        assert result.exit_code == 1
        assert result.stdout.splitlines()[0] == "refused: lease_conflict"
        assert re.search(r"held by +holder \(agent_\w+\), by a lease", result.stdout)
        assert re.search(r"held until +\S+Z \(in ", result.stdout)
        assert "stop; wait for release or hand off" in result.stdout


def test_an_operator_takes_a_contact_over_and_says_why(at: Run, running: Up) -> None:
    holder = agent(running, at, "former")
    leased(at, holder, "over@example.net")
    at("agents", "register", "--agent-name", "deputy", "--no-bind-key")
    args = ("--contact-email", "over@example.net", "--agent-name", "deputy", "--json")

    refused = at("agents", "lease", "--contact-email", "over@example.net", "--take-over", "it is urgent", key=holder)
    taken = at("agents", "lease", *args, "--take-over", "the former agent is gone")
    found = at("agents", "leases", "--contact-email", "OVER@example.net", "--json")
    theirs = at("agents", "leases", "--agent", "former", "--json")

    assert (refused.exit_code, "insufficient_scope" in refused.output) == (1, True)
    assert taken.exit_code == 0, taken.output
    assert [one["agentName"] for one in json.loads(found.stdout)] == ["deputy"]
    assert "over@example.net" not in theirs.stdout


def test_a_send_carries_its_token(at: Run, running: Up) -> None:
    key = agent(running, at, "tokened")
    token = leased(at, key, "tokened@example.net")["fencingToken"]
    args = ("--to", "tokened@example.net", "--subject", "s", "--text", "t", "--wait", "--json")

    wrong = at("send", *args, "--fencing-token", str(token + 1), key=key)
    right = at("send", *args, "--fencing-token", str(token), key=key)

    assert (wrong.exit_code, json.loads(wrong.stdout)["reason"]) == (1, "lease_expired")
    assert (right.exit_code, json.loads(right.stdout)["status"]) == (0, "relayed")


def test_an_old_lease_is_not_renewed(at: Run, running: Up) -> None:
    key = agent(running, at, "late-renewer")
    old = leased(at, key, "late@example.net")
    at("agents", "release-lease", old["id"], key=key)

    result = at("agents", "renew-lease", old["id"], "--fencing-token", str(old["fencingToken"]), key=key)

    assert result.exit_code == 1
    assert "not renewed: " in result.stdout
    assert "acquire again, then check again" in result.stdout


def test_an_operator_names_the_agent_by_id_or_name(at: Run) -> None:
    made = json.loads(at("agents", "register", "--agent-name", "named", "--no-bind-key", "--json").stdout)

    by_name = leased(at, "", "by-name@example.net", "--agent-name", "named")
    by_id = leased(at, "", "by-id@example.net", "--agent-id", made["id"])

    assert by_name["agentId"] == by_id["agentId"] == made["id"]


def test_a_suppressed_address_is_listed_checked_and_taken_off(at: Run) -> None:
    added = at(
        "suppressions", "add", "--email", "Opted.Out@example.net", "--reason", "unsubscribe", "--source", "a test"
    )
    listed = at("suppressions", "list", "--email", "opted.out@example.net")
    checked = at("suppressions", "check", "--email", "OPTED.OUT@example.net")
    removed = at("suppressions", "remove", "opted.out@example.net")
    again = at("suppressions", "remove", "opted.out@example.net")
    gone = at("suppressions", "check", "--email", "opted.out@example.net", "--json")

    assert (added.exit_code, listed.exit_code, checked.exit_code, removed.exit_code) == (0, 0, 0, 0)
    assert re.search(r"Opted\.Out@example\.net +unsubscribe +tenant +a test", listed.stdout)
    assert "is suppressed: unsubscribe, by its email" in checked.stdout
    assert "off the list" in removed.stdout
    assert (again.exit_code, again.stderr[:11]) == (1, "error: 404 ")
    assert json.loads(gone.stdout)["suppressed"] is False


def test_a_suppressed_domain_covers_its_addresses(at: Run) -> None:
    added = json.loads(at("suppressions", "add", "--domain", "blocked.example.org", "--json").stdout)

    checked = at("suppressions", "check", "--email", "pat@blocked.example.org")
    removed = at("suppressions", "remove", added["id"])
    after = at("suppressions", "check", "--domain", "blocked.example.org")

    assert "by its domain" in checked.stdout
    assert removed.exit_code == 0
    assert "is not suppressed" in after.stdout


def test_a_suppression_ends_when_it_says(at: Run) -> None:
    args = ("--email", "until@example.net", "--expires-at", "2999-01-01T00:00:00Z", "--json")

    assert json.loads(at("suppressions", "add", *args).stdout)["expiresAt"] == "2999-01-01T00:00:00Z"


def test_who_waits_in_line_gets_the_contact_when_it_is_free(running: Up, at: Run) -> None:
    first, second = agent(running, at, "waited-for"), agent(running, at, "in-line")
    lease = leased(at, first, "waited@example.net", "--duration", "0.01")

    got = leased(at, second, "waited@example.net", "--wait", "25")

    assert got["fencingToken"] == lease["fencingToken"] + 1


def test_one_agent_is_shown_by_id_or_name(at: Run) -> None:
    args = ("--agent-name", "looked-at", "--agent-role", "inbound", "--metadata", '{"team": "x"}', "--no-bind-key")
    made = json.loads(at("agents", "register", *args, "--json").stdout)

    shown = at("agents", "get", "looked-at")

    assert shown.stdout.splitlines()[0] == "looked-at"
    assert re.search(r"role +inbound$", shown.stdout, re.MULTILINE)
    assert json.loads(at("agents", "get", made["id"], "--json").stdout)["agentName"] == "looked-at"
    assert at("agents", "get", "nobody-of-that-name").exit_code == 1
