"""How often a caller may ask: limits of keys with their headers, wrong keys by address, requests under way."""

import secrets

import httpx
import pytest

from gateway.doors import limits
from gateway.doors.http import guard
from gateway.doors.limits import GUESSES, Limits
from gateway.doors.refusal import Refusal
from tests.doors.door import Clock, Door, problem

KEYS = "/v1/agent/keys"
WHOAMI = "/v1/agent/whoami"


def raw() -> str:
    return f"gk_live_{secrets.token_urlsafe(32)}"


def stands(answer: httpx.Response) -> tuple[int, ...]:
    return tuple(int(answer.headers[f"ratelimit-{name}"]) for name in ("limit", "remaining", "reset"))


async def test_a_key_without_a_limit_is_told_of_none(wire: Door) -> None:
    answer = await wire.get(WHOAMI)

    assert [name for name in answer.headers if name.startswith("ratelimit")] == []


async def test_a_key_beyond_its_limit_is_told_when_to_come_again(door: Door) -> None:
    door.add_key("slow", per_minute=3)

    taken = [await door.get(WHOAMI, by="slow") for _ in range(3)]
    refused = await door.get(WHOAMI, by="slow")

    assert [one.status_code for one in taken] == [200] * 3
    assert [stands(one)[:2] for one in taken] == [(3, 2), (3, 1), (3, 0)]
    body = problem(refused, 429, "rate_limited")
    assert (body["limit"], refused.headers["retry-after"]) == (3, "20")
    assert stands(refused) == (3, 0, 60)
    door.clock.now += 20
    assert (await door.get(WHOAMI, by="slow")).status_code == 200
    assert (await door.get(WHOAMI, by="slow")).status_code == 429
    assert (await door.get(WHOAMI, by="a")).status_code == 200


async def test_refusals_and_routes_that_are_not_for_the_key_count_and_tell_too(wire: Door) -> None:
    wire.add_key("slow", per_minute=2, scopes=("read",))

    first = await wire.send(by="slow")
    second = await wire.get("/v1/suppressions?limit=x", by="slow")

    problem(first, 403, "insufficient_scope")
    assert (stands(first)[:2], stands(second)[:2], second.status_code) == ((2, 1), (2, 0), 422)
    problem(await wire.send(by="slow"), 429, "rate_limited")
    assert wire.world.rows()["sends"] == []


async def test_an_operator_sets_a_keys_limit_and_takes_it_off(door: Door) -> None:
    path = f"{KEYS}/{door.ids['a']}"

    told = (await door.call("PATCH", path, {"requestsPerMinute": 1}, by="operator")).json()

    assert told["requestsPerMinute"] == 1
    assert (await door.post(WHOAMI)).json()["requests_per_minute"] == 1
    problem(await door.post(WHOAMI), 429, "rate_limited")
    await door.call("PATCH", path, {"requestsPerMinute": None}, by="operator")
    assert (await door.post(WHOAMI)).status_code == 200


@pytest.mark.parametrize("looser", [10, None])
async def test_a_key_tightens_its_own_limit_and_a_person_loosens_it(door: Door, looser: int | None) -> None:
    path = f"{KEYS}/{door.ids['a']}"

    told = (await door.call("PATCH", path, {"requestsPerMinute": 9})).json()

    assert told["requestsPerMinute"] == 9
    refused = problem(await door.call("PATCH", path, {"requestsPerMinute": looser}), 403, "human_decision_required")
    assert (refused["kind"], refused["id"], refused["loosens"]) == ("api-key", door.ids["a"], ["requestsPerMinute"])


async def test_a_limited_key_makes_no_key_without_a_limit(door: Door) -> None:
    door.add_key("manager", scopes=("manage",), per_minute=50)

    made = (await door.post(KEYS, {"label": "x"}, by="manager")).json()

    assert made["requestsPerMinute"] == 50
    assert (await door.post(KEYS, {"label": "y", "requestsPerMinute": 9}, by="manager")).json()[
        "requestsPerMinute"
    ] == 9
    refused = await door.post(KEYS, {"label": "x", "requestsPerMinute": 99}, by="manager")
    assert problem(refused, 403, "human_decision_required")["loosens"] == ["requestsPerMinute"]


