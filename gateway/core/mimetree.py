"""The parts of a message by their places in its bytes: headers, bodies, what is in what (RFC 2045, 2046, 2231).

A reader of our own, since it keeps the octets of every part, has limits before it looks and cannot recurse beyond them.
It reads what is malformed as other readers do, as far as they agree.
"""

import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import unquote_to_bytes

from gateway.core.headers import MimeError, decode, split_fields, to_text, value_of

DEPTH_MAX = 50  # parts within parts
PARTS_MAX = 1000
HEADS_MAX = 1_048_576  # octets of the header blocks of all parts together
BOUNDARY_MAX = 200  # characters; RFC 2046 5.1.1 allows 70

_PARAMETER = re.compile(r';\s*([^\s=;"]+?)(?:\*(\d{1,3}))?(\*)?\s*=\s*("(?:[^"\\]|\\.)*"|[^;"]*)')
_MARKS = re.compile(r"""\\.|["()]""", re.DOTALL)
_FILENAMES = frozenset({"filename", "name"})
_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+")


@dataclass(frozen=True, slots=True)
class Part:
    """One part by its place in the message: header block from `head`, body from `start` to `end`."""

    head: int
    start: int
    end: int
    fields: tuple[tuple[str, bytes], ...]
    media_type: str
    parameters: Mapping[str, str]
    encoding: str
    children: "tuple[Part, ...]"

    def value(self, name: str) -> str:
        """The unfolded value of its first header of this lower-case name, or nothing."""
        return _value(self.fields, name)


def tree(data: bytes) -> Part:
    """All parts of a message whose line ends are CRLF; raises `MimeError` beyond the limits and for malformed lines."""
    return _Walk(data).part(0, len(data), 0, strict=True)


def own_parts(part: Part) -> Iterator[Part]:
    """It and the parts within it in their order, but for those of a message that it holds: they are contents."""
    yield part
    if part.media_type != "message/rfc822":
        for child in part.children:
            yield from own_parts(child)


def _value(fields: Sequence[tuple[str, bytes]], name: str) -> str:
    return next((value_of(raw) for other, raw in fields if other.lower() == name), "")


class _Walk:
    """One pass over a message; it counts what it has seen."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.seen = 0
        self.heads = 0

    def part(self, head: int, end: int, depth: int, *, strict: bool = False) -> Part:
        """The part that stands between two places, with its children."""
        self.seen += 1
        if depth > DEPTH_MAX:
            raise MimeError("body", f"the parts are nested deeper than {DEPTH_MAX}")
        if self.seen > PARTS_MAX:
            raise MimeError("body", f"there are more than {PARTS_MAX} parts")
        stop, start = head_end(self.data, head, end)
        self.heads += stop - head
        if self.heads > HEADS_MAX:
            raise MimeError("body", f"the headers of its parts are longer than {HEADS_MAX} octets together")
        fields = split_fields(self.data[head:stop], strict=strict)
        kind, named = parameters(_value(fields, "content-type"))
        kind = kind if _MEDIA_TYPE.fullmatch(kind) else "text/plain"
        encoding = _value(fields, "content-transfer-encoding").lower() or "7bit"
        boundary = named.get("boundary", "")
        places: Iterable[tuple[int, int]] = ()
        if kind.startswith("multipart/") and 0 < len(boundary) <= BOUNDARY_MAX and boundary.isascii():
            places = self.between(start, end, boundary.encode())
        elif kind == "message/rfc822" and encoding in {"7bit", "8bit", "binary"}:
            places = ((start, end),)
        children = tuple(self.part(first, last, depth + 1) for first, last in places)
        return Part(head, start, end, tuple(fields), kind, named, encoding, children)

    def between(self, start: int, end: int, boundary: bytes) -> Iterator[tuple[int, int]]:
        """The places of what stands between the boundaries (RFC 2046 5.1.1), preamble and epilogue left out."""
        mark = b"\r\n--" + boundary
        place, begin = max(start - 2, 0), -1  # the first boundary may begin with the CRLF of the empty line
        while (place := self.data.find(mark, place, end)) >= 0:
            after = place + len(mark)
            last = self.data.startswith(b"--", after)
            line_end = self.data.find(b"\r\n", after, end)
            line_end = end if line_end < 0 else line_end
            if self.data[after + 2 * last : line_end].strip(b" \t"):
                place = after  # the beginning of a longer line, not a boundary
                continue
            if begin >= 0:
                yield begin, max(begin, place)
            begin, place = min(line_end + 2, end), line_end
            if last:
                return
        if begin >= 0:
            yield begin, end


def head_end(data: bytes, head: int, end: int) -> tuple[int, int]:
    """Where the header block that begins at `head` ends and where the body begins."""
    if data.startswith(b"\r\n", head):
        return head, min(head + 2, end)
    place = data.find(b"\r\n\r\n", head, end)
    return (end, end) if place < 0 else (place + 2, place + 4)


def parameters(value: str) -> tuple[str, dict[str, str]]:
    """A value's first word in lower case and its parameters by lower-case names, put together as RFC 2231 says."""
    value = _uncommented(value)
    found: dict[str, dict[int, dict[int, tuple[str, bool]]]] = {}
    for name, index, extended, given in _PARAMETER.findall(value):
        text = given.strip()
        if text.startswith('"'):
            text = re.sub(r"\\(.)", r"\1", text[1:-1])
        way = 1 if index else 2 if extended else 0  # plain, in pieces, extended: of several the last way counts
        found.setdefault(name.lower(), {}).setdefault(way, {}).setdefault(int(index or 0), (text, bool(extended)))
    return value.partition(";")[0].strip().lower(), {
        name: _joined(name, ways[max(ways)]) for name, ways in found.items()
    }


