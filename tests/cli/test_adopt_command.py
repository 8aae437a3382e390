"""`adopt` against a gateway that is up: invite, claim on a machine without a profile, list, take back."""

import json
import re
from pathlib import Path

from gateway.profile import Profile, read, write
from tests.cli.conftest import Run
from tests.cli.processes import Up


def test_an_invited_agent_claims_its_key_and_has_a_profile(at: Run, run: Run, running: Up, bare: Path) -> None:
    invited = at("adopt", "invite", "--label", "Field agent", "--scopes", "send", "--expires-minutes", "5")
    token, *rest = invited.stdout.splitlines()

    claimed = run("adopt", "claim", token, "--url", running.url)
    sent = run("agents", "heartbeat")

    assert token.startswith("ga_inv_")
    assert token not in "\n".join(rest)
    assert re.search(r"\n +scopes +send\n +mailboxes +all\n +until +\S+Z \(in ", invited.stdout), invited.stdout
    key, *told = claimed.stdout.splitlines()
    assert key.startswith("gk_live_")
    assert any(re.search(r" agent +Field agent$", line) for line in told), claimed.output
    assert read() == Profile(running.url, key)
    assert str(bare / "profile.toml") in claimed.stdout
    assert sent.exit_code == 0, sent.output


def test_a_profile_that_is_there_is_left_as_it_is(at: Run, run: Run, running: Up) -> None:
    mine = Profile(running.url, running.key)
    write(mine)
    first, second = (at("adopt", "invite", "--label", f"kept {n}").stdout.splitlines()[0] for n in range(2))

    claimed = run("adopt", "claim", first)
    in_json = run("adopt", "claim", second, "--json")
    again = run("adopt", "claim", first)

    assert "which is left as it is" in claimed.stderr
    assert read() == mine
    assert json.loads(in_json.stdout)["label"] == "kept 1"
    assert again.exit_code == 1
    assert "invite_claimed" in again.stderr


def test_with_json_no_profile_is_written(at: Run, run: Run, running: Up, bare: Path) -> None:
    token = json.loads(at("adopt", "invite", "--label", "quiet", "--agent-name", "still", "--json").stdout)["token"]

    made = json.loads(run("adopt", "claim", token, "--url", running.url, "--json").stdout)

    assert (made["label"], made["agentName"]) == ("quiet", "still")
    assert not (bare / "profile.toml").exists()


def test_the_key_of_an_invitation_may_make_so_many_requests_in_a_minute(at: Run, run: Run, running: Up) -> None:
    token = json.loads(at("adopt", "invite", "--label", "slow", "--per-minute", "90", "--json").stdout)["token"]

    made = json.loads(run("adopt", "claim", token, "--url", running.url, "--json").stdout)
    none = at("adopt", "invite", "--label", "never", "--per-minute", "0")

    assert json.loads(at("whoami", "--json", key=made["apiKey"]).stdout)["requests_per_minute"] == 90
    assert none.exit_code == 2


def test_invitations_are_listed_and_taken_back(at: Run, run: Run, running: Up) -> None:
    made = json.loads(at("adopt", "invite", "--label", "never came", "--scope-all", "--json").stdout)

    listed = at("adopt", "pending")
    revoked = at("adopt", "revoke", made["id"])
    claimed = run("adopt", "claim", made["token"], "--url", running.url)

    assert re.search(rf"{made['id']} +{made['tokenPrefix']} +never came", listed.stdout), listed.stdout
    assert made["token"] not in listed.stdout
    assert revoked.stdout == f"revoked {made['id']}\n"
    assert claimed.exit_code == 1
    assert "invite_not_found" in claimed.stderr
    assert made["id"] not in at("adopt", "pending").stdout
