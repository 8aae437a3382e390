"""What HTTP callers see of the guards against copies and loops, and how their mail says that a program wrote it."""

import email
from typing import Any

import pytest

from tests.doors.door import SEND, Door, a_send, b64, problem
from tests.world import BOXES, PAT

STRICT = {"Prefer": "handling=strict"}
TEXT = "Hello Pat, the new contract is ready for you to sign.\n"
RAW = "From: <agent@gw.example.com>\r\nTo: Pat <{to}>\r\nSubject: hello\r\n{more}\r\nhi\r\n"


def said(door: Door, body: dict[str, Any]) -> list[str] | None:
    """How the mail of a send says that it came about."""
    return email.message_from_bytes(door.message(body["requestId"])).get_all("Auto-Submitted")


async def test_a_copy_under_another_key_is_held_and_names_the_first(door: Door) -> None:
    first = await door.accepted(idempotencyKey="one", text=TEXT)
    (claim,) = await door.world.claim()
    await door.world.relay(claim)
    door.world.advance(700)

    body = await door.accepted(idempotencyKey="two", text=TEXT.replace("Hello", "Hi"), subject="Hello", by="b")

    assert body["status"] == "pending_approval"
    assert (body["reason"], body["nextAction"]) == ("near_duplicate", "a person decides; do not resend")
    assert body["firstRequestId"] == first["requestId"]
    assert body["policyTrace"]["decision"] == {"allow": True, "reason": "near_duplicate"}
    strict = await door.send(idempotencyKey="three", text=TEXT, headers=STRICT)
    assert (strict.status_code, strict.json()["status"]) == (202, "pending_approval")


async def test_the_same_mail_as_html_is_a_copy_too(door: Door) -> None:
    await door.accepted(idempotencyKey="one", text=TEXT)
    (claim,) = await door.world.claim()
    await door.world.relay(claim)
    door.world.advance(700)

    body = await door.accepted(idempotencyKey="two", text=..., html=f"<p>{TEXT}</p>")

    assert body["reason"] == "near_duplicate"


async def test_mail_of_an_agent_says_that_a_program_wrote_it(door: Door) -> None:
    body = await door.accepted()
    reply = await door.accepted(kind="reply", inReplyTo="<m-1@example.net>", idempotencyKey="two", to="p1@example.net")

    assert said(door, body) == ["auto-generated"]
    assert said(door, reply) == ["auto-replied"]


async def test_the_callers_own_word_stands(door: Door) -> None:
    answer = await door.post(SEND, a_send(headers={"auto-submitted": "no"}))

    assert said(door, answer.json()) == ["no"]


async def test_a_raw_message_is_left_as_it_is_and_equals_the_same_in_parts(door: Door) -> None:
    parts = await door.accepted(from_=BOXES[0])
    raw = b64(RAW.format(to=PAT, more="Auto-Submitted: no\r\n"))

    again = await door.accepted(rawMessage=raw, to=..., subject=..., text=...)
    other = await door.accepted(rawMessage=b64(RAW.format(to="p1@example.net", more="")), to=..., subject=..., text=...,
                                idempotencyKey="two")  # fmt: skip

    assert again["requestId"] == parts["requestId"]
    assert again["replayed"] is True
    assert said(door, other) is None


@pytest.mark.parametrize("to", ["MAILER-DAEMON@example.net", "owner-list@example.net", "noreply@example.net"])
async def test_a_raw_automatic_answer_to_a_program_is_refused(door: Door, to: str) -> None:
    raw = b64(RAW.format(to=to, more="Auto-Submitted: auto-replied (vacation)\r\n"))

    answer = await door.send(rawMessage=raw, to=..., subject=..., text=..., headers=STRICT)

    body = problem(answer, 403, "automatic_answer")
    assert body["nextAction"] == "stop; nobody reads there"


async def test_a_loop_is_broken_with_a_time_to_come_back(door: Door) -> None:
    for n in range(60):
        await door.accepted(from_=BOXES[0], kind="reply", idempotencyKey=f"k{n}", text=f"answer {n}")

    answer = await door.send(from_=BOXES[0], kind="reply", idempotencyKey="k60", text="answer 60", headers=STRICT)

    body = problem(answer, 429, "loop_suspected")
    assert body["loopOf"] == f"{door.world.box[BOXES[0]].id} {PAT}"
    assert (body["used"], body["limit"], body["windowSeconds"]) == (60, 60, 3600)
    assert body["retryAt"]
    assert int(answer.headers["retry-after"]) > 3500
