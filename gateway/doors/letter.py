"""A request to send becomes a ticket for the intake: sender, recipients, message, key and tokens; nothing is judged here.

Everything that needs no store is done here, before any lock; for a large message that takes time, so it may run in a
thread. Raises `Faults` for what cannot be a mail, `Refusal` for what the caller may not use.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gateway.core.address import Address, AddressError
from gateway.core.mail import Envelope, Kind, Recipient, Submission
from gateway.core.mime import fingerprint
from gateway.core.readmime import Parsed
from gateway.doors import message
from gateway.doors.asked import NOBODY, NOTHING, SendRequest
from gateway.doors.auth import Grant
from gateway.doors.fields import Reader
from gateway.doors.message import Terms
from gateway.doors.refusal import Faults, forbidden, missing
from gateway.intake.walk import Ticket
from gateway.store.agents import Mailbox

ROLES = ("to", "cc", "bcc")


@dataclass(frozen=True, slots=True)
class Letter:
    """What is to be handed to the intake, and the address in From."""

    ticket: Ticket
    sender: str


def write(
    asked: SendRequest,
    grant: Grant,
    reader: Reader,
    terms: Terms,
    *,
    may_be_empty: bool = False,
    said: Parsed | None = None,
    people: tuple[Recipient, ...] = (),
    trace: bytes = b"",
) -> Letter:
    """Make the ticket of a request; `may_be_empty` is for one that only asks. Raises Faults, Refusal.

    Of a raw message `said` is what a door has read of it, `people` its envelope, and `trace` what the door puts before it.
    """
    template = _template(asked)
    if not asked.says_something and not may_be_empty:
        raise Faults([("text", NOTHING)])
    parsed = said or (None if asked.raw_message is None else message.parsed(asked.raw_message))
    box = mailbox(grant, _author(asked, parsed, reader), asked.mailbox_id)
    recipients = people or _recipients(asked, parsed, reader)
    tokens = _tokens(asked, recipients, terms.fencing_token)
    if parsed is None:
        made = message.composed(asked, recipients, box, terms)
    else:
        made = message.handed_in(asked.raw_message or b"", parsed, reader, box, terms)
    content, keys = made.content, terms.offered or tuple(r.address.key for r in recipients)
    key = terms.idempotency_key or asked.idempotency_key or asked.dedupe_key
    mail = Submission(
        id=terms.id,
        tenant=grant.tenant,
        mailbox=box.id,
        agent=terms.agent,
        key_id=grant.key_id or None,
        envelope=Envelope(box.address, recipients),
        content=content,
        idempotency_key=key or _derived(box, keys, asked, content.digest),
        fingerprint=fingerprint(content.digest, box.id, keys, content.in_reply_to, made.references, made.own_headers),
        kind=Kind(asked.kind),
        tokens=tokens,
        thread=asked.thread_id,
        campaign=asked.campaign_action,
        not_before=asked.scheduled_at,
        derived_key=key is None,
        door=terms.door,
        override=asked.override_reason,
        template=template,
        consensus=asked.require_consensus_id,
    )
    return Letter(Ticket(mail, trace + made.body, asked.send_reason), made.sender)


def _template(asked: SendRequest) -> str | None:
    """The stored template, as id:version, that a request was made from. Raises Refusal where it names another one."""
    if asked.stored_template is None:
        return None
    if asked.made_from is None:
        raise missing("template_not_found", "there is no such template; names that begin with _ need none")
    return asked.made_from


def mailbox(grant: Grant, author: Address | None, mailbox_id: str | None = None) -> Mailbox:
    """The mailbox to send from: the one named, else the author's, else the key's first.

    An author who is nobody's mailbox is left to the judge, who refuses him (`sender_not_allowed`). Raises Refusal:
    mailbox_not_found, mailbox_scope_denied.
    """
    for box in grant.tenancy.mailboxes:
        if box.id == mailbox_id or (mailbox_id is None and author is not None and box.key == author.key):
            if not grant.covers(box.id):
                raise forbidden("mailbox_scope_denied", "the key is not for this mailbox", mailboxId=box.id)
            return box
    if mailbox_id is not None:
        raise missing("mailbox_not_found", "there is no such mailbox")
    if not grant.own_mailboxes:
        raise forbidden("mailbox_scope_denied", "the key has no mailbox to send from")
    return grant.own_mailboxes[0]


def _author(asked: SendRequest, parsed: Parsed | None, reader: Reader) -> Address | None:
    """Who is said to write: the request's `from`, or the raw message's first From, where that is an address."""
    if parsed is None:
        return asked.from_
    try:
        return reader.sender(parsed.header_from[0]) if parsed.header_from else None
    except AddressError:
        return None


def _recipients(asked: SendRequest, parsed: Parsed | None, reader: Reader) -> tuple[Recipient, ...]:
    """One person once: the first role wins, in the order to, cc, bcc. A raw message says itself where nobody else does."""
    only = [asked.recipient_email] if asked.recipient_email else asked.to
    named = {"to": only or [], "cc": asked.cc or [], "bcc": asked.bcc or []}
    if parsed is not None and not any(named.values()):
        named = _people(parsed, reader)
    people: dict[str, Recipient] = {}
    for role in ROLES:
        for address in named[role]:
            people.setdefault(address.key, Recipient(address, role))
    if not people:
        raise Faults([("to", NOBODY)])
    return tuple(people.values())


def _people(parsed: Parsed, reader: Reader) -> dict[str, list[Address]]:
    """The people in To, Cc and Bcc of a message."""
    people: dict[str, list[Address]] = {}
    faults: list[tuple[str, str]] = []
    for role in ROLES:
        people[role] = []
        for number, text in enumerate(getattr(parsed, role)):
            try:
                people[role].append(reader.person(text))
            except AddressError as error:
                faults.append((f"rawMessage.{role}[{number}]", error.why))
    if faults:
        raise Faults(faults)
    return people


def _derived(box: Mailbox, people: Iterable[str], asked: SendRequest, digest: str) -> str:
    """The key of a request without one: mailbox, recipients, thread, campaign action and content (SEMANTICS 5)."""
    parts = (box.id, *sorted(people), asked.thread_id or "", asked.campaign_action or "", digest)
    framed = "".join(f"{len(part)}:{part}" for part in parts)
    return f"derived:{hashlib.sha256(framed.encode()).hexdigest()}"


def _tokens(asked: SendRequest, recipients: Sequence[Recipient], header: int | None) -> dict[str, int]:
    """Fencing tokens by person key; a lone token is for `recipientEmail` or the only `to`."""
    faults: list[tuple[str, str]] = []
    tokens: dict[str, int] = {}
    known = {r.address.key for r in recipients}
    for address, token in (asked.fencing_tokens or {}).items():
        if address.key not in known:
            faults.append(("fencingTokens", "names somebody who is no recipient"))
        if tokens.setdefault(address.key, token) != token:
            faults.append(("fencingTokens", "has two tokens for one person"))
    lone = asked.fencing_token if asked.fencing_token is not None else header
    if lone is not None:
        only = [r.address.key for r in recipients if r.role == "to"]
        if header not in (None, lone):
            faults.append(("fencingToken", "differs from the header"))
        if len(only) != 1:
            faults.append(("fencingToken", "is for the only recipient in to; use fencingTokens"))
        elif tokens.setdefault(only[0], lone) != lone:
            faults.append(("fencingTokens", "differs from fencingToken"))
    if faults:
        raise Faults(faults)
    return tokens
