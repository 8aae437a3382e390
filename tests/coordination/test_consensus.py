"""Votes over HTTP as the seed documents them: who may ask and vote, what is answered, what is refused; and sends that wait."""

import asyncio
import re
from datetime import datetime, timedelta
from typing import Any

import pytest

from gateway.coordination.clock import Clock
from tests.doors.door import Door, faults, problem
from tests.world import BOXES, PAT, START, TENANT

CONSENSUS = "/v1/agent/coordination/consensus"
BEAT = "/v1/agent/coordination/heartbeat"
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NOWHERE = "b4c8e7a2-3f19-4d5e-a621-9c1d8f3e7b0a"
DOCUMENTED = {
    "id", "tenantId", "requestingAgentId", "action", "contactEmail", "reason", "status", "timeoutAt", "createdAt",
}  # fmt: skip


def a_proposal(**changes: Any) -> dict[str, Any]:
    """The usual request; a member that is `...` is left out."""
    usual: dict[str, Any] = {"action": "pause outreach", "contactEmail": PAT, "reason": "Fatigue scores are high"}
    return {name: value for name, value in (usual | changes).items() if value is not ...}


async def proposed(door: Door, *, by: str = "a", **changes: Any) -> dict[str, Any]:
    answer = await door.post(CONSENSUS, a_proposal(**changes), by=by)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def voted(door: Door, which: str, vote: str = "approve", *, by: str = "b", **more: Any) -> dict[str, Any]:
    answer = await door.post(f"{CONSENSUS}/{which}/vote", {"vote": vote} | more, by=by)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def shown(door: Door, which: str, by: str = "a") -> dict[str, Any]:
    answer = await door.get(f"{CONSENSUS}/{which}", by=by)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def events(door: Door) -> list[dict[str, Any]]:
    """The events of consensus as the wire has them, oldest first."""
    answer = await door.get("/v1/agent/events", by="operator", params={"eventTypes": "coordination.*", "limit": "200"})
    assert answer.status_code == 200, answer.text
    found = [one for one in answer.json()["items"] if "consensus" in one["type"]]
    return sorted(found, key=lambda one: str(one["id"]))


def seconds_between(one: str, other: str) -> float:
    return (datetime.fromisoformat(other) - datetime.fromisoformat(one)).total_seconds()


# --- ask --------------------------------------------------------------------------------------------------------------


async def test_a_consensus_is_asked_for_as_documented(door: Door) -> None:
    made = await proposed(door, timeoutMinutes=2.5)

    assert set(made) >= DOCUMENTED
    assert UUID.fullmatch(made["id"])
    assert made["tenantId"] == TENANT
    assert made["requestingAgentId"] == door.world.agent["a"]
    assert (made["action"], made["contactEmail"], made["reason"]) == ("pause outreach", PAT, "Fatigue scores are high")
    assert made["status"] == "pending"
    assert seconds_between(made["createdAt"], made["timeoutAt"]) == 150
    assert (made["approve"], made["reject"], made["activeAgents"], made["threshold"]) == (0, 0, 3, 2)
    assert made["nextAction"].startswith("vote")
    assert await shown(door, made["id"]) == made


async def test_five_minutes_are_the_usual_time_and_a_week_is_the_longest(door: Door) -> None:
    usual, longest = await proposed(door), await proposed(door, timeoutMinutes=7 * 24 * 60)

    assert seconds_between(usual["createdAt"], usual["timeoutAt"]) == 300
    assert seconds_between(longest["createdAt"], longest["timeoutAt"]) == 7 * 86_400


async def test_the_action_has_a_second_name(door: Door) -> None:
    alias = await proposed(door, action=..., proposedAction="write once more")
    both = await proposed(door, proposedAction="pause outreach")

    assert (alias["action"], both["action"]) == ("write once more", "pause outreach")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"action": ...}, "action"),
        ({"proposedAction": "something else"}, "proposedAction"),
        ({"contactEmail": ...}, "contactEmail"),
        ({"contactEmail": "nobody"}, "contactEmail"),
        ({"reason": ...}, "reason"),
        ({"reason": ""}, "reason"),
        ({"timeoutMinutes": 0}, "timeoutMinutes"),
        ({"timeoutMinutes": -1}, "timeoutMinutes"),
        ({"timeoutMinutes": 10_081}, "timeoutMinutes"),
        ({"timeoutMinutes": "5"}, "timeoutMinutes"),
        ({"timeoutMinutes": True}, "timeoutMinutes"),
        ({"agentName": "a"}, "agentName"),
    ],
)
async def test_what_cannot_be_asked_is_refused_by_name(wire: Door, changes: dict[str, Any], field: str) -> None:
    assert faults(await wire.post(CONSENSUS, a_proposal(**changes))) == [field]


