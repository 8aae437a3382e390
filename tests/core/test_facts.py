"""Asks, their answers, and how these change when a mail is accepted."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core import facts as facts_module
from gateway.core.errors import UnaskedFactError
from gateway.core.facts import (
    Accepted,
    AgentAnswer,
    AgentAsk,
    Ask,
    ConflictsAsk,
    ConsensusAsk,
    ConsentAsk,
    Facts,
    Flight,
    FlightsAsk,
    KeyAsk,
    LastContactAsk,
    LeaseAnswer,
    LeaseAsk,
    MailboxAsk,
    Recent,
    RecentAsk,
    SuppressionAsk,
    ThreadAsk,
    UnknownsAsk,
    UsageAnswer,
    UsageAsk,
    View,
    name_of,
)
from gateway.core.mail import Kind, Moment, Submission
from tests.builders import NOW, PAT, a_content, a_mail, ago, answers, hence, the_usual

OTHER = "other@example.com"
FLIGHTS = FlightsAsk(PAT)


def accepted(mail: Submission, *, due: bool = True) -> Accepted:
    return Accepted(mail, due, NOW)


def a_flight(request: str = "r-1", since: datetime = NOW) -> Flight:
    return Flight(request, "agent-b", "Agent B", since, permitted=False, kind=Kind.OUTREACH)


# --- asks -------------------------------------------------------------------------------------------------------------

ASKS: list[tuple[Ask[Any], str]] = [
    (KeyAsk("key-1"), "key-1"),
    (MailboxAsk("mailbox-1"), "mailbox-1"),
    (AgentAsk("agent-a"), "agent-a"),
    (LeaseAsk(PAT), PAT),
    (ConflictsAsk("agent-a", PAT), PAT),
    (FlightsAsk(PAT), PAT),
    (LastContactAsk(PAT), PAT),
    (SuppressionAsk(PAT, "spring"), PAT),
    (ConsensusAsk("vote-1"), "vote-1"),
    (ConsentAsk(PAT), PAT),
    (UnknownsAsk(PAT), PAT),
    (RecentAsk(PAT, 60), PAT),
    (ThreadAsk("thread-1", 60), "thread-1"),
    (UsageAsk("tenant", "tenant-1", "day"), "tenant-1"),
]


@pytest.mark.parametrize(("ask", "subject"), ASKS)
def test_every_ask_names_its_subject_and_equals_its_like(ask: Ask[Any], subject: str) -> None:
    assert ask.subject == subject
    assert ask == replace(ask)
    assert hash(ask) == hash(replace(ask))


def test_the_list_above_is_complete() -> None:
    kinds = {kind for kind in vars(facts_module).values() if isinstance(kind, type) and issubclass(kind, Ask)}

    assert {type(ask) for ask, _ in ASKS} == kinds - {Ask}


def test_asks_of_two_kinds_about_one_subject_are_two_asks() -> None:
    assert len({LeaseAsk(PAT), FlightsAsk(PAT), LastContactAsk(PAT), UnknownsAsk(PAT), SuppressionAsk(PAT)}) == 5


def test_an_ask_without_a_subject_cannot_be_made_use_of() -> None:
    with pytest.raises(NotImplementedError):
        _ = Ask().subject


COUNTING = FlightsAsk | UsageAsk | RecentAsk | ThreadAsk


@pytest.mark.parametrize("ask", [ask for ask, _ in ASKS if not isinstance(ask, COUNTING)])
def test_accepted_mail_changes_only_flights_usage_and_what_has_set_out(ask: Ask[Any]) -> None:
    answer = the_usual(ask)

    assert ask.after(answer, accepted(a_mail())) is answer


# --- what has set out -------------------------------------------------------------------------------------------------

RECENT, THREAD = RecentAsk(PAT, 60), ThreadAsk("thread-1", 60)


def test_accepted_mail_has_set_out_at_once() -> None:
    mail = a_mail(thread="thread-1", content=a_content(sketch=b"like this"))

    (recent,) = RECENT.after((), accepted(mail))

    assert recent == Recent("r-own", NOW, "mailbox-1", Kind.OUTREACH, b"like this", "thread-1")
    assert THREAD.after((), accepted(mail)) == (("r-own", NOW),)


def test_what_a_mail_answers_is_a_message_rather_than_a_thread() -> None:
    mail = a_mail(thread="thread-1", content=a_content(in_reply_to="m-0@example.com"))

    assert RECENT.after((), accepted(mail))[0].answers == "m-0@example.com"


def test_mail_to_somebody_else_or_of_another_thread_has_not_set_out_here() -> None:
    elsewhere = accepted(a_mail(to=[OTHER], thread="thread-2"))

    assert RECENT.after((), elsewhere) == ()
    assert THREAD.after((), elsewhere) == ()


def test_waiting_mail_has_not_set_out() -> None:
    waiting = accepted(a_mail(thread="thread-1"), due=False)

    assert RECENT.after((), waiting) == ()
    assert THREAD.after((), waiting) == ()


def test_a_mail_sets_out_once_and_behind_those_before_it() -> None:
    older = Recent("r-0", ago(seconds=5), "mailbox-1", Kind.REPLY, b"", "")
    mail = accepted(a_mail(thread="thread-1"))

    recents, thread = RECENT.after((older,), mail), THREAD.after((("r-0", ago(seconds=5)),), mail)

    assert [recent.request for recent in recents] == ["r-0", "r-own"]
    assert RECENT.after(recents, mail) is recents
    assert [request for request, _ in thread] == ["r-0", "r-own"]
    assert THREAD.after(thread, mail) is thread


def test_a_mail_of_a_thread_advances_what_is_known_of_the_thread() -> None:
    facts = Facts(NOW, {THREAD: (), RECENT: ()})

    facts.advance(accepted(a_mail(to=[OTHER], thread="thread-1")))

    assert facts[THREAD] == (("r-own", NOW),)
    assert facts[RECENT] == ()


# --- flights ----------------------------------------------------------------------------------------------------------


def test_accepted_mail_is_in_flight_at_once() -> None:
    (flight,) = FLIGHTS.after((), accepted(a_mail()))

    assert flight == Flight("r-own", "agent-a", "", NOW, permitted=False, kind=Kind.OUTREACH)


def test_a_released_mail_is_in_flight_since_it_first_was() -> None:
    mail = a_mail(moment=Moment.RELEASE, since=ago(minutes=5))

    assert FLIGHTS.after((), accepted(mail))[0].since == ago(minutes=5)


@pytest.mark.parametrize(
    "waiting",
    [
        accepted(a_mail(), due=False),
        accepted(a_mail(kind=Kind.TRANSACTIONAL)),
        accepted(a_mail(to=[OTHER])),
        accepted(a_mail(internal=[PAT])),
    ],
    ids=["scheduled or held", "transactional", "to somebody else", "to the tenant's own"],
)
def test_mail_that_holds_no_contact_is_no_flight_to_it(waiting: Accepted) -> None:
    assert FLIGHTS.after((), waiting) == ()


def test_a_mail_is_in_flight_only_once() -> None:
    before = (a_flight("r-own"),)

    assert FLIGHTS.after(before, accepted(a_mail())) == before


def test_flights_are_in_the_order_of_their_age() -> None:
    before = (a_flight("r-1", ago(minutes=9)), a_flight("r-2", ago(minutes=1)))

    after = FLIGHTS.after(before, accepted(a_mail(since=ago(minutes=5))))

    assert [flight.request for flight in after] == ["r-1", "r-own", "r-2"]


def test_flights_of_one_age_are_in_the_order_of_their_ids() -> None:
    after = FLIGHTS.after((a_flight("r-1"), a_flight("r-z")), accepted(a_mail()))

    assert [flight.request for flight in after] == ["r-1", "r-own", "r-z"]


@pytest.mark.parametrize(
    ("request_id", "since", "minds"),
    [("r-1", None, True), ("r-1", NOW, True), ("r-1", ago(minutes=5), False), ("r-1", ago(minutes=9), False)],
)
def test_a_mail_minds_flights_that_are_older_than_its_own(request_id: str, since: datetime | None, minds: bool) -> None:
    assert a_flight(request_id, ago(minutes=5)).precedes(a_mail(since=since)) is minds


@pytest.mark.parametrize("since", [None, NOW])
def test_a_mail_does_not_mind_itself(since: datetime | None) -> None:
    assert not a_flight("r-own", ago(minutes=5)).precedes(a_mail(since=since))


# --- leases -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lease", "agent", "token", "taken"),
    [
        (LeaseAnswer(), "agent-a", 5, False),
        (LeaseAnswer(token=5, owner="agent-a"), "agent-a", 5, False),
        (LeaseAnswer(token=7, owner="agent-a", foreign=4), "agent-a", 5, False),
        (LeaseAnswer(token=7, owner="agent-a", foreign=6), "agent-a", 5, True),
        (LeaseAnswer(token=6, owner="agent-b", foreign=5), "agent-a", 5, True),
        (LeaseAnswer(token=5, owner="agent-b", foreign=4), "agent-a", 5, False),
        (LeaseAnswer(token=6, owner="agent-b"), None, 5, True),
    ],
)
def test_a_contact_is_taken_when_another_agent_acquires_it_later(
    lease: LeaseAnswer, agent: str | None, token: int, taken: bool
) -> None:
    assert lease.taken_since(agent, token) is taken


# --- usage ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "who", "used"),
    [
        ("agent", "agent-a", 5),
        ("agent", "agent-b", 3),
        ("mailbox", "mailbox-1", 5),
        ("mailbox", "agent-a", 3),
        ("tenant", "tenant-1", 5),
        ("tenant", "tenant-2", 3),
    ],
)
@pytest.mark.parametrize("due", [True, False])
def test_each_recipient_of_an_accepted_mail_is_a_unit_whether_it_waits_or_not(
    scope: str, who: str, used: int, due: bool
) -> None:
    mail = a_mail(to=[PAT, OTHER], internal=[OTHER])

    after = UsageAsk(scope, who, "day").after(UsageAnswer(3, hence(hours=1)), accepted(mail, due=due))

    assert after == UsageAnswer(used, hence(hours=1))


# --- facts and views --------------------------------------------------------------------------------------------------


def test_facts_answer_what_was_asked_and_nothing_else() -> None:
    facts = Facts(NOW, {AgentAsk("agent-a"): AgentAnswer("outreach")})

    assert facts[AgentAsk("agent-a")].name == "outreach"
    assert list(facts) == [AgentAsk("agent-a")]
    with pytest.raises(UnaskedFactError, match="AgentAsk"):
        _ = facts[AgentAsk("agent-b")]


def test_a_view_shows_only_what_its_policy_asked() -> None:
    mine, others = AgentAsk("agent-a"), AgentAsk("agent-b")
    view = View(Facts(NOW, {mine: AgentAnswer("one"), others: AgentAnswer("two")}), frozenset([mine]))

    assert view.now == NOW
    assert view[mine].name == "one"
    with pytest.raises(UnaskedFactError, match="AgentAsk"):
        _ = view[others]


def test_a_view_sees_facts_advance() -> None:
    facts = answers(asked=[FLIGHTS])
    view = View(facts, frozenset([FLIGHTS]))

    facts.advance(accepted(a_mail()))

    assert [flight.request for flight in view[FLIGHTS]] == ["r-own"]


PEOPLE = st.sampled_from([PAT, OTHER, "third@example.com"])
ANY_ASK: st.SearchStrategy[Ask[Any]] = st.one_of(
    st.builds(FlightsAsk, PEOPLE),
    st.builds(LeaseAsk, PEOPLE),
    st.builds(
        UsageAsk,
        st.sampled_from(["agent", "mailbox", "tenant"]),
        st.sampled_from(["agent-a", "agent-b", "key:key-1", "mailbox-1", "tenant-1"]),
        st.sampled_from(["hour", "day"]),
    ),
)


@given(
    asks=st.sets(ANY_ASK, max_size=12),
    agent=st.sampled_from(["agent-a", "agent-b", None]),
    people=st.lists(PEOPLE, min_size=1, unique=True),
    internal=st.lists(PEOPLE, unique=True),
    kind=st.sampled_from(Kind),
    due=st.booleans(),
)
def test_advancing_changes_every_answer_that_its_ask_would_change(
    asks: set[Ask[Any]], agent: str | None, people: list[str], internal: list[str], kind: Kind, due: bool
) -> None:
    facts = answers(asked=asks)
    taken = accepted(a_mail(to=people, internal=internal, agent=agent, kind=kind), due=due)
    expected = {ask: ask.after(facts[ask], taken) for ask in asks}

    facts.advance(taken)

    assert {ask: facts[ask] for ask in facts} == expected


# --- the sender's name ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mail", "given_answers", "name"),
    [
        (a_mail(), {AgentAsk("agent-a"): AgentAnswer("outreach")}, "outreach"),
        (a_mail(), {AgentAsk("agent-b"): AgentAnswer("support")}, ""),
        (a_mail(agent=None), {AgentAsk("agent-b"): AgentAnswer("support")}, ""),
    ],
    ids=["asked for", "not asked for", "no agent"],
)
def test_a_mail_is_known_by_its_agents_name_as_far_as_somebody_asked(
    mail: Submission, given_answers: dict[Any, Any], name: str
) -> None:
    assert name_of(answers(given_answers), mail) == name
