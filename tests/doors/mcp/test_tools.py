"""The tools over streamable HTTP with the official client: what they do, and what they say of a refusal."""

import json

import httpx
import pytest

from gateway.core.delivery import Bounced, Deferred, Outcome, Relayed, Reply
from gateway.doors.mcp.server import TOOLS
from tests.databases import SqliteFiles
from tests.doors.door import LEASE, a_door
from tests.doors.mcp.client import Served
from tests.doors.mcp.conftest import serving
from tests.world import BOXES, OK, PAT, TENANT, a_world

OTHER = "kim@example.net"
GONE, LATER = Reply(550, "5.1.1", "no such person"), Reply(450, "4.2.1", "later")


async def test_the_tools_are_listed_with_schemas_and_hints(wired: Served) -> None:
    async with wired.connect() as one:
        listed = (await one.client.list_tools()).tools

    assert {tool.name for tool in listed} == {tool.name for tool in TOOLS}
    for tool in listed:
        assert tool.description
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema is not None
        assert tool.annotations is not None
    by_name = {tool.name: tool for tool in listed}
    assert by_name["dry_run"].annotations.read_only_hint is True  # type: ignore[union-attr]
    assert by_name["send_email"].annotations.read_only_hint is False  # type: ignore[union-attr]
    assert by_name["cancel_send"].annotations.destructive_hint is True  # type: ignore[union-attr]


async def test_an_agent_enters_takes_a_contact_sends_and_gives_it_back(served: Served) -> None:
    served.door.add_key("fresh")
    async with served.connect("fresh") as one:
        me = await one.call("who_am_i")
        made = await one.call("register_agent", agent_name="outreach", agent_role="outbound")
        lease = await one.call("acquire_lease", contact_email=PAT.upper(), duration_minutes=1)
        renewed = await one.call("renew_lease", lease_id=lease["lease_id"], fencing_token=lease["fencing_token"])
        tried = await one.call("dry_run", to=PAT, subject="hi", text="hello", fencing_token=lease["fencing_token"])
        sent = await one.call(
            "send_email",
            to=PAT,
            subject="hi",
            text="hello",
            fencing_token=lease["fencing_token"],
            idempotency_key="first",
        )
        again = await one.call(
            "send_email",
            to=PAT,
            subject="hi",
            text="hello",
            fencing_token=lease["fencing_token"],
            idempotency_key="first",
        )
        stands = await one.call("get_request", request_id=sent["request_id"])
        found = await one.call("get_request", idempotency_key="first")
        back = await one.call("release_lease", lease_id=lease["lease_id"])

    assert me["agent_id"] is None
    assert set(me["mailboxes"]) == set(BOXES)
    assert made["binding"] == "bound"
    assert (lease["ok"], renewed["ok"]) == (True, True)
    assert (tried["ok"], tried.get("request_id")) == (True, None)
    assert (sent["ok"], sent["status"], sent["repeat"]) == (True, "queued", "harmless")
    assert (again["request_id"], again["replayed"]) == (sent["request_id"], True)
    assert stands["request_id"] == found["request_id"] == sent["request_id"]
    assert back == {"ok": True, "next_action": back["next_action"], "in_flight": [sent["request_id"]]}


async def test_a_refusal_is_a_result_that_says_who_until_when_and_what_to_do(served: Served) -> None:
    await served.door.post(LEASE, {"contactEmail": PAT, "durationMinutes": 10}, by="a")
    async with served.connect("b") as one:
        sent = await one.call("send_email", to=PAT, subject="hi", text="hello")
        taken = await one.call("acquire_lease", contact_email=PAT)

    assert (sent["ok"], sent["reason"], sent["repeat"]) == (False, "lease_conflict", "after_until")
    assert sent["holder"]["agent"] == taken["holder"]["agent"] == "a"
    assert sent["holder"]["kind"] == "lease"
    assert sent["until"] == sent["holder"]["until"]
    assert sent["next_action"] == taken["next_action"] == "stop; wait for release or hand off"


async def test_without_a_key_one_is_made_and_a_repeated_call_does_not_double(served: Served) -> None:
    async with served.connect("a") as one:
        first = await one.call("send_email", to=PAT, subject="hi", text="hello")
        second = await one.call("send_email", to=PAT, subject="hi", text="hello")

    assert first["idempotency_key"] == second["idempotency_key"]
    assert second["replayed"] is True
    assert len(served.door.world.rows()["sends"]) == 1


async def test_many_mails_are_told_by_what_was_refused(served: Served) -> None:
    await served.door.post(LEASE, {"contactEmail": OTHER}, by="a")
    mails = [
        {"to": PAT, "subject": "1", "text": "one", "idempotency_key": "k1"},
        {"to": OTHER, "subject": "2", "text": "two", "idempotency_key": "k2"},
        {"to": "nobody", "subject": "3", "text": "three", "idempotency_key": "k3"},
    ]
    async with served.connect("b") as one:
        got = await one.call("batch_send", sends=mails)
        listed = await one.call("list_requests", limit=1)
        page = await one.call("list_requests", limit=1, cursor=listed["next_cursor"])

    assert (got["ok"], got["count"]) == (False, 3)
    assert [(r["number"], r.get("reason", r.get("error"))) for r in got["refused"]] == [
        (1, "lease_conflict"),
        (2, "invalid_request"),
    ]
    assert (got["refused"][1]["errors"][0]["field"], got["refused"][1]["repeat"]) == ("to[0]", "fix_first")
    assert got["request_ids"][2] is None
    assert [len(listed["items"]), len(page["items"])] == [1, 1]


