"""A mail that came over SMTP becomes the ticket that the same mail by HTTP's rawMessage would be, and is handed in.

What differs is what the protocol adds: an envelope that counts instead of the headers, a key for who gives none, one
Received line. Nothing is judged here.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from email.utils import format_datetime
from typing import Any, TypeVar

from gateway.core.address import Address, AddressError
from gateway.core.errors import ConflictError
from gateway.core.fingerprint import bare_id
from gateway.core.mail import Content, Envelope, Recipient, Submission
from gateway.core.readmime import Parsed
from gateway.core.record import Receipt
from gateway.core.verdict import KEY_REUSED
from gateway.doors import letter, message
from gateway.doors.chance import new_request_id
from gateway.doors.context import Context
from gateway.doors.fields import Reader
from gateway.doors.message import Terms
from gateway.doors.refusal import Faults, Refusal
from gateway.doors.smtp import orders, replies
from gateway.doors.smtp.login import Author, speaking_as
from gateway.intake.walk import Ticket
from gateway.store import records
from gateway.store.agents import Mailbox

T = TypeVar("T")

LARGE = 65_536
"""Bytes of a mail from which on it is read in a thread, so that others need not wait."""


@dataclass(slots=True)
class Transaction:
    """One mail while its envelope is given: `taken` recipients by person key, and the keys of all that were `offered`."""

    author: Author
    box: Mailbox
    reader: Reader
    eight_bit: bool = False
    smtputf8: bool = False
    ret: str = ""
    envid: str = ""
    taken: dict[str, Recipient] = field(default_factory=dict)
    offered: dict[str, None] = field(default_factory=dict)

    def probe(self, *people: Address) -> Submission:
        """A mail of which nothing is known yet but for whom it is; it can only be looked at."""
        grant, envelope = self.author.grant, Envelope(self.box.address, tuple(Recipient(person) for person in people))
        content = Content("", 0, "", (self.box.key,))
        key_id = grant.key_id or None
        return Submission(
            "", grant.tenant, self.box.id, self.author.agent, key_id, envelope, content, "", "", door="smtp"
        )


@dataclass(frozen=True, slots=True)
class Trace:
    """What the Received line says of the session: EHLO's name, the client's address, the protocol's word (RFC 3848)."""

    client: str
    address: str
    protocol: str

    def line(self, hostname: str, request: str, now: datetime) -> bytes:
        """The header field with its folds (RFC 5321 4.4)."""
        where = f"IPv6:{self.address}" if ":" in self.address else self.address
        head = f"Received: from {self.client} ([{where}])\r\n\tby {hostname} with {self.protocol} id {request};"
        return f"{head}\r\n\t{format_datetime(now)}\r\n".encode()


async def hand_in(context: Context, mail: Transaction, raw: bytes, trace: Trace) -> list[str]:
    """Hand a whole mail to the intake; returns the reply. Raises StoreUnavailableError; a cancellation stops nothing."""
    try:
        _whole(mail, raw)
        said = await _in_thread(len(raw), message.parsed, raw)
        wishes = orders.read(said, mail.reader)
        agent = await speaking_as(context, mail.author, wishes.agent)
        terms = _terms(context, mail, said, wishes, agent)
        line = trace.line(context.settings.hostname, terms.id, terms.now)
        ticket = await _in_thread(len(raw), _ticket, mail, raw, said, wishes, terms, line)
        if wishes.dry_run:
            return replies.would(await asyncio.to_thread(context.intake.preview, ticket))
        task = asyncio.create_task(_submit(context, ticket, named=wishes.asked.idempotency_key is not None))
        task.add_done_callback(_heard)
        return replies.accepted(await asyncio.shield(task))
    except ConflictError as error:
        return replies.reused(error)
    except Refusal as refusal:
        return replies.not_taken(refusal)


def _heard(task: "asyncio.Task[Receipt]") -> None:
    """Nobody may be there any more to hear what became of it."""
    if not task.cancelled():
        task.exception()


async def _in_thread(size: int, act: Callable[..., T], *arguments: Any) -> T:
    """Run it here, or in a thread where it takes time."""
    return await asyncio.to_thread(act, *arguments) if size > LARGE else act(*arguments)


def _whole(mail: Transaction, raw: bytes) -> None:
    """Refuse octets that MAIL has not announced (RFC 6152 3, RFC 6531 3.4); what they are is judged. Raises Faults."""
    if raw.isascii():
        return
    head, _, body = raw.partition(b"\r\n\r\n")
    if not head.isascii() and not mail.smtputf8:
        raise Faults([("headers", "hold octets above 127, for which MAIL needs SMTPUTF8")])
    if not body.isascii() and not mail.eight_bit:
        raise Faults([("message", "holds octets above 127, for which MAIL needs BODY=8BITMIME")])


def _terms(context: Context, mail: Transaction, said: Parsed, wishes: orders.Orders, agent: str | None) -> Terms:
    key = wishes.asked.idempotency_key
    message_id = bare_id(said.message_id or "")
    if key is None and message_id:
        key = _framed("message-id", message_id, mail.offered)
    now, hostname = context.store.about_now(mail.author.grant.tenant), context.settings.hostname
    return Terms(new_request_id(), now, hostname, agent, key, door="smtp", offered=tuple(mail.offered))


def _framed(kind: str, about: str, people: Iterable[str]) -> str:
    """A key of something that is known for these people: relays split a mail and try each part under one Message-ID."""
    framed = "".join(f"{len(part)}:{part}" for part in (about, *sorted(people)))
    return f"{kind}:{hashlib.sha256(framed.encode('utf-8', 'replace')).hexdigest()}"


def _ticket(mail: Transaction, raw: bytes, said: Parsed, wishes: orders.Orders, terms: Terms, trace: bytes) -> Ticket:
    people = _roles(mail, said)
    tokens = orders.tokens(wishes.token, people, mail.reader)
    asked = wishes.asked.model_copy(update={"raw_message": raw, "mailbox_id": mail.box.id, "fencing_tokens": tokens})
    said = orders.obeyed(said)
    return letter.write(asked, mail.author.grant, mail.reader, terms, said=said, people=people, trace=trace).ticket


def _roles(mail: Transaction, said: Parsed) -> tuple[Recipient, ...]:
    """The people of the envelope in the order to, cc, bcc, by what the headers say; who stands in none is blind."""
    role_of: dict[str, str] = {}
    for role in ("to", "cc"):
        for text in getattr(said, role):
            with suppress(AddressError):
                role_of.setdefault(mail.reader.person(text).key, role)
    found = [Recipient(one.address, role_of.get(key, "bcc"), dsn=one.dsn) for key, one in mail.taken.items()]
    return tuple(sorted(found, key=lambda one: letter.ROLES.index(one.role)))


async def _submit(context: Context, ticket: Ticket, *, named: bool) -> Receipt:
    """Submit; a named key that is known for other people is that of another part of one mail (SEMANTICS 5)."""
    try:
        return await context.intake.submit(ticket)
    except ConflictError as error:
        mail, first = ticket.mail, error.extra.get("requestId")
        if not named or error.slug != KEY_REUSED.slug or not isinstance(first, str):
            raise
        known = await context.read(mail.tenant, lambda tx: records.find(tx, mail.tenant, [first]).get(first))
        people = {delivery.contact for delivery in known.deliveries} if known else set(mail.keys)
        if known is None or known.digest != mail.content.digest or not people.isdisjoint(mail.keys):
            raise
    key = _framed("part", mail.idempotency_key, mail.keys)
    return await context.intake.submit(replace(ticket, mail=replace(mail, idempotency_key=key)))
