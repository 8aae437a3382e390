"""Mail as bytes: the writer of our own, and the one place from which the rest takes all that concerns messages.

`compose` makes a message of a draft. It is small and strict: what could become a second header, recipient or message is
refused, never repaired. Reading is in `readmime`, what is done to messages that come as bytes in `rawmime`, header
fields are in `headers`, parts in `parts`, and what makes two requests the same in `fingerprint`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from functools import lru_cache

from gateway.core.address import Address
from gateway.core.fingerprint import bare_id, digest, fingerprint
from gateway.core.headers import (
    BLOCK_MAX,
    FIELDS_MAX,
    PROTECTED,
    MimeError,
    check_header,
    counted,
    fold,
    has_controls,
    is_plain,
    phrase,
    protected,
    unstructured,
)
from gateway.core.parts import Attachment, Entity, file_part, multipart, shown_ids, text_part
from gateway.core.rawmime import prepare, stuff, to_seven_bit
from gateway.core.readmime import Parsed, Traits, auto_submitted, read

__all__ = [
    "PROTECTED", "Attachment", "Draft", "MimeError", "Parsed", "Traits", "auto_submitted", "check_header", "compose", "digest",
    "fingerprint", "prepare", "protected", "read", "stuff", "to_seven_bit",
]  # fmt: skip

ATTACHMENTS_MAX = 500

_SPEC = re.compile(r'[^\s<>()\[\],:;"\\@]+@[A-Za-z0-9.-]+')
_ID = re.compile(r"[!-;=?-~]{1,900}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a caller asks to be sent. There is no Bcc in it: blind recipients are in the envelope alone.

    `headers` are the caller's own, by name and value; `message_id`, `in_reply_to` and `references` may have their angle
    brackets or not; `date` is aware. `auto_submitted` is the keyword of the Auto-Submitted header that the mail gets where
    its author has not set one (RFC 3834 5); "": none.
    """

    from_: Address
    to: tuple[Address, ...] = ()
    cc: tuple[Address, ...] = ()
    subject: str = ""
    text: str | None = None
    html: str | None = None
    reply_to: tuple[Address, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    in_reply_to: str | None = None
    references: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    auto_submitted: str = ""
    message_id: str
    date: datetime

    @property
    def own_headers(self) -> tuple[tuple[str, str], ...]:
        """The headers that the fingerprint counts, the same that `read` finds in the composed bytes."""
        own = [(name.lower(), value) for name, value in self.headers if counted(name)]
        if self.reply_to:
            own.append(("reply-to", ", ".join(address.spec for address in self.reply_to)))
        return tuple(own)


LISTS = "list-"
"""How fields begin that a program reads (RFC 2369): each stands once, and no URL in them is ever encoded."""


def compose(draft: Draft) -> bytes:
    """Makes the message of a draft: CRLF only, no line above 998 octets, the same bytes for the same draft.

    ASCII only, unless an address has a non-ASCII local part, which no encoding can carry in a header (RFC 6532). Raises
    `MimeError` naming the field (by its name in a JSON request, a header by its own) for control characters and lone
    surrogates, NUL in a body, protected or malformed headers, and attachments that cannot travel.
    """
    fields = _head(draft)
    head, body = _body(draft)
    block = "".join([*fields, "MIME-Version: 1.0\r\n", head]).encode()
    if len(block) > BLOCK_MAX or len(fields) > FIELDS_MAX - 3:
        raise MimeError("headers", "the headers are too long or too many")
    return b"%b\r\n%b" % (block, body)


def _head(draft: Draft) -> list[str]:
    """The header fields of the message but those that describe its body."""
    fields = [_addresses("From", "from", (draft.from_,))]
    if draft.to or not draft.cc:
        fields.append(_addresses("To", "to", draft.to))
    if draft.cc:
        fields.append(_addresses("Cc", "cc", draft.cc))
    if draft.reply_to:
        fields.append(_addresses("Reply-To", "replyTo", draft.reply_to))
    _refuse_controls("subject", draft.subject)
    fields.append(fold("Subject", unstructured(draft.subject, split_long=True)))
    fields.append(_date(draft.date.replace(microsecond=0)))
    fields.append(fold("Message-ID", [_id("messageId", draft.message_id)]))
    if draft.in_reply_to:
        fields.append(fold("In-Reply-To", [_id("inReplyTo", draft.in_reply_to)]))
    if draft.references:
        fields.append(fold("References", [_id("references", reference) for reference in draft.references]))
    if draft.auto_submitted and not any(name.lower() == "auto-submitted" for name, _ in draft.headers):
        fields.append(f"Auto-Submitted: {draft.auto_submitted}\r\n")
    return [*fields, *_own(draft)]


def _own(draft: Draft) -> list[str]:
    """The fields that the caller sets by name."""
    fields: list[str] = []
    listed = [name.lower() for name, _ in draft.headers if name.lower().startswith(LISTS)]
    for name, value in draft.headers:
        check_header(name, value)
        if protected(name):
            raise MimeError(name, "the gateway sets this header itself")
        if name.lower().startswith(LISTS) and not is_plain(value):
            raise MimeError(name, "must be plain ASCII: programs read it as it stands")
        if listed.count(name.lower()) > 1:
            raise MimeError(name, "stands more than once")
        fields.append(fold(name, unstructured(value, split_long=False)))
    return fields


@lru_cache(maxsize=8)
def _date(second: datetime) -> str:
    """The Date of all mails that are made in one second."""
    return f"Date: {format_datetime(second)}\r\n"


def _addresses(name: str, field: str, addresses: Sequence[Address]) -> str:
    """An address header; an empty group stands where all recipients are blind (RFC 5322 3.4)."""
    if not addresses:
        return f"{name}: undisclosed-recipients:;\r\n"
    pieces: list[str] = []
    for address in addresses:
        if _SPEC.fullmatch(address.spec) is None or has_controls(address.spec):
            raise MimeError(field, "this is not an address")
        if address.display:
            _refuse_controls(field, address.display)
            pieces += [*phrase(address.display), f" <{address.spec}>,"]
        else:
            pieces.append(f" {address.spec},")
    pieces[-1] = pieces[-1].removesuffix(",")
    return fold(name, pieces)


def _refuse_controls(field: str, value: str) -> None:
    if has_controls(value):
        raise MimeError(field, "control characters are not allowed")


def _id(field: str, message_id: str) -> str:
    bare = bare_id(message_id)
    if _ID.fullmatch(bare) is None:
        raise MimeError(field, "this is not a message id")
    return f" <{bare}>"


def _body(draft: Draft) -> Entity:
    """The whole body: text alone, or mixed, alternative and related as far as they are needed (RFC 2046 5.1)."""
    if len(draft.attachments) > ATTACHMENTS_MAX:
        raise MimeError("attachments", f"there are more than {ATTACHMENTS_MAX}")
    text, html = draft.text, draft.html
    alone = not draft.attachments and (text is None or html is None)
    bodies: list[Entity] = []
    shown: list[Entity] = []
    apart: list[Entity] = []
    pictures: frozenset[str] = shown_ids(html) if html and draft.attachments else frozenset()
    for index, file in enumerate(draft.attachments):
        inline = file.content_id in pictures
        entity = file_part(f"attachments[{index}]", file, "inline" if inline else "attachment")
        (shown if inline else apart).append(entity)
    if text is not None or html is None:
        bodies.append(text_part("text", "plain", text or "", ends=alone))
    if html is not None:
        page = text_part("html", "html", html, ends=alone)
        bodies.append(multipart("related", [page, *shown], draft.message_id) if shown else page)
    whole = multipart("alternative", bodies, draft.message_id) if len(bodies) > 1 else bodies[0]
    return multipart("mixed", [whole, *apart], draft.message_id) if apart else whole
