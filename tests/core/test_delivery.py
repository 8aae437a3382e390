"""The table of states (law 10) and the times between attempts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.delivery import (
    BORN,
    ENDED,
    IN_FLIGHT,
    MARKABLE,
    TRANSITIONS,
    UNSENT,
    WAITING,
    Deferred,
    Retry,
    State,
    allowed,
)

STATES = pytest.mark.parametrize("state", list(State))
AFTER_THE_END = {
    State.RELAYED: {State.DELIVERED, State.BOUNCED},
    State.BLOCKED: {State.QUEUED, State.SCHEDULED, State.HELD},
}


# --- law 10: no state without a transition ----------------------------------------------------------------------------


def test_the_table_has_a_row_for_every_state_and_leads_only_to_states() -> None:
    assert set(TRANSITIONS) == set(State)
    for exits in TRANSITIONS.values():
        assert set(exits) <= set(State)


def test_every_step_says_who_takes_it() -> None:
    assert all(words for exits in TRANSITIONS.values() for words in exits.values())


def test_every_state_can_be_reached() -> None:
    reached: set[State] = set()
    todo = list(BORN)
    while todo:
        state = todo.pop()
        if state not in reached:
            reached.add(state)
            todo += TRANSITIONS[state]

    assert reached == set(State)


@STATES
def test_every_delivery_can_come_to_an_end(state: State) -> None:
    reached, todo = set[State](), [state]
    while todo:
        one = todo.pop()
        if one not in reached:
            reached.add(one)
            todo += TRANSITIONS[one]

    assert reached & ENDED


@STATES
def test_what_has_ended_stays_so_but_for_the_steps_of_the_page(state: State) -> None:
    if state in ENDED:
        assert set(TRANSITIONS[state]) == AFTER_THE_END.get(state, set())
    else:
        assert TRANSITIONS[state]


@STATES
def test_no_step_leads_from_a_state_to_itself(state: State) -> None:
    assert not allowed(state, state)


@given(st.sampled_from([None, *State]), st.sampled_from(State))
def test_a_step_is_allowed_exactly_where_the_table_has_it(old: State | None, new: State) -> None:
    assert allowed(old, new) is (new in (BORN if old is None else TRANSITIONS[old]))


def test_only_a_permit_leads_to_the_unknown() -> None:
    assert [state for state in State if State.UNKNOWN in TRANSITIONS[state]] == [State.PERMITTED]


def test_only_a_worker_that_claimed_it_gets_a_permit() -> None:
    assert [state for state in State if State.PERMITTED in TRANSITIONS[state]] == [State.CLAIMED]
    assert [state for state in State if State.CLAIMED in TRANSITIONS[state]] == [State.QUEUED]


def test_mail_that_is_permitted_is_not_pulled_back_but_by_its_own_reply() -> None:
    assert State.HELD not in TRANSITIONS[State.PERMITTED]
    assert State.EXPIRED not in TRANSITIONS[State.PERMITTED]
    assert State.CLAIMED not in TRANSITIONS[State.PERMITTED]


def test_every_state_is_ended_unsent_or_markable_and_only_one_of_them() -> None:
    assert set(State) == ENDED | UNSENT | MARKABLE
    assert not ENDED & UNSENT
    assert not ENDED & MARKABLE
    assert not UNSENT & MARKABLE


def test_in_flight_is_what_is_due_and_not_settled() -> None:
    assert sorted(IN_FLIGHT) == [State.CLAIMED, State.PERMITTED, State.QUEUED]
    assert sorted(WAITING) == [State.HELD, State.SCHEDULED]
    assert not IN_FLIGHT & (WAITING | ENDED)


@STATES
def test_what_is_unsent_can_be_cancelled_and_blocked_at_once(state: State) -> None:
    if state in UNSENT:
        assert allowed(state, State.CANCELLED)
        assert allowed(state, State.BLOCKED)


# --- times between attempts -------------------------------------------------------------------------------------------

ROLLS = st.floats(0, 1, exclude_max=True)


@given(st.integers(1, 10_000), ROLLS)
def test_a_wait_lies_between_its_step_and_half_as_much_again(attempt: int, roll: float) -> None:
    retry = Retry()
    step = min(retry.longest * 2 / 3, retry.first * 2.0 ** min(attempt - 1, 30))

    assert step <= retry.backoff(attempt, roll) <= min(step * 1.5, retry.longest)


@given(st.integers(1, 10_000), st.floats(0.1, 86_400), st.floats(1, 100), ROLLS)
def test_no_wait_is_shorter_than_the_first_or_longer_than_the_longest(
    attempt: int, first: float, times: float, roll: float
) -> None:
    retry = Retry(first=first, longest=first * times)

    assert first <= retry.backoff(attempt, roll) <= retry.longest * (1 + 1e-12)


def test_steps_double_until_the_longest() -> None:
    retry = Retry(first=30, longest=210)

    assert [retry.backoff(attempt, 0) for attempt in (1, 2, 3, 4, 5)] == [30, 60, 120, 140, 140]
    assert [retry.backoff(attempt, 1) for attempt in (1, 2, 3, 4, 5)] == [45, 90, 180, 210, 210]


@given(st.integers(1, 100), ROLLS, ROLLS)
def test_the_dice_only_spread_the_wait(attempt: int, one: float, other: float) -> None:
    low, high = sorted((one, other))

    assert Retry().backoff(attempt, low) <= Retry().backoff(attempt, high)


@pytest.mark.parametrize(
    ("attempt", "age", "used_up"), [(1, 0, False), (1000, 9.9, False), (1, 10.0, True), (1, 11.0, True)]
)
def test_a_delivery_is_given_up_by_time_alone_unless_told_otherwise(attempt: int, age: float, used_up: bool) -> None:
    assert Retry(give_up=10).used_up(attempt, age) is used_up


@pytest.mark.parametrize(
    ("most", "attempt", "used_up"), [(3, 2, False), (3, 3, True), (3, 4, True), (1, 1, True), (0, 1, False)]
)
def test_a_delivery_may_have_only_so_many_attempts(most: int, attempt: int, used_up: bool) -> None:
    assert Retry(max_attempts=most).used_up(attempt, 0) is used_up


def test_a_deferral_uses_up_an_attempt_unless_it_says_otherwise() -> None:
    assert Deferred("4yz").counts
