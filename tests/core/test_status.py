"""What is told of a send: its status (SEMANTICS 3), the answer's frame, findings, trace and recipients (SEMANTICS 4)."""

from collections import Counter
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.delivery import State
from gateway.core.record import DeliveryRecord, Document
from gateway.core.status import DELIVERY_STATUS, delivery_status, status, word
from gateway.core.verdict import Reason
from policies import reasons
from tests.builders import NOW, PAT, hence
from tests.core.records import RULES, a_delivery, a_record, decided, finding, told

OTHER = "other@example.com"
OPEN = ["pending_approval", "scheduled", "queued", "relaying", "deferred", "unknown"]
BY_WEIGHT = [*OPEN, "bounced", "expired", "cancelled", "relayed", "delivered", "blocked"]

# --- states and status (SEMANTICS 3) ----------------------------------------------------------------------------------

WORDS: list[tuple[State, int, str]] = [
    (State.QUEUED, 0, "queued"),
    (State.QUEUED, 1, "deferred"),
    (State.SCHEDULED, 0, "scheduled"),
    (State.HELD, 0, "pending_approval"),
    (State.HELD, 1, "pending_approval"),
    (State.CLAIMED, 0, "relaying"),
    (State.PERMITTED, 2, "relaying"),
    (State.UNKNOWN, 1, "unknown"),
    (State.RELAYED, 1, "relayed"),
    (State.DELIVERED, 1, "delivered"),
    (State.BOUNCED, 1, "bounced"),
    (State.BLOCKED, 0, "blocked"),
    (State.CANCELLED, 0, "cancelled"),
    (State.EXPIRED, 0, "expired"),
]
DELIVERIES = [a_delivery(state, attempts=attempts) for state, attempts, _ in WORDS]
ANY_DELIVERY = st.sampled_from(DELIVERIES)


@pytest.mark.parametrize(("state", "attempts", "public"), WORDS)
def test_every_state_has_its_public_word(state: State, attempts: int, public: str) -> None:
    delivery = a_delivery(state, attempts=attempts)

    assert word(delivery) == public
    assert status([delivery]) == (public, {public: 1})


def test_mail_that_met_a_busy_smarthost_is_deferred_though_the_attempt_does_not_count() -> None:
    delivery = a_delivery(State.QUEUED, attempts=0, code=421, text="busy", due_at=hence(seconds=30))

    assert word(delivery) == "deferred"
    assert told(a_record(delivery))["recipients"][0]["nextAttemptAt"]


def test_the_list_of_words_is_complete() -> None:
    assert {state for state, _, _ in WORDS} == set(State)


@pytest.mark.parametrize(("first", "second"), list(combinations(BY_WEIGHT, 2)))
def test_of_two_recipients_the_one_that_weighs_more_gives_the_status(first: str, second: str) -> None:
    by_word = {word(delivery): delivery for delivery in DELIVERIES}

    assert status([by_word[second], by_word[first]]) == (first, {first: 1, second: 1})


@given(st.lists(ANY_DELIVERY, min_size=1, max_size=6))
def test_the_status_is_the_first_open_state_or_blocked_or_the_worst_end(deliveries: list[DeliveryRecord]) -> None:
    names = [word(delivery) for delivery in deliveries]

    assert status(deliveries) == (min(names, key=BY_WEIGHT.index), dict(Counter(names)))


