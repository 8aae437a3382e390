"""`agents consensus` against a gateway that is up, with the flags that the seed documents, and mail that waits for a vote."""

import json
import re
from typing import Any

from tests.cli.conftest import Run
from tests.cli.processes import Up
from tests.cli.test_agents_command import agent

ABOUT = ("--action", "pause outreach", "--reason", "Fatigue scores are high")


def proposed(at: Run, key: str, contact: str, *args: str) -> dict[str, Any]:
    result = at("agents", "consensus", "create", *ABOUT, "--contact-email", contact, *args, "--json", key=key)
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def decided(at: Run, which: str, keys: list[str], vote: str) -> str:
    """Votes with each key until it is decided; how it stands then."""
    status = "pending"
    for key in keys:
        if status == "pending":
            result = at("agents", "consensus", "vote", which, "--vote", vote, "--json", key=key)
            status = json.loads(result.stdout)["consensusStatus"]
    return status


def voters(running: Up, at: Run, name: str) -> list[str]:
    """New agents, more than half of all that can be active by then."""
    count = len(json.loads(at("agents", "list", "--json").stdout)) + 2
    return [agent(running, at, f"{name}-{n}") for n in range(count)]


def test_a_vote_is_asked_for_shown_cast_and_listed(at: Run, running: Up) -> None:
    key, other = agent(running, at, "proposer"), agent(running, at, "voter")

    asked = at("agents", "consensus", "create", *ABOUT, "--contact-email", "ceo@example.net", "--timeout", "5", key=key)
    made = proposed(at, key, "ceo@example.net", "--timeout", "2.5")
    cast = at("agents", "consensus", "vote", made["id"], "--vote", "approve", "--reason", "Agreed", key=other)
    shown = at("agents", "consensus", "get", made["id"], key=other)
    listed = at("agents", "consensus", "list", "--contact-email", "CEO@example.net", key=other)
    page = at("agents", "consensus", "list", "--contact-email", "ceo@example.net", "--limit", "1", "--json", key=other)
    more = at("agents", "consensus", "list", "--contact-email", "ceo@example.net", "--limit", "1", key=other)

    assert (asked.exit_code, cast.exit_code, shown.exit_code, listed.exit_code) == (0, 0, 0, 0)
    assert asked.stdout.splitlines()[0] == "pause outreach: pending"
    assert re.search(r"next +vote", asked.stdout)
    assert cast.stdout.startswith("voted approve; the consensus is ")
    assert re.search(r"votes +1 for, 0 against", shown.stdout)
    assert re.search(rf"{made['id']} +pending +pause outreach +ceo@example\.net +1 +0 ", listed.stdout), listed.stdout
    assert [one["id"] for one in json.loads(page.stdout)["items"]] == [made["id"]]
    assert "there are more: --cursor " in more.stderr


def test_an_agent_is_named_by_id_or_by_name_where_the_key_is_bound_to_none(at: Run, running: Up) -> None:
    agent(running, at, "beside")  # of two that are active one alone decides nothing
    args = ("--agent-name", "voting-by-hand", "--no-bind-key", "--json")
    made = json.loads(at("agents", "register", *args).stdout)
    vote = proposed(at, "", "by-name@example.net", "--agent-name", "voting-by-hand")

    by_id = at("agents", "consensus", "vote", vote["id"], "--agent-id", made["id"], "--vote", "reject", "--json")
    by_name = at("agents", "consensus", "vote", vote["id"], "--agent-name", "voting-by-hand", "--vote", "approve")

    assert vote["requestingAgentId"] == made["id"]
    assert json.loads(by_id.stdout)["agentId"] == made["id"]
    assert by_name.exit_code == 0, by_name.output


def test_a_send_waits_for_the_votes_and_a_closed_vote_takes_none(at: Run, running: Up) -> None:
    keys = voters(running, at, "waiting")
    vote = proposed(at, keys[0], "waited-for@example.net")
    args = ("--to", "waited-for@example.net", "--subject", "s", "--text", "t", "--require-consensus", vote["id"])

    held = at("send", *args, key=keys[0])
    status = decided(at, vote["id"], keys, "reject")
    late = at("agents", "consensus", "vote", vote["id"], "--vote", "approve", key=keys[-1])
    refused = at("send", *args, "--json", key=keys[0])

    assert held.exit_code == 0, held.output
    assert re.search(rf"consensus +{vote['id']}", held.stdout)
    assert "wait for the votes; do not resend" in held.stdout
    assert status == "rejected"
    assert late.exit_code == 1
    assert "consensus_closed" in late.output
    assert (refused.exit_code, json.loads(refused.stdout)["reason"]) == (1, "consensus_rejected")


def test_a_mailbox_is_told_to_demand_a_consensus(at: Run) -> None:
    made = json.loads(at("mailboxes", "add", "careful@gw.example.com", "--require-consensus", "--json").stdout)
    shown = at("mailboxes", "show", "careful@gw.example.com")
    loosened = json.loads(at("mailboxes", "set", "careful@gw.example.com", "--no-consensus", "--json").stdout)

    assert made["requireConsensus"] is True
    assert re.search(r"needs a consensus +yes", shown.stdout), shown.stdout
    assert loosened["requireConsensus"] is False


def test_a_vote_that_nobody_decides_runs_out_by_itself_and_ends_the_mail_that_waits(at: Run, running: Up) -> None:
    key, contact = agent(running, at, "left-alone"), "left-alone@example.net"
    where = ("--contact", contact, "--json", "--url", running.url, "--key", running.key)
    with running.house.stay("listen", "--events", "coordination.consensus_expired,delivery.blocked", *where) as ear:
        vote = proposed(at, key, contact, "--timeout", "0.03")
        args = ("--to", contact, "--subject", "s", "--text", "t", "--require-consensus", vote["id"], "--json")
        sent = json.loads(at("send", *args, key=key).stdout)

        expired = json.loads(ear.line("consensus_expired").string)

        assert (expired["consensusId"], expired["status"]) == (vote["id"], "expired")
        if sent["status"] == "pending_approval":  # it was quicker than the vote's two seconds
            blocked = json.loads(ear.line("delivery.blocked").string)
            assert (blocked["requestId"], blocked["reason"]) == (sent["requestId"], "consensus_required")
        else:
            assert sent["reason"] == "consensus_required"
