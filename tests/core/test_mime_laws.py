"""Laws of the writer and the reader: strangers understand what we write, and every door sees the same request."""

import email
import email.policy
import email.utils
import re
from collections.abc import Sequence
from email.header import decode_header
from email.message import EmailMessage
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from gateway.core.address import Address, parse
from gateway.core.mime import (
    Attachment,
    Draft,
    MimeError,
    Parsed,
    Traits,
    compose,
    digest,
    fingerprint,
    prepare,
    read,
    stuff,
)
from tests.core.mails import DATE, draft, longest, named, names_and_defects

# Any text that JSON can bring and a header may hold; parts that have been trouble come often.
LINE = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])) | st.lists(
    st.sampled_from(
        ["=?utf-8?q?a?=", "=?", "?=", " ", "  ", "é", "日本語", "a" * 80, ",", '"', "\\", "word", "_", "😀"]
    )
).map("".join)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")) | st.lists(
    st.sampled_from(["\r\n", "\n", "\r", ".", " ", "\t", "x" * 90, "é", "=", "From ", "--", "\x0c", "\x85"])
).map("".join)
NAMES = st.from_regex(r"X-[A-Za-z]{1,10}", fullmatch=True).filter(lambda name: not name.lower().startswith("x-gateway"))
FILES = st.builds(
    Attachment,
    LINE.map(lambda name: name[:200]),
    st.sampled_from(["application/pdf", "text/plain", "text/html; charset=utf-8", "image/png"]),
    st.binary(max_size=300),
    st.none() | st.sampled_from(["one", "two@gw"]),
)
PEOPLE = st.lists(st.builds(named, LINE, st.sampled_from(["pat@example.com", "Q.R@bücher.example.com"])), max_size=3)
DRAFTS = st.builds(
    Draft,
    from_=st.builds(named, LINE, st.just("agent-a@gw.example.com")),
    to=PEOPLE.map(tuple),
    cc=PEOPLE.map(tuple),
    subject=LINE,
    text=st.none() | TEXT,
    html=st.none() | TEXT | st.just('<img src="cid:one">'),
    reply_to=PEOPLE.map(tuple),
    headers=st.lists(st.tuples(NAMES, LINE), max_size=3).map(tuple),
    in_reply_to=st.none() | st.just("a@example.com"),
    references=st.lists(st.sampled_from(["<a@example.com>", "b@example.com"]), max_size=3).map(tuple),
    attachments=st.lists(FILES, max_size=3).map(tuple),
    message_id=st.just("<m1@gw.example.com>"),
    date=st.just(DATE),
)


def composed(given: Draft) -> bytes:
    """The bytes of a draft; drafts whose header words are too long for a line are no examples."""
    try:
        return compose(given)
    except MimeError:
        reject()


def meant(given: Draft) -> list[str]:
    """The names of the headers that a draft asks for, without those that describe its body."""
    optional = [("Cc", given.cc), ("Reply-To", given.reply_to)]
    thread = [("In-Reply-To", given.in_reply_to), ("References", given.references)]
    to = ["To"] if given.to or not given.cc else []
    names = ["From", *to, *(name for name, value in optional if value), "Subject", "Date", "Message-ID"]
    return [*names, *(name for name, value in thread if value), *(name for name, _ in given.headers), "MIME-Version"]


def heard(value: str) -> str:
    """A raw header as the standard library decodes it."""
    words = decode_header(value.replace("\r\n", ""))
    return "".join(word if isinstance(word, str) else word.decode(charset or "ascii") for word, charset in words)


def asked(given: Draft | Parsed) -> tuple[str, str]:
    """Digest and fingerprint of what was asked, by a draft or by a message that was read."""
    said = digest(given.subject, given.text, given.html, given.attachments)
    return said, fingerprint(said, "mbx", ["k"], given.in_reply_to, given.references, given.own_headers)


