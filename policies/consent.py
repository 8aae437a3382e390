"""No outreach to a person who has not agreed to it: the newest record of the consent ledger decides (off by default).

Replies and transactional mail need no consent, nor do the tenant's own people.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from gateway.core.facts import CONSENT_BASES, Answers, Ask, ConsentAsk
from gateway.core.judge import ALWAYS
from gateway.core.mail import Kind, Moment, Submission
from gateway.core.verdict import REFUSE, Finding, Reason

NO_CONSENT = Reason("no_consent", REFUSE, "7.1", "the recipient has not agreed to be written to", "stop")
REASONS = (NO_CONSENT,)


@dataclass(frozen=True, slots=True)
class Consent:
    """Refuses outreach without a consent that rests on one of `bases` and was not withdrawn."""

    when: ClassVar[frozenset[Moment]] = ALWAYS

    bases: tuple[str, ...] = CONSENT_BASES

    def __post_init__(self) -> None:
        """Refuse bases that no record can have, and none at all."""
        if not self.bases or not set(self.bases) <= set(CONSENT_BASES):
            raise ValueError(f"bases must be some of {', '.join(CONSENT_BASES)}")

    def asks(self, mail: Submission) -> Iterator[Ask[Any]]:
        """Ask for the consent of every contact of an outreach."""
        return (ConsentAsk(contact) for contact in self._bound(mail))

    def judge(self, mail: Submission, facts: Answers) -> Iterator[Finding]:
        """Say of each contact without consent what is there in its place."""
        for contact in self._bound(mail):
            found = facts[ConsentAsk(contact)]
            if found.withdrawn:
                yield NO_CONSENT.about(contact, consent="withdrawn")
            elif not found.basis:
                yield NO_CONSENT.about(contact, consent="none")
            elif found.basis not in self.bases:
                yield NO_CONSENT.about(contact, consent="other_basis", basis=found.basis)

    def _bound(self, mail: Submission) -> tuple[str, ...]:
        return mail.contacts if mail.kind is Kind.OUTREACH else ()
