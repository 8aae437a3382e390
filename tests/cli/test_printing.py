"""What reaches a terminal: texts of strangers lose their control characters and are never read as markup."""

import contextlib
import io
import json
from typing import Any

import pytest
import typer

from gateway.cli import printing
from gateway.cli.answers import explain, when


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "160")
    return Terminal()


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain", "plain"),
        ("umlauts äöü and 漢字", "umlauts äöü and 漢字"),
        ("\x1b[31mred\x1b[0m", "\ufffd[31mred\ufffd[0m"),
        ("two\r\nlines\tand more", "two  lines and more"),
        ("\x9b2J\x7f\x00", "\ufffd2J\ufffd\ufffd"),
        ("right \u202eto left", "right \ufffdto left"),
        ("no\u00a0break\u2028line", "no break line"),
        ("\ud800", "\ufffd"),
        (None, ""),
        (17, "17"),
    ],
)
def test_a_text_of_a_stranger_is_one_line_of_printable_characters(raw: object, shown: str) -> None:
    assert printing.clean(raw) == shown


def test_markup_in_a_text_is_printed_as_it_is(terminal: Terminal) -> None:
    with contextlib.redirect_stdout(terminal):
        printing.line("[bold]loud[/bold] :smile:")
        printing.table(("subject",), [("[red]x[/red]",)])

    assert "[bold]loud[/bold] :smile:" in terminal.getvalue()
    assert "[red]x[/red]" in terminal.getvalue()


def test_a_table_has_plain_columns_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    printing.table(("name", "token"), [("first", 1), ("\x1b]0;title\x07", None)])

    assert capsys.readouterr().out.splitlines() == [
        "name        token",
        "first       1",
        "\ufffd]0;title\ufffd",
    ]


def test_json_holds_nothing_that_acts_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    body = {"subject": "\x1b[2J \u202e ü \x9b"}

    printing.document(body)

    out = capsys.readouterr().out
    assert json.loads(out) == body
    assert out.isascii()
    assert "\x1b" not in out


def test_a_failure_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as caught:
        printing.fail("it\nfailed", 2)

    assert caught.value.exit_code == 2
    assert capsys.readouterr() == ("", "error: it failed\n")


def test_a_refusal_says_who_holds_until_when_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    holder = {"agentId": "agent_1", "agentName": "out\x1breach", "expiresAt": "2999-01-01T00:00:00Z", "kind": "lease"}
    body: dict[str, Any] = {
        "status": "blocked",
        "reason": "lease_conflict",
        "detail": "another agent has this contact",
        "leaseHolder": holder,
        "retryAt": "2999-01-01T00:00:00Z",
        "nextAction": "stop; wait for release or hand off",
    }

    explain(body)

    out = capsys.readouterr().out
    assert "refused: lease_conflict" in out
    assert "out\ufffdreach (agent_1), by a lease" in out
    assert "2999-01-01T00:00:00Z (in " in out
    assert "stop; wait for release or hand off" in out


@pytest.mark.parametrize("moment", [None, "", "soon", "\x1b", 5, {"a": 1}])
def test_what_is_no_time_is_no_reason_to_fail(moment: object) -> None:
    assert "\x1b" not in when(moment)


def test_an_answer_with_odd_members_is_still_printed(capsys: pytest.CaptureFixture[str]) -> None:
    explain({"status": ["x"], "findings": ["no", {"rule": 5}], "recipients": 3, "leaseHolder": "x", "warnings": None})

    assert "rule" in capsys.readouterr().out
