"""The language of the scripts."""

from pathlib import Path

import pytest

from gateway.sink.play import Play
from gateway.sink.script import Act, Script, Span
from tests.smtp import FIXTURES


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.txt")), ids=lambda path: path.stem)
def test_every_script_that_ships_can_be_read(path: Path) -> None:
    script = Script.load(path)

    assert script.rules
    assert path.read_text().startswith("#"), "a script says what it is about"


def test_a_line_is_stage_selectors_and_acts() -> None:
    (rule,) = Script.parse('RCPT 2+ <Pat@example.com> ONCE DELAY 0.5 "450 4.7.1 later" DROP').rules

    assert (rule.stage, rule.times, rule.address, rule.once) == ("RCPT", Span(2), "pat@example.com", True)
    assert rule.acts == (Act("DELAY", seconds=0.5), Act("SAY", b"450 4.7.1 later\r\n"), Act("DROP"))


def test_a_reply_of_several_lines_stays_as_it_is_written() -> None:
    (rule,) = Script.parse(r'EHLO "250-up.example.net\r\n250 8BITMIME\r\n"').rules

    assert rule.acts == (Act("SAY", b"250-up.example.net\r\n250 8BITMIME\r\n"),)


def test_half_and_raw_have_no_end_of_line() -> None:
    half, raw = Script.parse('DOT HALF "250 ok"\nDOT RAW "25"').rules

    assert half.acts == (Act("HALF", b"250 "),)
    assert raw.acts == (Act("RAW", b"25"),)


def test_hang_takes_seconds_or_none() -> None:
    long, short, second = Script.parse("DOT HANG\nDOT HANG 600\nDOT 2 HANG").rules

    assert long.acts == (Act("HANG"),)
    assert short.acts == (Act("HANG", seconds=600.0),)
    assert (second.times, second.acts) == (Span(2, 2), (Act("HANG"),))


def test_session_narrows_the_lines_below_it() -> None:
    rules = Script.parse('MAIL "250 ok"\nSESSION 2\nMAIL DROP\nSESSION 3+\nMAIL HANG\nSESSION *\nRCPT DROP').rules

    assert [rule.sessions for rule in rules] == [Span(), Span(2, 2), Span(3), Span()]


@pytest.mark.parametrize(
    "line",
    [
        'RCTP "250 ok"',
        "RCPT",
        "RCPT 3",
        "RCPT MAYBE",
        "RCPT DELAY",
        "RCPT DELAY long",
        "RCPT HALF 250",
        'RCPT "250 ok',
        "RCPT UNTIL",
        "IDLE DROP",
        "SESSION",
        "SESSION one",
        r'RCPT "250 \q"',
    ],
)
def test_a_line_that_cannot_be_read_is_named(line: str) -> None:
    with pytest.raises(ValueError, match="line 2 of the script"):
        Script.parse(f"# a comment\n{line}\n")


def test_the_first_line_that_fits_is_taken() -> None:
    play = Play(Script.parse('RCPT <pat@example.com> "550 no"\nRCPT 2 "450 later"'), lambda: 0.0)

    assert play.cue(1, "RCPT", 1, ["lee@example.com"]) is None
    assert play.cue(1, "RCPT", 2, ["PAT@example.com"]) is play.script.rules[0]
    assert play.cue(1, "RCPT", 2, ["lee@example.com"]) is play.script.rules[1]


def test_once_is_spent_for_all_connections_and_a_peek_spends_nothing() -> None:
    play = Play(Script.parse('DOT ONCE "451 later"'), lambda: 0.0)

    assert play.cue(1, "DOT", 1, peek=True) is not None
    assert play.cue(1, "DOT", 1) is not None
    assert play.cue(2, "DOT", 1) is None


def test_new_fits_each_address_once() -> None:
    play = Play(Script.parse('RCPT NEW "450 greylisted"'), lambda: 0.0)

    fits = [
        play.cue(n, "RCPT", 1, [who]) is not None for n, who in enumerate(["a@example.com", "b@example.com"] * 2, 1)
    ]

    assert fits == [True, True, False, False]


def test_until_ends_by_the_clock() -> None:
    now = 1000.0
    play = Play(Script.parse('RCPT UNTIL +300s "450 greylisted"'), lambda: now)

    assert play.cue(1, "RCPT", 1) is not None
    now = 1299.0
    assert play.cue(2, "RCPT", 1) is not None
    now = 1300.0
    assert play.cue(3, "RCPT", 1) is None
