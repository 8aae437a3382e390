"""The message of a request: composed of its parts, or handed in as bytes; with what judge and fingerprint see of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway.core.address import Address, AddressError
from gateway.core.fingerprint import bare_id
from gateway.core.headers import has_controls
from gateway.core.mail import Content, Recipient
from gateway.core.mime import Attachment, Draft, MimeError, auto_submitted, compose, digest, prepare, read
from gateway.core.readmime import Parsed
from gateway.core.sketch import sketch
from gateway.doors.asked import File, SendRequest
from gateway.doors.fields import Reader
from gateway.doors.refusal import Faults
from gateway.store.agents import Mailbox

OCTETS = "application/octet-stream"
"""The type of a file of which none is given."""

ID_MAX = 998
"""Octets of a message id: what one line can hold (RFC 5322 2.1.1)."""

MEMBERS = {
    "From": "from", "To": "to", "Cc": "cc", "Reply-To": "replyTo", "Subject": "subject", "In-Reply-To": "inReplyTo",
    "References": "references",
}  # fmt: skip
"""Headers that are made of members of the request."""
KNOWN = frozenset({*MEMBERS.values(), "text", "html", "attachments", "headers"})


@dataclass(frozen=True, slots=True)
class Terms:
    """What the door adds to a request: its id, the time (UTC), our name in Message-ID, the agent that acts.

    `idempotency_key` and `fencing_token` are those of the protocol's own headers; `offered` are the keys of all people
    that the mail was offered for, where the door has refused some of them already.
    """

    id: str
    now: datetime
    hostname: str
    agent: str | None
    idempotency_key: str | None = None
    fencing_token: int | None = None
    door: str = "http"
    offered: tuple[str, ...] = ()

    @property
    def message_id(self) -> str:
        """The Message-ID that the gateway gives, without angle brackets."""
        return f"{self.id}@{self.hostname}"


@dataclass(frozen=True, slots=True)
class Message:
    """A message's bytes, what the judge sees of it, what the fingerprint counts beyond the digest, the address in From."""

    body: bytes
    content: Content
    references: tuple[str, ...]
    own_headers: tuple[tuple[str, str], ...]
    sender: str


def composed(asked: SendRequest, recipients: Sequence[Recipient], box: Mailbox, terms: Terms) -> Message:
    """The message of a request that gives its parts. Raises Faults."""
    author = asked.from_ or _address_of(box)
    files = tuple(_file(file) for file in asked.attachments or ())
    draft = Draft(
        from_=author,
        to=tuple(r.address for r in recipients if r.role == "to"),
        cc=tuple(r.address for r in recipients if r.role == "cc"),
        subject=asked.say("subject") or "",
        text=asked.say("text"),
        html=asked.say("html"),
        reply_to=tuple(asked.reply_to or ()),
        headers=asked.own_headers,
        in_reply_to=asked.in_reply_to,
        references=tuple(asked.references or ()),
        attachments=files,
        auto_submitted="auto-replied" if asked.kind == "reply" else "auto-generated",
        message_id=terms.message_id,
        date=terms.now,
    )
    try:
        body = compose(draft)
    except MimeError as error:
        raise Faults([(_member(error.field), error.why)]) from None
    content = Content(
        digest=digest(draft.subject, draft.text, draft.html, files),
        size=len(body),
        message_id=terms.message_id,
        header_from=(author.key,),
        subject=draft.subject,
        in_reply_to=None if asked.in_reply_to is None else bare_id(asked.in_reply_to),
        sketch=sketch(draft.subject, draft.text, draft.html, (file.filename for file in files)),
        auto_submitted=auto_submitted(draft.headers),
    )
    return Message(body, content, draft.references, draft.own_headers, author.spec)


def _file(file: File) -> Attachment:
    assert file.id is None, "uploads are put in before (doors/stored)"  # noqa: S101
    return Attachment(file.filename or "", file.content_type or OCTETS, file.content or b"", file.content_id)


def _member(field: str) -> str:
    """The member of the request that the writer means: it may name a header."""
    field = MEMBERS.get(field, field)
    return field if field.partition("[")[0] in KNOWN else f"headers.{field}"


def _address_of(box: Mailbox) -> Address:
    local, _, domain = box.address.rpartition("@")
    return Address(local, domain, box.key, box.display_name or "")


def parsed(raw: bytes) -> Parsed:
    """Read a message that was handed in. Raises Faults."""
    try:
        return read(with_crlf(raw))
    except MimeError as error:
        raise Faults([("rawMessage", error.why)]) from None


def with_crlf(raw: bytes) -> bytes:
    """A file of a system whose lines end in LF, as it goes over the wire; what mixes line ends stays as it is."""
    return raw if b"\r" in raw else raw.replace(b"\n", b"\r\n")


def handed_in(raw: bytes, said: Parsed, reader: Reader, box: Mailbox, terms: Terms) -> Message:
    """The message of a request that brings it as bytes. Raises Faults."""
    message_id = bare_id(terms.message_id if said.message_id is None else said.message_id)
    in_reply_to = None if said.in_reply_to is None else bare_id(said.in_reply_to)
    if not message_id:
        raise Faults([("rawMessage", "Message-ID is empty")])
    if max(len(message_id.encode()), len((in_reply_to or "").encode())) > ID_MAX:
        raise Faults([("rawMessage", f"a message id is longer than {ID_MAX} octets")])
    try:
        body = prepare(with_crlf(raw), message_id=terms.message_id, date=terms.now)
    except MimeError as error:
        raise Faults([("rawMessage", error.why)]) from None
    authors = [*said.header_from, *([] if said.sender is None else [said.sender])]
    content = Content(
        digest=digest(said.subject, said.text, said.html, said.attachments),
        size=len(body),
        message_id=plain(message_id),
        header_from=tuple(_key(author, reader) for author in authors),
        subject=plain(said.subject),
        in_reply_to=None if in_reply_to is None else plain(in_reply_to),
        traits=said.traits,
        sketch=sketch(said.subject, said.text, said.html, (file.filename for file in said.attachments)),
        auto_submitted=auto_submitted(said.headers),
    )
    return Message(body, content, said.references, said.own_headers, box.address)


def _key(author: str, reader: Reader) -> str:
    """The person's key of an author; what is no address stays as it was written."""
    try:
        return reader.sender(author).key
    except AddressError:
        return plain(author)


def plain(text: str) -> str:
    """A text as it can be kept and shown: control characters become U+FFFD. The mail itself is judged as it came."""
    if not has_controls(text):
        return text
    return "".join(c if c.isprintable() or c == " " else "\ufffd" for c in text)
