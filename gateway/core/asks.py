"""How facts are asked for and read: the ask, the answers to one batch, and what one policy may see of them.

Which asks there are is the business of `facts`; the store answers them.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar, cast

from gateway.core.errors import UnaskedFactError
from gateway.core.mail import Submission
from gateway.core.verdict import Decision

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Accepted:
    """A mail that the judge has just let in; `due` if it is in flight from the commit on, else it waits (law 11).

    `actor_name` is the name of the agent that sends it, or "".
    """

    mail: Submission
    due: bool
    at: datetime
    actor_name: str = ""


@dataclass(frozen=True, slots=True)
class Decided:
    """A mail that the judge has just decided about, whichever way."""

    mail: Submission
    decision: Decision


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

    def after_decision(self, answer: A, decided: Decided) -> A:  # noqa: ARG002  (only conflicts count)
        """Return the answer as it is once `decided` is in the store, beside what an acceptance changes."""
        return answer


class Answers(Protocol):
    """What a policy may do with facts: read the time and the answers to its own asks."""

    @property
    def now(self) -> datetime:
        """The store's time (UTC), read under the lock."""
        ...

    def __getitem__(self, ask: Ask[A]) -> A:
        """Return the answer to an ask that was made."""
        ...


class Facts:
    """The answers for one batch of one tenant, advanced as its mails are accepted."""

    def __init__(self, now: datetime, answers: Mapping[Ask[Any], Any]) -> None:
        """Keep the store's time and the answers, indexed by subject."""
        self.now = now
        self.answers = dict(answers)
        self._by_subject: defaultdict[str, list[Ask[Any]]] = defaultdict(list)
        for ask in self.answers:
            self._by_subject[ask.subject].append(ask)

    def __getitem__(self, ask: Ask[A]) -> A:
        """Return the answer to `ask`; raises UnaskedFactError where nobody asked."""
        try:
            return cast("A", self.answers[ask])
        except KeyError:
            raise UnaskedFactError(type(ask).__name__) from None

    def __iter__(self) -> Iterator[Ask[Any]]:
        """Go over all asks that were answered."""
        return iter(self.answers)

    def advance(self, accepted: Accepted) -> None:
        """Change the answers as if `accepted` had been committed and they were loaded again (law 1)."""
        mail = accepted.mail
        for subject in {*mail.keys, mail.actor, mail.mailbox, mail.tenant, mail.thread or ""}:
            for ask in self._by_subject.get(subject, ()):
                self.answers[ask] = ask.after(self.answers[ask], accepted)

    def note(self, decided: Decided) -> None:
        """Change the answers as if `decided` had been committed and they were loaded again (law 1)."""
        mail = decided.mail
        for subject in {*mail.keys, mail.thread or ""}:
            for ask in self._by_subject.get(subject, ()):
                self.answers[ask] = ask.after_decision(self.answers[ask], decided)


class View:
    """Facts as one policy may see them: only what it asked for itself."""

    def __init__(self, facts: Facts, asked: frozenset[Ask[Any]]) -> None:
        """Limit `facts` to `asked`."""
        self._facts = facts
        self._asked = asked

    @property
    def now(self) -> datetime:
        """The store's time (UTC), read under the lock."""
        return self._facts.now

    def __getitem__(self, ask: Ask[A]) -> A:
        """Return the answer; raises UnaskedFactError where this policy did not ask."""
        if ask not in self._asked:
            raise UnaskedFactError(type(ask).__name__)
        return cast("A", self._facts.answers[ask])
