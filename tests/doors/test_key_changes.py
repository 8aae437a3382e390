"""Keys that are narrowed, limited and used: who may do it, what is shown of it."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from gateway.store import key_uses, keys
from gateway.store.keys import Change
from gateway.store.tx import Tx
from tests.doors.door import Door, faults, problem
from tests.world import BOXES, TENANT

KEYS = "/v1/agent/keys"
WHOAMI = "/v1/agent/whoami"


async def change(door: Door, name: str, by: str, **changes: Any) -> httpx.Response:
    return await door.call("PATCH", f"{KEYS}/{door.ids.get(name, name)}", changes, by=by)


async def made(door: Door, by: str, **wish: Any) -> dict[str, Any]:
    answer = await door.post(KEYS, {"label": "made"} | wish, by=by)
    assert answer.status_code == 200, answer.text
    key: dict[str, Any] = answer.json()
    door.keys[key["id"]], door.ids[key["id"]] = key["rawKey"], key["id"]
    return key


async def test_a_key_narrows_itself_and_has_less_at_once(door: Door) -> None:
    box = door.world.box[BOXES[1]].id
    await door.post(WHOAMI)

    answer = await change(door, "a", "a", scopes=["send"], mailboxes=[BOXES[1]])

    told = answer.json()
    assert (told["scopes"], told["mailboxes"], told["scopeAllMailboxes"]) == (["send"], [box], False)
    assert told["mailboxScopes"] == [{"mailboxId": box, "permissions": ["send"]}]
    assert (await door.post(WHOAMI)).json()["scopes"] == ["send"]
    problem(await door.get("/v1/suppressions"), 403, "insufficient_scope")
    problem(await door.send(**{"from": BOXES[0]}), 403, "mailbox_scope_denied")
    assert (await door.send(**{"from": BOXES[1]})).status_code == 200


@pytest.mark.parametrize(
    "wider",
    [{"scopes": ["send", "manage"]}, {"scopeAllMailboxes": True}, {"mailboxes": [BOXES[0]]}, {"transactional": True}],
)
async def test_no_key_widens_itself(door: Door, wider: dict[str, Any]) -> None:
    door.add_key("small", mailboxes=(door.world.box[BOXES[1]].id,))

    problem(await change(door, "small", "small", **wider), 403, "human_decision_required")

    told = (await door.post(WHOAMI, by="small")).json()
    assert (told["scopes"], told["transactional"], len(told["mailboxes"])) == (["read", "send"], False, 1)


async def test_a_key_narrows_one_that_it_has_made_and_no_other(door: Door) -> None:
    door.add_key("manager", scopes=("manage",))
    inner = await made(door, "manager")

    assert inner["createdByKeyId"] == door.ids["manager"]
    assert (await change(door, inner["id"], "manager", scopes=["read"])).json()["scopes"] == ["read"]
    problem(await change(door, inner["id"], "manager", scopes=["read", "send"]), 403, "human_decision_required")
    problem(await change(door, "free", "manager", scopes=["read"]), 403, "human_decision_required")


async def test_an_operator_widens_within_their_own_reach(door: Door) -> None:
    assert (await change(door, "a", "operator", scopes=["manage"])).json()["scopes"] == ["manage"]

    door.add_key("local", scopes=keys.SCOPES, mailboxes=(door.world.box[BOXES[1]].id,))
    problem(await change(door, "b", "local", mailboxes=[BOXES[1]]), 403, "human_decision_required")


async def test_the_last_operator_key_cannot_be_made_less(door: Door) -> None:
    problem(await change(door, "operator", "operator", scopes=["read"]), 409, "last_operator_key")


async def test_a_key_that_is_not_there_or_is_revoked_cannot_be_changed(door: Door) -> None:
    await door.call("DELETE", f"{KEYS}/{door.ids['free']}", by="operator")

    for name in ("key_nowhere", "free", "%00"):
        problem(await change(door, name, "operator", label="x"), 404, "key_not_found")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({}, ["label"]),
        ({"label": None}, ["label"]),
        ({"scopes": []}, ["scopes"]),
        ({"scopes": ["read"], "mailboxScopes": [{"mailboxId": "x", "permissions": ["send"]}]}, ["scopes"]),
        ({"mailboxes": ["x"], "mailboxScopes": [{"mailboxId": "x", "permissions": ["send"]}]}, ["mailboxes"]),
        ({"scopeAllMailboxes": True, "mailboxes": ["x"]}, ["mailboxes"]),
        ({"mailboxScopes": [{"mailboxId": "x", "permissions": ["operator"]}]}, ["mailboxScopes[0].permissions[0]"]),
        ({"mailboxScopes": [{"mailboxId": "x"}]}, ["mailboxScopes[0].permissions"]),
        ({"requestsPerMinute": 0}, ["requestsPerMinute"]),
        ({"requestsPerMinute": True}, ["requestsPerMinute"]),
        ({"agentId": "x"}, ["agentId"]),
    ],
)
async def test_a_malformed_change_is_refused_by_name(wire: Door, changes: dict[str, Any], named: list[str]) -> None:
    answer = await change(wire, "a", "operator", **changes)

    assert faults(answer)[: len(named)] == named


async def test_mailbox_scopes_are_one_way_to_say_scopes_and_mailboxes(door: Door) -> None:
    boxes = [door.world.box[name].id for name in BOXES]
    each = [{"mailboxId": box, "permissions": ["read", "send"]} for box in boxes]

    key = await made(door, "operator", mailboxScopes=each)

    assert (key["scopes"], key["mailboxes"], key["mailboxScopes"]) == (["read", "send"], boxes, each)
    uneven = [{"mailboxId": boxes[0], "permissions": ["send"]}, {"mailboxId": boxes[1], "permissions": ["read"]}]
    assert faults(await door.post(KEYS, {"label": "x", "mailboxScopes": uneven}, by="operator")) == ["mailboxScopes"]


async def test_a_change_is_in_the_audit(door: Door) -> None:
    await change(door, "a", "operator", scopes=["read"])

    (event,) = [row for row in door.world.rows()["events"] if "key.changed" in row]
    assert any(door.ids["a"] in str(value) for value in event)
    assert f"key:{door.ids['operator']}" in event


# --- last use ---------------------------------------------------------------------------------------------------------


async def used(door: Door, name: str) -> str | None:
    listed = (await door.get(KEYS, by="operator")).json()
    at: str | None = next(one["lastUsedAt"] for one in listed if one["id"] == door.ids[name])
    return at


async def test_the_last_use_is_written_down_once_a_minute_and_shown(door: Door) -> None:
    await door.get(WHOAMI)
    before = await used(door, "a")
    await door.context.auth.uses.flush()

    first = await used(door, "a")

    assert before is None
    assert first is not None
    assert await used(door, "b") is None
    door.clock.now += 2
    assert (await door.get(WHOAMI)).json()["last_used_at"] == first


async def test_a_use_counts_from_when_it_was_and_never_backwards(door: Door) -> None:
    auth = door.context.auth
    await door.get(WHOAMI)
    await auth.uses.flush()
    first = await used(door, "a")

    door.world.store.write((TENANT,), lambda tx: key_uses.note_uses(tx, {(TENANT, door.ids["a"]): 3600.0}))

    assert await used(door, "a") == first


async def test_uses_that_the_store_cannot_take_are_kept_for_the_next_time(
    wire: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gateway.core.errors import StoreUnavailableError

    def down(*_: object) -> None:
        raise StoreUnavailableError("down")

    await wire.get(WHOAMI)
    with monkeypatch.context() as patched:
        patched.setattr(wire.context.store, "write", down)
        await wire.context.auth.uses.flush()

    await wire.context.auth.uses.flush()

    assert await used(wire, "a") is not None


async def test_a_request_waits_for_no_writing_down(wire: Door) -> None:
    groups = wire.world.nodes[0].writer.groups

    for _ in range(5):
        await wire.get(WHOAMI)

    assert wire.world.nodes[0].writer.groups == groups
    assert await used(wire, "a") is None


LESS: dict[str, dict[str, Any]] = {"narrowed": {"scopes": frozenset({"read"})}, "limited": {"per_minute": 5}}


@pytest.mark.parametrize("late", ["makes a key", "changes one"])
@pytest.mark.parametrize(("become", "status"), [("revoked", 401), ("narrowed", 403), ("limited", 403), ("bound", 403)])
async def test_a_key_that_has_just_become_less_elsewhere_gives_nothing_away(
    door: Door, become: str, status: int, late: str
) -> None:
    door.add_key("maker", scopes=("manage",))
    own, child = door.ids["maker"], (await made(door, "maker"))["id"]  # the maker is believed here for a second

    def elsewhere(tx: Tx) -> None:
        if become == "revoked":
            keys.revoke_key(tx, TENANT, own)
        elif become == "bound":
            keys.bind_key(tx, TENANT, own, door.world.agent["a"])
        else:
            keys.change_keys(tx, [Change(TENANT, own, "store", lambda key: replace(key, **LESS[become]))])

    door.world.store.write((TENANT,), elsewhere)
    before = door.world.rows()["api_keys"]
    if late == "makes a key":
        answer = await door.post(KEYS, {"label": "late"}, by="maker")
    else:
        answer = await change(door, child, "maker", label="late")

    assert answer.status_code == status
    assert door.world.rows()["api_keys"] == before
