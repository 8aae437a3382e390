"""Who calls: keys, scopes, tenants, and the agent as which something is done."""

import asyncio
import logging

import pytest

from gateway.core.errors import StoreUnavailableError
from gateway.doors.auth import FRESH_SECONDS, Authenticator, Grant
from gateway.doors.refusal import Refusal
from gateway.store import agents, keys
from gateway.store.steps import armed
from tests.doors.door import SEND, SIMULATE, Clock, Door, a_send, problem
from tests.world import BOXES, TENANT

WRONG = "gk_live_" + "x" * 43


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Basic {WRONG}",
        f"Bearer {WRONG}",
        "Bearer gk_live_short",
        f"Bearer {WRONG} {WRONG}",
        f"Bearer {'y' * 100_000}",
        "Bearer gk_live_\x80" + "x" * 42,
    ],
)
async def test_whatever_is_wrong_with_a_key_is_told_in_the_same_words(wire: Door, given: str | None) -> None:
    headers = {} if given is None else {b"Authorization": given.encode("latin-1")}

    answer = await wire.client.request("POST", SEND, json=a_send(), headers=headers)

    body = problem(answer, 401, "unauthorized")
    assert body == {"error": "unauthorized", "message": body["message"]}
    assert "Authorization: Bearer" in body["message"]
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_what_cannot_be_a_key_is_not_looked_up(wire: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire.context.auth, "_read", pytest.fail)

    problem(await wire.post("/v1/agent/whoami", by="gk_live_short"), 401, "unauthorized")
    problem(await wire.post("/v1/agent/whoami", by="gk_live_" + "x" * 44), 401, "unauthorized")


async def test_two_keys_at_once_are_none(wire: Door) -> None:
    both = [("Authorization", f"Bearer {wire.keys['a']}"), ("Authorization", f"Bearer {wire.keys['b']}")]

    answer = await wire.client.request("POST", "/v1/agent/whoami", headers=both)

    problem(answer, 401, "unauthorized")


async def test_the_word_bearer_is_known_in_any_case(wire: Door) -> None:
    answer = await wire.client.post("/v1/agent/whoami", headers={"Authorization": f"bEARER {wire.keys['a']}"})

    assert answer.status_code == 200


async def test_who_has_no_key_is_refused_before_the_body_is_read(wire: Door) -> None:
    answer = await wire.client.request("POST", SEND, content=b"{not json", headers={"Content-Type": "text/plain"})

    problem(answer, 401, "unauthorized")


@pytest.mark.parametrize(
    ("scopes", "method", "path", "needed"),
    [
        (("read",), "POST", SEND, "send"),
        (("read",), "POST", SIMULATE, "send"),
        (("read",), "DELETE", "/v1/agent/sends/req_1", "send"),
        (("send",), "GET", "/v1/ops/trace/req_1", "read"),
        (("send",), "GET", "/v1/suppressions", "read"),
        (("read", "send"), "DELETE", "/v1/suppressions/sup_1", "manage"),
        (("read",), "POST", "/v1/suppressions", "send"),
        (("read", "send"), "GET", "/v1/agent/keys", "manage"),
        (("read", "send"), "POST", "/v1/agent/keys", "manage"),
        (("read", "send"), "DELETE", "/v1/agent/keys/key_1", "manage"),
        (("read", "send", "manage"), "POST", "/v1/agent/requests/req_1/resolve", "operator"),
        (("read",), "POST", "/v1/agent/register", "send"),
        (("read",), "POST", "/v1/agent/coordination/lease", "send"),
        (("read",), "PUT", "/v1/agent/coordination/lease/1", "send"),
        (("read",), "DELETE", "/v1/agent/coordination/lease/1", "send"),
        ((), "GET", "/v1/agent/coordination/leases", "read"),
        ((), "GET", "/v1/agent/requests/req_1", "read"),
        ((), "GET", "/v1/agent/agents", "read"),
    ],
)
async def test_a_key_without_the_scope_is_told_which(
    wire: Door, scopes: tuple[str, ...], method: str, path: str, needed: str
) -> None:
    wire.add_key("narrow", scopes=scopes)

    answer = await wire.call(method, path, by="narrow")

    assert problem(answer, 403, "insufficient_scope")["scope"] == needed


