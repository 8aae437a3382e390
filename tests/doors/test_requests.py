"""What became of a send: look-ups, the trace, taking it back, a person's decision."""

import asyncio

import pytest

from gateway.core.delivery import Bounced, Deferred, Relayed, Reply, State, Unknown
from gateway.core.verdict import Mode
from gateway.store import agents, keys
from policies import TABLE
from tests.doors.door import SEND, Door, a_send, faults, problem
from tests.world import BOXES, OK, PAT

STRICT = {"Prefer": "handling=strict"}
REQUESTS = "/v1/agent/requests"
GONE = Bounced("no such user", Reply(550, "5.7.1", "not wanted"))


async def other_tenants_key(door: Door) -> str:
    """The key of a tenant that has nothing to do with ours."""
    door.world.store.write((), lambda tx: agents.add_tenant(tx, "other"))
    wish = keys.NewKey("other", "key", scopes=keys.SCOPES)
    ((_, raw),) = door.world.store.write(("other",), lambda tx: keys.create_keys(tx, [wish]))
    return raw


# --- looking ----------------------------------------------------------------------------------------------------------


async def test_a_record_is_found_by_its_id_and_by_its_key(door: Door) -> None:
    sent = await door.accepted(sendReason="because", campaignAction="spring")

    by_id = (await door.get(f"{REQUESTS}/{sent['requestId']}")).json()
    by_key = (await door.get(REQUESTS, params={"idempotencyKey": "once"})).json()

    assert by_id == by_key
    assert {name: by_id[name] for name in sent} == sent
    assert (by_id["deliveryStatus"], by_id["campaignAction"], by_id["kind"]) == ("queued", "spring", "outreach")
    assert by_id["agentId"] == door.world.agent["a"]


@pytest.mark.parametrize(
    ("outcome", "status", "delivery"),
    [
        (Relayed(OK), "relayed", "sent"),
        (GONE, "bounced", "bounced"),
        (Deferred("later", Reply(451, "4.0.0", "later")), "deferred", "deferred"),
        (Unknown("cut off"), "unknown", "accepted"),
    ],
)
async def test_each_state_has_its_words(door: Door, outcome: Relayed, status: str, delivery: str) -> None:
    sent = await door.accepted()
    await door.world.relay((await door.world.claim())[0], outcome)

    body = (await door.get(f"{REQUESTS}/{sent['requestId']}")).json()

    assert (body["status"], body["deliveryStatus"]) == (status, delivery)
    assert body["recipients"][0]["status"] == status
    if status == "unknown":
        assert body["nextAction"] == "do not resend; ask or resolve"
    else:
        assert body["recipients"][0]["reply"]["code"] in {250, 451, 550}
    if status == "deferred":
        assert body["nextAttemptAt"] == body["recipients"][0]["nextAttemptAt"]


async def test_recipients_are_told_one_by_one(door: Door) -> None:
    sent = await door.accepted(to=["one@example.net", "two@example.net"])
    first, _ = await door.world.claim()
    await door.world.relay(first, GONE)

    body = (await door.get(f"{REQUESTS}/{sent['requestId']}")).json()

    assert body["status"] == "relaying"
    assert body["counts"] == {"bounced": 1, "relaying": 1}


@pytest.mark.parametrize("name", ["req_nowhere", "x", "req_" + "a" * 500, "..", "%00", "req_%F0%9F%98%80", "a%2Fb"])
async def test_an_id_that_is_not_there_is_told_so(door: Door, name: str) -> None:
    for answer in (
        await door.get(f"{REQUESTS}/{name}"),
        await door.get(f"/v1/ops/trace/{name}"),
        await door.call("DELETE", f"/v1/agent/sends/{name}"),
        await door.post(f"{REQUESTS}/{name}/resolve", {"decision": "retry"}, by="operator"),
    ):
        assert answer.status_code == 404
        assert answer.json()["error"] in {"send_request_not_found", "not_found"}


async def test_a_key_that_nobody_used_is_told_so(door: Door) -> None:
    problem(await door.get(REQUESTS, params={"idempotencyKey": "never"}), 404, "send_request_not_found")
    assert faults(await door.get(REQUESTS, params={"idempotencyKey": "two words"})) == ["idempotencyKey"]
    assert faults(await door.get(REQUESTS, params={"idempotencyKey": "a", "limit": "5"})) == ["limit"]
    assert faults(await door.get(REQUESTS, params=[("idempotencyKey", "a"), ("idempotencyKey", "b")])) == [
        "idempotencyKey"
    ]


