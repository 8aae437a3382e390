"""The judge: which rules are asked, what a broken one means, and laws 2, 3 and 4 on pure facts."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.consensus import Status
from gateway.core.facts import (
    Accepted,
    AgentAnswer,
    AgentAsk,
    Answers,
    Ask,
    ConsensusAnswer,
    ConsentAnswer,
    Facts,
    Flight,
    FlightsAsk,
    KeyAnswer,
    LastContactAnswer,
    LeaseAnswer,
    MailboxAnswer,
    SuppressionAnswer,
    UsageAnswer,
    UsageAsk,
    name_of,
)
from gateway.core.judge import ALWAYS, AT_ACCEPTANCE, Brief, Rule, brief, due, for_tenant, judge, judge_all
from gateway.core.mail import Kind, Moment, Submission
from gateway.core.verdict import DEFER, HOLD, POLICY_ERROR, REFUSE, Decision, Finding, Mode, Reason
from policies import rules
from tests.builders import NOW, OWN, a_content, a_mail, ago, answers, hence

REFUSED = Reason("refused", REFUSE, "7.1", "no", "stop")
DEFERRED = Reason("deferred", DEFER, "7.1", "not now", "wait")
HELD = Reason("held", HOLD, "0.0", "a person decides", "wait")
AGENT = AgentAsk("agent-a")
ALLOWED = st.sampled_from([None, None, frozenset(["*"]), frozenset(["example.com"])])


@dataclass(frozen=True, slots=True)
class Says:
    """A policy that finds what it is told to find."""

    when: ClassVar[frozenset[Moment]] = ALWAYS

    reasons: tuple[Reason, ...] = ()

    def asks(self, mail: Submission) -> Iterable[Ask[Any]]:
        return [AGENT]

    def judge(self, mail: Submission, facts: Answers) -> Iterable[Finding]:
        assert facts[AGENT].name
        return [reason.about() for reason in self.reasons]


@dataclass(frozen=True, slots=True)
class AtTheDoor(Says):
    """The same, asked at acceptance only."""

    when: ClassVar[frozenset[Moment]] = AT_ACCEPTANCE


def decided(mail: Submission, *table: Rule, approved: frozenset[str] = frozenset()) -> Decision:
    case = brief(mail, table)
    return judge(case, table, answers(asked=case.questions), approved)


# --- rules ------------------------------------------------------------------------------------------------------------


def test_findings_are_listed_in_table_order_and_signed() -> None:
    decision = decided(
        a_mail(), Rule("one", Says((DEFERRED, REFUSED))), Rule("two", Says()), Rule("three", Says((HELD,)))
    )

    assert [(f.policy, f.reason) for f in decision.findings] == [("one", DEFERRED), ("one", REFUSED), ("three", HELD)]
    assert decision.rules == ("one", "two", "three")
    assert decision.at == NOW


def test_all_rules_are_asked_whatever_the_first_one_says() -> None:
    decision = decided(a_mail(), Rule("one", Says((REFUSED,))), Rule("two", Says((REFUSED,))))

    assert [f.policy for f in decision.findings] == ["one", "two"]


def test_an_observed_rule_is_listed_and_changes_nothing() -> None:
    decision = decided(a_mail(), Rule("one", Says((REFUSED,)), Mode.OBSERVE))

    assert [f.observed for f in decision.findings] == [True]
    assert decision.allow
    assert decision.reason is None


def test_a_rule_that_is_off_is_not_asked() -> None:
    decision = decided(a_mail(), Rule("one", Says((REFUSED,)), Mode.OFF))

    assert decision.rules == ()
    assert decision.findings == ()


def test_a_rule_is_asked_only_at_its_moments() -> None:
    at_the_door, always = Rule("one", AtTheDoor((REFUSED,))), Rule("two", Says())

    assert decided(a_mail(), at_the_door, always).rules == ("one", "two")
    assert decided(a_mail(moment=Moment.RELEASE), at_the_door, always).rules == ("two",)


@pytest.mark.parametrize(
    ("applies_to", "concerned"),
    [((), True), (("outreach",), True), (("reply",), False), (("mailbox-1",), True), (("reply", "mailbox-1"), True)],
)
def test_a_rule_applies_to_the_kinds_and_mailboxes_it_names(applies_to: tuple[str, ...], concerned: bool) -> None:
    assert Rule("one", Says(), applies_to=frozenset(applies_to)).concerns(a_mail()) is concerned


@pytest.mark.parametrize(
    ("overridable", "override", "concerned"),
    [(True, None, True), (True, "a reason", False), (False, None, True), (False, "a reason", True)],
)
def test_an_operators_word_silences_only_what_it_may(overridable: bool, override: str | None, concerned: bool) -> None:
    assert Rule("one", Says(), overridable=overridable).concerns(a_mail(override=override)) is concerned


def test_an_approval_goes_into_the_decision() -> None:
    approved = frozenset({HELD.about().by("one", observed=False).mark})

    decision = decided(a_mail(), Rule("one", Says((HELD,))), approved=approved)

    assert decision.approved == approved
    assert decision.reason is None


def test_the_questions_of_all_rules_are_collected_once() -> None:
    case = brief(a_mail(), [Rule("one", Says()), Rule("two", Says())])

    assert case.questions == {AGENT}
    assert case.asks == {"one": {AGENT}, "two": {AGENT}}


# --- mail that is due -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("not_before", "reasons", "is_due"),
    [
        (None, (), True),
        (ago(seconds=1), (), True),
        (NOW, (), True),
        (hence(seconds=1), (), False),
        (None, (HELD,), False),
        (None, (DEFERRED,), False),
    ],
)
def test_mail_is_due_if_it_passed_and_its_time_has_come(
    not_before: datetime | None, reasons: tuple[Reason, ...], is_due: bool
) -> None:
    mail = a_mail(not_before=not_before)

    assert due(mail, decided(mail, Rule("one", Says(reasons))), Facts(NOW, {})) is is_due


# --- law 4: broken means later ----------------------------------------------------------------------------------------


class BrokenError(Exception):
    """What a policy might raise."""


def fails_at_once(mail: Submission, facts: Answers) -> Iterable[Finding]:
    raise BrokenError


def fails_halfway(mail: Submission, facts: Answers) -> Iterable[Finding]:
    yield HELD.about()
    raise BrokenError


def reads_what_it_did_not_ask(mail: Submission, facts: Answers) -> Iterable[Finding]:
    if facts[AgentAsk("agent-b")].name:
        yield HELD.about()


def finds_nonsense(mail: Submission, facts: Answers) -> Iterable[Finding]:
    return cast("list[Finding]", ["nonsense"])


def finds_nothing(mail: Submission, facts: Answers) -> Iterable[Finding]:
    return ()


@dataclass(frozen=True, slots=True)
class Broken:
    """A policy that cannot do what it is for."""

    when: ClassVar[frozenset[Moment]] = ALWAYS

    act: Callable[[Submission, Answers], Iterable[Finding]]
    fails_asking: bool = False

    def asks(self, mail: Submission) -> Iterable[Ask[Any]]:
        yield AGENT
        if self.fails_asking:
            raise BrokenError

    def judge(self, mail: Submission, facts: Answers) -> Iterable[Finding]:
        return self.act(mail, facts)


BREAKAGES = [
    Broken(fails_at_once),
    Broken(fails_halfway),
    Broken(reads_what_it_did_not_ask),
    Broken(finds_nonsense),
    Broken(fails_at_once, fails_asking=True),
    Broken(finds_nothing, fails_asking=True),
]


@pytest.mark.parametrize("broken", BREAKAGES)
def test_a_broken_policy_means_later_and_is_named(broken: Broken, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        decision = decided(a_mail(), Rule("fine", Says()), Rule("shaky", broken))

    (finding,) = decision.findings
    assert finding.reason is POLICY_ERROR
    assert finding.policy == "shaky"
    assert finding.extra == {"policy": "shaky"}
    assert decision.verdict is DEFER
    assert [getattr(record, "policy", None) for record in caplog.records] == ["shaky"]


def test_a_fact_that_another_policy_asked_for_is_not_there_for_one_that_did_not() -> None:
    @dataclass(frozen=True, slots=True)
    class Asks(Says):
        def asks(self, mail: Submission) -> Iterable[Ask[Any]]:
            return [AGENT, AgentAsk("agent-b")]

    decision = decided(a_mail(), Rule("fine", Asks()), Rule("shaky", Broken(reads_what_it_did_not_ask)))

    assert [f.policy for f in decision.findings] == ["shaky"]


def test_a_broken_policy_that_is_only_observed_stops_nothing() -> None:
    decision = decided(a_mail(), Rule("shaky", Broken(fails_at_once), Mode.OBSERVE))

    assert [f.observed for f in decision.findings] == [True]
    assert decision.allow


# --- mails and facts by dice ------------------------------------------------------------------------------------------

PEOPLE = [f"{name}@example.com" for name in ("a", "b", "c")]
TABLE = rules(
    {
        "quota": {"agent_hour": 4, "mailbox_day": 6, "tenant_month": 9},
        "recipient": {"max_recipients": 2},
        "content": {"max_bytes": 3000},
        "outstanding": {"mode": "observe"},
    }
)
AGENTS = st.sampled_from(["agent-a", "agent-b"])
TIMES = st.integers(-4000, 900).map(lambda seconds: NOW + timedelta(seconds=seconds))


@st.composite
def mails(draw: st.DrawFn, moments: tuple[Moment, ...] = (Moment.ACCEPTANCE,)) -> Submission:
    """Any mail that may come, small enough to collide with others."""
    people = draw(st.lists(st.sampled_from(PEOPLE), max_size=3, unique=True))
    moment = draw(st.sampled_from(moments))
    content = a_content(
        digest=draw(st.sampled_from(["d-1", "d-2"])),
        size=draw(st.sampled_from([2000, 2000, 4000])),
        header_from=draw(st.sampled_from([(OWN,), (OWN,), ("a@example.com",)])),
    )
    return a_mail(
        to=people,
        internal=draw(st.lists(st.sampled_from(PEOPLE), max_size=1)),
        id=f"r-{draw(st.integers(0, 10**9))}",
        mailbox=draw(st.sampled_from(["mailbox-1", "mailbox-2"])),
        agent=draw(st.none() | AGENTS),
        kind=draw(st.sampled_from(Kind)),
        content=content,
        tokens=draw(st.dictionaries(st.sampled_from(PEOPLE), st.integers(1, 4), max_size=2)),
        not_before=draw(st.none() | TIMES),
        override=draw(st.sampled_from([None, None, "a reason"])),
        consensus=draw(st.sampled_from([None, None, "vote-1"])),
        moment=moment,
        since=draw(st.none() | TIMES.filter(lambda time: time <= NOW)) if moment is Moment.RELEASE else None,
    )


def any_answer(ask: Ask[Any]) -> st.SearchStrategy[Any]:
    """Any answer that an ask may get, the good ones often."""
    requests = st.integers(0, 20).map(lambda n: f"r-{n}")
    past = TIMES.filter(lambda time: time <= NOW)
    lease = st.builds(
        LeaseAnswer, AGENTS, st.just(""), st.integers(1, 4), st.just(hence(minutes=5)), AGENTS, st.integers(0, 3)
    )
    flight = st.builds(Flight, requests, AGENTS, st.just(""), past, st.booleans(), st.just(Kind.OUTREACH))
    choices: Mapping[str, st.SearchStrategy[Any]] = {
        "KeyAsk": st.builds(KeyAnswer, st.just(value=True) | st.booleans(), st.booleans()),
        "MailboxAsk": st.builds(
            MailboxAnswer,
            st.sampled_from(["active", "active", "paused", "missing"]),
            st.just(OWN),
            st.sampled_from(["", "", "lease", "token"]),
            st.booleans(),
            st.booleans(),
            st.sampled_from([None, None, 0, 60]),
            ALLOWED,
            ALLOWED,
            st.sampled_from([False, False, True]),
        ),
        "AgentAsk": st.builds(AgentAnswer, st.sampled_from(["outreach", "outreach", ""]), ALLOWED),
        "LeaseAsk": st.just(LeaseAnswer()) | st.just(LeaseAnswer(token=3, owner="agent-a")) | lease,
        "FlightsAsk": st.just(()) | st.lists(flight, max_size=2, unique_by=lambda f: f.request).map(_oldest_first),
        "LastContactAsk": st.just(LastContactAnswer()) | st.builds(LastContactAnswer, past, requests),
        "SuppressionAsk": st.sampled_from([None, None, None, SuppressionAnswer("tenant", "complaint")]),
        "ConsensusAsk": st.builds(
            ConsensusAnswer, st.sampled_from([*Status, None]), st.sampled_from(PEOPLE), st.just(hence(minutes=5))
        ),
        "ConsentAsk": st.sampled_from([ConsentAnswer("contractual"), ConsentAnswer(), ConsentAnswer(withdrawn=True)]),
        "UnknownsAsk": st.sampled_from([(), (), (("r-1", "d-1"),)]),
        "ConflictsAsk": st.sampled_from([frozenset(), frozenset({"r-1"}), frozenset({"r-1", "r-2"})]),
        "RecentAsk": st.just(()),
        "ThreadAsk": st.just(()),
        "UsageAsk": st.builds(UsageAnswer, st.integers(0, 4), st.just(hence(minutes=20))),
    }
    return choices[type(ask).__name__]


def _oldest_first(flights: Iterable[Flight]) -> tuple[Flight, ...]:
    return tuple(sorted(flights, key=lambda f: (f.since, f.request)))


def told(data: st.DataObject, cases: Iterable[Brief]) -> dict[Ask[Any], Any]:
    """Answers to all questions of all cases."""
    questions = {ask for case in cases for ask in case.questions}
    return {ask: data.draw(any_answer(ask), label=str(ask)) for ask in sorted(questions, key=repr)}


# --- law 3: order is for the eye --------------------------------------------------------------------------------------


@given(st.data(), mails(tuple(Moment)), st.permutations(TABLE))
def test_permuting_the_policies_changes_no_verdict(data: st.DataObject, mail: Submission, other: list[Rule]) -> None:
    case = brief(mail, TABLE)
    given_answers = told(data, [case])

    one = judge(case, TABLE, Facts(NOW, given_answers))
    two = judge(brief(mail, other), other, Facts(NOW, given_answers))

    assert one.verdict is two.verdict
    assert one.retry_at == two.retry_at
    assert sorted(map(repr, one.findings)) == sorted(map(repr, two.findings))


# --- law 4, for any mail and any place in the table -------------------------------------------------------------------


@given(st.data(), mails(tuple(Moment)), st.sampled_from(BREAKAGES), st.integers(0, len(TABLE)))
def test_a_broken_policy_defers_any_mail_and_changes_no_other_finding(
    data: st.DataObject, mail: Submission, broken: Broken, place: int
) -> None:
    table = [*TABLE[:place], Rule("shaky", broken), *TABLE[place:]]
    case = brief(mail, table)
    given_answers = told(data, [case])

    with_it = judge(case, table, Facts(NOW, given_answers))
    without = judge(brief(mail, TABLE), TABLE, Facts(NOW, given_answers))

    assert with_it.verdict is max(without.verdict, DEFER)
    assert [f for f in with_it.findings if f.policy != "shaky"] == list(without.findings)
    assert [f.reason for f in with_it.findings if f.policy == "shaky"] == [POLICY_ERROR]


@given(st.data(), mails(tuple(Moment)), st.sampled_from(sorted({rule.name for rule in TABLE})))
def test_a_policy_never_goes_on_without_an_answer_it_reads(data: st.DataObject, mail: Submission, name: str) -> None:
    case = brief(mail, TABLE)
    lost = case.asks.get(name, frozenset())
    given_answers = told(data, [case])
    known = {ask: answer for ask, answer in given_answers.items() if ask not in lost}

    whole, partial = (judge(case, TABLE, Facts(NOW, facts)) for facts in (given_answers, known))

    mine = [f for f in partial.findings if f.policy == name]
    assert [f.reason for f in mine] == [POLICY_ERROR] or mine == [f for f in whole.findings if f.policy == name]


# --- law 2: together equals one by one --------------------------------------------------------------------------------


@dataclass
class History:
    """What is true at the start and the mails accepted since; facts are worked out anew from both for every mail."""

    start: dict[Ask[Any], Any]
    accepted: list[Accepted] = field(default_factory=list)

    def facts(self) -> Facts:
        return Facts(NOW, {ask: self.answer(ask, answer) for ask, answer in self.start.items()})

    def answer(self, ask: Ask[Any], answer: Any) -> Any:  # noqa: ANN401
        if isinstance(ask, FlightsAsk):
            flights = [
                Flight(one.mail.id, one.mail.actor, one.actor_name, NOW, permitted=False, kind=one.mail.kind)
                for one in self.accepted
                if one.due and one.mail.kind is not Kind.TRANSACTIONAL and ask.contact in one.mail.contacts
            ]
            return _oldest_first([*answer, *flights])
        if isinstance(ask, UsageAsk):
            spent = [
                len(one.mail.keys)
                for one in self.accepted
                if ask.who in (one.mail.actor, one.mail.mailbox, one.mail.tenant)
            ]
            return replace(answer, used=answer.used + sum(spent))
        return answer


@given(st.data(), st.lists(mails(), max_size=6, unique_by=lambda mail: mail.id))
def test_a_batch_is_judged_as_if_its_mails_had_come_one_by_one(data: st.DataObject, batch: list[Submission]) -> None:
    cases = [brief(mail, TABLE) for mail in batch]
    history = History(told(data, cases))

    together = judge_all(cases, TABLE, history.facts())

    for case, decision in zip(cases, together, strict=True):
        facts = history.facts()
        alone = judge(case, TABLE, facts)
        assert alone == decision
        if alone.allow:
            name = name_of(facts, case.mail)
            history.accepted.append(Accepted(case.mail, due(case.mail, alone, facts), NOW, name))


def test_of_two_that_only_one_may_pass_the_first_does() -> None:
    batch = [a_mail(id="r-1"), a_mail(id="r-2"), a_mail(id="r-3", agent="agent-b", key_id="key-1")]
    table = rules()
    cases = [brief(mail, table) for mail in batch]

    decisions = judge_all(cases, table, answers(asked={ask for case in cases for ask in case.questions}))

    assert [d.reason.slug if d.reason else None for d in decisions] == [None, "cooldown", "lease_conflict"]


def test_refused_and_waiting_mail_closes_nothing_to_the_next() -> None:
    batch = [
        a_mail(id="r-1", to=["a@example.com"], mailbox="mailbox-1", content=a_content(size=10**9)),
        a_mail(id="r-2", to=["a@example.com"], not_before=hence(hours=1)),
        a_mail(id="r-3", to=["a@example.com"], agent="agent-b"),
    ]
    table = rules()
    cases = [brief(mail, table) for mail in batch]

    decisions = judge_all(cases, table, answers(asked={ask for case in cases for ask in case.questions}))

    assert [d.allow for d in decisions] == [False, True, True]


def test_a_tenant_has_what_it_requires_enforced_for_all_its_mail_and_nothing_else_changed() -> None:
    table = [Rule("one", Says(), Mode.OFF, frozenset(["reply"])), Rule("two", Says(), Mode.OBSERVE)]

    assert for_tenant(table, frozenset()) is table
    assert list(for_tenant(table, frozenset(["one"]))) == [Rule("one", Says()), table[1]]
