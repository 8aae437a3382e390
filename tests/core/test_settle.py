"""What becomes of a delivery when its attempt comes back: every standing with every outcome (ARCHITECTURE 8)."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.delivery import (
    ENDED,
    MARKABLE,
    Bounced,
    Deferred,
    GivenBack,
    Outcome,
    Relayed,
    Reply,
    Retry,
    State,
    Unknown,
    allowed,
)
from gateway.core.settle import GAVE_UP, Settlement, Standing, reply_of, settle

OK = Reply(250, "2.0.0", "taken")
BUSY = Reply(451, "4.3.0", "busy")
NO = Reply(554, "5.7.1", "no")
GONE = Bounced("550 to RCPT", Reply(550, "5.1.1", "no such user"), stage="rcpt")

OUTCOMES: dict[str, Outcome] = {
    "2yz": Relayed(OK),
    "4yz": Deferred("451 to DOT", BUSY),
    "5yz": Bounced("554 to DOT", NO),
    "silence": Unknown("no reply to the dot"),
    "given back": GivenBack("stopping"),
}
RETRY = Retry(first=40, longest=100, give_up=1000)
TAKEN = (State.CLAIMED, State.PERMITTED, State.UNKNOWN)
BECOMES: dict[State, dict[str, State]] = {
    State.CLAIMED: {
        "2yz": State.RELAYED,
        "4yz": State.QUEUED,
        "5yz": State.BOUNCED,
        "silence": State.QUEUED,
        "given back": State.QUEUED,
    },
    State.PERMITTED: {
        "2yz": State.RELAYED,
        "4yz": State.QUEUED,
        "5yz": State.BOUNCED,
        "silence": State.UNKNOWN,
        "given back": State.QUEUED,
    },
    State.UNKNOWN: {
        "2yz": State.RELAYED,
        "4yz": State.QUEUED,
        "5yz": State.BOUNCED,
        "given back": State.QUEUED,
    },
    State.QUEUED: {"2yz": State.RELAYED},
    State.HELD: {"2yz": State.RELAYED},
    State.SCHEDULED: {"2yz": State.RELAYED},
}
"""The new state by standing and outcome; where there is none, the reply is only recorded."""


def standing(state: State = State.PERMITTED, **changes: Any) -> Standing:
    """A delivery in its second attempt, under claim number 7, a minute old, that nobody has forbidden."""
    usual: dict[str, Any] = {"state": state, "claim_no": 7, "forbidden": "", "attempts": 1, "age": 60.0}
    return Standing(**{**usual, **changes})


def settled(row: Standing, outcome: Outcome | str, retry: Retry = RETRY, roll: float = 0.0) -> Settlement:
    """What an outcome makes of a row, reported under its own claim number."""
    return settle(row, row.claim_no, OUTCOMES[outcome] if isinstance(outcome, str) else outcome, retry, roll)


# --- the table --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("state", "outcome"), list(product(State, OUTCOMES)))
def test_a_delivery_goes_where_its_outcome_leads_or_stays(state: State, outcome: str) -> None:
    assert settled(standing(state), outcome).state is BECOMES.get(state, {}).get(outcome)


def test_a_yes_to_a_dot_whose_permit_was_lost_is_a_yes() -> None:
    """A fail-over may forget a permit (F12): what was taken must not go a second time."""
    after = settled(standing(State.CLAIMED), "2yz").state

    assert after is State.RELAYED
    assert allowed(State.CLAIMED, after)


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("claim_no", [6, 8])
def test_another_claim_number_changes_nothing(state: State, outcome: str, claim_no: int) -> None:
    assert settle(standing(state), claim_no, OUTCOMES[outcome], RETRY, 0) == Settlement(None, 1)


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_of_all_late_replies_only_a_no_changes_what_was_assumed_to_be_relayed(outcome: str) -> None:
    change = settled(standing(State.RELAYED, assumed=True), outcome)

    assert change == (Settlement(State.BOUNCED, 1, reason="bounced") if outcome == "5yz" else Settlement(None, 1))


@pytest.mark.parametrize("state", sorted(ENDED - {State.RELAYED}))
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_what_has_ended_is_not_moved_by_what_comes_late(state: State, outcome: str) -> None:
    assert settled(standing(state, assumed=True), outcome) == Settlement(None, 1)


# --- attempts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [State.CLAIMED, State.PERMITTED])
@pytest.mark.parametrize("outcome", ["4yz", "5yz"])
def test_a_no_uses_up_an_attempt(state: State, outcome: str) -> None:
    assert settled(standing(state), outcome).attempts == 2


@pytest.mark.parametrize("outcome", ["2yz", "silence"])
def test_a_dot_that_was_sent_uses_up_an_attempt(outcome: str) -> None:
    assert settled(standing(), outcome).attempts == 2


@pytest.mark.parametrize("state", TAKEN)
@pytest.mark.parametrize("outcome", [GivenBack("late"), Deferred("421 at connect", Reply(421), counts=False)])
def test_what_should_not_count_uses_up_no_attempt(state: State, outcome: Outcome) -> None:
    assert settled(standing(state), outcome).attempts == 1


def test_silence_before_the_permit_uses_up_no_attempt() -> None:
    assert settled(standing(State.CLAIMED), "silence") == Settlement(State.QUEUED, 1, 0.0)


@pytest.mark.parametrize("outcome", ["2yz", "4yz", "5yz", "given back"])
def test_a_late_reply_belongs_to_an_attempt_that_has_counted_already(outcome: str) -> None:
    assert settled(standing(State.UNKNOWN), outcome).attempts == 1


# --- when it is tried again -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attempts", "roll", "wait"),
    [(0, 0.0, 40), (0, 0.5, 50), (1, 0.0, 200 / 3), (2, 0.0, 200 / 3), (9, 0.0, 200 / 3), (9, 0.9, 290 / 3)],
)
def test_the_wait_grows_with_the_attempts_up_to_the_longest(attempts: int, roll: float, wait: float) -> None:
    change = settled(standing(attempts=attempts), "4yz", roll=roll)

    assert change.state is State.QUEUED
    assert change.due_in == pytest.approx(wait)


@given(st.integers(0, 1000), st.floats(0, 1, exclude_max=True), st.booleans(), st.sampled_from(TAKEN))
def test_the_dice_keep_the_wait_within_the_first_step_and_the_longest(
    attempts: int, roll: float, counts: bool, state: State
) -> None:
    outcome = Deferred("451", BUSY, counts=counts)

    due_in = settled(standing(state, attempts=attempts), outcome, roll=roll).due_in

    assert due_in is not None
    assert RETRY.first <= due_in <= RETRY.longest
    assert due_in == RETRY.backoff(max(1, settled(standing(state, attempts=attempts), outcome).attempts), roll)


@pytest.mark.parametrize("state", TAKEN)
def test_what_was_given_back_is_due_at_once(state: State) -> None:
    assert settled(standing(state), "given back", roll=0.9) == Settlement(State.QUEUED, 1, 0.0)


@pytest.mark.parametrize("state", TAKEN)
@pytest.mark.parametrize(("age", "state_after"), [(999.9, State.QUEUED), (1000.0, State.BOUNCED)])
def test_a_delivery_is_given_up_when_it_is_too_old(state: State, age: float, state_after: State) -> None:
    change = settled(standing(state, age=age), "4yz")

    assert change.state is state_after
    assert change.reason == (GAVE_UP if state_after is State.BOUNCED else "")


@pytest.mark.parametrize(
    ("state", "most", "state_after"),
    [
        (State.PERMITTED, 2, State.BOUNCED),
        (State.PERMITTED, 3, State.QUEUED),
        (State.CLAIMED, 2, State.BOUNCED),
        (State.UNKNOWN, 2, State.QUEUED),
        (State.UNKNOWN, 1, State.BOUNCED),
    ],
)
def test_a_delivery_is_given_up_when_its_attempts_are_used_up(state: State, most: int, state_after: State) -> None:
    assert settled(standing(state), "4yz", Retry(max_attempts=most)).state is state_after


def test_what_should_not_count_is_given_up_by_age_alone() -> None:
    outcome = Deferred("421 at connect", counts=False)

    assert settled(standing(), outcome, Retry(max_attempts=2)).state is State.QUEUED
    assert settled(standing(age=1000), outcome).state is State.BOUNCED


@pytest.mark.parametrize("outcome", ["given back", "silence"])
def test_what_never_began_its_dot_is_not_given_up(outcome: str) -> None:
    change = settled(standing(State.CLAIMED, age=10**6), outcome, Retry(max_attempts=1))

    assert change == Settlement(State.QUEUED, 1, 0.0)


# --- what was forbidden meanwhile -------------------------------------------------------------------------------------

MARKS = [
    ("suppressed", State.BLOCKED),
    ("stale_fencing_token", State.BLOCKED),
    ("cancelled", State.CANCELLED),
]


@pytest.mark.parametrize(("mark", "state_after"), MARKS)
@pytest.mark.parametrize("state", sorted(MARKABLE))
@pytest.mark.parametrize("outcome", ["4yz", "given back"])
def test_what_was_forbidden_ends_in_place_of_going_again(
    mark: str, state_after: State, state: State, outcome: str
) -> None:
    change = settled(standing(state, forbidden=mark), outcome)

    assert (change.state, change.reason, change.due_in) == (state_after, mark, None)


@pytest.mark.parametrize(("mark", "state_after"), MARKS)
@pytest.mark.parametrize("retry", [Retry(max_attempts=1), Retry(give_up=10)])
def test_what_was_forbidden_ends_by_that_even_on_its_last_attempt(mark: str, state_after: State, retry: Retry) -> None:
    change = settled(standing(forbidden=mark), "4yz", retry)

    assert (change.state, change.reason) == (state_after, mark)


@pytest.mark.parametrize("outcome", ["2yz", "5yz", "silence"])
@pytest.mark.parametrize("state", sorted(MARKABLE))
def test_a_mark_changes_nothing_about_what_does_not_go_again(state: State, outcome: str) -> None:
    assert settled(standing(state, forbidden="suppressed"), outcome) == settled(standing(state), outcome)


# --- what follows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        (State.PERMITTED, "2yz"),
        (State.PERMITTED, "silence"),
        (State.UNKNOWN, "2yz"),
        (State.QUEUED, "2yz"),
    ],
)
def test_who_was_or_may_have_been_reached_counts_as_contacted(state: State, outcome: str) -> None:
    assert settled(standing(state), outcome).stamp


@pytest.mark.parametrize("state", TAKEN)
@pytest.mark.parametrize("outcome", ["4yz", "5yz", "given back"])
def test_a_plain_no_contacts_nobody(state: State, outcome: str) -> None:
    assert not settled(standing(state), outcome).stamp


def test_an_address_that_the_smarthost_does_not_know_is_suppressed() -> None:
    assert settled(standing(State.CLAIMED), GONE) == Settlement(State.BOUNCED, 2, reason="bounced", suppress=True)


@pytest.mark.parametrize(
    "outcome",
    [
        Bounced("550 to RCPT", Reply(550, "5.1.10", "null MX"), stage="rcpt"),
        Bounced("550 to RCPT", Reply(550, "5.7.1", "no"), stage="rcpt"),
        Bounced("550 to RCPT", Reply(550, "", "5.1.1 in the words alone"), stage="rcpt"),
        Bounced("550 to MAIL", Reply(550, "5.1.1", "no such sender"), stage="mail"),
        Bounced("550 to DATA", Reply(550, "5.1.1", "no"), stage="data"),
        Bounced("550 to DOT", Reply(550, "5.1.1", "no"), stage="dot"),
        Bounced("needs SMTPUTF8", stage="rcpt"),
        Bounced("needs SMTPUTF8", stage="local"),
    ],
)
def test_no_other_no_suppresses_an_address(outcome: Bounced) -> None:
    assert settled(standing(), outcome) == Settlement(State.BOUNCED, 2, reason="bounced")


@pytest.mark.parametrize(
    ("outcome", "reply"),
    [
        (OUTCOMES["2yz"], OK),
        (OUTCOMES["4yz"], BUSY),
        (OUTCOMES["5yz"], NO),
        (Deferred("no connection"), None),
        (OUTCOMES["silence"], None),
        (OUTCOMES["given back"], None),
    ],
)
def test_an_outcome_rests_on_its_reply_if_there_was_one(outcome: Outcome, reply: Reply | None) -> None:
    assert reply_of(outcome) == reply


# --- law 10, for any row and any outcome ------------------------------------------------------------------------------

REPLIES = st.builds(Reply, st.integers(200, 599), st.sampled_from(["", "2.0.0", "4.7.1", "5.1.1"]))
WHY = st.just("why")
ANY_OUTCOME = st.one_of(
    st.builds(Relayed, REPLIES),
    st.builds(Deferred, WHY, st.none() | REPLIES, st.booleans()),
    st.builds(Bounced, WHY, st.none() | REPLIES, st.sampled_from(["mail", "rcpt", "data", "dot", "local"])),
    st.builds(Unknown, WHY),
    st.builds(GivenBack, WHY),
)
STANDINGS = st.builds(
    Standing,
    st.sampled_from(State),
    st.integers(1, 2),
    st.sampled_from(["", "", "suppressed", "stale_fencing_token", "cancelled"]),
    st.integers(0, 6),
    st.floats(0, 2000),
    st.booleans(),
)
RETRIES = st.builds(Retry, st.just(40.0), st.just(100.0), st.just(1000.0), st.integers(0, 4))
ROLLS = st.floats(0, 1, exclude_max=True)


@given(STANDINGS, st.integers(1, 2), ANY_OUTCOME, RETRIES, ROLLS)
def test_every_settlement_is_a_step_of_the_table(
    row: Standing, claim_no: int, outcome: Outcome, retry: Retry, roll: float
) -> None:
    change = settle(row, claim_no, outcome, retry, roll)

    if change.state is None:
        assert change == Settlement(None, row.attempts)
    else:
        assert claim_no == row.claim_no
        assert allowed(row.state, change.state)
        assert change.attempts in (row.attempts, row.attempts + 1)
        assert (change.due_in is not None) == (change.state is State.QUEUED)
        assert change.stamp == (change.state in (State.RELAYED, State.UNKNOWN))
        assert not (change.suppress and change.state is not State.BOUNCED)
        assert not (change.state is State.QUEUED and row.forbidden)
