"""Composing: a stranger reads bodies back as they were meant, and what cannot be a mail is refused by its field."""

import re
from typing import Any

import pytest

from gateway.core.mime import Attachment, MimeError, check_header, compose, protected, stuff
from tests.core.mails import AGENT, PAT, body, draft, longest, named, names_and_defects, stranger


def refused(**changes: Any) -> str:
    with pytest.raises(MimeError) as caught:
        compose(draft(**changes))
    return caught.value.field


def test_a_plain_text_is_written_plainly() -> None:
    assert compose(draft(text="one\n.\ntwo\n")) == (
        b"From: agent-a@gw.example.com\r\n"
        b"To: pat@example.com\r\n"
        b"Subject: hello\r\n"
        b"Date: Mon, 02 Mar 2026 09:00:00 +0000\r\n"
        b"Message-ID: <m1@gw.example.com>\r\n"
        b"MIME-Version: 1.0\r\n"
        b"Content-Type: text/plain; charset=utf-8\r\n"
        b"Content-Transfer-Encoding: 7bit\r\n"
        b"\r\n"
        b"one\r\n.\r\ntwo\r\n"
    )


def test_the_same_draft_gives_the_same_bytes() -> None:
    whole = draft(text="a", html="<b>a</b>", attachments=(Attachment("a.bin", "application/octet-stream", b"\0"),))

    assert compose(whole) == compose(whole)


@pytest.mark.parametrize(
    "text",
    [
        "line one\n.\nline two\n.hidden\n..two\nlast",
        "hello\r\n.\r\nworld\r\n",
        ".",
        "",
        "\n",
        "no end",
        "a lone \r stays",
        "\r\r\n",
        "blank at the end \nof a line\t\n",
        "-- \nsignature",
        "From here on\n",
        "x" * 3000,
        "x" * 78 + "\n",
        "x" * 79 + "\n",
        ("wörter und " * 400) + "\n",
        "日本語\n" * 50,
        "=3D =\n",
        "\x0c\x0b\x1c\x85\u2028\u2029 no line ends\n",
    ],
)
def test_a_text_is_read_back_exactly_but_for_crlf(text: str) -> None:
    raw = compose(draft(text=text))

    assert body(raw) == text.replace("\r\n", "\n")
    assert longest(raw) <= 78
    assert raw.isascii()
    assert raw.count(b"\n") == raw.count(b"\r") == raw.count(b"\r\n")
    assert raw.endswith(b"\r\n")
    assert re.search(rb"[ \t]\r\n", raw) is None  # blanks at a line's end get lost on the way


@pytest.mark.parametrize("kind", ["alternative", "mixed"])
@pytest.mark.parametrize("text", ["no end", "one end\n", "", "lone \r", "x" * 3000, "ü\r\n"])
def test_a_text_beside_other_parts_is_read_back_exactly_too(text: str, kind: str) -> None:
    extra: dict[str, Any] = {
        "alternative": {"html": "<p>hi</p>"},
        "mixed": {"attachments": (Attachment("a.txt", "text/csv", b"1\n2"),)},
    }

    raw = compose(draft(text=text, **extra[kind]))

    assert body(raw) == text.replace("\r\n", "\n")
    assert f"multipart/{kind};" in raw.decode()
    assert names_and_defects(raw)[1] == []


def test_html_whose_soft_breaks_may_put_a_dot_first_survives_stuffing() -> None:
    html = f"<p>{'x' * 71}<br>.<br></p>\n.\n<p>end</p>"

    raw = compose(draft(text="hi\n", html=html))

    assert body(re.sub(rb"(?m)^\.", b"", stuff(raw)), "text/html") == html


@pytest.mark.parametrize(
    "bad",
    [
        "Hi\r\nBcc: mallory@example.net",
        "Hi\nX-Injected: yes",
        "Report ready\n",
        "Report ready\r\n",
        "P/L 0xf2\f Bcc: mallory@example.net",
        "P/L 0xf2\v Bcc: mallory@example.net",
        "P/L 0xf2\x85 Bcc: mallory@example.net",
        "P/L 0xf2\u2028 Bcc: mallory@example.net",
        "P/L 0xf2\u2029 Bcc: mallory@example.net",
        "P/L 0xf2\x1c Bcc: mallory@example.net",
        "nul\0here",
        "tab\there",
        "del\x7f",
        "\udc00 hi",
        "=?utf-8?q?x=0D=0ABcc:_e=40x?=",
        "=?utf-8?b?eA0KQmNjOiBlQHg=?=",
        "=?utf-8?q?a?= =?utf-8?q?=00?=",
    ],
)
def test_no_header_takes_what_could_end_it(bad: str) -> None:
    assert refused(subject=bad) == "subject"
    assert refused(from_=named(bad)) == "from"
    assert refused(to=(named(bad),)) == "to"
    assert refused(cc=(named(bad),)) == "cc"
    assert refused(reply_to=(named(bad),)) == "replyTo"
    assert refused(headers=(("X-Ref", bad),)) == "X-Ref"
    assert refused(attachments=(Attachment(bad, "text/plain", b""),)) == "attachments[0].filename"
    with pytest.raises(MimeError, match="X-Ref: control characters"):
        check_header("X-Ref", bad)


