"""A live key, a known agent, the mailbox's own address, and the kinds of mail that were given to them."""

from dataclasses import replace

import pytest

from gateway.core.facts import AgentAnswer, AgentAsk, KeyAnswer, KeyAsk, MailboxAnswer, MailboxAsk
from gateway.core.mail import Kind, Moment, Submission
from policies.identity import NOT_ACTIVE, NOT_ALLOWED, PAUSED, Identity
from tests.builders import OWN, OWN_MAILBOX, Given, a_content, a_mail, asked, found

KEY, MAILBOX, AGENT = KeyAsk("key-1"), MailboxAsk("mailbox-1"), AgentAsk("agent-a")


def why(mail: Submission, given: Given | None = None) -> list[str]:
    """The words of all findings, which must be about the sender."""
    findings = found(Identity(), mail, given)
    assert {finding.reason for finding in findings} <= {NOT_ALLOWED}
    assert {finding.recipient for finding in findings} <= {None}
    return [finding.text for finding in findings]


def test_an_agent_with_a_live_key_sends_from_its_mailbox() -> None:
    assert why(a_mail()) == []


def test_a_key_that_is_not_live_sends_nothing() -> None:
    assert why(a_mail(), {KEY: KeyAnswer(live=False)}) == ["the key is not valid"]


def test_a_mail_with_neither_key_nor_agent_is_nobodys() -> None:
    assert why(a_mail(key_id=None, agent=None)) == ["the key is not valid"]


def test_a_trusted_network_names_an_agent_and_needs_no_key() -> None:
    assert why(a_mail(key_id=None)) == []


def test_an_unbound_key_sends_without_an_agent() -> None:
    assert why(a_mail(agent=None)) == []


@pytest.mark.parametrize(
    ("mailboxes", "words"),
    [
        (None, []),
        (("mailbox-0", "mailbox-1"), []),
        (("mailbox-0",), ["the key is not for this mailbox"]),
        ((), ["the key is not for this mailbox"]),
    ],
)
def test_a_key_sends_only_from_its_mailboxes(mailboxes: tuple[str, ...] | None, words: list[str]) -> None:
    assert why(a_mail(), {KEY: KeyAnswer(live=True, mailboxes=mailboxes)}) == words


@pytest.mark.parametrize(
    ("agent", "bound", "words"),
    [
        ("agent-a", "agent-a", []),
        ("agent-a", None, []),
        ("agent-a", "agent-b", ["the key is bound to another agent"]),
        (None, "agent-b", []),
    ],
)
def test_a_bound_key_sends_as_no_other_agent(agent: str | None, bound: str | None, words: list[str]) -> None:
    assert why(a_mail(agent=agent), {KEY: KeyAnswer(live=True, agent=bound)}) == words


def test_an_agent_that_is_not_registered_sends_nothing() -> None:
    assert why(a_mail(), {AGENT: AgentAnswer()}) == ["the agent is not registered"]


def test_transactional_mail_is_given_by_key_or_mailbox() -> None:
    mail = a_mail(kind=Kind.TRANSACTIONAL)

    assert why(mail) == ["transactional mail was given neither to this key nor to this mailbox"]
    assert why(mail, {KEY: KeyAnswer(live=True, transactional=True)}) == []
    assert why(mail, {MAILBOX: replace(OWN_MAILBOX, transactional=True)}) == []


def test_a_trusted_network_gets_transactional_mail_from_the_mailbox_alone() -> None:
    mail = a_mail(kind=Kind.TRANSACTIONAL, key_id=None)

    assert why(mail) == ["transactional mail was given neither to this key nor to this mailbox"]
    assert why(mail, {MAILBOX: replace(OWN_MAILBOX, transactional=True)}) == []


def test_replies_are_given_by_the_mailbox() -> None:
    mail = a_mail(kind=Kind.REPLY)

    assert why(mail) == ["this mailbox may not send replies"]
    assert why(mail, {MAILBOX: replace(OWN_MAILBOX, may_reply=True)}) == []


@pytest.mark.parametrize("authors", [("other@example.com",), (OWN, "other@example.com"), ("not an address",)])
def test_from_and_sender_are_the_mailboxs_own_address(authors: tuple[str, ...]) -> None:
    mail = a_mail(content=a_content(header_from=authors))

    assert why(mail) == ["From and Sender must be the mailbox's own address"]


def test_a_mailbox_without_an_address_lets_nobody_write_as_it() -> None:
    assert why(a_mail(), {MAILBOX: MailboxAnswer("active")}) == ["From and Sender must be the mailbox's own address"]


@pytest.mark.parametrize("moment", list(Moment))
def test_a_paused_mailbox_sends_nothing(moment: Moment) -> None:
    (finding,) = found(Identity(), a_mail(moment=moment), {MAILBOX: replace(OWN_MAILBOX, status="paused")})

    assert finding.reason is PAUSED


@pytest.mark.parametrize("moment", list(Moment))
@pytest.mark.parametrize("status", ["missing", "provisioning"])
def test_a_mailbox_in_any_other_state_sends_nothing(moment: Moment, status: str) -> None:
    (finding,) = found(Identity(), a_mail(moment=moment), {MAILBOX: MailboxAnswer(status, OWN)})

    assert finding.reason is NOT_ACTIVE


def test_of_a_missing_mailbox_nothing_else_is_said() -> None:
    mail = a_mail(kind=Kind.REPLY)

    (finding,) = found(Identity(), mail, {MAILBOX: MailboxAnswer("missing"), KEY: KeyAnswer(live=False)})

    assert finding.reason is NOT_ACTIVE


def test_at_release_the_key_is_not_asked_for() -> None:
    mail = a_mail(moment=Moment.RELEASE, kind=Kind.TRANSACTIONAL)

    assert asked(Identity(), mail) == {MAILBOX, AGENT}
    assert why(mail) == []


def test_at_release_the_agent_is_asked_for() -> None:
    assert why(a_mail(moment=Moment.RELEASE), {AGENT: AgentAnswer()}) == ["the agent is not registered"]


def test_without_agent_and_key_only_the_mailbox_is_asked_for() -> None:
    assert asked(Identity(), a_mail(agent=None, key_id=None)) == {MAILBOX}
