"""As which agent a key acts: bound, pointed elsewhere and let go by an operator; rotated while its mail waits."""

from typing import Any

import httpx
import pytest

from gateway.core.delivery import State
from gateway.store import keys
from gateway.store.tx import Tx
from tests.doors.door import Door, faults, problem
from tests.world import BOXES, TENANT

KEYS = "/v1/agent/keys"
WHOAMI = "/v1/agent/whoami"


def path(door: Door, name: str) -> str:
    return f"{KEYS}/{door.ids.get(name, name)}/bind"


async def bind(door: Door, name: str, agent: str, *, by: str = "operator", **more: Any) -> httpx.Response:
    return await door.post(path(door, name), {"agentName": agent} | more, by=by)


async def agent_of(door: Door, name: str) -> str | None:
    found: str | None = (await door.get(WHOAMI, by=name)).json()["agent_id"]
    return found


def told(door: Door, name: str) -> list[str]:
    return [str(row) for row in door.world.rows()["events"] if name in row]


async def test_an_operator_binds_a_free_key_by_name_or_id(door: Door) -> None:
    await door.get(WHOAMI, by="free")

    bound = (await bind(door, "free", "c", reason="it is its key")).json()

    assert (bound["id"], bound["apiKeyBinding"]) == (door.ids["free"], "bound")
    assert bound["agentId"] == door.world.agent["c"] == await agent_of(door, "free")
    again = await door.post(path(door, "free"), {"agentId": door.world.agent["c"]}, by="operator")
    assert again.json()["apiKeyBinding"] == "already_bound"
    (event,) = told(door, "key.bound")
    assert door.ids["free"] in event
    assert "it is its key" in event
    assert door.keys["free"] not in event


async def test_an_operator_points_a_bound_key_to_another_agent_and_mail_stays_with_the_first(door: Door) -> None:
    sent = await door.accepted()

    bound = (await bind(door, "a", "c")).json()

    assert (bound["agentId"], bound["apiKeyBinding"]) == (door.world.agent["c"], "bound")
    assert await agent_of(door, "a") == door.world.agent["c"]
    assert door.world.record(sent["requestId"]).agent == door.world.agent["a"]
    assert door.world.agent["a"] in told(door, "key.bound")[0]


async def test_a_key_that_was_let_go_acts_as_nobody_and_its_agent_can_be_named(door: Door) -> None:
    problem(await door.send(by="free", headers={"X-Agent-Id": "a"}), 403, "agent_bound_to_key")

    gone = (await door.call("DELETE", path(door, "a"), by="operator")).json()
    again = (await door.call("DELETE", path(door, "a"), by="operator")).json()

    assert (gone["unbound"], gone["agentId"], again["unbound"]) == (True, None, False)
    assert await agent_of(door, "a") is None
    assert (await door.send(by="free", headers={"X-Agent-Id": "a"})).status_code == 200
    assert len(told(door, "key.unbound")) == 1


@pytest.mark.parametrize("by", ["a", "free", "manager"])
async def test_nobody_else_changes_a_binding_but_may_ask_for_it(door: Door, by: str) -> None:
    door.add_key("manager", scopes=("manage",))

    asked = problem(await bind(door, "free", "c", by=by), 403, "human_decision_required")
    freed = problem(await door.call("DELETE", path(door, "b"), by=by), 403, "human_decision_required")

    assert (asked["kind"], asked["id"], asked["loosens"]) == ("api-key", door.ids["free"], ["agent"])
    assert freed["id"] == door.ids["b"]
    assert (await agent_of(door, "free"), await agent_of(door, "b")) == (None, door.world.agent["b"])
    done = await door.post(asked["decisionUrl"], {"decision": "confirm"}, by="operator")
    assert done.json()["result"]["body"]["agentId"] == door.world.agent["c"]
    assert await agent_of(door, "free") == door.world.agent["c"]


async def test_an_operator_of_one_mailbox_binds_no_wider_key(door: Door) -> None:
    door.add_key("local", scopes=keys.SCOPES, mailboxes=(door.world.box[BOXES[1]].id,))
    door.add_key("small", mailboxes=(door.world.box[BOXES[1]].id,))

    problem(await bind(door, "free", "c", by="local"), 403, "human_decision_required")
    assert (await bind(door, "small", "c", by="local")).json()["agentId"] == door.world.agent["c"]