@pytest.mark.parametrize("name", ["X-Bad\r\nBcc", "X Bad", "X-Bad:", "", "X-Bäd", "X" * 77, "X-Bad\n"])
def test_a_malformed_header_name_is_refused(name: str) -> None:
    assert refused(headers=((name, "x"),)) == "headers"


RESERVED = """
    From SENDER To Cc bcc Date Message-Id Subject Reply-To In-Reply-To References MIME-Version Content-Type Content-New
    Received Return-Path DKIM-Signature Authentication-Results ARC-Seal Resent-Bcc Delivered-To X-Gateway-Decision
    X-Fencing-Token
"""


@pytest.mark.parametrize("name", RESERVED.split())
def test_a_caller_may_not_set_the_gateways_own_headers(name: str) -> None:
    assert protected(name)
    assert refused(headers=((name, "x"),)) == name


@pytest.mark.parametrize("name", ["X-Campaign", "List-Unsubscribe", "Auto-Submitted", "Precedence", "X-From"])
def test_other_headers_are_the_callers(name: str) -> None:
    assert not protected(name)


@pytest.mark.parametrize("spec", ["pat\r\nBcc: x@example.com", "a b@example.com", "a,b@example.com", "a@b@example.com"])
def test_an_address_that_nobody_checked_is_caught(spec: str) -> None:
    local, _, domain = spec.rpartition("@")

    assert refused(to=(type(PAT)(local, domain, "key"),)) == "to"
    assert refused(from_=type(PAT)("=?utf-8?q?=00?=", "example.com", "key")) == "from"


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("text", {"text": "a\0b"}),
        ("text", {"text": "\ud800"}),
        ("html", {"html": "<p>\0"}),
        ("html", {"html": "\udfff"}),
        ("messageId", {"message_id": "<a b@example.com>"}),
        ("inReplyTo", {"in_reply_to": "<x@example.com>\r\nBcc: y@example.com"}),
        ("references", {"references": ("<a@example.com>", "<>")}),
        ("X-Long", {"headers": (("X-Long", "y" * 1000),)}),
        ("List-Id", {"headers": (("List-Id", "<\u00fc.example.com>"),)}),
        ("List-Id", {"headers": (("List-Id", "<a.example.com>"), ("list-id", "<b.example.com>"))}),
        ("headers", {"headers": tuple((f"X-{i}", "y") for i in range(1000))}),
        ("headers", {"headers": tuple((f"X-{i}", "y" * 900) for i in range(120))}),
        ("attachments", {"attachments": (Attachment("", "text/plain", b""),) * 501}),
    ],
)
def test_what_cannot_be_a_mail_is_refused_by_its_field(field: str, changes: dict[str, Any]) -> None:
    assert refused(**changes) == field


def test_text_that_holds_the_boundary_gets_another_one() -> None:
    first = compose(draft(text="hi", html="<p>hi</p>"))
    boundary = re.findall(r'boundary="(.*)"', first.decode())[0]

    text = f"--{boundary}\n--{boundary}--\n"
    raw = compose(draft(text=text, html="<p>hi</p>"))

    assert body(raw) == text
    assert boundary not in re.findall(r'boundary="(.*)"', raw.decode())
    assert names_and_defects(raw)[1] == []


def test_every_message_has_boundaries_of_its_own() -> None:
    pair = [compose(draft(text="hi", html="<p>hi</p>", message_id=f"<{i}@gw.example.com>")) for i in range(2)]

    found = [boundary for raw in pair for boundary in re.findall(r'boundary="(.*)"', raw.decode())]
    assert len(set(found)) == len(found) == 2


def test_the_sender_is_the_one_that_was_given() -> None:
    assert stranger(compose(draft(text="hi\n")))["from"].addresses[0].addr_spec == AGENT.spec
