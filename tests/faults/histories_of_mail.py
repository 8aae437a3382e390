"""Histories in which a promise about mail is broken, and some in which it is nearly."""

from collections.abc import Sequence
from dataclasses import replace

from tests.faults.histories import (
    ACCEPTED,
    GOOD,
    PAT,
    RELAYED,
    UNKNOWN,
    Some,
    Table,
    acquired,
    arrived,
    at,
    attempt,
    changed,
    deciding,
    decision,
    delivery,
    event,
    lease,
    send,
    sent,
    stopped,
    suppressed,
    suppressing,
)
from tests.history import Call, History

OTHER = "kim@example.net"


def two_in_one_cooldown(apart: float) -> History:
    """Two sends to one person, so many seconds apart."""
    later = [event("send.queued", 1.1 + apart, 2), event("delivery.relayed", 2.2 + apart, 2)]
    return changed(
        calls=[sent(), sent(2)],
        arrivals=[arrived(), arrived(2, 2 + apart)],
        sends=[send(), send(2)],
        deliveries=[delivery(), delivery(2, permitted_us=at(1.5 + apart))],
        events=[ACCEPTED, RELAYED, *later],
    )


def put_off(apart: float, until: float, *more: Some) -> History:
    """Two sends to one person, so many seconds apart; the first is put off, and comes at last."""
    late = [*more, event("delivery.deferred", 2.1, 1), event("delivery.relayed", until, 1)]
    later = [event("send.queued", 1.1 + apart, 2), event("delivery.relayed", 2.2 + apart, 2)]
    return changed(
        calls=[sent(), sent(2, "queued", 1 + apart)],
        arrivals=[arrived(1, until - 0.1), arrived(2, 2 + apart)],
        sends=[send(), send(2)],
        deliveries=[delivery(permitted_us=at(until - 0.5)), delivery(2, permitted_us=at(1.5 + apart))],
        events=[ACCEPTED, *late, *later],
    )


def to_two(first: float, other: float, *more: Some, calls: Sequence[Call] = (), mark: str = "") -> History:
    """One send to PAT and somebody else: PAT's is relayed `first` seconds after 12:30, the other's `other` seconds."""
    happened = [event("delivery.relayed", first, 1), event("delivery.relayed", other, 1, delivery="req_1.2")]
    beside = delivery(id="req_1.2", contact=OTHER, permitted_us=at(other - 0.5))
    return changed(
        calls=[sent(1, cc=OTHER), *calls],
        arrivals=[arrived(1, first - 0.1), replace(arrived(1, other - 0.1), to=OTHER)],
        deliveries=[delivery(permitted_us=at(first - 0.5), forbidden=mark), beside],
        events=[ACCEPTED, *happened, *more],
    )


def released_apart(first: float, other: float) -> History:
    """A mail to PAT, and a later one to two that waited: it is released to PAT and to the other so long after it."""
    waited = [event("delivery.queued", 1.1 + first, 2), event("delivery.queued", 1.1 + other, 2, delivery="req_2.2")]
    ends = [event("delivery.relayed", 2 + first, 2), event("delivery.relayed", 2 + other, 2, delivery="req_2.2")]
    beside = delivery(2, id="req_2.2", contact=OTHER, permitted_us=at(1.5 + other), judged_us=at(1.1 + other))
    decided = [decision(1.1 + seconds, "pass", number=2, no=no) for no, seconds in enumerate(sorted((first, other)), 2)]
    return changed(
        calls=[sent(), sent(2, "scheduled", 1.2, cc=OTHER)],
        arrivals=[arrived(), arrived(2, 1.9 + first), replace(arrived(2, 1.9 + other), to=OTHER)],
        sends=[send(), send(2, decision_no=3)],
        deliveries=[delivery(), delivery(2, permitted_us=at(1.5 + first), judged_us=at(1.1 + first)), beside],
        decisions=[decision(1.1, "pass"), decision(1.3, "pass", number=2), *decided],
        events=[ACCEPTED, RELAYED, event("send.scheduled", 1.3, 2), *waited, *ends],
    )


