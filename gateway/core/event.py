"""Every event that the gateway writes: its name in the log, its name on the wire, who may see it, and what it says.

The names on the wire are those of Molted's public API where it has one. The page of events in docs is made from this table.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Sight(StrEnum):
    """Who may see an event: whoever reaches its mailbox, every key of the tenant, or keys that manage all mailboxes."""

    MAILBOX = "mailbox"
    TENANT = "tenant"
    MANAGERS = "managers"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of event; `wire` is its public name where that is another than in the log."""

    name: str
    sight: Sight
    says: str
    wire: str = ""

    @property
    def public(self) -> str:
        """The name on the wire."""
        return self.wire or self.name


def _kinds(sight: Sight, said: Iterable[tuple[str, ...]]) -> tuple[Kind, ...]:
    return tuple(Kind(one[0], sight, one[1], *one[2:]) for one in said)


KINDS = (
    *_kinds(
        Sight.MAILBOX,
        (
            ("send.queued", "A send was taken and goes on its way."),
            ("send.scheduled", "A send was taken for later, or has to wait."),
            ("send.held", "A send waits for a person, a consensus or a mailbox.", "send.approval_pending"),
            ("send.resolved", "It was decided about a send that waited or was unknown.", "send.approval_decided"),
            ("policy.blocked", "A send was refused; `reason` says why."),
            ("delivery.queued", "A recipient's mail waits for the relay (again)."),
            ("delivery.scheduled", "A recipient's mail waits for its time."),
            ("delivery.held", "A recipient's mail is held."),
            ("delivery.deferred", "The smarthost put a recipient off; it is tried again."),
            ("delivery.relayed", "The smarthost took a recipient's mail.", "delivery.sent"),
            ("delivery.delivered", "It was confirmed that a recipient's mail arrived."),
            ("delivery.bounced", "A recipient's mail came back, or was refused for good."),
            ("delivery.unknown", "Whether the smarthost took a recipient's mail is not known."),
            ("delivery.blocked", "A recipient's mail was stopped before it left; `by` says whose act it was."),
            ("delivery.cancelled", "A recipient's mail was taken back; `by` says whose act it was."),
            ("delivery.expired", "A recipient's mail was too late to be useful."),
            ("loop.broken", "Two programs answered each other; it was stopped."),
            ("lease.escalated", "One agent met the same conflict again and again: a person decides.",
             "coordination.conflict_escalated"),
        ),
    ),
    *_kinds(
        Sight.TENANT,
        (
            ("lease.acquired", "An agent took a contact.", "coordination.lease_acquired"),
            ("lease.extended", "An agent keeps its contact for longer.", "coordination.lease_extended"),
            ("lease.released", "An agent gave its contact back.", "coordination.lease_released"),
            ("lease.expired", "An agent's lease ran out.", "coordination.lease_expired"),
            ("consensus.requested", "An agent asks the others for their votes.", "coordination.consensus_requested"),
            ("consensus.voted", "An agent voted.", "coordination.consensus_voted"),
            ("consensus.decided", "The votes decided; `status` says how.", "coordination.consensus_decided"),
            ("consensus.expired", "Nothing was decided in time.", "coordination.consensus_expired"),
            ("agent.registered", "An agent entered the registry or was refreshed."),
            ("agent.changed", "An agent's settings were changed."),
            ("suppression.created", "An address or a domain must not be mailed any more."),
            ("suppression.removed", "An address or a domain may be mailed again."),
            ("suppression.imported", "A list of suppressions was taken in."),
            ("consent.recorded", "A person agreed to be written to."),
            ("consent.withdrawn", "A person agreed no longer."),
            ("relay.paused", "An operator closed the relay."),
            ("relay.resumed", "An operator opened the relay."),
            ("template.published", "A template's version was published."),
        ),
    ),
    *_kinds(
        Sight.MAILBOX,
        (
            ("mailbox.created", "There is a new mailbox."),
            ("mailbox.changed", "A mailbox's settings were changed."),
            ("mailbox.paused", "A mailbox was paused; its mail is held."),
            ("mailbox.resumed", "A mailbox goes on; what its pause held is judged again."),
        ),
    ),
    *_kinds(
        Sight.MANAGERS,
        (
            ("settings.changed", "The tenant's settings were changed."),
            ("key.created", "There is a new API key."),
            ("key.changed", "An API key was changed."),
            ("key.bound", "An API key acts as an agent from now on."),
            ("key.unbound", "An API key acts as its agent no longer."),
            ("key.revoked", "An API key was ended."),
            ("invite.created", "An agent was invited."),
            ("invite.claimed", "An invited agent has its key."),
            ("invite.revoked", "An invitation was taken back."),
            ("decision.requested", "An agent asks for what only a person may do."),
            ("decision.confirmed", "A person carried out what an agent had asked for."),
            ("decision.rejected", "A person refused what an agent had asked for."),
        ),
    ),
)  # fmt: skip
"""All kinds of events, in the order in which the docs name them."""

BY_NAME = {kind.name: kind for kind in KINDS}
GROUPS = tuple(dict.fromkeys(kind.public.partition(".")[0] for kind in KINDS))


def wanted(patterns: Iterable[str]) -> frozenset[str]:
    """The names in the log of the kinds that these patterns mean: a name of either sort, or `group.*`; `*` means all.

    Raises ValueError with the first pattern that means none.
    """
    found: set[str] = set()
    for pattern in patterns:
        start = pattern.removesuffix("*") if pattern == "*" or pattern.endswith(".*") else None
        means = {
            kind.name
            for kind in KINDS
            for name in (kind.name, kind.public)
            if (name == pattern if start is None else name.startswith(start))
        }
        if not means:
            raise ValueError(pattern)
        found |= means
    return frozenset(found)