@given(st.lists(ANY_DELIVERY, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_recipients_does_not_matter_for_the_status(deliveries: list[DeliveryRecord], dice: Random) -> None:
    other = list(deliveries)
    dice.shuffle(other)

    assert status(other) == status(deliveries)


@pytest.mark.parametrize("name", BY_WEIGHT)
def test_a_status_has_a_word_of_the_documented_ones_or_keeps_its_own(name: str) -> None:
    final = {"queued", "accepted", "sent", "deferred", "delivered", "bounced", "failed"}

    assert delivery_status(name) in (final if name in DELIVERY_STATUS else {name})
    assert (name in DELIVERY_STATUS) is (name not in ("scheduled", "pending_approval", "blocked"))


# --- the answer's frame -----------------------------------------------------------------------------------------------


def test_an_accepted_send_is_told_with_its_ids_and_no_reason() -> None:
    assert told(a_record()) == {
        "requestId": "r-1",
        "status": "queued",
        "messageId": "m-1@example.com",
        "idempotencyKey": "once-1",
        "replayed": False,
        "policyTrace": {"decision": {"allow": True}, "auditEvents": [{"rule": r, "passed": True} for r in RULES]},
        "findings": [],
        "recipients": [{"email": PAT, "role": "to", "status": "queued", "attempts": 0}],
        "counts": {"queued": 1},
        "warnings": [],
    }


def test_a_repeat_and_its_warnings_are_told() -> None:
    body = told(a_record(), replayed=True, warnings=("derived_key",))

    assert (body["replayed"], body["warnings"]) == (True, ["derived_key"])


def test_scheduled_mail_is_told_with_its_time() -> None:
    body = told(decided(State.SCHEDULED, not_before=hence(days=1)))

    assert (body["status"], body["scheduledAt"]) == ("scheduled", "2026-03-05T12:00:00Z")
    assert "reason" not in body


def test_recipients_are_counted_by_their_states() -> None:
    body = told(a_record(a_delivery(State.RELAYED), a_delivery(State.BOUNCED), a_delivery(State.RELAYED)))

    assert (body["status"], body["counts"]) == ("bounced", {"relayed": 2, "bounced": 1})


# --- findings and the trace -------------------------------------------------------------------------------------------


def test_a_finding_is_told_whole() -> None:
    (body,) = told(decided(State.BLOCKED, finding("lease_conflict", until=NOW, estimate=True, text="busy", more=1)))[
        "findings"
    ]

    assert body == {
        "rule": "lease",
        "verdict": "defer",
        "reason": "lease_conflict",
        "detail": "busy",
        "nextAction": "stop; wait for release or hand off",
        "recipient": PAT,
        "retryAt": "2026-03-04T12:00:00Z",
        "estimate": True,
        "more": 1,
    }


def test_a_finding_about_the_whole_mail_names_no_recipient_and_no_time() -> None:
    (body,) = told(decided(State.BLOCKED, finding("message_too_large", None)))["findings"]

    assert not {"recipient", "retryAt", "estimate", "observed", "approved"} & set(body)


def test_an_observed_finding_is_listed_and_changes_nothing() -> None:
    body = told(decided(State.QUEUED, finding("cooldown", cooldownExpiresAt=NOW, observed=True)))

    assert body["status"] == "queued"
    assert not {"reason", "cooldownExpiresAt"} & set(body)
    assert body["findings"][0]["observed"] is True
    assert body["policyTrace"]["decision"] == {"allow": True}
    assert body["policyTrace"]["auditEvents"][3] == {
        "rule": "cooldown",
        "passed": True,
        "reason": "cooldown",
        "detail": "contacted recently",
        "observed": True,
    }


def test_an_approved_hold_is_listed_and_holds_no_longer() -> None:
    hold = finding("unknown_outstanding", unknownRequestId="r-0")

    body = told(decided(State.QUEUED, hold, approved=[hold.mark]))

    assert not {"reason", "nextAction", "unknownRequestId"} & set(body)
    assert body["findings"][0]["approved"] is True
    assert body["policyTrace"]["auditEvents"][1]["passed"] is True


def test_an_approved_hold_gives_nothing_to_a_refusal_beside_it() -> None:
    hold = finding("unknown_outstanding", unknownRequestId="r-0")

    body = told(decided(State.BLOCKED, hold, finding("suppressed"), approved=[hold.mark]))

    assert body["reason"] == "suppressed"
    assert "unknownRequestId" not in body


def test_the_trace_has_every_rule_in_table_order_and_every_finding_at_its_rule() -> None:
    trace = told(decided(State.BLOCKED, finding("lease_conflict"), finding("lease_conflict", OTHER)))["policyTrace"]

    assert trace["decision"] == {"allow": False, "reason": "lease_conflict"}
    assert [(line["rule"], line["passed"]) for line in trace["auditEvents"]] == [
        ("recipient", True),
        ("lease", False),
        ("lease", False),
        ("suppression", True),
        ("cooldown", True),
        ("quota", True),
    ]
    assert trace["auditEvents"][1]["detail"] == "another agent has this contact"


@pytest.mark.parametrize("reason", reasons(), ids=lambda reason: reason.slug)
def test_every_reason_of_the_table_is_told_with_its_words(reason: Reason) -> None:
    body = told(decided(State.BLOCKED, reason.about(PAT).by("lease", observed=False)))

    assert (body["reason"], body["detail"], body["nextAction"]) == (reason.slug, reason.text, reason.next)


# --- recipients -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delivery", "said"),
    [
        (a_delivery(role="bcc"), {"role": "bcc"}),
        (
            a_delivery(State.RELAYED, code=250, enhanced="2.0.0", text="taken", attempts=1, changed_at=NOW),
            {
                "status": "relayed",
                "attempts": 1,
                "reply": {"code": 250, "enhanced": "2.0.0", "text": "taken"},
                "changedAt": "2026-03-04T12:00:00Z",
            },
        ),
        (
            a_delivery(State.QUEUED, attempts=1, text="no connection", due_at=hence(minutes=1)),
            {
                "status": "deferred",
                "attempts": 1,
                "detail": "no connection",
                "nextAttemptAt": "2026-03-04T12:01:00Z",
            },
        ),
        (a_delivery(State.QUEUED, due_at=NOW), {}),
        (a_delivery(State.QUEUED, attempts=1), {"status": "deferred", "attempts": 1}),
        (a_delivery(State.CLAIMED, attempts=1, due_at=NOW), {"status": "relaying", "attempts": 1}),
        (a_delivery(State.BOUNCED, "gave_up"), {"status": "bounced", "reason": "gave_up"}),
        (
            a_delivery(State.RELAYED, "assumed", assumed=True),
            {"status": "relayed", "reason": "assumed", "assumed": True},
        ),
    ],
)
def test_a_recipient_is_told_with_state_times_and_the_smarthosts_words(
    delivery: DeliveryRecord, said: Document
) -> None:
    usual: Document = {"email": PAT, "role": "to", "status": "queued", "attempts": 0}

    assert told(a_record(delivery))["recipients"] == [usual | said]


def test_every_recipient_is_told_in_the_order_of_the_envelope() -> None:
    people = [a_delivery(address=f"{name}@example.com") for name in ("b", "a", "c")]

    assert [one["email"] for one in told(a_record(*people))["recipients"]] == [person.address for person in people]
