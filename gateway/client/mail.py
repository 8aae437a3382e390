"""What a caller may say, with types: a mail, filters, a configuration; and how it looks on the wire."""

import base64
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict
from urllib.parse import quote

from gateway.client.reading import camel
from gateway.client.shape import Json


class Mail(TypedDict, total=False):
    """What a mail may say; times are datetime with an offset, or ISO 8601. `docs/http.md` says what each is (SendRequest)."""

    cc: str | Sequence[str]
    bcc: str | Sequence[str]
    sender: str
    mailbox_id: str
    reply_to: str | Sequence[str]
    subject: str
    text: str
    html: str
    template_id: str
    payload: Mapping[str, Any]
    headers: Mapping[str, str]
    in_reply_to: str
    references: Sequence[str]
    thread_id: str
    attachments: Sequence[Mapping[str, Any]]
    raw_message: bytes
    kind: Literal["outreach", "reply", "transactional"]
    campaign_action: str
    scheduled_at: datetime | str
    send_reason: str
    override_reason: str
    fencing_token: int
    fencing_tokens: Mapping[str, int]
    require_consensus_id: str


class BatchMail(Mail, total=False):
    """A mail of a batch: its recipient, its key, and what a mail may say."""

    to: str | Sequence[str]
    idempotency_key: str


class Filters(TypedDict, total=False):
    """Which sends are listed."""

    status: str
    recipient_email: str
    agent: str
    mailbox_id: str
    kind: str
    campaign_action: str
    thread_id: str
    reason: str
    since: datetime | str
    until: datetime | str


class Config(TypedDict, total=False):
    """What may be configured of an agent."""

    humanizer_enabled: bool
    humanizer_style: Literal["casual", "professional", "friendly"]
    humanizer_provider: str


def wire(values: Mapping[str, Any]) -> Json:
    """Members as the wire has them; those that are `None` are left out. Raises ValueError for a time without an offset."""
    return {
        "from" if name == "sender" else camel(name): _wire(value) for name, value in values.items() if value is not None
    }


def _wire(value: Any) -> Any:  # noqa: ANN401  (JSON)
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise ValueError(f"the time {value} has no offset: give it a tzinfo")
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return list(value) if isinstance(value, tuple) else value


def in_query(values: Mapping[str, Any]) -> dict[str, str]:
    """The same for a query."""
    return {name: str(value) for name, value in wire(values).items()}


def part(text: str) -> str:
    """A text as one part of a path; "." and ".." are ids like others and no steps of it (RFC 3986, section 5.2.4)."""
    quoted = quote(text, safe="")
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E")


def made_key() -> str:
    """A new idempotency key."""
    return f"py-{secrets.token_hex(12)}"
