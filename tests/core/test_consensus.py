"""When votes have decided, by the table of the seed's rule; and which consensus a send depends on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.consensus import Status, awaited, outcome, standing, threshold

APPROVED, REJECTED, PENDING, EXPIRED = Status.APPROVED, Status.REJECTED, Status.PENDING, Status.EXPIRED


@pytest.mark.parametrize(("active", "needed"), [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (100, 51)])
def test_more_than_half_of_the_active_agents_decide_and_never_none(active: int, needed: int) -> None:
    assert threshold(active) == needed


@pytest.mark.parametrize(
    ("active", "approve", "reject", "status"),
    [
        # nobody is active: one vote decides, either way
        (0, 0, 0, PENDING),
        (0, 1, 0, APPROVED),
        (0, 0, 1, REJECTED),
        # one agent decides alone
        (1, 1, 0, APPROVED),
        (1, 0, 1, REJECTED),
        # two must agree
        (2, 1, 0, PENDING),
        (2, 0, 1, PENDING),
        (2, 1, 1, PENDING),
        (2, 2, 0, APPROVED),
        (2, 0, 2, REJECTED),
        # of three, two
        (3, 1, 1, PENDING),
        (3, 2, 0, APPROVED),
        (3, 2, 1, APPROVED),
        (3, 1, 2, REJECTED),
        # half is not more than half
        (4, 2, 0, PENDING),
        (4, 2, 2, PENDING),
        (4, 3, 1, APPROVED),
        # votes of agents that are active no longer count, so both sides can reach the threshold
        (1, 1, 1, PENDING),
        (1, 2, 1, APPROVED),
        (1, 1, 2, REJECTED),
        (1, 2, 2, PENDING),
        (0, 1, 1, PENDING),
        (0, 2, 1, APPROVED),
        (2, 3, 2, APPROVED),
        (2, 2, 3, REJECTED),
        (2, 3, 3, PENDING),
    ],
)
def test_what_votes_come_to(active: int, approve: int, reject: int, status: Status) -> None:
    assert outcome(approve, reject, active) is status


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_the_rule_is_the_same_for_both_sides_and_a_tie_decides_nothing(approve: int, reject: int, active: int) -> None:
    mirror = {APPROVED: REJECTED, REJECTED: APPROVED, PENDING: PENDING}

    assert outcome(reject, approve, active) is mirror[outcome(approve, reject, active)]
    assert outcome(approve, approve, active) is PENDING


@pytest.mark.parametrize("kept", list(Status))
def test_only_what_is_pending_runs_out(kept: Status) -> None:
    assert standing(kept, late=False) is kept
    assert standing(kept, late=True) is (EXPIRED if kept is PENDING else kept)


def test_a_send_depends_on_the_consensus_that_it_names_until_a_person_lets_it_pass() -> None:
    mark = "consensus consensus_pending pat@example.com consensusId=vote-1"

    assert awaited({"consensus": "vote-1"}, []) == "vote-1"
    assert awaited({"consensus": "vote-1"}, ["outstanding unknown_outstanding", ""]) == "vote-1"
    assert awaited({"consensus": "vote-1"}, [mark]) is None
    assert awaited({"consensus": None}, []) is None
    assert awaited({}, [mark]) is None
