"""A mail as the judge sees it: who sends, as whom, to whom, what, under which key and tokens."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from gateway.core.address import Address
from gateway.core.dsn import NONE, Dsn
from gateway.core.mime import Traits


class Kind(StrEnum):
    """What a mail is for; decides which rules hold it (SEMANTICS 2)."""

    OUTREACH = "outreach"
    REPLY = "reply"
    TRANSACTIONAL = "transactional"

    @property
    def leased(self) -> bool:
        """Whether leases and flights hold it, and it holds the contact."""
        return self is not Kind.TRANSACTIONAL

    @property
    def starts_cooldown(self) -> bool:
        """Whether its delivery starts the contact's cooldown."""
        return self is not Kind.TRANSACTIONAL

    @property
    def asks_cooldown(self) -> bool:
        """Whether the contact's cooldown binds it."""
        return self is Kind.OUTREACH


class Moment(StrEnum):
    """When a policy is asked."""

    ACCEPTANCE = "acceptance"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Recipient:
    """One person of the envelope; `role` is to, cc or bcc; an `internal` one is the tenant's own (no lease, no cooldown).

    `dsn` is what the author wants to be told about the delivery.
    """

    address: Address
    role: str = "to"
    internal: bool = False
    dsn: Dsn = NONE


@dataclass(frozen=True, slots=True)
class Envelope:
    """Reverse-path (`None`: the null path) and recipients, one person once."""

    reverse_path: str | None
    recipients: tuple[Recipient, ...]


@dataclass(frozen=True, slots=True)
class Content:
    """What was asked to be said, as facts computed before any lock; `size` in bytes of the message on the wire.

    `digest` covers what was asked, not the bytes made (SEMANTICS 5). `header_from` are the person keys of all addresses of
    From and Sender; what is no address stands there as it was written. `sketch` is how it reads (core/sketch), b"" where
    that is not known; `auto_submitted` the keyword of the author's own Auto-Submitted header, in lower case (RFC 3834 5).
    """

    digest: str
    size: int
    message_id: str
    header_from: tuple[str, ...]
    subject: str = ""
    in_reply_to: str | None = None
    traits: Traits = field(default_factory=Traits)
    sketch: bytes = b""
    auto_submitted: str = ""


@dataclass(frozen=True)  # no slots: every policy asks for keys and contacts, which are made once
class Submission:
    """One logical send as a door hands it in, or as it waits to be released.

    `agent` is the agent's id or `None` (sends as nobody), `key_id` the API key's id. `tokens` maps contact keys to fencing
    tokens. `not_before` is the caller's schedule (UTC), `template` the stored one that it was made from (id:version).
    `consensus` is the id of the vote that it depends on; like a token it is no part of the fingerprint. At a release
    `since` is when its flight began (UTC) or `None` where it has not begun, and `id` lets facts leave the mail itself out.
    """

    id: str
    tenant: str
    mailbox: str
    agent: str | None
    key_id: str | None
    envelope: Envelope
    content: Content
    idempotency_key: str
    fingerprint: str
    kind: Kind = Kind.OUTREACH
    tokens: Mapping[str, int] = field(default_factory=dict[str, int])
    thread: str | None = None
    campaign: str | None = None
    not_before: datetime | None = None
    derived_key: bool = False
    door: str = "http"
    override: str | None = None
    template: str | None = None
    consensus: str | None = None
    moment: Moment = Moment.ACCEPTANCE
    since: datetime | None = None

    @property
    def actor(self) -> str:
        """Who acts: the agent, or the key where no agent is bound; flights of one actor do not close his contact to him."""
        return self.agent or f"key:{self.key_id}"

    @property
    def answers(self) -> str:
        """What it answers: a message by its id, else a thread; "" where it says nothing of either."""
        return self.content.in_reply_to or self.thread or ""

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The keys of all recipients, in envelope order."""
        return tuple(r.address.key for r in self.envelope.recipients)

    @cached_property
    def contacts(self) -> tuple[str, ...]:
        """The keys of those whom leases, flights and cooldowns bind: all but the tenant's own."""
        return tuple(r.address.key for r in self.envelope.recipients if not r.internal)
