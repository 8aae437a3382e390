"""Reading: what a message says, and the facts about its form."""

import pytest

from gateway.core.mime import Attachment, MimeError, Traits, read
from tests.core.mails import mail


def single(*lines: str, body: bytes = b"hi\r\n", charset: str = "utf-8") -> bytes:
    return "".join(line + "\r\n" for line in lines).encode(charset) + b"\r\n" + body


def nested(*parts: str, kind: str = "mixed", boundary: str = "b") -> bytes:
    """A multipart message of whole parts, each with its headers and an empty line."""
    inner = "".join(f"--{boundary}\r\n{part}\r\n" for part in parts)
    return single(f"Content-Type: multipart/{kind}; boundary={boundary}", body=f"{inner}--{boundary}--\r\n".encode())


def test_a_real_mail_is_read_with_all_its_parts() -> None:
    parsed = read(mail("umlauts-attachment-long-lines"))

    assert parsed.subject == "Grüße aus der Werkstatt: der Angebotsentwurf liegt bei"
    assert parsed.header_from == ("=?utf-8?q?Werkstatt_F=C3=BC?= =?utf-8?q?rth=2C_Annahme?= <agent-a@gw.example.com>",)
    assert ("From", "Werkstatt Fürth, Annahme <agent-a@gw.example.com>") in parsed.headers
    assert parsed.bcc == tuple(f"hidden-{n}@example.org" for n in ("one", "two", "three"))
    assert parsed.text == "Grüße! " * 100
    assert parsed.html is not None
    assert max(map(len, parsed.html.split("\n"))) > 998
    assert parsed.attachments == (
        Attachment("Angebot für die Werkstatt.pdf", "application/pdf", bytes(range(256)) * 3),
    )
    assert parsed.traits == Traits(longest_line=87)


def test_a_forged_mail_is_described_not_refused() -> None:
    parsed = read(mail("forged"))

    assert parsed.header_from == ("agent-a@gw.example.com", '"Somebody Else" <ceo@example.org>')
    assert parsed.subject == "one"
    assert parsed.message_id == "<forged@gw.example.com>"
    assert parsed.in_reply_to == "<keep-me@example.com>"
    assert parsed.own_headers == (("x-trick", "x\r\nBcc: mallory@example.net"), ("x-campaign", "keep-me-too"))
    assert parsed.traits == Traits(
        repeated=("from", "subject", "message-id"),
        control_characters=("x-trick",),
        gateway_headers=("x-gateway-decision", "x-fencing-token"),
        received=1,
        longest_line=71,
    )


def test_what_is_missing_and_what_is_raw_is_named() -> None:
    raw = b"To: pat@example.com\nSubject: gr\xc3\xbc\xc3\x9fe\x7f\r\n\r\na\0b\r" + b"x" * 1200

    parsed = read(raw)

    assert parsed.subject == "grüße\x7f"
    assert parsed.traits == Traits(
        missing=("from", "date", "message-id"),
        control_characters=("subject",),
        eight_bit=True,
        bare_newlines=True,
        nul=True,
        longest_line=1204,
    )


def test_headers_in_another_charset_are_named_and_a_body_is_not() -> None:
    raw = b"X: \xc3\xbc\r\nSubject: gr\xfc\xdfe\r\nFrom: \xfc\r\nsubject: \xff\r\n\r\n\xff\r\n"

    assert read(raw).traits.not_utf8 == ("subject", "from")
    assert read(b"Subject: x\r\n\r\n\xff\r\n").traits.not_utf8 == ()


def test_two_bcc_headers_and_a_folding_tab_are_nothing_odd() -> None:
    traits = read(mail("bcc-spellings")).traits

    assert (traits.repeated, traits.control_characters, traits.missing) == ((), (), ())


def test_threads_and_reply_addresses_are_read() -> None:
    parsed = read(
        single(
            "Sender: agent-b@gw.example.com",
            "References: <a@example.com>\r\n <b@example.com> bare@example.com",
            "In-Reply-To: your mail <a@example.com>",
            'Reply-To: "A, B" <Desk@Example.COM>, plain@example.com',
            "Date: today",
            "X-Own: a  b",
        )
    )

    assert parsed.sender == "agent-b@gw.example.com"
    assert parsed.references == ("<a@example.com>", "<b@example.com>", "bare@example.com")
    assert parsed.date == "today"
    assert parsed.reply_to == ('"A, B" <Desk@Example.COM>', "plain@example.com")
    assert parsed.own_headers == (("x-own", "a  b"), ("reply-to", "Desk@example.com, plain@example.com"))


