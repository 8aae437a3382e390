"""A mail goes to somebody, and to no more people than one mail may have.

Whether an address is one at all is settled before a mail exists (core/address); whether the next hop can take a local
part beyond ASCII is known to the relay alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from gateway.core.facts import Answers, Ask
from gateway.core.judge import AT_ACCEPTANCE
from gateway.core.mail import Moment, Submission
from gateway.core.verdict import REFUSE, Finding, Reason

NOT_ALLOWED = Reason("recipient_not_allowed", REFUSE, "1.3", "the recipients cannot be accepted", "fix", strict=422)
REASONS = (NOT_ALLOWED,)


@dataclass(frozen=True, slots=True)
class Recipients:
    """Refuses a mail to nobody or to more than `max_recipients` people (to, cc and bcc together)."""

    when: ClassVar[frozenset[Moment]] = AT_ACCEPTANCE

    max_recipients: int = 100

    def __post_init__(self) -> None:
        """Raise ValueError where no mail at all could pass."""
        if self.max_recipients < 1:
            raise ValueError("max_recipients must be at least 1")

    def asks(self, mail: Submission) -> tuple[Ask[object], ...]:  # noqa: ARG002  (the mail itself says it all)
        """Need no facts."""
        return ()

    def judge(self, mail: Submission, facts: Answers) -> Iterator[Finding]:  # noqa: ARG002
        """Count the people of the envelope."""
        count = len(mail.keys)
        if count == 0:
            yield NOT_ALLOWED.about(field="to", why="there is no recipient")
        elif count > self.max_recipients:
            why = f"there are {count} recipients, at most {self.max_recipients} are allowed"
            yield NOT_ALLOWED.about(field="to", why=why, limit=self.max_recipients)
