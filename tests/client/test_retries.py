"""What is asked again and what is not: whatever happens on the way, one send stays one send."""

import time

import pytest

from gateway.client import (
    Forbidden,
    GatewayError,
    Held,
    Invalid,
    LimitExceeded,
    NotAGateway,
    NotFound,
    TooMany,
    Unavailable,
    Unreachable,
)
from gateway.client.call import Call, plain
from tests.client.asked import Either
from tests.client.conftest import Make, Place
from tests.client.wire_server import Step, dropped, passed, said, scripted

KEY = "gk_live_x"
MAIL = {"subject": "Hello", "text": "A word."}
TAKEN = said(200, {"status": "queued", "requestId": "req_1", "idempotencyKey": "k"})
NOT_NOW = said(
    503, {"error": "store_unavailable", "message": "not now", "nextAction": "try again later"}, Retry_After="0"
)


@pytest.mark.parametrize(
    "first",
    [
        dropped,
        NOT_NOW,
        said(502, {"error": "bad_gateway"}),
        said(429, {"error": "rate_limited"}, Retry_After="0"),
        said(200, {"status": "queued", "requestId": "req_1"}, short=5),
    ],
    ids=["dropped", "503", "502", "429", "half"],
)
def test_a_send_is_repeated_with_its_key(make: Make, first: Step) -> None:
    with scripted(first, TAKEN) as server:
        sent = make(server.url, KEY).send("pat@example.net", **MAIL)

    (one, other) = server.asked
    assert sent.request_id == "req_1"
    assert one == other
    assert one[2]["idempotencyKey"].startswith("py-")


def test_a_send_of_which_nobody_heard_is_found_by_its_repetition(make: Make, place: Place, at: str) -> None:
    port = int(place.url.rpartition(":")[2])
    with scripted(passed(port, lost=True), dropped, passed(port)) as between:
        client = make(between.url, place.key)
        sent = client.send(at, **MAIL)

    assert len(between.asked) == 3
    assert sent.replayed is True
    direct = make(place.url, place.key)
    found = list(direct.requests(recipient_email=at))
    assert [one.request_id for one in found] == [sent.request_id]
    assert found[0].idempotency_key == sent.idempotency_key


def test_a_batch_of_which_nobody_heard_is_sent_once(make: Make, place: Place, at: str) -> None:
    port = int(place.url.rpartition(":")[2])
    with scripted(passed(port, lost=True), passed(port)) as between:
        done = make(between.url, place.key).batch([{"to": f"{n}-{at}"} for n in range(3)], **MAIL)

    assert [one.replayed for one in done.results] == [True] * 3


def test_in_the_end_the_error_holds_the_key_to_ask_with(make: Make) -> None:
    with scripted(dropped, dropped) as server, pytest.raises(Unreachable) as caught:
        make(server.url, KEY, retries=1).send("pat@example.net", **MAIL)

    error = caught.value
    assert (error.way, error.uncertain) == ("broken", True)
    assert error.idempotency_key == server.asked[0][2]["idempotencyKey"]
    assert f"ask with the idempotency key {error.idempotency_key}" in str(error)


def test_an_own_key_is_held_too(make: Make) -> None:
    with scripted(NOT_NOW) as server, pytest.raises(Unavailable) as caught:
        make(server.url, KEY, retries=0).send("pat@example.net", idempotency_key="mine", **MAIL)

    assert caught.value.idempotency_key == "mine"
    assert (caught.value.status, caught.value.slug, caught.value.next_action) == (
        503,
        "store_unavailable",
        "try again later",
    )


def test_where_nobody_listens_nothing_was_carried_out(make: Make) -> None:
    with scripted() as server:
        pass

    with pytest.raises(Unreachable) as caught:
        make(server.url, KEY, retries=1).whoami()

    assert (caught.value.way, caught.value.uncertain) == ("unreached", False)


@pytest.mark.parametrize("first", [dropped, NOT_NOW], ids=["dropped", "503"])
def test_what_may_have_been_carried_out_is_not_repeated_where_twice_is_not_once(make: Make, first: Step) -> None:
    with scripted(first, TAKEN) as server, pytest.raises((Unreachable, Unavailable)):
        make(server.url, KEY).resolve("req_1", "retry")

    assert len(server.asked) == 1


def test_what_was_put_off_for_too_many_is_repeated_always(make: Make) -> None:
    with scripted(said(429, {"error": "rate_limited"}, Retry_After="0"), TAKEN) as server:
        assert make(server.url, KEY).resolve("req_1", "retry").status == "queued"

    assert len(server.asked) == 2


def test_it_waits_for_as_long_as_it_is_told(make: Make) -> None:
    with scripted(said(429, {"error": "rate_limited"}, Retry_After="1"), said(200, {"ok": True})) as server:
        client, began = make(server.url, KEY), time.monotonic()
        assert client.heartbeat()

    assert time.monotonic() - began >= 1


def test_who_is_to_wait_for_long_is_told_so_at_once(make: Make) -> None:
    with scripted(said(429, {"error": "rate_limited"}, Retry_After="3600")) as server, pytest.raises(TooMany) as caught:
        make(server.url, KEY).heartbeat()

    assert caught.value.retry_after == 3600
    assert len(server.asked) == 1


