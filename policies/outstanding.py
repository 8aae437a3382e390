"""No second copy of a mail to a person while it is unknown whether the first one arrived: a person decides.

Another mail to the same person is the cooldown's business.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from gateway.core.facts import Answers, Ask, UnknownsAsk
from gateway.core.judge import ALWAYS
from gateway.core.mail import Moment, Submission
from gateway.core.verdict import HOLD, Finding, Reason

UNKNOWN = Reason(
    "unknown_outstanding",
    HOLD,
    "0.0",
    "the same mail may already have arrived",
    "a person decides; do not resend",
    strict=202,
)
REASONS = (UNKNOWN,)


@dataclass(frozen=True, slots=True)
class Outstanding:
    """Holds mail with the content of an unknown one to the same contact; never the unknown one itself."""

    when: ClassVar[frozenset[Moment]] = ALWAYS

    def asks(self, mail: Submission) -> Iterator[Ask[Any]]:
        """Ask what is unknown at each contact."""
        return (UnknownsAsk(contact) for contact in mail.contacts)

    def judge(self, mail: Submission, facts: Answers) -> Iterator[Finding]:
        """Name the oldest unknown request with this content."""
        for contact in mail.contacts:
            for request, digest in facts[UnknownsAsk(contact)]:
                if request != mail.id and digest == mail.content.digest:
                    yield UNKNOWN.about(contact, unknownRequestId=request)
                    break
