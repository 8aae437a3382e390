"""Files in a mail: names, types, pictures of a page, attached messages."""

from typing import Any

import pytest

from gateway.core.mime import Attachment, MimeError, compose, read
from tests.core.mails import draft, longest, names_and_defects, stranger

PIXEL = Attachment("pixel.png", "image/png", b"\x89PNG\r\n\x1a\n\0" * 40, "logo@gw")


def attached(name: str = "a.bin", kind: str = "application/octet-stream", data: bytes = b"x") -> Attachment:
    return Attachment(name, kind, data)


def files(raw: bytes) -> list[tuple[str | None, str, bytes]]:
    """Names, types and octets of all files, read by the standard library."""
    found = []
    for part in stranger(raw).walk():
        if part.get_content_disposition() in {"attachment", "inline"}:
            data = part.get_payload(decode=True)
            assert isinstance(data, bytes)
            found.append((part.get_filename(), part.get_content_type(), data))
    return found


@pytest.mark.parametrize(
    "name",
    [
        "report.pdf",
        "with blanks.pdf",
        "it's (1) [final] & more; x=y, z.pdf",
        'quote " and \\ back.pdf',
        "per%20cent.pdf",
        "=?utf-8?q?x?=.pdf",
        "=?b.pdf",
        "Angebot für die Werkstatt.pdf",
        "日本語" * 40 + ".pdf",
        "a" * 61,
        "a" * 255,
        "../../etc/passwd",
    ],
)
def test_a_filename_is_read_back_exactly(name: str) -> None:
    raw = compose(draft(text="hi", attachments=(attached(name),)))

    assert files(raw) == [(name, "application/octet-stream", b"x")]
    assert read(raw).attachments == (attached(name),)
    assert raw.isascii()
    assert longest(raw) <= 78
    assert names_and_defects(raw)[1] == []


@pytest.mark.parametrize("data", [b"", b"\0", b"\r\n.\r\n", bytes(range(256)) * 50, b"a lone \n and \r"])
def test_the_octets_of_a_file_arrive_untouched(data: bytes) -> None:
    raw = compose(draft(text="hi", attachments=(attached(data=data), attached("b.txt", "text/plain", data))))

    assert [data for _, _, data in files(raw)] == [data, data]
    assert [file.data for file in read(raw).attachments] == [data, data]


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("text/calendar; method=REQUEST; charset=utf-8", "text/calendar; method=REQUEST; charset=utf-8"),
        ('text/csv;header="present; yes"', 'text/csv; header="present; yes"'),
        ("Image/PNG", "image/png"),
    ],
)
def test_a_type_keeps_its_parameters(kind: str, written: str) -> None:
    assert read(compose(draft(attachments=(attached(kind=kind),)))).attachments[0].content_type == written


def test_a_file_without_a_name_is_still_a_file() -> None:
    nameless = (attached("", "text/plain", b"one"), attached("", "text/html", b"two"))

    parsed = read(compose(draft(attachments=nameless)))

    assert (parsed.text, parsed.html, parsed.attachments) == ("", None, nameless)


def test_a_picture_that_the_page_shows_stands_beside_the_page() -> None:
    page = '<img src="cid:logo@gw">'

    raw = compose(draft(text="hi", html=page, attachments=(attached(), PIXEL)))

    kinds = [part.get_content_type() for part in stranger(raw).walk()]
    assert kinds == [
        "multipart/mixed",
        "multipart/alternative",
        "text/plain",
        "multipart/related",
        "text/html",
        "image/png",
        "application/octet-stream",
    ]
    assert files(raw)[0] == ("pixel.png", "image/png", PIXEL.data)
    assert b"Content-ID: <logo@gw>\r\n" in raw
    parsed = read(raw)
    assert (parsed.text, parsed.html, parsed.attachments) == ("hi", page, (PIXEL, attached()))


@pytest.mark.parametrize("page", ['<img src="cid:logo%40gw">', '<img src="cid:other">', None])
def test_a_content_id_counts_where_the_page_names_it(page: str | None) -> None:
    raw = compose(draft(html=page, attachments=(PIXEL,)))

    assert (
        (b"multipart/related" in raw) == (b"Content-Disposition: inline" in raw) == (page is not None and "%40" in page)
    )
    assert read(raw).attachments == (PIXEL,)


@pytest.mark.parametrize("data", [b"From: a@example.com\r\n\r\nhi\r\n", b"From: a@example.com\n\nhi", b""])
def test_an_attached_message_travels_as_it_is_with_crlf(data: bytes) -> None:
    raw = compose(draft(text="hi", attachments=(attached("m.eml", "message/rfc822", data),)))

    assert read(raw).attachments[0].data == data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    assert raw.count(b"\n") == raw.count(b"\r\n")
    assert names_and_defects(raw)[1] == []


@pytest.mark.parametrize(
    ("field", "file"),
    [
        ("attachments[1]", attached(kind="message/rfc822", data="Subject: ü".encode())),
        ("attachments[1]", attached(kind="message/rfc822", data=b"x" * 999)),
        ("attachments[1]", attached(kind="Message/Partial", data=b"\0")),
        ("attachments[1].contentType", attached(kind="multipart/mixed; boundary=x")),
        ("attachments[1].contentType", attached(kind="text/plain\r\nBcc: x@example.com")),
        ("attachments[1].contentType", attached(kind="text")),
        ("attachments[1].contentType", attached(kind="")),
        ("attachments[1].contentType", attached(kind='text/plain; name="x')),
        ("attachments[1].contentType", attached(kind="text/plain; x=" + "y" * 300)),
        ("attachments[1].filename", attached("x" * 256)),
        ("attachments[1].filename", attached("a\r\nb")),
        ("attachments[1].filename", attached("\ud800")),
        ("attachments[1].contentId", Attachment("a", "text/plain", b"", "a> <b")),
        ("attachments[1].contentId", Attachment("a", "text/plain", b"", "")),
    ],
)
def test_a_file_that_cannot_travel_is_refused_by_its_place(field: str, file: Attachment) -> None:
    with pytest.raises(MimeError) as caught:
        compose(draft(attachments=(attached(), file)))

    assert caught.value.field == field


@pytest.mark.parametrize("bodies", [{}, {"text": "hi"}, {"html": "<p>"}, {"text": "", "html": ""}])
def test_a_mail_says_what_was_asked_whatever_bodies_it_has(bodies: dict[str, Any]) -> None:
    parsed = read(compose(draft(**bodies)))

    assert (parsed.text or "", parsed.html or "") == (bodies.get("text", ""), bodies.get("html", ""))
