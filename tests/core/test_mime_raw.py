"""Messages that come as bytes: prepared once, stuffed for DATA, made 7bit for an old hop."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.mime import MimeError, Traits, compose, prepare, read, stuff, to_seven_bit
from tests.core.mails import DATE, body, draft, mail, names_and_defects, stranger, value

ID = "new@gw.example.com"


def prepared(raw: bytes) -> bytes:
    return prepare(raw, message_id=ID, date=DATE)


def unstuffed(data: bytes) -> bytes:
    """What the next hop keeps of what it was sent (RFC 5321 4.5.2)."""
    assert b"\r\n.\r\n" not in data
    assert not data.startswith(b".\r\n")
    return re.sub(rb"(\A|\r\n)\.", rb"\1", data)


def test_every_spelling_of_bcc_goes_with_all_its_lines() -> None:
    raw = prepared(mail("bcc-spellings"))

    assert b"hidden-" not in raw
    assert names_and_defects(raw) == (["To", "Subject", "Message-ID", "Date", "From", "X-After", "X-Bcc-Like"], [])
    assert (value(raw, "From"), value(raw, "X-After")) == ("agent-a@gw.example.com", "ok")
    assert raw.endswith(b"\r\n\r\nBcc: this line is text and stays\r\n")


def test_a_bcc_behind_a_bare_line_end_goes_too() -> None:
    raw = prepared(b"Subject: x\rBcc: hidden@example.org\nbcc: hidden@example.org\r\n\r\na\nb\r")

    assert raw.endswith(b"Subject: x\r\n\r\na\r\nb\r\n")
    assert b"hidden" not in raw


def test_headers_of_hops_and_of_ours_go_and_all_else_stays_byte_for_byte() -> None:
    raw = mail("forged")

    kept = re.sub(rb"(?m)^(Return-Path|X-Gateway-Decision|X-Fencing-Token): .*\r\n", b"", raw)
    assert prepared(raw) == kept
    assert b"DKIM-Signature: v=1; a=rsa-sha256; d=example.org; s=x; h=from; bh=AA==;\r\n b=AA==\r\n" in kept


@pytest.mark.parametrize("name", ["dots", "8bit", "8bit-signed", "8bit-nested"])
def test_a_mail_that_is_in_order_is_left_as_it_is(name: str) -> None:
    assert prepared(mail(name)) == mail(name)


def test_date_and_message_id_are_added_where_they_are_missing() -> None:
    raw = prepared(mail("minimal"))

    assert raw == (b"Date: Mon, 02 Mar 2026 09:00:00 +0000\r\nMessage-ID: <new@gw.example.com>\r\n" + mail("minimal"))
    assert prepared(raw) == raw
    assert read(raw).traits.missing == ()


@pytest.mark.parametrize("raw", [b"From: a@example.com", b"From: a@example.com\r\n", b"From: a@example.com\r\n\r\n"])
def test_a_message_without_a_body_still_ends_its_headers(raw: bytes) -> None:
    assert prepared(raw).endswith(b"\r\nFrom: a@example.com\r\n\r\n")


def test_a_message_without_headers_gets_its_two() -> None:
    assert names_and_defects(prepared(b"\r\nbody"))[0] == ["Date", "Message-ID"]


def test_a_header_block_that_readers_would_end_differently_is_refused() -> None:
    with pytest.raises(MimeError):
        prepared(b"Subject: x\r\nhello\r\nBcc: hidden@example.org\r\n\r\n")


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        (b"a\r\n.\r\nb\r\n", b"a\r\n..\r\nb\r\n"),
        (b".", b"..\r\n"),
        (b"a\n.\nb\r.c", b"a\r\n..\r\nb\r\n..c\r\n"),
        (b"", b"\r\n"),
    ],
)
def test_dots_at_a_lines_begin_are_doubled(message: bytes, sent: bytes) -> None:
    assert stuff(message) == sent


def test_the_next_hop_reads_the_lines_with_dots_as_they_were() -> None:
    assert unstuffed(stuff(mail("dots"))) == mail("dots")


@given(st.text("a.\r\n", max_size=30))
def test_stuffing_can_always_be_undone(text: str) -> None:
    message = text.encode()

    lines = re.sub(rb"\r\n|\r|\n", b"\r\n", message)
    assert unstuffed(stuff(message)) == (lines if lines.endswith(b"\r\n") else lines + b"\r\n")


def test_an_8bit_text_is_encoded_for_an_old_hop() -> None:
    raw = to_seven_bit(mail("8bit"))

    assert raw.isascii()
    assert body(raw) == "Grüße aus München\n.\nund Schluß\n"
    assert names_and_defects(raw) == (names_and_defects(mail("8bit"))[0], [])
    assert value(raw, "Content-Transfer-Encoding") == "quoted-printable"


def test_parts_within_parts_are_encoded_each_on_its_own() -> None:
    before, after = mail("8bit-nested"), to_seven_bit(mail("8bit-nested"))

    assert after.isascii()
    assert b"8bit\r\n" not in after.replace(b"Subject: 8bit", b"")
    inner = stranger(after).get_payload()
    texts = [part.get_payload(decode=True) for part in stranger(after).walk() if part.get_content_maintype() == "text"]
    assert len(inner) == 3
    assert texts == ["Das Original hängt an.".encode(), "Könnt ihr das prüfen?".encode()]
    assert read(after).attachments[1] == read(before).attachments[1]
    assert names_and_defects(after)[1] == []


def test_a_message_that_is_ascii_is_left_as_it_is() -> None:
    raw = compose(draft(text="ü"))

    assert to_seven_bit(raw) is raw


def test_headers_that_say_what_the_new_encoding_needs_are_added() -> None:
    raw = to_seven_bit("From: a@example.com\r\n\r\nGrüße".encode())

    assert body(raw) == "Grüße"
    assert names_and_defects(raw)[0] == ["From", "MIME-Version", "Content-Type", "Content-Transfer-Encoding"]


MIXED = b"MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"


@pytest.mark.parametrize(
    "raw",
    [
        mail("8bit-signed"),
        "Subject: ü\r\n\r\nx\r\n".encode(),
        MIXED + "--b\r\nX: ü\r\n\r\nx\r\n--b--\r\n".encode(),
        MIXED + "ü\r\n--b\r\n\r\nx\r\n--b--\r\n".encode(),
        MIXED + "--b\r\n\r\nx\r\n--b--\r\nü".encode(),
        MIXED + "no boundary, ü".encode(),
        "Content-Transfer-Encoding: base64\r\n\r\nü".encode(),
        "Content-Type: message/delivery-status\r\n\r\nü".encode(),
    ],
)
def test_what_cannot_be_made_7bit_without_breaking_it_is_refused(raw: bytes) -> None:
    with pytest.raises(MimeError):
        to_seven_bit(raw)


def test_facts_of_a_composed_message_are_those_of_a_clean_one() -> None:
    traits = read(compose(draft(text="ü", html="<p>"))).traits

    assert traits == Traits(longest_line=traits.longest_line)
