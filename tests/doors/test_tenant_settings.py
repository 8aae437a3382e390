"""A tenant's own settings over HTTP, its team, an agent's list, and the relay's gate."""

from typing import Any

import httpx
import pytest

from gateway.store import agents
from tests.doors.door import Door, a_door, faults, problem
from tests.world import PAT, World

SETTINGS = "/v1/agent/config/settings"
TEAM = "/v1/agent/notification-addresses"
RELAY = "/v1/ops/relay"
OTHER = {"text": "something else altogether, for the same person\n", "idempotencyKey": "2"}


async def patch(door: Door, by: str = "operator", **changes: Any) -> httpx.Response:
    return await door.call("PATCH", SETTINGS, changes, by=by)


def manager(door: Door, **more: Any) -> str:
    door.add_key("manager", scopes=("manage",), **more)
    return "manager"


async def test_without_settings_of_its_own_the_gateways_hold(door: Door) -> None:
    assert (await door.get(SETTINGS)).json() == {
        "cooldownMinutes": 10,
        "physicalAddress": None,
        "requireConsentForMarketing": False,
        "internalAddresses": [],
        "internalDomains": ["gw.example.com"],
        "domainAliases": {},
        "unknown": "hold",
        "allowedRecipientDomains": None,
        "own": [],
    }


async def test_what_is_set_is_shown_and_what_is_not_named_stays(door: Door) -> None:
    changed = await patch(
        door,
        cooldownMinutes=5,
        physicalAddress="1 Main Street\nTown",
        requireConsentForMarketing=True,
        internalAddresses=["First.Last+x@gmail.com"],
        unknown={"reply": "assume_sent_after:2h"},
        allowedRecipientDomains=["Example.com", "*.example.net", "pat@EXAMPLE.org"],
    )
    later = await patch(door, physicalAddress=None)

    body = changed.json()
    assert (body["cooldownMinutes"], body["physicalAddress"]) == (5, "1 Main Street\nTown")
    assert body["internalAddresses"] == ["firstlast@gmail.com"]
    assert body["unknown"] == {"reply": "assume_sent_after:2h"}
    assert body["allowedRecipientDomains"] == ["*.example.net", "example.com", "pat@example.org"]
    assert body["own"] == ["cooldownMinutes", "unknown"]
    assert later.json() == body | {"physicalAddress": None}
    assert (await door.get(SETTINGS)).json() == later.json()


async def test_the_tenants_cooldown_binds_the_next_mail(door: Door) -> None:
    await patch(door, cooldownMinutes=1)
    await door.accepted()
    (claim,) = await door.world.claim()
    await door.world.relay(claim)
    early = await door.send(**OTHER)
    book = await door.post("/v1/contacts", {"email": PAT})
    known = (await door.get(f"/v1/contacts/{book.json()['id']}")).json()
    door.world.advance(61)
    later = await door.send(**OTHER)

    assert early.json()["reason"] == "cooldown"
    assert known["cooldownExpiresAt"] == early.json()["cooldownExpiresAt"]
    assert later.json()["status"] == "queued"


