"""The parts of a mail as they travel: text, files and the boundaries between them (RFC 2045, 2046, 2183, 2231, 2387).

Text travels so that decoding gives back exactly what was given, but for line ends: LF and CRLF both mean a line end and
are CRLF on the wire. A lone CR stays one. A text without a final line end keeps none: where a body must end in CRLF all
the same, a soft break of quoted-printable carries it, and decoding takes it away again.
"""

import binascii
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from gateway.core.headers import LINE_FAIR, LINE_MAX, MimeError, fold, has_controls

FILENAME_MAX = 255  # characters
TYPE_MAX = 255  # characters of a content type with its parameters

_ANY_LINE_END = re.compile(rb"\r\n|\r|\n")
_LF_TEXT = re.compile("\r\n?")
_PLAIN = bytes([9, 10, *range(32, 127)])  # what may travel bare
_PRINTABLE = bytes([9, 10, 13, *range(32, 61), *range(62, 127)])  # what quoted-printable leaves as it is
_QP_DEAR = 4  # with one octet in so many to be quoted it is neither readable nor short (base64 is shorter from 6 on)
_B64_OCTETS = 57  # they make a line of 76

_WORD = r"[A-Za-z0-9!#$%&'*+.^_`{|}~-]+"
_PARAMETER = rf'; ?({_WORD}=(?:{_WORD}|"[ !#-\[\]-~]*"))'
_TYPE = re.compile(rf"({_WORD}/{_WORD})((?:{_PARAMETER})*)")
_CID = re.compile(r"cid:([^\s\"'<>()]+)", re.IGNORECASE)
_CONTENT_ID = re.compile(r"[!-;=?-~]{1,200}")
# What needs no RFC 2231: neither quote nor backslash nor per cent, no blank at an end, nothing like an encoded word.
_PLAIN_NAME = re.compile(r"(?! )(?!.*=\?)[ !#$&-\[\]-~]{1,60}(?<! )")
_NAME_PIECE = 48  # characters of an encoded parameter on one line

Entity = tuple[str, bytes]  # the header fields that describe a part, each with its CRLF, and its encoded body


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file in a mail; `content_id` (without angle brackets) lets html show it as `cid:`."""

    filename: str
    content_type: str
    data: bytes
    content_id: str | None = None

    @property
    def media_type(self) -> str:
        """Its type and subtype in lower case, without parameters."""
        return self.content_type.partition(";")[0].strip().lower()

    @property
    def canonical(self) -> bytes:
        """Its octets; those of an attached message with the line ends in which it travels."""
        return crlf(self.data) if self.media_type.startswith("message/") else self.data


def shown_ids(html: str) -> frozenset[str]:
    """The content ids of the files that a page shows (RFC 2392)."""
    return frozenset(unquote(cid) for cid in _CID.findall(html))


def lf(text: str) -> str:
    """The text with LF for every line end, a lone CR too."""
    return _LF_TEXT.sub("\n", text) if "\r" in text else text


def crlf(data: bytes) -> bytes:
    """The octets with CRLF for every line end, a lone CR or LF too."""
    return _ANY_LINE_END.sub(b"\r\n", data) if has_bare_line_ends(data) else data


def has_bare_line_ends(data: bytes) -> bool:
    """Whether there is a CR without LF or an LF without CR."""
    ends = data.count(b"\r\n")
    return data.count(b"\n") != ends or data.count(b"\r") != ends


# --- encodings --------------------------------------------------------------------------------------------------------


def encode_text(text: str, *, ends: bool) -> tuple[str, bytes]:
    """The name of the encoding and the octets of a text; `ends` asks for a final CRLF on the wire.

    7bit for plain ASCII in short lines, else quoted-printable, or base64 where most would be quoted. Raises
    `UnicodeEncodeError` for a lone surrogate.
    """
    data = text.encode()
    if b"\n" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    if text.isascii() and not (ends and data and not data.endswith(b"\r\n")):
        lines = data.split(b"\r\n")
        if _plain(lines):
            return "7bit", data
    return encode_octets(data, ends=ends)


def _plain(lines: list[bytes]) -> bool:
    """Whether lines may travel bare: short, no control character but TAB, no blank at a line's end."""
    if max(map(len, lines)) > LINE_FAIR or b"".join(lines).translate(None, delete=_PLAIN):
        return False
    return not any(line.endswith((b" ", b"\t")) for line in lines)


def encode_octets(data: bytes, *, ends: bool) -> tuple[str, bytes]:
    """Quoted-printable for what is mostly ASCII text with CRLF, else base64: the encoding's name and the octets."""
    if len(data.translate(None, delete=_PRINTABLE)) * _QP_DEAR > len(data):
        return "base64", base64(data)
    return "quoted-printable", quoted_printable(data, ends=ends)


