"""`send` and `requests` against a gateway that is up: accepted, refused with its reasons, replayed, looked at, cancelled."""

import json
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from tests.cli.conftest import Run
from tests.cli.processes import Up

LATER = (datetime.now(UTC) + timedelta(days=30)).strftime("%Y-%m-%dT%H:%M:%SZ")


def mail(to: str, *args: str) -> tuple[str, ...]:
    return ("send", "--to", to, "--subject", "Hello", "--text", "A word.", *args)


def body_of(result: Result, code: int = 0) -> dict[str, Any]:
    assert result.exit_code == code, result.output
    return dict(json.loads(result.stdout))


def test_a_mail_reaches_the_sink(at: Run, running: Up) -> None:
    sent = body_of(at(*mail("reaches@example.net", "--wait", "--json")))

    assert sent["status"] == "relayed"
    assert sent["messageId"]
    assert running.sink.line("<reaches@example.net>").string.endswith("bytes: Hello")


def test_for_people_the_answer_says_what_became_of_it(at: Run) -> None:
    result = at(*mail("people@example.net", "--wait", "--idempotency-key", "for-people"))

    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == "relayed"
    assert re.search(r"request +req_", result.stdout)
    assert re.search(r"key +for-people$", result.stdout, re.MULTILINE)


def test_a_key_that_was_made_makes_the_repetition_safe(at: Run) -> None:
    first = at(*mail("repeated@example.net"))
    made = re.search(r"key +(cli-\S+)$", first.stdout, re.MULTILINE)
    assert made is not None

    again = body_of(at(*mail("repeated@example.net", "--idempotency-key", made[1], "--json")))

    assert again["replayed"] is True
    assert again["requestId"] in first.stdout


def test_every_send_without_a_key_is_a_mail_of_its_own(at: Run) -> None:
    at(*mail("own@example.net"))

    second = body_of(at(*mail("own@example.net", "--json")), 1)

    assert second["replayed"] is False
    assert second["reason"] == "cooldown"


def test_a_refusal_ends_with_code_1_and_says_why_until_when_and_what_next(at: Run) -> None:
    at(*mail("cooled@example.net"))

    result = at(*mail("cooled@example.net"))

    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == "refused: cooldown"
    assert re.search(r"try again +\S+Z \(.*in \d+ ", result.stdout)
    assert "schedule after retryAt or drop" in result.stdout


def test_a_dry_run_lists_findings_and_sends_nothing(at: Run) -> None:
    at("suppressions", "add", "--email", "dry@example.net")

    refused = at(*mail("dry@example.net", "--dry-run"))
    welcome = at(*mail("welcome@example.net", "--dry-run"))

    assert (refused.exit_code, welcome.exit_code) == (1, 0)
    assert refused.stdout.splitlines()[0] == "dry run: it would be refused: suppressed"
    assert welcome.stdout.splitlines()[0] == "dry run: it would be accepted"
    assert body_of(at(*mail("welcome@example.net", "--wait", "--json")))["status"] == "relayed"


def test_html_and_text_go_together(at: Run, bare: Path) -> None:
    (bare / "page.html").write_text("<p>Grüße</p>", encoding="utf-8")

    sent = body_of(at(*mail("both@example.net", "--html", "page.html", "--wait", "--json")))

    assert sent["status"] == "relayed"


def test_the_text_may_come_from_stdin(at: Run) -> None:
    sent = at("send", "--to", "stdin@example.net", "--subject", "s", "--text", "-", "--wait", "--json", stdin="Grüße\n")

    assert body_of(sent)["status"] == "relayed"


def test_a_whole_message_is_sent_as_it_is(at: Run, bare: Path, running: Up) -> None:
    raw = f"From: {running.address}\nTo: raw@example.net\nSubject: From a file\n\nHello.\n"
    (bare / "mail.eml").write_bytes(raw.encode())

    sent = body_of(at("send", "--to", "raw@example.net", "--eml", "mail.eml", "--wait", "--json"))

    assert sent["status"] == "relayed"
    assert running.sink.line("<raw@example.net>").string.endswith("bytes: From a file")


def test_copies_are_recipients_too(at: Run, running: Up) -> None:
    args = (
        "--cc",
        "copy@example.net",
        "--bcc",
        "unseen@example.net",
        "--bcc",
        "hidden@example.net",
        "--wait",
        "--json",
    )

    sent = body_of(at(*mail("first@example.net", *args)))

    assert sent["counts"] == {"relayed": 4}
    names = {running.sink.line(r"-> <(first|copy|unseen|hidden)@")[1] for _ in range(4)}
    assert names == {"first", "copy", "unseen", "hidden"}


def test_a_scheduled_mail_waits_and_can_be_cancelled(at: Run) -> None:
    sent = body_of(at(*mail("later@example.net", "--schedule", LATER, "--json")))
    assert sent["status"] == "scheduled"
    assert f" leaves at   {LATER} (in " in at("requests", "show", sent["requestId"]).stdout

    cancelled = at("requests", "cancel", sent["requestId"])

    assert (cancelled.exit_code, cancelled.stdout) == (0, "cancelled: nothing has left\n")
    assert body_of(at("requests", "show", sent["requestId"], "--json"))["status"] == "cancelled"
    assert "leaves at" not in at("requests", "show", sent["requestId"]).stdout
    (told,) = [
        line
        for line in at("requests", "show", sent["requestId"], "--trace").stdout.splitlines()
        if "delivery.cancelled" in line
    ]
    assert told.endswith("cancelled")
    assert "key:" in told