async def test_a_key_used_in_two_mailboxes_needs_one_named(door: Door) -> None:
    for number, box in enumerate(BOXES):
        await door.accepted(from_=box, to=f"p{number}@example.net")

    answer = await door.get(REQUESTS, params={"idempotencyKey": "once"})
    one = await door.get(REQUESTS, params={"idempotencyKey": "once", "mailboxId": door.world.box[BOXES[1]].id})

    assert problem(answer, 409, "ambiguous_key")["mailboxIds"] == sorted(box.id for box in door.world.box.values())
    assert one.json()["mailboxId"] == door.world.box[BOXES[1]].id


async def test_what_is_not_in_ones_mailboxes_does_not_exist(door: Door) -> None:
    sent = await door.accepted(from_=BOXES[0])
    door.add_key("desk", mailboxes=(door.world.box[BOXES[1]].id,), scopes=keys.SCOPES)

    for by in ("desk", await other_tenants_key(door)):
        name = sent["requestId"]
        problem(await door.get(f"{REQUESTS}/{name}", by=by), 404, "send_request_not_found")
        problem(await door.get(REQUESTS, params={"idempotencyKey": "once"}, by=by), 404, "send_request_not_found")
        problem(await door.get(f"/v1/ops/trace/{name}", by=by), 404, "send_request_not_found")
        problem(await door.call("DELETE", f"/v1/agent/sends/{name}", by=by), 404, "send_request_not_found")
        resolve = await door.post(f"{REQUESTS}/{name}/resolve", {"decision": "retry"}, by=by)
        problem(resolve, 404, "send_request_not_found")
    assert door.world.states(sent["requestId"]) == [State.QUEUED]


# --- the trace --------------------------------------------------------------------------------------------------------


async def test_the_trace_tells_every_decision_attempt_and_event(door: Door) -> None:
    entry, _ = await door.world.suppress(PAT)
    await door.send(sendReason="because")
    await door.world.unsuppress(entry.id)
    lease = await door.world.lease("a", PAT)
    sent = await door.accepted(fencingToken=lease.token)
    await door.world.relay((await door.world.claim())[0], Relayed(OK))

    body = (await door.get(f"/v1/ops/trace/{sent['requestId']}")).json()

    assert (body["request"]["id"], body["request"]["recipientEmail"]) == (sent["requestId"], PAT)
    assert (body["request"]["status"], body["request"]["deliveryStatus"]) == ("relayed", "sent")
    assert body["request"]["tokens"] == {PAT: lease.token}
    assert body["policyDecision"]["allow"] is True
    assert len(body["policyDecision"]["auditEvents"]) == sum(row.mode is not Mode.OFF for row in TABLE)
    assert [(one["no"], one["verdict"], one["moment"]) for one in body["decisions"]] == [
        (1, "refuse", "acceptance"),
        (2, "pass", "acceptance"),
    ]
    assert body["decisions"][0]["findings"][0]["reason"] == "suppressed"
    assert body["decisions"][1]["agent"] == door.world.agent["a"]
    assert [(one["recipient"], one["outcome"], one["code"]) for one in body["attempts"]] == [(PAT, "relayed", 250)]
    assert [one["eventType"] for one in body["deliveryEvents"]] == ["delivery.relayed"]
    assert {"policy.blocked", "send.queued", "delivery.relayed"} <= {one["name"] for one in body["events"]}


# --- taking it back ---------------------------------------------------------------------------------------------------


async def test_what_has_not_left_is_cancelled(door: Door) -> None:
    sent = await door.accepted()

    answer = await door.call("DELETE", f"/v1/agent/sends/{sent['requestId']}")
    again = await door.call("DELETE", f"/v1/agent/sends/{sent['requestId']}", headers=STRICT)

    assert (answer.status_code, answer.json()["cancelled"]) == (200, True)
    assert (again.status_code, again.json()["cancelled"]) == (200, True)
    assert door.world.states(sent["requestId"]) == [State.CANCELLED]


