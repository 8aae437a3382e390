"""No second mail to a person within the cooldown, whoever sends it; mail on its way counts as if it arrived now.

Mail that is scheduled for later is measured against the time when it would leave.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from gateway.core.facts import Answers, Ask, FlightsAsk, LastContactAsk
from gateway.core.judge import ALWAYS
from gateway.core.mail import Moment, Submission
from gateway.core.verdict import DEFER, Finding, Reason

COOLDOWN = Reason("cooldown", DEFER, "7.1", "contacted recently", "schedule after retryAt or drop", strict=429)
REASONS = (COOLDOWN,)


@dataclass(frozen=True, slots=True)
class Cooldown:
    """Keeps `seconds` between two mails to one contact; 0 asks nothing and finds nothing."""

    when: ClassVar[frozenset[Moment]] = ALWAYS

    seconds: int = 600

    def asks(self, mail: Submission) -> Iterator[Ask[Any]]:
        """Ask when each contact was last reached and what is on its way."""
        for contact in self._bound(mail):
            yield LastContactAsk(contact)
            yield FlightsAsk(contact)

    def judge(self, mail: Submission, facts: Answers) -> Iterator[Finding]:
        """Count from the mail in flight where there is one, else from the last contact; never from the mail itself."""
        leaves = max(facts.now, mail.not_before or facts.now)
        for contact in self._bound(mail):
            last = facts[LastContactAsk(contact)]
            reserved = any(flight.precedes(mail) for flight in facts[FlightsAsk(contact)])
            start = facts.now if reserved else last.at
            if start is None or (last.by == mail.id and not reserved):
                continue
            ends = start + timedelta(seconds=self.seconds)
            if leaves < ends:
                extra: dict[str, Any] = {"reserved": True} if reserved else {}
                yield COOLDOWN.about(contact, until=ends, estimate=reserved, cooldownExpiresAt=ends, **extra)

    def _bound(self, mail: Submission) -> tuple[str, ...]:
        return mail.contacts if self.seconds and mail.kind.asks_cooldown else ()
