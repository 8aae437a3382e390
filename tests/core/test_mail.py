"""A mail as the judge sees it, and the errors that go with it."""

import pytest

from gateway.core.errors import ConflictError, GatewayError
from gateway.core.mail import Kind
from tests.builders import a_mail


@pytest.mark.parametrize(
    ("kind", "leased", "asks", "starts"),
    [
        (Kind.OUTREACH, True, True, True),
        (Kind.REPLY, True, False, True),
        (Kind.TRANSACTIONAL, False, False, False),
    ],
)
def test_the_kinds_differ_as_the_page_says(kind: Kind, leased: bool, asks: bool, starts: bool) -> None:
    assert (kind.leased, kind.asks_cooldown, kind.starts_cooldown) == (leased, asks, starts)


def test_keys_are_of_all_and_contacts_of_all_but_the_tenants_own() -> None:
    mail = a_mail(to=["A@example.com"], cc=["own@example.com"], bcc=["b@example.com"], internal=["own@example.com"])

    assert mail.keys == ("a@example.com", "own@example.com", "b@example.com")
    assert mail.contacts == ("a@example.com", "b@example.com")


def test_a_mail_acts_for_its_agent_or_else_for_its_key() -> None:
    assert a_mail(agent="agent-a").actor == "agent-a"
    assert a_mail(agent=None).actor == "key:key-1"


def test_a_conflict_has_a_word_for_programs_and_a_sentence_for_people() -> None:
    error = ConflictError("not_cancellable", "it has left", status="relayed")

    assert isinstance(error, GatewayError)
    assert (error.slug, str(error), error.extra) == ("not_cancellable", "it has left", {"status": "relayed"})