async def test_who_asks_is_the_keys_own_agent_or_one_that_no_key_is_bound_to(door: Door) -> None:
    agent = door.world.agent
    by_name = await proposed(door, by="free", proposerAgent="c")
    by_id = await proposed(door, by="free", requestingAgentId=agent["c"])
    own = await proposed(door, by="a", proposerAgent="a")

    assert by_name["requestingAgentId"] == by_id["requestingAgentId"] == agent["c"]
    assert own["requestingAgentId"] == agent["a"]
    mismatch = await door.post(CONSENSUS, a_proposal(proposerAgent="b"), by="a")
    assert problem(mismatch, 403, "agent_mismatch")["keyAgentId"] == agent["a"]
    bound = await door.post(CONSENSUS, a_proposal(requestingAgentId=agent["b"]), by="free")
    assert problem(bound, 403, "agent_bound_to_key")["agentId"] == agent["b"]
    problem(await door.post(CONSENSUS, a_proposal(proposerAgent="who"), by="free"), 404, "agent_not_found")
    assert faults(await door.post(CONSENSUS, a_proposal(), by="free")) == ["proposerAgent"]


async def test_reading_needs_a_scope_to_read_and_voting_one_to_send(door: Door) -> None:
    door.add_key("reader", scopes=("read",))
    made = await proposed(door)

    assert (await door.get(f"{CONSENSUS}/{made['id']}", by="reader")).status_code == 200
    for path, body in ((CONSENSUS, a_proposal(proposerAgent="c")), (f"{CONSENSUS}/{made['id']}/vote", {})):
        assert (await door.post(path, body, by="reader")).status_code == 403


# --- vote -------------------------------------------------------------------------------------------------------------


async def test_a_vote_is_answered_as_documented(door: Door) -> None:
    made = await proposed(door)

    first = await voted(door, made["id"], reason="Agreed, signals look bad")
    second = await voted(door, made["id"], by="a")

    assert set(first) == {"id", "consensusRequestId", "agentId", "vote", "reason", "consensusStatus", "createdAt"}
    assert UUID.fullmatch(first["id"])
    assert (first["consensusRequestId"], first["agentId"]) == (made["id"], door.world.agent["b"])
    assert (first["vote"], first["reason"], first["consensusStatus"]) == (
        "approve",
        "Agreed, signals look bad",
        "pending",
    )
    assert (second["reason"], second["consensusStatus"]) == (None, "approved")


async def test_what_to_do_next_is_to_vote_to_wait_to_act_or_to_stop(door: Door) -> None:
    made, other = await proposed(door), await proposed(door)
    before = (await shown(door, made["id"], "b"))["nextAction"]
    await voted(door, made["id"])
    after = [(await shown(door, made["id"], by))["nextAction"] for by in ("a", "b", "free")]
    await voted(door, made["id"], by="a")
    for by in ("a", "b"):
        await voted(door, other["id"], "reject", by=by)
    late = await proposed(door, timeoutMinutes=1)
    door.world.advance(61)

    ends = [await shown(door, which["id"]) for which in (made, other, late)]
    assert [words.split()[0].rstrip(":;") for words in [before, *after]] == ["vote", "vote", "wait", "vote"]
    assert [one["status"] for one in ends] == ["approved", "rejected", "expired"]
    assert [one["nextAction"].split(";")[0] for one in ends] == ["act", "stop", "stop"]
    assert ["decidedAt" in one for one in ends] == [True, True, False]


async def test_the_votes_that_stand_are_listed(door: Door) -> None:
    made = await proposed(door)
    await voted(door, made["id"], "approve", by="a")
    await voted(door, made["id"], "reject", by="a", reason="on second thoughts")
    await voted(door, made["id"], "approve", by="free", agentName="c")

    listed = (await door.get(f"{CONSENSUS}/{made['id']}/votes", by="b")).json()

    agent = door.world.agent
    assert [(one["agentId"], one["vote"], one["reason"]) for one in listed] == [
        (agent["a"], "reject", "on second thoughts"),
        (agent["c"], "approve", None),
    ]
    found = await shown(door, made["id"])
    assert (found["approve"], found["reject"], found["status"]) == (1, 1, "pending")


async def test_a_late_vote_is_refused_and_not_recorded(door: Door) -> None:
    made, late = await proposed(door), await proposed(door, timeoutMinutes=0.5)
    for by in ("a", "b"):
        await voted(door, made["id"], by=by)
    door.world.advance(31)

    closed = await door.post(f"{CONSENSUS}/{made['id']}/vote", {"vote": "reject", "agentName": "c"}, by="free")
    expired = await door.post(f"{CONSENSUS}/{late['id']}/vote", {"vote": "reject"}, by="a")

    assert problem(closed, 409, "consensus_closed")["status"] == "approved"
    assert problem(expired, 409, "consensus_closed")["status"] == "expired"
    assert len((await door.get(f"{CONSENSUS}/{made['id']}/votes")).json()) == 2


