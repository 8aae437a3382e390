"""Only who may speak for a mailbox sends from it, as what it is: a live key, a known agent, the mailbox's own address.

What a key may do is asked when the mail comes in. Later the mail belongs to its agent and mailbox: a key that was
rotated away meanwhile stops nothing. Who holds a key at all is the doors' business.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from gateway.core.facts import AgentAsk, Answers, Ask, KeyAnswer, KeyAsk, MailboxAnswer, MailboxAsk
from gateway.core.judge import ALWAYS
from gateway.core.mail import Kind, Moment, Submission
from gateway.core.verdict import REFUSE, Finding, Reason

OWN = "use your own mailbox"
NOT_ALLOWED = Reason("sender_not_allowed", REFUSE, "7.1", "this sender may not send this", OWN)
NOT_ACTIVE = Reason("mailbox_not_active", REFUSE, "7.1", "the mailbox is not active", OWN)
PAUSED = Reason("mailbox_paused", REFUSE, "7.1", "the mailbox is paused", OWN, waits=True)
REASONS = (NOT_ALLOWED, NOT_ACTIVE, PAUSED)

NO_KEY = KeyAnswer(live=False)


@dataclass(frozen=True, slots=True)
class Identity:
    """Refuses what the key, the agent or the mailbox does not allow."""

    when: ClassVar[frozenset[Moment]] = ALWAYS

    def asks(self, mail: Submission) -> Iterator[Ask[Any]]:
        """Ask for mailbox and agent, at acceptance for the key too."""
        yield MailboxAsk(mail.mailbox)
        if mail.agent is not None:
            yield AgentAsk(mail.agent)
        if mail.key_id is not None and mail.moment is Moment.ACCEPTANCE:
            yield KeyAsk(mail.key_id)

    def judge(self, mail: Submission, facts: Answers) -> Iterator[Finding]:
        """Look at the agent, the mailbox and, at acceptance, at what was given to them."""
        if mail.agent is not None and not facts[AgentAsk(mail.agent)].name:
            yield NOT_ALLOWED.about(text="the agent is not registered")
        mailbox = facts[MailboxAsk(mail.mailbox)]
        if mailbox.status != "active":
            yield (PAUSED if mailbox.status == "paused" else NOT_ACTIVE).about()
        if mail.moment is Moment.ACCEPTANCE and mailbox.status != "missing":
            key = NO_KEY if mail.key_id is None else facts[KeyAsk(mail.key_id)]
            yield from (NOT_ALLOWED.about(text=why) for why in _objections(mail, key, mailbox))


def _objections(mail: Submission, key: KeyAnswer, mailbox: MailboxAnswer) -> Iterator[str]:
    """What key and mailbox do not allow; a mail without a key comes from a trusted network and names an agent."""
    if not key.live and (mail.key_id is not None or mail.agent is None):
        yield "the key is not valid"
    if key.mailboxes is not None and mail.mailbox not in key.mailboxes:
        yield "the key is not for this mailbox"
    if None not in (key.agent, mail.agent) and key.agent != mail.agent:  # it was bound to another one just now
        yield "the key is bound to another agent"
    if mail.kind is Kind.TRANSACTIONAL and not (key.transactional or mailbox.transactional):
        yield "transactional mail was given neither to this key nor to this mailbox"
    if mail.kind is Kind.REPLY and not mailbox.may_reply:
        yield "this mailbox may not send replies"
    if any(author != mailbox.address_key for author in mail.content.header_from):
        yield "From and Sender must be the mailbox's own address"