async def test_a_mail_is_taken_back(served: Served) -> None:
    async with served.connect("a") as one:
        sent = await one.call("send_email", to=PAT, subject="hi", text="hello", scheduled_at="2099-01-01T00:00:00Z")
        assert sent["errors"][0]["field"] == "scheduled_at"
        mail = {"to": PAT, "subject": "hi", "text": "hello", "idempotency_key": "once"}
        sent = await one.call("send_email", **mail)
        gone = await one.call("cancel_send", request_id=sent["request_id"])
        repeated = await one.call("send_email", **mail)
        again = await one.call("cancel_send", request_id="req_nothing")

    assert gone["status"] == "cancelled"
    assert (repeated["ok"], repeated["status"], repeated["replayed"]) == (False, "cancelled", True)
    assert (again["ok"], again["reason"]) == (False, "send_request_not_found")


async def test_what_is_known_of_a_person_is_told_in_one_call(served: Served) -> None:
    await served.door.world.suppress(OTHER)
    await served.door.accepted(to=[PAT])
    await served.door.post(LEASE, {"contactEmail": PAT}, by="a")
    async with served.connect("b") as one:
        known = await one.call("contact_timeline", contact_email=PAT)
        out = await one.call("check_suppression", contact_email=OTHER)
        sent = await one.call("send_email", to=OTHER, subject="hi", text="hello")
        budget = await one.call("check_budget")
        leases = await one.call("list_leases", contact_email=PAT)

    assert known["suppressed"] is False
    assert known["lease"]["agent"] == "a"
    assert [mail["subject"] for mail in known["mails"]] == ["hello"]
    assert (out["suppressed"], out["reason_code"]) == (True, "manual_dnc")
    assert (sent["reason"], sent["repeat"], sent["next_action"]) == (
        "suppressed",
        "never",
        "stop; it binds every agent",
    )
    assert budget["ok"] is True
    assert leases["count"] == 1


async def test_agents_vote_and_a_mail_waits_for_it(served: Served) -> None:
    async with served.connect("a") as a, served.connect("b") as b:
        await a.call("heartbeat")
        await b.call("heartbeat")
        asked = await a.call("create_consensus", action="write anyway", contact_email=PAT, reason="it is urgent")
        held = await a.call(
            "send_email", to=PAT, subject="hi", text="hello", require_consensus_id=asked["consensus_id"]
        )
        await a.call("vote", consensus_id=asked["consensus_id"], vote="approve")
        await b.call("vote", consensus_id=asked["consensus_id"], vote="approve", reason="yes")
        stands = await a.call("get_consensus", consensus_id=asked["consensus_id"])
        late = await b.call("vote", consensus_id=asked["consensus_id"], vote="reject")

    assert (held["status"], held["reason"], held["repeat"]) == ("pending_approval", "consensus_pending", "never")
    assert stands["status"] in ("approved", "pending")
    assert late["ok"] is (stands["status"] == "pending")


async def test_what_is_wrong_with_a_mail_of_a_batch_is_named_as_the_model_knows_it(wired: Served) -> None:
    good = {"to": PAT, "subject": "hi", "text": "hello"}
    sends = [good | {"agent_name": "b"}, good | {"fencing_token": "7"}, good | {"send_at": "noon"}]
    async with wired.connect() as one:
        got = await one.call("batch_send", sends=sends)

    fields = [said["errors"][0]["field"] for said in got["refused"]]
    assert fields == ["agent_name", "fencing_token", "send_at"]
    assert {said["reason"] for said in got["refused"]} == {"invalid_request"}
    assert all(said["next_action"] for said in got["refused"])
    assert wired.door.world.rows()["sends"] == []


async def test_a_dry_run_does_not_sound_as_if_a_mail_had_gone(wired: Served) -> None:
    async with wired.connect() as one:
        tried = await one.call("dry_run", to=PAT, subject="hi", text="hello")
        later = await one.call("get_request", idempotency_key=tried["idempotency_key"])

    assert tried["next_action"] == "nothing was sent; send_email would be queued"
    assert "request_id" not in tried
    assert later["reason"] == "send_request_not_found"


OUTCOMES: dict[str, Outcome] = {
    "relayed": Relayed(OK),
    "bounced": Bounced("no", GONE),
    "deferred": Deferred("later", LATER),
}


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("relayed", "it has left"),
        ("bounced", "did not arrive"),
        ("cancelled", "does not go"),
        ("deferred", "tried again"),
    ],
)
async def test_what_became_of_a_mail_says_what_there_is_to_do(served: Served, state: str, words: str) -> None:
    world = served.door.world
    async with served.connect("a") as one:
        sent = await one.call("send_email", to=PAT, subject="hi", text="hello", **{"from": BOXES[0]})
        if state == "cancelled":
            await one.call("cancel_send", request_id=sent["request_id"])
        else:
            (claim,) = await world.claim()
            await world.relay(claim, OUTCOMES[state])
        said = await one.call("get_request", request_id=sent["request_id"])

    assert said["status"] == state
    assert words in said["next_action"]


