"""An agent's config, the tenant's humanizer, and the owner of an agent: kept for programs that do what this gateway does not."""

from typing import Any

import httpx
import pytest

from tests.doors.door import Door, faults, problem
from tests.world import BOXES, TENANT

AGENTS = "/v1/agent/agents"
HUMANIZER = "/v1/agent/config/humanizer"
HUMAN = "human_decision_required"
ANTHROPIC = {"humanizer_provider": "anthropic"}


def path(who: str) -> str:
    return f"{AGENTS}/{who}/config"


@pytest.fixture
def door(door: Door) -> Door:
    """With a key that manages all, and one that is bound to agent a."""
    door.add_key("all", scopes=("manage",))
    door.add_key("own", scopes=("manage",), agent="a")
    return door


async def put(door: Door, who: str = "c", *, by: str = "operator", **config: Any) -> httpx.Response:
    return await door.call("PUT", path(who), config, by=by)


async def changed(door: Door, who: str = "c", *, by: str = "operator", **config: Any) -> dict[str, Any]:
    answer = await put(door, who, by=by, **config)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def config(door: Door, who: str = "c") -> dict[str, Any]:
    body: dict[str, Any] = (await door.get(path(who))).json()
    return body


async def test_a_config_is_empty_then_merged_and_read_by_id_or_name(door: Door) -> None:
    assert await config(door) == {}

    first = await changed(door, humanizer_enabled=True, humanizer_style="friendly")
    second = await changed(door, humanizer_style="casual")

    agent = door.world.agent["c"]
    assert first == {
        "agentId": agent,
        "config": {"humanizer_enabled": True, "humanizer_style": "friendly"} | ANTHROPIC,
        "updated": True,
    }
    merged = {"humanizer_enabled": True, "humanizer_style": "casual"} | ANTHROPIC
    assert second["config"] == merged == await config(door, agent) == await config(door, "c")


async def test_a_provider_is_no_choice(door: Door) -> None:
    told = await changed(door, humanizer_provider="openai", by="all")

    assert (told["config"], told["warnings"]) == (ANTHROPIC, ["humanizer_provider_ignored"])
    assert await config(door) == ANTHROPIC


async def test_other_keys_are_dropped_beside_one_that_is_known(door: Door) -> None:
    told = await changed(door, humanizer_enabled=False, temperature=5, tenantId=TENANT)

    assert told["config"] == {"humanizer_enabled": False} | ANTHROPIC


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, ["humanizer_enabled"]),
        ({"temperature": 5}, ["humanizer_enabled"]),
        ({"humanizer_enabled": "yes"}, ["humanizer_enabled"]),
        ({"humanizer_enabled": None}, ["humanizer_enabled"]),
        ({"humanizer_style": "rude"}, ["humanizer_style"]),
        ({"humanizer_provider": 5}, ["humanizer_provider"]),
    ],
)
async def test_a_malformed_config_is_refused_by_name(wire: Door, body: dict[str, Any], named: list[str]) -> None:
    assert faults(await wire.call("PUT", path("c"), body, by="operator")) == named


async def test_an_unknown_agent_is_not_found(door: Door) -> None:
    for who in ("nobody", "agent_000000000000", "%00"):
        problem(await door.get(path(who)), 404, "agent_not_found")
        problem(await put(door, who, humanizer_enabled=False), 404, "agent_not_found")


async def test_a_change_counts_as_a_heartbeat_and_is_told(door: Door) -> None:
    before = (await door.get(f"{AGENTS}/c")).json()["lastHeartbeat"]
    door.world.advance(60)

    await changed(door, humanizer_enabled=False, by="all")
    await changed(door, humanizer_enabled=False, by="all")

    assert (await door.get(f"{AGENTS}/c")).json()["lastHeartbeat"] > before
    (event,) = [str(row) for row in door.world.rows()["events"] if "agent.changed" in row]
    assert "humanizer_enabled" in event
    assert door.world.agent["c"] in event


async def test_config_owner_and_allow_list_leave_each_other_alone(door: Door) -> None:
    await door.post("/v1/agent/register", {"agentName": "c", "owner": "the sales desk"}, by="free")
    await changed(door, humanizer_enabled=False)
    allowed = {"allowedRecipientDomains": ["example.net"]}
    await door.call("PATCH", f"{AGENTS}/c", allowed, by="operator")
    await changed(door, humanizer_style="casual")
    await door.post("/v1/agent/register", {"agentName": "c"}, by="free")

    shown = (await door.get(f"{AGENTS}/c")).json()

    assert (shown["owner"], shown["allowedRecipientDomains"]) == ("the sales desk", ["example.net"])
    assert await config(door) == {"humanizer_enabled": False, "humanizer_style": "casual"} | ANTHROPIC


async def test_an_owner_is_shown_and_may_be_named_anew(door: Door) -> None:
    first = (await door.post("/v1/agent/register", {"agentName": "x", "owner": "desk one"}, by="free")).json()
    second = (await door.post("/v1/agent/register", {"agentName": "x", "owner": "desk two"}, by="free")).json()
    none = (await door.post("/v1/agent/register", {"agentName": "y"}, by="free")).json()

    assert (first["owner"], second["owner"], none["owner"]) == ("desk one", "desk two", None)
    assert faults(await door.post("/v1/agent/register", {"agentName": "x", "owner": ""}, by="free")) == ["owner"]


