"""What counts as a conflict over a contact, and how a batch learns of its own."""

from typing import Any

import pytest

from gateway.core.asks import Decided
from gateway.core.conflicts import ConflictsAsk, matters
from gateway.core.facts import Facts
from gateway.core.verdict import DEFER, Decision, Finding, Reason
from tests.builders import NOW, PAT, a_mail

CONFLICT = Reason("lease_conflict", DEFER, "7.1", "another agent has this contact", "stop")
OTHER = Reason("cooldown", DEFER, "7.1", "contacted recently", "later")
BY_LEASE: dict[str, Any] = {"leaseHolder": {"agentId": "agent-b", "kind": "lease"}}
IN_FLIGHT: dict[str, Any] = {"leaseHolder": {"agentId": "agent-b", "kind": "send"}}


def decided(*findings: Finding) -> Decision:
    return Decision(findings, ("lease",), NOW)


@pytest.mark.parametrize(
    ("finding", "thread", "expected"),
    [
        (CONFLICT.about(PAT, **BY_LEASE), None, {PAT}),
        (CONFLICT.about(PAT, **BY_LEASE), "thread-1", {PAT, "thread-1"}),
        (CONFLICT.about(PAT, **IN_FLIGHT), "thread-1", set()),
        (CONFLICT.about(PAT), "thread-1", set()),
        (CONFLICT.about(None, **BY_LEASE), "thread-1", set()),
        (OTHER.about(PAT, **BY_LEASE), "thread-1", set()),
        (CONFLICT.about(PAT, **BY_LEASE).by("lease", observed=True), "thread-1", set()),
    ],
)
def test_a_conflict_is_with_anothers_lease_that_is_enforced(
    finding: Finding, thread: str | None, expected: set[str]
) -> None:
    assert matters(thread, decided(finding)) == expected


def test_facts_know_of_a_decision_in_the_same_batch() -> None:
    mine, theirs = ConflictsAsk("agent-a", PAT), ConflictsAsk("agent-b", PAT)
    thread, other = ConflictsAsk("agent-a", "thread-1"), ConflictsAsk("agent-a", "kim@example.net")
    facts = Facts(NOW, {ask: frozenset({"earlier"}) for ask in (mine, theirs, thread, other)})

    facts.note(Decided(a_mail(id="r-1", thread="thread-1"), decided(CONFLICT.about(PAT, **BY_LEASE))))
    facts.note(Decided(a_mail(id="r-2", thread="thread-1"), decided(OTHER.about(PAT))))

    assert facts[mine] == facts[thread] == {"earlier", "r-1"}
    assert facts[theirs] == facts[other] == {"earlier"}
