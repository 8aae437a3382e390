"""Heartbeats: who may send one for whom, and what it changes (SEMANTICS 6)."""

import asyncio
from typing import Any

from tests.doors.door import Door, faults, problem

BEAT = "/v1/agent/coordination/heartbeat"


async def last(door: Door, agent: str) -> str:
    """When an agent was there last."""
    agents: list[dict[str, Any]] = (await door.get("/v1/agent/agents", by="operator")).json()
    return str(next(one["lastHeartbeat"] for one in agents if one["id"] == door.world.agent[agent]))


async def test_a_bound_key_needs_to_name_nobody(door: Door) -> None:
    before = await last(door, "a")
    door.world.advance(60)

    with_body = await door.post(BEAT, {}, by="a")
    without = await door.client.post(BEAT, headers={"Authorization": f"Bearer {door.keys['b']}"})

    assert (with_body.status_code, with_body.json()) == (200, {"ok": True})
    assert (without.status_code, without.json()) == (200, {"ok": True})
    assert await last(door, "a") > before
    assert await last(door, "b") > before


async def test_a_bound_key_speaks_for_no_other_agent(door: Door) -> None:
    answer = await door.post(BEAT, {"agentName": "b"}, by="a")

    problem(answer, 403, "agent_mismatch")


async def test_an_unbound_key_names_an_agent_that_no_key_is_bound_to(door: Door) -> None:
    made = (await door.post("/v1/agent/register", {"agentName": "outreach"}, by="free")).json()
    door.world.advance(60)

    by_name = await door.post(BEAT, {"agentName": "outreach"}, by="free")
    by_id = await door.post(BEAT, {"agentId": made["id"]}, by="free")
    bound = await door.post(BEAT, {"agentName": "a"}, by="free")

    assert (by_name.json(), by_id.json()) == ({"ok": True}, {"ok": True})
    problem(bound, 403, "agent_bound_to_key")


async def test_somebody_has_to_be_named_and_known(door: Door) -> None:
    nobody = await door.post(BEAT, {}, by="free")
    unknown = await door.post(BEAT, {"agentName": "who"}, by="free")

    assert faults(nobody) == ["agentName"]
    problem(unknown, 404, "agent_not_found")


async def test_many_at_once_are_all_noted(door: Door) -> None:
    before = await last(door, "a")
    door.world.advance(60)

    answers = await asyncio.gather(*(door.post(BEAT, {}, by=by) for by in ["a", "b"] * 20))

    assert {answer.status_code for answer in answers} == {200}
    assert await last(door, "a") > before
