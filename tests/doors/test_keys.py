"""Keys over HTTP: who am I, make, list, revoke; nobody gives away more than their own key can do."""

from typing import Any

import pytest

from gateway.core.delivery import State
from gateway.store import agents, keys
from gateway.store.agents import Register
from tests.doors.door import Door, faults, problem
from tests.world import BOXES, TENANT

KEYS = "/v1/agent/keys"
WHOAMI = "/v1/agent/whoami"


@pytest.mark.parametrize("body", [None, {}, {"tenantId": TENANT}])
async def test_a_key_is_told_what_it_is(door: Door, body: dict[str, str] | None) -> None:
    answer = await door.post(WHOAMI, body)

    told = answer.json()
    assert (told["tenant_id"], told["key_id"], told["agent_id"]) == (TENANT, door.ids["a"], door.world.agent["a"])
    assert told["key_prefix"] == door.keys["a"][: keys.PREFIX_LENGTH]
    assert (told["scopes"], told["scope_all_mailboxes"]) == (["read", "send"], True)
    assert sorted(box["address"] for box in told["mailboxes"]) == sorted(BOXES)
    assert door.keys["a"] not in answer.text


async def test_who_am_i_takes_nothing_else(wire: Door) -> None:
    assert faults(await wire.post(WHOAMI, {"x": 1})) == ["x"]
    problem(await wire.post(WHOAMI, {"tenantId": "other"}), 403, "tenant_mismatch")


async def test_a_key_is_made_shown_once_and_works(door: Door) -> None:
    made = (await door.post(KEYS, {"label": "new", "scopes": ["send"], "mailboxes": [BOXES[1]]}, by="operator")).json()

    told = (await door.post(WHOAMI, by=made["rawKey"])).json()
    listed = await door.get(KEYS, by="operator")

    assert made["rawKey"].startswith(made["keyPrefix"])
    assert (made["status"], made["scopeAllMailboxes"], made["label"]) == ("active", False, "new")
    assert made["mailboxes"] == [door.world.box[BOXES[1]].id]
    assert (told["key_id"], told["scopes"]) == (made["id"], ["send"])
    assert {name: value for name, value in made.items() if name != "rawKey"} in listed.json()
    assert made["rawKey"] not in listed.text


async def test_a_second_key_is_bound_to_an_agent_by_its_name(door: Door) -> None:
    made = (await door.post(KEYS, {"label": "second", "agentName": "a"}, by="operator")).json()

    assert made["agentId"] == door.world.agent["a"]
    assert (await door.post(WHOAMI, by=made["rawKey"])).json()["agent_id"] == door.world.agent["a"]


async def test_a_manager_makes_keys_within_its_own_scope(door: Door) -> None:
    door.add_key("manager", scopes=("manage",), mailboxes=(door.world.box[BOXES[1]].id,))

    made = (await door.post(KEYS, {"label": "inner"}, by="manager")).json()

    assert (made["mailboxes"], made["scopes"]) == ([door.world.box[BOXES[1]].id], ["read", "send"])


@pytest.mark.parametrize(
    "wider",
    [
        {"scopes": ["operator"]},
        {"mailboxes": [BOXES[0]]},
        {"scopeAllMailboxes": True},
        {"transactional": True},
    ],
)
async def test_nobody_gives_away_more_than_they_have(door: Door, wider: dict[str, Any]) -> None:
    door.add_key("manager", scopes=("manage",), mailboxes=(door.world.box[BOXES[1]].id,))

    problem(await door.post(KEYS, {"label": "outer"} | wider, by="manager"), 403, "human_decision_required")


async def test_a_manager_binds_no_key_to_anothers_agent(door: Door) -> None:
    door.add_key("manager", scopes=("manage",))

    problem(await door.post(KEYS, {"label": "x", "agentName": "a"}, by="manager"), 403, "agent_bound_to_key")
    assert (await door.post(KEYS, {"label": "x", "agentName": "c"}, by="manager")).status_code == 200


async def test_a_bound_key_cannot_get_rid_of_its_agent_by_a_key_that_it_makes(door: Door) -> None:
    door.add_key("bound", agent="a", scopes=("manage",))

    made = (await door.post(KEYS, {"label": "x"}, by="bound")).json()

    assert made["agentId"] == door.world.agent["a"]
    assert (await door.post(KEYS, {"label": "x", "agentName": "a"}, by="bound")).json()["agentId"] == made["agentId"]
    problem(await door.post(KEYS, {"label": "x", "agentName": "c"}, by="bound"), 403, "human_decision_required")