@pytest.mark.parametrize(
    ("tight", "loose", "name"),
    [
        ({"cooldownMinutes": 20}, {"cooldownMinutes": 19}, "cooldownMinutes"),
        ({"cooldownMinutes": 11}, {"cooldownMinutes": None}, "cooldownMinutes"),
        ({"cooldownMinutes": 10}, {"cooldownMinutes": 9}, "cooldownMinutes"),
        ({"physicalAddress": "1 Main Street"}, {"physicalAddress": "2 Main Street"}, "physicalAddress"),
        ({"requireConsentForMarketing": True}, {"requireConsentForMarketing": False}, "requireConsentForMarketing"),
        ({"internalAddresses": []}, {"internalAddresses": [PAT]}, "internalAddresses"),
        ({"unknown": "hold"}, {"unknown": "assume_sent_after:1h"}, "unknown"),
        ({"allowedRecipientDomains": []}, {"allowedRecipientDomains": ["example.com"]}, "allowedRecipientDomains"),
    ],
)
async def test_who_manages_may_tighten_and_a_person_alone_loosens(
    door: Door, tight: dict[str, Any], loose: dict[str, Any], name: str
) -> None:
    by = manager(door)
    problem(await patch(door, "a", **tight), 403, "insufficient_scope")

    tightened = await patch(door, by, **tight)
    loosened = await patch(door, by, **loose)

    assert tightened.status_code == 200, tightened.text
    body = problem(loosened, 403, "human_decision_required")
    assert (body["kind"], body["loosens"]) == ("tenant-settings", [name])
    assert (await door.get(SETTINGS)).json() == tightened.json()
    assert (await patch(door, **loose)).status_code == 200


async def test_a_key_for_some_mailboxes_does_not_set_what_binds_all(door: Door) -> None:
    by = manager(door, mailboxes=(next(iter(door.world.box.values())).id,))

    for answer in (
        await patch(door, by, cooldownMinutes=60),
        await door.post(TEAM, {"email": PAT}, by=by),
        await door.call("PATCH", "/v1/agent/agents/a", {"allowedRecipientDomains": []}, by=by),
    ):
        problem(answer, 403, "mailbox_scope_denied")


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"cooldownMinutes": -1, "physicalAddress": "x" * 501}, ["cooldownMinutes", "physicalAddress"]),
        ({"cooldownMinutes": 2.5}, ["cooldownMinutes"]),
        ({"requireConsentForMarketing": "yes"}, ["requireConsentForMarketing"]),
        ({"requireConsentForMarketing": None}, ["requireConsentForMarketing"]),
        ({"internalAddresses": ["nobody", PAT, 1]}, ["internalAddresses[0]", "internalAddresses[2]"]),
        ({"allowedRecipientDomain": ["*"]}, ["allowedRecipientDomain"]),
        ({"allowedRecipientDomains": ["*.*"]}, ["allowedRecipientDomains[0]"]),
        ({"domainAliases": {}}, ["domainAliases"]),
        ({"unknown": "retry_once_after:605s"}, ["unknown"]),
    ],
)
async def test_every_bad_member_is_named_and_nothing_changes(
    wire: Door, body: dict[str, Any], fields: list[str]
) -> None:
    before = wire.world.rows()

    assert sorted(faults(await patch(wire, **body))) == sorted(fields)
    assert wire.world.rows() == before


# --- the team ---------------------------------------------------------------------------------------------------------


async def test_mail_to_the_team_needs_no_lease_and_starts_no_cooldown(door: Door) -> None:
    added = await door.post(TEAM, {"email": "Pat <PAT@example.net>"}, by="operator")
    await door.accepted()

    again = await door.send(by="b", idempotencyKey="2")

    assert added.status_code == 201
    assert added.json() == {"id": PAT, "tenantId": "default", "email": PAT, "status": "confirmed"}
    assert again.json()["status"] == "queued"
    assert (await door.get(TEAM, by="operator")).json() == [added.json()]
    assert (await door.get(SETTINGS)).json()["internalAddresses"] == [PAT]


async def test_who_manages_takes_somebody_out_of_the_team_but_nobody_in(door: Door) -> None:
    by = manager(door)
    await door.post(TEAM, {"email": PAT}, by="operator")

    problem(await door.post(TEAM, {"email": "x@example.net"}, by=by), 403, "human_decision_required")
    gone = await door.call("DELETE", f"{TEAM}/PAT@example.net", by=by)
    again = await door.call("DELETE", f"{TEAM}/{PAT}", by=by)

    assert gone.json() == {"deleted": True, "id": PAT}
    problem(again, 404, "team_address_not_found")
    problem(await door.call("DELETE", f"{TEAM}/nobody", by=by), 404, "team_address_not_found")


