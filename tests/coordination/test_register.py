"""Registering: upsert by name, and the six words about the calling key (SEMANTICS 6)."""

from typing import Any

import pytest

from tests.doors.door import Door, faults, problem
from tests.world import TENANT

REGISTER = "/v1/agent/register"


async def register(door: Door, by: str = "free", **changes: Any) -> dict[str, Any]:
    answer = await door.post(REGISTER, {"agentName": "outreach"} | changes, by=by)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def test_an_agent_is_registered(door: Door) -> None:
    body = await register(door, agentRole="outbound", metadata={"model": "x", "tags": ["a", {"b": None}]})

    assert body["id"].startswith("agent_")
    assert len(body["id"]) == len("agent_") + 12
    assert (body["tenantId"], body["agentName"], body["agentRole"]) == (TENANT, "outreach", "outbound")
    assert body["metadata"] == {"model": "x", "tags": ["a", {"b": None}]}
    assert body["lastHeartbeat"] == body["registeredAt"]
    assert body["apiKeyBinding"] == "not_requested"
    assert "boundToAgentId" not in body


async def test_registering_again_keeps_the_id_and_sets_the_rest(door: Door) -> None:
    first = await register(door, agentRole="outbound", metadata={"a": 1})
    door.world.advance(60)

    again = await register(door)

    assert again["id"] == first["id"]
    assert (again["agentRole"], again["metadata"]) == ("general", {})
    assert again["registeredAt"] == first["registeredAt"]
    assert again["lastHeartbeat"] > first["lastHeartbeat"]


async def test_a_key_is_bound_for_good_and_acts_as_the_agent_at_once(door: Door) -> None:
    bound = await register(door, bindKey=True)
    again = await register(door, bindKey=True)
    sent = (await door.send(by="free")).json()

    assert (bound["apiKeyBinding"], again["apiKeyBinding"]) == ("bound", "already_bound")
    assert door.world.record(sent["requestId"]).agent == bound["id"]


@pytest.mark.parametrize(
    ("by", "bind", "binding"),
    [
        ("b", True, "bound_to_other_agent"),
        ("b", False, "not_requested"),
        ("free", True, "agent_has_other_key"),
        ("free", False, "not_requested"),
    ],
)
async def test_an_agent_with_a_key_of_its_own_is_left_as_it_is_by_others(
    door: Door, by: str, bind: bool, binding: str
) -> None:
    mine = await register(door, "a", agentName="a", agentRole="outbound", metadata={"mine": 1}, owner="sales")
    door.world.advance(600)

    told = await register(door, by, agentName="a", bindKey=bind, metadata={"theirs": 1}, owner="nobody")
    kept = (await door.get(f"/v1/agent/agents/{mine['id']}")).json()

    assert (told["apiKeyBinding"], told["refreshed"], told["id"]) == (binding, False, mine["id"])
    names = ("agentRole", "metadata", "owner", "lastHeartbeat")
    assert [kept[name] for name in names] == [mine[name] for name in names]


@pytest.mark.parametrize("by", ["a", "operator"])
async def test_its_own_key_and_a_person_refresh_it(door: Door, by: str) -> None:
    first = await register(door, "a", agentName="a")
    door.world.advance(600)

    told = await register(door, by, agentName="a", metadata={"new": 1})

    assert "refreshed" not in told
    assert told["metadata"] == {"new": 1}
    assert told["lastHeartbeat"] > first["lastHeartbeat"]


async def test_a_key_of_another_agent_is_never_pointed_elsewhere(door: Door) -> None:
    body = await register(door, by="a", bindKey=True)

    assert (body["apiKeyBinding"], body["boundToAgentId"]) == ("bound_to_other_agent", door.world.agent["a"])


async def test_an_agent_that_has_a_key_takes_no_second_one_this_way(door: Door) -> None:
    body = await register(door, agentName="a", bindKey=True)

    assert (body["id"], body["apiKeyBinding"]) == (door.world.agent["a"], "agent_has_other_key")


async def test_only_true_binds(door: Door) -> None:
    assert (await register(door, bindKey=False))["apiKeyBinding"] == "not_requested"
    assert faults(await door.post(REGISTER, {"agentName": "x", "bindKey": 1})) == ["bindKey"]
    assert faults(await door.post(REGISTER, {"agentName": "x", "bindKey": "true"})) == ["bindKey"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, ["agentName"]),
        ({"agentName": ""}, ["agentName"]),
        ({"agentName": "x" * 129}, ["agentName"]),
        ({"agentName": " x"}, ["agentName"]),
        ({"agentName": "a\nb"}, ["agentName"]),
        ({"agentName": "a\u0000b"}, ["agentName"]),
        ({"agentName": 5}, ["agentName"]),
        ({"agentName": "agent_1f3c9a2b7d4e"}, ["agentName"]),
        ({"agentName": "Agent_1F"}, ["agentName"]),
        ({"agentName": "x", "agentRole": ""}, ["agentRole"]),
        ({"agentName": "x", "metadata": []}, ["metadata"]),
        ({"agentName": "x", "metadata": {"a": "b\u0000"}}, ["metadata"]),
        ({"agentName": "x", "metadata": {"a\u0000": "b"}}, ["metadata"]),
        ({"agentName": "x", "metadata": {"a": "x" * 20_000}}, ["metadata"]),
        ({"agentName": "x", "name": "y"}, ["name"]),
    ],
)
async def test_a_malformed_registration_is_refused_by_name(wire: Door, body: dict[str, Any], named: list[str]) -> None:
    assert faults(await wire.post(REGISTER, body)) == named


async def test_another_tenant_is_refused(wire: Door) -> None:
    problem(await wire.post(REGISTER, {"agentName": "x", "tenantId": "other"}), 403, "tenant_mismatch")
