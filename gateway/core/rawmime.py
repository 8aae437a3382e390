"""What is done to a message that exists as bytes: prepared once, stuffed for DATA, made 7bit for a hop.

It touches only what it must, so that signatures hold; it does not judge.
"""

from datetime import datetime
from email.utils import format_datetime

from gateway.core.fingerprint import bare_id
from gateway.core.headers import MimeError, fold, split_fields
from gateway.core.mimetree import Part, head_end, tree
from gateway.core.parts import base64, crlf, encode_octets

_BLIND = frozenset({"bcc", "resent-bcc"})
_FOREIGN = frozenset({"return-path", "x-fencing-token"})  # the last hop's, ours
_CLOSED = frozenset({"multipart/signed", "multipart/encrypted"})


def prepare(raw: bytes, *, message_id: str, date: datetime) -> bytes:
    """What is relayed of a message that was handed in as bytes.

    Bcc and Resent-Bcc, Return-Path, X-Gateway-* and X-Fencing-Token go, with all their folded lines; Date and
    Message-ID come, at the top, where they are missing; line ends become CRLF; all else stays byte for byte. Raises
    `MimeError` for a header block that readers would read differently.
    """
    data = crlf(raw)
    stop, start = head_end(data, 0, len(data))
    fields = split_fields(data[:stop])
    names = {name.lower() for name, _ in fields}
    added = ""
    if "date" not in names:
        added += f"Date: {format_datetime(date)}\r\n"
    if "message-id" not in names:
        added += fold("Message-ID", [f" <{bare_id(message_id)}>"])
    kept = b"".join([field for name, field in fields if not _goes(name.lower())])
    return b"%b%b\r\n%b" % (added.encode(), kept, data[start:])


def _goes(name: str) -> bool:
    return name in _BLIND or name in _FOREIGN or name.startswith("x-gateway-")


def stuff(message: bytes) -> bytes:
    """The message as it stands between DATA and the dot: CRLF only and at its end, dots doubled (RFC 5321 4.5.2)."""
    data = crlf(message)
    if not data.endswith(b"\r\n"):
        data += b"\r\n"
    data = data.replace(b"\r\n.", b"\r\n..")
    return b"." + data if data.startswith(b".") else data


def to_seven_bit(message: bytes) -> bytes:
    """The message for a hop without 8BITMIME: parts with octets above 127 are encoded anew (RFC 6152 3).

    Raises `MimeError` where that would break it: non-ASCII headers, signed or encrypted parts, parts whose encoding
    says that they have no such octets.
    """
    if message.isascii():
        return message
    data = crlf(message)
    changed = _seven(data, tree(data), whole=True)
    if not changed.isascii():
        raise MimeError("body", "text between the parts is not ASCII")
    return changed


def _seven(data: bytes, part: Part, *, whole: bool) -> bytes:
    """One part with its header block; `whole`: it ends the message, or a message within it."""
    octets = data[part.head : part.end]
    if octets.isascii():
        return octets
    head, body = data[part.head : part.start], data[part.start : part.end]
    if not head.isascii():
        raise MimeError("headers", "a header is not ASCII and the next hop takes nothing else")
    if part.media_type in _CLOSED or part.encoding in {"base64", "quoted-printable"}:
        raise MimeError("body", "a part cannot be encoded anew for a hop without 8BITMIME")
    if part.children:
        message = part.media_type == "message/rfc822"
        pieces, place = [_labelled(part, "7bit", whole=whole)], part.start
        for child in part.children:
            pieces += [data[place : child.head], _seven(data, child, whole=message)]
            place = child.end
        return b"".join([*pieces, data[place : part.end]])
    if part.media_type.startswith(("message/", "multipart/")):
        raise MimeError("body", "a part cannot be encoded anew for a hop without 8BITMIME")
    if part.media_type.startswith("text/"):
        encoding, body = encode_octets(body, ends=whole)
    else:
        encoding, body = "base64", base64(body)
    return _labelled(part, encoding, whole=whole) + body


def _labelled(part: Part, encoding: str, *, whole: bool) -> bytes:
    """A header block with another transfer encoding, and with what makes it count if that was missing."""
    names = {name.lower() for name, _ in part.fields}
    kept = [field for name, field in part.fields if name.lower() != "content-transfer-encoding"]
    if whole and "mime-version" not in names:
        kept.append(b"MIME-Version: 1.0\r\n")
    if "content-type" not in names:
        kept.append(b"Content-Type: text/plain; charset=utf-8\r\n")
    return b"".join([*kept, b"Content-Transfer-Encoding: %b\r\n" % encoding.encode(), b"\r\n"])
