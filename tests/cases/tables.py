"""Which cases are not played and why, and where our pages of semantics want something else than a case's words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NO_INBOUND = "is about the door for bounces, which is not there yet"
NO_APPROVALS = "needs approval links and their time limit; a held mail is approved by its id so far"
NO_WEBHOOKS = "needs webhooks, which are not there yet"

LEFT_OUT_KINDS = {"eml-in": NO_INBOUND}
LEFT_OUT_LISTENERS = {"bounce": NO_INBOUND}
"""Dialogues with a door that is not there, by its name."""
LEFT_OUT = {
    "B84": NO_APPROVALS,
    "B86": NO_APPROVALS,
    "B101": NO_INBOUND + "; that nobody submits with the null sender, or to it, is in tests/doors/smtp/test_cases.py",
    "B104": "needs unsubscribe links, which are not there yet",
    "B106": NO_WEBHOOKS,
    "B107": NO_WEBHOOKS,
    "B108": NO_WEBHOOKS,
}
"""By id; a case that is neither here nor played fails the tests."""


@dataclass(frozen=True, slots=True)
class Differs:
    """What our pages want instead: the heading that says so, in words, and expectations taken away or put in their place."""

    heading: str
    words: str
    without: tuple[str, ...] = ()
    instead: Mapping[str, Any] = field(default_factory=dict)
    steps: Mapping[int, str] = field(default_factory=dict)
    """What a step expects in the place of its own words, by its number."""


ANSWERED = "4. What a send is answered with"
UTC_DAYS = "quotas count by calendar hour, day and month in UTC; neither rolling windows nor other zones"

DIFFERS = {
    "B07": Differs(
        ANSWERED,
        "a header's value with a line end is refused with the field's name, so no mail is received",
        without=("received_text_lines",),
        instead={"each": {"http_status": [422]}, "upstream_transactions": 0},
    ),
    "B28": Differs("3. States", "the send reads `deferred` with counts, not partial"),
    "B57": Differs("3. States", "only 5.1.1 at RCPT suppresses, no other reply of 5.1.x does"),
    "B65": Differs(
        "8. Names that programs may rely on",
        "0 is no limit, so one unit that is used up stands for it; the least limit of bytes is 1024, so the mail is longer "
        "by as much",
    ),
    "B70": Differs(
        "5. Repeats, and what nobody can know",
        "a key's scope is the mailbox: agent-b may not send from it and is refused before the look-up; another spelling of "
        "the address replays; keys are compared exactly, and one with blanks is refused",
    ),
    "B80": Differs(ANSWERED, "a unit that was used is not given back where the smarthost refuses; 200 with `blocked`"),
    "B81": Differs(
        ANSWERED,
        UTC_DAYS,
        instead={"decisions": dict.fromkeys(("b81a", "b81b", "b81c", "b81d", "b81e", "b81f"), "accepted")},
        steps={6: "used 1, remaining 1, resetsAt 2026-03-03T00:00:00Z"},
    ),
    "B83": Differs(
        "8. Names that programs may rely on",
        "how late a mail may be is MAX_LATENESS_SECONDS, not a field of the request",
    ),
    "B112": Differs(ANSWERED, "what has left is `cancelled: false` in an answer of 200, or 409 where strict is asked"),
}
"""Which pages say so: the headings of `docs/semantics.md`."""


def expected(case: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What is expected of a case by our pages."""
    differs = DIFFERS.get(case)
    if differs is None:
        return dict(given)
    return {name: value for name, value in given.items() if name not in differs.without} | dict(differs.instead)
