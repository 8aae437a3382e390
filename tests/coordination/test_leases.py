"""Leases over HTTP: take, extend, keep, give back, take over, list (SEMANTICS 6)."""

import asyncio
import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest

from gateway.core.delivery import State
from gateway.core.record import instant
from tests.databases import Databases
from tests.doors.door import LEASE, Door, a_door, faults, problem
from tests.world import BOXES, PAT, TENANT, a_world

LEASES = "/v1/agent/coordination/leases"
STRICT = {"Prefer": "handling=strict"}
OTHER = "other@example.net"


async def lease(door: Door, by: str = "a", contact: str = PAT, **changes: Any) -> dict[str, Any]:
    answer = await door.post(LEASE, {"contactEmail": contact} | changes, by=by)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def renew(door: Door, lease_id: str, by: str = "a", **body: Any) -> dict[str, Any]:
    answer = await door.call("PUT", f"{LEASE}/{lease_id}", body, by=by)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def release(door: Door, lease_id: str, by: str = "a") -> dict[str, Any]:
    answer = await door.call("DELETE", f"{LEASE}/{lease_id}", by=by)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def minutes(body: dict[str, Any]) -> float:
    return (datetime.fromisoformat(body["expiresAt"]) - datetime.fromisoformat(body["createdAt"])).total_seconds() / 60


# --- taking -----------------------------------------------------------------------------------------------------------


async def test_a_lease_is_given_with_its_token(door: Door) -> None:
    body = await lease(door, intent="outbound_sales", durationMinutes=12.5)

    assert str(uuid.UUID(body["id"])) == body["id"]
    assert (body["tenantId"], body["agentId"], body["agentName"]) == (TENANT, door.world.agent["a"], "a")
    assert (body["contactEmail"], body["intent"], body["fencingToken"]) == (PAT, "outbound_sales", 1)
    assert minutes(body) == 12.5


async def test_the_usual_lease_lasts_half_an_hour_for_a_general_purpose(door: Door) -> None:
    body = await lease(door)

    assert (minutes(body), body["intent"]) == (30, "general")


async def test_taking_ones_own_again_extends_it(door: Door) -> None:
    first = await lease(door)
    door.world.advance(60)

    again = await lease(door, durationMinutes=60)

    assert (again["id"], again["fencingToken"]) == (first["id"], first["fencingToken"])
    assert again["expiresAt"] > first["expiresAt"]


async def test_another_agent_is_told_who_has_it(door: Door) -> None:
    first = await lease(door)

    body = await lease(door, by="b", contact="PAT@Example.NET")
    strict = await door.post(LEASE, {"contactEmail": PAT}, by="b", headers=STRICT)

    assert body["conflict"] is True
    assert body["leaseHolder"] == {
        "agentId": door.world.agent["a"],
        "agentName": "a",
        "expiresAt": first["expiresAt"],
        "kind": "lease",
    }
    assert body["retryAt"] == first["expiresAt"]
    assert body["nextAction"]
    assert problem(strict, 409, "lease_conflict")["leaseHolder"] == body["leaseHolder"]


async def test_of_ten_at_once_one_has_it(databases: Databases) -> None:
    async with a_world(databases) as world:
        world.node(threads=True)
        world.nodes.reverse()
        async with a_door(world) as door:
            answers = await asyncio.gather(*(lease(door, by=by) for by in ("a", "b") * 5))

    assert len({one["id"] for one in answers if "conflict" not in one}) == 1
    assert sum("conflict" in one for one in answers) == 5


async def test_mail_on_its_way_closes_a_contact_to_others_for_a_while(door: Door) -> None:
    sent = await door.accepted()

    body = await lease(door, by="b")
    own = await lease(door)

    assert (body["leaseHolder"]["kind"], body["leaseHolder"]["requestId"]) == ("send", sent["requestId"])
    assert body["estimate"] is True
    assert datetime.fromisoformat(body["retryAt"]) - door.world.now < timedelta(seconds=61)
    assert own["fencingToken"] == 1


async def test_after_that_while_another_takes_over_and_both_are_told(door: Door) -> None:
    sent = await door.accepted()
    door.world.advance(3601)

    body = await lease(door, by="b")

    assert body["withdrew"] == [sent["requestId"]]
    told = (await door.get(f"/v1/agent/requests/{sent['requestId']}")).json()
    assert (told["status"], told["reason"]) == ("blocked", "stale_fencing_token")


async def test_how_long_mail_closes_a_contact_is_a_setting(databases: Databases) -> None:
    async with a_world(databases, {"lease": {"flight_max": 60}}) as world, a_door(world, flight_max_seconds=60) as door:
        await door.accepted()
        world.advance(61)

        assert "withdrew" in await lease(door, by="b")


async def test_where_leases_are_not_enforced_taking_one_stops_no_mail(databases: Databases) -> None:
    off = {"lease": {"mode": "observe"}}
    async with a_world(databases, off) as world, a_door(world, policies=off) as door:
        sent = await door.accepted()
        world.advance(3601)

        body = await lease(door, by="b")

        assert "withdrew" not in body
        assert world.states(sent["requestId"]) == [State.QUEUED]


