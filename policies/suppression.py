"""No mail to a person who is on the suppression list, by address or domain, in to, cc or bcc, whoever sends it.

Leases, kinds and an operator's override change nothing about it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from gateway.core.facts import Answers, Ask, SuppressionAsk
from gateway.core.judge import ALWAYS
from gateway.core.mail import Moment, Submission
from gateway.core.verdict import REFUSE, Finding, Reason

SUPPRESSED = Reason("suppressed", REFUSE, "7.1", "the recipient is suppressed", "stop; it binds every agent")
REASONS = (SUPPRESSED,)


@dataclass(frozen=True, slots=True)
class Suppression:
    """Refuses mail to the suppressed, the tenant's own people included."""

    when: ClassVar[frozenset[Moment]] = ALWAYS

    def asks(self, mail: Submission) -> Iterator[Ask[Any]]:
        """Ask about every recipient, for the mail's campaign too."""
        return (SuppressionAsk(key, mail.campaign) for key in mail.keys)

    def judge(self, mail: Submission, facts: Answers) -> Iterator[Finding]:
        """Name each suppressed recipient with scope and reason code."""
        for key in mail.keys:
            found = facts[SuppressionAsk(key, mail.campaign)]
            if found:
                yield SUPPRESSED.about(key, scope=found.scope, reasonCode=found.reason_code)