async def test_what_is_not_there_is_not_bound(door: Door) -> None:
    await door.call("DELETE", f"{KEYS}/{door.ids['b']}", by="operator")

    problem(await bind(door, "free", "nobody"), 404, "agent_not_found")
    for name in ("key_nowhere", "b", "%00"):
        problem(await bind(door, name, "c"), 404, "key_not_found")
        problem(await door.call("DELETE", path(door, name), by="operator"), 404, "key_not_found")
    problem(await bind(door, "free", "c", agentId=door.world.agent["a"]), 403, "agent_mismatch")
    assert faults(await door.post(path(door, "free"), {}, by="operator")) == ["agentName"]


async def test_a_node_that_still_believes_the_old_binding_sends_as_nobody_else(door: Door) -> None:
    await door.get(WHOAMI)  # believed for a second

    def elsewhere(tx: Tx) -> None:
        keys.bind_key(tx, TENANT, door.ids["a"], door.world.agent["c"])

    door.world.store.write((TENANT,), elsewhere)

    refused = (await door.send()).json()

    assert (refused["status"], refused["reason"]) == ("blocked", "sender_not_allowed")


async def test_what_becomes_of_keys_is_told_without_their_secrets(door: Door) -> None:
    made = (await door.post(KEYS, {"label": "second", "agentName": "a"}, by="operator")).json()
    await door.call("DELETE", f"{KEYS}/{made['id']}", by="operator")
    await door.call("DELETE", f"{KEYS}/{made['id']}", by="operator")

    (created,) = [event for event in told(door, "key.created") if made["id"] in event]
    (revoked,) = told(door, "key.revoked")
    for event in (created, revoked):
        assert made["id"] in event
        assert door.world.agent["a"] in event
        assert f"key:{door.ids['operator']}" in event
    assert made["rawKey"] not in str(door.world.rows())


# --- rotation --------------------------------------------------------------------------------------------------------


async def test_an_agent_makes_its_second_key_and_ends_its_first(door: Door) -> None:
    door.add_key("old", scopes=("manage",), agent="a")

    made = (await door.post(KEYS, {"label": "new", "scopes": ["manage"], "agentName": "a"}, by="old")).json()
    ended = (await door.call("DELETE", f"{KEYS}/{door.ids['old']}", by="old")).json()

    assert (made["agentId"], made["scopes"]) == (door.world.agent["a"], ["manage"])
    assert ended["revoked"] is True
    assert await agent_of(door, made["rawKey"]) == door.world.agent["a"]
    problem(await door.get(WHOAMI, by="old"), 401, "unauthorized")


async def test_an_agents_key_is_rotated_while_its_mail_is_queued(door: Door) -> None:
    await door.world.pause_relay()
    before = [await door.accepted(to=[f"p{n}@example.net"], idempotencyKey=f"k{n}") for n in range(3)]
    lease = (await door.post("/v1/agent/coordination/lease", {"contactEmail": "p0@example.net"})).json()

    new = (await door.post(KEYS, {"label": "new", "agentName": "a"}, by="operator")).json()["rawKey"]
    revoked = (await door.call("DELETE", f"{KEYS}/{door.ids['a']}?queued=keep", by="operator")).json()

    assert revoked["cancelled"] == []
    problem(await door.send(to=["p9@example.net"], idempotencyKey="k9"), 401, "unauthorized")
    again = await door.accepted(to=["p1@example.net"], idempotencyKey="k1", by=new)
    assert (again["requestId"], again["replayed"]) == (before[1]["requestId"], True)
    assert (await door.post("/v1/agent/coordination/lease", {"contactEmail": "p0@example.net"}, by=new)).json()[
        "fencingToken"
    ] == lease["fencingToken"]
    await door.world.pause_relay(paused=False)
    claims = await door.world.claim()
    assert sorted(claim.send for claim in claims) == sorted(one["requestId"] for one in before)
    for claim in claims:
        await door.world.relay(claim)
    for one in before:
        record = door.world.record(one["requestId"])
        assert record.agent == door.world.agent["a"]
        assert [delivery.state for delivery in record.deliveries] == [State.RELAYED]
