"""Headers beyond ASCII: told apart, and encoded for a hop that takes none."""

import pytest

from gateway.core.headers import decode
from gateway.core.mime import MimeError, compose, read
from gateway.core.mimeascii import Form, ascii_headers, form
from tests.core.mails import draft, mail, names_and_defects

HEAD = "From: agent@gw.example.com\r\nTo: pat@example.com\r\nDate: Mon, 02 Mar 2026 09:00:00 +0000\r\nMessage-ID: <m@x>\r\n"
PARTS = (
    HEAD
    + "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nhi\r\n--b\r\n{}\r\n--b--\r\n"
)
FILE = 'Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: attachment; filename="{}.txt"\r\n\r\nGrüße\r\n'
INNER = f"Content-Type: message/rfc822\r\n\r\n{HEAD}Subject: Grüße\r\n\r\nhi\r\n"


def with_headers(*lines: str) -> bytes:
    return (HEAD + "".join(f"{line}\r\n" for line in lines) + "\r\nGrüße\r\n").encode()


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (compose(draft(subject="Grüße", text="Grüße")), Form.ASCII),
        (mail("8bit"), Form.ASCII),
        (with_headers("Subject: hello"), Form.ASCII),
        (with_headers("Subject: Grüße"), Form.UTF8),
        (with_headers("Subject: Grüße").replace(b"\r\n", b"\n"), Form.UTF8),
        ("Subject: Grüße".encode(), Form.UTF8),
        ("Subject: Grüße".encode("latin-1"), Form.OCTETS),
        (with_headers("Subject: Grüße", "X: y").replace(b"X: y", b"X: \xfc"), Form.OCTETS),
        (PARTS.format(FILE.format("Grüße")).encode(), Form.UTF8),
        (PARTS.format(FILE.format("Grüße")).encode("latin-1"), Form.OCTETS),
        (PARTS.format(FILE.format("hello")).encode(), Form.ASCII),
        (PARTS.format(INNER).encode(), Form.ASCII),
        (with_headers("Subject: Grüße", *["X: y"] * 1000), Form.UTF8),
        (with_headers("Subject: hello", *["X: y"] * 1000), Form.ASCII),
    ],
)
def test_the_headers_of_a_message_and_of_its_parts_say_what_they_are(message: bytes, found: Form) -> None:
    assert form(message) is found


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("Subject: Grüße", "Subject", "Grüße"),
        ("Subject: =?utf-8?q?Sch=C3=B6ne?= Grüße", "Subject", "Schöne Grüße"),
        (f"Subject: {'ü' * 300}", "Subject", "ü" * 300),
        ("Subject: eins\r\n\tzwei ü", "Subject", "eins zwei ü"),
        ("X-Note: für später", "X-Note", "für später"),
        ("Comments: ü", "Comments", "ü"),
        ("Cc: Jörg <joe@example.com>, bee@example.com", "Cc", "Jörg <joe@example.com>, bee@example.com"),
        ('Reply-To: "Käß, Jörg" <joe@example.com>', "Reply-To", "Käß, Jörg <joe@example.com>"),
        ('Cc: "A, B" <a@example.com>, ü <u@example.com>', "Cc", '"A, B" <a@example.com>, ü <u@example.com>'),
        ("Cc: pat@bücher.example.com", "Cc", "pat@xn--bcher-kva.example.com"),
        ("Sender: Jörg <agent@gw.test>", "Sender", "Jörg <agent@gw.test>"),
    ],
)
def test_what_is_said_stays_the_same_in_ascii(line: str, name: str, value: str) -> None:
    message = with_headers(line)

    raw = ascii_headers(message)

    assert form(raw) is Form.ASCII
    assert [decode(given) for other, given in read(raw).headers if other == name] == [value]
    assert max(map(len, raw.split(b"\r\n"))) <= 78
    assert raw.partition(b"\r\n\r\n")[2] == message.partition(b"\r\n\r\n")[2]
    assert [one for one in read(raw).headers if one[0] != name] == [
        one for one in read(message).headers if one[0] != name
    ]


