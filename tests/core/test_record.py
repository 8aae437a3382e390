"""What is kept of a send: a decision as text that JSON can hold, and when a refused send gives its key back."""

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.delivery import State
from gateway.core.record import Receipt, document, instant, plain
from gateway.core.verdict import DEFER, HOLD, REFUSE, Finding, Reason
from tests.builders import NOW, PAT, hence
from tests.core.records import RULES, a_decision, a_delivery, a_record

REFUSED = Reason("refused", REFUSE, "1.3", "no", "fix", strict=422)
DEFERRED = Reason("deferred", DEFER, "7.1", "not now", "wait", strict=429)
HELD = Reason("held", HOLD, "0.0", "a person decides", "do not resend", strict=202)

# --- times and values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 3, 4, 12, tzinfo=UTC), "2026-03-04T12:00:00Z"),
        (datetime(2026, 3, 4, 12, 0, 0, 1500, tzinfo=UTC), "2026-03-04T12:00:00.001500Z"),
        (datetime(2026, 3, 4, 12, tzinfo=timezone(timedelta(hours=2))), "2026-03-04T10:00:00Z"),
        (datetime(2026, 3, 4, 12, tzinfo=timezone(timedelta(0), "here")), "2026-03-04T12:00:00Z"),
        (None, None),
    ],
)
def test_a_time_is_written_in_utc_with_z(moment: datetime | None, text: str | None) -> None:
    assert instant(moment) == text


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_time_is_read_back_as_it_was(moment: datetime) -> None:
    text = instant(moment)

    assert text is not None
    assert datetime.fromisoformat(text) == moment


class Colour(StrEnum):
    """A word of some policy's own."""

    RED = "red"


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (2.5, 2.5),
        ("text", "text"),
        (NOW, "2026-03-04T12:00:00Z"),
        ({"at": NOW, 1: (NOW, [None])}, {"at": "2026-03-04T12:00:00Z", "1": ["2026-03-04T12:00:00Z", [None]]}),
        (MappingProxyType({"until": hence(hours=1)}), {"until": "2026-03-04T13:00:00Z"}),
        (Colour.RED, "red"),
        (Decimal("1.50"), "1.50"),
        (frozenset({"a"}), "frozenset({'a'})"),
    ],
)
def test_a_value_is_kept_as_json_can_hold_it(value: object, kept: object) -> None:
    assert plain(value) == kept
    assert json.loads(json.dumps(plain(value))) == kept


# --- decisions --------------------------------------------------------------------------------------------------------


def test_a_decision_that_lets_pass_is_kept_with_the_rules_that_were_asked() -> None:
    assert document(a_decision()) == {
        "verdict": "pass",
        "reason": None,
        "rules": list(RULES),
        "findings": [],
        "strictest": None,
        "retry_at": None,
        "at": "2026-03-04T12:00:00Z",
    }


def test_a_decision_is_kept_with_its_strictest_finding_and_the_retry_time() -> None:
    mild, strict = HELD.about(), DEFERRED.about(PAT, until=hence(minutes=9))

    kept = document(a_decision(mild, strict))

    assert (kept["verdict"], kept["reason"], kept["strictest"]) == ("defer", "deferred", 1)
    assert kept["retry_at"] == "2026-03-04T12:09:00Z"
    assert [finding["reason"] for finding in kept["findings"]] == ["held", "deferred"]


def test_a_decision_is_kept_with_who_and_which_token() -> None:
    kept = document(a_decision(), agent="agent-a", tokens={PAT: 7})

    assert (kept["agent"], kept["tokens"]) == ("agent-a", {PAT: 7})


def test_a_finding_is_kept_whole() -> None:
    finding = DEFERRED.about(PAT, until=hence(hours=1), estimate=True, text="soon", expiresAt=hence(hours=2)).by(
        "cooldown", observed=False
    )

    (kept,) = document(a_decision(finding))["findings"]

    assert kept == {
        "policy": "cooldown",
        "reason": "deferred",
        "verdict": "defer",
        "recipient": PAT,
        "until": "2026-03-04T13:00:00Z",
        "estimate": True,
        "observed": False,
        "approved": False,
        "mark": None,
        "detail": "soon",
        "next": "wait",
        "code": 450,
        "enhanced": "4.7.1",
        "strict": 429,
        "extra": {"expiresAt": "2026-03-04T14:00:00Z"},
    }


@pytest.mark.parametrize(
    ("finding", "approved"),
    [
        (HELD.about().by("quota", observed=False), True),
        (HELD.about().by("lease", observed=False), False),
        (HELD.about().by("quota", observed=True), False),
        (REFUSED.about().by("quota", observed=False), False),
    ],
    ids=["its hold", "another's hold", "a hold that is only observed", "its refusal"],
)
def test_an_approval_is_kept_at_the_holds_that_it_lets_pass(finding: Finding, approved: bool) -> None:
    (kept,) = document(a_decision(finding, approved=[HELD.about().by("quota", observed=False).mark]))["findings"]

    assert kept["approved"] is approved


def test_a_hold_is_kept_with_the_mark_that_an_approval_names() -> None:
    hold = HELD.about(PAT, until=hence(hours=1), requestId="r-0", expiresAt=hence(hours=2)).by("quota", observed=False)

    (kept,) = document(a_decision(hold))["findings"]

    assert kept["mark"] == hold.mark == f"quota {HELD.slug} {PAT} requestId=r-0"


@given(
    st.lists(
        st.builds(
            lambda reason, observed: reason.about(PAT, at=NOW, odd={1, 2}).by("quota", observed=observed),
            st.sampled_from([REFUSED, DEFERRED, HELD]),
            st.booleans(),
        ),
        max_size=5,
    ),
    st.sets(st.just("quota")),
)
def test_every_decision_can_be_written_down_and_read_again(findings: list[Finding], approved: set[str]) -> None:
    decision = a_decision(*findings, approved=approved)

    kept = json.loads(json.dumps(document(decision)))

    assert kept == document(decision)
    assert kept["reason"] == (decision.reason.slug if decision.reason else None)
    if decision.strictest is not None:
        assert kept["findings"][kept["strictest"]]["reason"] == kept["reason"]


# --- records ----------------------------------------------------------------------------------------------------------

BLOCKED = a_delivery(State.BLOCKED, "suppressed")


@pytest.mark.parametrize(
    ("deliveries", "refused"),
    [
        ([BLOCKED], True),
        ([BLOCKED, BLOCKED], True),
        ([BLOCKED, a_delivery(State.QUEUED)], False),
        ([BLOCKED, a_delivery(State.CANCELLED)], False),
        ([a_delivery(State.BLOCKED, "suppressed", permitted_at=NOW)], False),
        ([BLOCKED, a_delivery(State.BLOCKED, "suppressed", permitted_at=NOW)], False),
    ],
)
def test_only_a_send_of_which_nothing_can_have_left_gives_its_key_back(deliveries: list[Any], refused: bool) -> None:
    assert a_record(*deliveries).refused is refused


def test_a_receipt_is_a_first_one_unless_it_says_otherwise() -> None:
    receipt = Receipt(a_record())

    assert not receipt.replayed
    assert receipt.warnings == ()
