"""`doctor`: says of store, smarthost and settings whether they are right, and changes nothing."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from gateway.cli.doctor import hidden
from tests.cli.conftest import Run
from tests.cli.processes import House, Up


def checks(result: Result) -> dict[str, dict[str, Any]]:
    return {one["check"]: one for one in json.loads(result.stdout)["checks"]}


def test_all_is_well_where_a_gateway_and_its_sink_are_up(running: Up) -> None:
    port = running.url.rpartition(":")[2]

    ended = running.house.run("doctor", "--json", env={"GATEWAY_HTTP_BIND": f"127.0.0.1:{port}"})

    assert ended.code == 0, ended.out
    assert ended.body["ok"] is True
    states = {one["check"]: one["state"] for one in ended.body["checks"]}
    assert {name for name, state in states.items() if state != "ok"} == set()
    assert states.keys() >= {
        "settings", "store", "migrations", "sqlite journal_mode", "sqlite synchronous", "clock", "tenant default",
        "smarthost", "STARTTLS", "AUTH", "SIZE", "8BITMIME", "SMTPUTF8", "gateway", "profile",
    }  # fmt: skip


def test_for_people_each_line_begins_with_its_state(running: Up) -> None:
    ended = running.house.run("doctor")

    lines = ended.out.splitlines()
    assert "ok    sqlite journal_mode: wal" in lines
    assert "ok    sqlite synchronous: FULL" in lines
    assert re.search(r"^COOLDOWN_SECONDS +600$", ended.out, re.MULTILINE)


def test_without_a_database_it_fails_and_makes_none(run: Run, bare: Path) -> None:
    result = run("doctor", "--json")

    assert result.exit_code == 1
    assert checks(result)["migrations"]["state"] == "fail"
    assert "gateway init" in checks(result)["migrations"]["todo"]
    assert not (bare / "gateway.db").exists()


def test_a_smarthost_that_is_not_there_fails_and_names_the_sink(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("init")
    monkeypatch.setenv("GATEWAY_SMARTHOST", "smtp://127.0.0.1:1")

    result = run("doctor", "--json")

    assert result.exit_code == 1
    assert checks(result)["smarthost"]["state"] == "fail"
    assert "gateway sink" in checks(result)["smarthost"]["todo"]


def test_a_smarthost_that_offers_little_is_a_warning(house: House) -> None:
    assert house.run("init").code == 0
    (house.folder / "plain.txt").write_text('EHLO "250-up.example.net\\r\\n250 SIZE 1000"\n')
    with house.stay("sink", "--bind", "127.0.0.1:0", "--script", "plain.txt") as sink:
        port = sink.line(r"listening on .*:(\d+)$", err=True)[1]

        ended = house.run("doctor", "--json", env={"GATEWAY_SMARTHOST": f"smtp://127.0.0.1:{port}"})

    found = {one["check"]: one for one in ended.body["checks"]}
    assert ended.code == 0
    assert [found[name]["state"] for name in ("smarthost", "SIZE", "8BITMIME", "SMTPUTF8")] == [
        "ok",
        "warn",
        "warn",
        "warn",
    ]
    assert "MAX_MESSAGE_BYTES to 1000" in found["SIZE"]["todo"]


def test_tls_that_is_missing_fails(house: House) -> None:
    assert house.run("init").code == 0
    with house.stay("sink", "--bind", "127.0.0.1:0") as sink:
        port = sink.line(r"listening on .*:(\d+)$", err=True)[1]

        ended = house.run("doctor", "--json", env={"GATEWAY_SMARTHOST": f"smtp+starttls://user:word@127.0.0.1:{port}"})

    found = {one["check"]: one for one in ended.body["checks"]}
    assert ended.code == 1
    assert found["smarthost"]["state"] == "fail"
    assert "STARTTLS" in found["smarthost"]["found"]


def test_passwords_are_never_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_DATABASE_URL", "postgresql://user:top-secret@127.0.0.1:1/name")
    monkeypatch.setenv("GATEWAY_SMARTHOST", "smtp+starttls://user:top-secret@127.0.0.1:1")

    result = run("doctor", "--json")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["settings"]["smarthost"] == "smtp+starttls://user:***@127.0.0.1:1"
    assert "top-secret" not in result.output


def test_an_open_door_without_tls_is_a_warning(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("init")
    monkeypatch.setenv("GATEWAY_HTTP_BIND", "0.0.0.0:0")

    assert checks(run("doctor", "--json"))["http door"]["state"] == "warn"


def test_it_works_on_both_databases(run: Run, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_DATABASE_URL", database_url)

    found = checks(run("doctor", "--json"))

    assert found["store"]["state"] == found["migrations"]["state"] == found["clock"]["state"] == "ok"
    assert found["tenants"]["state"] == "warn"
    assert {one["state"] for name, one in found.items() if name.split()[0] in {"sqlite", "postgresql"}} <= {
        "ok",
        "fail",
    }


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("smtp+starttls://me@example.com:secret@smtp.example.com:587", "smtp+starttls://me@example.com:***@smtp.example.com:587"),
        ("smtps://user:s@cret@smtp.example.com", "smtps://user:***@smtp.example.com"),
        ("smtps://user:se/cret?x@smtp.example.com", "smtps://user:***@smtp.example.com"),
        ("postgresql://me@corp:secret@db.example.com/mail", "postgresql://me@corp:***@db.example.com/mail"),
        ("postgresql://db.example.com/mail?user=me&password=secret&x=1", "postgresql://db.example.com/mail?user=me&password=***&x=1"),
        ("postgresql:///mail?sslpassword=secret", "postgresql:///mail?sslpassword=***"),
        ("smtp://127.0.0.1:2525", "smtp://127.0.0.1:2525"),
        ("smtp://user@smtp.example.com:587", "smtp://user@smtp.example.com:587"),
        ("sqlite:///gateway.db", "sqlite:///gateway.db"),
    ],
)  # fmt: skip
def test_no_password_is_shown_however_it_is_written(url: str, shown: str) -> None:
    assert hidden(url) == shown
