"""`serve` as a process: it says where it listens, ends in order, and a revoked or new key is known to it."""

import json
import re
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from tests.cli.processes import House, Up, up

MAIL = ("send", "--to", "pat@example.net", "--subject", "Hello", "--text", "A word.")


def test_a_database_that_was_never_made_is_one_line_and_code_2(house: House) -> None:
    ended = house.run("serve")

    assert ended.code == 2
    assert ended.out == ""
    assert re.fullmatch(r"error: DATABASE_URL: the database is empty.* run `gateway init`, .*\n", ended.err)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SMARTHOST", "http://127.0.0.1"),
        ("SMARTHOST", "smtp://user:secret-word@mail.example.com?tls=off"),
        ("RETRY_FIRST_SECONDS", "90000"),
        ("UNKNOWN", "retry_once_after:10s"),
    ],
)
def test_a_wrong_setting_is_one_line_that_names_it(house: House, name: str, value: str) -> None:
    assert house.run("migrate").code == 0

    ended = house.run("serve", env={f"GATEWAY_{name}": value})

    assert ended.code == 2
    assert len(ended.err.splitlines()) == 1
    assert ended.err.startswith(f"error: {name}: ")
    assert "secret-word" not in ended.err


def test_a_wrong_section_of_the_file_is_one_line_that_names_it(house: House) -> None:
    assert house.run("migrate").code == 0
    (house.folder / "settings.toml").write_text("[policies.cooldown]\nsecnds = 5\n")

    ended = house.run("serve", "--config", "settings.toml")

    assert ended.code == 2
    assert len(ended.err.splitlines()) == 1
    assert "policies.cooldown.secnds" in ended.err


def test_a_port_that_is_taken_is_one_line_and_code_2(house: House) -> None:
    assert house.run("migrate").code == 0
    with socket.create_server(("127.0.0.1", 0)) as taken:
        bind = f"127.0.0.1:{taken.getsockname()[1]}"

        ended = house.run("serve", "--bind", bind)

    assert ended.code == 2
    assert ended.err == f"error: HTTP_BIND: {bind} cannot be listened on: Address already in use\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(house: House, number: int) -> None:
    assert house.run("init").code == 0
    with house.stay("serve") as gateway:
        port = gateway.event("http.listening")["port"]
        assert httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200

        assert gateway.stop(number) == 0


def test_what_is_no_http_is_answered_like_every_other_error(house: House) -> None:
    assert house.run("init").code == 0
    with house.stay("serve") as gateway:
        port = gateway.event("http.listening")["port"]
        with socket.create_connection(("127.0.0.1", port), timeout=20) as line, line.makefile("rb") as answer:
            line.sendall(b"EHLO client.example.net\r\n")
            head, _, body = answer.read().partition(b"\r\n\r\n")

    assert b"content-type: application/problem+json" in head
    assert json.loads(body)["error"] == "invalid_http"


def test_logs_are_lines_of_json_and_stdout_stays_empty(house: House) -> None:
    assert house.run("init").code == 0
    with house.stay("serve") as gateway:
        gateway.event("http.listening")
        gateway.stop()
        gateway.event("stopped")

        assert gateway.out.empty()


def test_the_role_relay_alone_opens_no_door(house: House) -> None:
    assert house.run("init").code == 0
    with house.stay("serve", "--roles", "relay") as gateway:
        gateway.event("started")
        gateway.stop()
        gateway.event("stopped")

    assert not any("http.listening" in line for line in gateway.seen)


def test_one_process_takes_mail_in_and_another_relays_it(tmp_path: Path) -> None:
    with up(tmp_path, roles="http") as both:
        args = (*MAIL, "--url", both.url, "--json")
        assert both.house.run(*args).body["status"] == "queued"

        with both.house.stay("serve", "--roles", "relay"):
            both.sink.line("<pat@example.net>")


def test_mail_accepted_before_a_stop_leaves_after_the_next_start(tmp_path: Path) -> None:
    with up(tmp_path, roles="http") as first:
        first.house.run(*MAIL, "--url", first.url)
        assert first.gateway.stop() == 0

        with first.house.stay("serve", env={"GATEWAY_ROLES": "relay"}):
            first.sink.line("<pat@example.net>")


def test_who_waits_for_the_relay_is_answered_when_the_gateway_stops(tmp_path: Path) -> None:
    with (
        up(tmp_path, roles="http") as only,
        httpx.Client(base_url=only.url, headers={"Authorization": f"Bearer {only.key}"}, timeout=60) as client,
        ThreadPoolExecutor(1) as caller,
    ):
        mail = {"to": "pat@example.net", "text": "A word."}
        answer = caller.submit(client.post, "/v1/agent/request-send", json=mail, headers={"Prefer": "wait=30"})
        while not client.get("/v1/agent/requests").json()["items"]:
            assert not answer.done()

        assert only.gateway.stop() == 0

        assert (answer.result().status_code, answer.result().json()["status"]) == (200, "queued")
        assert not [line for line in only.gateway.seen if '"error"' in line]


def test_a_new_key_works_at_once_and_a_revoked_one_no_more(running: Up) -> None:
    made = running.house.run("keys", "create", "--label", "short-lived", "--json").body
    args = ("agents", "leases", "--url", running.url, "--key", made["rawKey"])
    assert running.house.run(*args).code == 0

    running.house.run("keys", "revoke", made["id"])

    sent = running.house.run(*MAIL, "--url", running.url, "--key", made["rawKey"])
    assert sent.code == 1


def test_revoking_a_key_cancels_its_waiting_mail_where_that_is_wanted(running: Up) -> None:
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    keys = [running.house.run("keys", "create", "--label", "scheduler", "--json").body for _ in range(2)]
    later = ("--schedule", tomorrow, "--url", running.url, "--json")
    sent = [
        running.house.run("send", "--to", f"waits-{n}@example.net", "--subject", "s", "--text", "t", *later, "--key", k["rawKey"])
        for n, k in enumerate(keys)
    ]  # fmt: skip
    ids = [one.body["requestId"] for one in sent]

    kept = running.house.run("keys", "revoke", keys[0]["id"], "--json")
    cancelled = running.house.run("keys", "revoke", keys[1]["id"], "--queued", "cancel", "--json")

    assert kept.body["cancelled"] == []
    assert cancelled.body["cancelled"] == [ids[1]]
    shown = [running.house.run("requests", "show", one, "--url", running.url, "--json").body["status"] for one in ids]
    assert shown == ["scheduled", "cancelled"]
