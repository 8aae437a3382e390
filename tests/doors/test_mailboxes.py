"""Mailboxes over HTTP: made, changed, paused, resumed; what an agent may tighten and a person alone loosens."""

from typing import Any

import httpx
import pytest

from gateway.core.delivery import State
from gateway.store import agents
from gateway.store.tx import Tx
from tests.doors.door import Door, faults, problem
from tests.world import BOXES, PAT, TENANT

BOXES_PATH = "/v1/agent/mailboxes"
USUAL = {
    "demands": "",
    "mayReply": False,
    "transactional": False,
    "unknown": None,
    "cooldownMinutes": None,
    "allowedRecipientDomains": None,
}


MINE = {"from_": BOXES[0]}
OTHER = MINE | {
    "to": ["x@example.org"],
    "text": "something else altogether, for somebody else\n",
    "idempotencyKey": "2",
}


def path(door: Door, address: str = BOXES[0], act: str = "") -> str:
    return f"{BOXES_PATH}/{door.world.box[address].id}{act}"


async def made(door: Door, **changes: Any) -> dict[str, Any]:
    answer = await door.post(BOXES_PATH, {"address": "new@gw.example.com"} | changes, by="operator")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def patch(door: Door, by: str = "operator", to: str = "", **changes: Any) -> httpx.Response:
    return await door.call("PATCH", to or path(door), changes, by=by)


def manager(door: Door, **more: Any) -> str:
    door.add_key("manager", scopes=("manage",), **more)
    return "manager"


# --- make, list, show -------------------------------------------------------------------------------------------------


async def test_a_mailbox_is_shown_as_it_was_made_and_sends(door: Door) -> None:
    box = await made(door, displayName="The desk", mayReply=True)

    shown = await door.get(f"{BOXES_PATH}/{box['id']}")

    assert shown.json() == box
    assert box["config"] == {"mayReply": True}
    assert {name: box[name] for name in USUAL} == USUAL | {"mayReply": True}
    assert (box["address"], box["displayName"], box["status"]) == ("new@gw.example.com", "The desk", "active")
    assert box["tenantId"] == TENANT
    assert box["createdAt"] == box["updatedAt"]
    sent = await door.accepted(mailboxId=box["id"])
    assert b"From: The desk <new@gw.example.com>\r\n" in door.message(sent["requestId"])


async def test_mailboxes_are_listed_oldest_first_a_page_at_a_time(door: Door) -> None:
    box = await made(door)

    everything = (await door.get(BOXES_PATH)).json()
    first = (await door.get(BOXES_PATH, params={"limit": 2})).json()
    rest = (await door.get(BOXES_PATH, params={"limit": 2, "after": first[-1]["id"]})).json()

    assert {one["address"] for one in everything} == {*BOXES, "new@gw.example.com"}
    assert first + rest == everything
    assert rest == [box]
    problem(await door.get(BOXES_PATH, params={"after": "mbx_nowhere"}), 404, "mailbox_not_found")


async def test_an_address_has_one_mailbox(door: Door) -> None:
    box = await made(door)

    again = await door.post(BOXES_PATH, {"address": "NEW@gw.example.com"}, by="operator")

    assert problem(again, 409, "mailbox_exists")["mailboxId"] == box["id"]


async def test_another_tenants_address_is_taken_and_its_mailboxes_are_not_there(door: Door) -> None:
    def other(tx: Tx) -> agents.Mailbox:
        from gateway.core.address import parse

        return agents.add_mailbox(tx, "other", parse("theirs@other.example.org"))

    door.world.store.write((), lambda tx: agents.add_tenant(tx, "other"))
    theirs = door.world.store.write(("other",), other)

    taken = await door.post(BOXES_PATH, {"address": "theirs@other.example.org"}, by="operator")

    problem(taken, 409, "address_taken")
    for answer in (
        await door.get(f"{BOXES_PATH}/{theirs.id}"),
        await patch(door, to=f"{BOXES_PATH}/{theirs.id}", displayName="mine"),
        await door.post(f"{BOXES_PATH}/{theirs.id}/pause", by="operator"),
    ):
        problem(answer, 404, "mailbox_not_found")