async def test_the_team_has_an_end(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.doors.http.tenant_settings.TEAM_MAX", 1)
    await door.post(TEAM, {"email": PAT}, by="operator")

    assert (await door.post(TEAM, {"email": PAT}, by="operator")).status_code == 201
    full = await door.post(TEAM, {"email": "x@example.net"}, by="operator")
    assert problem(full, 403, "team_address_cap_reached")["cap"] == 1


# --- an agent's list --------------------------------------------------------------------------------------------------


async def test_an_agents_list_binds_it_alone_and_survives_its_registration(door: Door) -> None:
    by = manager(door)
    agent = door.world.agent["a"]

    narrowed = await door.call(
        "PATCH", f"/v1/agent/agents/{agent}", {"allowedRecipientDomains": ["example.org"]}, by=by
    )
    await door.post("/v1/agent/register", {"agentName": "a"})

    assert narrowed.json()["allowedRecipientDomains"] == ["example.org"]
    assert (await door.get("/v1/agent/agents/a")).json()["allowedRecipientDomains"] == ["example.org"]
    assert (await door.send()).json()["reason"] == "recipient_not_allowed"
    assert (await door.send(by="b", idempotencyKey="2")).json()["status"] == "queued"
    widened = await door.call("PATCH", f"/v1/agent/agents/{agent}", {"allowedRecipientDomains": None}, by=by)
    assert problem(widened, 403, "human_decision_required")["kind"] == "agent-config"
    free = await door.call("PATCH", f"/v1/agent/agents/{agent}", {"allowedRecipientDomains": None}, by="operator")
    assert free.json()["allowedRecipientDomains"] is None


async def test_an_agent_that_is_not_there_has_no_list(door: Door) -> None:
    body: dict[str, Any] = {"allowedRecipientDomains": []}

    problem(await door.get("/v1/agent/agents/nobody"), 404, "agent_not_found")
    problem(await door.call("PATCH", "/v1/agent/agents/nobody", body, by="operator"), 404, "agent_not_found")
    problem(await door.call("PATCH", "/v1/agent/agents/%00", body, by="operator"), 404, "agent_not_found")
    assert faults(await door.call("PATCH", "/v1/agent/agents/a", {}, by="operator")) == ["allowedRecipientDomains"]


# --- the relay's gate -------------------------------------------------------------------------------------------------


async def test_a_paused_relay_takes_mail_and_lets_none_out(door: Door) -> None:
    problem(await door.post(f"{RELAY}/pause"), 403, "insufficient_scope")
    paused = await door.post(f"{RELAY}/pause", by="operator")
    sent = await door.accepted()

    assert paused.json() == (await door.get(RELAY)).json() == {"paused": True}
    assert sent["status"] == "queued"
    assert await door.world.claim() == []
    assert (await door.post(f"{RELAY}/resume", {}, by="operator")).json() == {"paused": False}
    assert len(await door.world.claim()) == 1


async def test_no_tenants_key_stops_the_relay_of_others(door: Door) -> None:
    door.world.store.write((), lambda tx: agents.add_tenant(tx, "other"))

    refused = await door.post(f"{RELAY}/pause", by="operator")

    problem(refused, 403, "relay_is_shared")
    assert (await door.get(RELAY)).json() == {"paused": False}


async def test_the_gateways_own_list_binds_all_mail(sqlite_world: World) -> None:
    sqlite_world.options = {"recipient": {"allowed_recipients": ["*@example.com"]}}
    sqlite_world.node()
    sqlite_world.nodes.reverse()
    async with a_door(sqlite_world) as door:
        bodies = [
            (await door.send(to=[to], idempotencyKey=to)).json()
            for to in ("pat@example.com", "pat@sub.example.com", "pat@example.com.evil.example.net")
        ]

    assert [body.get("reason") for body in bodies] == [None, "recipient_not_allowed", "recipient_not_allowed"]
