"""The catalogue of events: every name once, what patterns mean, and that the code writes no other."""

import re
from pathlib import Path

import pytest

from gateway.core.event import BY_NAME, GROUPS, KINDS, Sight, wanted

SOURCES = Path(__file__).parents[2] / "gateway"


def test_every_name_means_one_kind() -> None:
    names = [kind.name for kind in KINDS]
    public = [kind.public for kind in KINDS]

    assert len(set(names)) == len(names)
    assert len(set(public)) == len(public)
    assert all(kind.says.endswith(".") for kind in KINDS)


def test_a_pattern_is_a_name_of_either_sort_or_a_whole_group() -> None:
    assert wanted(["delivery.sent"]) == wanted(["delivery.relayed"]) == {"delivery.relayed"}
    assert wanted(["coordination.lease_acquired", "send.queued"]) == {"lease.acquired", "send.queued"}
    assert wanted(["*"]) == set(BY_NAME)
    assert {"lease.acquired", "consensus.decided", "lease.escalated"} <= wanted(["coordination.*"])
    assert wanted(["send.*"]) == {"send.queued", "send.scheduled", "send.held", "send.resolved"}
    assert wanted([]) == frozenset()


@pytest.mark.parametrize("pattern", ["send", "send.que", "sen*", "send*", "*.queued", "", "nothing.*", ".*", "**"])
def test_a_pattern_that_means_nothing_is_named(pattern: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(pattern)}$"):
        wanted(["send.queued", pattern])


def test_groups_are_those_of_the_wire() -> None:
    assert "coordination" in GROUPS
    assert "lease" not in GROUPS


def test_who_may_see_what_is_told_for_all() -> None:
    assert {kind.sight for kind in KINDS} == set(Sight)
    assert BY_NAME["key.changed"].sight is Sight.MANAGERS
    assert BY_NAME["lease.acquired"].sight is Sight.TENANT
    assert BY_NAME["policy.blocked"].sight is Sight.MAILBOX
