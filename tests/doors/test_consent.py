"""The consent ledger over HTTP, and what the policy `consent` makes of it."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from gateway.core.delivery import Deferred, State
from gateway.store import agents, schema
from gateway.store.tx import Tx
from tests.databases import Databases
from tests.doors.door import Door, a_door, faults, problem
from tests.world import PAT, START, TENANT, a_world

LEDGER = "/v1/consent"
ENFORCED = {"consent": {"mode": "enforce"}}
NOW = START.isoformat()


def a_record(**changes: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {"recipientEmail": PAT, "basis": "explicit_opt_in"}
    return {name: value for name, value in (usual | changes).items() if value is not ...}


@pytest_asyncio.fixture
async def strict(databases: Databases) -> AsyncIterator[Door]:
    """A door where outreach needs consent."""
    async with a_world(databases, ENFORCED) as world, a_door(world) as door:
        yield door


async def grant(door: Door, **changes: Any) -> dict[str, Any]:
    answer = await door.post(LEDGER, a_record(**changes), by="operator")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def withdraw(door: Door, by: str = "a", **changes: Any) -> dict[str, Any]:
    answer = await door.post(LEDGER, a_record(revokedAt=NOW, **changes), by=by)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def test_a_record_is_shown_as_it_was_made(door: Door) -> None:
    made = await grant(door, source="form", jurisdiction="EU", grantedAt="2026-01-02T03:04:05+01:00")

    shown = (await door.get(LEDGER, params={"recipientEmail": PAT.upper()})).json()

    assert made == shown | {"stopped": []}
    assert (shown["recipientEmail"], shown["basis"]) == (PAT, "explicit_opt_in")
    assert (shown["source"], shown["jurisdiction"]) == ("form", "EU")
    assert (shown["grantedAt"], shown["revokedAt"]) == ("2026-01-02T02:04:05Z", None)
    assert shown["active"] is True
    assert shown["createdAt"].startswith("2026-03-04T12:3")


async def test_without_a_record_nobody_has_agreed(door: Door) -> None:
    shown = (await door.get(LEDGER, params={"recipientEmail": PAT})).json()

    assert (shown["id"], shown["basis"], shown["active"]) == (None, None, False)


async def test_the_policy_is_off_by_default(door: Door) -> None:
    await withdraw(door)

    assert (await door.send()).json()["status"] == "queued"


async def test_outreach_needs_a_consent_where_it_is_enforced(strict: Door) -> None:
    refused = (await strict.send()).json()
    asked = (await strict.send(headers={"Prefer": "handling=strict"}, idempotencyKey="2")).status_code
    await grant(strict)
    taken = (await strict.send()).json()

    assert (refused["status"], refused["reason"], asked) == ("blocked", "no_consent", 403)
    assert refused["findings"][0]["recipient"] == PAT
    assert (taken["status"], taken["requestId"]) == ("queued", refused["requestId"])


async def test_replies_and_the_tenants_own_people_need_none(strict: Door) -> None:
    assert (await strict.send(kind="reply", inReplyTo="<1@example.net>")).json()["status"] == "queued"
    assert (await strict.send(to="desk@gw.example.com", idempotencyKey="2")).json()["status"] == "queued"


async def test_one_recipient_without_consent_stops_the_whole_send(strict: Door) -> None:
    await grant(strict)

    body = (await strict.send(cc=["other@example.net"])).json()

    assert (body["reason"], body["findings"][0]["recipient"]) == ("no_consent", "other@example.net")


async def test_the_newest_record_decides_whatever_the_times_in_it(strict: Door) -> None:
    await grant(strict)
    await withdraw(strict, grantedAt="2020-01-01T00:00:00Z")
    after = (await strict.send()).json()
    await grant(strict, grantedAt="2019-01-01T00:00:00Z")

    assert after["reason"] == "no_consent"
    assert (await strict.send()).json()["status"] == "queued"
    assert len(strict.world.rows_of(schema.consents)) == 3


async def test_a_withdrawal_counts_at_once_even_one_that_lies_in_the_future(strict: Door) -> None:
    await grant(strict)
    later = (START + timedelta(days=9)).isoformat()

    body = (await strict.post(LEDGER, a_record(revokedAt=later))).json()

    assert body["active"] is False
    assert (await strict.send()).json()["reason"] == "no_consent"


async def test_a_consent_that_begins_later_does_not_count_before(strict: Door) -> None:
    body = await grant(strict, grantedAt=(START + timedelta(hours=1)).isoformat())
    before = (await strict.send()).json()
    strict.world.advance(3601)

    assert body["active"] is False
    assert before["reason"] == "no_consent"
    assert (await strict.send()).json()["status"] == "queued"
    assert (await strict.get(LEDGER, params={"recipientEmail": PAT})).json()["active"] is True


async def test_until_a_later_consent_begins_the_one_before_it_decides(strict: Door) -> None:
    first = await grant(strict)
    await grant(strict, basis="contractual", grantedAt=(START + timedelta(hours=1)).isoformat())

    shown = (await strict.get(LEDGER, params={"recipientEmail": PAT})).json()

    assert (shown["id"], shown["active"]) == (first["id"], True)
    assert (await strict.send()).json()["status"] == "queued"


async def test_a_withdrawal_stops_outreach_on_its_way_where_it_is_enforced(strict: Door) -> None:
    await grant(strict)
    outreach = await strict.accepted(idempotencyKey="1")
    reply = await strict.accepted(kind="reply", inReplyTo="<1@example.net>", idempotencyKey="2")

    body = await withdraw(strict)

    assert body["stopped"] == [outreach["requestId"]]
    (delivery,) = strict.world.record(outreach["requestId"]).deliveries
    assert (delivery.state, delivery.reason) == (State.BLOCKED, "no_consent")
    assert strict.world.states(reply["requestId"]) == [State.QUEUED]


async def test_a_withdrawal_gives_permitted_mail_no_second_try(strict: Door) -> None:
    await grant(strict)
    sent = await strict.accepted()
    (claim,) = await strict.world.claim()
    await strict.world.permit(claim)

    body = await withdraw(strict)

    assert body["stopped"] == []
    assert await strict.world.settle(claim, Deferred("451")) is State.BLOCKED
    asked = await strict.get(f"/v1/agent/requests/{sent['requestId']}")
    assert asked.json()["recipients"][0]["reason"] == "no_consent"


async def test_a_withdrawal_meets_scheduled_mail_at_its_release(strict: Door) -> None:
    await grant(strict)
    sent = await strict.accepted(scheduledAt=(START + timedelta(hours=1)).isoformat())
    await withdraw(strict)
    before = strict.world.states(sent["requestId"])
    strict.world.advance(3601)
    await strict.world.look()

    assert before == [State.SCHEDULED]
    assert strict.world.states(sent["requestId"]) == [State.BLOCKED]


@pytest.mark.parametrize("mode", ["off", "observe"])
async def test_a_withdrawal_stops_nothing_where_it_is_not_enforced(databases: Databases, mode: str) -> None:
    async with a_world(databases, {"consent": {"mode": mode}}) as world, a_door(world) as door:
        sent = await door.accepted()

        body = await withdraw(door)

        assert body["stopped"] == []
        assert world.states(sent["requestId"]) == [State.QUEUED]


async def test_a_withdrawal_stops_only_the_mail_that_the_policy_is_for(databases: Databases) -> None:
    async with a_world(databases) as passing:
        desk = passing.box["desk@gw.example.com"].id
    options = {"consent": {"mode": "enforce", "applies_to": [desk]}}
    async with a_world(databases, options) as world, a_door(world) as door:
        assert world.box["desk@gw.example.com"].id == desk
        await grant(door)
        bound = await door.accepted(mailboxId=desk, idempotencyKey="1")
        free = await door.accepted(
            mailboxId=world.box["agent@gw.example.com"].id,
            kind="outreach",
            idempotencyKey="2",
            subject="another matter",
            text="the parcel left our house today and comes with the next post\n",
            overrideReason="a person says so",
            by="operator",
        )

        body = await withdraw(door)

        assert body["stopped"] == [bound["requestId"]]
        assert world.states(free["requestId"]) == [State.QUEUED]


async def test_a_tenant_may_demand_consent_of_its_own(door: Door) -> None:
    def demand(tx: Tx) -> None:
        agents.save_profile(tx, TENANT, replace(tx.profile(TENANT), require_consent=True))

    door.world.store.write((TENANT,), demand)
    refused = (await door.send()).json()
    await grant(door)
    sent = await door.accepted()

    body = await withdraw(door)

    assert refused["reason"] == "no_consent"
    assert body["stopped"] == [sent["requestId"]]


async def test_to_consent_for_somebody_needs_more_than_a_key_that_may_send(door: Door) -> None:
    problem(await door.post(LEDGER, a_record()), 403, "insufficient_scope")
    assert (await withdraw(door))["active"] is False
    assert (await grant(door))["active"] is True


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"recipientEmail": ...}, ["recipientEmail"]),
        ({"recipientEmail": "x"}, ["recipientEmail"]),
        ({"basis": ...}, ["basis"]),
        ({"basis": "because"}, ["basis"]),
        ({"grantedAt": "yesterday"}, ["grantedAt"]),
        ({"revokedAt": True}, ["revokedAt"]),
        ({"source": "a\nb"}, ["source"]),
        ({"jurisdiction": ""}, ["jurisdiction"]),
        ({"email": PAT}, ["email"]),
    ],
)
async def test_a_malformed_record_is_refused_by_name(wire: Door, changes: dict[str, Any], named: list[str]) -> None:
    assert faults(await wire.post(LEDGER, a_record(**changes), by="operator")) == named
    assert wire.world.rows_of(schema.consents) == []


async def test_a_malformed_question_is_refused_by_name(wire: Door) -> None:
    assert faults(await wire.get(LEDGER)) == ["recipientEmail"]
    assert faults(await wire.get(LEDGER, params={"email": PAT})) == ["recipientEmail", "email"]
