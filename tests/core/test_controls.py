"""Which change of a control loosens it."""

from typing import Any

import pytest

from gateway.core.controls import CONTROLS, loosened
from gateway.core.errors import HumanDecisionError

USUAL = {"cooldown": 600}


@pytest.mark.parametrize(
    ("name", "old", "new", "loosens"),
    [
        ("demands", None, "lease", False),
        ("demands", "lease", None, True),
        ("demands", "lease", "token", False),
        ("demands", "both", "token", False),
        ("demands", "token", "both", False),
        ("demands", "token", "lease", True),
        ("may_reply", None, True, True),
        ("may_reply", True, None, False),
        ("transactional", False, True, True),
        ("transactional", True, True, False),
        ("unknown", None, {"*": "hold"}, False),
        ("unknown", None, {"reply": "assume_sent_after:1h"}, True),
        ("unknown", {"*": "hold"}, None, True),
        ("unknown", {"*": "hold"}, {"*": "hold"}, False),
        ("unknown", {"*": "assume_sent_after:1h"}, {"*": "hold"}, False),
        ("unknown", {"*": "assume_sent_after:1h"}, {"*": "assume_sent_after:1h"}, False),
        ("cooldown", None, 600, False),
        ("cooldown", None, 599, True),
        ("cooldown", 700, None, True),
        ("cooldown", 500, None, False),
        ("cooldown", 0, 1, False),
        ("allowed", None, [], False),
        ("allowed", [], None, True),
        ("allowed", ["*.example.com"], ["a.example.com"], False),
        ("require_consensus", None, True, False),
        ("require_consensus", True, None, True),
        ("require_consensus", True, False, True),
        ("require_consent", False, True, False),
        ("require_consent", True, False, True),
        ("internal", frozenset("a"), frozenset(), False),
        ("internal", frozenset("a"), frozenset("ab"), True),
        ("physical_address", None, "here", False),
        ("physical_address", "here", "there", True),
        ("physical_address", "here", None, True),
        ("physical_address", "here", "here", False),
    ],
)
def test_a_change_loosens_or_it_does_not(name: str, old: Any, new: Any, loosens: bool) -> None:  # noqa: ANN401
    (control,) = (one for one in CONTROLS if one.name == name)

    assert loosened({name: old}, {name: new}, USUAL) == ([control.wire] if loosens else [])


def test_what_stands_in_neither_is_not_looked_at() -> None:
    assert loosened({}, {}, {}) == []
    assert loosened({"demands": "lease", "cooldown": 60}, {"may_reply": True}, USUAL) == ["demands", "mayReply"]


def test_what_only_a_person_may_do_says_what_it_would_loosen() -> None:
    error = HumanDecisionError("tenant-settings", "tenant", ["cooldownMinutes"])

    assert (error.kind, error.about, error.loosens) == ("tenant-settings", "tenant", ("cooldownMinutes",))
    assert "operator" in str(error)
