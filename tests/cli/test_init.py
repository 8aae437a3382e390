"""`init` and `migrate`: a database made ready once, however often and from however many processes it is asked for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gateway import profile
from gateway.store import Store
from gateway.store.agents import list_mailboxes
from gateway.store.keys import Key, list_keys
from gateway.store.migrate import revisions
from tests.cli.conftest import Run
from tests.cli.processes import PATIENCE, House


def keys_of(folder: Path, tenant: str = "default") -> list[Key]:
    store = Store.open(f"sqlite:///{folder / 'gateway.db'}")
    try:
        return store.read(lambda tx: list_keys(tx, tenant))
    finally:
        store.close()


def test_it_makes_tenant_mailbox_and_an_operator_key_and_prints_them(run: Run, bare: Path) -> None:
    result = run("init", "--json")

    made = json.loads(result.stdout)
    assert result.exit_code == 0
    assert sorted(made) == ["address", "mailboxId", "rawKey", "tenantId"]
    assert made["tenantId"] == "default"
    assert made["address"] == "agent@gw.example.com"
    assert made["rawKey"].startswith("gk_live_")
    (key,) = keys_of(bare)
    assert key.scopes == {"read", "send", "manage", "operator"}


def test_it_writes_the_profile_with_url_and_key(run: Run, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_HTTP_BIND", "0.0.0.0:9999")

    made = json.loads(run("init", "--json").stdout)

    assert profile.read() == profile.Profile("http://127.0.0.1:9999", made["rawKey"])
    assert profile.place().stat().st_mode & 0o777 == 0o600


def test_a_second_time_nothing_is_made_and_no_key_is_printed(run: Run, bare: Path) -> None:
    first = run("init", "--json")
    kept = profile.place().read_bytes()

    second = run("init", "--json")

    assert second.exit_code == 0
    assert json.loads(second.stdout) == {k: v for k, v in json.loads(first.stdout).items() if k != "rawKey"}
    assert len(keys_of(bare)) == 1
    assert profile.place().read_bytes() == kept
    assert "gk_live_" not in run("init").output


def test_while_an_operator_key_is_in_force_no_other_is_made(run: Run, bare: Path) -> None:
    run("init")
    run("keys", "create", "--label", "other", "--scopes", "operator")
    for key in keys_of(bare):
        run("keys", "revoke", key.id)

    assert "rawKey" not in json.loads(run("init", "--json").stdout)  # the last one cannot be revoked


def test_another_tenant_has_its_own_mailbox_and_key(run: Run, bare: Path) -> None:
    run("init")

    made = json.loads(run("init", "--tenant", "second", "--mailbox", "hello@second.example.org", "--json").stdout)

    assert (made["tenantId"], made["address"]) == ("second", "hello@second.example.org")
    assert [key.tenant for key in keys_of(bare, "second")] == ["second"]
    assert "gk_live_" in profile.place().with_name("profile.toml.old").read_text()


def test_a_second_mailbox_is_added_to_a_tenant(run: Run, bare: Path) -> None:
    run("init")

    made = json.loads(run("init", "--mailbox", "second@gw.example.com", "--json").stdout)

    store = Store.open(f"sqlite:///{bare / 'gateway.db'}")
    boxes = store.read(lambda tx: list_mailboxes(tx, "default"))
    store.close()
    assert [box.address for box in boxes] == ["agent@gw.example.com", "second@gw.example.com"]
    assert made["mailboxId"] == boxes[1].id
    assert "rawKey" not in made


@pytest.mark.parametrize("name", ["machine", "localhost", "printer.local"])
def test_the_machines_own_name_is_good_enough_for_the_first_mailbox(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("GATEWAY_HOSTNAME", name)

    assert json.loads(run("init", "--json").stdout)["address"] == f"agent@{name}"


def test_four_processes_at_once_make_one_of_each(house: House, empty_database_url: str) -> None:
    command = [sys.executable, "-m", "gateway", "init", "--json"]
    env = house.env | {"GATEWAY_DATABASE_URL": empty_database_url}
    started = [
        subprocess.Popen(command, env=env, cwd=house.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    ended = [process.communicate(timeout=PATIENCE) for process in started]

    assert [process.returncode for process in started] == [0] * 4, ended
    made = [json.loads(out) for out, _ in ended]
    assert len({one["mailboxId"] for one in made}) == 1
    assert sum("rawKey" in one for one in made) == 1
    store = Store.open(empty_database_url)
    keys = store.read(lambda tx: list_keys(tx, "default"))
    store.close()
    assert len(keys) == 1


def test_a_profile_that_cannot_be_written_is_a_warning(run: Run, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bare / "file").write_text("")
    monkeypatch.setenv("GATEWAY_PROFILE", str(bare / "file" / "profile.toml"))

    result = run("init", "--json")

    assert result.exit_code == 0
    assert "rawKey" in json.loads(result.stdout)
    assert "cannot be written" in result.stderr


def test_migrate_brings_an_empty_database_to_the_newest_schema(run: Run, bare: Path) -> None:
    first, second = run("migrate", "--json"), run("migrate", "--json")

    store = Store.open(f"sqlite:///{bare / 'gateway.db'}")
    _, newest = revisions(store.dialect)
    assert json.loads(first.stdout) == {"from": None, "to": newest, "changed": True}
    assert json.loads(second.stdout) == {"from": newest, "to": newest, "changed": False}
    assert "nothing to do" in run("migrate").stdout


def test_a_database_that_cannot_be_made_is_one_line(run: Run, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_DATABASE_URL", f"sqlite:///{bare / 'no' / 'such' / 'folder.db'}")

    result = run("init")

    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert "DATABASE_URL" in result.stderr


def test_it_works_on_both_databases(run: Run, empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_DATABASE_URL", empty_database_url)

    first, second = run("init", "--json"), run("init", "--json")

    assert (first.exit_code, second.exit_code) == (0, 0), first.output + second.output
    assert "rawKey" in json.loads(first.stdout)
    assert "rawKey" not in json.loads(second.stdout)
