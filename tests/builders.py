"""Mails, addresses and facts with good defaults: a test names only what it is about.

The usual mail: agent-a sends from mailbox-1 (agent@example.com) to pat@example.com, and nothing stands in its way. It
is Wednesday, 4 March 2026, 12:00 UTC.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from gateway.core.address import Address, parse
from gateway.core.consensus import Status
from gateway.core.facts import (
    AgentAnswer,
    AgentAsk,
    Ask,
    ConflictsAsk,
    ConsensusAnswer,
    ConsensusAsk,
    ConsentAnswer,
    ConsentAsk,
    Facts,
    FlightsAsk,
    KeyAnswer,
    KeyAsk,
    LastContactAnswer,
    LastContactAsk,
    LeaseAnswer,
    LeaseAsk,
    MailboxAnswer,
    MailboxAsk,
    RecentAsk,
    SuppressionAsk,
    ThreadAsk,
    UnknownsAsk,
    UsageAnswer,
    UsageAsk,
)
from gateway.core.judge import Policy, Rule, brief, judge
from gateway.core.mail import Content, Envelope, Recipient, Submission
from gateway.core.verdict import Finding

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
PAT = "pat@example.com"
OWN = "agent@example.com"
OWN_MAILBOX = MailboxAnswer("active", OWN)

Given = Mapping[Any, Any]
"""Answers by ask."""


def ago(**time: float) -> datetime:
    """A time before now: `ago(minutes=5)`."""
    return NOW - timedelta(**time)


def hence(**time: float) -> datetime:
    """A time after now: `hence(minutes=5)`."""
    return NOW + timedelta(**time)


def an_address(text: str = PAT) -> Address:
    """The address that a text is read as, with its key."""
    return parse(text, display=True)


def a_content(**changes: Any) -> Content:
    """A short message in order, from the mailbox's own address."""
    usual: dict[str, Any] = {"digest": "digest-1", "size": 2000, "message_id": "m-1@example.com", "header_from": (OWN,)}
    return Content(**{**usual, **changes})


def a_mail(
    *,
    to: Iterable[str] = (PAT,),
    cc: Iterable[str] = (),
    bcc: Iterable[str] = (),
    internal: Iterable[str] = (),
    **changes: Any,
) -> Submission:
    """The usual mail with changes to its fields; those named in `internal` too are the tenant's own people."""
    own = {an_address(text).key for text in internal}
    people: dict[str, Recipient] = {}
    for role, texts in (("to", to), ("cc", cc), ("bcc", bcc)):
        for text in texts:
            address = an_address(text)
            people.setdefault(address.key, Recipient(address, role, address.key in own))
    usual: dict[str, Any] = {
        "id": "r-own",
        "tenant": "tenant-1",
        "mailbox": "mailbox-1",
        "agent": "agent-a",
        "key_id": "key-1",
        "envelope": Envelope(OWN, tuple(people.values())),
        "content": a_content(),
        "idempotency_key": "once-1",
        "fingerprint": "fingerprint-1",
    }
    return Submission(**{**usual, **changes})


def the_usual(ask: Ask[Any], now: datetime = NOW) -> Any:  # noqa: ANN401
    """The answer to an ask where nothing stands in the way."""
    return {
        KeyAsk: KeyAnswer(live=True),
        MailboxAsk: OWN_MAILBOX,
        AgentAsk: AgentAnswer("agent-a"),
        LeaseAsk: LeaseAnswer(),
        ConflictsAsk: frozenset(),
        FlightsAsk: (),
        LastContactAsk: LastContactAnswer(),
        SuppressionAsk: None,
        ConsensusAsk: ConsensusAnswer(Status.APPROVED, PAT, now),
        ConsentAsk: ConsentAnswer("explicit_opt_in"),
        UnknownsAsk: (),
        RecentAsk: (),
        ThreadAsk: (),
        UsageAsk: UsageAnswer(0, now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)),
    }[type(ask)]


def answers(given: Given | None = None, asked: Iterable[Ask[Any]] = (), now: datetime = NOW) -> Facts:
    """Facts with the given answers, and the usual ones to all else that was asked."""
    return Facts(now, {**{ask: the_usual(ask, now) for ask in asked}, **(given or {})})


def found(policy: Policy, mail: Submission, given: Given | None = None, now: datetime = NOW) -> tuple[Finding, ...]:
    """What a policy finds, asked as the judge asks it; a fact that is given must be one that it asks for."""
    rules = [Rule("tried", policy)]
    case = brief(mail, rules)
    assert set(given or {}) <= case.questions, "the policy did not ask for a given fact"
    return judge(case, rules, answers(given, case.questions, now)).findings


def asked(policy: Policy, mail: Submission) -> frozenset[Ask[Any]]:
    """What a policy asks about a mail."""
    return brief(mail, [Rule("tried", policy)]).questions
