"""Whose contact it is: leases, fencing tokens, mail in flight; at acceptance and at release."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from gateway.core.facts import ConflictsAsk, Flight, FlightsAsk, LeaseAnswer, LeaseAsk, MailboxAsk
from gateway.core.mail import Kind, Moment, Submission
from gateway.core.verdict import Finding
from policies.lease import CONFLICT, ESCALATED, EXPIRED, REQUIRED, STALE, Lease
from tests.builders import NOW, OWN_MAILBOX, PAT, Given, a_mail, ago, asked, found, hence

LEASE, FLIGHTS, MAILBOX = LeaseAsk(PAT), FlightsAsk(PAT), MailboxAsk("mailbox-1")
RELEASE = Moment.RELEASE


def held_by(agent: str, token: int = 7, foreign: int = 0) -> LeaseAnswer:
    """A lease that lives for ten more minutes."""
    return LeaseAnswer(agent, agent.title(), token, hence(minutes=10), owner=agent, foreign=foreign)


def held_by_document(agent: str) -> dict[str, Any]:
    """What is told of that holder."""
    return {"agentId": agent, "agentName": agent.title(), "expiresAt": hence(minutes=10), "kind": "lease"}


def ended(owner: str, token: int = 7, foreign: int = 0) -> LeaseAnswer:
    """A contact that nobody holds any more."""
    return LeaseAnswer(token=token, owner=owner, foreign=foreign)


def a_flight(actor: str = "agent-b", since: datetime = NOW, *, request: str = "r-1", permitted: bool = False) -> Flight:
    return Flight(request, actor, actor.title(), since, permitted, Kind.OUTREACH)


def sole(mail: Submission, given: Given, policy: Lease | None = None) -> Finding:
    """The only finding."""
    (finding,) = found(policy or Lease(), mail, given)
    assert finding.recipient == PAT
    return finding


def reasons(mail: Submission, given: Given, policy: Lease | None = None) -> list[str]:
    return [finding.reason.slug for finding in found(policy or Lease(), mail, given)]


def with_token(token: int, **changes: Any) -> Submission:
    return a_mail(tokens={PAT: token}, **changes)


# --- leases at acceptance ---------------------------------------------------------------------------------------------


def test_a_contact_that_nobody_holds_is_free() -> None:
    assert reasons(a_mail(), {}) == []
    assert reasons(a_mail(), {LEASE: ended("agent-b")}) == []


def test_another_agents_live_lease_keeps_the_mail_away_until_it_ends() -> None:
    finding = sole(a_mail(), {LEASE: held_by("agent-b")})

    assert finding.reason is CONFLICT
    assert finding.until == hence(minutes=10)
    assert not finding.estimate
    assert finding.extra == {"leaseHolder": held_by_document("agent-b")}


def test_ones_own_lease_does_not_stand_in_the_way() -> None:
    assert reasons(a_mail(), {LEASE: held_by("agent-a")}) == []


def test_a_key_without_an_agent_is_another_to_every_holder() -> None:
    assert reasons(a_mail(agent=None), {LEASE: held_by("agent-b")}) == ["lease_conflict"]


@pytest.mark.parametrize("kind", [Kind.OUTREACH, Kind.REPLY])
def test_replies_are_held_like_outreach(kind: Kind) -> None:
    assert reasons(a_mail(kind=kind), {LEASE: held_by("agent-b")}) == ["lease_conflict"]


def test_transactional_mail_asks_nothing() -> None:
    assert asked(Lease(), with_token(1, kind=Kind.TRANSACTIONAL)) == set()
    assert reasons(with_token(1, kind=Kind.TRANSACTIONAL), {}) == []


def test_the_tenants_own_people_are_nobodys_contact() -> None:
    mail = a_mail(to=["boss@example.com"], internal=["boss@example.com"])

    assert asked(Lease(), mail) == {MAILBOX}
    assert reasons(mail, {}) == []


def test_each_recipient_is_looked_at_and_named() -> None:
    mail = a_mail(to=["a@example.com"], cc=["b@example.com"], bcc=["c@example.com"])

    findings = found(Lease(), mail, {LeaseAsk(f"{name}@example.com"): held_by("agent-b") for name in "abc"})

    assert [finding.recipient for finding in findings] == ["a@example.com", "b@example.com", "c@example.com"]


# --- fencing tokens at acceptance -------------------------------------------------------------------------------------


def test_the_token_of_ones_own_live_lease_sends() -> None:
    assert reasons(with_token(7), {LEASE: held_by("agent-a")}) == []


def test_a_lower_token_is_stale_and_the_holder_is_named() -> None:
    finding = sole(with_token(6), {LEASE: held_by("agent-b")})

    assert finding.reason is STALE
    assert finding.until is None
    assert finding.extra["leaseHolder"] == {
        "agentId": "agent-b",
        "agentName": "Agent-B",
        "expiresAt": hence(minutes=10),
        "kind": "lease",
    }


def test_a_lower_token_is_stale_under_ones_own_newer_lease_too() -> None:
    assert sole(with_token(6), {LEASE: held_by("agent-a")}).reason is STALE


def test_a_lower_token_is_stale_where_nobody_holds_the_contact() -> None:
    finding = sole(with_token(6), {LEASE: ended("agent-b")})

    assert finding.reason is STALE
    assert finding.extra == {}


def test_the_newest_token_of_a_lease_that_ended_has_to_be_acquired_again() -> None:
    assert sole(with_token(7), {LEASE: ended("agent-a")}).reason is EXPIRED


@pytest.mark.parametrize("lease", [LeaseAnswer(), held_by("agent-a"), held_by("agent-b")])
def test_a_token_that_was_never_given_sends_nothing(lease: LeaseAnswer) -> None:
    assert sole(with_token(8), {LEASE: lease}).reason is EXPIRED


def test_another_agents_token_does_not_open_its_contact() -> None:
    finding = sole(with_token(7), {LEASE: held_by("agent-b")})

    assert finding.reason is CONFLICT
    assert finding.until == hence(minutes=10)


def test_a_token_counts_for_the_contact_that_it_was_given_for() -> None:
    mail = a_mail(tokens={"other@example.com": 1})

    assert reasons(mail, {LEASE: held_by("agent-a")}) == []


# --- what a mailbox demands -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("demands", "lease", "token", "slugs"),
    [
        ("", LeaseAnswer(), None, []),
        ("lease", LeaseAnswer(), None, ["lease_required"]),
        ("lease", held_by("agent-a"), None, []),
        ("lease", held_by("agent-b"), None, ["lease_conflict"]),
        ("lease", held_by("agent-a"), 7, []),
        ("token", LeaseAnswer(), None, ["lease_required"]),
        ("token", held_by("agent-a"), None, ["lease_required"]),
        ("token", held_by("agent-a"), 7, []),
        ("both", held_by("agent-a"), None, ["lease_required"]),
        ("both", held_by("agent-a"), 7, []),
        ("a word of tomorrow", held_by("agent-a"), None, ["lease_required"]),
    ],
)
def test_a_mailbox_may_demand_a_lease_or_a_token(
    demands: str, lease: LeaseAnswer, token: int | None, slugs: list[str]
) -> None:
    mail = a_mail() if token is None else with_token(token)

    assert reasons(mail, {LEASE: lease, MAILBOX: replace(OWN_MAILBOX, demands=demands)}) == slugs


def test_a_demand_names_the_recipient() -> None:
    assert sole(a_mail(), {MAILBOX: replace(OWN_MAILBOX, demands="lease")}).reason is REQUIRED


# --- leases and tokens at release -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lease", "slugs"),
    [
        (ended("agent-a", 7), []),  # its own lease has ended
        (LeaseAnswer(), []),
        (held_by("agent-a", 9), []),  # its own lease rose
        (held_by("agent-b", 8, foreign=7), ["stale_fencing_token"]),
        (ended("agent-b", 8, foreign=7), ["stale_fencing_token"]),
        (held_by("agent-a", 9, foreign=8), ["stale_fencing_token"]),  # another had it in between
        (held_by("agent-a", 9, foreign=6), []),  # another had it before
    ],
)
def test_at_release_a_token_is_stale_only_if_another_agent_has_acquired_since(
    lease: LeaseAnswer, slugs: list[str]
) -> None:
    assert reasons(with_token(7, moment=RELEASE), {LEASE: lease}) == slugs


def test_at_release_mail_without_a_token_waits_while_anothers_lease_lives() -> None:
    finding = sole(a_mail(moment=RELEASE), {LEASE: held_by("agent-b")})

    assert finding.reason is CONFLICT
    assert finding.until == hence(minutes=10)


@pytest.mark.parametrize("lease", [held_by("agent-a"), ended("agent-b"), LeaseAnswer()])
def test_at_release_mail_without_a_token_goes_where_no_other_lease_lives(lease: LeaseAnswer) -> None:
    assert reasons(a_mail(moment=RELEASE), {LEASE: lease}) == []


def test_at_release_the_mailbox_demands_nothing() -> None:
    assert asked(Lease(), a_mail(moment=RELEASE)) == {LEASE, FLIGHTS}


# --- mail in flight ---------------------------------------------------------------------------------------------------


def test_anothers_mail_in_flight_keeps_the_contact_closed() -> None:
    finding = sole(a_mail(), {FLIGHTS: (a_flight(since=ago(seconds=10)),)})

    assert finding.reason is CONFLICT
    assert finding.until == hence(seconds=60)
    assert finding.estimate
    holder = {"agentId": "agent-b", "agentName": "Agent-B", "kind": "send", "requestId": "r-1"}
    assert finding.extra == {"leaseHolder": {**holder, "expiresAt": hence(minutes=59, seconds=50)}}


def test_mail_in_flight_does_not_close_the_contact_to_its_own_agent() -> None:
    assert reasons(a_mail(), {FLIGHTS: (a_flight("agent-a"),)}) == []


def test_keys_without_agents_are_told_apart() -> None:
    mine, other = a_flight("key:key-1"), a_flight("key:key-2")

    assert reasons(a_mail(agent=None), {FLIGHTS: (mine,)}) == []
    assert reasons(a_mail(agent=None), {FLIGHTS: (other,)}) == ["lease_conflict"]


@pytest.mark.parametrize(
    ("age", "permitted", "slugs"),
    [(599, False, ["lease_conflict"]), (600, False, []), (600, True, ["lease_conflict"]), (6000, False, [])],
)
def test_a_flight_closes_the_contact_for_its_longest_time_or_past_its_permit(
    age: int, permitted: bool, slugs: list[str]
) -> None:
    flight = a_flight(since=ago(seconds=age), permitted=permitted)

    assert reasons(a_mail(), {FLIGHTS: (flight,)}, Lease(flight_max=600)) == slugs


def test_an_old_flight_past_its_permit_is_expected_to_end_soon() -> None:
    finding = sole(a_mail(), {FLIGHTS: (a_flight(since=ago(hours=5), permitted=True),)})

    assert finding.until == hence(seconds=60)
    holder = finding.extra["leaseHolder"]
    assert isinstance(holder, Mapping)
    assert holder["expiresAt"] == hence(seconds=60)


def test_one_of_several_flights_is_named() -> None:
    flights = (
        a_flight("agent-a", request="r-1"),
        a_flight("agent-b", request="r-2"),
        a_flight("agent-c", request="r-3"),
    )

    holder = sole(a_mail(), {FLIGHTS: flights}).extra["leaseHolder"]

    assert isinstance(holder, Mapping)
    assert holder["requestId"] == "r-2"


def test_lease_and_flight_are_both_named() -> None:
    findings = found(Lease(), a_mail(), {LEASE: held_by("agent-b"), FLIGHTS: (a_flight("agent-c"),)})

    assert [finding.estimate for finding in findings] == [False, True]


def test_at_release_mail_does_not_wait_for_itself() -> None:
    own = a_flight("agent-b", since=ago(minutes=1), request="r-own")

    assert reasons(a_mail(moment=RELEASE), {FLIGHTS: (own,)}) == []


@pytest.mark.parametrize(
    ("since", "slugs"),
    [(None, ["lease_conflict"]), (ago(seconds=5), ["lease_conflict"]), (ago(seconds=10), []), (ago(seconds=20), [])],
)
def test_at_release_only_older_flights_stand_in_the_way(since: datetime | None, slugs: list[str]) -> None:
    flight = a_flight(since=ago(seconds=10))

    assert reasons(a_mail(moment=RELEASE, since=since), {FLIGHTS: (flight,)}) == slugs


# --- the same conflict again and again ----------------------------------------------------------------------------------

THREAD = ConflictsAsk("agent-a", "thread-1")
BEFORE = ConflictsAsk("agent-a", PAT)


def test_the_third_send_that_meets_anothers_lease_is_held_for_a_person() -> None:
    once = reasons(a_mail(), {LEASE: held_by("agent-b"), BEFORE: frozenset({"r-1"})})
    finding = sole(a_mail(), {LEASE: held_by("agent-b"), BEFORE: frozenset({"r-1", "r-2"})})

    assert once == ["lease_conflict"]
    assert finding.reason is ESCALATED
    assert finding.until is None
    assert finding.extra["leaseHolder"] == held_by_document("agent-b")
    assert finding.extra["windowSeconds"] == 3600
    assert reasons(a_mail(), {LEASE: held_by("agent-b"), BEFORE: frozenset({"r-1", "r-2", "r-3"})}) == [
        "lease_conflict"
    ]


def test_a_thread_is_a_matter_too() -> None:
    given: Given = {LEASE: held_by("agent-b"), THREAD: frozenset({"r-1", "r-2"})}

    assert reasons(a_mail(thread="thread-1"), given) == ["conflict_escalated"]


def test_repeats_of_one_key_are_one() -> None:
    assert reasons(a_mail(), {LEASE: held_by("agent-b"), BEFORE: frozenset({"r-own", "r-1"})}) == ["lease_conflict"]


def test_what_is_in_flight_is_no_conflict_of_that_kind() -> None:
    given: Given = {FLIGHTS: (a_flight(),), BEFORE: frozenset({"r-1", "r-2"})}

    assert reasons(a_mail(), given) == ["lease_conflict"]


def test_where_nothing_stands_in_the_way_earlier_conflicts_count_for_nothing() -> None:
    assert reasons(a_mail(), {BEFORE: frozenset({"r-1", "r-2"})}) == []
    assert reasons(with_token(6), {LEASE: held_by("agent-b"), BEFORE: frozenset({"r-1", "r-2"})}) == [
        "stale_fencing_token"
    ]


def test_how_often_is_an_option_and_at_a_release_nobody_asks() -> None:
    four = Lease(escalate_after=4)

    assert reasons(a_mail(), {LEASE: held_by("agent-b"), BEFORE: frozenset("abc")}, four) == ["lease_conflict"]
    assert reasons(a_mail(), {LEASE: held_by("agent-b"), BEFORE: frozenset("abcd")}, four) == ["conflict_escalated"]
    assert BEFORE not in asked(Lease(escalate_after=0), a_mail())
    assert BEFORE not in asked(Lease(), a_mail(moment=RELEASE))
