"""What the gateway answers, as values: the members of the wire in snake case, times as datetime (UTC), all else as it came.

A member that a newer gateway has added is only in `body`, which holds the whole answer; one that is missing is `None`.
"""

from dataclasses import dataclass, field
from datetime import datetime

from gateway.client.errors import of_refusal
from gateway.client.shape import Holder, Json, Shape

HELD = "pending_approval"
REFUSED = frozenset({"blocked", "error"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Whoami(Shape):
    """Whose key it is, as which agent it acts, and what it may do."""

    tenant_id: str = field(metadata={"wire": "tenant_id"})
    key_id: str = field(metadata={"wire": "key_id"})
    agent_id: str | None = field(default=None, metadata={"wire": "agent_id"})
    agent_name: str | None = field(default=None, metadata={"wire": "agent_name"})
    scopes: tuple[str, ...] = ()
    mailboxes: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent(Shape):
    """An agent of the registry; `api_key_binding` says what became of the key that registered it.

    `refreshed` is false where the agent acts by a key of its own, and was left as it was.
    """

    id: str
    agent_name: str
    agent_role: str | None = None
    registered_at: datetime | None = None
    last_heartbeat: datetime | None = None
    api_key_binding: str | None = None
    bound_to_agent_id: str | None = None
    refreshed: bool = True
    metadata: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease(Shape):
    """A lease on a contact; `fencing_token` goes with every send under it."""

    id: str
    agent_id: str
    contact_email: str
    fencing_token: int
    expires_at: datetime
    agent_name: str | None = None
    intent: str | None = None
    created_at: datetime | None = None
    withdrew: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal(Shape):
    """Whether a lease was renewed, until when, or why not."""

    renewed: bool
    expires_at: datetime | None = None
    reason: str | None = None
    next_action: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(Shape):
    """Whether a lease was given back; `in_flight` names mail that closes the contact a little longer."""

    released: bool
    reason: str | None = None
    in_flight: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent(Shape):
    """What became of a send, or would become of it in a dry run (`would_allow`)."""

    status: str
    request_id: str | None = None
    reason: str | None = None
    detail: str | None = None
    next_action: str | None = None
    retry_at: datetime | None = None
    idempotency_key: str | None = None
    replayed: bool = False
    message_id: str | None = None
    lease_holder: Holder | None = None
    cooldown_expires_at: datetime | None = None
    would_allow: bool | None = None
    created_at: datetime | None = None
    subject: str | None = None
    agent_id: str | None = None
    recipients: tuple[Json, ...] = ()
    findings: tuple[Json, ...] = ()
    counts: Json = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether policy refuses it; of a dry run, whether it would."""
        return self.status in REFUSED or self.would_allow is False

    @property
    def held(self) -> bool:
        """Whether it waits for a person."""
        return self.status == HELD

    def raise_for_refusal(self) -> None:
        """Raise Refused, by a class that says why, where it is refused, or Held where it waits for a person."""
        if self.refused or self.held:
            raise of_refusal(200, self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch(Shape):
    """What became of each mail of a batch, in order."""

    results: tuple[Sent, ...]
    total: int | None = None
    batch_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellation(Shape):
    """Whether a send was stopped before any of it left."""

    cancelled: bool
    reason: str | None = None
    status: str | None = None
    counts: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Consensus(Shape):
    """A question that the tenant's agents vote on; `status` is pending, approved, rejected or expired.

    `approve` and `reject` are how many have voted so; `threshold` of the `active_agents` decide it while it is pending.
    """

    id: str
    status: str
    action: str | None = None
    requesting_agent_id: str | None = None
    contact_email: str | None = None
    reason: str | None = None
    timeout_at: datetime | None = None
    created_at: datetime | None = None
    decided_at: datetime | None = None
    approve: int | None = None
    reject: int | None = None
    threshold: int | None = None
    active_agents: int | None = None
    next_action: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote(Shape):
    """One agent's vote, and how the question stands after it."""

    agent_id: str
    vote: str
    id: str | None = None
    consensus_request_id: str | None = None
    consensus_status: str | None = None
    reason: str | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression(Shape):
    """Whether a person or a domain must not be mailed, and by what."""

    suppressed: bool
    reason: str | None = None
    matched_on: str | None = None
    scope: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Window(Shape):
    """What is used up of a limit; all `None` but `resets_at` where there is none."""

    used: int | None = None
    limit: int | None = None
    remaining: int | None = None
    enforced: bool | None = None
    resets_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget(Shape):
    """Recipients of the running hour, day and month; of the tenant, and of an agent or a mailbox that was asked for."""

    hourly: Window | None = None
    daily: Window | None = None
    monthly: Window | None = None
    agent: "Budget | None" = None
    mailbox: "Budget | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(Shape):
    """Something that happened: `body` holds what else is known of it."""

    id: str
    type: str
    occurred_at: datetime | None = None
    request_id: str | None = None
    agent_id: str | None = None
    contact_email: str | None = None
    recipient_email: str | None = None
    reason: str | None = None
    status: str | None = None

    @property
    def contact(self) -> str | None:
        """The person that it is about."""
        return self.contact_email or self.recipient_email


@dataclass(frozen=True, slots=True, kw_only=True)
class Events(Shape):
    """A page of the log, oldest first; go on after `since`, where there is `more`."""

    items: tuple[Event, ...]
    since: str | None = None
    more: bool = False
