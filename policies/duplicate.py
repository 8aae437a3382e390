"""No second mail to a person that reads like one of the last day, whoever sends it and under whichever key: it is held.

A repeat under the same idempotency key is answered with the first receipt and never gets here; a mail with new words
goes. How alike two mails are is computed from their words (core/sketch). Replies are copies only of what answers the same
message or thread; transactional mail is neither held nor counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from gateway.core.facts import Answers, Ask, Recent, RecentAsk
from gateway.core.judge import ALWAYS
from gateway.core.mail import Kind, Moment, Submission
from gateway.core.sketch import likeness
from gateway.core.verdict import HOLD, Finding, Reason

DUPLICATE = Reason(
    "near_duplicate",
    HOLD,
    "0.0",
    "a mail that reads alike was sent to this person not long ago",
    "a person decides; do not resend",
    strict=202,
)
REASONS = (DUPLICATE,)


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Holds a mail that is at least `percent` alike to one that has set out to the same contact within `seconds`.

    0 seconds: asks nothing and finds nothing. A scheduled mail is measured against the time when it would leave.
    """

    when: ClassVar[frozenset[Moment]] = ALWAYS

    seconds: int = 86400
    percent: int = 75

    def __post_init__(self) -> None:
        """Raise ValueError where every mail or none would be alike."""
        if not 1 <= self.percent <= 100:  # noqa: PLR2004  (per cent)
            raise ValueError("percent must be from 1 to 100")

    def asks(self, mail: Submission) -> Iterator[Ask[Any]]:
        """Ask what has set out to each contact."""
        return (RecentAsk(contact, self.seconds) for contact in self._bound(mail))

    def judge(self, mail: Submission, facts: Answers) -> Iterator[Finding]:
        """Name the first request that reads alike."""
        begins = max(facts.now, mail.not_before or facts.now) - timedelta(seconds=self.seconds)
        for contact in self._bound(mail):
            for recent in facts[RecentAsk(contact, self.seconds)]:
                if recent.since > begins and recent.precedes(mail) and self._alike(mail, recent):
                    yield DUPLICATE.about(contact, firstRequestId=recent.request)
                    break

    def _alike(self, mail: Submission, recent: Recent) -> bool:
        if not recent.sketch or recent.kind is Kind.TRANSACTIONAL:
            return False
        if mail.kind is Kind.REPLY and recent.answers != mail.answers:
            return False
        return likeness(mail.content.sketch, recent.sketch) >= self.percent

    def _bound(self, mail: Submission) -> tuple[str, ...]:
        return mail.contacts if self.seconds and mail.kind is not Kind.TRANSACTIONAL and mail.content.sketch else ()
