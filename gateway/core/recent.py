"""Mail that has set out not long ago, to one person or in one thread: what guards against copies and loops know.

These asks are part of the list in `facts`, through which policies take them.
"""

from dataclasses import dataclass
from datetime import datetime

from gateway.core.asks import Accepted, Ask
from gateway.core.mail import Kind, Submission


@dataclass(frozen=True, slots=True)
class Recent:
    """One mail that has set out to a person: since when (UTC), from which mailbox, how it reads (core/sketch).

    `answers` is the message id that it answers, else its thread, else "".
    """

    request: str
    since: datetime
    mailbox: str
    kind: Kind
    sketch: bytes
    answers: str

    def precedes(self, mail: Submission) -> bool:
        """Whether `mail` comes after it: it is another's, and older than the mail's own flight where that has begun."""
        return self.request != mail.id and (mail.since is None or self.since < mail.since)


@dataclass(frozen=True, slots=True)
class RecentAsk(Ask[tuple[Recent, ...]]):
    """Which mail to this person has set out within so many seconds, oldest first?

    It is in flight, relayed or unknown; what was stopped or came back is no part of the answer, nor what still waits.
    """

    key: str
    seconds: int

    @property
    def subject(self) -> str:
        """The person's key."""
        return self.key

    def after(self, answer: tuple[Recent, ...], accepted: Accepted) -> tuple[Recent, ...]:
        """Return the mails with the accepted one, where it is due and goes to this person."""
        mail = accepted.mail
        if not accepted.due or self.key not in mail.keys or any(one.request == mail.id for one in answer):
            return answer
        one = Recent(mail.id, accepted.at, mail.mailbox, mail.kind, mail.content.sketch, mail.answers)
        return tuple(sorted((*answer, one), key=lambda r: (r.since, r.request)))


@dataclass(frozen=True, slots=True)
class ThreadAsk(Ask[tuple[tuple[str, datetime], ...]]):
    """Which mails of this thread have set out within so many seconds? Pairs of request id and time, oldest first."""

    thread: str
    seconds: int

    @property
    def subject(self) -> str:
        """The thread's id, as callers name it."""
        return self.thread

    def after(self, answer: tuple[tuple[str, datetime], ...], accepted: Accepted) -> tuple[tuple[str, datetime], ...]:
        """Return the mails with the accepted one, where it is due and of this thread."""
        mail = accepted.mail
        if not accepted.due or self.thread != mail.thread or any(request == mail.id for request, _ in answer):
            return answer
        return tuple(sorted((*answer, (mail.id, accepted.at)), key=lambda pair: (pair[1], pair[0])))