async def test_a_key_and_those_that_it_has_made_share_its_limit(door: Door) -> None:
    door.add_key("manager", scopes=("manage",), per_minute=4)
    made = (await door.post(KEYS, {"label": "x", "scopes": ["manage"]}, by="manager")).json()
    again = (await door.post(KEYS, {"label": "y"}, by=made["rawKey"])).json()

    by_both = [await door.get(WHOAMI, by=one) for one in (again["rawKey"], made["rawKey"])]

    assert [stands(one)[1] for one in by_both] == [1, 0]
    for one in (again["rawKey"], made["rawKey"], "manager"):
        problem(await door.get(WHOAMI, by=one), 429, "rate_limited")
    assert (await door.get(WHOAMI, by="a")).status_code == 200


async def test_wrong_keys_from_one_address_are_slowed_down_and_good_ones_are_not(wire: Door) -> None:
    await wire.get(WHOAMI)
    for _ in range(GUESSES):
        problem(await wire.get(WHOAMI, by=raw()), 401, "unauthorized")

    slowed = await wire.get(WHOAMI, by=raw())

    problem(slowed, 429, "too_many_wrong_keys")
    assert slowed.headers["retry-after"] == "1"
    wire.clock.now += 0.5
    assert (await wire.get(WHOAMI)).status_code == 200
    wire.clock.now += 0.5
    problem(await wire.get(WHOAMI, by="no key at all"), 401, "unauthorized")
    problem(await wire.get(WHOAMI, by=raw()), 429, "too_many_wrong_keys")


async def test_a_good_key_is_known_as_such_after_keys_have_changed(wire: Door) -> None:
    await wire.get(WHOAMI)
    for _ in range(GUESSES):
        await wire.get(WHOAMI, by=raw())

    wire.context.auth.forget()

    assert (await wire.get(WHOAMI)).status_code == 200
    problem(await wire.get(WHOAMI, by=raw()), 429, "too_many_wrong_keys")


async def test_who_gives_no_key_is_told_so_as_often_as_he_asks(wire: Door) -> None:
    for _ in range(GUESSES + 5):
        problem(await wire.get(WHOAMI, by=None), 401, "unauthorized")


def test_one_customers_addresses_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    some = Limits(Clock())
    for number in range(GUESSES):
        some.note_guess(f"2001:db8:0:1::{number:x}")

    with pytest.raises(Refusal):
        some.refuse_guesses("2001:db8:0:1:ffff::1")
    some.refuse_guesses("2001:db8:0:2::1")
    some.refuse_guesses(None)


def test_what_is_remembered_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ADDRESSES_MAX", 3)
    monkeypatch.setattr(limits, "KEYS_MAX", 3)
    some = Limits(Clock())

    for number in range(10):
        some.note_guess(f"192.0.2.{number}")
        some.spend(f"key_{number}", 5)

    assert list(some._addresses) == ["192.0.2.7", "192.0.2.8", "192.0.2.9"]
    assert list(some._keys) == ["key_7", "key_8", "key_9"]


async def test_more_requests_than_can_be_under_way_are_told_to_come_again(
    wire: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "REQUESTS_MAX", 0)

    answer = await wire.send()

    problem(answer, 503, "overloaded")
    assert answer.headers["retry-after"] == "1"
    assert (await wire.get("/healthz", by=None)).status_code == 200
    assert wire.world.rows()["sends"] == []


async def test_a_request_that_has_ended_is_not_under_way(wire: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "REQUESTS_MAX", 1)

    for path in (WHOAMI, "/nowhere", WHOAMI):
        assert (await wire.get(path)).status_code in {200, 404}


async def test_a_websocket_is_told_that_there_is_none(wire: Door) -> None:
    headers = {"Connection": "Upgrade", "Upgrade": "WebSocket", "Sec-WebSocket-Key": "x", "Sec-WebSocket-Version": "13"}

    answer = await wire.get("/v1/agent/whoami", headers=headers)

    problem(answer, 400, "websocket_not_supported")
    assert answer.headers["connection"] == "close"


async def test_another_protocol_that_is_offered_is_not_taken_up(wire: Door) -> None:
    answer = await wire.get(WHOAMI, headers={"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c"})

    assert answer.status_code == 200