async def test_who_votes_is_the_keys_own_agent_or_one_that_no_key_is_bound_to(door: Door) -> None:
    agent = door.world.agent
    made = await proposed(door)
    path = f"{CONSENSUS}/{made['id']}/vote"

    mismatch = await door.post(path, {"vote": "approve", "agentId": agent["b"]}, by="a")
    bound = await door.post(path, {"vote": "approve", "agentName": "b"}, by="free")
    nobody = await door.post(path, {"vote": "approve"}, by="free")
    unknown = await door.post(path, {"vote": "approve", "agentId": "agent_0"}, by="free")

    assert problem(mismatch, 403, "agent_mismatch")["keyAgentId"] == agent["a"]
    assert problem(bound, 403, "agent_bound_to_key")["agentId"] == agent["b"]
    assert faults(nobody) == ["agentName"]
    problem(unknown, 404, "agent_not_found")
    assert (await door.get(f"{CONSENSUS}/{made['id']}/votes")).json() == []


@pytest.mark.parametrize("vote", ["abstain", "", "Approve", 1, None, ["approve"]])
async def test_another_word_is_no_vote(wire: Door, vote: object) -> None:
    made = await proposed(wire)

    assert faults(await wire.post(f"{CONSENSUS}/{made['id']}/vote", {"vote": vote}), 400) == ["vote"]
    assert faults(await wire.post(f"{CONSENSUS}/{made['id']}/vote", {})) == ["vote"]


@pytest.mark.parametrize("which", [NOWHERE, "x", NOWHERE.upper(), "%00"])
async def test_an_unknown_id_is_404_everywhere(wire: Door, which: str) -> None:
    answers = [await wire.get(f"{CONSENSUS}/{which}"), await wire.get(f"{CONSENSUS}/{which}/votes")]
    answers.append(await wire.post(f"{CONSENSUS}/{which}/vote", {"vote": "approve"}))

    for answer in answers:
        problem(answer, 404, "consensus_not_found")


async def test_heartbeats_keep_an_agent_active(door: Door) -> None:
    made = await proposed(door, timeoutMinutes=60)
    door.world.advance(250)
    for by in ("a", "b"):
        await door.post(BEAT, {}, by=by)
    door.world.advance(100)

    found = await shown(door, made["id"])

    assert (found["activeAgents"], found["threshold"]) == (2, 2)


# --- list -------------------------------------------------------------------------------------------------------------


async def test_the_list_goes_from_page_to_page_newest_first(door: Door) -> None:
    made = [await proposed(door, contactEmail=f"p{n % 2}@example.net") for n in range(5)]
    for by in ("a", "b"):
        await voted(door, made[0]["id"], by=by)

    first = (await door.get(CONSENSUS, params={"limit": "2"})).json()
    second = (await door.get(CONSENSUS, params={"limit": "2", "cursor": first["nextCursor"]})).json()
    third = (await door.get(CONSENSUS, params={"limit": "2", "cursor": second["nextCursor"]})).json()
    about = (await door.get(CONSENSUS, params={"contactEmail": "P1@example.net"})).json()
    done = (await door.get(CONSENSUS, params={"status": "approved"})).json()

    rows = [*first["items"], *second["items"], *third["items"]]
    assert [one["id"] for one in rows] == [one["id"] for one in reversed(made)]
    assert third["nextCursor"] is None
    assert [one["id"] for one in about["items"]] == [made[3]["id"], made[1]["id"]]
    assert [one["id"] for one in done["items"]] == [made[0]["id"]]


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"status": "open"}, "status"),
        ({"limit": "0"}, "limit"),
        ({"limit": "201"}, "limit"),
        ({"cursor": "x"}, "cursor"),
        ({"cursor": f"9999999999999999999.{NOWHERE}"}, "cursor"),
        ({"contactEmail": "nobody"}, "contactEmail"),
    ],
)
async def test_a_list_that_cannot_be_is_refused_by_name(wire: Door, params: dict[str, str], field: str) -> None:
    assert faults(await wire.get(CONSENSUS, params=params)) == [field]


# --- events -----------------------------------------------------------------------------------------------------------


