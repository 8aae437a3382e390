"""Listening: no event is lost and none is told twice, whatever becomes of the connection."""

import itertools
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from gateway.client import Client, Event, GatewayError, Invalid, NotAGateway, Unauthorized, Unreachable
from gateway.client.call import Call, plain
from tests import servers
from tests.client.asked import PATIENCE, Either
from tests.client.conftest import Make, Place
from tests.client.wire_server import Step, said, scripted, streamed

KEY = "gk_live_x"
ID = "evt_{:018x}".format


def shown(n: int) -> dict[str, Any]:
    return {"id": ID(n), "type": "send.queued", "occurredAt": "2030-01-01T00:00:00Z"}


def frame(n: int) -> str:
    return f'id: {ID(n)}\nevent: send.queued\ndata: {{"id": "{ID(n)}", "type": "send.queued"}}\n\n'


def page(*numbers: int, more: bool = False) -> Step:
    return said(200, {"items": [shown(n) for n in numbers], "since": ID(numbers[-1]), "more": more})


GAP = 'event: gap\ndata: {{"reason": "buffer_overflow", "since": {}, "until": "{}"}}\n\n'


def test_events_are_told_as_they_happen(make: Make, operator: Either, place: Place, at: str) -> None:
    since = operator.events(limit=500).since
    listener = make(place.url, place.key).listen(["send.*", "policy.blocked"], at, since)

    first = operator.send(at, subject="s", text="t")
    second = operator.send(at, subject="s2", text="t2", kind="outreach")

    told = list(islice(listener, 2))
    assert [(one.type, one.request_id) for one in told] == [
        ("send.queued", first.request_id),
        ("policy.blocked", second.request_id),
    ]
    assert {one.contact for one in told} == {at}
    listener.close()


def numbers(told: Iterator[Event], many: int) -> list[int]:
    return [int(one.id.removeprefix("evt_"), 16) for one in islice(told, many)]


def test_a_stream_that_ends_goes_on_where_it_was(make: Make) -> None:
    half = frame(3)[:-1]
    with scripted(streamed(f"retry: 2000\nid: {ID(1)}\n\n", frame(2), half), streamed(frame(3), frame(4))) as server:
        lost: list[tuple[GatewayError, float]] = []
        back: list[int] = []
        listener = make(server.url, KEY).listen(
            lost=lambda *words: lost.append(words), back=lambda: back.append(len(lost))
        )

        assert numbers(listener, 1) == [2]
        assert back == []
        assert numbers(listener, 2) == [3, 4]
        listener.close()

    assert [headers.get("last-event-id") for _, headers, _ in server.asked] == [None, ID(2)]
    assert [(type(error), 1 <= wait <= 30) for error, wait in lost] == [(Unreachable, True)]
    assert back == [1]


def test_where_nothing_had_happened_yet_nothing_is_lost_either(make: Make) -> None:
    with scripted(streamed("retry: 2000\n\n"), streamed(frame(1))) as server:
        listener = make(server.url, KEY).listen()

        assert numbers(listener, 1) == [1]
        listener.close()

    assert server.asked[1][1]["last-event-id"] == ID(0)


def test_what_the_stream_leaves_out_is_read_from_the_list(make: Make) -> None:
    gap = GAP.format(f'"{ID(1)}"', ID(5))
    steps = (streamed(frame(1), gap, frame(6)), page(2, 3, more=True), page(4, 5, 6, more=True))
    with scripted(*steps) as server:
        listener = make(server.url, KEY).listen(["send.*", "agent.*"], "pat@example.net")

        assert numbers(listener, 6) == [1, 2, 3, 4, 5, 6]
        listener.close()

    paths = [path for path, _, _ in server.asked]
    filters = "eventTypes=send.%2A%2Cagent.%2A&contactEmail=pat%40example.net"
    assert paths[0] == f"GET /v1/agent/events/stream?{filters}"
    assert paths[1:] == [f"GET /v1/agent/events?{filters}&since={ID(n)}&limit=500" for n in (1, 3)]


def test_a_gap_at_the_very_beginning_has_no_since(make: Make) -> None:
    with scripted(streamed(GAP.format("null", ID(2)), frame(3)), page(1, 2)) as server:
        listener = make(server.url, KEY).listen()

        assert numbers(listener, 3) == [1, 2, 3]
        listener.close()


