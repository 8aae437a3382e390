"""Why a send stands where it does, and what its author should do: by the last decision, or by what came since (SEMANTICS 4)."""

import pytest

from gateway.core.delivery import State
from gateway.core.record import DeliveryRecord
from gateway.core.status import LATER, WAIT, strictest
from gateway.core.verdict import Decision, Finding
from tests.builders import NOW, ago, hence
from tests.core.records import REASON, RULES, a_decision, a_delivery, a_record, decided, finding, told

# --- reasons of the last decision -------------------------------------------------------------------------------------


def test_a_refusal_is_told_with_the_words_of_its_reason() -> None:
    body = told(decided(State.BLOCKED, finding("suppressed", scope="tenant", reasonCode="complaint")))

    assert (body["status"], body["reason"]) == ("blocked", "suppressed")
    assert (body["detail"], body["nextAction"]) == ("the recipient is suppressed", "stop; it binds every agent")
    assert (body["scope"], body["reasonCode"]) == ("tenant", "complaint")
    assert not {"retryAt", "estimate"} & set(body)


@pytest.mark.parametrize(
    ("slugs", "reason"),
    [
        (["unknown_outstanding", "cooldown"], "cooldown"),
        (["cooldown", "recipient_not_allowed"], "recipient_not_allowed"),
        (["recipient_not_allowed", "suppressed"], "suppressed"),
        (["lease_conflict", "cooldown"], "lease_conflict"),
        (["lease_conflict", "suppressed", "message_too_large"], "suppressed"),
    ],
)
def test_the_strictest_finding_gives_the_reason(slugs: list[str], reason: str) -> None:
    record = decided(State.BLOCKED, *map(finding, slugs))

    assert told(record)["reason"] == reason
    assert [one["reason"] for one in told(record)["findings"]] == slugs


def test_what_time_heals_is_told_with_the_time_when_all_of_it_has_passed() -> None:
    body = told(
        decided(
            State.BLOCKED,
            finding("lease_conflict", until=hence(minutes=1), estimate=True),
            finding("cooldown", until=hence(minutes=9), cooldownExpiresAt=hence(minutes=9)),
        )
    )

    assert (body["retryAt"], body["cooldownExpiresAt"]) == ("2026-03-04T12:09:00Z", "2026-03-04T12:09:00Z")
    assert "estimate" not in body


def test_a_retry_time_that_depends_on_a_delivery_is_an_estimate() -> None:
    body = told(decided(State.BLOCKED, finding("lease_conflict", until=hence(minutes=1), estimate=True)))

    assert (body["retryAt"], body["estimate"]) == ("2026-03-04T12:01:00Z", True)


@pytest.mark.parametrize(
    "findings",
    [
        [finding("lease_conflict", estimate=True)],
        [finding("lease_conflict", until=hence(minutes=1), estimate=True), finding("suppressed")],
    ],
    ids=["no time is known", "a refusal stands in the way"],
)
def test_without_a_retry_time_there_is_no_estimate(findings: list[Finding]) -> None:
    assert not {"retryAt", "estimate"} & set(told(decided(State.BLOCKED, *findings)))


def test_what_is_only_observed_makes_no_retry_time_an_estimate() -> None:
    until = hence(minutes=1)
    observed = finding("lease_conflict", until=until, estimate=True, observed=True)

    assert "estimate" not in told(decided(State.BLOCKED, observed, finding("cooldown", until=until)))


def test_the_reasons_own_members_go_before_those_of_milder_findings() -> None:
    quota = finding("hourly_limit_exceeded", None, used=5, limit=5, resetsAt=hence(hours=1))
    size = finding("message_too_large", None, limit=1000, size=2000)

    body = told(decided(State.BLOCKED, quota, size))

    assert (body["reason"], body["limit"], body["size"]) == ("message_too_large", 1000, 2000)
    assert (body["used"], body["resetsAt"]) == (5, "2026-03-04T13:00:00Z")


def test_no_finding_takes_the_place_of_a_member_of_the_answer() -> None:
    odd = finding("suppressed", status="relayed", requestId="r-2", findings=[], rule="none", verdict="pass")

    body = told(decided(State.BLOCKED, odd))

    assert (body["status"], body["requestId"]) == ("blocked", "r-1")
    assert (body["findings"][0]["rule"], body["findings"][0]["verdict"]) == ("suppression", "refuse")


def test_held_mail_is_told_with_what_holds_it() -> None:
    body = told(decided(State.HELD, finding("unknown_outstanding", unknownRequestId="r-0")))

    assert (body["status"], body["reason"]) == ("pending_approval", "unknown_outstanding")
    assert body["nextAction"] == "a person decides; do not resend"
    assert body["unknownRequestId"] == "r-0"
    assert body["policyTrace"]["decision"] == {"allow": True, "reason": "unknown_outstanding"}


def test_mail_that_may_not_go_yet_is_told_why_and_that_it_goes_by_itself() -> None:
    conflict = finding("lease_conflict", until=hence(minutes=1), leaseHolder={"agentId": "agent-b"})

    body = told(decided(State.SCHEDULED, conflict))

    assert (body["status"], body["reason"], body["nextAction"]) == ("scheduled", "lease_conflict", WAIT)
    assert (body["retryAt"], body["leaseHolder"]) == ("2026-03-04T12:01:00Z", {"agentId": "agent-b"})


