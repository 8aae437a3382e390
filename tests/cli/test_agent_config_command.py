"""`agents get`, `agents config`, `agents update-config` and the owner of an agent, against a gateway that is up."""

import json
import re

from tests.cli.conftest import Run
from tests.cli.processes import Up


def registered(at: Run, name: str, *args: str) -> str:
    made = at("agents", "register", "--agent-name", name, "--no-bind-key", *args, "--json")
    return str(json.loads(made.stdout)["id"])


def test_an_agent_is_shown_with_its_owner(at: Run) -> None:
    agent = registered(at, "owned", "--owner", "the desk", "--metadata", '{"team": "x"}')

    by_name, by_id = at("agents", "get", "owned"), at("agents", "get", agent, "--json")

    assert re.match(rf"owned\n +id +{agent}\n +role +general\n +owner +the desk\n", by_name.stdout), by_name.output
    assert '{"team": "x"}' in by_name.stdout
    assert json.loads(by_id.stdout)["owner"] == "the desk"
    assert at("agents", "get", "nobody-known").exit_code == 1


def test_a_config_is_shown_and_merged(at: Run) -> None:
    registered(at, "voiced")
    wish = '{"humanizer_enabled": true, "humanizer_style": "friendly", "humanizer_provider": "openai"}'

    empty = at("agents", "config", "voiced")
    done = at("agents", "update-config", "voiced", "--config", wish)
    shown = json.loads(at("agents", "config", "voiced", "--json").stdout)

    assert empty.stdout == "none\n"
    assert done.stdout.startswith("updated agent_")
    assert "warning: humanizer_provider_ignored" in done.stderr
    assert shown == {"humanizer_enabled": True, "humanizer_style": "friendly", "humanizer_provider": "anthropic"}


def test_what_needs_a_person_prints_the_link(at: Run, running: Up) -> None:
    registered(at, "quiet-voice")
    made = running.house.run("keys", "create", "--label", "tunes", "--scopes", "manage", "--json")

    on = ("agents", "update-config", "quiet-voice", "--config", '{"humanizer_enabled": true}')
    refused = at(*on, key=made.body["rawKey"])

    assert refused.exit_code == 1
    assert f"{running.url}/v1/agent/decisions/dec_" in refused.stderr
    assert "loosens: humanizer_enabled" in refused.stderr


def test_a_wrong_config_is_usage_or_refused(at: Run) -> None:
    registered(at, "wrongly")

    no_json = at("agents", "update-config", "wrongly", "--config", "on")
    no_key = at("agents", "update-config", "wrongly", "--config", "{}")

    assert (no_json.exit_code, no_key.exit_code) == (2, 1)
    assert "humanizer_enabled" in no_key.stderr