@given(DRAFTS)
def test_a_stranger_sees_the_headers_that_were_meant_and_no_more(given: Draft) -> None:
    raw = composed(given)

    names, defects = names_and_defects(raw)
    about_the_body = ["Content-Type", "Content-Transfer-Encoding"]
    assert [name for name in names if name not in about_the_body] == meant(given)
    assert [name for name in names if name in about_the_body] == about_the_body[: len(names) - len(meant(given))]
    assert defects == []
    message = email.message_from_bytes(raw)
    assert heard(message["Subject"]) == given.subject
    own = [value for name, value in message.items() if name in dict(given.headers)]
    assert [heard(value) for value in own] == [value for _, value in given.headers]


@given(DRAFTS)
def test_a_stranger_sees_the_people_that_were_meant_and_no_more(given: Draft) -> None:
    message = email.message_from_bytes(composed(given))

    for name, people in (("From", (given.from_,)), ("To", given.to), ("Cc", given.cc), ("Reply-To", given.reply_to)):
        unfolded = [value.replace("\r\n", "") for value in message.get_all(name, [])]
        seen = [spec for _, spec in email.utils.getaddresses(unfolded) if spec]
        assert seen == [person.spec for person in people]


@given(DRAFTS)
def test_what_goes_out_is_ascii_in_short_lines(given: Draft) -> None:
    raw = composed(given)

    assert raw.isascii()
    assert b"\0" not in raw
    assert raw.count(b"\n") == raw.count(b"\r") == raw.count(b"\r\n")
    head = raw.partition(b"\r\n\r\n")[0].replace(b"\r\n", b"")
    assert (
        re.search(rb"=\?[\w-]+\?[bqBQ]\?[^ ?]*\?==\?", head) is None
    )  # two encoded words without a blank between them
    assert longest(raw) <= 998
    assert raw.endswith(b"\r\n")


@given(DRAFTS)
def test_what_is_composed_reads_back_as_what_was_asked(given: Draft) -> None:
    parsed = read(composed(given))

    assert asked(parsed) == asked(given)
    assert parsed.subject == given.subject
    assert (parsed.text or "") == _lf(given.text)
    assert (parsed.html or "") == _lf(given.html)
    assert sorted(map(repr, parsed.attachments)) == sorted(map(repr, given.attachments))
    assert [_spec(item) for item in parsed.to] == [person.spec for person in given.to]
    assert [_spec(item) for item in parsed.cc] == [person.spec for person in given.cc]
    assert parsed.traits == Traits(longest_line=parsed.traits.longest_line)


def _lf(text: str | None) -> str:
    return (text or "").replace("\r\n", "\n").replace("\r", "\n")


def _spec(item: str) -> str:
    return item.rpartition("<")[2].rstrip(">")


@given(DRAFTS)
def test_what_we_wrote_ourselves_is_relayed_as_it_is(given: Draft) -> None:
    raw = composed(given)

    assert prepare(raw, message_id="<other@gw.example.com>", date=DATE) == raw


@given(
    st.binary(max_size=200)
    | st.lists(st.sampled_from([b"\r\n", b"\n", b":", b"a: b\r\n", b"--b", b"\xff"])).map(b"".join)
)
def test_reading_any_bytes_gives_a_message_or_a_refusal(raw: bytes) -> None:
    try:
        parsed = read(b"Content-Type: multipart/mixed; boundary=b\r\n" + raw)
    except MimeError:
        return

    asked(parsed)
    parsed.subject.encode()
    stuff(raw)


@given(st.text("=?utf8-b()<>@,:;\"\\ \r\n*'%", max_size=80), st.sampled_from(["To", "Subject", "Content-Type"]))
def test_reading_any_header_gives_a_message_or_a_refusal(value: str, name: str) -> None:
    try:
        asked(read(f"{name}: {value}\r\n\r\nhi".encode()))
    except MimeError:
        return


