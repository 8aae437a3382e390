"""`contacts` and `consent` against a gateway that is up."""

import json
import re

import pytest

from tests.cli.conftest import Run


def synced(at: Run, *items: object) -> dict[str, object]:
    return dict(json.loads(at("contacts", "sync", "-", "--json", stdin=json.dumps(items)).stdout))


def test_contacts_are_synced_listed_and_shown(at: Run) -> None:
    item = {"email": "Book@example.net", "externalId": "crm-7", "name": "Pat", "metadata": {"a": 1}}
    made = at("contacts", "sync", "-", stdin=json.dumps([item]))
    again = at("contacts", "sync", "-", stdin=json.dumps({"externalId": "crm-7", "email": "Book@example.net"}) + "\n")
    listed = at("contacts", "list", "--email", "book@example.net")
    shown = at("contacts", "get", "BOOK@example.net")
    body = json.loads(at("contacts", "list", "--external-id", "crm-7", "--json").stdout)

    assert made.stdout == "1 made, 0 brought up to date, 0 failed\n"
    assert again.stdout == "0 made, 1 brought up to date, 0 failed\n"
    assert re.search(r"Book@example\.net +Pat +.*crm-7 +con_\w+", listed.stdout), listed.stdout
    assert "your id  crm-7" in re.sub(r" {2,}", "  ", shown.stdout)
    assert '{"a": 1}' in shown.stdout
    assert json.loads(at("contacts", "get", body[0]["id"], "--json").stdout)["metadata"] == {"a": 1}


def test_a_contact_that_cannot_be_taken_is_named_and_harms_no_other(at: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.cli.contacts.PIECE", 2)
    items = [{"email": f"sync{n}@example.net"} for n in range(4)]
    items[3] = {"email": "no address"}

    result = at("contacts", "sync", "-", stdin="\n".join(map(json.dumps, items)))

    assert result.exit_code == 1
    assert result.stdout == "3 made, 0 brought up to date, 1 failed\n"
    assert result.stderr.startswith("contact 4: email: ")
    assert [one["index"] for one in synced(at, *items)["results"]] == [0, 1, 2, 3]  # type: ignore[attr-defined]


def test_what_is_no_list_of_contacts_is_wrong_usage(at: Run) -> None:
    for stdin in ("{", "[1", b"\xff"):
        assert at("contacts", "sync", "-", stdin=stdin).exit_code == 2
    assert at("contacts", "sync", "nowhere.json").exit_code == 2


def test_a_contact_that_is_not_there_is_code_1(at: Run) -> None:
    by_id, by_address = at("contacts", "get", "con_nowhere"), at("contacts", "get", "nobody@example.net")

    assert (by_id.exit_code, by_address.exit_code) == (1, 1)
    assert "contact_not_found" in by_id.stderr
    assert "no contact has this address" in by_address.stderr


def test_consent_is_recorded_checked_and_taken_back(at: Run) -> None:
    args = ("--email", "Agreed@example.net")

    before = at("consent", "check", *args)
    given = at("consent", "record", *args, "--basis", "contractual", "--source", "a form", "--jurisdiction", "EU")
    later = at("consent", "record", "--email", "later@example.net", "--granted-at", "2999-01-01T00:00:00Z")
    after = at("consent", "check", "--email", "AGREED@example.net")
    gone = at("consent", "record", *args, "--basis", "contractual", "--revoked-at", "2026-01-01T00:00:00Z")
    body = json.loads(at("consent", "check", *args, "--json").stdout)

    assert "has not agreed: there is no record" in before.stdout
    assert "Agreed@example.net has agreed: contractual" in given.stdout
    assert "later@example.net has not agreed yet" in later.stdout
    assert "has agreed: contractual" in after.stdout
    assert re.search(r"source +a form", after.stdout)
    assert "has taken it back" in gone.stdout
    assert (body["active"], body["revokedAt"]) == (False, "2026-01-01T00:00:00Z")
    assert {one.exit_code for one in (before, given, later, after, gone)} == {0}


def test_a_basis_that_is_not_known_is_refused(at: Run) -> None:
    result = at("consent", "record", "--email", "x@example.net", "--basis", "because")

    assert result.exit_code == 1
    assert "basis: " in result.stderr
