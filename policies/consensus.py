"""A mail that names a consensus waits for the agents' votes; a mailbox can demand that one is named.

Transactional mail, and mail to the tenant's own people alone, is bound only if it names one. What was accepted is not asked
again for whom its consensus is, nor whether the mailbox demands one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from gateway.core.consensus import Status
from gateway.core.facts import Answers, Ask, ConsensusAnswer, ConsensusAsk, MailboxAsk
from gateway.core.judge import ALWAYS
from gateway.core.mail import Moment, Submission
from gateway.core.verdict import HOLD, REFUSE, Finding, Reason

PENDING = Reason(
    "consensus_pending",
    HOLD,
    "0.0",
    "the agents have not decided yet",
    "wait for the votes; do not resend",
    strict=202,
)
REJECTED = Reason(
    "consensus_rejected", REFUSE, "7.1", "the agents decided against it", "stop; the agents decided against it"
)
REQUIRED = Reason(
    "consensus_required",
    REFUSE,
    "7.1",
    "the mailbox demands a consensus, and none is named",
    "create a consensus request for this contact, then send again with requireConsensusId",
    strict=409,
)
REASONS = (PENDING, REJECTED, REQUIRED)


@dataclass(frozen=True, slots=True)
class Consensus:
    """Holds a mail until the consensus that it names is approved, and refuses what the agents did not agree to."""

    when: ClassVar[frozenset[Moment]] = ALWAYS

    def asks(self, mail: Submission) -> Iterator[Ask[Any]]:
        """Ask for the consensus that is named, else for the mailbox's demand."""
        if mail.consensus is not None:
            yield ConsensusAsk(mail.consensus)
        if _demanded_of(mail):
            yield MailboxAsk(mail.mailbox)

    def judge(self, mail: Submission, facts: Answers) -> Iterator[Finding]:
        """Say how the consensus stands; of one that cannot help, why."""
        demanded = _demanded_of(mail) and facts[MailboxAsk(mail.mailbox)].require_consensus
        if mail.consensus is None:
            if demanded:
                yield REQUIRED.about(consensus="none")
            return
        found = facts[ConsensusAsk(mail.consensus)]
        useless = _useless(found, mail, demanded=demanded)
        if useless is not None:
            why, words = useless
            yield REQUIRED.about(text=words, consensus=why, consensusId=mail.consensus)
        elif found.status is Status.PENDING:
            yield PENDING.about(found.contact, consensusId=mail.consensus, timeoutAt=found.until)
        elif found.status is Status.REJECTED:
            yield REJECTED.about(found.contact, consensusId=mail.consensus)


def _demanded_of(mail: Submission) -> bool:
    return mail.moment is Moment.ACCEPTANCE and mail.kind.leased and bool(mail.contacts)


def _useless(found: ConsensusAnswer, mail: Submission, *, demanded: bool) -> tuple[str, str] | None:
    """Why a consensus can let nothing pass, whatever was voted: a word and a sentence."""
    if found.status is None:
        return "unknown", "there is no such consensus"
    if mail.moment is Moment.ACCEPTANCE and found.contact not in (mail.contacts or mail.keys):
        return "other_contact", "the consensus is about none of the recipients"
    if demanded and set(mail.contacts) != {found.contact}:
        return (
            "not_all",
            "the consensus is not about all recipients; send one mail to each, with a consensus of its own",
        )
    if found.status is Status.EXPIRED:
        return "expired", "the consensus has expired; nothing was decided in time"
    return None