@pytest.mark.parametrize(
    ("value", "people"),
    [
        ("", ()),
        ("a@example.com", ("a@example.com",)),
        ("a@example.com, ,B <b@example.com>,", ("a@example.com", "B <b@example.com>")),
        (r'"A, \"B\": C;" <a@example.com>, b@example.com', (r'"A, \"B\": C;" <a@example.com>', "b@example.com")),
        ("undisclosed-recipients:;", ()),
        ("Team: a@example.com, b@example.com;, c@example.com", ("a@example.com", "b@example.com", "c@example.com")),
        ("<@r.example.com,@s.example.com:a@example.com>", ("<@r.example.com,@s.example.com:a@example.com>",)),
        ("a@example.com (A, B)", ("a@example.com (A", "B)")),
        ('"open, a@example.com', ('"open, a@example.com',)),
    ],
)
def test_an_address_header_is_split_but_nothing_in_it_repaired(value: str, people: tuple[str, ...]) -> None:
    assert read(single(f"To: {value}")).to == people


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("=?utf-8?q?caf=C3=A9?= =?utf-8?b?IMOg?= la", "café à la"),
        ("=?utf-8?q?caf=C3?=\r\n\t=?UTF-8?q?=A9?=", "café"),
        ("=?iso-8859-1?q?caf=E9?= =?utf-8?q?_=E2=82=AC?=", "café €"),
        ("=?utf-8*en?q?hi?= there", "hi there"),
        ("a =?utf-8?q?b?= c =?utf-8?q?d?=", "a b c d"),
        ("=?x-unknown?q?caf=C3=A9?=", "café"),
        ("=?iso-8859-99?q?a?= =?idna?q?xn--?= =?utf-7?q?+2AA-?=", "axn--+2AA-"),
        ("=?utf-8?b?w6k?=", "é"),
        ("=?utf-8?b?a?= left", "=?utf-8?b?a?= left"),
        ("=?utf-8?q?ü?= left", "=?utf-8?q?ü?= left"),
        ("=?utf-8?q?=FF?=", "\ufffd"),
        ("=?utf-8?q?open", "=?utf-8?q?open"),
    ],
)
def test_encoded_words_are_decoded_as_far_as_they_are_well_formed(raw: str, text: str) -> None:
    assert read(single(f"Subject: {raw}")).subject == text


@pytest.mark.parametrize(
    ("head", "body", "text"),
    [
        ("Content-Type: text/plain; charset=iso-8859-1", b"caf\xe9\r\n", "café\n"),
        ("Content-Type: text/plain; charset=us-ascii", "é\r\n".encode(), "é\n"),
        ("Content-Type: text/plain; charset=utf-8*", b"x", "x"),
        ("Content-Type: text/plain; charset=iso-8859-1 (Latin)", b"caf\xe9\r\n", "café\n"),
        ("Content-Type: (a (b; c) \\)) text/plain (d) ; charset=(e) iso-8859-1 (f)(g)", b"caf\xe9\r\n", "café\n"),
        ("Content-Type: nonsense", b"x", "x"),
        ("Content-Type: multipart/mixed", b"x", None),
        ("Content-Transfer-Encoding: BASE64", b"aGkK\r\n", "hi\n"),
        ("Content-Transfer-Encoding: base64", b"aGk\r\n", "aGk\n"),
        ("Content-Transfer-Encoding: quoted-printable", b"caf=C3=A9=\r\n", "café"),
        ("Content-Type: text/html", b"<p>\r\n", None),
        ("Content-Type: text/plain; name=a.txt", b"x", None),
        ("Content-Disposition: attachment", b"x", None),
    ],
)
def test_a_body_is_decoded_by_its_own_headers(head: str, body: bytes, text: str | None) -> None:
    assert read(single(head, body=body)).text == text


