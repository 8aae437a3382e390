"""What is JSON here and what is not; and how large, how slow and of what type a body may be."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.doors.http.inlet import ENVELOPE
from gateway.doors.http.strictjson import DEPTH_MAX, MEMBERS_MAX, loads
from gateway.doors.refusal import Faults, Refusal
from tests.doors.door import SEND, Door, a_door, a_send, b64, faults, problem
from tests.world import World

DEEP = 100_000

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_what_json_can_say_is_read_as_it_was_meant(value: object) -> None:
    assert loads(json.dumps(value).encode()) == value
    assert loads(json.dumps(value, ensure_ascii=False).encode()) == value


@given(st.binary(max_size=64))
def test_octets_of_all_kinds_are_read_or_refused(data: bytes) -> None:
    try:
        loads(data)
    except Refusal as refusal:
        assert refusal.status in {400, 422}  # noqa: PT017 - either way out is right, a third is not


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"   ",
        b"{",
        b"{}{}",
        b"{'a': 1}",
        b"[1,]",
        b"// no\n{}",
        b'{"a": 01}',
        b'{"a": +1}',
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": -Infinity}',
        b'{"a": 1e400}',
        b'{"a": -1e400}',
        b'{"a": 1' + b"0" * 400 + b"}",
        b'{"a": 1' + b"0" * 5000 + b"}",
        b'{"a": "\x00"}',
        b'{"a": "\n"}',
        b'{"a": 1, "a": 1}',
        b'{"b": {"a": 1, "a": 2}}',
        b'{"a": "\\x41"}',
        b"\xef\xbb\xbf{}",
        b'{"a": "\xff"}',
        b'{"a": "\xed\xa0\x80"}',
        "{}".encode("utf-16"),
        "{}".encode("utf-32"),
        b"[" * DEEP,
        b"[" * DEEP + b"]" * DEEP,
        b'{"a":' * DEEP + b"1" + b"}" * DEEP,
        b"[" * (DEPTH_MAX + 1) + b"]" * (DEPTH_MAX + 1),
        b"{" + b",".join(b'"%d":1' % n for n in range(MEMBERS_MAX + 1)) + b"}",
    ],
)
def test_what_readers_could_read_differently_is_no_json(text: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        loads(text)

    assert (refused.value.status, refused.value.slug) == (400, "invalid_json")


def test_a_body_may_be_nested_as_deep_as_is_said() -> None:
    assert loads(b"[" * DEPTH_MAX + b"]" * DEPTH_MAX)


def test_surrogates_that_stand_alone_are_named_wherever_they_are() -> None:
    text = rb'{"b": "\ud800", "a": ["x", "\udc00 y"], "ok": "\ud83d\ude00", "k\ud800": {"c": "\udfff"}}'

    with pytest.raises(Faults) as refused:
        loads(text)

    assert [field for field, _ in refused.value.faults] == ["?", "?.c", "a[1]", "b"]


# --- through the door -------------------------------------------------------------------------------------------------


async def raw(door: Door, content: bytes | AsyncIterator[bytes], kind: str | None = "application/json") -> "object":
    headers = {} if kind is None else {"Content-Type": kind}
    return await door.call("POST", SEND, content=content, headers=headers)


@pytest.mark.parametrize(
    "text",
    [b"{", b'{"to": "pat@example.net", "to": "x@example.net"}', b'{"fencingToken": 1e400}', b"[" * DEEP, b"\xff"],
)
async def test_what_is_no_json_is_told_with_400(wire: Door, text: bytes) -> None:
    problem(await raw(wire, text), 400, "invalid_json")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [b"[]", b"null", b"1", b'"x"', b"true"])
async def test_a_body_that_is_no_object_is_malformed(wire: Door, text: bytes) -> None:
    assert faults(await raw(wire, text)) == ["body"]  # type: ignore[arg-type]


async def test_an_empty_body_is_malformed(wire: Door) -> None:
    assert faults(await raw(wire, b"")) == ["body"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "kind",
    ["Application/JSON", "application/json;", "application/json; charset=UTF8", 'application/json;charset="utf-8";'],
)
async def test_json_may_name_its_charset(wire: Door, kind: str) -> None:
    answer: Any = await raw(wire, json.dumps(a_send()).encode(), kind)

    assert answer.json()["status"] == "queued"


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-16",
        "application/jsonx",
        "application/problem+json",
    ],
)
async def test_other_types_than_json_are_refused(wire: Door, kind: str | None) -> None:
    problem(await raw(wire, json.dumps(a_send()).encode(), kind), 415, "unsupported_media_type")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "kind",
    ["application/json", "Application/JSON", "application/json; charset=utf-8", 'application/json;charset="UTF-8"'],
)
async def test_json_in_utf8_is_taken(wire: Door, kind: str) -> None:
    answer = await raw(wire, json.dumps(a_send()).encode(), kind)

    assert answer.status_code == 200  # type: ignore[attr-defined]


async def test_a_compressed_body_is_refused(wire: Door) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}

    problem(await wire.call("POST", SEND, content=b"{}", headers=headers), 415, "unsupported_media_type")


@pytest.fixture
def limit() -> int:
    """The largest body of a door whose largest message has 2048 bytes."""
    return 2048 * 2 + ENVELOPE


async def test_a_body_that_says_it_is_too_large_is_not_read(sqlite_world: World, limit: int) -> None:
    async def never() -> AsyncIterator[bytes]:
        if asyncio.get_running_loop().is_running():
            pytest.fail("it was read")
        yield b""

    async with a_door(sqlite_world, max_message_bytes=2048) as door:
        headers = {"Content-Type": "application/json", "Content-Length": str(limit + 1)}
        answer = await door.call("POST", SEND, content=never(), headers=headers)
        huge = await door.call("POST", SEND, content=never(), headers=headers | {"Content-Length": "9" * 50})

    assert problem(answer, 413, "body_too_large")["limit"] == limit
    assert answer.headers["connection"] == "close"
    problem(huge, 413, "body_too_large")


async def test_a_body_in_pieces_is_counted_while_it_comes(sqlite_world: World, limit: int) -> None:
    read = 0

    async def too_much() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(1000):
            read += 1024
            yield b" " * 1024

    async with a_door(sqlite_world, max_message_bytes=2048) as door:
        answer = await door.call("POST", SEND, content=too_much(), headers={"Content-Type": "application/json"})

    problem(answer, 413, "body_too_large")
    assert read <= limit + 2048


async def test_a_body_of_the_largest_size_is_taken(sqlite_world: World, limit: int) -> None:
    async with a_door(sqlite_world, max_message_bytes=2048) as door:
        text = json.dumps(a_send()).encode()
        answer = await raw(door, text + b" " * (limit - len(text)))

    assert answer.status_code == 200  # type: ignore[attr-defined]


async def test_a_body_that_drips_is_given_up(wire: Door) -> None:
    hangs = asyncio.Event()

    async def drip() -> AsyncIterator[bytes]:
        yield b"{"
        await hangs.wait()

    wire.app.state.context = replace(wire.context, body_seconds=0.05)

    async with asyncio.timeout(20):
        answer = await raw(wire, drip())

    problem(answer, 408, "request_timeout")  # type: ignore[arg-type]
    assert answer.headers["connection"] == "close"  # type: ignore[attr-defined]


async def test_a_large_message_is_read_and_made_beside_the_loop(wire: Door) -> None:
    files = [{"filename": "a.bin", "content": b64(bytes(range(256)) * 4096), "contentType": "application/octet-stream"}]

    body = await wire.accepted(attachments=files, text="x" * 300_000)

    assert len(wire.message(body["requestId"])) > 1_300_000