def by_smtp(text: str, html: str | None, subject: str, files: Sequence[Attachment]) -> bytes:
    """The same mail as an agent would build it with the standard library and hand it in by SMTP."""
    message = EmailMessage(policy=email.policy.SMTP)
    message["From"], message["To"], message["Subject"] = "agent-a@gw.example.com", "pat@example.com", subject
    message["X-Campaign"], message["Reply-To"] = "spring", "Desk <desk@GW.example.com>"
    message.set_content(text)
    if html is not None:
        message.add_alternative(html, subtype="html")
    for file in files:
        main, _, sub = file.content_type.partition("/")
        message.add_attachment(file.data, maintype=main, subtype=sub, filename=file.filename)
    return message.as_bytes()


@pytest.mark.parametrize("html", [None, "<p>Grüße</p>", "<p>" + "x" * 1200])
@pytest.mark.parametrize("text", ["hi", "hi\n", "Grüße\n.\nEnde", "x" * 1200])
@pytest.mark.parametrize("files", [(), (Attachment("für.pdf", "application/pdf", b"\0\1"),)])
def test_a_json_request_and_the_same_mail_by_smtp_are_the_same(
    text: str, html: str | None, files: tuple[Attachment, ...]
) -> None:
    subject = "Grüße aus der Werkstatt, wie versprochen, und noch ein paar Worte mehr als in eine Zeile passen"
    headers, desk = (("X-Campaign", "spring"),), parse("desk@gw.example.com")
    request = draft(text=text, html=html, subject=subject, attachments=files, headers=headers, reply_to=(desk,))

    assert asked(read(by_smtp(text, html, subject, files))) == asked(request)


BASE: dict[str, Any] = {"subject": "s", "text": "t", "html": "h", "attachments": (Attachment("n", "a/b", b"d"),)}


@pytest.mark.parametrize(
    "change",
    [
        {"subject": "s!"},
        {"text": "t!"},
        {"text": "h", "html": "t"},
        {"html": None},
        {"text": "t\n\n"},
        {"attachments": ()},
        {"attachments": (Attachment("m", "a/b", b"d"),)},
        {"attachments": (Attachment("n", "a/c", b"d"),)},
        {"attachments": (Attachment("n", "a/b", b"e"),)},
        {"attachments": (Attachment("n", "a/b", b"d"),) * 2},
        {"reply_to": (parse("desk@example.com"),)},
        {"headers": (("X-A", "1"),)},
        {"headers": (("X-A1", ""),)},
        {"in_reply_to": "<a@example.com>"},
        {"references": ("<a@example.com>",)},
    ],
)
def test_another_request_has_another_fingerprint(change: dict[str, Any]) -> None:
    assert asked(draft(**BASE | change))[1] != asked(draft(**BASE))[1]


def test_what_the_roads_differ_in_does_not_count() -> None:
    two = (Attachment("n", "a/b", b"d"), Attachment("m", "A/B; x=y", b"d"))
    one = draft(
        text="a\r\nb", subject="a b", attachments=two, headers=(("X-A", "1 2"), ("X-B", "3")), in_reply_to="<i@a>"
    )
    other = draft(
        text="a\nb\n", subject="a  b", attachments=two[::-1], in_reply_to="i@a", message_id="<m2@gw.example.com>"
    )
    other = Draft(
        **{name: getattr(other, name) for name in Draft.__slots__} | {"headers": (("x-b", "3"), ("x-a", "1  2"))}
    )

    assert asked(one) == asked(other)
    assert digest("s", "\ud800", None, ()) != digest("s", "\ud801", None, ())


def test_recipients_count_as_a_set_and_the_mailbox_counts() -> None:
    def of(mailbox: str, *keys: str) -> str:
        return fingerprint("d", mailbox, keys, None, (), ())

    assert of("m", "a", "b") == of("m", "b", "a", "b")
    assert len({of("m", "a", "b"), of("m", "a"), of("m", "ab"), of("n", "a", "b"), of("ma", "b")}) == 5


def test_an_address_knows_nothing_of_its_display_name_when_requests_are_compared() -> None:
    plain, shown = parse("desk@example.com"), Address("desk", "example.com", "desk@example.com", "Desk")

    assert draft(reply_to=(plain,)).own_headers == draft(reply_to=(shown,)).own_headers