def quoted_printable(data: bytes, *, ends: bool) -> bytes:
    """Octets in quoted-printable; CRLF is a line end, any other CR or LF is content and encoded.

    With `ends` the result ends in CRLF, if need be by a soft break that decoding takes away again (RFC 2045 6.7 (5)).
    """
    lines = data.split(b"\r\n")
    # Line by line and not as text: as text `binascii` would leave a lone CR bare.
    coded = b"\r\n".join([binascii.b2a_qp(line, istext=False).replace(b"\n", b"\r\n") for line in lines])
    return coded + b"=\r\n" if ends and lines[-1] else coded


def base64(data: bytes) -> bytes:
    """Octets in base64, in lines of 76 that end in CRLF."""
    starts = range(0, len(data), _B64_OCTETS)
    lines = [binascii.b2a_base64(data[start : start + _B64_OCTETS], newline=False) for start in starts]
    return b"\r\n".join([*lines, b""])


# --- entities ---------------------------------------------------------------------------------------------------------


def text_part(field: str, subtype: str, text: str, *, ends: bool) -> Entity:
    """A text as a part; raises `MimeError` for NUL and lone surrogates."""
    if "\0" in text:
        raise MimeError(field, "NUL is not allowed")
    try:
        encoding, data = encode_text(text, ends=ends)
    except UnicodeEncodeError as error:
        raise MimeError(field, "lone surrogates are not allowed") from error
    return f"Content-Type: text/{subtype}; charset=utf-8\r\nContent-Transfer-Encoding: {encoding}\r\n", data


def file_part(field: str, file: Attachment, disposition: str) -> Entity:
    """A file as a part, in base64, `disposition` being inline or attachment.

    Raises `MimeError` for a malformed type, name or content id, and for an attached message that is not ASCII in lines
    of at most 998 octets: base64 is not allowed for it (RFC 2046 5.2.1).
    """
    kind = _TYPE.fullmatch(file.content_type)
    if kind is None or len(file.content_type) > TYPE_MAX or file.media_type.startswith("multipart/"):
        raise MimeError(f"{field}.contentType", "this is not the type of a file")
    pieces = [f" {kind[1]}", *(f" {parameter}" for parameter in re.findall(_PARAMETER, kind[2]))]
    head = _parameters("Content-Type", pieces)
    encoding, data = "base64", b""
    if file.media_type.startswith("message/"):
        encoding, data = "7bit", file.canonical
        if not data.isascii() or b"\0" in data or max(map(len, data.split(b"\r\n"))) > LINE_MAX:
            raise MimeError(field, "an attached message must be ASCII with short lines; octet-stream takes any")
    else:
        data = base64(file.data)
    head += f"Content-Transfer-Encoding: {encoding}\r\n"
    head += _parameters("Content-Disposition", [f" {disposition}", *_filename(f"{field}.filename", file.filename)])
    if file.content_id is not None:
        if _CONTENT_ID.fullmatch(file.content_id) is None:
            raise MimeError(f"{field}.contentId", "this is not a content id")
        head += fold("Content-ID", [f" <{file.content_id}>"])
    return head, data


def _parameters(name: str, pieces: Sequence[str]) -> str:
    """A header with parameters: semicolons between its pieces."""
    return fold(name, [piece + ";" for piece in pieces[:-1]] + [pieces[-1]])


def _filename(field: str, name: str) -> list[str]:
    """The parameters that carry a filename: one, or as many lines as RFC 2231 needs for it."""
    if len(name) > FILENAME_MAX:
        raise MimeError(field, f"the filename is longer than {FILENAME_MAX} characters")
    if has_controls(name):
        raise MimeError(field, "control characters are not allowed")
    if not name:
        return []
    if _PLAIN_NAME.fullmatch(name):
        return [f' filename="{name}"']
    return extended("filename", name)


def extended(name: str, text: str) -> list[str]:
    """A parameter with a text in UTF-8: on one line, or on as many as RFC 2231 needs for it."""
    lines = ["utf-8''"]
    for char in text:
        code = quote(char, safe="")
        if len(lines[-1]) + len(code) > _NAME_PIECE:
            lines.append("")
        lines[-1] += code
    if len(lines) == 1:
        return [f" {name}*={lines[0]}"]
    return [f" {name}*{i}*={line}" for i, line in enumerate(lines)]


def multipart(subtype: str, parts: Sequence[Entity], message_id: str) -> Entity:
    """Parts between boundaries that follow from the message id and occur in none of them."""
    turn = 0
    while True:
        boundary = b"=_" + hashlib.sha256(f"{message_id} {subtype} {turn}".encode()).hexdigest()[:32].encode()
        if not any(boundary in body for _, body in parts):
            break
        turn += 1
    kind = ' type="text/html";' if subtype == "related" else ""
    head = f'Content-Type: multipart/{subtype};{kind}\r\n boundary="{boundary.decode()}"\r\n'
    pieces = [b"--%b\r\n%b\r\n%b\r\n" % (boundary, part.encode(), body) for part, body in parts]
    return head, b"%b--%b--\r\n" % (b"".join(pieces), boundary)