# --- reasons of what has happened since -------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", ["suppressed", "stale_fencing_token"])
def test_mail_that_was_stopped_after_it_was_accepted_is_told_what_stopped_it(slug: str) -> None:
    body = told(a_record(a_delivery(State.BLOCKED, slug, detail="451 to DOT", permitted_at=NOW)))

    assert (body["status"], body["reason"]) == ("blocked", slug)
    assert (body["detail"], body["nextAction"]) == LATER[slug]
    assert body["nextAction"] == REASON[slug].next


def test_what_else_may_have_stopped_a_mail_is_told_by_its_slug() -> None:
    body = told(a_record(a_delivery(State.BLOCKED, "some_rule")))

    assert (body["reason"], body["detail"], body["nextAction"]) == ("some_rule", "it was stopped", "stop")


def test_a_stop_goes_before_what_the_last_decision_said() -> None:
    waited = a_decision(finding("lease_conflict", until=hence(minutes=1), leaseHolder={"agentId": "agent-b"}))
    record = a_record(a_delivery(State.BLOCKED, "suppressed"), decision=waited)

    body = told(record)

    assert strictest(record) is None
    assert body["reason"] == "suppressed"
    assert not {"retryAt", "leaseHolder"} & set(body)


def test_of_several_stops_a_suppression_is_told_first() -> None:
    record = a_record(a_delivery(State.BLOCKED, "stale_fencing_token"), a_delivery(State.BLOCKED, "suppressed"))

    assert told(record)["reason"] == "suppressed"


def test_a_stop_of_one_recipient_is_no_reason_of_a_send_that_goes_to_others() -> None:
    body = told(a_record(a_delivery(State.BLOCKED, "suppressed"), a_delivery(State.RELAYED)))

    assert body["status"] == "relayed"
    assert not {"reason", "nextAction"} & set(body)
    assert [one.get("reason") for one in body["recipients"]] == ["suppressed", None]


def test_a_refusal_at_the_release_to_one_is_no_reason_of_a_send_that_has_reached_others() -> None:
    refused = a_decision(finding("suppressed", scope="tenant"))

    body = told(a_record(a_delivery(State.BLOCKED, "suppressed"), a_delivery(State.RELAYED), decision=refused))

    assert body["status"] == "relayed"
    assert not {"reason", "scope"} & set(body)


def test_mail_of_a_paused_mailbox_is_told_so() -> None:
    body = told(a_record(a_delivery(State.HELD, "mailbox_paused")))

    assert (body["status"], body["reason"]) == ("pending_approval", "mailbox_paused")
    assert body["detail"] == REASON["mailbox_paused"].text
    assert body["nextAction"] == "a person decides; do not resend"


def test_mail_whose_release_met_a_pause_is_told_the_same() -> None:
    refused = Decision((REASON["mailbox_paused"].about().by("lease", observed=False),), RULES, NOW)

    body = told(a_record(a_delivery(State.HELD, "mailbox_paused"), decision=refused))

    assert (body["status"], body["reason"]) == ("pending_approval", "mailbox_paused")
    assert body["nextAction"] == "a person decides; do not resend"


@pytest.mark.parametrize("state", [State.CANCELLED, State.EXPIRED, State.RELAYED, State.BOUNCED])
def test_a_hold_is_forgotten_when_the_mail_has_come_to_its_end(state: State) -> None:
    held = a_decision(finding("unknown_outstanding", unknownRequestId="r-0"))

    body = told(a_record(a_delivery(state, "rejected"), decision=held))

    assert not {"reason", "detail", "nextAction", "unknownRequestId"} & set(body)


@pytest.mark.parametrize(
    ("delivery", "following"),
    [
        (a_delivery(State.QUEUED), None),
        (a_delivery(State.CLAIMED), None),
        (a_delivery(State.QUEUED, attempts=1), WAIT),
        (a_delivery(State.UNKNOWN, "unknown", attempts=1), "do not resend; ask or resolve"),
        (a_delivery(State.HELD), "a person decides; do not resend"),
        (a_delivery(State.BLOCKED), None),
    ],
)
def test_mail_on_its_way_is_told_with_what_its_author_should_do(
    delivery: DeliveryRecord, following: str | None
) -> None:
    body = told(a_record(delivery))

    assert body.get("nextAction") == following
    assert "reason" not in body


def test_deferred_mail_is_told_with_its_next_attempt() -> None:
    later = a_delivery(State.QUEUED, attempts=2, due_at=hence(minutes=9))
    sooner = a_delivery(State.QUEUED, attempts=1, due_at=hence(minutes=5))
    first = a_delivery(State.QUEUED, due_at=ago(minutes=1))

    assert told(a_record(later, sooner))["nextAttemptAt"] == "2026-03-04T12:05:00Z"
    assert "nextAttemptAt" not in told(a_record(first))
    assert "nextAttemptAt" not in told(a_record(a_delivery(State.QUEUED, attempts=1)))
