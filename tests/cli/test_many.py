"""`send batch`, `requests list` and `budget` against a gateway that is up."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.cli import send_batch
from tests.cli.conftest import Run


def mails(name: str, count: int, **changes: Any) -> list[dict[str, Any]]:
    """Mails to people of their own, each with a key."""
    usual = {"subject": name, "text": "hi\n"} | changes
    return [{"to": f"{name}{n}@example.net", "idempotencyKey": f"{name}-{n}"} | usual for n in range(count)]


def test_a_batch_of_lines_is_sent_with_progress_on_stderr(at: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.cli.meter.EVERY", 2)
    stdin = "\n".join(map(json.dumps, mails("lines", 5)))

    first = at("send", "batch", "-", stdin=stdin)
    again = at("send", "batch", "-", stdin=stdin)

    assert first.exit_code == 0, first.output
    assert first.stdout.splitlines()[0] == "5 of 5 accepted"
    assert first.stderr.splitlines() == ["decided 2 rows", "decided 4 rows"]
    assert again.exit_code == 0
    assert "had been sent before  5" in again.stdout


def test_a_batch_in_one_object_shares_what_it_says_once(at: Run, bare: Path) -> None:
    items = [{"to": f"shared{n}@example.net", "idempotencyKey": f"shared-{n}"} for n in range(3)]
    (bare / "batch.json").write_text(json.dumps({"subject": "all", "text": "hi", "sends": items}))

    done = at("send", "batch", "batch.json", "--json")

    body = json.loads(done.stdout)
    assert (done.exit_code, body["total"], body["accepted"]) == (0, 3, 3)
    assert [one["index"] for one in body["results"]] == [0, 1, 2]
    shown = json.loads(at("requests", "show", body["results"][2]["requestId"], "--json").stdout)
    assert (shown["subject"], shown["recipients"][0]["email"]) == ("all", "shared2@example.net")


def test_what_stands_in_the_way_of_one_is_told_and_harms_no_other(at: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send_batch, "PIECE", 2)
    items = mails("way", 5)
    items[2]["to"], items[4]["to"] = "no address", "way3@example.net"

    done = at("send", "batch", "-", stdin=json.dumps(items))

    assert done.exit_code == 1
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["mail", "recipient", "status", "reason", "why"]
    assert rows[0].split()[:3] == ["3", "error", "invalid_request"]
    assert "to" in rows[0]
    assert rows[1].split()[:4] == ["5", "way3@example.net", "blocked", "cooldown"]
    assert rows[2] == "3 of 5 accepted"


def test_a_batch_is_tried_without_sending(at: Run) -> None:
    stdin = json.dumps(mails("tried", 2))

    dry = at("send", "batch", "-", "--dry-run", "--json", stdin=stdin)
    listed = at("requests", "list", "--recipient", "tried0@example.net")

    assert dry.exit_code == 0
    assert json.loads(dry.stdout)["wouldAllow"] == 2
    assert listed.stdout == "none\n"


@pytest.mark.parametrize("stdin", ["", "{", "[]", "[1\n", '{"sends": []}', b"\xff"])
def test_what_is_no_batch_is_wrong_usage(at: Run, stdin: str | bytes) -> None:
    assert at("send", "batch", "-", stdin=stdin).exit_code == 2
    assert at("send", "batch", "nowhere.json").exit_code == 2


def test_a_batch_that_is_refused_whole_says_why(at: Run) -> None:
    done = at("send", "batch", "-", stdin=json.dumps({"colour": 1, "sends": mails("whole", 1)}))

    assert done.exit_code == 1
    assert "colour: is not known" in done.stderr


def test_sends_are_listed_by_what_is_asked_of_them(at: Run) -> None:
    at("send", "batch", "-", stdin=json.dumps(mails("found", 5, campaignAction="found")))

    first = at("requests", "list", "--campaign", "found", "--limit", "3")
    cursor = first.stderr.split()[-1]
    rest = at("requests", "list", "--campaign", "found", "--limit", "3", "--cursor", cursor, "--json")
    blocked = at("requests", "list", "--campaign", "found", "--status", "blocked")
    wrong = at("requests", "list", "--status", "sent")

    assert len(first.stdout.splitlines()) == 4
    assert first.stderr.startswith("there are more: --cursor ")
    body = json.loads(rest.stdout)
    assert (len(body["items"]), body["nextCursor"]) == (2, None)
    assert blocked.stdout == "none\n"
    assert wrong.exit_code == 1
    assert "status: must be one of" in wrong.stderr


def test_a_list_longer_than_a_page_is_taken_from_several(at: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.cli.request_list.PAGE", 2)
    at("send", "batch", "-", stdin=json.dumps(mails("pages", 5, campaignAction="pages")))

    body = json.loads(at("requests", "list", "--campaign", "pages", "--limit", "10", "--json").stdout)

    assert len({one["requestId"] for one in body["items"]}) == 5


def test_the_budget_is_shown_by_window(at: Run) -> None:
    at("agents", "register", "--agent-name", "spender")

    shown = at("budget", "--agent", "spender")
    body = json.loads(at("budget", "--json").stdout)
    nobody = at("budget", "--agent", "nobody at all")

    assert len(shown.stdout.splitlines()) == 7
    assert "not counted" in shown.stdout
    assert body["hourly"]["limit"] is None
    assert nobody.exit_code == 1