ANEW = {"requestId": "req_1", "status": "blocked", "reason": "suppressed", "messageId": "<2@gw>"}
STALE = {"requestId": "req_1", "status": "blocked", "reason": "stale_fencing_token"}
BROKEN: Table = {
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
            calls=[sent(), suppressing(1.0)], deliveries=[delivery(permitted_us=at(1.5))]
        ),
        "a permit seconds after it, and refused at the dot": changed(
            calls=[sent(), suppressing(1.2)],
            arrivals=[],
            deliveries=[delivery(state="bounced", permitted_us=at(9), forbidden="suppressed")],
            attempts=[attempt("bounced", 9.5, 550, 9)],
            events=[ACCEPTED, suppressed(1.3), event("delivery.bounced", 9.5, 1, reason="bounced", attempt=1)],
            one_clock=False,
        ),
        "no mark on what was under way": changed(events=[ACCEPTED, suppressed(1.4), RELAYED]),
        "no mark on one of two": to_two(2.1, 1.8, suppressed(2.0), calls=[suppressing(1.9)]),
        "accepted afterwards": changed(events=[suppressed(0.4), ACCEPTED, RELAYED]),
    },
    "none_within_a_cooldown": {
        "a minute apart": two_in_one_cooldown(60),
        "while the first is put off": put_off(700, until=800),
        "while the first is tried once more": put_off(
            700, 800, event("delivery.queued", 300, 1), event("send.resolved", 300, 1, decision="retry")
        ),
        "a minute after the first has arrived": put_off(700, until=640),
        "released to one of two a minute later": released_apart(60, 700),
    },
    "one_state_that_matches_the_sink": {
        "relayed and never arrived": changed(arrivals=[]),
        "bounced and arrived": changed(deliveries=[delivery(state="bounced")]),
        "blocked and arrived": changed(deliveries=[delivery(state="blocked")]),
        "left on its way": changed(arrivals=[], deliveries=[delivery(state="claimed")]),
        "two deliveries of one send": changed(deliveries=[delivery(), delivery()]),
    },
    "no_dot_without_a_permit": {
        "arrived without one": changed(deliveries=[delivery(permitted_us=None)]),
        "an attempt from nowhere": changed(attempts=[attempt("relayed", 2, 250, claim_no=2)]),
    },
    "answers_agree_with_the_record": {
        "accepted and lost": changed(calls=[sent(), sent(3)]),
        "another key": changed(calls=[sent(idempotencyKey="else")]),
        "told cancelled": changed(calls=[sent(), sent(1, "cancelled", 1.4)]),
        "taken back, and it came": changed(
            calls=[sent(), replace(deciding("cancel", 1.3), answer={"cancelled": True})]
        ),
        "taken back, and on its way": changed(
            calls=[sent(), replace(deciding("cancel", 1.3), answer={"cancelled": True})],
            arrivals=[],
            deliveries=[delivery(state="queued")],
        ),
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
}
KEPT = {
    "one send": GOOD,
    "a cooldown apart": two_in_one_cooldown(700),
    "a cooldown after the first has arrived at last": put_off(700, until=60),
    "unknown and arrived": changed(deliveries=[delivery(state="unknown")], events=[ACCEPTED, UNKNOWN]),
    "unknown and lost": changed(deliveries=[delivery(state="unknown")], arrivals=[], events=[ACCEPTED, UNKNOWN]),
    "no answer and no record": changed(calls=[sent(), Call("a", "send", at(3), {"to": PAT, "idempotencyKey": "k9"})]),
    "permitted, then suppressed, and marked": changed(
        calls=[sent(), suppressing(1.6)],
        deliveries=[delivery(forbidden="suppressed")],
        events=[ACCEPTED, suppressed(1.7), RELAYED],
    ),
    "suppressed between the mails to two, the other's being the later one": to_two(
        1.8, 2.1, suppressed(2.0), calls=[suppressing(1.9)]
    ),
    "suppressed between the mails to two, and the later one marked": to_two(
        2.1, 1.8, suppressed(2.0), calls=[suppressing(1.9)], mark="suppressed"
    ),
    "stopped, and refused when it was asked for once more": changed(
        calls=[sent(), suppressing(1.25), replace(sent(1, "blocked", 2.0), answer=ANEW)],
        arrivals=[],
        sends=[send(message_id="<2@gw>", decision_no=2)],
        deliveries=[stopped("blocked", created_us=at(2.1), judged_us=at(2.1))],
        decisions=[decision(1.1, "pass"), decision(2.1, "refuse", "suppressed", no=2, moment="acceptance")],
        events=[
            ACCEPTED,
            suppressed(1.3, "req_1"),
            event("delivery.blocked", 1.3, 1, reason="suppressed"),
            event("policy.blocked", 2.1, 1, reason="suppressed"),
        ],
    ),
    "released to another soon, and to one a cooldown later": released_apart(700, 60),
    "a retry that was ordered": changed(
        calls=[sent(), deciding("resolve", 4.9, decision="retry")],
        arrivals=[arrived(), arrived(1, 9)],
        sends=[send(decision_no=2)],
        deliveries=[delivery(claim_no=2, tried=1, permitted_us=at(8), judged_us=at(5.1))],
        attempts=[attempt("unknown", 2.1, 0, 1.5), attempt("relayed", 9, 250, 8, claim_no=2)],
        decisions=[decision(1.1, "pass"), decision(5.1, "pass", no=2)],
        events=[
            ACCEPTED,
            UNKNOWN,
            event("delivery.queued", 5, 1),
            event("send.resolved", 5, 1, decision="retry"),
            event("delivery.relayed", 9, 1),
        ],
    ),
}
