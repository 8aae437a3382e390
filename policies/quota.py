"""So many recipients in an hour, a day and a month (calendar, UTC) for an agent, a mailbox and a tenant.

Asked once, when a mail comes in; a unit that was used is never given back.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from gateway.core.facts import Answers, Ask, UsageAsk
from gateway.core.judge import AT_ACCEPTANCE
from gateway.core.mail import Moment, Submission
from gateway.core.verdict import DEFER, Finding, Reason

WAIT = "wait until retryAt"
HOURLY = Reason("hourly_limit_exceeded", DEFER, "7.1", "the hourly limit is used up", WAIT, strict=429)
DAILY = Reason("daily_limit_exceeded", DEFER, "7.1", "the daily limit is used up", WAIT, strict=429)
MONTHLY = Reason("monthly_limit_exceeded", DEFER, "7.1", "the monthly limit is used up", WAIT, strict=429)
REASONS = (HOURLY, DAILY, MONTHLY)

BY_WINDOW = {"hour": HOURLY, "day": DAILY, "month": MONTHLY}


@dataclass(frozen=True)  # no slots: the limits that are set are found once
class Quota:
    """Limits in recipients, one unit each; 0: no limit. A mail with more recipients than remain does not go at all."""

    when: ClassVar[frozenset[Moment]] = AT_ACCEPTANCE

    agent_hour: int = 0
    agent_day: int = 0
    agent_month: int = 0
    mailbox_hour: int = 0
    mailbox_day: int = 0
    mailbox_month: int = 0
    tenant_hour: int = 0
    tenant_day: int = 0
    tenant_month: int = 0

    def asks(self, mail: Submission) -> Iterator[Ask[Any]]:
        """Ask for the counters that have a limit."""
        return (ask for ask, _ in self._limits(mail))

    def judge(self, mail: Submission, facts: Answers) -> Iterator[Finding]:
        """Compare what is used up, with this mail, to each limit."""
        units = len(mail.keys)
        for ask, limit in self._limits(mail):
            usage = facts[ask]
            if usage.used + units > limit:
                until = usage.resets_at if units <= limit else None  # the next window has no room for it either
                yield BY_WINDOW[ask.window].about(
                    until=until,
                    limitOf=ask.scope,
                    used=usage.used,
                    limit=limit,
                    remaining=max(0, limit - usage.used),
                    resetsAt=usage.resets_at,
                )

    def _limits(self, mail: Submission) -> Iterator[tuple[UsageAsk, int]]:
        for scope, window, limit in self._set:
            who = {"agent": mail.actor, "mailbox": mail.mailbox, "tenant": mail.tenant}[scope]
            yield UsageAsk(scope, who, window), limit

    @cached_property
    def _set(self) -> tuple[tuple[str, str, int], ...]:
        """The limits that are set: scope, window, recipients."""
        every = ((s, w, getattr(self, f"{s}_{w}")) for s in ("agent", "mailbox", "tenant") for w in BY_WINDOW)
        return tuple(one for one in every if one[2])
