"""A contact belongs to one agent at a time: by a lease, by its fencing token, or by mail that is on its way.

Transactional mail neither holds nor is held. Acquiring, renewing and taking over are not done here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from gateway.core.conflicts import SECONDS
from gateway.core.facts import Answers, Ask, ConflictsAsk, FlightsAsk, LeaseAnswer, LeaseAsk, MailboxAsk
from gateway.core.judge import ALWAYS
from gateway.core.mail import Moment, Submission
from gateway.core.verdict import DEFER, HOLD, REFUSE, Finding, Reason

STALE = Reason(
    "stale_fencing_token",
    REFUSE,
    "7.1",
    "the fencing token is not the newest",
    "discard the draft; never resend with the old token",
    strict=409,
)
EXPIRED = Reason(
    "lease_expired", REFUSE, "7.1", "no lease of this token is alive", "acquire again, then check again", strict=409
)
REQUIRED = Reason(
    "lease_required", REFUSE, "7.1", "the mailbox demands a lease or a fencing token", "acquire a lease", strict=409
)
CONFLICT = Reason(
    "lease_conflict", DEFER, "7.1", "another agent has this contact", "stop; wait for release or hand off", strict=409
)
ESCALATED = Reason(
    "conflict_escalated",
    HOLD,
    "0.0",
    "another agent has this contact, again and again",
    "a person decides; do not resend",
    strict=202,
    alarm="lease.escalated",
)
REASONS = (STALE, EXPIRED, REQUIRED, CONFLICT, ESCALATED)

LOOK_AGAIN = timedelta(seconds=60)
"""When to come back for mail in flight: most is settled in seconds, the rest has an end of its own."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Keeps others away from a contact that is leased or to whom mail is in flight.

    Mail in flight does so until it is `flight_max` seconds old, past its permit at any age. Where `escalate_after` sends of an
    agent have met another's lease on the contact or in the thread within an hour, one more is held for a person (0: never).
    """

    when: ClassVar[frozenset[Moment]] = ALWAYS

    flight_max: int = 3600
    escalate_after: int = 2

    def asks(self, mail: Submission) -> Iterator[Ask[Any]]:
        """Ask for lease and flights of each contact, at acceptance for the mailbox's demands too."""
        if mail.kind.leased and mail.moment is Moment.ACCEPTANCE:
            yield MailboxAsk(mail.mailbox)
        for contact in mail.contacts if mail.kind.leased else ():
            yield LeaseAsk(contact)
            yield FlightsAsk(contact)
        yield from self._conflicts(mail)

    def judge(self, mail: Submission, facts: Answers) -> Iterator[Finding]:
        """Look at the lease of each contact, then at what is on its way there."""
        for contact in mail.contacts if mail.kind.leased else ():
            lease = facts[LeaseAsk(contact)]
            if mail.moment is Moment.RELEASE:
                reason = _at_release(mail, contact, lease)
            else:
                reason = _at_acceptance(mail, contact, lease, facts[MailboxAsk(mail.mailbox)].demands)
            if reason is CONFLICT and self._again_and_again(mail, facts):
                yield ESCALATED.about(contact, windowSeconds=SECONDS, **_holder(CONFLICT, lease))
            elif reason:
                until = lease.expires_at if reason is CONFLICT else None
                yield reason.about(contact, until=until, **_holder(reason, lease))
            yield from self._in_flight(mail, contact, facts)

    def _conflicts(self, mail: Submission) -> Iterator[ConflictsAsk]:
        """What this agent's earlier conflicts in the mail's matters are asked by."""
        if self.escalate_after and mail.kind.leased and mail.moment is Moment.ACCEPTANCE:
            yield from (ConflictsAsk(mail.actor, matter) for matter in (*mail.contacts, mail.thread) if matter)

    def _again_and_again(self, mail: Submission, facts: Answers) -> bool:
        """Whether this one is for a person to decide; those that come after it are conflicts like those before."""
        return any(len(facts[ask] - {mail.id}) == self.escalate_after for ask in self._conflicts(mail))

    def _in_flight(self, mail: Submission, contact: str, facts: Answers) -> Iterator[Finding]:
        for flight in facts[FlightsAsk(contact)]:
            opens = flight.since + timedelta(seconds=self.flight_max)
            if flight.actor != mail.actor and flight.precedes(mail) and (flight.permitted or facts.now < opens):
                again = facts.now + LOOK_AGAIN
                holder = {"agentId": flight.actor, "agentName": flight.actor_name, "expiresAt": max(opens, again)}
                holder |= {"kind": "send", "requestId": flight.request}
                yield CONFLICT.about(contact, until=again, estimate=True, leaseHolder=holder)
                return  # one mail in the way is reason enough


def _at_acceptance(mail: Submission, contact: str, lease: LeaseAnswer, demands: str) -> Reason | None:
    """A token must be that of one's own live lease; without one, another's live lease or a demand stands in the way."""
    token = mail.tokens.get(contact)
    if token is not None and token < lease.token:
        return STALE
    if token is not None and (token > lease.token or not lease.holder):
        return EXPIRED
    if lease.holder and lease.holder != mail.agent:
        return CONFLICT
    if token is None and demands and not (demands == "lease" and lease.holder):
        return REQUIRED
    return None


def _at_release(mail: Submission, contact: str, lease: LeaseAnswer) -> Reason | None:
    """What was accepted stands whatever became of its own lease; it yields only to another agent's later one."""
    token = mail.tokens.get(contact)
    if token is not None:
        return STALE if lease.taken_since(mail.agent, token) else None
    return CONFLICT if lease.holder and lease.holder != mail.agent else None


def _holder(reason: Reason, lease: LeaseAnswer) -> dict[str, Any]:
    if not lease.holder or reason not in (STALE, CONFLICT):
        return {}
    named = {"agentId": lease.holder, "agentName": lease.holder_name, "expiresAt": lease.expires_at, "kind": "lease"}
    return {"leaseHolder": named}