async def test_an_agent_brings_no_new_domain_in_without_a_person(door: Door) -> None:
    by = manager(door)
    known = await door.post(BOXES_PATH, {"address": "more@gw.example.com"}, by=by)
    new = await door.post(BOXES_PATH, {"address": f"agent@{PAT.partition('@')[2]}"}, by=by)
    box = new.json()["id"]

    assert (known.json()["status"], new.json()["status"]) == ("active", "provisioning")
    refused = await door.send(mailboxId=box, by="operator")
    assert refused.json()["reason"] == "mailbox_not_active"
    settings = (await door.get("/v1/agent/config/settings")).json()
    assert settings["internalDomains"] == ["gw.example.com"]
    problem(await door.post(f"{BOXES_PATH}/{box}/pause", by="operator"), 400, "mailbox_not_active")
    problem(await patch(door, by, f"{BOXES_PATH}/{box}", status="active"), 403, "human_decision_required")
    assert (await patch(door, to=f"{BOXES_PATH}/{box}", status="active")).json()["status"] == "active"
    assert (await door.send(mailboxId=box, to=["x@example.org"], by="operator")).json()["status"] == "queued"


async def test_a_new_mailbox_with_loose_settings_is_a_persons_to_make(door: Door) -> None:
    by = manager(door)

    loose = await door.post(
        BOXES_PATH, {"address": "new@gw.example.com", "mayReply": True, "cooldownMinutes": 1}, by=by
    )
    tight = await door.post(BOXES_PATH, {"address": "new@gw.example.com", "config": {"demands": "token"}}, by=by)

    assert problem(loose, 403, "human_decision_required")["loosens"] == ["mayReply", "cooldownMinutes"]
    assert tight.json()["demands"] == "token"


async def test_a_key_sees_and_touches_only_its_own_mailboxes(door: Door) -> None:
    by = manager(door, mailboxes=(door.world.box[BOXES[1]].id,))

    listed = await door.get(BOXES_PATH, by=by)

    assert [one["address"] for one in listed.json()] == [BOXES[1]]
    problem(await door.get(path(door), by=by), 404, "mailbox_not_found")
    problem(await patch(door, by, displayName="x"), 404, "mailbox_not_found")
    problem(await door.post(path(door, act="/pause"), by=by), 404, "mailbox_not_found")
    problem(await door.post(BOXES_PATH, {"address": "new@gw.example.com"}, by=by), 403, "mailbox_scope_denied")
    assert (await door.post(path(door, BOXES[1], "/pause"), by=by)).status_code == 200
    assert (await door.get(path(door))).json()["status"] == "active"


# --- change -----------------------------------------------------------------------------------------------------------


async def test_a_change_touches_what_it_names_and_config_replaces_all(door: Door) -> None:
    door.world.advance(5)
    first = (await patch(door, displayName="Desk", demands="lease", cooldownMinutes=60)).json()
    second = (await patch(door, allowedRecipientDomains=["*@Example.NET", "*.example.org"])).json()
    third = (await patch(door, config={"unknown": {"reply": "assume_sent_after:1h"}})).json()
    fourth = (await patch(door, displayName=None, unknown=None)).json()

    assert first["config"] == {"demands": "lease", "mayReply": True, "cooldownMinutes": 60}
    assert second["config"] == first["config"] | {"allowedRecipientDomains": ["*.example.org", "example.net"]}
    assert third["config"] == {"unknown": {"reply": "assume_sent_after:1h"}}
    assert third["displayName"] == "Desk"
    assert (fourth["config"], fourth["displayName"]) == ({}, None)
    assert first["updatedAt"] > first["createdAt"]


