"""`mailboxes` and `relay` against a gateway that is up, and `relay` on the store itself."""

import json
import re
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Run
from tests.cli.processes import Up


@pytest.fixture
def opened(running: Up, at: Run) -> Iterator[None]:
    """The relay that the package's tests share is open again afterwards."""
    yield
    at("relay", "resume")


def test_a_mailbox_is_made_changed_paused_and_resumed(at: Run) -> None:
    domain = json.loads(at("mailboxes", "list", "--json").stdout)[0]["address"].partition("@")[2]
    address = f"desk@{domain}"
    added = at("mailboxes", "add", address, "--display-name", "Desk", "--demands", "lease", "--allow", "*.example.net")
    changed = at("mailboxes", "set", address.upper(), "--may-reply", "--cooldown", "90", "--demands", "none")
    nobody = at("mailboxes", "set", address, "--allow-nobody", "--unknown", "assume_sent_after:2h")
    paused = at("mailboxes", "pause", address)
    shown = at("mailboxes", "show", address)
    listed = at("mailboxes", "list")
    resumed = at("mailboxes", "resume", address)
    usual = at("mailboxes", "set", address, "--allow", "none", "--cooldown", "none", "--unknown", "none", "--json")

    assert re.search(rf"{address} is active\n +id +mbx_\w+\n +name +Desk\n +demands +lease\n", added.stdout), (
        added.stdout
    )
    assert re.search(r"mail may go to +\*\.example\.net", added.stdout)
    assert re.search(r" replies +yes\n(.*\n)* +cooldown +90 min", changed.stdout), changed.stdout
    assert "demands" not in changed.stdout
    assert re.search(r"unknown +assume_sent_after:2h\n(.*\n)* +mail may go to +nobody", nobody.stdout), nobody.stdout
    assert paused.stdout.startswith(f"{address} is paused; held: 0\n")
    assert shown.stdout.startswith(f"{address} is paused\n")
    assert re.search(rf"{address} +paused +Desk", listed.stdout), listed.stdout
    assert resumed.stdout.startswith(f"{address} is active; let go: 0\n")
    assert json.loads(usual.stdout)["config"] == {"mayReply": True}
    assert {one.exit_code for one in (added, changed, nobody, paused, shown, listed, resumed, usual)} == {0}


def test_what_is_no_mailbox_or_no_setting_is_said_in_a_line(at: Run) -> None:
    by_id, by_address = at("mailboxes", "show", "mbx_nowhere"), at("mailboxes", "pause", "nobody@example.net")
    nothing, both = at("mailboxes", "set", "mbx_1"), at("mailboxes", "set", "mbx_1", "--allow", "*", "--allow-nobody")
    minutes = at("mailboxes", "set", "mbx_1", "--cooldown", "1.5")
    pattern = at("mailboxes", "add", "x@example.net", "--allow", "*example.com")

    assert (by_id.exit_code, by_address.exit_code, pattern.exit_code) == (1, 1, 1)
    assert "mailbox_not_found" in by_id.stderr
    assert "no mailbox of this key has this address" in by_address.stderr
    assert "allowedRecipientDomains[0]" in pattern.stderr
    assert {one.exit_code for one in (nothing, both, minutes)} == {2}


@pytest.mark.usefixtures("opened")
def test_the_relay_is_paused_and_resumed_over_http(at: Run) -> None:
    before, paused, after = at("relay", "status"), at("relay", "pause"), at("relay", "status", "--json")
    resumed = at("relay", "resume", "--json")

    assert before.stdout == "the relay is open\n"
    assert paused.stdout == "the relay is paused\n"
    assert json.loads(after.stdout) == {"paused": True}
    assert json.loads(resumed.stdout) == {"paused": False}


def test_the_relay_is_paused_in_the_store_itself(run: Run) -> None:
    missing = run("relay", "pause")
    run("init")
    paused, status, resumed = run("relay", "pause"), run("relay", "status", "--json"), run("relay", "resume")

    assert (missing.exit_code, missing.stdout) == (2, "")
    assert (paused.stdout, resumed.stdout) == ("the relay is paused\n", "the relay is open\n")
    assert json.loads(status.stdout) == {"paused": True}
