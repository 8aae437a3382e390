"""Headers beyond ASCII (RFC 6532): whether a message has some, and the same message without them, for a hop without SMTPUTF8.

The headers of the message and of its parts count, not those of a message within it, which are its contents. Encoding
them anew is the submission agent's right (RFC 6531 3.2, RFC 6409 8); where it would lose or break something, a local part
or a signature, it is refused. Nothing here judges.
"""

from collections.abc import Iterator
from enum import StrEnum

from email_validator import SPECIAL_USE_DOMAIN_NAMES

from gateway.core.address import AddressError, parse
from gateway.core.headers import MimeError, decode, fold, has_controls, phrase, unstructured, value_of
from gateway.core.mimetree import Part, head_end, own_parts, parameters, tree
from gateway.core.parts import crlf, extended
from gateway.core.readmime import mailboxes

_TEXT = frozenset({"subject", "comments", "content-description"})  # and X-*: RFC 2047 5 (1)
_PEOPLE = frozenset({"from", "sender", "reply-to", "to", "cc"})
_WITH_PARAMETERS = frozenset({"content-type", "content-disposition"})
_SIGNED = frozenset({"dkim-signature", "domainkey-signature"})
_CLOSED = frozenset({"multipart/signed", "multipart/encrypted"})


class Form(StrEnum):
    """What octets the headers of a message and of its parts are."""

    ASCII = "ascii"
    UTF8 = "utf-8"
    OCTETS = "octets"


def form(message: bytes) -> Form:
    """What the headers are; of a message that is beyond the limits only its own are looked at."""
    if message.isascii():
        return Form.ASCII
    data = crlf(message)
    try:
        fields = [raw for part in own_parts(tree(data)) for _, raw in part.fields]
    except MimeError:
        fields = [data[: head_end(data, 0, len(data))[1]]]
    wide = [raw for raw in fields if not raw.isascii()]
    try:
        for raw in wide:
            raw.decode()
    except UnicodeDecodeError:
        return Form.OCTETS
    return Form.UTF8 if wide else Form.ASCII


def ascii_headers(message: bytes) -> bytes:
    """The same message with its headers in ASCII, all else byte for byte.

    Text and display names become encoded words (RFC 2047), parameters those of RFC 2231, domains A-labels. Raises
    `MimeError` where that cannot be done: a local part beyond ASCII, headers that are signed or have a form of their own,
    octets that are no UTF-8.
    """
    if form(message) is Form.ASCII:
        return message
    data = crlf(message)
    root = tree(data)
    if any(name.lower() in _SIGNED or name.lower().startswith("arc-") for name, _ in root.fields):
        raise MimeError("headers", "they are signed, and encoding them would break that")
    closed = [(part.start, part.end) for part in own_parts(root) if part.media_type in _CLOSED]
    pieces: list[bytes] = []
    place = 0
    for part in own_parts(root):
        if all(raw.isascii() for _, raw in part.fields):
            continue
        if any(start <= part.head < end for start, end in closed):
            raise MimeError("headers", "those of a signed part cannot be encoded")
        pieces += [data[place : part.head], *_block(data, part)]
        place = part.start
    return b"".join([*pieces, data[place:]])


def _block(data: bytes, part: Part) -> Iterator[bytes]:
    """The header block of a part with what ends it."""
    stop, start = head_end(data, part.head, part.end)
    if sum(len(raw) for _, raw in part.fields) != stop - part.head:
        raise MimeError("headers", "a line of the header block is not a header field")
    for name, raw in part.fields:
        yield raw if raw.isascii() else _encoded(name, raw).encode("ascii")
    yield data[stop:start]


def _encoded(name: str, raw: bytes) -> str:
    """One field in ASCII, folded."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        raise MimeError(name, "it is not UTF-8") from None
    value, lower = value_of(raw).replace("\t", " "), name.lower()
    if has_controls(value):
        raise MimeError(name, "it holds control characters")
    if lower in _TEXT or lower.startswith("x-"):
        return fold(name, unstructured(decode(value), split_long=True))
    if lower in _PEOPLE:
        people = [_person(name, one) for one in mailboxes(value, groups=False)]
        if not people:
            raise MimeError(name, "it holds no address")
        pieces = [piece for person in people[:-1] for piece in (*person[:-1], person[-1] + ",")]
        return fold(name, [*pieces, *people[-1]])
    if lower in _WITH_PARAMETERS:
        return _with_parameters(name, value)
    raise MimeError(name, "it cannot be encoded")


def _person(name: str, mailbox: str) -> list[str]:
    """The pieces of one mailbox; what is ASCII stays as it is written."""
    if mailbox.isascii():
        return [f" {mailbox}"]
    try:
        address = parse(mailbox, special_use=frozenset(SPECIAL_USE_DOMAIN_NAMES), display=True)
    except AddressError:
        raise MimeError(name, "it holds something beyond ASCII that is no address") from None
    if not address.local.isascii():
        raise MimeError(name, "the local part of an address is beyond ASCII")
    return [*phrase(decode(address.display)), f" <{address.spec}>"] if address.display else [f" {address.spec}"]


def _with_parameters(name: str, value: str) -> str:
    word, found = parameters(value)
    if not (word + "".join(found)).isascii():
        raise MimeError(name, "it cannot be encoded")
    if any(has_controls(text) for text in (word, *found, *found.values())):  # what percent codes and backslashes hid
        raise MimeError(name, "it holds control characters")
    pieces = [f" {word}"]
    for key, text in found.items():
        pieces[-1] += ";"
        pieces += [piece + ";" for piece in _parameter(key, text)]
        pieces[-1] = pieces[-1].removesuffix(";")
    return fold(name, pieces)


def _parameter(key: str, text: str) -> list[str]:
    """One parameter: a quoted string, or as many lines as RFC 2231 needs for it."""
    if text.isascii():
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return [f' {key}="{escaped}"']
    return extended(key, text)
