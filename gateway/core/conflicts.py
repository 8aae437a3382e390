"""Sends that were not let through because another agent had the contact: what the rule of escalation counts (SEMANTICS 6).

The same conflict again and again says that two agents are at odds, and no agent can settle that. This ask is part of the list
in `facts`, through which policies take it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from gateway.core.asks import Ask, Decided
from gateway.core.verdict import PASS, Decision, Finding

SLUGS = frozenset({"lease_conflict", "conflict_escalated"})
SECONDS = 3600
"""How long a conflict counts."""


@dataclass(frozen=True, slots=True)
class ConflictsAsk(Ask[frozenset[str]]):
    """Which sends of this actor have met another agent's lease within SECONDS, in this matter?

    The matter is a person, by key, or a thread. The answer are request ids: repeats of one key are one.
    """

    actor: str
    matter: str

    @property
    def subject(self) -> str:
        """The person's key or the thread."""
        return self.matter

    def after_decision(self, answer: frozenset[str], decided: Decided) -> frozenset[str]:
        """Return the sends with this one, where it is this actor's conflict in this matter."""
        mail = decided.mail
        if mail.actor != self.actor or self.matter not in matters(mail.thread, decided.decision):
            return answer
        return answer | {mail.id}


def matters(thread: str | None, decision: Decision) -> frozenset[str]:
    """The matters in which a decision is a conflict with another agent's lease; mail in flight is none."""
    people = {
        finding.recipient
        for finding in decision.findings
        if finding.recipient and finding.reason.slug in SLUGS and decision.weight(finding) > PASS and _by_lease(finding)
    }
    return frozenset(people | {thread} if thread and people else people)


def _by_lease(finding: Finding) -> bool:
    """Whether it is a lease that stands in the way, and not mail in flight."""
    return cast("Mapping[str, object]", finding.extra.get("leaseHolder") or {}).get("kind") == "lease"