@pytest.mark.parametrize("scope", ["manage", "operator"])
async def test_wider_scopes_have_the_narrower_ones_within(wire: Door, scope: str) -> None:
    wire.add_key("wide", scopes=(scope,))

    assert (await wire.send(by="wide")).json()["status"] == "queued"
    assert (await wire.get("/v1/suppressions", by="wide")).status_code == 200
    assert (await wire.get("/v1/agent/keys", by="wide")).status_code == 200


async def test_another_tenants_id_is_refused_and_ones_own_is_not(wire: Door) -> None:
    assert (await wire.send(tenantId=TENANT)).status_code == 200
    problem(await wire.send(tenantId="other"), 403, "tenant_mismatch")
    problem(await wire.get("/v1/suppressions?tenantId=other"), 403, "tenant_mismatch")
    problem(await wire.get("/v1/agent/agents?tenantId=other"), 403, "tenant_mismatch")
    problem(await wire.get("/v1/agent/requests/req_1?tenantId=other"), 403, "tenant_mismatch")
    problem(await wire.call("DELETE", "/v1/agent/sends/req_1?tenantId=other"), 403, "tenant_mismatch")


async def test_a_revoked_key_sends_nothing_even_while_it_is_still_believed(door: Door) -> None:
    await door.accepted()
    door.world.store.write((TENANT,), lambda tx: keys.revoke_key(tx, TENANT, door.ids["a"]))

    answer = await door.send(idempotencyKey="twice", to="other@example.net")

    assert answer.json()["reason"] == "sender_not_allowed"
    door.clock.now += FRESH_SECONDS
    problem(await door.send(idempotencyKey="thrice"), 401, "unauthorized")


async def test_a_key_that_was_revoked_here_is_forgotten_at_once(door: Door) -> None:
    await door.accepted()

    assert (await door.call("DELETE", f"/v1/agent/keys/{door.ids['a']}", by="operator")).status_code == 200

    problem(await door.send(), 401, "unauthorized")


async def test_a_key_is_looked_up_once_a_second_whatever_comes(door: Door) -> None:
    clock, looked = Clock(), 0
    auth = Authenticator(door.world.store, clock=clock)

    def counted(raw: str) -> Grant | None:
        nonlocal looked
        looked += 1
        return read(raw)

    read = auth._read
    auth._read = counted  # type: ignore[method-assign]
    first = await asyncio.gather(*(auth.grant(door.keys["a"]) for _ in range(20)))
    again = await auth.grant(door.keys["a"])
    clock.now += FRESH_SECONDS
    late = await auth.grant(door.keys["a"])

    assert looked == 2
    assert {id(grant) for grant in first} == {id(again)}
    assert late == again


async def test_what_was_read_before_a_change_is_not_believed_after_it(door: Door) -> None:
    auth = Authenticator(door.world.store, clock=Clock())
    read = auth._read

    def changed_meanwhile(raw: str) -> Grant | None:
        found = read(raw)
        door.world.store.write((TENANT,), lambda tx: keys.revoke_key(tx, TENANT, door.ids["a"]))
        auth.forget()
        return found

    auth._read = changed_meanwhile  # type: ignore[method-assign]
    await auth.grant(door.keys["a"])
    auth._read = read  # type: ignore[method-assign]

    with pytest.raises(Refusal):
        await auth.grant(door.keys["a"])