def test_parameters_in_ascii_stay_as_they_are() -> None:
    raw = ascii_headers(with_headers('Content-Type: text/plain; x="a \\"b\\""; name="ü"'))

    assert b'Content-Type: text/plain; x="a \\"b\\""; name*=utf-8\'\'%C3%BC\r\n' in raw


def test_comments_are_no_part_of_a_parameter() -> None:
    """Put into quotes they would be one, and the parts could no longer be told apart."""
    head = "Content-Type: multipart/mixed; boundary=b (ü); x=y (c)"
    message = f"{head}\r\n\r\n--b\r\nContent-Type: text/plain; charset=utf-8 (ö)\r\n\r\nhello\r\n--b--\r\n".encode()

    raw = ascii_headers(message)

    assert b'Content-Type: multipart/mixed; boundary="b"; x="y"\r\n' in raw
    assert read(raw).text == read(message).text == "hello"


@pytest.mark.parametrize("filename", ["Grüße", "ü" * 120, 'a "quoted" ü', "Angebot für; Sie"])
def test_the_names_of_files_stay_the_same(filename: str) -> None:
    message = PARTS.format(FILE.format(filename.replace('"', '\\"'))).encode()

    raw = ascii_headers(message)

    assert form(raw) is Form.ASCII
    assert read(raw).attachments == read(message).attachments
    assert read(raw).attachments[0].filename == f"{filename}.txt"
    assert names_and_defects(raw) == (names_and_defects(message)[0], [])


@pytest.mark.parametrize(
    "message",
    [
        mail("8bit"),
        mail("8bit-signed"),
        PARTS.format(INNER).encode(),
        with_headers("Subject: hello"),
        PARTS.format("no header, ü\r\n\r\nx").encode(),
        PARTS.format("no header").encode().replace(b"no header", b"Gr\xfc\xdfe"),
    ],
)
def test_a_message_whose_headers_are_ascii_is_left_as_it_is(message: bytes) -> None:
    assert ascii_headers(message) is message


SIGNED = PARTS.replace("multipart/mixed", "multipart/signed")


@pytest.mark.parametrize(
    "message",
    [
        with_headers("Cc: jörg@example.com"),
        with_headers("Cc: Jörg <jörg@example.com>"),
        with_headers("Cc: Grüße: joe@example.com;"),
        with_headers("Cc: joe@example.com (Jörg)"),
        with_headers("Message-ID: <ü@example.com>"),
        with_headers("List-Id: Grüße <list.example.com>"),
        with_headers("Subject: Grüße\x07"),
        with_headers("Subject: Grüße", "DKIM-Signature: v=1; d=example.com"),
        with_headers("Subject: Grüße", "ARC-Seal: i=1"),
        with_headers("Content-Type: text/plain; ü=x"),
        with_headers("Subject: Grüße", *["X: y"] * 1000),
        with_headers("Subject: hello").replace(b"hello", b"\xff"),
        SIGNED.format(FILE.format("Grüße")).encode(),
        PARTS.format('Content-Type: text/plain; name="ü"\r\nno header\r\n\r\nx').encode(),
        with_headers("To: \u00a0"),
        with_headers('To: "=\\?utf-8?q?a=0D=0AX:y?=" <joe@bücher.example>'),
        with_headers("Content-Type: text/plain; name*=utf-8''a%0D%0AReply-To:%20x@example.org%0D%0AX:%20; y=\"ü\""),
        with_headers("Content-Type: text/plain; name*=utf-8''%0D%0A%0D%0Ahello; y=\"ü\""),
        with_headers('Content-Disposition: attachment; filename="=\\?utf-8?q?a=0D=0AX:y?="; y="ü"'),
    ],
)
def test_what_would_be_lost_or_broken_in_ascii_is_refused(message: bytes) -> None:
    with pytest.raises(MimeError):
        ascii_headers(message)


def test_the_subject_over_a_signed_body_can_be_encoded() -> None:
    raw = b"Subject: Gr\xc3\xbc\xc3\x9fe\r\n" + mail("8bit-signed").replace(b"Subject:", b"X-Subject:")

    assert read(ascii_headers(raw)).subject == "Grüße"