def test_an_id_that_the_log_never_had_is_forgotten_and_nothing_is_read_again(make: Make) -> None:
    gap = 'event: gap\ndata: {{"reason":"unknown_id","since":null,"until":{}}}\n\n'
    with scripted(streamed(gap.format(f'"{ID(2)}"'), frame(3)), streamed(gap.format("null"), frame(1))) as server:
        listener = make(server.url, KEY).listen(since="evt_" + "f" * 20)

        assert numbers(listener, 2) == [3, 1]
        listener.close()

    paths = [path for path, _, _ in server.asked]
    assert paths == ["GET /v1/agent/events/stream"] * 2
    assert server.asked[1][1]["last-event-id"] == ID(3)


def test_a_gap_that_cannot_be_filled_is_met_again(make: Make) -> None:
    gap = GAP.format(f'"{ID(1)}"', ID(3))
    sick = said(503, {"error": "store_unavailable"}, Retry_After="0")
    with scripted(streamed(frame(1), gap), sick, streamed(gap, frame(4)), page(2, 3)) as server:
        listener = make(server.url, KEY, retries=0).listen()

        assert numbers(listener, 4) == [1, 2, 3, 4]
        listener.close()


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        (streamed(frame(1), 'event: end\ndata: {"reason":"unauthorized"}\n\n'), Unauthorized),
        (said(401, {"error": "unauthorized", "message": "no"}), Unauthorized),
        (said(422, {"error": "invalid_request", "message": "no"}), Invalid),
        (said(200, {}), NotAGateway),
        (streamed("event: send.queued\ndata: {\n\n"), NotAGateway),
    ],
    ids=["end", "401", "422", "no stream", "no json"],
)
def test_it_ends_where_coming_back_is_of_no_use(make: Make, first: Step, kind: type[Exception]) -> None:
    with scripted(first) as server, pytest.raises(kind):
        list(make(server.url, KEY).listen())

    assert len(server.asked) == 1


def test_where_there_is_no_gateway_at_the_start_it_ends_as_well(make: Make) -> None:
    with scripted() as server:
        pass

    with pytest.raises(Unreachable):
        list(make(server.url, KEY, retries=0).listen(since=ID(1)))


def test_a_key_that_is_revoked_ends_its_stream(make: Make, operator: Either, place: Place, name: str) -> None:
    key = place.new_key()
    listener = make(place.url, key["rawKey"]).listen(since=operator.events(limit=500).since)
    names = (f"{name}-{n}" for n in itertools.count())
    operator.register(next(names))
    next(listener)

    operator.ask(Call("DELETE", f"/v1/agent/keys/{key['id']}", plain))

    def told() -> None:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:  # a key is believed for a second
            operator.register(next(names))
            next(listener)

    with pytest.raises(Unauthorized):
        told()


def test_a_gateway_that_is_stopped_and_started_again_loses_no_event(make: Make, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'gateway.db'}"
    key = servers.init(store, tmp_path / "profile.toml")["rawKey"]
    first = servers.start(store, roles="http")
    url = f"http://127.0.0.1:{first.port}"
    listener = make(url, key).listen("agent.registered")
    try:
        told = _told(listener, url, key, "before")
    finally:
        assert first.stop() == 0
    again = servers.start(store, roles="http", extra={"GATEWAY_HTTP_BIND": f"127.0.0.1:{first.port}"})
    try:
        with Client(url, key) as operator:
            made = [operator.register(f"while-away-{n}").id for n in range(3)]
        told += [one.agent_id or one.body.get("agentId") for one in islice(listener, 3)]
        assert told[1:] == made
        assert len(set(told)) == 4
    finally:
        listener.close()
        again.kill()


def _told(listener: Iterator[Event], url: str, key: str, name: str) -> list[Any]:
    """The first event of a stream: it tells what happens from now on, so something happens until it is told."""
    import threading

    ended = threading.Event()

    def register() -> None:
        with Client(url, key) as operator:
            for n in itertools.count():
                operator.register(f"{name}-{n}")
                if ended.wait(0.2):
                    return

    busy = threading.Thread(target=register)
    busy.start()
    try:
        return [next(listener).body["agentId"]]
    finally:
        ended.set()
        busy.join()