@pytest.mark.parametrize(
    ("tight", "loose", "names"),
    [
        ({"demands": "lease"}, {"demands": ""}, ["demands"]),
        ({"demands": "both"}, {"demands": "lease"}, ["demands"]),
        ({"mayReply": False}, {"mayReply": True}, ["mayReply"]),
        ({"transactional": False}, {"transactional": True}, ["transactional"]),
        ({"unknown": "hold"}, {"unknown": "assume_sent_after:1h"}, ["unknown"]),
        ({"cooldownMinutes": 60}, {"cooldownMinutes": 59}, ["cooldownMinutes"]),
        ({"cooldownMinutes": 60}, {"cooldownMinutes": None}, ["cooldownMinutes"]),
        ({"cooldownMinutes": 10}, {"cooldownMinutes": 9}, ["cooldownMinutes"]),
        (
            {"allowedRecipientDomains": ["*.example.net"]},
            {"allowedRecipientDomains": ["*"]},
            ["allowedRecipientDomains"],
        ),
        ({"allowedRecipientDomains": []}, {"allowedRecipientDomains": None}, ["allowedRecipientDomains"]),
        ({"allowedRecipientDomains": ["a.example.net"]}, {"config": {"mayReply": True}}, ["allowedRecipientDomains"]),
    ],
)
async def test_who_manages_may_tighten_and_a_person_alone_loosens(
    door: Door, tight: dict[str, Any], loose: dict[str, Any], names: list[str]
) -> None:
    by = manager(door)
    problem(await patch(door, "a", **tight), 403, "insufficient_scope")

    tightened = await patch(door, by, **tight)
    loosened = await patch(door, by, **loose)

    assert tightened.status_code == 200, tightened.text
    body = problem(loosened, 403, "human_decision_required")
    assert (body["loosens"], body["kind"], body["id"]) == (names, "mailbox", door.world.box[BOXES[0]].id)
    assert (await door.get(path(door))).json() == {
        k: v for k, v in tightened.json().items() if k not in ("held", "released")
    }
    assert (await patch(door, **loose)).status_code == 200


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"address": "other@gw.example.com", "autonomy": "L1"}, ["address", "autonomy"]),
        ({"demand": "lease"}, ["demand"]),
        ({"demands": "everything", "mayReply": 1, "cooldownMinutes": 1.5}, ["demands", "mayReply", "cooldownMinutes"]),
        ({"cooldownMinutes": 1441}, ["cooldownMinutes"]),
        ({"cooldownMinutes": True}, ["cooldownMinutes"]),
        (
            {"allowedRecipientDomains": ["example.com", "*example.com", "a@b@c"]},
            ["allowedRecipientDomains[1]", "allowedRecipientDomains[2]"],
        ),
        ({"allowedRecipientDomains": "example.com"}, ["allowedRecipientDomains"]),
        ({"unknown": "retry"}, ["unknown"]),
        ({"unknown": {"outreach": "sometimes"}}, ["unknown.outreach"]),
        ({"unknown": {"letters": "hold"}}, ["unknown.letters"]),
        ({"unknown": "retry_once_after:1m"}, ["unknown"]),
        ({"config": {"humanizer": {}, "demands": "x"}}, ["config.demands", "config.humanizer"]),
        ({"config": {}, "demands": "lease"}, ["demands"]),
        ({"status": "error"}, ["status"]),
        ({"displayName": "two\nlines"}, ["displayName"]),
    ],
)
async def test_every_bad_member_is_named_and_nothing_changes(
    wire: Door, body: dict[str, Any], fields: list[str]
) -> None:
    before = wire.world.rows()

    assert sorted(faults(await patch(wire, **body))) == sorted(fields)
    assert wire.world.rows() == before


async def test_a_mailbox_that_may_reply_makes_replies_possible(door: Door) -> None:
    await door.accepted(**MINE)
    words = OTHER | {"to": [PAT], "kind": "reply"}
    await patch(door, mayReply=False)
    refused = await door.send(**words)
    await patch(door, mayReply=True)

    assert refused.json()["reason"] == "sender_not_allowed"
    assert (await door.send(**words)).json()["status"] == "queued"