async def test_an_operator_takes_a_contact_over_at_once_with_a_reason(door: Door) -> None:
    first = await lease(door)
    sent = await door.accepted(fencingToken=first["fencingToken"])

    problem(await door.post(LEASE, {"contactEmail": PAT, "overrideReason": "x"}, by="b"), 403, "insufficient_scope")
    body = await lease(door, by="operator", agentName="b", overrideReason="the other one is stuck")

    assert (body["agentId"], body["fencingToken"]) == (door.world.agent["b"], first["fencingToken"] + 1)
    assert body["withdrew"] == [sent["requestId"]]
    stale = (await door.send(idempotencyKey="2", fencingToken=first["fencingToken"])).json()
    assert stale["reason"] == "stale_fencing_token"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"contactEmail": None}, ["contactEmail"]),
        ({"contactEmail": "x"}, ["contactEmail"]),
        ({"contactEmail": [PAT]}, ["contactEmail"]),
        ({"durationMinutes": 0}, ["durationMinutes"]),
        ({"durationMinutes": -5}, ["durationMinutes"]),
        ({"durationMinutes": 1e-9}, ["durationMinutes"]),
        ({"durationMinutes": True}, ["durationMinutes"]),
        ({"durationMinutes": "30"}, ["durationMinutes"]),
        ({"durationMinutes": 1440.5}, ["durationMinutes"]),
        ({"durationMinutes": 1e308}, ["durationMinutes"]),
        ({"intent": ""}, ["intent"]),
        ({"intent": "a\nb"}, ["intent"]),
        ({"fencingToken": 1}, ["fencingToken"]),
        ({"seconds": 60}, ["seconds"]),
    ],
)
async def test_a_malformed_wish_is_refused_by_name(wire: Door, changes: dict[str, Any], named: list[str]) -> None:
    assert faults(await wire.post(LEASE, {"contactEmail": PAT} | changes)) == named
    assert (await wire.get(LEASES)).json() == []


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"1e400"])
async def test_what_is_no_number_is_no_duration(wire: Door, number: bytes) -> None:
    content = b'{"contactEmail": "pat@example.net", "durationMinutes": ' + number + b"}"

    answer = await wire.call("POST", LEASE, content=content, headers={"Content-Type": "application/json"})

    problem(answer, 400, "invalid_json")


# --- for whom ---------------------------------------------------------------------------------------------------------


async def test_a_bound_key_takes_for_its_own_agent_alone(door: Door) -> None:
    body = {"contactEmail": PAT}

    for named in ({"agentName": "b"}, {"agentId": door.world.agent["b"]}):
        answer = await door.post(LEASE, body | named)
        refused = problem(answer, 403, "agent_mismatch")
        assert refused["keyAgentId"] == door.world.agent["a"]
        assert refused["nextAction"] == "leave agentName out: the key acts as its own agent"
    problem(await door.post(LEASE, body, headers={"X-Agent-Id": "b"}), 403, "agent_mismatch")
    assert (await lease(door, agentName="a"))["agentName"] == "a"
    assert (await lease(door, agentId=door.world.agent["a"]))["agentName"] == "a"


async def test_another_key_names_an_agent_that_no_key_is_bound_to(door: Door) -> None:
    body = {"contactEmail": PAT}

    assert faults(await door.post(LEASE, body, by="free")) == ["agentName"]
    problem(await door.post(LEASE, body | {"agentName": "nobody"}, by="free"), 404, "agent_not_found")
    refused = await door.post(LEASE, body | {"agentName": "a"}, by="free")
    body = problem(refused, 403, "agent_bound_to_key")
    assert body["agentId"] == door.world.agent["a"]
    assert body["nextAction"] == "use that agent's own key, or act as an agent that no key is bound to"
    assert (await lease(door, by="free", agentName="c"))["agentName"] == "c"


async def test_a_key_of_one_mailbox_may_lease(door: Door) -> None:
    door.add_key("desk", agent="c", mailboxes=(door.world.box[BOXES[1]].id,))

    assert (await lease(door, by="desk"))["agentName"] == "c"


# --- keeping ----------------------------------------------------------------------------------------------------------


async def test_a_lease_is_kept_by_its_token(door: Door) -> None:
    body = await lease(door, durationMinutes=1)
    door.world.advance(30)

    told = await renew(door, body["id"], fencingToken=body["fencingToken"], durationMinutes=1)

    assert told["renewed"] is True
    assert told["expiresAt"] > body["expiresAt"]
    assert (await door.get(LEASES)).json()[0]["fencingToken"] == body["fencingToken"]


async def test_what_has_ended_is_not_kept(door: Door) -> None:
    body = await lease(door, durationMinutes=1)
    door.world.advance(61)

    told = await renew(door, body["id"], fencingToken=body["fencingToken"])
    strict = await door.call("PUT", f"{LEASE}/{body['id']}", {"fencingToken": 1}, headers=STRICT)

    assert told == {"renewed": False, "reason": "lease_expired", "nextAction": "acquire again, then check again"}
    assert problem(strict, 409, "lease_expired")["renewed"] is False


