"""No endless exchange between programs: so many mails from one mailbox to one person and in one thread, then a pause.

Counted is what has set out, whoever sent it and of whichever kind; an alarm tells an operator once. An automatic answer
goes to nobody who is a program by name. Whether the message that is answered was itself automatic cannot be known here.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from gateway.core.facts import Answers, Ask, RecentAsk, ThreadAsk
from gateway.core.judge import ALWAYS
from gateway.core.mail import Kind, Moment, Submission
from gateway.core.verdict import DEFER, REFUSE, Finding, Reason

LOOP = Reason(
    "loop_suspected",
    DEFER,
    "7.1",
    "too many mails in one exchange",
    "stop; a program may be answering; wait until retryAt",
    strict=429,
    alarm="loop.broken",
)
AUTOMATIC = Reason(
    "automatic_answer", REFUSE, "7.1", "an automatic answer may not go to this address", "stop; nobody reads there"
)
REASONS = (LOOP, AUTOMATIC)

PROGRAM = re.compile(
    r"(owner-.*|.*-(request|bounces?|relay)|mailer|mailer-daemon|postmaster|bounces?|listserv|majordomo"
    r"|(do-?not|no)-?_?reply)(\+.*)?",
    re.IGNORECASE,
)
"""Local parts behind which a program or a list's machinery is (RFC 3834 2 and the custom of `vacation`)."""


@dataclass(frozen=True, slots=True)
class Loop:
    """At most `pair` mails from a mailbox to a person and `thread` mails in a thread within `seconds`; 0: no limit."""

    when: ClassVar[frozenset[Moment]] = ALWAYS

    pair: int = 60
    thread: int = 120
    seconds: int = 3600

    def asks(self, mail: Submission) -> Iterator[Ask[Any]]:
        """Ask what has set out to each recipient, the tenant's own included, and in the thread, if it is in one."""
        if self.pair and self.seconds:
            yield from (RecentAsk(key, self.seconds) for key in mail.keys)
        if self.thread and self.seconds and mail.thread:
            yield ThreadAsk(mail.thread, self.seconds)

    def judge(self, mail: Submission, facts: Answers) -> Iterator[Finding]:
        """Look at whom an answer goes to, then count."""
        if mail.kind is Kind.REPLY or mail.content.in_reply_to or mail.content.auto_submitted == "auto-replied":
            people = [r.address for r in mail.envelope.recipients if PROGRAM.fullmatch(r.address.local)]
            yield from (AUTOMATIC.about(address.key) for address in people)
        if self.pair and self.seconds:
            for key in mail.keys:
                recents = facts[RecentAsk(key, self.seconds)]
                times = [r.since for r in recents if r.mailbox == mail.mailbox and r.precedes(mail)]
                yield from self._beyond(mail, facts, times, self.pair, key)
        if self.thread and self.seconds and mail.thread:
            sent = facts[ThreadAsk(mail.thread, self.seconds)]
            times = [at for request, at in sent if request != mail.id and (mail.since is None or at < mail.since)]
            yield from self._beyond(mail, facts, times, self.thread, None)

    def _beyond(
        self, mail: Submission, facts: Answers, times: Sequence[datetime], limit: int, key: str | None
    ) -> Iterator[Finding]:
        """Count what set out within the window that ends when the mail would leave; tell when there is room again."""
        window = timedelta(seconds=self.seconds)
        leaves = max(facts.now, mail.not_before or facts.now)
        counted = [at for at in times if at > leaves - window]
        if len(counted) >= limit:
            what = f"{mail.mailbox} {key}" if key else f"thread {mail.thread}"
            until = counted[len(counted) - limit] + window
            yield LOOP.about(key, until=until, loopOf=what, used=len(counted), limit=limit, windowSeconds=self.seconds)
