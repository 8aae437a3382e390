"""The complete list of what a policy may know: each question (ask) with the shape of its answer (fact).

An ask is frozen, names its `subject` (what it is about) and knows how its answer changes when a mail of the same batch is
accepted (`after`), so that a batch is judged as if its mails had come one by one. The store has one loader per ask and
answers all asks of a kind in one statement. Reading an ask that nobody made raises.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar, cast

from gateway.core.errors import UnaskedFactError
from gateway.core.mail import Kind, Submission

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Accepted:
    """A mail that the judge has just let in; `due` if it is in flight from the commit on, else it waits (law 11)."""

    mail: Submission
    due: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class Ask(Generic[A]):
    """A question about one subject, answered before judging."""

    @property
    def subject(self) -> str:
        """The id or contact key that the answer is about; accepted mails touch only asks about their subjects."""
        raise NotImplementedError  # an ask without a subject cannot be loaded, see the house test

    def after(self, answer: A, accepted: Accepted) -> A:  # noqa: ARG002  (most answers do not change)
        """Return the answer as it is once `accepted` is in the store."""
        return answer


@dataclass(frozen=True, slots=True)
class KeyAnswer:
    """An API key under the lock: whether it lives, what it may send as and whether transactional mail was given to it."""

    live: bool
    transactional: bool = False
    mailboxes: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class KeyAsk(Ask[KeyAnswer]):
    """Is this API key still good, and what for?"""

    key_id: str

    @property
    def subject(self) -> str:
        """The key's id."""
        return self.key_id


@dataclass(frozen=True, slots=True)
class MailboxAnswer:
    """The sending mailbox: `address_key` is its own person key; options as an operator set them."""

    status: str  # active | paused | missing
    address_key: str = ""
    demands: str = ""  # "" | lease | token | both: what a send must carry
    may_reply: bool = False
    transactional: bool = False


@dataclass(frozen=True, slots=True)
class MailboxAsk(Ask[MailboxAnswer]):
    """In which state is the mailbox, and what does it demand?"""

    mailbox: str

    @property
    def subject(self) -> str:
        """The mailbox's id."""
        return self.mailbox


@dataclass(frozen=True, slots=True)
class AgentAsk(Ask[bool]):
    """Is this agent registered?"""

    agent: str

    @property
    def subject(self) -> str:
        """The agent's id."""
        return self.agent


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
        flight = Flight(mail.id, mail.actor, "", since, permitted=False, kind=mail.kind)
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
    """Why a person must not be mailed: scope tenant, campaign or domain; reason code of agent-api 10."""

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


class Answers(Protocol):
    """What a policy may do with facts: read the time and the answers to its own asks."""

    @property
    def now(self) -> datetime:
        """The store's time (UTC), read under the lock."""

    def __getitem__(self, ask: Ask[A]) -> A:
        """Return the answer to an ask that was made."""


class Facts:
    """The answers for one batch of one tenant, advanced as its mails are accepted."""

    def __init__(self, now: datetime, answers: Mapping[Ask[Any], Any]) -> None:
        """Keep the store's time and the answers, indexed by subject."""
        self.now = now
        self._answers = dict(answers)
        self._by_subject: defaultdict[str, list[Ask[Any]]] = defaultdict(list)
        for ask in self._answers:
            self._by_subject[ask.subject].append(ask)

    def __getitem__(self, ask: Ask[A]) -> A:
        """Return the answer to `ask`; raises UnaskedFactError where nobody asked."""
        try:
            return cast("A", self._answers[ask])
        except KeyError:
            raise UnaskedFactError(type(ask).__name__) from None

    def __iter__(self) -> Iterator[Ask[Any]]:
        """Go over all asks that were answered."""
        return iter(self._answers)

    def advance(self, accepted: Accepted) -> None:
        """Change the answers as if `accepted` had been committed and they were loaded again (law 1)."""
        mail = accepted.mail
        for subject in {*mail.keys, mail.actor, mail.mailbox, mail.tenant}:
            for ask in self._by_subject.get(subject, ()):
                self._answers[ask] = ask.after(self._answers[ask], accepted)


class View:
    """Facts as one policy may see them: only what it asked for itself."""

    def __init__(self, facts: Facts, asked: Iterable[Ask[Any]]) -> None:
        """Limit `facts` to `asked`."""
        self._facts = facts
        self._asked = frozenset(asked)

    @property
    def now(self) -> datetime:
        """The store's time (UTC), read under the lock."""
        return self._facts.now

    def __getitem__(self, ask: Ask[A]) -> A:
        """Return the answer; raises UnaskedFactError where this policy did not ask."""
        if ask not in self._asked:
            raise UnaskedFactError(type(ask).__name__)
        return self._facts[ask]
