"""What a batch costs others: its groups are small, and no message is made that it may not hold."""

from collections.abc import Sequence
from typing import Any

import pytest

from gateway.core.record import Receipt
from gateway.doors.http import batched, batches
from gateway.doors.http.sends import letter_of
from gateway.doors.letter import Letter
from gateway.intake.walk import Ticket
from tests.doors.door import Door, b64

BATCH = "/v1/agent/batch/request-send"
TRIAL = "/v1/agent/simulate-batch"


async def test_no_group_has_many_more_recipients_than_others_can_wait_for(
    wire: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batched, "GROUP_PEOPLE", 20)
    intake, groups = wire.context.intake, list[list[int]]()
    submit_all = intake.submit_all

    async def noted(tickets: Sequence[Ticket]) -> list[Receipt | BaseException]:
        groups.append([len(ticket.mail.keys) for ticket in tickets])
        return await submit_all(tickets)

    monkeypatch.setattr(intake, "submit_all", noted)
    many = [{"to": [f"p{n}-{one}@example.net" for one in range(8)], "text": f"hi {n}"} for n in range(7)]
    answer = await wire.post(BATCH, {"sends": many})

    assert [one["status"] for one in answer.json()["results"]] == ["queued"] * 7
    assert groups == [[8, 8, 8], [8, 8, 8], [8]]


async def test_a_batch_makes_no_messages_beyond_what_it_may_hold(wire: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    file = {"filename": "offer.pdf", "contentBase64": b64(b"x" * 7_000_000)}
    kept = (await wire.post("/v1/attachments", file)).json()
    tried: list[str] = []

    async def noted(*words: Any, **more: Any) -> Letter:
        tried.append(words[2].idempotency_key)
        return await letter_of(*words, **more)

    monkeypatch.setattr(batches, "letter_of", noted)
    items = [{"to": f"p{n}@example.net", "text": "hi", "idempotencyKey": f"k{n}"} for n in range(30)]
    answer = await wire.post(TRIAL, {"attachments": [{"id": kept["id"]}], "sends": items})

    results = answer.json()["results"]
    assert [one["index"] for one in results if one.get("error") == "body_too_large"] == list(range(8, 30))
    assert tried == [f"k{n}" for n in range(9)]
