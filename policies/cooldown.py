"""No second mail to a person within the cooldown, whoever sends it; mail on its way counts as if it arrived now.

Mail that is scheduled for later is measured against the time when it would leave. A mailbox's or tenant's own value wins.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from gateway.core.facts import Answers, Ask, FlightsAsk, LastContactAsk, MailboxAsk
from gateway.core.judge import ALWAYS
from gateway.core.mail import Moment, Submission
from gateway.core.verdict import DEFER, Finding, Reason

COOLDOWN = Reason("cooldown", DEFER, "7.1", "contacted recently", "schedule after retryAt or drop", strict=429)
REASONS = (COOLDOWN,)


@dataclass(frozen=True, slots=True)
class Cooldown:
    """Keeps `seconds` between two mails to one contact where mailbox and tenant have no value of their own; 0: no pause."""

    when: ClassVar[frozenset[Moment]] = ALWAYS

    seconds: int = 600

    def asks(self, mail: Submission) -> Iterator[Ask[Any]]:
        """Ask when each contact was last reached and what is on its way, and whether the mailbox has its own cooldown."""
        if self._bound(mail):
            yield MailboxAsk(mail.mailbox)
        for contact in self._bound(mail):
            yield LastContactAsk(contact)
            yield FlightsAsk(contact)

    def judge(self, mail: Submission, facts: Answers) -> Iterator[Finding]:
        """Count from the mail in flight where there is one, else from the last contact; never from the mail itself."""
        leaves = max(facts.now, mail.not_before or facts.now)
        bound = self._bound(mail)
        own = facts[MailboxAsk(mail.mailbox)].cooldown if bound else None
        length = timedelta(seconds=self.seconds if own is None else own)
        for contact in bound if length else ():
            last = facts[LastContactAsk(contact)]
            reserved = any(flight.precedes(mail) for flight in facts[FlightsAsk(contact)])
            start = facts.now if reserved else last.at
            if start is None or (last.by == mail.id and not reserved):
                continue
            ends = start + length
            if leaves < ends:
                extra: dict[str, Any] = {"reserved": True} if reserved else {}
                yield COOLDOWN.about(contact, until=ends, estimate=reserved, cooldownExpiresAt=ends, **extra)

    def _bound(self, mail: Submission) -> tuple[str, ...]:
        return mail.contacts if mail.kind.asks_cooldown else ()
