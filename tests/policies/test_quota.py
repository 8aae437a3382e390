"""So many recipients and no more."""

from datetime import datetime

import pytest

from gateway.core.facts import UsageAnswer, UsageAsk
from gateway.core.mail import Moment
from policies.quota import DAILY, HOURLY, MONTHLY, Quota
from tests.builders import PAT, a_mail, asked, found, hence

TWO = ["a@example.com", "b@example.com"]


def used(count: int, resets_at: datetime | None = None) -> UsageAnswer:
    return UsageAnswer(count, resets_at or hence(minutes=20))


def test_without_limits_nothing_is_asked() -> None:
    assert asked(Quota(), a_mail()) == set()
    assert found(Quota(), a_mail()) == ()


def test_all_that_remains_may_be_used_and_not_one_more() -> None:
    policy, ask = Quota(agent_hour=5), UsageAsk("agent", "agent-a", "hour")

    assert found(policy, a_mail(to=TWO), {ask: used(3)}) == ()
    (finding,) = found(policy, a_mail(to=TWO), {ask: used(4)})
    assert finding.reason is HOURLY
    assert finding.recipient is None
    assert finding.until == hence(minutes=20)
    assert finding.extra == {
        "limitOf": "agent",
        "used": 4,
        "limit": 5,
        "remaining": 1,
        "resetsAt": hence(minutes=20),
    }


@pytest.mark.parametrize(
    ("limit", "ask", "reason"),
    [
        ("agent_hour", UsageAsk("agent", "agent-a", "hour"), HOURLY),
        ("agent_day", UsageAsk("agent", "agent-a", "day"), DAILY),
        ("agent_month", UsageAsk("agent", "agent-a", "month"), MONTHLY),
        ("mailbox_hour", UsageAsk("mailbox", "mailbox-1", "hour"), HOURLY),
        ("mailbox_day", UsageAsk("mailbox", "mailbox-1", "day"), DAILY),
        ("mailbox_month", UsageAsk("mailbox", "mailbox-1", "month"), MONTHLY),
        ("tenant_hour", UsageAsk("tenant", "tenant-1", "hour"), HOURLY),
        ("tenant_day", UsageAsk("tenant", "tenant-1", "day"), DAILY),
        ("tenant_month", UsageAsk("tenant", "tenant-1", "month"), MONTHLY),
    ],
)
def test_each_limit_has_its_counter_and_its_reason(limit: str, ask: UsageAsk, reason: object) -> None:
    policy = Quota(**{limit: 1})

    assert asked(policy, a_mail()) == {ask}
    (finding,) = found(policy, a_mail(), {ask: used(1)})
    assert finding.reason is reason
    assert finding.extra["limitOf"] == ask.scope


def test_a_key_without_an_agent_has_a_counter_of_its_own() -> None:
    assert asked(Quota(agent_hour=1), a_mail(agent=None)) == {UsageAsk("agent", "key:key-1", "hour")}


def test_the_tenants_own_people_use_units_too() -> None:
    ask = UsageAsk("tenant", "tenant-1", "day")

    assert len(found(Quota(tenant_day=1), a_mail(to=TWO, internal=TWO), {ask: used(0)})) == 1


def test_a_mail_that_no_window_has_room_for_is_given_no_time_to_come_back() -> None:
    (finding,) = found(Quota(agent_hour=1), a_mail(to=TWO))

    assert finding.until is None
    assert finding.extra["remaining"] == 1


def test_nothing_remains_of_a_limit_that_was_lowered() -> None:
    (finding,) = found(Quota(agent_hour=1), a_mail(), {UsageAsk("agent", "agent-a", "hour"): used(9)})

    assert finding.extra["remaining"] == 0


def test_every_limit_that_is_reached_is_named() -> None:
    policy = Quota(agent_hour=1, mailbox_day=1, tenant_month=9)
    given = {UsageAsk("agent", "agent-a", "hour"): used(1), UsageAsk("mailbox", "mailbox-1", "day"): used(1)}

    assert [finding.reason for finding in found(policy, a_mail(to=[PAT]), given)] == [HOURLY, DAILY]


def test_it_is_asked_at_acceptance_only() -> None:
    assert asked(Quota(agent_hour=1), a_mail(moment=Moment.RELEASE)) == set()
