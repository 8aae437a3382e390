"""What is not as it is shown is found, wherever it is: else the table would be green whatever was answered."""

from typing import Any

import pytest

from tests.coordination.conformance.drive import Seen, wrong
from tests.coordination.conformance.rows import Cli, Row, Want, get
from tests.coordination.conformance.shape import AGENT, TEXT, TIME, TOKEN, UUID, After, faults, written

NOON, LATER = "2026-03-01T12:00:00Z", "2026-03-01T12:30:00.25Z"
LEASE = {"id": "d290f1ee-6c54-4b01-90e6-d701748f0851", "fencingToken": 4, "createdAt": NOON, "expiresAt": LATER}
SHAPE = {"id": UUID, "fencingToken": TOKEN, "createdAt": TIME, "expiresAt": After(30)}


def test_what_is_as_shown_has_no_fault() -> None:
    assert list(faults(SHAPE, LEASE)) == []
    assert list(faults([SHAPE], [LEASE])) == []
    assert list(faults({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, ours=("a.c",))) == []
    assert list(faults({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3}, part=True)) == []


@pytest.mark.parametrize(
    ("shown", "seen"),
    [
        (SHAPE, LEASE | {"id": "d290"}),
        (SHAPE, LEASE | {"fencingToken": 0}),
        (SHAPE, LEASE | {"fencingToken": True}),
        (SHAPE, LEASE | {"createdAt": "2026-03-01 12:00"}),
        (SHAPE, LEASE | {"expiresAt": NOON}),
        (SHAPE, LEASE | {"expiresAt": None}),
        (SHAPE, LEASE | {"more": 1}),
        (SHAPE, {"id": LEASE["id"]}),
        (SHAPE, [LEASE]),
        ([SHAPE], []),
        ([], [LEASE]),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}),
        ({"a": {"b": 1}}, {"a": {"b": 2}}),
        ({"ok": True}, {"ok": 1}),
        ({"ok": True}, {"ok": "true"}),
        ({"id": AGENT}, {"id": "agent_short"}),
        ({"reason": TEXT}, {"reason": ""}),
    ],
)
def test_what_is_not_as_shown_is_a_fault(shown: Any, seen: Any) -> None:  # noqa: ANN401 - JSON
    assert list(faults(shown, seen))


def test_status_body_and_what_a_command_prints_are_all_looked_at() -> None:
    http = Row("It is so.", get("/"), Want({"ok": True}))
    command = Row("It is so.", Cli("agents leases"), Want({"ok": True}, 0, out="noted", err="warning"))

    assert list(wrong(http, Seen({"ok": True}), {})) == []
    assert len(list(wrong(http, Seen({"ok": False}, 404), {}))) == 2
    assert list(wrong(command, Seen({"ok": True}, 0, "noted", "a warning"), {})) == []
    assert len(list(wrong(command, Seen(None, 1, "", ""), {}))) == 4


def test_a_shape_is_written_in_words() -> None:
    assert written(SHAPE) == '{"id": uuid, "fencingToken": number, "createdAt": time, "expiresAt": createdAt + 30 min}'
