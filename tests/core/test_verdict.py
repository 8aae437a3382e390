"""Reasons, findings, decisions: what all policies together come to."""

import pytest

from gateway.core.verdict import (
    CORE_REASONS,
    DEFER,
    HOLD,
    PASS,
    REFUSE,
    STATUS_CLASS,
    Decision,
    Finding,
    Reason,
    Verdict,
)
from tests.builders import NOW, PAT, hence

REFUSED = Reason("refused", REFUSE, "7.1", "no", "stop")
DEFERRED = Reason("deferred", DEFER, "7.1", "not now", "wait")
HELD = Reason("held", HOLD, "0.0", "a person decides", "wait", strict=202)
SUPPRESSED = Reason("suppressed", REFUSE, "7.1", "suppressed", "stop")


def decided(*findings: Finding, approved: frozenset[str] = frozenset()) -> Decision:
    return Decision(findings, ("one", "two"), NOW, approved)


# --- reasons and findings ---------------------------------------------------------------------------------------------


def test_verdicts_grow_stricter() -> None:
    assert sorted(Verdict) == [PASS, HOLD, DEFER, REFUSE]


@pytest.mark.parametrize(
    ("verdict", "code", "enhanced"),
    [(PASS, 250, "2.6.0"), (HOLD, 250, "2.6.0"), (DEFER, 454, "4.6.0"), (REFUSE, 554, "5.6.0")],
)
def test_the_class_of_codes_follows_from_the_verdict(verdict: Verdict, code: int, enhanced: str) -> None:
    reason = Reason("any", verdict, "6.0", "text", "next", reply="54")

    assert (reason.code, reason.enhanced) == (code, enhanced)
    assert int(enhanced[0]) == STATUS_CLASS[verdict]


def test_a_finding_about_the_whole_mail_has_the_reasons_words() -> None:
    finding = REFUSED.about()

    assert finding == Finding(REFUSED, text="no")
    assert finding.verdict is REFUSE


def test_a_finding_keeps_what_the_policy_says_of_it() -> None:
    finding = DEFERRED.about(PAT, until=NOW, estimate=True, text="soon", used=3)

    assert finding == Finding(DEFERRED, PAT, NOW, estimate=True, text="soon", extra={"used": 3})


def test_a_finding_is_signed_and_keeps_the_rest() -> None:
    finding = REFUSED.about(PAT).by("one", observed=False)

    assert finding == Finding(REFUSED, PAT, text="no", policy="one")
    assert finding.verdict is REFUSE


def test_an_observed_finding_weighs_nothing() -> None:
    assert REFUSED.about().by("one", observed=True).verdict is PASS


# --- decisions --------------------------------------------------------------------------------------------------------


def test_silence_is_consent() -> None:
    decision = decided()

    assert decision.verdict is PASS
    assert decision.allow
    assert decision.strictest is None
    assert decision.reason is None
    assert decision.retry_at is None


def test_the_strictest_finding_gives_verdict_and_reason() -> None:
    decision = decided(HELD.about(), REFUSED.about(), DEFERRED.about())

    assert decision.verdict is REFUSE
    assert decision.reason is REFUSED
    assert not decision.allow


def test_a_held_mail_is_taken_and_a_deferred_one_is_not() -> None:
    assert decided(HELD.about()).allow
    assert not decided(DEFERRED.about()).allow


def test_of_equally_strict_findings_the_first_in_the_table_gives_the_reason() -> None:
    decision = decided(REFUSED.about(PAT), REFUSED.about("other@example.com"))

    assert decision.strictest is decision.findings[0]


def test_suppressed_goes_before_every_other_refusal() -> None:
    assert decided(REFUSED.about(), SUPPRESSED.about()).reason is SUPPRESSED


def test_suppressed_goes_before_nothing_where_it_is_only_observed() -> None:
    observed = SUPPRESSED.about().by("one", observed=True)

    assert decided(observed, DEFERRED.about()).reason is DEFERRED
    assert decided(observed).verdict is PASS


@pytest.mark.parametrize(
    "other",
    [
        HELD.about().by("two", observed=False),
        HELD.about("x@example.com").by("one", observed=False),
        HELD.about(found="r-2").by("one", observed=False),
    ],
    ids=["another policy's", "about another person", "of something else"],
)
def test_an_approval_lets_the_hold_that_it_names_pass_and_no_other(other: Finding) -> None:
    one = HELD.about(found="r-1").by("one", observed=False)
    again = HELD.about(found="r-1").by("one", observed=False)

    assert decided(again, approved=frozenset({one.mark})).verdict is PASS
    assert decided(again, other, approved=frozenset({one.mark})).strictest is other


@pytest.mark.parametrize("reason", [DEFERRED, REFUSED])
def test_an_approval_lets_nothing_but_holds_pass(reason: Reason) -> None:
    finding = reason.about().by("one", observed=False)

    assert decided(finding, approved=frozenset({finding.mark})).reason is reason


def test_the_retry_time_is_when_all_that_defers_has_passed() -> None:
    findings = [DEFERRED.about(until=hence(minutes=n)) for n in (1, 9, 5)]

    assert decided(*findings, DEFERRED.about()).retry_at == hence(minutes=9)


def test_only_what_defers_counts_for_the_retry_time() -> None:
    observed = DEFERRED.about(until=hence(hours=9)).by("one", observed=True)
    held = HELD.about(until=hence(hours=8))

    assert decided(observed, held, DEFERRED.about(until=hence(hours=1))).retry_at == hence(hours=1)


def test_there_is_no_retry_time_where_a_refusal_stands_in_the_way() -> None:
    assert decided(DEFERRED.about(until=hence(hours=1)), REFUSED.about()).retry_at is None


def test_there_is_no_retry_time_where_none_is_known() -> None:
    assert decided(DEFERRED.about()).retry_at is None


def test_a_decision_waits_where_nothing_refuses_but_what_will_pass() -> None:
    paused = Reason("paused", REFUSE, "7.1", "paused", "wait", waits=True)

    assert decided(paused.about(), DEFERRED.about(), HELD.about()).waits
    assert not decided(paused.about(), REFUSED.about()).waits
    assert not decided(DEFERRED.about()).waits
    assert not decided(paused.about().by("one", observed=True)).waits


def test_what_the_house_itself_says_is_known_by_its_slugs() -> None:
    assert [reason.slug for reason in CORE_REASONS] == ["policy_error", "store_unavailable", "idempotency_key_reused"]


def test_an_approval_holds_though_a_time_within_the_obstacle_has_moved() -> None:
    def held(hour: int) -> Finding:
        holder = {"agentId": "agent-b", "expiresAt": NOW.replace(hour=hour), "kind": "lease"}
        return HELD.about("pat@example.com", leaseHolder=holder).by("lease", observed=False)

    before, after = held(1), held(2)
    other = HELD.about("pat@example.com", leaseHolder={"agentId": "agent-c"}).by("lease", observed=False)

    assert before.mark == after.mark
    assert decided(after, approved=frozenset({before.mark})).verdict is PASS
    assert decided(other, approved=frozenset({before.mark})).verdict is HOLD