async def test_a_persons_bound_key_makes_keys_for_whom_it_likes(door: Door) -> None:
    door.add_key("person", agent="a", scopes=keys.SCOPES)

    assert (await door.post(KEYS, {"label": "x"}, by="person")).json()["agentId"] is None
    assert (await door.post(KEYS, {"label": "x", "agentName": "c"}, by="person")).status_code == 200


async def test_what_a_key_is_to_be_for_must_be_there(door: Door) -> None:
    problem(await door.post(KEYS, {"label": "x", "agentName": "nobody"}, by="operator"), 404, "agent_not_found")
    for name in ("mbx_nowhere", "nobody@example.net", "x y"):
        problem(await door.post(KEYS, {"label": "x", "mailboxes": [name]}, by="operator"), 403, "mailbox_not_owned")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"label": ""}, ["label"]),
        ({"label": "a\nb"}, ["label"]),
        ({"label": None}, ["label"]),
        ({"scopes": []}, ["scopes"]),
        ({"scopes": ["admin"]}, ["scopes[0]"]),
        ({"scopes": "read"}, ["scopes"]),
        ({"mailboxes": []}, ["mailboxes"]),
        ({"scopeAllMailboxes": False}, ["mailboxes"]),
        ({"scopeAllMailboxes": True, "mailboxes": ["x"]}, ["mailboxes"]),
        ({"mailboxScopes": [{"mailboxId": "x", "permissions": ["admin"]}]}, ["mailboxScopes[0].permissions[0]"]),
        ({"transactional": "yes"}, ["transactional"]),
        ({"rawKey": "gk_live_x"}, ["rawKey"]),
    ],
)
async def test_a_malformed_wish_for_a_key_is_refused_by_name(
    wire: Door, changes: dict[str, Any], named: list[str]
) -> None:
    assert faults(await wire.post(KEYS, {"label": "x"} | changes, by="operator")) == named


async def test_only_a_key_for_all_mailboxes_lists_keys(door: Door) -> None:
    door.add_key("manager", scopes=("manage",), mailboxes=(door.world.box[BOXES[1]].id,))

    problem(await door.get(KEYS, by="manager"), 403, "mailbox_scope_denied")


@pytest.mark.parametrize(("queued", "left"), [("keep", State.QUEUED), ("cancel", State.CANCELLED)])
async def test_a_revoked_keys_mail_is_kept_or_cancelled(door: Door, queued: str, left: State) -> None:
    sent = await door.accepted()

    answer = await door.call("DELETE", f"{KEYS}/{door.ids['a']}", by="operator", params={"queued": queued})

    body = answer.json()
    assert (body["status"], body["cancelled"]) == ("revoked", [] if queued == "keep" else [sent["requestId"]])
    assert door.world.states(sent["requestId"]) == [left]
    problem(await door.send(), 401, "unauthorized")


async def test_a_manager_revokes_itself_and_keys_that_it_has_made_and_no_other(door: Door) -> None:
    door.add_key("manager", scopes=("manage",))
    made = (await door.post(KEYS, {"label": "made"}, by="manager")).json()["id"]

    for other in ("operator", "free"):
        path = f"{KEYS}/{door.ids[other]}"
        problem(await door.call("DELETE", path, by="manager"), 403, "human_decision_required")
    assert (await door.call("DELETE", f"{KEYS}/{made}", by="manager")).status_code == 200
    assert (await door.call("DELETE", f"{KEYS}/{door.ids['manager']}", by="manager")).status_code == 200


async def test_the_last_operator_key_stays(door: Door) -> None:
    problem(await door.call("DELETE", f"{KEYS}/{door.ids['operator']}", by="operator"), 409, "last_operator_key")


async def test_a_key_that_is_not_there_is_told_so(door: Door) -> None:
    problem(await door.call("DELETE", f"{KEYS}/key_nowhere", by="operator"), 404, "key_not_found")
    problem(await door.call("DELETE", f"{KEYS}/%00", by="operator"), 404, "key_not_found")
    answer = await door.call("DELETE", f"{KEYS}/{door.ids['free']}?queued=maybe", by="operator")
    assert faults(answer) == ["queued"]


async def test_agents_are_listed_with_what_they_said_of_themselves(door: Door) -> None:
    wish = Register(TENANT, "d", "inbound", {"model": "x"})
    door.world.store.write((TENANT,), lambda tx: agents.register(tx, [wish]))

    listed = (await door.get("/v1/agent/agents")).json()

    assert {one["agentName"] for one in listed} == {"a", "b", "c", "d"}
    (last,) = [one for one in listed if one["agentName"] == "d"]
    assert (last["agentRole"], last["metadata"], last["tenantId"]) == ("inbound", {"model": "x"}, TENANT)
