"""A mail goes to somebody, to no more people than one mail may have, and only to whom the allow lists let it go.

There may be a list of the gateway's, the tenant's, the mailbox's and the agent's; each has to allow every recipient.
Whether an address is one at all is settled before a mail exists (core/address); whether the next hop can take a local
part beyond ASCII is known to the relay alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from gateway.core.address import AddressError
from gateway.core.allowlist import EVERYBODY, Allowed, allows, patterns
from gateway.core.facts import AgentAsk, Answers, Ask, MailboxAsk
from gateway.core.judge import ALWAYS
from gateway.core.mail import Moment, Submission
from gateway.core.verdict import REFUSE, Finding, Reason

NOT_ALLOWED = Reason("recipient_not_allowed", REFUSE, "1.3", "the recipients cannot be accepted", "fix", strict=422)
REASONS = (NOT_ALLOWED,)


@dataclass(frozen=True)  # no slots: the list is read once
class Recipients:
    """Refuses a mail to nobody, to more than `max_recipients` people (to, cc and bcc together), or past an allow list.

    `allowed_recipients` is the gateway's own list for all mail; an empty one lets nobody through.
    """

    when: ClassVar[frozenset[Moment]] = ALWAYS

    max_recipients: int = 100
    allowed_recipients: tuple[str, ...] = (EVERYBODY,)

    def __post_init__(self) -> None:
        """Raise ValueError where no mail at all could pass by its number, or a pattern is none."""
        if self.max_recipients < 1:
            raise ValueError("max_recipients must be at least 1")
        try:
            _ = self._allowed
        except AddressError:
            raise ValueError("allowed_recipients must be *, domains, *.domains or addresses") from None

    def asks(self, mail: Submission) -> Iterator[Ask[Any]]:
        """Ask for mailbox and agent, whose lists come with them."""
        yield MailboxAsk(mail.mailbox)
        if mail.agent is not None:
            yield AgentAsk(mail.agent)

    def judge(self, mail: Submission, facts: Answers) -> Iterator[Finding]:
        """Count the people of the envelope when the mail comes in; look at each of them at any time."""
        count = len(mail.keys)
        if mail.moment is Moment.ACCEPTANCE and count == 0:
            yield NOT_ALLOWED.about(field="to", why="there is no recipient")
        elif mail.moment is Moment.ACCEPTANCE and count > self.max_recipients:
            why = f"there are {count} recipients, at most {self.max_recipients} are allowed"
            yield NOT_ALLOWED.about(field="to", why=why, limit=self.max_recipients)
        for whose, allowed in self._lists(mail, facts):
            for one in mail.envelope.recipients if allowed is not None else ():
                if not allows(allowed, one.address.key):
                    why = f"the allow list of the {whose} does not have it"
                    yield NOT_ALLOWED.about(one.address.key, field=one.role, why=why)

    def _lists(self, mail: Submission, facts: Answers) -> Iterator[tuple[str, Allowed]]:
        yield "gateway", self._allowed
        mailbox = facts[MailboxAsk(mail.mailbox)]
        yield "tenant", mailbox.tenant_allowed
        yield "mailbox", mailbox.allowed
        if mail.agent is not None:
            yield "agent", facts[AgentAsk(mail.agent)].allowed

    @cached_property
    def _allowed(self) -> Allowed:
        """The gateway's own list; `None` where everybody is allowed anyway."""
        found = patterns(self.allowed_recipients)
        return None if EVERYBODY in found else found