def test_what_has_left_cannot_be_cancelled(at: Run) -> None:
    sent = body_of(at(*mail("gone@example.net", "--wait", "--json")))

    result = at("requests", "cancel", sent["requestId"])

    assert result.exit_code == 1
    assert "not cancelled: not_cancellable" in result.stdout
    assert "1 relayed" in result.stdout


def test_a_send_is_found_by_its_key_and_traced(at: Run) -> None:
    sent = body_of(at(*mail("found@example.net", "--idempotency-key", "to-be-found", "--wait", "--json")))

    found = body_of(at("requests", "show", "--idempotency-key", "to-be-found", "--json"))
    trace = body_of(at("requests", "show", sent["requestId"], "--trace", "--json"))
    told = at("requests", "show", "--idempotency-key", "to-be-found", "--trace")

    assert found["requestId"] == trace["request"]["id"] == sent["requestId"]
    assert trace["policyDecision"]["allow"] is True
    assert told.exit_code == 0
    assert f"{sent['requestId']}: relayed (allowed)" in told.stdout
    assert "delivery.relayed" in told.stdout
    assert "cooldown" in told.stdout


def test_a_send_that_is_not_there_is_an_error_of_one_line(at: Run) -> None:
    for args in (("req_nowhere",), ("--idempotency-key", "never-used"), ("../../readyz",)):
        result = at("requests", "show", *args)

        assert result.exit_code == 1
        assert result.stderr.startswith("error: 404 ")
        assert result.stdout == ""


def test_a_decision_about_what_waits_for_nobody_is_refused(at: Run) -> None:
    sent = body_of(at(*mail("decided@example.net", "--wait", "--json")))

    result = at("requests", "resolve", sent["requestId"], "--decision", "cancel", "--reason", "a test")

    assert result.exit_code == 1
    assert result.stderr.startswith("error: 409 ")


def test_every_bad_field_is_named(at: Run) -> None:
    result = at(*mail("not an address", "--cc", "also@bad@example.net", "--schedule", "tomorrow", "--kind", "spam"))

    assert result.exit_code == 1
    for field in ("to", "cc", "scheduledAt", "kind"):
        assert re.search(rf"^  {field}\b.*: \w", result.stderr, re.MULTILINE), result.stderr
    assert "error: 422 invalid_request" in result.stderr


def test_an_error_is_json_on_stdout_where_that_is_wanted(at: Run) -> None:
    result = at(*mail("not an address", "--json"))

    assert body_of(result, 1)["error"] == "invalid_request"
    assert "error: 422" in result.stderr


@pytest.mark.parametrize("key", ["gk_live_" + "x" * 43, "nonsense"])
def test_a_wrong_key_is_one_line_that_says_where_to_look(at: Run, key: str) -> None:
    result = at(*mail("nobody@example.net"), key=key)

    assert result.exit_code == 1
    assert re.search(r"^error: 401 unauthorized: .*GATEWAY_KEY.*profile\.toml$", result.stderr, re.MULTILINE)
    assert key not in result.output


def test_without_options_url_and_key_come_from_the_profile_that_init_wrote(running: Up) -> None:
    ended = running.house.run(*mail("profiled@example.net", "--url", running.url, "--wait", "--json"))

    assert ended.code == 0, ended.err
    assert ended.body["status"] == "relayed"


def test_url_and_key_come_from_the_environment(run: Run, running: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_URL", running.url)
    monkeypatch.setenv("GATEWAY_KEY", running.key)

    assert body_of(run(*mail("environment@example.net", "--wait", "--json")))["status"] == "relayed"


def test_a_mail_may_say_as_whom_and_of_which_kind(at: Run, running: Up) -> None:
    own = ("--from", f"The gateway <{running.address}>", "--kind", "outreach", "--json")

    sent = body_of(at(*mail("kind@example.net", *own)))
    reply = body_of(at(*mail("reply@example.net", "--kind", "reply", "--json")), 1)
    other = at(*mail("other@example.net", "--from", "somebody.else@example.com"))

    assert sent["status"] in {"queued", "relaying", "relayed"}
    assert reply["reason"] == "sender_not_allowed"
    assert other.exit_code == 1
    assert other.stdout.startswith("refused: sender_not_allowed")


class Strange(BaseHTTPRequestHandler):
    """A server that is no gateway: breaks off, answers HTML, or sends us elsewhere, by the path's first word."""

    def do_POST(self) -> None:
        how = self.path.split("/")[1]
        if how == "break":
            self.close_connection = True
            return
        self.send_response({"html": 200, "elsewhere": 307, "sick": 503}[how])
        self.send_header("Location", "/html/v1/agent/request-send")
        content = b'{"error": "store_unavailable", "message": "not \\u001b[31mnow"}' if how == "sick" else b"<html>"
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def strange() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Strange)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("break", r"the connection .* broke .*--idempotency-key K7"),
        ("html", r"answered 200 with no content type, not with JSON"),
        ("elsewhere", r"answered 307 .*not with JSON"),
        (
            "sick",
            r"503 store_unavailable: not \ufffd\[31mnow; whether it was taken is not known: .*--idempotency-key K7",
        ),
    ],
)
def test_an_odd_answer_is_one_line_and_never_a_second_try(run: Run, strange: str, path: str, says: str) -> None:
    args = ("--url", f"{strange}/{path}", "--key", "gk_live_x", "--idempotency-key", "K7")

    result = run(*mail("odd@example.net", *args))

    assert result.exit_code == 1
    assert re.search(says, result.stderr), result.stderr
    assert len(result.stderr.splitlines()) == 1
