"""Sessions: each is its key's own, ends with its key, has its limits, and answers nonsense in the protocol's words."""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from mcp import MCPError
from starlette.routing import Route

from gateway.coordination.queue import Queue
from gateway.doors.mcp import mount
from gateway.store import keys, schema
from tests import servers
from tests.conftest import migrated
from tests.databases import SqliteFiles
from tests.doors.door import LEASE, a_door
from tests.doors.mcp.client import Served
from tests.doors.mcp.conftest import serving
from tests.doors.mcp.raw import ABOUT, VERSION, Raw
from tests.doors.test_requests import other_tenants_key
from tests.world import BOXES, PAT, TENANT, a_world

ROUNDS = 50
PATIENCE = 20


@contextlib.asynccontextmanager
async def opened(served: Served, *names: str) -> AsyncIterator[list[Raw]]:
    """A session for each of these keys, over the same connections."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{served.port}", timeout=PATIENCE) as http:
        made = [Raw(http, served.door.keys[name]) for name in names]
        for one in made:
            assert (await one.open()).status_code == 200
        yield made


@contextlib.asynccontextmanager
async def served_with(files: SqliteFiles, **settings: Any) -> AsyncIterator[Served]:
    """A door with other settings, on a port."""
    async with a_world(files) as world, a_door(world, **settings) as door:
        async for served in serving(door):
            yield served


def revoke_elsewhere(served: Served, name: str) -> None:
    """Another node ends a key: this one hears nothing of it."""
    door = served.door
    door.world.store.write((TENANT,), lambda tx: keys.revoke_key(tx, TENANT, door.ids[name]))


# --- whose it is ------------------------------------------------------------------------------------------------------


async def test_a_session_with_another_key_is_one_that_there_is_not(wired: Served) -> None:
    async with opened(wired, "a", "b") as (a, b):
        thief = Raw(b.http, b.key, a.session)
        nobody = Raw(b.http, b.key, "0" * 32)
        for said in ("tools/list", "initialize"):
            tried, unknown = [await one.ask(said, **(ABOUT if said == "initialize" else {})) for one in (thief, nobody)]

            assert tried.status_code == unknown.status_code == 404
            assert tried.json() == unknown.json()
        for method in ("GET", "DELETE"):
            answer = await b.http.request(method, "/mcp", headers=thief.headers())
            assert answer.status_code == 404
        mine = await a.call("who_am_i")
        theirs = await b.call("who_am_i")

    assert mine["agent_id"] == wired.door.world.agent["a"]
    assert theirs["agent_id"] == wired.door.world.agent["b"]


async def test_two_sessions_at_once_act_each_as_its_own_agent(served: Served) -> None:
    door = served.door
    async with opened(served, "a", "b") as both:

        async def turn(one: Raw, name: str, number: int) -> tuple[Any, ...]:
            person = f"{name}{number}@example.net"
            lease = await one.call("acquire_lease", contact_email=person)
            token = lease["fencing_token"]
            sent = await one.call("send_email", to=person, subject=name, text=name, fencing_token=token)
            me = await one.call("who_am_i")
            return lease["agent_name"], sent["ok"], me["agent_id"], sent["request_id"]

        seen = [
            await asyncio.gather(*(turn(one, name, number) for one, name in zip(both, "ab", strict=True)))
            for number in range(ROUNDS)
        ]
        read = [await one.read(f"gateway://requests/{seen[0][0][3]}") for one in both]

    for pair in seen:
        assert [one[:3] for one in pair] == [(name, True, door.world.agent[name]) for name in "ab"]
    by_id = {row["id"]: row["agent"] for row in door.world.rows_of(schema.sends)}
    assert {by_id[pair[0][3]] for pair in seen} == {door.world.agent["a"]}
    assert {by_id[pair[1][3]] for pair in seen} == {door.world.agent["b"]}
    assert all("result" in one for one in read)  # agents of one tenant may look at each other's mail


async def test_what_a_key_may_not_see_is_in_no_result_and_no_resource(served: Served) -> None:
    door = served.door
    door.keys["stranger"] = await other_tenants_key(door)
    door.add_key("narrow", mailboxes=(door.world.box[BOXES[1]].id,))
    async with opened(served, "a", "stranger", "narrow") as (a, *others):
        sent = await a.call("send_email", to=PAT, subject="for me alone", text="hello", **{"from": BOXES[0]})
        lease = await a.call("acquire_lease", contact_email=PAT)
        for one in others:
            found = await one.call("get_request", request_id=sent["request_id"])
            stopped = await one.call("cancel_send", request_id=sent["request_id"])
            listed = await one.call("list_requests")
            resource = await one.read(f"gateway://requests/{sent['request_id']}")

            assert (found["reason"], stopped["reason"]) == ("send_request_not_found", "send_request_not_found")
            assert listed["items"] == []
            assert resource["error"]["data"]["reason"] == "send_request_not_found"
        leases = await others[0].read("gateway://leases")
        gone = await others[0].call("release_lease", lease_id=lease["lease_id"])

    assert json.loads(leases["result"]["contents"][0]["text"]) == []
    assert gone["ok"] is False
    assert len(door.world.rows()["sends"]) == 1


@pytest.mark.parametrize(("mode", "sessions"), [("legacy", 2), ("auto", 0)])
async def test_the_official_client_is_its_keys_agent_in_each_version(served: Served, mode: str, sessions: int) -> None:
    door = served.door
    async with served.connect("a", mode=mode) as a, served.connect("b", mode=mode) as b:
        open_now = len(_manager(served)._server_instances)
        both = await asyncio.gather(*(one.call("who_am_i") for one in (a, b) for _ in range(ROUNDS)))
        sent = await a.call("send_email", to=PAT, subject="hi", text="hello")
        answer = await door.call("DELETE", f"/v1/agent/keys/{door.ids['a']}", by="operator")
        with pytest.raises(MCPError):
            await a.client.call_tool("who_am_i", {})
        still = await b.call("get_request", request_id=sent["request_id"])

    assert answer.status_code == 200
    assert open_now == sessions
    assert [one["agent_id"] for one in both] == [door.world.agent["a"]] * ROUNDS + [door.world.agent["b"]] * ROUNDS
    assert still["ok"] is True


# --- the end of a key, limits -----------------------------------------------------------------------------------------


async def test_a_revoked_keys_session_ends_at_its_next_call(served: Served) -> None:
    door = served.door
    async with opened(served, "a", "b") as (a, b):
        await a.call("who_am_i")
        answer = await door.call("DELETE", f"/v1/agent/keys/{door.ids['a']}", by="operator")
        assert answer.status_code == 200, answer.text
        ended = [await a.ask("tools/list"), await a.ask("tools/call", name="who_am_i", arguments={})]
        other = await b.call("who_am_i")

    for one in ended:
        assert (one.status_code, one.json()["error"]) == (401, "unauthorized")
        assert one.headers["www-authenticate"] == "Bearer"
    assert other["ok"] is True


async def test_a_key_that_another_node_revokes_sends_nothing_and_ends_within_a_second(served: Served) -> None:
    door = served.door
    async with opened(served, "a") as (a,):
        await a.call("who_am_i")
        revoke_elsewhere(served, "a")
        sent = await a.call("send_email", to=PAT, subject="hi", text="hello")
        door.clock.now += 1.01
        after = await a.ask("tools/list")

    assert (sent["ok"], sent["status"], sent["reason"]) == (False, "blocked", "sender_not_allowed")
    assert {row["state"] for row in door.world.rows_of(schema.deliveries)} == {"blocked"}
    assert after.status_code == 401


async def test_a_key_that_is_revoked_while_its_call_waits_gets_nothing(served: Served) -> None:
    door = served.door
    body = {"contactEmail": PAT, "durationMinutes": 10}
    held = (await door.post(LEASE, body, by="b")).json()
    async with opened(served, "a") as (a,):
        waiting = asyncio.create_task(a.call("acquire_lease", contact_email=PAT, wait_seconds=30))
        async with asyncio.timeout(PATIENCE):
            while not _queued(served):  # noqa: ASYNC110  (another task enters it)
                await asyncio.sleep(0.01)
        revoke_elsewhere(served, "a")
        door.clock.now += 1.01
        await door.call("DELETE", f"{LEASE}/{held['id']}", by="b")
        async with asyncio.timeout(PATIENCE):
            said = await waiting
        after = await a.ask("tools/call", name="who_am_i", arguments={})

    assert (said["ok"], said["reason"]) == (False, "unauthorized")
    assert after.status_code == 401


async def test_a_call_that_waits_for_a_contact_has_it_when_it_is_free(served: Served) -> None:
    held = (await served.door.post(LEASE, {"contactEmail": PAT, "durationMinutes": 10}, by="b")).json()
    async with opened(served, "a") as (a,):
        waiting = asyncio.create_task(a.call("acquire_lease", contact_email=PAT, wait_seconds=30))
        async with asyncio.timeout(PATIENCE):
            while not _queued(served):  # noqa: ASYNC110  (another task enters it)
                await asyncio.sleep(0.01)
            await served.door.call("DELETE", f"{LEASE}/{held['id']}", by="b")
            said = await waiting

    assert (said["ok"], said["agent_name"]) == (True, "a")
    assert said["fencing_token"] > held["fencingToken"]


def _queued(served: Served) -> bool:
    from gateway import coordination

    return bool(served.door.context.part(coordination.Queue)._lines)


async def test_a_key_with_a_limit_is_told_after_how_many_seconds_to_come_again(wired: Served) -> None:
    wired.door.add_key("slow", per_minute=2)
    async with opened(wired, "slow") as (slow,):
        said = [await slow.call("who_am_i") for _ in range(3)]

    assert [one["ok"] for one in said] == [True, True, False]
    assert (said[2]["reason"], said[2]["repeat"]) == ("rate_limited", "after_until")
    assert said[2]["retry_after"] == 30
    assert said[2]["next_action"] == "call again after retry_after seconds"


async def test_there_are_so_many_sessions_and_no_more(
    sqlite_files: SqliteFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mount, "SESSIONS_MAX", 2)
    async with served_with(sqlite_files) as served, opened(served, "a", "b") as (a, b):
        third = Raw(a.http, a.key)
        refused = await third.open()
        still = await a.call("who_am_i")
        await b.http.delete("/mcp", headers=b.headers())
        taken = await third.open()

    assert (refused.status_code, refused.json()["error"]["message"]) == (503, "Too many open sessions")
    assert still["ok"] is True
    assert taken.status_code == 200


async def test_a_key_with_too_many_sessions_does_not_shut_out_another(
    sqlite_files: SqliteFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mount, "SESSIONS_OF_KEY", 2)
    async with served_with(sqlite_files) as served, opened(served, "a", "a") as (first, second):
        refused = await Raw(first.http, first.key).open()
        still = await second.call("who_am_i")
        other = await Raw(first.http, served.door.keys["b"]).open()
        bare = await Raw(first.http, first.key).post(LIST, **{"Mcp-Protocol-Version": "2026-07-28"})
        await first.http.delete("/mcp", headers=first.headers())
        again = await Raw(first.http, first.key).open()

    assert (refused.status_code, refused.json()["error"]) == (429, "too_many_sessions")
    assert still["ok"] is True
    assert (other.status_code, again.status_code) == (200, 200)
    assert bare.status_code != 429  # that version has no sessions


LARGE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "x": "y" * 80_000}).encode()


async def pieces() -> AsyncIterator[bytes]:
    """A large body whose length is not said beforehand."""
    for start in range(0, len(LARGE), 10_000):
        yield LARGE[start : start + 10_000]


async def test_a_body_beyond_the_limit_is_not_read(sqlite_files: SqliteFiles) -> None:
    async with served_with(sqlite_files, max_message_bytes=2048) as served, opened(served, "a") as (a,):
        at_once = await a.post(LARGE)
        bit_by_bit = await a.http.post("/mcp", headers=a.headers(), content=pieces())
        still = await a.call("who_am_i")

    assert (at_once.status_code, bit_by_bit.status_code) == (413, 413)
    assert still["ok"] is True


# --- nonsense ---------------------------------------------------------------------------------------------------------

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
NONSENSE: dict[str, tuple[object, int, int]] = {
    "no JSON": (b"{", 400, -32700),
    "no text": (b"\xff\xfe{}", 400, -32700),
    "half a pair": (json.dumps(CALL | {"params": {"name": "send_email", "arguments": {"to": "\ud800"}}}).encode(), 400, -32700),
    "deep": (b"[" * 100_000, 400, -32700),
    "nothing": (b"", 400, -32700),
    "a batch": ([LIST, LIST], 400, -32602),
    "a number": (7, 400, -32602),
    "another version of JSON-RPC": (LIST | {"jsonrpc": "1.0"}, 400, -32602),
    "an unknown method": (LIST | {"method": "tools/burn"}, 200, -32601),
    "no such tool": (CALL | {"params": {"name": "burn", "arguments": {}}}, 200, -32602),
    "no tool": (CALL | {"params": {}}, 200, -32602),
    "arguments that are none": (CALL | {"params": {"name": "who_am_i", "arguments": [1]}}, 200, -32602),
    "no such resource": (LIST | {"method": "resources/read", "params": {"uri": "gateway://keys"}}, 200, -32602),
    "a stranger's resource": (LIST | {"method": "resources/read", "params": {"uri": "file:///etc/hosts"}}, 200, -32602),
    "a resource by a path": (
        LIST | {"method": "resources/read", "params": {"uri": "gateway://requests/../keys"}}, 200, -32602,
    ),
    "no such prompt": (LIST | {"method": "prompts/get", "params": {"name": "burn"}}, 200, -32602),
    "a prompt without its arguments": (
        LIST | {"method": "prompts/get", "params": {"name": "take_over_a_contact"}}, 200, -32602,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", NONSENSE)
async def test_nonsense_is_answered_in_the_protocols_words(
    wired: Served, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    body, status, code = NONSENSE[what]
    async with opened(wired, "a") as (a,):
        answer = await a.post(body)
        still = await a.call("who_am_i")

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), answer.text
    assert "Traceback" not in answer.text
    assert 'File "' not in answer.text
    assert still["ok"] is True
    assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"Mcp-Protocol-Version": "1999-01-01"}, 400),
        ({"Accept": "text/html"}, 406),
        ({"Content-Type": "text/plain"}, 400),
        ({"Mcp-Session-Id": "x" * 5000}, 404),
    ],
)
async def test_a_head_that_does_not_fit_is_refused(wired: Served, more: dict[str, str], status: int) -> None:
    async with opened(wired, "a") as (a,):
        answer = await a.post(LIST, **more)

    assert answer.status_code == status, answer.text
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS"])
async def test_other_methods_are_not_known(wired: Served, method: str) -> None:
    async with opened(wired, "a") as (a,):
        answer = await a.http.request(method, "/mcp", headers=a.headers())

    assert answer.status_code == 405


async def test_without_a_session_nothing_is_kept(wired: Served) -> None:
    sessions = _manager(wired)._server_instances
    async with opened(wired, "a") as (a,):
        bare = Raw(a.http, a.key)
        answers = [await bare.post(LIST), await bare.post(b"{"), await bare.http.get("/mcp", headers=bare.headers())]
        kept = list(sessions)

    assert [one.status_code for one in answers] == [400, 400, 400]
    assert kept == [a.session]


def _manager(served: Served) -> Any:  # noqa: ANN401  (the sessions of the SDK)
    ends: list[Any] = [one.endpoint for one in served.door.app.routes if isinstance(one, Route)]
    (found,) = {one.door for one in ends if hasattr(one, "door")}
    return found.manager


async def test_a_version_that_nobody_knows_is_answered_with_one_that_is_known(wired: Served) -> None:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{wired.port}") as http:
        answer = await Raw(http, wired.door.keys["a"]).ask("initialize", **(ABOUT | {"protocolVersion": "1999-01-01"}))

    assert answer.json()["result"]["protocolVersion"] == VERSION


# --- a caller that hangs up -------------------------------------------------------------------------------------------

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": ABOUT["clientInfo"],
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.mark.parametrize("version", [VERSION, MODERN])
async def test_who_has_hung_up_while_it_waited_gets_no_lease(
    served: Served, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    door = served.door
    waits, looked = asyncio.Event(), asyncio.Event()
    _watch(monkeypatch, waits, looked)
    held = (await door.post(LEASE, {"contactEmail": PAT}, by="a")).json()
    async with opened(served, "b") as (b,):
        params: dict[str, Any] = {"name": "acquire_lease", "arguments": {"contact_email": PAT, "wait_seconds": 30}}
        if version == MODERN:
            b.session, params = "", params | {"_meta": META}
            more = {"Mcp-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "acquire_lease"}
        else:
            more = {}
        asked = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
        waiting = asyncio.create_task(b.post(asked, **more))
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait({waiting, asyncio.create_task(waits.wait())}, return_when=asyncio.FIRST_COMPLETED)
            assert not waiting.done(), waiting.result().text
            waiting.cancel()  # which closes the connection
            await asyncio.wait({waiting})
            assert (await door.call("DELETE", f"{LEASE}/{held['id']}")).status_code == 200
            await looked.wait()
    leases = (await door.get(f"{LEASE}s", by="operator")).json()

    assert waiting.cancelled()
    assert leases == []


def _watch(monkeypatch: pytest.MonkeyPatch, waits: asyncio.Event, looked: asyncio.Event) -> None:
    """Tells when somebody waits in line for a contact, and when nobody does any more."""
    wait = Queue._wait

    async def watched(queue: Queue, *given: Any) -> Any:  # noqa: ANN401  (as the line has it)
        waits.set()
        try:
            return await wait(queue, *given)
        finally:
            looked.set()

    monkeypatch.setattr(Queue, "_wait", watched)


# --- secrets, the end -------------------------------------------------------------------------------------------------


async def test_no_key_is_in_a_result_or_in_a_line_of_the_log(wired: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = "gk_live_" + "x" * 43
    async with opened(wired, "a", "operator") as (a, operator):
        texts = [
            (await one.ask("tools/call", name=name, arguments={"contact_email": PAT} if "contact" in name else {})).text
            for one in (a, operator)
            for name in ("who_am_i", "check_budget", "list_requests", "list_leases", "contact_timeline")
        ]
        texts += [json.dumps(await a.read("gateway://leases")), (await a.ask("tools/burn")).text]
        texts += [(await Raw(a.http, key, a.session).ask("ping")).text for key in (wrong, operator.key)]

    for raw in (wrong, *wired.door.keys.values()):
        assert [text for text in texts if raw in text] == []
        assert raw not in caplog.text


def test_a_stop_ends_open_streams_and_lets_calls_end(sqlite_files: SqliteFiles, tmp_path: Any) -> None:  # noqa: ANN401
    with sqlite_files.fresh(migrated) as url:
        key = servers.init(url, tmp_path / "profile.toml")["rawKey"]
        with servers.serving(url, roles="http", hostname="gw.example.com") as gateway:
            code, streamed, said, took = asyncio.run(_stopped(gateway, key))

    assert code == 0
    assert streamed == b""
    assert (said["ok"], said["reason"]) == (False, "lease_conflict")
    assert took < 8  # the door waits for 10 s where something does not end
    assert [line for line in gateway.lines if key in json.dumps(line) or line.get("level") == "error"] == []


async def _stopped(gateway: servers.Served, key: str) -> tuple[int, bytes, dict[str, Any], float]:
    """Stops a gateway while a stream is open and a call waits for a lease; what came of both, and the seconds it took."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.port}", timeout=PATIENCE) as http:
        one = Raw(http, key)
        await one.open()
        for name in ("first", "second"):
            await one.call("register_agent", agent_name=name, bind_key=False)
        await one.call("acquire_lease", contact_email=PAT, agent_name="first", duration_minutes=5)
        async with http.stream("GET", "/mcp", headers=one.headers()) as stream:
            assert stream.status_code == 200
            wish = {"contact_email": PAT, "agent_name": "second", "wait_seconds": 30}
            waiting = asyncio.create_task(one.call("acquire_lease", **wish))
            for _ in range(3):  # what is asked later has been answered: the call is under way
                await one.call("list_leases")
            began = time.monotonic()
            stopping = asyncio.create_task(asyncio.to_thread(gateway.stop))
            streamed = b"".join([piece async for piece in stream.aiter_raw()])
            said = await waiting
            code = await stopping
    return code, streamed, said, time.monotonic() - began
