"""Header fields: subjects, names, ids and dates are read back as they were given, in lines of a fair length."""

import email
import re
from datetime import datetime

import pytest

from gateway.core.address import parse
from gateway.core.headers import MimeError, fold
from gateway.core.mime import auto_submitted, compose, read
from tests.core.mails import PAT, WRITTEN, draft, longest, named, names_and_defects, stranger, value

FRENCH = "Événement à venir : préparation de l'assemblée générale extraordinaire des sociétaires, à l'Hôtel de Ville"
JAPANESE = "日本語" * 60


@pytest.mark.parametrize(
    "subject",
    [
        "",
        "hello",
        FRENCH,
        FRENCH * 5,
        JAPANESE,
        "a" * 900,
        "word " * 100 + "end",
        "two  blanks   and more " * 20 + "x",
        "café " * 40,
        " blanks around ",
        " ",
        "=?utf-8?q?not_encoded?=",
        "what =?is?q?this",
        "price =?",
        "ünder_score = question?",
        "😀" * 30,
        "a" * 69,
        "a" * 70,
        "a" * 71,
        "end ?= =?utf-8?b?w6k=?=",
    ],
)
def test_a_subject_is_decoded_to_exactly_what_was_given(subject: str) -> None:
    raw = compose(draft(subject=subject, text="hi\n"))

    assert value(raw, "Subject") == subject
    assert str(stranger(raw)["subject"]) == subject
    assert b"?==?" not in raw
    assert all(len(word) <= 75 for word in re.findall(rb"=\?utf-8\?.\?.*?\?=", raw))
    assert longest(raw) <= 78
    assert names_and_defects(raw) == (WRITTEN, [])


@pytest.mark.parametrize(
    ("display", "written"),
    [
        ("Pat", "Pat <pat@example.com>"),
        ("Pat of Sales", "Pat of Sales <pat@example.com>"),
        ("Sales, Pat", '"Sales, Pat" <pat@example.com>'),
        ('a "b" \\ c', r'"a \"b\" \\ c" <pat@example.com>'),
        ("mallory@example.net", '"mallory@example.net" <pat@example.com>'),
        (" x ", '" x " <pat@example.com>'),
        ("Équipe, Ventes", "=?utf-8?b?w4lxdWlwZSwgVmVudGVz?= <pat@example.com>"),
    ],
)
def test_a_display_name_is_quoted_or_encoded_as_it_needs(display: str, written: str) -> None:
    raw = compose(draft(to=(named(display),), text="hi\n"))

    assert f"To: {written}\r\n" in raw.decode()
    assert [(a.display_name, a.addr_spec) for a in stranger(raw)["to"].addresses] == [(display, "pat@example.com")]


@pytest.mark.parametrize("display", ["=?utf-8?q?caf=C3=A9?=", "x" * 200, "Ünï " * 60 + "end", "日本語" * 30])
def test_a_display_name_that_needs_encoding_is_decoded_to_itself(display: str) -> None:
    raw = compose(draft(from_=named(display), to=(named(display), PAT), text="hi\n"))

    # The newer parser of Python 3.11 puts blanks between the encoded words of a name, against RFC 2047 6.2.
    name, *rest = value(raw, "To").split(" <pat@example.com>")
    assert name == display
    assert rest == [", pat@example.com"]
    assert longest(raw) <= 78
    assert b"?==?" not in raw


def test_many_recipients_are_folded_and_all_there() -> None:
    people = tuple(parse(f"person-{i}@example.com") for i in range(40))

    raw = compose(draft(to=people, cc=people[:3], reply_to=people[3:5], text="hi\n"))

    message = stranger(raw)
    assert [a.addr_spec for a in message["to"].addresses] == [p.spec for p in people]
    assert [a.addr_spec for a in message["cc"].addresses] == [p.spec for p in people[:3]]
    assert [a.addr_spec for a in message["reply-to"].addresses] == [p.spec for p in people[3:5]]
    assert longest(raw) <= 78


def test_without_visible_recipients_the_group_says_so() -> None:
    assert b"To: undisclosed-recipients:;\r\n" in compose(draft(to=(), text="hi\n"))
    assert b"\r\nTo:" not in compose(draft(to=(), cc=(PAT,), text="hi\n"))


