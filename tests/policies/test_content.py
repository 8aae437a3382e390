"""Mail that every reader reads alike."""

from typing import Any

import pytest

from gateway.core.mail import Moment, Submission
from gateway.core.mime import Traits
from policies.content import INVALID, TOO_LARGE, Content
from tests.builders import a_content, a_mail, asked, found


def with_traits(**traits: Any) -> Submission:
    return a_mail(content=a_content(traits=Traits(**traits)))


def test_a_message_in_order_passes() -> None:
    assert found(Content(), a_mail()) == ()


def test_a_message_may_be_as_large_as_the_limit_and_no_larger() -> None:
    policy = Content(max_bytes=100)

    assert found(policy, a_mail(content=a_content(size=100))) == ()
    (finding,) = found(policy, a_mail(content=a_content(size=101)))
    assert finding.reason is TOO_LARGE
    assert finding.extra == {"limit": 100, "size": 101}


@pytest.mark.parametrize(
    ("traits", "field", "why"),
    [
        ({"repeated": ("subject",)}, "subject", "may stand only once"),
        ({"missing": ("from",)}, "from", "is missing"),
        ({"control_characters": ("x-note",)}, "x-note", "holds control characters"),
        ({"not_utf8": ("subject",)}, "subject", "is not UTF-8"),
        ({"gateway_headers": ("x-gateway-decision",)}, "x-gateway-decision", "of the gateway"),
        ({"received": 51}, "received", "in a circle"),
        ({"nul": True}, "message", "NUL"),
        ({"bare_newlines": True}, "message", "CRLF"),
        ({"longest_line": 999}, "message", "998"),
    ],
)
def test_what_a_next_reader_could_take_for_something_else_is_refused(
    traits: dict[str, Any], field: str, why: str
) -> None:
    (finding,) = found(Content(), with_traits(**traits))

    assert finding.reason is INVALID
    assert finding.extra["field"] == field
    assert why in str(finding.extra["why"])


@pytest.mark.parametrize(
    "traits", [{"missing": ("date", "message-id")}, {"received": 50}, {"longest_line": 998}, {"eight_bit": True}]
)
def test_what_is_common_or_can_be_added_passes(traits: dict[str, Any]) -> None:
    assert found(Content(), with_traits(**traits)) == ()


def test_every_fault_is_named() -> None:
    mail = with_traits(repeated=("from", "subject"), missing=("from",), control_characters=("x-note",), nul=True)

    assert [f.extra["field"] for f in found(Content(), mail)] == ["from", "subject", "from", "x-note", "message"]


def test_it_needs_no_facts_and_is_asked_at_acceptance_only() -> None:
    assert asked(Content(), a_mail()) == set()
    assert found(Content(max_bytes=1), a_mail(moment=Moment.RELEASE)) == ()