@pytest.mark.parametrize(
    ("extra", "name"),
    [
        ("; filename=plain.txt", "plain.txt"),
        ("; filename=two words.txt; x", "two words.txt"),
        (r'; filename="a \"b\".txt"', 'a "b".txt'),
        ("; filename*=utf-8'de'%C3%BC.txt", "ü.txt"),
        ("; filename*=iso-8859-1''%FC.txt", "ü.txt"),
        ("; filename*=%C3%BC.txt", "ü.txt"),
        ("; filename*1=b.txt; filename*0=a-", "a-b.txt"),
        ("; filename*0*=utf-8''%C3; filename*1*=%BC; filename*2=%41.txt", "ü%41.txt"),
        ('; filename="=?utf-8?q?=C3=BC.txt?="', "ü.txt"),
        ("; *=odd; filename=x.txt", "x.txt"),
        ("; filename=report (1).txt", "report (1).txt"),
        ('; filename="report (1).txt" (a; filename=b)', "report (1).txt"),
        ("; filename=open(1.txt", "open(1.txt"),
        ("; filename=plain.txt; filename*=utf-8''%C3%BC.txt", "ü.txt"),
        ("; filename*=utf-8''%C3%BC.txt; filename*0=a; filename*1=b.txt; filename=plain.txt", "ü.txt"),
        ("; filename=plain.txt; filename*0=a; filename*1=b.txt", "ab.txt"),
    ],
)
def test_a_filename_is_read_in_every_way_it_is_written(extra: str, name: str) -> None:
    assert read(single(f"Content-Disposition: attachment{extra}")).attachments[0].filename == name


def test_the_first_texts_are_the_body_and_all_else_is_a_file() -> None:
    raw = nested(
        "Content-Type: text/plain\r\n\r\none",
        "Content-Type: text/plain\r\n\r\ntwo",
        "\r\nthree",
        "Content-Type: text/calendar; method=REQUEST\r\n\r\nfour",
    )

    parsed = read(raw)

    assert parsed.text == "one"
    assert [file.data for file in parsed.attachments] == [b"two", b"three", b"four"]
    assert parsed.attachments[2].content_type == "text/calendar; method=REQUEST"


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        ("--b\r\n\r\none\r\n--b--", [b"one"]),
        ("--b \t\r\n\r\none\r\n--b--\t\r\nepilogue\r\n--b\r\n\r\nno part", [b"one"]),
        ("preamble\r\n--b\r\n\r\none\r\n--bb\r\nstill one\r\n--b\r\n\r\ntwo", [b"one\r\n--bb\r\nstill one", b"two"]),
        ("--b\r\n--b\r\n\r\n--b--\r\n", [b"", b""]),
        ("--b", [b""]),
        ("no boundary", [b"no boundary"]),
        ("", [b""]),
        ("--b--\r\n", [b"--b--\r\n"]),
    ],
)
def test_boundaries_are_whole_lines(body: str, texts: list[bytes]) -> None:
    raw = single("Content-Type: multipart/related; boundary=b", body=("--b\r\n\r\nroot\r\n" + body).encode())
    if texts == [b"no boundary"] or body in {"", "--b--\r\n"}:
        raw = single("Content-Type: multipart/mixed; boundary=b", body=body.encode())

    assert [file.data for file in read(raw).attachments] == texts


def test_an_attached_message_is_one_file_whatever_is_in_it() -> None:
    inner = "From: a@example.com\r\nno header line\r\n folded on\r\n\r\nhi"

    parsed = read(nested(f"Content-Type: message/rfc822\r\n\r\n{inner}", " odd\r\n\r\nx"))

    assert [file.data for file in parsed.attachments] == [inner.encode()]
    assert parsed.text == "x"


@pytest.mark.parametrize(
    "raw",
    [
        b"Subject: x\r\nno header\r\nBcc: hidden@example.org\r\n\r\n",
        b" folded first\r\nFrom: a@example.com\r\n\r\n",
        b"B\0cc: hidden@example.org\r\n\r\n",
        "Bcß: x\r\n\r\n".encode(),
        b"Subject: " + b"x" * 102_400 + b"\r\n\r\n",
        b"X: y\r\n" * 1001 + b"\r\n",
        nested(*["\r\nx"] * 1000),
        nested(*[f"X-A: {'x' * 100_000}\r\n\r\nx"] * 11),
    ],
)
def test_what_readers_would_read_differently_or_never_end_is_refused(raw: bytes) -> None:
    with pytest.raises(MimeError):
        read(raw)


@pytest.mark.parametrize(("depth", "fits"), [(50, True), (51, False), (5000, False)])
def test_nesting_has_an_end(depth: int, fits: bool) -> None:
    raw = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (i, i) for i in range(depth))

    if fits:
        assert read(raw + b"\r\nhi").text == "hi"
    else:
        with pytest.raises(MimeError, match="nested"):
            read(raw + b"\r\nhi")


def test_an_empty_message_is_an_empty_text() -> None:
    assert read(b"").text == ""
    assert read(b"\r\nbody").text == "body"
