"""The complete list of what a policy may know: each question (ask) with the shape of its answer (fact).

An ask is frozen, names its `subject` (what it is about) and knows how its answer changes when a mail of the same batch
is accepted (`after`), so that a batch is judged as if its mails had come one by one. The store has one loader per ask
and answers all asks of a kind in one statement. Reading an ask that nobody made raises.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from gateway.core.asks import Accepted, Answers, Ask, Decided, Facts, View
from gateway.core.conflicts import ConflictsAsk
from gateway.core.consensus import ConsensusAnswer, ConsensusAsk
from gateway.core.errors import UnaskedFactError
from gateway.core.mail import Kind, Submission
from gateway.core.recent import Recent, RecentAsk, ThreadAsk
from gateway.core.senders import AgentAnswer, AgentAsk, MailboxAnswer, MailboxAsk

__all__ = [
    "CONSENT_BASES",
    "Accepted",
    "AgentAnswer",
    "AgentAsk",
    "Answers",
    "Ask",
    "ConflictsAsk",
    "ConsensusAnswer",
    "ConsensusAsk",
    "ConsentAnswer",
    "ConsentAsk",
    "Decided",
    "Facts",
    "Flight",
    "FlightsAsk",
    "KeyAnswer",
    "KeyAsk",
    "LastContactAnswer",
    "LastContactAsk",
    "LeaseAnswer",
    "LeaseAsk",
    "MailboxAnswer",
    "MailboxAsk",
    "Recent",
    "RecentAsk",
    "SuppressionAnswer",
    "SuppressionAsk",
    "ThreadAsk",
    "UnknownsAsk",
    "UsageAnswer",
    "UsageAsk",
    "View",
    "name_of",
]  # fmt: skip

CONSENT_BASES = ("explicit_opt_in", "legitimate_interest", "contractual", "legal_obligation")


@dataclass(frozen=True, slots=True)
class KeyAnswer:
    """An API key under the lock: whether it lives, what it may send as, and whether transactional mail was given to it.

    `mailboxes` are those that it is for; `None`: all of the tenant. `agent` is the one that it is bound to, if any.
    """

    live: bool
    transactional: bool = False
    mailboxes: tuple[str, ...] | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class KeyAsk(Ask[KeyAnswer]):
    """Is this API key still good, and what for?"""

    key_id: str

    @property
    def subject(self) -> str:
        """The key's id."""
        return self.key_id


@dataclass(frozen=True, slots=True)
class LeaseAnswer:
    """The contact's lease row: `holder` is empty where no lease lives; `token` is the highest ever given.

    `owner` got the highest token; `foreign` is the highest token given to anybody but `owner`.
    """

    holder: str = ""
    holder_name: str = ""
    token: int = 0
    expires_at: datetime | None = None
    owner: str = ""
    foreign: int = 0

    def taken_since(self, agent: str | None, token: int) -> bool:
        """Whether another agent has acquired the contact after `agent` got `token`."""
        return (self.foreign if self.owner == agent else self.token) > token


@dataclass(frozen=True, slots=True)
class LeaseAsk(Ask[LeaseAnswer]):
    """Who holds this contact, and which token is the newest?"""

    contact: str

    @property
    def subject(self) -> str:
        """The contact's key."""
        return self.contact


@dataclass(frozen=True, slots=True)
class Flight:
    """One delivery in flight to a contact: whose, since when (UTC), and whether its dot may be on the wire."""

    request: str
    actor: str
    actor_name: str
    since: datetime
    permitted: bool
    kind: Kind

    def precedes(self, mail: Submission) -> bool:
        """Whether `mail` must mind it: it is another's, and older than the mail's own flight where that has begun."""
        return self.request != mail.id and (mail.since is None or self.since < mail.since)


@dataclass(frozen=True, slots=True)
class FlightsAsk(Ask[tuple[Flight, ...]]):
    """Which deliveries to this contact are in flight, oldest first?

    Transactional mail neither holds nor is held, so it is no part of the answer.
    """

    contact: str

    @property
    def subject(self) -> str:
        """The contact's key."""
        return self.contact

    def after(self, answer: tuple[Flight, ...], accepted: Accepted) -> tuple[Flight, ...]:
        """Return the flights with the accepted mail's, where it is due and holds contacts."""
        mail = accepted.mail
        if not accepted.due or not mail.kind.leased or self.contact not in mail.contacts:
            return answer
        if any(flight.request == mail.id for flight in answer):
            return answer
        since = mail.since or accepted.at
        flight = Flight(mail.id, mail.actor, accepted.actor_name, since, permitted=False, kind=mail.kind)
        return tuple(sorted((*answer, flight), key=lambda f: (f.since, f.request)))


@dataclass(frozen=True, slots=True)
class LastContactAnswer:
    """When the contact was last reached or may have been (UTC), and by which request."""

    at: datetime | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class LastContactAsk(Ask[LastContactAnswer]):
    """When was this contact last reached by mail that starts a cooldown?"""

    contact: str

    @property
    def subject(self) -> str:
        """The contact's key."""
        return self.contact


@dataclass(frozen=True, slots=True)
class SuppressionAnswer:
    """Why a person must not be mailed: scope tenant, campaign or domain; reason code as the suppression list has it."""

    scope: str
    reason_code: str


@dataclass(frozen=True, slots=True)
class SuppressionAsk(Ask[SuppressionAnswer | None]):
    """Is this person, or the domain, on the suppression list (also for this campaign)?"""

    key: str
    campaign: str | None = None

    @property
    def subject(self) -> str:
        """The person's key."""
        return self.key


@dataclass(frozen=True, slots=True)
class ConsentAnswer:
    """The newest consent record that counts: `basis` is "" where there is none; `withdrawn` ends it whatever its basis."""

    basis: str = ""
    withdrawn: bool = False


@dataclass(frozen=True, slots=True)
class ConsentAsk(Ask[ConsentAnswer]):
    """Has this contact agreed to be written to, and on which basis?"""

    contact: str

    @property
    def subject(self) -> str:
        """The contact's key."""
        return self.contact


@dataclass(frozen=True, slots=True)
class UnknownsAsk(Ask[tuple[tuple[str, str], ...]]):
    """Which requests to this contact are unknown? Pairs of request id and content digest, oldest first."""

    contact: str

    @property
    def subject(self) -> str:
        """The contact's key."""
        return self.contact


@dataclass(frozen=True, slots=True)
class UsageAnswer:
    """Units used in the running calendar window (UTC), and when the next one begins."""

    used: int
    resets_at: datetime


@dataclass(frozen=True, slots=True)
class UsageAsk(Ask[UsageAnswer]):
    """How many recipients has this agent, mailbox or tenant used up in this hour, day or month?"""

    scope: str  # agent | mailbox | tenant
    who: str
    window: str  # hour | day | month

    @property
    def subject(self) -> str:
        """The id of the agent, mailbox or tenant."""
        return self.who

    def after(self, answer: UsageAnswer, accepted: Accepted) -> UsageAnswer:
        """Return the usage with the accepted mail's recipients, one unit each."""
        mail = accepted.mail
        who = {"agent": mail.actor, "mailbox": mail.mailbox, "tenant": mail.tenant}[self.scope]
        return replace(answer, used=answer.used + len(mail.keys)) if who == self.who else answer


def name_of(facts: Facts, mail: Submission) -> str:
    """The name of the agent that sends `mail`, or "", as far as a policy has asked for it."""
    try:
        return facts[AgentAsk(mail.agent)].name if mail.agent else ""
    except UnaskedFactError:
        return ""