async def test_a_budget_tells_of_the_mailbox_and_the_agent_too(sqlite_files: SqliteFiles) -> None:
    options = {"quota": {"mailbox_day": 9, "agent_hour": 7, "tenant_month": 8}}
    async with a_world(sqlite_files, options) as world, a_door(world) as door:
        async for served in serving(door):
            async with served.connect("a") as one:
                await one.call("send_email", to=PAT, subject="hi", text="hello", **{"from": BOXES[0]})
                own = await one.call("check_budget", **{"from": BOXES[0]})
                other = await one.call("check_budget", **{"from": BOXES[1]})
                wrong = await one.call("check_budget", **{"from": "nobody@example.net"})

            assert own["mailbox"]["daily"]["remaining"] == 8
            assert own["agent"]["hourly"]["remaining"] == 6
            assert own["tenant"]["monthly"]["remaining"] == 7
            assert other["mailbox"]["daily"]["remaining"] == 9
            assert wrong["errors"][0]["field"] == "from"


@pytest.mark.parametrize(
    ("name", "given", "field"),
    [
        ("send_email", {"subject": "hi"}, "to"),
        ("send_email", {"to": PAT, "text": "x", "subjct": "hi"}, "subjct"),
        ("send_email", {"to": "nobody", "subject": "x", "text": "x"}, "to[0]"),
        ("send_email", {"to": PAT, "subject": "x", "text": "x", "fencing_token": "7"}, "fencing_token"),
        ("acquire_lease", {"contact_email": PAT, "duration_minutes": -1}, "duration_minutes"),
        ("vote", {"consensus_id": "x"}, "vote"),
        ("get_request", {}, "request_id"),
        ("check_suppression", {"contact_email": "nobody"}, "contact_email"),
        ("contact_timeline", {"contact_email": "nobody"}, "contact_email"),
        ("batch_send", {"sends": "all"}, "sends"),
    ],
)
async def test_a_wrong_argument_is_named_as_the_model_knows_it(
    wired: Served, name: str, given: dict[str, object], field: str
) -> None:
    async with wired.connect() as one:
        got = await one.client.call_tool(name, given)

    assert got.is_error is True
    assert got.structured_content is not None
    assert got.structured_content["errors"][0]["field"] == field
    assert got.structured_content["repeat"] == "fix_first"
    assert wired.door.world.rows()["sends"] == []


async def test_a_tool_that_there_is_not_is_an_error_of_the_protocol(wired: Served) -> None:
    from mcp.shared.exceptions import MCPError

    async with wired.connect() as one:
        with pytest.raises(MCPError, match="no such tool"):
            await one.client.call_tool("send_emails", {})


async def test_common_answers_are_small(served: Served) -> None:
    long = "x" * 40
    async with served.connect("a") as one:
        sent = await one.call("send_email", to=[f"p{n}@example.net" for n in range(5)], subject=long, text=long)
        lease = await one.call("acquire_lease", contact_email=PAT)
        for number in range(12):
            await one.call("send_email", to=f"q{number}@example.net", subject=long, text=long)
        listed = await one.call("list_requests")
        known = await one.call("contact_timeline", contact_email=PAT)

    for answer in (sent, lease, known):
        assert len(json.dumps(answer)) < 1800  # three characters a token are few
    assert len(json.dumps(listed)) < 2400


async def test_with_and_without_the_slash_and_only_with_a_good_key(wired: Served) -> None:
    for path in ("/mcp", "/mcp/"):
        async with wired.connect(path=path) as one:
            assert (await one.call("who_am_i"))["tenant_id"] == TENANT
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{wired.port}") as client:
        for headers in ({}, {"Authorization": "Bearer gk_live_" + "x" * 43}):
            for path in ("/mcp", "/mcp/"):
                answer = await client.post(path, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers)
                assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized")
                assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("name", ["z\u00fcrich", "a\r\nX-Evil: 1", "", " ", 5, ["a"], {}, False])
@pytest.mark.parametrize("tool", ["send_email", "dry_run", "batch_send"])
async def test_a_name_that_no_header_can_hold_sends_nothing_as_somebody_else(
    wired: Served, tool: str, name: object
) -> None:
    mail = {"to": PAT, "subject": "hi", "text": "hello"}
    given = {"sends": [mail]} if tool == "batch_send" else mail
    async with wired.connect() as one:
        got = await one.call(tool, agent_name=name, **given)

    assert (got["ok"], got["repeat"]) == (False, "fix_first")
    assert got["errors"] == [{"field": "agent_name", "message": "must be a name or id in ASCII; use the agent's id"}]
    assert wired.door.world.rows()["sends"] == []
