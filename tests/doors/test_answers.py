"""What is answered to a send: receipts, refusals with the status of the table, after the relay attempt."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gateway.core.delivery import Bounced, Deferred, Outcome, Relayed, Reply, Unknown
from gateway.core.errors import StoreUnavailableError
from gateway.store.steps import armed
from tests.doors.door import Door, problem
from tests.world import OK, PAT

STRICT = {"Prefer": "handling=strict"}


async def test_a_refusal_is_an_answer_with_200(door: Door) -> None:
    await door.world.suppress(PAT)

    answer = await door.send()

    body = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert (body["status"], body["reason"]) == ("blocked", "suppressed")
    assert body["nextAction"] == "stop; it binds every agent"
    assert body["policyTrace"]["decision"] == {"allow": False, "reason": "suppressed"}
    assert (body["scope"], body["reasonCode"]) == ("tenant", "manual_dnc")


@pytest.mark.parametrize(
    "preference", ["handling=strict", "strict", 'handling="strict"', "wait=1, Handling=Strict; x=y"]
)
async def test_a_strict_caller_gets_an_errors_status_with_the_same_members(door: Door, preference: str) -> None:
    await door.world.suppress(PAT)
    lenient = (await door.send()).json()

    answer = await door.send(headers={"Prefer": preference})

    body = problem(answer, 403, "suppressed")
    assert {name: body[name] for name in lenient if name != "findings"} == {
        name: value for name, value in lenient.items() if name != "findings"
    }


async def test_a_strict_caller_is_told_when_to_come_back(door: Door) -> None:
    await door.accepted()

    answer = await door.send(idempotencyKey="2", subject="another", headers=STRICT)

    body = problem(answer, 429, "cooldown")
    assert body["reserved"] is True
    assert body["cooldownExpiresAt"] == body["retryAt"]
    assert 590 <= int(answer.headers["retry-after"]) <= 600


async def test_a_lease_of_another_is_told_with_its_holder(door: Door) -> None:
    await door.world.lease("b", PAT)

    answer = await door.send(headers=STRICT)

    body = problem(answer, 409, "lease_conflict")
    assert body["leaseHolder"]["agentName"] == "b"
    assert body["leaseHolder"]["kind"] == "lease"


async def test_a_held_send_is_202_for_the_strict_and_200_for_others(door: Door) -> None:
    first = await door.accepted()
    claim = (await door.world.claim())[0]
    await door.world.relay(claim, Unknown("cut off"))
    door.world.advance(3600)

    held = await door.send(idempotencyKey="2")
    strict = await door.send(idempotencyKey="2", headers=STRICT)

    assert (held.status_code, held.json()["status"]) == (200, "pending_approval")
    assert held.json()["reason"] == "unknown_outstanding"
    assert held.json()["unknownRequestId"] == first["requestId"]
    assert (strict.status_code, strict.headers["content-type"]) == (202, "application/json")


@pytest.mark.parametrize(
    ("changes", "reason", "status"),
    [
        ({"to": [f"p{n}@example.net" for n in range(101)]}, "recipient_not_allowed", 422),
        ({"fencingToken": 1}, "lease_expired", 409),
        ({"text": "x" * 11_000_000}, "message_too_large", 413),
        ({"from_": "ceo@example.org"}, "sender_not_allowed", 403),
    ],
)
async def test_each_reason_has_the_status_of_the_table(
    wire: Door, changes: dict[str, Any], reason: str, status: int
) -> None:
    answer = await wire.send(headers=STRICT, **changes)

    problem(answer, status, reason)


async def test_a_mail_that_was_stopped_later_is_refused_with_what_stopped_it(door: Door) -> None:
    await door.accepted()
    claim = (await door.world.claim())[0]
    assert await door.world.permit(claim) is None
    await door.world.suppress(PAT)
    await door.world.settle(claim, Deferred("later", Reply(451, "4.0.0", "later")))

    answer = await door.send(headers=STRICT)

    assert problem(answer, 403, "suppressed")["replayed"] is True


async def test_an_operator_may_pass_lease_and_cooldown_with_a_reason(door: Door) -> None:
    await door.world.lease("b", PAT)

    problem(await door.send(overrideReason="urgent"), 403, "insufficient_scope")
    body = (await door.send(by="operator", overrideReason="urgent")).json()

    assert body["status"] == "queued"
    assert door.world.record(body["requestId"]).decision["override"] == "urgent"


async def test_a_store_that_cannot_answer_means_later(door: Door) -> None:
    def full() -> None:
        raise StoreUnavailableError("disk full")

    armed["commit.before"] = full
    try:
        answer = await door.send()
    finally:
        armed.clear()

    assert "same key" in problem(answer, 503, "store_unavailable")["message"]
    assert int(answer.headers["retry-after"]) > 0
    assert (await door.send()).json()["status"] == "queued"


async def relayed(door: Door, outcome: Outcome) -> None:
    """Relays what comes, once it is there."""
    taken = asyncio.Event()
    door.context.intake.wake = taken.set
    await taken.wait()
    await door.world.relay((await door.world.claim())[0], outcome)


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Relayed(OK), "relayed"),
        (Bounced("no such user", Reply(550, "5.1.1", "no such user"), "rcpt"), "bounced"),
        (Deferred("later", Reply(451, "4.0.0", "later")), "deferred"),
        (Unknown("cut off"), "unknown"),
    ],
)
async def test_who_waits_is_answered_after_the_attempt(door: Door, outcome: Outcome, status: str) -> None:
    answer, _ = await asyncio.gather(door.send(headers={"Prefer": "wait=20"}), relayed(door, outcome))

    assert answer.json()["status"] == status


async def test_nobody_waits_longer_than_asked(door: Door) -> None:
    answer = await door.send(headers={"Prefer": "wait=0"})

    assert answer.json()["status"] == "queued"


@pytest.mark.parametrize(
    "preference", ["wait=1", "wait=99999999999999999999", "wait=-1", "wait=x", "respond-async", ",,=;"]
)
async def test_odd_preferences_harm_nobody(door: Door, preference: str) -> None:
    await door.world.suppress(PAT)

    assert (await door.send(headers={"Prefer": preference})).json()["status"] == "blocked"


async def test_what_was_taken_is_told_so_even_if_the_store_goes_away_while_one_waits(door: Door) -> None:
    async def down(*_: object) -> None:
        raise StoreUnavailableError("down")

    door.app.state.context = replace(door.context, wait_for=down)

    answer = await door.send(headers={"Prefer": "wait=20"})

    assert (answer.status_code, answer.json()["status"]) == (200, "queued")