def test_a_time_of_day_is_taken_from_the_clock_of_the_answer(make: Make) -> None:
    now, then = "Mon, 06 Jan 2020 10:00:00 GMT", "Mon, 06 Jan 2020 11:00:00 GMT"
    answer = said(429, {"error": "rate_limited"}, Date=now, Retry_After=then)
    with scripted(answer) as server, pytest.raises(TooMany) as caught:
        make(server.url, KEY).heartbeat()

    assert caught.value.retry_after == 3600


def test_who_is_patient_waits_for_as_long_as_there_are_too_many(make: Make) -> None:
    busy = said(429, {"error": "rate_limited"}, Retry_After="0")
    with scripted(busy, busy, busy, said(200, {"ok": True})) as server:
        client = make(server.url, KEY, retries=0)
        assert client.ask(Call("GET", "/v1/agent/whoami", plain, patient=True)) == {"ok": True}

    assert len(server.asked) == 4


def test_a_refusal_is_not_asked_about_again(make: Make) -> None:
    with scripted(said(403, {"error": "forbidden", "message": "no"})) as server, pytest.raises(Forbidden, match="no"):
        make(server.url, KEY).whoami()

    assert len(server.asked) == 1


def test_an_agent_is_named_with_every_request(make: Make) -> None:
    with scripted(*[said(200, {"ok": True})] * 2) as server:
        client = make(server.url, KEY, agent="first")
        client.heartbeat()
        client.heartbeat(agent="second")

    assert [headers["x-agent-id"] for _, headers, _ in server.asked] == ["first", "second"]
    assert {headers["authorization"] for _, headers, _ in server.asked} == {f"Bearer {KEY}"}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"status": "blocked", "reason": "daily_limit_exceeded", "retryAt": "2030-01-01T00:00:00Z"}, LimitExceeded),
        ({"status": "pending_approval", "reason": "near_duplicate", "requestId": "req_1"}, Held),
    ],
)
def test_what_policy_says_has_its_class(make: Make, body: dict[str, object], kind: type[Exception]) -> None:
    with scripted(said(200, body)) as server, pytest.raises(kind) as caught:
        make(server.url, KEY).send("pat@example.net", strict=True, **MAIL)

    assert caught.value.reason == body["reason"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("body", [[], {"id": 1}, {"id": "l", "fencingToken": True}, "text", None])
def test_an_answer_that_makes_no_sense_is_an_error_of_its_own(make: Make, body: object) -> None:
    with scripted(said(200, body)) as server, pytest.raises(NotAGateway):
        make(server.url, KEY).acquire("pat@example.net")


def test_what_is_no_gateway_is_called_so(make: Make) -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html>"
    with scripted(lambda _: page) as server, pytest.raises(NotAGateway, match="text/html"):
        make(server.url, KEY).whoami()


def test_a_slow_answer_is_late(make: Make) -> None:
    import threading

    going = threading.Event()

    def slow(_: bytes) -> bytes:
        going.wait(30)
        return b""

    try:
        with scripted(slow) as server, pytest.raises(Unreachable) as caught:
            _asked(make(server.url, KEY, timeout=0.2, retries=0), going)
    finally:
        going.set()

    assert (caught.value.way, caught.value.uncertain) == ("late", True)


def _asked(client: Either, going: object) -> None:
    try:
        client.whoami()
    finally:
        going.set()  # type: ignore[attr-defined]


def test_two_faults_of_one_field_are_both_told(make: Make) -> None:
    faults = [{"field": "to", "message": "is needed"}, {"field": "to", "message": "is no list"}, "odd"]
    body = {"error": "invalid_request", "message": "some fields are not valid", "errors": faults}
    with scripted(said(422, body)) as server, pytest.raises(Invalid) as caught:
        make(server.url, KEY).send("pat@example.net", **MAIL)

    assert caught.value.errors == {"to": "is needed; is no list"}
    assert str(caught.value) == "422 invalid_request: some fields are not valid; to is needed; is no list"


@pytest.mark.parametrize("content", [b"<html>", b"[1]"])
def test_an_error_that_says_nothing_is_one_all_the_same(make: Make, content: bytes) -> None:
    page = b"HTTP/1.1 418 Odd\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" + content
    with scripted(lambda _: page) as server, pytest.raises(GatewayError) as caught:
        make(server.url, KEY).whoami()

    assert caught.value.status == 418
    assert caught.value.retry_at is None


@pytest.mark.parametrize("content", [b"[" * 200_000, b"[1]", b"{}", b"<html>"])
def test_an_answer_that_makes_no_sense_leaves_the_key_to_ask_with(make: Make, content: bytes) -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + content
    with scripted(lambda _: page) as server, pytest.raises(NotAGateway) as caught:
        make(server.url, KEY).send("pat@example.net", **MAIL)

    ((_, _, body),) = server.asked
    assert caught.value.idempotency_key == body["idempotencyKey"]


@pytest.mark.parametrize(("name", "path"), [(".", "%2E"), ("..", "%2E%2E"), ("../..", "..%2F.."), ("a.b", "a.b")])
def test_dots_in_an_id_are_no_steps_of_a_path(make: Make, name: str, path: str) -> None:
    with scripted(said(404, {"error": "send_request_not_found", "message": "no"})) as server, pytest.raises(NotFound):
        make(server.url, KEY).cancel(name)

    assert server.asked[0][0] == f"DELETE /v1/agent/sends/{path}"