async def test_the_trace_says_who_took_it_back_and_who_stopped_it(door: Door) -> None:
    first, second = await door.accepted(), await door.accepted(to="two@example.net", idempotencyKey="twice")
    operator = f"key:{door.ids['operator']}"
    unwanted = {"recipientEmail": "two@example.net", "reasonCode": "manual_dnc"}

    await door.call("DELETE", f"/v1/agent/sends/{first['requestId']}", by="operator")
    assert (await door.post("/v1/suppressions", unwanted, by="operator")).status_code < 300

    for sent, name in ((first, "delivery.cancelled"), (second, "delivery.blocked")):
        trace = await door.get(f"/v1/ops/trace/{sent['requestId']}", by="operator")
        (event,) = [one for one in trace.json()["events"] if one["name"] == name]
        assert event["data"]["by"] == operator


async def test_what_has_left_is_not_and_the_answer_says_what_became_of_it(door: Door) -> None:
    sent = await door.accepted(to=["one@example.net", "two@example.net"])
    first, _ = await door.world.claim()
    await door.world.relay(first)

    answer = await door.call("DELETE", f"/v1/agent/sends/{sent['requestId']}")
    strict = await door.call("DELETE", f"/v1/agent/sends/{sent['requestId']}", headers=STRICT)

    body = answer.json()
    assert (answer.status_code, body["cancelled"], body["reason"]) == (200, False, "not_cancellable")
    assert body["counts"] == {"relayed": 1, "cancelled": 1}
    assert problem(strict, 409, "not_cancellable")["counts"] == body["counts"]


# --- a person decides -------------------------------------------------------------------------------------------------


async def unknown_send(door: Door) -> str:
    """A send of which nobody knows whether it arrived."""
    sent = await door.accepted()
    await door.world.relay((await door.world.claim())[0], Unknown("cut off"))
    return str(sent["requestId"])


@pytest.mark.parametrize(
    ("decision", "status"), [("retry", "deferred"), ("assume_sent", "relayed"), ("cancel", "cancelled")]
)
async def test_a_person_decides_about_an_unknown_send(door: Door, decision: str, status: str) -> None:
    request = await unknown_send(door)

    answer = await door.post(f"{REQUESTS}/{request}/resolve", {"decision": decision, "reason": "asked"}, by="operator")

    assert (answer.status_code, answer.json()["status"]) == (200, status)
    trace = (await door.get(f"/v1/ops/trace/{request}")).json()
    (resolved,) = [one for one in trace["events"] if one["name"] == "send.resolved"]
    assert resolved["data"] == {"decision": decision, "why": "asked"}
    assert resolved["actor"] == f"key:{door.ids['operator']}"


async def test_of_eight_decisions_at_once_one_is_made(door: Door) -> None:
    request = await unknown_send(door)

    answers = await asyncio.gather(
        *(door.post(f"{REQUESTS}/{request}/resolve", {"decision": "retry"}, by="operator") for _ in range(8))
    )

    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    assert {answer.json().get("error") for answer in answers} == {None, "not_resolvable"}


@pytest.mark.parametrize(("decision", "status"), [("approve", "queued"), ("reject", "cancelled")])
async def test_a_person_decides_about_a_held_send(door: Door, decision: str, status: str) -> None:
    await unknown_send(door)
    door.world.advance(3600)
    held = (await door.send(idempotencyKey="2")).json()

    answer = await door.post(f"{REQUESTS}/{held['requestId']}/resolve", {"decision": decision}, by="operator")

    assert held["status"] == "pending_approval"
    assert answer.json()["status"] == status


async def test_what_waits_for_nobody_cannot_be_decided(door: Door) -> None:
    sent = await door.accepted()

    for decision in ("retry", "assume_sent", "cancel", "approve", "reject"):
        answer = await door.post(f"{REQUESTS}/{sent['requestId']}/resolve", {"decision": decision}, by="operator")
        problem(answer, 409, "not_resolvable")


async def test_a_decision_must_be_one_of_the_five(door: Door) -> None:
    sent = await door.accepted()

    for body, named in (({}, "decision"), ({"decision": "Retry"}, "decision"), ({"decision": "retry", "x": 1}, "x")):
        answer = await door.post(f"{REQUESTS}/{sent['requestId']}/resolve", body, by="operator")
        assert faults(answer) == [named]


async def test_a_repeat_of_an_unknown_send_is_told_not_to_resend(door: Door) -> None:
    request = await unknown_send(door)

    answer = await door.post(SEND, a_send(), headers=STRICT)

    body = answer.json()
    assert (answer.status_code, body["status"], body["requestId"]) == (200, "unknown", request)
    assert body["nextAction"] == "do not resend; ask or resolve"