def _uncommented(value: str) -> str:
    """A value without its comments (RFC 2045 5.1, RFC 5322 3.2.2).

    What stands in brackets within a word, like the number in a file's name that lacks its quotes, is no comment.
    """
    cuts = [0]  # where comments begin and end in turns
    depth, quoted = 0, False
    for found in _MARKS.finditer(value):
        mark = found[0]
        if mark == '"' and not depth:
            quoted = not quoted
        elif mark == "(" and not quoted:
            if not depth:
                cuts.append(found.start())
            depth += 1
        elif mark == ")" and depth:
            depth -= 1
            if not depth:
                cuts.append(found.end())
    if depth:
        return value
    pieces = [value[begin:end] for begin, end in pairwise([*cuts, len(value)])]
    kept = [pieces[0]]
    for comment, text in zip(pieces[1::2], pieces[2::2], strict=True):
        apart = not kept[-1].strip() or kept[-1].rstrip()[-1] in ";=" or not text.strip() or text.lstrip()[0] == ";"
        kept += [text] if apart else [comment, text]
    return "".join(kept)


def _joined(name: str, pieces: dict[int, tuple[str, bool]]) -> str:
    """The pieces of one parameter in order; per cent signs and charset count where an asterisk says so."""
    charset, octets = "utf-8", b""
    first = min(pieces)
    for index in sorted(pieces):
        text, extended = pieces[index]
        if extended and index == first and text.count("'") >= 2:  # noqa: PLR2004 - charset'language'text
            charset, _, text = text.split("'", 2)
        octets += unquote_to_bytes(text) if extended else text.encode()
    text = to_text(octets, charset.lower())
    # Encoded words are not allowed here (RFC 2047 5), yet names of files are often written with them.
    return decode(text) if name in _FILENAMES and not any(extended for _, extended in pieces.values()) else text


def body_of(data: bytes, part: Part) -> bytes:
    """The decoded octets of a part; what is not well encoded is left as it is."""
    body = data[part.start : part.end]
    if part.encoding == "quoted-printable":
        return binascii.a2b_qp(body)
    if part.encoding == "base64":
        try:
            return binascii.a2b_base64(body)
        except binascii.Error:
            return body
    return body
