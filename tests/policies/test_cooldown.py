"""One mail to a person, then a pause for all."""

from dataclasses import replace
from datetime import datetime

import pytest

from gateway.core.facts import Flight, FlightsAsk, LastContactAnswer, LastContactAsk, MailboxAsk
from gateway.core.mail import Kind, Moment
from policies.cooldown import COOLDOWN, Cooldown
from tests.builders import NOW, OWN_MAILBOX, PAT, a_mail, ago, asked, found, hence

LAST, FLIGHTS, MAILBOX = LastContactAsk(PAT), FlightsAsk(PAT), MailboxAsk("mailbox-1")
RELEASE = Moment.RELEASE


def a_flight(since: datetime = NOW, *, request: str = "r-1", actor: str = "agent-b") -> Flight:
    return Flight(request, actor, actor, since, permitted=False, kind=Kind.OUTREACH)


def test_a_person_who_was_never_reached_may_be() -> None:
    assert found(Cooldown(), a_mail()) == ()


def test_a_second_mail_within_the_cooldown_has_to_wait_for_its_end() -> None:
    (finding,) = found(Cooldown(), a_mail(), {LAST: LastContactAnswer(ago(minutes=4), "r-1")})

    assert finding.reason is COOLDOWN
    assert finding.recipient == PAT
    assert finding.until == hence(minutes=6)
    assert not finding.estimate
    assert finding.extra == {"cooldownExpiresAt": hence(minutes=6)}


def test_the_cooldown_ends_on_the_second() -> None:
    policy = Cooldown(seconds=60)

    assert len(found(policy, a_mail(), {LAST: LastContactAnswer(ago(seconds=59), "r-1")})) == 1
    assert found(policy, a_mail(), {LAST: LastContactAnswer(ago(seconds=60), "r-1")}) == ()


def test_mail_in_flight_counts_as_if_it_arrived_now() -> None:
    (finding,) = found(Cooldown(), a_mail(), {FLIGHTS: (a_flight(ago(hours=2)),)})

    assert finding.until == hence(minutes=10)
    assert finding.estimate
    assert finding.extra == {"cooldownExpiresAt": hence(minutes=10), "reserved": True}


def test_ones_own_earlier_mail_in_flight_counts_too() -> None:
    assert len(found(Cooldown(), a_mail(), {FLIGHTS: (a_flight(actor="agent-a"),)})) == 1


def test_mail_in_flight_outweighs_an_older_contact() -> None:
    given = {LAST: LastContactAnswer(ago(minutes=4), "r-0"), FLIGHTS: (a_flight(),)}

    (finding,) = found(Cooldown(), a_mail(), given)

    assert finding.extra["reserved"] is True


@pytest.mark.parametrize(("kind", "count"), [(Kind.OUTREACH, 1), (Kind.REPLY, 0), (Kind.TRANSACTIONAL, 0)])
def test_only_outreach_has_to_wait(kind: Kind, count: int) -> None:
    mail = a_mail(kind=kind)

    given = {LAST: LastContactAnswer(ago(minutes=4), "r-1")} if count else {}

    assert len(found(Cooldown(), mail, given)) == count
    assert bool(asked(Cooldown(), mail)) is bool(count)


def test_without_a_cooldown_nothing_is_found() -> None:
    given = {LAST: LastContactAnswer(ago(seconds=1), "r-1"), FLIGHTS: (a_flight(),)}

    assert found(Cooldown(seconds=0), a_mail(), given) == ()


@pytest.mark.parametrize("usual", [0, 60, 86_400])
@pytest.mark.parametrize(("own", "count"), [(None, None), (0, 0), (239, 0), (240, 0), (241, 1)])
def test_a_value_of_the_mailboxs_own_wins_over_the_usual_one(usual: int, own: int | None, count: int | None) -> None:
    given = {LAST: LastContactAnswer(ago(minutes=4), "r-1"), MAILBOX: replace(OWN_MAILBOX, cooldown=own)}

    findings = found(Cooldown(seconds=usual), a_mail(), given)

    assert len(findings) == (usual > 240 if count is None else count)
    if own is not None and findings:
        assert findings[0].until == hence(seconds=1)


def test_the_tenants_own_people_have_no_cooldown() -> None:
    assert asked(Cooldown(), a_mail(internal=[PAT])) == set()


def test_each_recipient_is_looked_at() -> None:
    mail = a_mail(to=["a@example.com"], cc=["b@example.com"], bcc=["c@example.com"])

    given = {LastContactAsk(f"{name}@example.com"): LastContactAnswer(ago(minutes=1), "r-1") for name in "ac"}

    assert [finding.recipient for finding in found(Cooldown(), mail, given)] == ["a@example.com", "c@example.com"]


@pytest.mark.parametrize(("not_before", "count"), [(ago(minutes=1), 1), (hence(minutes=5), 1), (hence(minutes=6), 0)])
def test_scheduled_mail_is_measured_against_the_time_when_it_would_leave(not_before: datetime, count: int) -> None:
    given = {LAST: LastContactAnswer(ago(minutes=4), "r-1")}

    assert len(found(Cooldown(), a_mail(not_before=not_before), given)) == count


def test_mail_scheduled_after_the_end_of_what_is_in_flight_is_taken() -> None:
    assert found(Cooldown(), a_mail(not_before=hence(minutes=10)), {FLIGHTS: (a_flight(),)}) == ()


def test_at_release_its_own_stamp_does_not_hold_it() -> None:
    mail = a_mail(moment=RELEASE, since=ago(minutes=5))

    assert found(Cooldown(), mail, {LAST: LastContactAnswer(ago(minutes=4), "r-own")}) == ()
    assert len(found(Cooldown(), mail, {LAST: LastContactAnswer(ago(minutes=4), "r-1")})) == 1


def test_at_release_a_flight_before_its_own_holds_it_whatever_its_own_stamp_says() -> None:
    mail = a_mail(moment=RELEASE, since=ago(minutes=5))
    given = {LAST: LastContactAnswer(ago(minutes=4), "r-own"), FLIGHTS: (a_flight(ago(minutes=6)),)}

    (finding,) = found(Cooldown(), mail, given)

    assert finding.extra["reserved"] is True


@pytest.mark.parametrize(
    ("since", "count"), [(None, 1), (ago(seconds=5), 1), (ago(seconds=10), 0), (ago(seconds=20), 0)]
)
def test_at_release_only_flights_before_its_own_count(since: datetime | None, count: int) -> None:
    mail = a_mail(moment=RELEASE, since=since)

    assert len(found(Cooldown(), mail, {FLIGHTS: (a_flight(ago(seconds=10)),)})) == count


def test_at_release_its_own_flight_does_not_count() -> None:
    own = a_flight(ago(minutes=1), request="r-own", actor="agent-a")

    assert found(Cooldown(), a_mail(moment=RELEASE), {FLIGHTS: (own,)}) == ()
