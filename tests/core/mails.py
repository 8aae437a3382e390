"""Drafts for the tests, and the standard library's reader as the stranger who must understand what we write."""

import email
import email.policy
from datetime import UTC, datetime
from email.header import decode_header
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from gateway.core.address import Address, parse
from gateway.core.mime import Draft

MAILS = Path(__file__).parents[2] / "fixtures" / "mail"
AGENT = parse("agent-a@gw.example.com")
PAT = parse("pat@example.com")
DATE = datetime(2026, 3, 2, 9, tzinfo=UTC)
WRITTEN = ["From", "To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type", "Content-Transfer-Encoding"]


def draft(**changes: Any) -> Draft:
    """A small draft, changed as the test needs it."""
    given: dict[str, Any] = {
        "from_": AGENT,
        "to": (PAT,),
        "subject": "hello",
        "message_id": "<m1@gw.example.com>",
        "date": DATE,
    }
    return Draft(**given | changes)


def named(display: str, spec: str = "pat@example.com") -> Address:
    """An address with a display name, however odd the name is."""
    address = parse(spec)
    return Address(address.local, address.domain, address.key, display)


def mail(name: str) -> bytes:
    """A mail of `fixtures/mail/`."""
    return (MAILS / f"{name}.eml").read_bytes()


def stranger(raw: bytes) -> EmailMessage:
    """The message as the standard library's newer parser sees it."""
    message = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return message


def names_and_defects(raw: bytes) -> tuple[list[str], list[Any]]:
    """The names of the headers and the defects of all parts, as the standard library's older parser sees them."""
    message = email.message_from_bytes(raw)
    return message.keys(), [defect for part in message.walk() for defect in part.defects]


def value(raw: bytes, name: str) -> str:
    """A decoded header, read by the standard library's older parser and decoder."""
    raw_value = email.message_from_bytes(raw)[name].replace("\r\n", "")
    words = decode_header(raw_value)
    return "".join(word if isinstance(word, str) else word.decode(charset or "ascii") for word, charset in words)


def body(raw: bytes, kind: str = "text/plain") -> str:
    """The decoded text of the first part of this type, with LF line ends, read by the standard library."""
    for part in email.message_from_bytes(raw).walk():
        if part.get_content_type() == kind:
            octets = part.get_payload(decode=True)
            assert isinstance(octets, bytes)
            return octets.decode().replace("\r\n", "\n")
    raise AssertionError(kind)


def longest(raw: bytes) -> int:
    """The octets of the longest line."""
    return max(map(len, raw.split(b"\r\n")))
