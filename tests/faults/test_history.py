"""The history checker finds what it is for: each check has a history that must fail it, and none fails a good one."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.history import CHECKS, Arrival, Call, History, Rows, violations

PAT = "pat@example.net"
START = 1_772_627_400_000_000
SECOND = 1_000_000
ISO = "2026-03-04T12:{:02d}:00Z"


def at(seconds: float) -> int:
    """Microseconds since 1970 of so many seconds after 12:30."""
    return START + round(seconds * SECOND)


def send(number: int = 1, **changes: Any) -> dict[str, Any]:
    usual = {"id": f"req_{number}", "mailbox": "box", "idem_key": f"k{number}", "message_id": f"<{number}@gw>"}
    return usual | {"agent": "a", "kind": "outreach", "override": None, "tokens": "{}"} | changes


def delivery(number: int = 1, state: str = "relayed", **changes: Any) -> dict[str, Any]:
    usual = {"id": f"req_{number}.1", "send_id": f"req_{number}", "contact": PAT, "state": state, "claim_no": 1}
    marks = {"tried": 0, "assumed": 0, "forbidden": "", "internal": 0, "permitted_us": at(1.5)}
    return usual | marks | changes


def event(name: str, seconds: float, number: int = 0, /, *, actor: str = "a", **data: Any) -> dict[str, Any]:
    about = {"send_id": f"req_{number}" if number else "", "contact": PAT, "actor": actor}
    if number and name.startswith("delivery."):
        data = {"delivery": f"req_{number}.1", **data}
    return about | {"id": f"evt_{at(seconds)}", "name": name, "at_us": at(seconds), "data": json.dumps(data)}


def sent(number: int = 1, answer: str = "queued", seconds: float = 1.0, /, **changes: Any) -> Call:
    """A send to PAT that was answered at once."""
    body = {"to": PAT, "idempotencyKey": f"k{number}"} | changes
    told = {"requestId": f"req_{number}", "status": answer, "messageId": f"<{number}@gw>"}
    return Call("a", "send", at(seconds), body, at(seconds + 0.2), 200, told)


def lease(token: int, seconds: float, *, agent: str = "a", until: int = 31, name: str = "") -> Call:
    told = {"id": name or f"lease-{token}", "fencingToken": token, "expiresAt": ISO.format(until)}
    return Call(agent, "acquire", at(seconds), {"contactEmail": PAT}, at(seconds + 0.2), 200, told)


def acquired(token: int, seconds: float, *, agent: str = "a") -> dict[str, Any]:
    return event("lease.acquired", seconds, actor=agent, lease=f"lease-{token}", token=token)


def released(token: int, seconds: float) -> dict[str, Any]:
    return event("lease.released", seconds, lease=f"lease-{token}", token=token)


def suppressed(seconds: float) -> Call:
    return Call("b", "suppress", at(seconds), {"recipientEmail": PAT}, at(seconds + 0.2), 200, {})


def arrived(number: int = 1, seconds: float = 2.0) -> Arrival:
    return Arrival(at(seconds), PAT, f"<{number}@gw>")


ACCEPTED = event("send.queued", 1.1, 1)
RELAYED = event("delivery.relayed", 2.1, 1)
GOOD = History([sent()], [arrived()], Rows([send()], [delivery()], (), (), [ACCEPTED, RELAYED]))


def changed(**changes: Any) -> History:
    """The good history with other calls, arrivals or rows."""
    rows = {name: changes.pop(name) for name in list(changes) if name in Rows.__dataclass_fields__}
    return replace(GOOD, rows=replace(GOOD.rows, **rows), **changes)


def held_then_stale() -> History:
    """A sends by token 1 after B has taken token 2, and sent."""
    first, second = send(1, tokens=json.dumps({PAT: 1})), send(2, agent="b", tokens=json.dumps({PAT: 2}))
    happened = [acquired(1, 0), released(1, 0.5), acquired(2, 0.7, agent="b"), ACCEPTED, RELAYED]
    return changed(calls=[lease(1, 0), lease(2, 0.6, agent="b"), sent()], sends=[first, second], events=happened)


def two_in_one_cooldown(apart: float) -> History:
    """Two sends to one person, so many seconds apart."""
    later = [event("send.queued", 1.1 + apart, 2), event("delivery.relayed", 1.2 + apart, 2)]
    return changed(
        calls=[sent(), sent(2)],
        arrivals=[arrived(), arrived(2, 2 + apart)],
        sends=[send(), send(2)],
        deliveries=[delivery(), delivery(2)],
        events=[ACCEPTED, RELAYED, *later],
    )


STALE = {"requestId": "req_1", "status": "blocked", "reason": "stale_fencing_token"}
BROKEN: Mapping[str, Mapping[str, History]] = {
    "one_delivery_for_one_send": {
        "the same mail twice": changed(arrivals=[arrived(), arrived()]),
        "two mails under one key": changed(
            arrivals=[arrived(), arrived(2)],
            sends=[send(), send(2, idem_key="k1")],
            deliveries=[delivery(), delivery(2)],
        ),
        "a mail that the store does not know": changed(arrivals=[arrived(), arrived(7)]),
    },
    "none_to_the_suppressed": {
        "a permit after the acknowledgement": changed(
            calls=[sent(), suppressed(1.0)], deliveries=[delivery(permitted_us=at(1.5))]
        ),
        "no mark on what was under way": changed(events=[ACCEPTED, event("suppression.created", 1.4), RELAYED]),
        "accepted afterwards": changed(events=[event("suppression.created", 0.4), ACCEPTED, RELAYED]),
    },
    "none_by_a_stale_token": {
        "a newer token was out": held_then_stale(),
        "a token that nobody gave": changed(sends=[send(tokens=json.dumps({PAT: 5}))]),
    },
    "none_within_a_cooldown": {"a minute apart": two_in_one_cooldown(60)},
    "one_state_that_matches_the_sink": {
        "relayed and never arrived": changed(arrivals=[]),
        "bounced and arrived": changed(deliveries=[delivery(state="bounced")]),
        "blocked and arrived": changed(deliveries=[delivery(state="blocked")]),
        "left on its way": changed(arrivals=[], deliveries=[delivery(state="claimed")]),
        "two deliveries of one send": changed(deliveries=[delivery(), delivery()]),
    },
    "no_dot_without_a_permit": {
        "arrived without one": changed(deliveries=[delivery(permitted_us=None)]),
        "an attempt from nowhere": changed(attempts=[{"delivery_id": "req_1.1", "claim_no": 2}]),
    },
    "answers_agree_with_the_record": {
        "accepted and lost": changed(calls=[sent(), sent(3)]),
        "another key": changed(calls=[sent(idempotencyKey="else")]),
        "told relayed": changed(calls=[sent(1, "relayed")], arrivals=[], deliveries=[delivery(state="unknown")]),
        "another message id": changed(sends=[send(message_id="<9@gw>")], arrivals=[arrived(9)]),
        "every request refused": changed(calls=[sent(1, "blocked")]),
        "stale with the newest token": changed(
            calls=[lease(1, 0), replace(sent(1, "blocked", fencingToken=1), answer=STALE)],
            arrivals=[],
            deliveries=[delivery(state="blocked")],
            events=[acquired(1, 0.1)],
        ),
    },
    "one_id_for_one_key": {
        "two answers": changed(calls=[sent(), sent(2, idempotencyKey="k1")], sends=[send(), send(2)]),
        "two records": changed(sends=[send(), send(2, idem_key="k1")]),
    },
    "tokens_rise": {
        "one is left out": changed(calls=[], events=[ACCEPTED, RELAYED, acquired(1, 3), acquired(3, 5)]),
        "one comes twice": changed(calls=[], events=[ACCEPTED, RELAYED, acquired(1, 3), acquired(1, 5)]),
        "they fall where agents look": changed(
            calls=[lease(2, 3), lease(1, 5)], events=[ACCEPTED, RELAYED, acquired(1, 3), acquired(2, 5)]
        ),
        "the same for two leases": changed(calls=[lease(1, 3), lease(1, 5, name="other")]),
    },
    "causes_come_before_their_effects": {
        "suppressed before the suppression": changed(
            arrivals=[],
            deliveries=[delivery(state="blocked")],
            decisions=[{"send_id": "req_1", "at_us": at(1.1), "reason": "suppressed"}],
            events=[event("suppression.created", 1.3)],
        )
    },
    "one_holder_at_a_time": {
        "a lease within a lease": changed(
            calls=[lease(1, 3), lease(2, 5, agent="b")],
            events=[ACCEPTED, RELAYED, acquired(1, 3.1), acquired(2, 5.1, agent="b")],
        ),
        "a mail within another's lease": changed(
            calls=[lease(1, 0, agent="b"), sent()], events=[acquired(1, 0.1, agent="b"), ACCEPTED, RELAYED]
        ),
    },
}


def test_every_check_has_a_history_that_must_fail_it() -> None:
    assert set(BROKEN) == set(CHECKS)


@pytest.mark.parametrize(
    ("check", "what"), [(check, what) for check, cases in BROKEN.items() for what in cases], ids=lambda text: text
)
def test_a_broken_promise_is_found(check: str, what: str) -> None:
    assert check in {one.check for one in violations(BROKEN[check][what])}


UNKNOWN = event("delivery.unknown", 2.1, 1)
KEPT: Mapping[str, History] = {
    "one send": GOOD,
    "a cooldown apart": two_in_one_cooldown(700),
    "unknown and arrived": changed(deliveries=[delivery(state="unknown")], events=[ACCEPTED, UNKNOWN]),
    "unknown and lost": changed(deliveries=[delivery(state="unknown")], arrivals=[], events=[ACCEPTED, UNKNOWN]),
    "no answer and no record": changed(calls=[sent(), Call("a", "send", at(3), {"idempotencyKey": "k9"})]),
    "permitted, then suppressed, and marked": changed(
        calls=[sent(), suppressed(1.6)],
        deliveries=[delivery(forbidden="suppressed")],
        events=[ACCEPTED, event("suppression.created", 1.7), RELAYED],
    ),
    "a retry that was ordered": changed(
        arrivals=[arrived(), arrived(1, 9)],
        deliveries=[delivery(tried=1)],
        events=[ACCEPTED, UNKNOWN, event("delivery.queued", 5, 1), event("delivery.relayed", 9, 1)],
    ),
    "leases one after the other": changed(
        calls=[lease(1, 3), lease(2, 5, agent="b")],
        events=[ACCEPTED, RELAYED, acquired(1, 3.1), released(1, 4), acquired(2, 5.1, agent="b")],
    ),
}


@pytest.mark.parametrize("what", KEPT)
def test_a_history_in_which_all_was_kept_passes(what: str) -> None:
    assert violations(KEPT[what]) == []