def test_a_local_part_outside_ascii_is_the_one_thing_written_as_utf_8() -> None:
    raw = compose(draft(to=(parse("jörg@bücher.example.com"),), text="ü\n"))

    assert "To: jörg@xn--bcher-kva.example.com\r\n".encode() in raw
    assert raw.replace("ö".encode(), b"").isascii()


def test_ids_get_their_brackets_and_long_threads_are_folded() -> None:
    thread = tuple(f"<{i}-abcdefghijklmnopqrstuvwxyz@example.com>" for i in range(30))

    raw = compose(draft(text="hi\n", message_id="m2@gw.example.com", in_reply_to="x@example.com", references=thread))

    assert b"Message-ID: <m2@gw.example.com>\r\nIn-Reply-To: <x@example.com>\r\n" in raw
    assert value(raw, "References").split() == list(thread)
    assert longest(raw) <= 78


@pytest.mark.parametrize("moment", [datetime(2026, 3, 2, 9), draft().date])  # noqa: DTZ001 - a naive one
def test_there_is_one_date_with_an_offset(moment: datetime) -> None:
    raw = compose(draft(text="hi\n", date=moment))

    assert re.findall(rb"(?m)^Date: (.*)\r$", raw)[0].startswith(b"Mon, 02 Mar 2026 09:00:00 ")
    assert re.search(rb"(?m)^Date: .* [+-]0000\r$", raw)


@pytest.mark.parametrize("piece", ["a\r\nBcc: x@example.org", "a\n", "a\r", "a\x85", "a\u2028"])
def test_no_piece_of_a_field_can_end_it(piece: str) -> None:
    with pytest.raises(MimeError):
        fold("X-A", [" a", f" {piece}"])


def test_own_headers_are_kept_and_long_words_of_theirs_are_not_broken() -> None:
    link = f"<https://example.com/{'u' * 300}?x=?y>"
    words = "word " * 40 + "end"
    headers = (("X-Campaign", "spring é"), ("List-Unsubscribe", link), ("X-Words", words), ("X-None", ""))

    raw = compose(draft(text="hi\n", headers=headers))

    assert [(name, value(raw, name)) for name, _ in headers] == list(headers)
    assert f"\r\nList-Unsubscribe: {link}\r\n".encode() in raw
    assert names_and_defects(raw)[0] == [*WRITTEN[:5], *(name for name, _ in headers), *WRITTEN[5:]]


def test_a_draft_may_say_how_it_came_about() -> None:
    raw = compose(draft(text="a", auto_submitted="auto-generated"))

    assert value(raw, "Auto-Submitted") == "auto-generated"
    assert names_and_defects(raw) == ([*WRITTEN[:5], "Auto-Submitted", *WRITTEN[5:]], [])


@pytest.mark.parametrize("name", ["Auto-Submitted", "AUTO-SUBMITTED"])
def test_its_author_has_the_last_word_on_how_a_mail_came_about(name: str) -> None:
    raw = compose(draft(text="a", auto_submitted="auto-generated", headers=((name, "no"),)))

    assert email.message_from_bytes(raw).get_all("Auto-Submitted") == ["no"]


def test_how_a_mail_came_about_is_no_part_of_what_was_asked() -> None:
    plain, said = draft(text="a"), draft(text="a", headers=(("Auto-Submitted", "no"), ("X-Own", "b")))

    assert plain.own_headers == ()
    assert said.own_headers == (("x-own", "b"),)
    assert read(compose(draft(text="a", auto_submitted="auto-replied"))).own_headers == ()


@pytest.mark.parametrize(
    ("said", "keyword"),
    [
        ("auto-replied", "auto-replied"),
        ('Auto-Replied (vacation); owner-email="pat@example.com"', "auto-replied"),
        (" no ", "no"),
        ("(((", "((("),
        ("", ""),
    ],
)
def test_the_keyword_of_auto_submitted_is_read(said: str, keyword: str) -> None:
    assert auto_submitted([("X-Own", "a"), ("AUTO-Submitted", said), ("Auto-Submitted", "other")]) == keyword
    assert auto_submitted([("X-Own", said)]) == ""
