"""Ids that look like steps of a path: every command that takes an id means that id, and says that there is none."""

import re

import pytest

from tests.cli.conftest import Run
from tests.cli.processes import Up
from tests.cli.test_usage import ALL

BY_ID: dict[str, tuple[str, ...]] = {
    "adopt revoke": (),
    "agents config": (),
    "agents consensus get": (),
    "agents consensus vote": ("--vote", "approve", "--agent-name", "voter-on-dots"),
    "agents get": (),
    "agents release-lease": (),
    "agents renew-lease": (),
    "agents update-config": ("--config", '{"humanizer_style": "casual"}'),
    "contacts get": (),
    "decisions confirm": (),
    "decisions reject": (),
    "decisions show": (),
    "keys bind": ("--agent-name", "voter-on-dots"),
    "keys narrow": ("--scopes", "read"),
    "keys revoke": (),
    "keys unbind": (),
    "mailboxes pause": (),
    "mailboxes resume": (),
    "mailboxes set": ("--display-name", "A box"),
    "mailboxes show": (),
    "requests cancel": (),
    "requests resolve": ("--decision", "cancel"),
    "requests show": (),
    "suppressions remove": (),
    "templates add-version": ("--text", __file__),
    "templates get": (),
    "templates lint": (),
    "templates publish": (),
    "templates render": (),
}
"""Commands whose argument becomes a part of a path, and what else they need."""
OTHERS = {"FILE", "FILE|-", "TOKEN", "NAME", "[NAME]", "SLUG", "ADDRESS"}
"""What arguments of other commands are."""


def test_every_command_that_takes_an_id_is_here() -> None:
    takes = {name: [one for one in node.params if one.param_type_name == "argument"] for name, node in ALL.items()}

    assert sorted(BY_ID) == sorted(name for name, own in takes.items() if own and own[0].metavar not in OTHERS)


@pytest.fixture
def voter(at: Run) -> None:
    """An agent of whom the gateway knows: only the id is wrong."""
    assert at("agents", "register", "--agent-name", "voter-on-dots", "--no-bind-key").exit_code == 0


@pytest.mark.parametrize("name", [*BY_ID, "requests show --trace"])
@pytest.mark.usefixtures("voter")
def test_dots_are_ids_that_there_are_not(at: Run, name: str) -> None:
    more = BY_ID.get(name, ())
    unknown = at(*name.split(), "nothing", *more)

    for dots in (".", ".."):
        said = at(*name.split(), dots, *more)

        assert said.exit_code == unknown.exit_code == 1, said.output
        assert said.output.replace(dots, "?") == unknown.output.replace("nothing", "?").replace(dots, "?")
    assert re.search("_not_found|lease_expired", unknown.output), unknown.output


def test_a_link_that_ends_in_dots_is_no_other_path(at: Run, running: Up) -> None:
    said = at("decisions", "reject", f"{running.url}/v1/agent/decisions/..")

    assert said.exit_code == 1
    assert "decision_not_found" in said.stderr