async def test_an_allow_list_refuses_by_name_and_alike_in_a_dry_run(door: Door) -> None:
    await patch(door, allowedRecipientDomains=["*.example.com"])

    answer = await door.send(
        from_=BOXES[0], to=["a@sub.example.com"], cc=["b@example.com"], bcc=["c@sub.example.com.net"]
    )
    dry = await door.send(from_=BOXES[0], to=["b@example.com"], dryRun=True)
    strict = await door.send(from_=BOXES[0], to=["b@example.com"], headers={"Prefer": "handling=strict"})

    body = answer.json()
    assert (body["status"], body["reason"]) == ("blocked", "recipient_not_allowed")
    assert [(f["recipient"], f["field"]) for f in body["findings"]] == [
        ("b@example.com", "cc"),
        ("c@sub.example.com.net", "bcc"),
    ]
    assert dry.json()["reason"] == "recipient_not_allowed"
    assert strict.status_code == 422
    assert (await door.send(from_=BOXES[0], to=["a@sub.example.com"], idempotencyKey="2")).json()["status"] == "queued"


# --- pause and resume -------------------------------------------------------------------------------------------------


async def test_a_pause_holds_what_is_queued_and_refuses_what_comes(door: Door) -> None:
    sent = await door.accepted(**MINE)

    paused = await door.post(path(door, act="/pause"))

    assert (paused.json()["status"], paused.json()["held"]) == ("paused", 1)
    found = (await door.get(f"/v1/agent/requests/{sent['requestId']}")).json()
    assert (found["status"], found["reason"]) == ("pending_approval", "mailbox_paused")
    refused = await door.send(**OTHER)
    assert (refused.json()["status"], refused.json()["reason"]) == ("blocked", "mailbox_paused")
    assert await door.world.claim() == []


@pytest.mark.parametrize("act", ["/resume", "/unpause"])
async def test_a_person_resumes_and_what_was_held_goes_on(door: Door, act: str) -> None:
    sent = await door.accepted(**MINE)
    await door.post(path(door, act="/pause"))
    by = manager(door)

    refused = await door.post(path(door, act=act), by=by)
    resumed = await door.post(path(door, act=act), {}, by="operator")
    await door.world.look()

    body = problem(refused, 403, "human_decision_required")
    assert (body["kind"], body["loosens"]) == ("mailbox-resume", ["status"])
    assert (resumed.json()["status"], resumed.json()["released"]) == ("active", 1)
    assert door.world.states(sent["requestId"]) == [State.QUEUED]
    assert (await door.send(**OTHER)).json()["status"] == "queued"


async def test_status_in_a_change_pauses_and_resumes_as_the_routes_do(door: Door) -> None:
    await door.accepted(**MINE)
    by = manager(door)

    paused = await patch(door, by, status="paused", demands="lease")
    refused = await patch(door, by, status="active")
    resumed = await patch(door, status="active")

    assert (paused.json()["held"], paused.json()["demands"]) == (1, "lease")
    problem(refused, 403, "human_decision_required")
    assert resumed.json()["released"] == 1


async def test_mail_that_an_approval_met_in_a_pause_says_that_it_waits(door: Door) -> None:
    sent = await door.accepted(**MINE)
    await door.post(path(door, act="/pause"))

    approved = await door.post(
        f"/v1/agent/requests/{sent['requestId']}/resolve", {"decision": "approve"}, by="operator"
    )

    body = approved.json()
    assert (body["status"], body["reason"]) == ("pending_approval", "mailbox_paused")
    assert body["nextAction"] == "a person decides; do not resend"


async def test_pausing_again_changes_nothing(door: Door) -> None:
    await door.post(path(door, act="/pause"))

    again = await door.post(path(door, act="/pause"))

    assert (again.status_code, again.json()["held"]) == (200, 0)
