"""What is used up of limits: the tenant's, an agent's, a mailbox's."""

import pytest

from tests.databases import Databases
from tests.doors.door import Door, a_door, faults, problem
from tests.doors.test_requests import other_tenants_key
from tests.world import BOXES, TENANT, a_world

BUDGET = "/v1/agent/budget"
NOT_COUNTED = {"used": None, "limit": None, "remaining": None}


async def test_without_limits_nothing_is_counted_and_that_is_said(door: Door) -> None:
    await door.accepted()

    body = (await door.get(BUDGET)).json()

    assert body["tenantId"] == TENANT
    assert body["hourly"] == NOT_COUNTED | {"resetsAt": "2026-03-04T13:00:00Z"}
    assert body["daily"] == NOT_COUNTED | {"resetsAt": "2026-03-05T00:00:00Z"}
    assert body["monthly"] == NOT_COUNTED | {"resetsAt": "2026-04-01T00:00:00Z"}
    assert body["timestamp"].startswith("2026-03-04T12:30:")
    assert body.keys() == {"tenantId", "hourly", "daily", "monthly", "timestamp"}


async def test_limits_are_told_with_what_is_used_and_what_remains(databases: Databases) -> None:
    limits = {"tenant_hour": 5, "tenant_day": 10, "agent_day": 3, "mailbox_month": 2}
    async with a_world(databases, {"quota": limits}) as world, a_door(world) as door:
        await door.accepted(from_=BOXES[0], to=["p1@example.net", "p2@example.net"])
        await door.accepted(by="b", from_=BOXES[1], to="p3@example.net", idempotencyKey="other")
        box = world.box[BOXES[0]]

        body = (await door.get(BUDGET, params={"agent": "a", "mailboxId": box.id})).json()
        world.advance(3600)
        later = (await door.get(BUDGET)).json()

    until = {"resetsAt": "2026-03-04T13:00:00Z", "enforced": True}
    assert body["hourly"] == {"used": 3, "limit": 5, "remaining": 2} | until
    assert (body["daily"]["used"], body["daily"]["remaining"]) == (3, 7)
    assert body["monthly"]["limit"] is None
    assert (body["agent"]["id"], body["agent"]["name"]) == (world.agent["a"], "a")
    assert (body["agent"]["daily"]["used"], body["agent"]["daily"]["remaining"]) == (2, 1)
    assert body["agent"]["hourly"]["limit"] is None
    assert (body["mailbox"]["id"], body["mailbox"]["address"]) == (box.id, BOXES[0])
    assert (body["mailbox"]["monthly"]["used"], body["mailbox"]["monthly"]["remaining"]) == (2, 0)
    assert later["hourly"] == {
        "used": 0, "limit": 5, "remaining": 5, "resetsAt": "2026-03-04T14:00:00Z", "enforced": True,
    }  # fmt: skip
    assert later["daily"]["used"] == 3


async def test_what_was_blocked_uses_nothing_up(databases: Databases) -> None:
    async with a_world(databases, {"quota": {"tenant_hour": 1}}) as world, a_door(world) as door:
        await door.accepted(to="p1@example.net")
        await door.send(to="p2@example.net", idempotencyKey="two")

        body = (await door.get(BUDGET)).json()

    assert (body["hourly"]["used"], body["hourly"]["remaining"]) == (1, 0)


@pytest.mark.parametrize(("mode", "told"), [("observe", (1, 1, False)), ("off", (None, None, None))])
async def test_limits_that_bind_nobody_are_told_as_such(
    databases: Databases, mode: str, told: tuple[object, ...]
) -> None:
    options = {"quota": {"tenant_hour": 1, "mode": mode}}
    async with a_world(databases, options) as world, a_door(world) as door:
        await door.accepted(to="p1@example.net")

        hourly = (await door.get(BUDGET)).json()["hourly"]

    assert (hourly["used"], hourly["limit"], hourly.get("enforced")) == told


async def test_who_is_not_there_or_not_ones_own_is_not_shown(door: Door) -> None:
    own, other = (door.world.box[box].id for box in BOXES)
    door.add_key("desk", mailboxes=(own,), scopes=("send",))

    assert (await door.get(BUDGET, params={"mailboxId": own}, by="desk")).json()["mailbox"]["id"] == own
    problem(await door.get(BUDGET, params={"mailboxId": other}, by="desk"), 403, "mailbox_scope_denied")
    problem(await door.get(BUDGET, params={"mailboxId": "mbx_nowhere"}), 404, "mailbox_not_found")
    problem(await door.get(BUDGET, params={"agent": "nobody"}), 404, "agent_not_found")
    problem(await door.get(BUDGET, params={"agent": "a"}, by=await other_tenants_key(door)), 404, "agent_not_found")
    problem(await door.get(BUDGET, by=None), 401, "unauthorized")
    assert faults(await door.get(BUDGET, params={"colour": "red"})) == ["colour"]