async def test_an_old_holder_keeps_and_releases_nothing(door: Door) -> None:
    old = await lease(door, durationMinutes=1)
    door.world.advance(61)
    new = await lease(door, by="b")

    told = await renew(door, old["id"], fencingToken=old["fencingToken"])
    assert (told["reason"], told["nextAction"]) == (
        "stale_fencing_token",
        "discard the draft; never resend with the old token",
    )
    assert (await release(door, old["id"]))["released"] is False
    assert [one["id"] for one in (await door.get(LEASES)).json()] == [new["id"]]


async def test_a_wrong_token_keeps_nothing(door: Door) -> None:
    await release(door, (await lease(door))["id"])
    body = await lease(door)

    assert (await renew(door, body["id"], fencingToken=1))["reason"] == "stale_fencing_token"
    assert (await renew(door, body["id"], fencingToken=3))["reason"] == "lease_expired"
    assert (await renew(door, body["id"], fencingToken=2))["renewed"] is True


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"fencingToken": True}, ["fencingToken"]),
        ({"fencingToken": 1.5}, ["fencingToken"]),
        ({"durationMinutes": 0}, ["durationMinutes"]),
        ({"durationMinutes": 10_000}, ["durationMinutes"]),
        ({"token": 1}, ["token"]),
    ],
)
async def test_a_malformed_renewal_is_refused_by_name(wire: Door, body: dict[str, Any], named: list[str]) -> None:
    given = await lease(wire)

    assert faults(await wire.call("PUT", f"{LEASE}/{given['id']}", body)) == named


# --- giving back ------------------------------------------------------------------------------------------------------


async def test_what_is_given_back_is_free_and_the_token_rises(door: Door) -> None:
    body = await lease(door)

    assert await release(door, body["id"]) == {"released": True}
    assert await release(door, body["id"]) == {"released": False, "reason": "lease_expired"}
    assert (await lease(door, by="b"))["fencingToken"] == body["fencingToken"] + 1


async def test_giving_back_by_an_old_token_is_told_from_a_lapsed_lease(door: Door) -> None:
    old = await lease(door, durationMinutes=1)
    door.world.advance(61)
    lapsed = await release(door, f"{old['id']}?fencingToken={old['fencingToken']}")
    newer = await lease(door)

    stale = await release(door, f"{old['id']}?fencingToken={old['fencingToken']}")
    low = await release(door, f"{newer['id']}?fencingToken={old['fencingToken']}")
    high = await release(door, f"{newer['id']}?fencingToken={newer['fencingToken'] + 1}")
    done = await release(door, f"{newer['id']}?fencingToken={newer['fencingToken']}")

    assert lapsed == {"released": False, "reason": "lease_expired"}
    assert stale == low == {"released": False, "reason": "stale_fencing_token"}
    assert high == {"released": False, "reason": "lease_expired"}
    assert done == {"released": True}


@pytest.mark.parametrize("text", ["true", "-1", "1.5", "", "9" * 40, "\u0661"])
async def test_a_malformed_token_gives_nothing_back(door: Door, text: str) -> None:
    held = await lease(door)

    answer = await door.call("DELETE", f"{LEASE}/{held['id']}", params={"fencingToken": text})

    assert faults(answer) == ["fencingToken"]


async def test_giving_back_tells_what_is_still_on_its_way(door: Door) -> None:
    body = await lease(door)
    sent = await door.accepted(fencingToken=body["fencingToken"])

    assert await release(door, body["id"]) == {"released": True, "inFlight": [sent["requestId"]]}


async def test_nobody_keeps_or_releases_the_lease_of_a_bound_agent(door: Door) -> None:
    body = await lease(door)

    for by, slug in (("b", "agent_mismatch"), ("free", "agent_bound_to_key")):
        for given in (("DELETE",), ("PUT", {"fencingToken": 1})):
            refused = problem(await door.call(given[0], f"{LEASE}/{body['id']}", *given[1:], by=by), 403, slug)
            assert refused["message"].startswith("another agent has this lease")
            assert refused["nextAction"]
    assert len((await door.get(LEASES)).json()) == 1


async def test_a_key_without_an_agent_releases_the_lease_of_an_agent_without_a_key(door: Door) -> None:
    body = await lease(door, by="free", agentName="c")

    assert await release(door, body["id"], by="operator") == {"released": True}


@pytest.mark.parametrize("name", ["nowhere", "d290f1ee-6c54-4b01-90e6-d701748f0851", "%00", "x" * 500, "a%0Ab"])
async def test_a_lease_that_is_not_there_is_told_so(door: Door, name: str) -> None:
    assert (await release(door, name))["released"] is False
    assert (await renew(door, name, fencingToken=1))["renewed"] is False


# --- the list ---------------------------------------------------------------------------------------------------------


async def test_the_list_has_what_lives_newest_first(door: Door) -> None:
    await lease(door, contact="gone@example.net", durationMinutes=1)
    door.world.advance(61)
    first = await lease(door)
    second = await lease(door, by="b", contact=OTHER)

    listed = (await door.get(LEASES)).json()

    assert listed == [second, first]
    assert instant(door.world.now) < listed[0]["expiresAt"]
