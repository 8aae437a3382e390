"""`decisions` against a gateway that is up: a command that meets what only a person may do prints the link, a person confirms."""

import json
import re

from tests.cli.conftest import Run
from tests.cli.processes import Up


def manager(running: Up, label: str) -> str:
    """A key that manages, and is no operator's."""
    made = running.house.run("keys", "create", "--label", label, "--scopes", "manage", "--json")
    assert made.code == 0, made.err
    return str(made.body["rawKey"])


def test_a_refused_command_prints_the_link_and_a_person_confirms_it(at: Run, running: Up) -> None:
    key = manager(running, "asks")
    at("suppressions", "add", "--email", "decided@example.net")

    refused = at("suppressions", "remove", "decided@example.net", key=key)
    link = re.search(rf"decisionUrl: ({running.url}/v1/agent/decisions/(dec_\w+))", refused.stderr)
    assert link is not None, refused.output
    own = at("decisions", "list", "--status", "pending", key=key)
    shown = at("decisions", "show", link[1])
    not_mine = at("decisions", "confirm", link[2], key=key)
    confirmed = at("decisions", "confirm", link[1], "--reason", "they asked again")
    again = at("decisions", "confirm", link[2])

    assert refused.exit_code == 1
    assert re.search(rf"{link[2]} +pending +suppression +DELETE /v1/suppressions/decided@example\.net", own.stdout), (
        own.stdout
    )
    assert shown.stdout.startswith("suppression sup_")
    assert re.search(r" asked by +key:key_\w+", shown.stdout), shown.stdout
    assert not_mine.exit_code == 1
    assert "insufficient_scope" in not_mine.stderr
    assert confirmed.stdout.splitlines()[0] == f"confirmed {link[2]}"
    assert again.exit_code == 1
    assert "decision_closed" in again.stderr
    assert (
        json.loads(at("suppressions", "check", "--email", "decided@example.net", "--json").stdout)["suppressed"]
        is False
    )


def test_a_confirmed_key_is_shown_to_the_person_and_a_rejected_one_is_not_made(at: Run, running: Up) -> None:
    key = manager(running, "wants-more")
    wish = ("keys", "create", "--scopes", "operator", "--json")
    first = json.loads(at(*wish, "--label", "one", key=key).stdout)["decisionId"]
    second = json.loads(at(*wish, "--label", "two", key=key).stdout)["decisionId"]

    made = at("decisions", "confirm", first)
    rejected = at("decisions", "reject", second, "--reason", "not today", key=key)
    shown = json.loads(at("decisions", "show", second, "--json").stdout)
    told = at("decisions", "show", second, key=key)

    secret, second_line, *rest = made.stdout.splitlines()
    assert secret.startswith("gk_live_")
    assert second_line == f"confirmed {first}"
    assert "this is the key; it is not shown again" in made.stderr
    assert any(re.search(r" label +one$", line) for line in rest), made.stdout
    assert secret not in "\n".join(rest)
    assert at("whoami", key=secret).exit_code == 0
    assert rejected.stdout.strip() == f"rejected {second}"
    assert (shown["status"], shown["request"]["body"]["label"]) == ("rejected", "two")
    assert shown["reason"] == "not today"
    assert re.search(r"^ +reason +not today$", told.stdout, re.MULTILINE), told.stdout