# --- who may ---------------------------------------------------------------------------------------------------------


async def test_turning_it_on_needs_a_person_and_turning_it_off_nobody(door: Door) -> None:
    refused = problem(await put(door, by="all", humanizer_enabled=True), 403, HUMAN)
    assert await config(door) == {}
    done = await door.post(refused["decisionUrl"], {"decision": "confirm"}, by="operator")
    off = await changed(door, by="all", humanizer_enabled=False)

    assert (refused["kind"], refused["id"]) == ("humanizer", door.world.agent["c"])
    assert refused["loosens"] == ["humanizer_enabled"]
    assert done.json()["result"]["body"]["config"]["humanizer_enabled"] is True
    assert off["config"]["humanizer_enabled"] is False
    problem(await put(door, by="all", humanizer_enabled=True), 403, HUMAN)


async def test_a_style_is_an_agents_to_change_only_while_it_is_off(door: Door) -> None:
    await changed(door, by="all", humanizer_style="casual")
    await changed(door, humanizer_enabled=True)

    refused = problem(await put(door, by="all", humanizer_style="friendly"), 403, HUMAN)

    assert refused["loosens"] == ["humanizer_style"]
    await changed(door, by="all", humanizer_enabled=True, humanizer_style="casual")  # as it is
    await changed(door, by="all", humanizer_enabled=False, humanizer_style="friendly")


async def test_a_style_of_an_agent_counts_where_the_tenants_humanizer_is_on(door: Door) -> None:
    await door.call("PUT", HUMANIZER, {"enabled": True}, by="operator")

    problem(await put(door, by="all", humanizer_style="friendly"), 403, HUMAN)


async def test_a_bound_key_changes_its_own_agents_config_alone(door: Door) -> None:
    await changed(door, "a", by="own", humanizer_enabled=False)

    refused = problem(await put(door, "c", by="own", humanizer_enabled=False), 403, "agent_mismatch")

    assert refused["keyAgentId"] == door.world.agent["a"]
    problem(await put(door, "a", by="a", humanizer_enabled=False), 403, "insufficient_scope")
    door.add_key("local", scopes=("manage",), mailboxes=(door.world.box[BOXES[1]].id,))
    problem(await put(door, by="local", humanizer_enabled=False), 403, "mailbox_scope_denied")


# --- the tenant's ----------------------------------------------------------------------------------------------------


async def test_the_tenants_humanizer_is_off_until_a_person_turns_it_on(door: Door) -> None:
    before = (await door.get(HUMANIZER)).json()
    refused = problem(await door.call("PUT", HUMANIZER, {"enabled": True}, by="all"), 403, HUMAN)
    on = {"enabled": True, "style": "casual", "provider": "openai"}

    told = (await door.call("PUT", HUMANIZER, on, by="operator")).json()

    assert before["effective"] == {"enabled": False, "style": "professional"}
    assert (before["enabled"], before["style"], before["provider"]) == (False, None, "anthropic")
    assert (refused["kind"], refused["id"], refused["loosens"]) == ("humanizer", TENANT, ["enabled"])
    assert told["effective"] == {"enabled": True, "style": "casual"}
    assert (told["provider"], told["updated"], told["warnings"]) == ("anthropic", True, ["humanizer_provider_ignored"])
    styled = {"enabled": True, "style": "friendly"}
    assert problem(await door.call("PUT", HUMANIZER, styled, by="all"), 403, HUMAN)["loosens"] == ["style"]
    off = (await door.call("PUT", HUMANIZER, {"enabled": False}, by="all")).json()
    assert off["effective"] == {"enabled": False, "style": "casual"}
    assert "warnings" not in off


async def test_what_holds_for_an_agent_is_shown(door: Door) -> None:
    await door.call("PUT", HUMANIZER, {"enabled": True, "style": "casual"}, by="operator")
    await changed(door, "b", humanizer_enabled=False)
    await changed(door, "c", humanizer_style="friendly")

    shown = [(await door.get(HUMANIZER, params={"agentId": who})).json()["effective"] for who in "abc"]

    assert [(one["enabled"], one["style"]) for one in shown] == [
        (True, "casual"),
        (False, "casual"),
        (True, "friendly"),
    ]
    problem(await door.get(HUMANIZER, params={"agentId": "nobody"}), 404, "agent_not_found")


async def test_the_tenants_settings_leave_its_humanizer_alone(door: Door) -> None:
    await door.call("PUT", HUMANIZER, {"enabled": True}, by="operator")
    await door.call("PATCH", "/v1/agent/config/settings", {"cooldownMinutes": 90}, by="operator")

    assert (await door.get(HUMANIZER)).json()["enabled"] is True
    assert faults(await door.call("PUT", HUMANIZER, {"style": "casual"}, by="operator")) == ["enabled"]
    assert len([row for row in door.world.rows()["events"] if "settings.changed" in row]) == 2
