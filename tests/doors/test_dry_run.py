"""Dry runs: the same answer, and nothing written."""

from datetime import timedelta

from tests.databases import Databases
from tests.doors.door import SIMULATE, Door, a_door, a_send, problem
from tests.world import PAT, a_world

STRICT = {"Prefer": "handling=strict"}


async def test_a_dry_run_tells_all_findings_and_leaves_nothing_behind(door: Door) -> None:
    await door.world.suppress("blocked@example.net")
    await door.world.lease("b", "leased@example.net")
    before = door.world.rows()

    body = (await door.send(to=["blocked@example.net", "leased@example.net"], dryRun=True)).json()

    assert door.world.rows() == before
    assert (body["requestId"], body["messageId"], body["simulation"], body["wouldAllow"]) == (None, None, True, False)
    assert (body["status"], body["reason"]) == ("blocked", "suppressed")
    assert {(one["reason"], one["recipient"]) for one in body["findings"]} == {
        ("suppressed", "blocked@example.net"),
        ("lease_conflict", "leased@example.net"),
    }
    assert body["suppressionInfo"] == {"scope": "tenant", "reasonCode": "manual_dnc"}
    assert body["leaseHolder"]["agentName"] == "b"
    assert body["policyContext"]["isSuppressed"] is True
    assert body["resolvedFromAddress"] == next(iter(door.world.box))


async def test_dry_run_and_simulation_answer_alike_and_as_the_send_does(door: Door) -> None:
    await door.accepted()
    other = {"idempotencyKey": "2", "subject": "b"}

    dry = (await door.send(dryRun=True, **other)).json()
    simulated = (await door.post(SIMULATE, a_send(**other))).json()
    real = (await door.send(**other)).json()

    moving = {"requestId", "messageId", "recipients", "retryAt", "cooldownExpiresAt", "findings"}
    assert {k: v for k, v in dry.items() if k not in moving} == {k: v for k, v in simulated.items() if k not in moving}
    assert {k: v for k, v in real.items() if k not in moving} == {
        k: v for k, v in dry.items() if k in real and k not in moving
    }
    assert dry["policyContext"]["isCooldownHit"] is True
    assert dry["cooldownExpiresAt"]


async def test_a_dry_run_that_would_pass_says_so(door: Door) -> None:
    later = door.world.now + timedelta(hours=1)

    now = (await door.post(SIMULATE, {"recipientEmail": PAT, "templateId": "_default"})).json()
    scheduled = (await door.post(SIMULATE, a_send(scheduledAt=later.isoformat()))).json()

    assert (now["wouldAllow"], now["wouldDefer"], now["rateLimited"]) == (True, False, False)
    assert (scheduled["status"], scheduled["wouldDefer"]) == ("scheduled", True)
    assert scheduled["scheduledFor"] == later.date().isoformat()


async def test_a_dry_run_of_a_used_key_tells_that_it_would_replay(door: Door) -> None:
    await door.accepted()

    body = (await door.send(dryRun=True)).json()

    assert (body["replayed"], body["policyContext"]["hasDuplicate"], body["wouldAllow"]) == (True, True, True)
    problem(await door.send(dryRun=True, subject="other"), 422, "idempotency_key_reused")


async def test_a_dry_run_may_be_strict(door: Door) -> None:
    await door.world.suppress(PAT)

    assert problem(await door.send(dryRun=True, headers=STRICT), 403, "suppressed")["wouldAllow"] is False


async def test_a_limit_that_is_used_up_is_told_in_a_dry_run(databases: Databases) -> None:
    async with a_world(databases, {"quota": {"agent_day": 1}}) as world, a_door(world) as door:
        await door.accepted()

        body = (await door.send(dryRun=True, idempotencyKey="2", to="other@example.net")).json()
        strict = await door.send(idempotencyKey="3", to="other@example.net", headers=STRICT)

    assert (body["reason"], body["rateLimited"], body["remaining"]) == ("daily_limit_exceeded", True, 0)
    assert problem(strict, 429, "daily_limit_exceeded")["resetsAt"] == "2026-03-05T00:00:00Z"
