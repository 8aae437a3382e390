"""Bodies that are no JSON to rely on, tried on every route that takes one: the same answer everywhere, and nothing done."""

from typing import Any

import pytest

from tests.docs_http import described
from tests.doors.door import Door, problem

JSON = "application/json"
ROUTES = [
    f"{method} {path}"
    for method, path, operation in described()
    if JSON in operation.get("requestBody", {}).get("content", {})
]
DEEP = 10_000
BAD = {
    "a member twice": b'{"tenantId": "default", "tenantId": "default"}',
    "a member twice within another": b'{"metadata": {"a": 1, "a": 2}}',
    "not a number": b'{"durationMinutes": NaN}',
    "no end": b'{"durationMinutes": -Infinity}',
    "a number beyond all": b'{"fencingToken": 1e400}',
    "digits beyond all": b'{"fencingToken": 1' + b"0" * 5000 + b"}",
    "lists in lists": b"[" * DEEP + b"]" * DEEP,
    "objects in objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "half a surrogate": b'{"label": "\\ud800"}',
    "half a surrogate in a name": b'{"\\udfff": 1}',
    "octets of no text": b'{"label": "\xff\xfe"}',
    "a mark of byte order": b'\xef\xbb\xbf{"label": "a"}',
    "two values": b"{} {}",
    "a comment": b'{"label": "a"} // b',
    "nothing but blanks": b"  ",
}
FORMS = {
    "application/x-www-form-urlencoded": b"recipientEmail=pat%40example.net&text=hi",
    "multipart/form-data; boundary=x": b'--x\r\nContent-Disposition: form-data; name="text"\r\n\r\nhi\r\n--x--\r\n',
    "text/plain": b'{"recipientEmail": "pat@example.net", "text": "="}',
}
"""What a page of somebody else's can have a browser post, without being asked first."""


async def ask(door: Door, route: str, body: bytes, **headers: str) -> Any:  # noqa: ANN401
    """Calls a route as an operator with these octets."""
    method, _, path = route.partition(" ")
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await door.call(method, path, by="operator", content=body, headers={"content-type": JSON} | named)


@pytest.mark.parametrize("name", BAD)
async def test_no_route_takes_a_body_that_readers_could_read_differently(wire: Door, name: str) -> None:
    before = wire.world.rows()

    for route in ROUTES:
        answer = await ask(wire, route, BAD[name])

        assert answer.status_code in (400, 422), (route, answer.text)
        problem(answer, answer.status_code, "invalid_json" if answer.status_code == 400 else "invalid_request")
    assert wire.world.rows() == before


@pytest.mark.parametrize("kind", FORMS)
async def test_no_route_takes_what_a_page_of_somebody_else_can_post(wire: Door, kind: str) -> None:
    for route in ROUTES:
        answer = await ask(wire, route, FORMS[kind], content_type=kind, origin="https://www.example.org")

        problem(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize("host", ["www.example.org", "localhost.example.org", "", "127.0.0.1.example.org"])
async def test_no_route_is_there_under_the_name_of_somebody_else(wire: Door, host: str) -> None:
    for route in ROUTES:
        answer = await ask(wire, route, b"{}", host=host)

        assert answer.status_code in (400, 421), (route, answer.text)


async def test_no_route_waits_for_a_body_of_100_megabytes(wire: Door) -> None:
    for route in ROUTES:
        answer = await ask(wire, route, b"{}", content_length="100000000")

        problem(answer, 413, "body_too_large")


async def test_true_is_no_token(wire: Door) -> None:
    mail = '{"to": "pat@example.net", "text": "hi", "fencingToken": true, "fencingTokens": {"pat@example.net": true}}'

    answer = await ask(wire, "POST /v1/agent/request-send", mail.encode())

    body = problem(answer, 422, "invalid_request")
    assert sorted(one["field"] for one in body["errors"]) == ["fencingToken", "fencingTokens.pat@example.net"]