async def test_a_store_that_cannot_answer_is_no_proof_of_a_key(wire: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    def down(*_: object) -> None:
        raise StoreUnavailableError("down")

    monkeypatch.setattr(wire.context.auth, "_read", down)

    answer = await wire.send()

    problem(answer, 503, "store_unavailable")
    assert int(answer.headers["retry-after"]) > 0


async def test_no_key_is_ever_logged(wire: Door, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    armed["commit.before"] = lambda: 1 / 0
    try:
        await wire.send(idempotencyKey="secret-key", text="secret-text")
    finally:
        armed.clear()

    said = " ".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)
    assert wire.keys["a"] not in said
    assert "secret-text" not in said


# --- as which agent ---------------------------------------------------------------------------------------------------


async def agent_of(door: Door, request: str) -> str | None:
    found: str | None = door.world.record(request).agent
    return found


async def test_a_bound_key_sends_as_its_agent(door: Door) -> None:
    body = await door.accepted()

    assert await agent_of(door, body["requestId"]) == door.world.agent["a"]


async def test_a_bound_key_may_name_its_own_agent_by_id_or_name(door: Door) -> None:
    by_id = await door.send(headers={"X-Agent-Id": door.world.agent["a"]})
    by_name = await door.send(headers={"X-Agent-Id": "a"})

    assert by_id.json()["status"] == "queued"
    assert by_name.json()["replayed"] is True


async def test_a_bound_key_that_names_another_agent_is_refused(door: Door) -> None:
    answer = await door.send(headers={"X-Agent-Id": "b"})

    assert problem(answer, 403, "agent_mismatch")["keyAgentId"] == door.world.agent["a"]


async def test_an_unbound_key_acts_as_the_agent_it_names(door: Door) -> None:
    body = (await door.send(by="free", headers={"X-Agent-Id": "c"})).json()

    assert await agent_of(door, body["requestId"]) == door.world.agent["c"]


async def test_an_unbound_key_that_names_nobody_is_nobody(door: Door) -> None:
    body = (await door.send(by="free")).json()

    assert await agent_of(door, body["requestId"]) is None


async def test_naming_an_agent_that_another_key_is_bound_to_is_refused(door: Door) -> None:
    answer = await door.send(by="free", headers={"X-Agent-Id": "a"})

    assert problem(answer, 403, "agent_bound_to_key")["agentId"] == door.world.agent["a"]


@pytest.mark.parametrize("name", ["nobody", "", "agent_000000000000", "a b", "\u00e9".encode().decode("latin-1")])
async def test_an_agent_that_is_not_there_is_refused_and_not_ignored(door: Door, name: str) -> None:
    answer = await door.send(by="free", headers={"X-Agent-Id": name.encode("latin-1")})

    problem(answer, 404, "agent_not_found")


async def test_two_agents_at_once_are_refused(door: Door) -> None:
    door.world.store.write((TENANT,), lambda tx: agents.register(tx, [agents.Register(TENANT, "d")]))
    headers = [("Authorization", f"Bearer {door.keys['free']}"), ("X-Agent-Id", "c"), ("X-Agent-Id", "d")]

    answer = await door.client.post(SEND, json=a_send(), headers=headers)

    problem(answer, 403, "agent_mismatch")


# --- which mailbox ----------------------------------------------------------------------------------------------------


async def test_without_a_mailbox_the_tenants_first_one_sends(door: Door) -> None:
    body = await door.accepted()

    assert door.world.record(body["requestId"]).reverse_path == next(iter(door.world.box))


async def test_a_key_of_one_mailbox_sends_from_that_one(door: Door) -> None:
    door.add_key("desk", mailboxes=(door.world.box[BOXES[1]].id,))

    body = (await door.send(by="desk")).json()

    assert door.world.record(body["requestId"]).reverse_path == BOXES[1]


async def test_from_and_mailbox_id_choose_the_mailbox(door: Door) -> None:
    by_from = await door.accepted(from_=f"The Desk <{BOXES[1]}>")
    by_id = await door.accepted(mailboxId=door.world.box[BOXES[1]].id, idempotencyKey="2", to="other@example.net")

    assert door.world.record(by_from["requestId"]).reverse_path == BOXES[1]
    assert door.world.record(by_id["requestId"]).reverse_path == BOXES[1]
    assert f"From: The Desk <{BOXES[1]}>\r\n".encode() in door.message(by_from["requestId"])


async def test_a_mailbox_beyond_the_keys_own_is_refused_by_name_and_by_address(door: Door) -> None:
    door.add_key("desk", mailboxes=(door.world.box[BOXES[1]].id,))

    problem(await door.send(by="desk", from_=BOXES[0]), 403, "mailbox_scope_denied")
    problem(await door.send(by="desk", mailboxId=door.world.box[BOXES[0]].id), 403, "mailbox_scope_denied")
    problem(await door.send(by="desk", mailboxId="mbx_nowhere"), 404, "mailbox_not_found")


async def test_an_author_who_is_no_mailbox_is_judged_and_refused(door: Door) -> None:
    for number, author in enumerate(["ceo@gw.example.com", "agent@example.org"]):
        body = (await door.send(from_=author, idempotencyKey=str(number))).json()

        assert (body["status"], body["reason"]) == ("blocked", "sender_not_allowed")


async def test_a_mailbox_and_another_author_do_not_go_together(door: Door) -> None:
    body = (await door.send(from_=BOXES[0], mailboxId=door.world.box[BOXES[1]].id)).json()

    assert (body["status"], body["reason"]) == ("blocked", "sender_not_allowed")
