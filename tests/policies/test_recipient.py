"""Somebody, not too many, and only whom the allow lists let in."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.core.facts import AgentAnswer, AgentAsk, MailboxAsk
from gateway.core.mail import Moment, Submission
from policies.recipient import NOT_ALLOWED, Recipients
from tests.builders import OWN_MAILBOX, a_mail, asked, found

MAILBOX, AGENT = MailboxAsk("mailbox-1"), AgentAsk("agent-a")


def test_a_mail_to_nobody_is_refused() -> None:
    (finding,) = found(Recipients(), a_mail(to=[]))

    assert finding.reason is NOT_ALLOWED
    assert finding.extra == {"field": "to", "why": "there is no recipient"}


def test_as_many_recipients_as_allowed_pass_and_one_more_does_not() -> None:
    policy = Recipients(max_recipients=3)
    three = a_mail(to=["a@example.com"], cc=["b@example.com"], bcc=["c@example.com"])
    four = a_mail(to=["a@example.com", "d@example.com"], cc=["b@example.com"], bcc=["c@example.com"])

    assert found(policy, three) == ()
    (finding,) = found(policy, four)
    assert finding.reason is NOT_ALLOWED
    assert finding.recipient is None
    assert finding.extra["limit"] == 3


def test_one_person_in_two_spellings_counts_once() -> None:
    assert found(Recipients(max_recipients=1), a_mail(to=["pat@example.com"], cc=["Pat@EXAMPLE.com"])) == ()


def test_a_limit_that_lets_nobody_through_is_no_limit() -> None:
    with pytest.raises(ValueError, match="max_recipients must be at least 1"):
        Recipients(max_recipients=0)


@pytest.mark.parametrize(
    "wrong", ["", "@example.com", "*example.com", "exa mple.com", "**.example.com", "*.*.com", "a@*"]
)
def test_what_is_no_pattern_stops_the_start(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"allowed_recipients must be"):
        Recipients(allowed_recipients=(wrong,))


def whom(mail: Submission, policy: Recipients | None = None, **lists: object) -> list[tuple[str | None, object]]:
    """Whom the lists keep out, and in which role."""
    agent = AgentAnswer("agent-a", lists.pop("agent", None))  # type: ignore[arg-type]
    given = {MAILBOX: replace(OWN_MAILBOX, **lists), AGENT: agent}  # type: ignore[arg-type]
    findings = found(policy or Recipients(), mail, given)
    assert {finding.reason for finding in findings} <= {NOT_ALLOWED}
    return [(finding.recipient, finding.extra["field"]) for finding in findings]


@pytest.mark.parametrize("field", ["tenant_allowed", "allowed", "agent"])
def test_no_list_allows_everybody_and_an_empty_one_nobody(field: str) -> None:
    mail = a_mail(to=["a@example.com"], bcc=["b@example.net"])

    nobody: dict[str, Any] = {field: frozenset()}

    assert whom(mail, None, **{field: None}) == []
    assert whom(mail, None, **nobody) == [("a@example.com", "to"), ("b@example.net", "bcc")]
    assert whom(mail, None, **{field: frozenset(["*"])}) == []


def test_each_list_has_to_allow_every_recipient() -> None:
    mail = a_mail(to=["a@example.com"], cc=["b@example.net"])
    com, net = frozenset(["example.com"]), frozenset(["example.net"])

    assert whom(mail, allowed=com) == [("b@example.net", "cc")]
    assert whom(mail, allowed=com | net) == []
    assert whom(mail, allowed=com, agent=net) == [("b@example.net", "cc"), ("a@example.com", "to")]


def test_the_gateways_own_list_is_read_like_addresses() -> None:
    policy = Recipients(allowed_recipients=("*@B\u00dcCHER.example.com", "GoogleMail.com"))

    assert whom(a_mail(to=["a@xn--bcher-kva.example.com", "b@gmail.com"]), policy) == []
    assert whom(a_mail(to=["a@bucher.example.com"]), policy) == [("a@bucher.example.com", "to")]
    assert whom(a_mail(), Recipients(allowed_recipients=())) == [("pat@example.com", "to")]


def test_ones_own_people_are_bound_like_all_others() -> None:
    assert whom(a_mail(internal=["pat@example.com"]), allowed=frozenset()) == [("pat@example.com", "to")]


def test_a_release_asks_the_lists_and_counts_nobody() -> None:
    mail = a_mail(to=["a@example.com", "b@example.com"], moment=Moment.RELEASE)

    assert whom(mail, Recipients(max_recipients=1)) == []
    assert len(whom(mail, Recipients(max_recipients=1), allowed=frozenset())) == 2


def test_it_asks_for_mailbox_and_agent_alone() -> None:
    assert asked(Recipients(), a_mail()) == {MAILBOX, AGENT}
    assert asked(Recipients(), a_mail(agent=None)) == {MAILBOX}
    assert found(Recipients(), a_mail(agent=None)) == ()
