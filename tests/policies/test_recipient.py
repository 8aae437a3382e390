"""Somebody, and not too many."""

import pytest

from policies.recipient import NOT_ALLOWED, Recipients
from tests.builders import a_mail, asked, found


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


def test_it_needs_no_facts() -> None:
    assert asked(Recipients(), a_mail()) == set()