async def test_what_happens_is_told_as_events(door: Door) -> None:
    made, late = await proposed(door), await proposed(door, timeoutMinutes=1)
    for by in ("a", "b"):
        await voted(door, made["id"], by=by)
    door.world.advance(61)
    assert await Clock(door.world.store, door.world.nodes[0].writer).look() == 1

    happened = await events(door)
    assert [one["type"].removeprefix("coordination.consensus_") for one in happened] == [
        "requested",
        "requested",
        "voted",
        "voted",
        "decided",
        "expired",
    ]
    assert [one["consensusId"] for one in happened] == [made["id"], late["id"], *[made["id"]] * 3, late["id"]]
    assert {one["contactEmail"] for one in happened} == {PAT}
    decided, expired = happened[-2:]
    assert (decided["status"], decided["approve"], decided["agentId"]) == ("approved", 2, door.world.agent["b"])
    assert (expired["status"], "agentId" in expired) == ("expired", False)


# --- sends that wait --------------------------------------------------------------------------------------------------


async def test_a_send_waits_for_its_consensus_and_says_how(door: Door) -> None:
    made = await proposed(door)

    held = (await door.send(requireConsensusId=made["id"])).json()
    strict = await door.send(requireConsensusId=made["id"], headers={"Prefer": "handling=strict"})
    again = (await door.send(requireConsensusId=NOWHERE)).json()

    assert (held["status"], held["reason"]) == ("pending_approval", "consensus_pending")
    assert held["nextAction"] == "wait for the votes; do not resend"
    assert (held["consensusId"], held["timeoutAt"]) == (made["id"], made["timeoutAt"])
    assert strict.status_code == 202
    assert (again["requestId"], again["replayed"], again["reason"]) == (held["requestId"], True, "consensus_pending")


async def test_the_agents_let_a_send_go_or_stop_it(door: Door) -> None:
    yes, no = await proposed(door), await proposed(door)
    good = await door.accepted(requireConsensusId=yes["id"])
    bad = await door.accepted(requireConsensusId=no["id"], idempotencyKey="other", text="other\n")
    for by in ("a", "b"):
        await voted(door, yes["id"], by=by)
        await voted(door, no["id"], "reject", by=by)
    await door.world.look()

    first, second = [(await door.get(f"/v1/agent/requests/{one['requestId']}")).json() for one in (good, bad)]
    assert first["status"] == "queued"
    assert (second["status"], second["reason"]) == ("blocked", "consensus_rejected")
    assert second["nextAction"] == "stop; the agents decided against it"


async def test_a_person_may_let_a_send_go_that_waits_for_votes(door: Door) -> None:
    made = await proposed(door)
    held = await door.accepted(requireConsensusId=made["id"])

    path = f"/v1/agent/requests/{held['requestId']}/resolve"
    done = (await door.post(path, {"decision": "approve"}, by="operator")).json()

    assert done["status"] == "queued"


@pytest.mark.parametrize(
    ("which", "status", "reason"), [("rejected", 403, "consensus_rejected"), ("unknown", 409, "consensus_required")]
)
async def test_a_refusal_has_its_status_where_that_is_wanted(wire: Door, which: str, status: int, reason: str) -> None:
    made = await proposed(wire)
    for by in ("a", "b"):
        await voted(wire, made["id"], "reject", by=by)

    answer = await wire.send(
        requireConsensusId=made["id"] if which == "rejected" else NOWHERE, headers={"Prefer": "strict"}
    )

    assert problem(answer, status, reason)["consensusId"]


async def test_a_mailbox_that_demands_a_consensus_is_loosened_by_a_person_alone(door: Door) -> None:
    door.add_key("manager", scopes=("send", "manage"))
    path = f"/v1/agent/mailboxes/{door.world.box[BOXES[0]].id}"

    tightened = await door.call("PATCH", path, {"requireConsensus": True}, by="manager")
    refused = (await door.send(from_=BOXES[0])).json()
    loosened = await door.call("PATCH", path, {"requireConsensus": False}, by="manager")
    by_person = await door.call("PATCH", path, {"requireConsensus": False}, by="operator")
    taken = (await door.send(from_=BOXES[0])).json()

    assert tightened.json()["requireConsensus"] is True
    assert (refused["status"], refused["reason"]) == ("blocked", "consensus_required")
    assert refused["nextAction"].startswith("create a consensus request for this contact")
    assert problem(loosened, 403, "human_decision_required")["loosens"] == ["requireConsensus"]
    assert by_person.json()["requireConsensus"] is False
    assert taken["status"] == "queued"


async def test_many_votes_at_once_decide_once(door: Door) -> None:
    made = await proposed(door)
    path = f"{CONSENSUS}/{made['id']}/vote"

    answers = await asyncio.gather(
        *(door.post(path, {"vote": "approve"}, by=by) for by in ("a", "b") * 5),
        door.post(path, {"vote": "approve", "agentName": "c"}, by="free"),
    )

    assert {answer.status_code for answer in answers} <= {200, 409}
    assert [one["type"] for one in await events(door)].count("coordination.consensus_decided") == 1
    assert datetime.fromisoformat((await shown(door, made["id"]))["decidedAt"]) >= START - timedelta(minutes=1)
