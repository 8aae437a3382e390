"""What stands around the routes: Host check, headers, routes that are not there, health, and what nobody expected."""

import asyncio
import logging
import re

import pytest
from fastapi import APIRouter

from gateway.core.errors import StoreUnavailableError
from gateway.doors.http.pages import Readiness
from tests.doors.door import SEND, Door, a_door, problem
from tests.world import World

broken = APIRouter()


@broken.get("/broken")
async def break_down() -> None:
    raise RuntimeError("hunter2 is in this text")


@broken.get("/endless")
async def cut_off() -> None:
    raise asyncio.CancelledError


@pytest.fixture
def paths(wire: Door) -> list[str]:
    return ["/healthz", "/readyz", "/openapi.json", "/docs", "/nowhere", SEND]


async def test_every_answer_has_the_headers_of_the_house(wire: Door, paths: list[str]) -> None:
    for path in paths:
        headers = (await wire.get(path, by=None)).headers

        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert len(headers.get_list("content-security-policy")) == 1


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST",
        "localhost:8080",
        "127.0.0.1:8080",
        "[::1]:8080",
        "[::1]",
        "gw.example.com",
        "gw.example.com.",
    ],
)
async def test_ones_own_names_are_served(wire: Door, host: str) -> None:
    assert (await wire.send(headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example.com", "localhost.evil.example.com", "gw.example.com.evil.example.org", "", "[::2]", "127.0.0.1.x"],
)
async def test_other_names_are_misdirected(wire: Door, host: str) -> None:
    problem(await wire.send(headers={"Host": host}), 421, "misdirected_request")
    assert wire.world.rows()["sends"] == []
    assert (await wire.get("/healthz", by=None, headers={"Host": host})).status_code == 200


async def test_two_names_at_once_are_misdirected(wire: Door) -> None:
    answer = await wire.client.get("/docs", headers=[("Host", "localhost"), ("Host", "evil.example.com")])

    problem(answer, 421, "misdirected_request")


async def test_an_operator_may_allow_other_names_or_all(sqlite_world: World) -> None:
    async with a_door(sqlite_world, allowed_hosts="Mail.example.org") as door:
        assert (await door.get("/docs", by=None, headers={"Host": "mail.example.org"})).status_code == 200
        assert (await door.get("/docs", by=None, headers={"Host": "evil.example.org"})).status_code == 421
    async with a_door(sqlite_world, allowed_hosts="*") as door:
        assert (await door.get("/docs", by=None, headers={"Host": "evil.example.org"})).status_code == 200


@pytest.mark.parametrize(
    "path", ["/", "/nowhere", "/v1/agent/request-send/", "/v1//agent/request-send", "/docs/", "/redoc"]
)
async def test_a_route_that_is_not_there_is_a_problem_like_all_others(wire: Door, path: str) -> None:
    problem(await wire.get(path), 404, "not_found")


@pytest.mark.parametrize(("method", "path"), [("GET", SEND), ("PATCH", SEND), ("POST", "/healthz"), ("TRACE", "/docs")])
async def test_a_method_that_is_not_there_is_one_too(wire: Door, method: str, path: str) -> None:
    answer = await wire.call(method, path)

    problem(answer, 405, "method_not_allowed")
    assert answer.headers["allow"]


async def test_a_method_that_is_not_there_is_told_all_that_are(wire: Door) -> None:
    answers = [await wire.call(*one) for one in (("PUT", "/v1/suppressions"), ("POST", "/healthz"), ("GET", SEND))]

    assert [answer.headers["allow"] for answer in answers] == ["GET, HEAD, POST", "GET, HEAD", "POST"]


@pytest.mark.parametrize(
    "path", ["/healthz", "/readyz", "/docs", "/nowhere", "/v1/suppressions", "/v1/agent/requests/x"]
)
async def test_head_is_get_without_a_body(wire: Door, path: str) -> None:
    get, head = await wire.get(path), await wire.call("HEAD", path)

    assert (head.status_code, head.content) == (get.status_code, b"")
    assert dict(head.headers) == dict(get.headers)


async def test_head_of_a_stream_comes_to_its_end(wire: Door) -> None:
    async with asyncio.timeout(10):
        answer = await wire.call("HEAD", "/v1/agent/events/stream")

    assert (answer.status_code, answer.content) == (200, b"")


async def test_what_nobody_expected_is_told_dully_and_logged_without_its_text(
    sqlite_world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_door(sqlite_world, [broken]) as door:
        answer = await door.get("/broken")

    body = problem(answer, 500, "internal_error")
    assert set(body) == {"error", "message", "id"}
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    told = record.__dict__
    assert (told["id"], told["kind"], told["path"]) == (body["id"], "RuntimeError", "/broken")
    assert any("break_down" in place for place in told["at"])
    assert "hunter2" not in f"{answer.text} {told} {caplog.text}"


async def test_a_request_that_a_stop_cuts_off_is_told_to_come_again(
    sqlite_world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_door(sqlite_world, [broken]) as door:
        answer = await door.get("/endless")

    problem(answer, 503, "overloaded")
    assert answer.headers["retry-after"]
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


# --- health -----------------------------------------------------------------------------------------------------------


async def test_a_process_that_lives_says_so_whatever_the_store_does(
    wire: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object) -> None:
        raise StoreUnavailableError("down")

    monkeypatch.setattr(wire.world.store, "read", down)

    assert (await wire.get("/healthz", by=None)).json()["status"] == "ok"
    answer = await wire.get("/readyz", by=None)
    problem(answer, 503, "not_ready")
    assert answer.headers["retry-after"]


async def test_a_store_on_the_right_schema_is_ready(door: Door) -> None:
    assert (await door.get("/readyz", by=None)).json() == {"status": "ready"}


async def test_a_store_on_another_schema_is_not_ready(wire: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    def older(*_: object) -> None:
        raise ValueError("DATABASE_URL: the database is at revision r0000")

    monkeypatch.setattr("gateway.doors.http.pages.check", older)

    body = problem(await wire.get("/readyz", by=None), 503, "not_ready")

    assert "r0000" not in body["message"]


async def test_probes_do_not_keep_the_store_busy(wire: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0

    def look(*_: object) -> None:
        nonlocal looked
        looked += 1

    monkeypatch.setattr("gateway.doors.http.pages.check", look)
    wire.app.state.readiness = Readiness()

    for _ in range(5):
        await wire.get("/readyz", by=None)

    assert looked == 1


# --- what is described ------------------------------------------------------------------------------------------------


async def test_every_route_is_described(wire: Door) -> None:
    described = (await wire.get("/openapi.json", by=None)).json()

    told = {(method, path) for path, operations in described["paths"].items() for method in operations}
    assert told >= {
        ("post", "/v1/agent/request-send"),
        ("post", "/v1/agent/simulate-send"),
        ("delete", "/v1/agent/sends/{request_id}"),
        ("get", "/v1/agent/requests"),
        ("get", "/v1/agent/requests/{request_id}"),
        ("post", "/v1/agent/requests/{request_id}/resolve"),
        ("get", "/v1/ops/trace/{request_id}"),
        ("post", "/v1/suppressions"),
        ("get", "/v1/suppressions"),
        ("get", "/v1/suppressions/check"),
        ("delete", "/v1/suppressions/{entry}"),
        ("post", "/v1/agent/whoami"),
        ("get", "/v1/agent/agents"),
        ("post", "/v1/agent/keys"),
        ("get", "/v1/agent/keys"),
        ("delete", "/v1/agent/keys/{key_id}"),
        ("post", "/v1/agent/register"),
        ("post", "/v1/agent/coordination/lease"),
        ("put", "/v1/agent/coordination/lease/{lease_id}"),
        ("delete", "/v1/agent/coordination/lease/{lease_id}"),
        ("get", "/v1/agent/coordination/leases"),
        ("post", "/v1/templates"),
        ("get", "/v1/templates"),
        ("get", "/v1/templates/{template_id}"),
        ("post", "/v1/templates/{template_id}/versions"),
        ("get", "/v1/templates/{template_id}/versions/{version}"),
        ("post", "/v1/templates/{template_id}/publish"),
        ("post", "/v1/templates/{template_id}/render"),
        ("post", "/v1/templates/{template_id}/lint"),
        ("post", "/v1/attachments"),
        ("get", "/v1/attachments/{attachment_id}"),
        ("delete", "/v1/attachments/{attachment_id}"),
        ("get", "/v1/agent/whoami"),
        ("patch", "/v1/agent/keys/{key_id}"),
        ("get", "/healthz"),
        ("get", "/readyz"),
    }
    for operations in described["paths"].values():
        for operation in operations.values():
            assert operation["description"].endswith(".")
            assert "422" not in operation["responses"]


async def test_the_description_is_whole(wire: Door) -> None:
    described = await wire.get("/openapi.json", by=None)

    schemas = described.json()["components"]["schemas"]
    assert {name.rpartition("/")[2] for name in re.findall(r'"\$ref":"([^"]+)"', described.text)} <= set(schemas)
    send = schemas["SendRequest"]["properties"]
    assert {"from", "to", "cc", "bcc", "rawMessage", "fencingTokens", "scheduledAt", "payload"} <= set(send)
    assert described.json()["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    parameters = described.json()["paths"]["/v1/agent/request-send"]["post"]["parameters"]
    assert {one["name"] for one in parameters} == {"Idempotency-Key", "X-Agent-Id", "X-Fencing-Token", "Prefer"}


async def test_the_page_of_routes_loads_nothing_from_elsewhere(wire: Door) -> None:
    answer = await wire.get("/docs", by=None)

    assert answer.headers["content-type"].startswith("text/html")
    assert re.findall(r"(?:src|href)=\"([^\"]*)\"", answer.text) == ["openapi.json"]
    assert "<script" not in answer.text
    for path in (
        "/v1/agent/request-send",
        "/v1/agent/coordination/lease/{lease_id}",
        "fencingTokens",
        "Idempotency-Key",
    ):
        assert path in answer.text


async def test_a_form_is_not_taken(wire: Door) -> None:
    headers = {"Authorization": f"Bearer {wire.keys['a']}"}
    form = await wire.client.post(SEND, data={"to": "pat@example.net"}, headers=headers)
    files = await wire.client.post(SEND, files={"to": b"pat@example.net"}, headers=headers)

    problem(form, 415, "unsupported_media_type")
    problem(files, 415, "unsupported_media_type")
