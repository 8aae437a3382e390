"""Histories in which a promise about leases is broken, and some in which it is nearly."""

import json
from collections.abc import Sequence
from typing import Any

from tests.faults.histories import (
    ACCEPTED,
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
    released,
    send,
    sent,
)
from tests.history import Call, History

BY_TOKEN = json.dumps({PAT: 1})
THEIRS: Some = {"agent": "b"}


def held_then_stale() -> History:
    """A sends by token 1 after B has taken token 2, and sent."""
    first, second = send(1, tokens=BY_TOKEN), send(2, agent="b", tokens=json.dumps({PAT: 2}))
    happened = [acquired(1, 0), released(1, 0.5), acquired(2, 0.7, **THEIRS), ACCEPTED, RELAYED]
    return changed(calls=[lease(1, 0), lease(2, 0.6, **THEIRS), sent()], sends=[first, second], events=happened)


def waited(*happened: Some, calls: Sequence[Call] = (), **changes: Any) -> History:
    """A's mail waits from 1.1 on, and is let go at 5."""
    queued = event("delivery.queued", 5, 1)
    return changed(
        calls=[sent(1, "scheduled"), *calls],
        arrivals=[arrived(1, 6)],
        sends=[send(decision_no=2, **changes)],
        deliveries=[delivery(permitted_us=at(5.5), judged_us=at(5), since_us=at(5))],
        decisions=[decision(1.1, "pass"), decision(5, "pass", no=2)],
        events=[*happened, event("send.scheduled", 1.1, 1), queued, event("delivery.relayed", 6.1, 1)],
    )


def taken_over(permit: float, taken: float = 1.3, /, *more: Some, mark: str = "", **changes: Any) -> History:
    """An operator gives B the contact while A's mail, accepted at 1.1, is on its way."""
    return changed(
        calls=[sent(), lease(1, taken - 0.1, **THEIRS)],
        sends=[send(**changes)],
        deliveries=[delivery(claim_no=max(1, len(more)), permitted_us=at(permit), forbidden=mark)],
        events=[ACCEPTED, acquired(1, taken, **THEIRS, override="it is urgent", withdrew=[]), RELAYED],
        attempts=more,
    )


def retried(*, judged: bool) -> History:
    """A's mail is unknown while B has the contact, and is tried again when an operator says so."""
    return changed(
        calls=[sent(), lease(1, 2.9, **THEIRS), deciding("resolve", 4.9, decision="retry")],
        arrivals=[arrived(), arrived(1, 9)],
        sends=[send(decision_no=1 + judged)],
        deliveries=[delivery(claim_no=2, tried=1, permitted_us=at(8), judged_us=at(6) if judged else at(1.1))],
        attempts=[attempt("unknown", 2.1, 0, 1.5), attempt("relayed", 9, 250, 8, claim_no=2)],
        decisions=[decision(1.1, "pass"), *([decision(6, "pass", no=2)] if judged else [])],
        events=[
            ACCEPTED,
            UNKNOWN,
            acquired(1, 3, **THEIRS),
            released(1, 4),
            event("delivery.queued", 5, 1),
            event("send.resolved", 5, 1, decision="retry"),
            event("delivery.relayed", 9, 1),
        ],
    )


ONE_THEN_TWO = (acquired(1, 0.1), released(1, 1.5))
BROKEN: Table = {
    "none_by_a_stale_token": {
        "a newer token was out": held_then_stale(),
        "a token that nobody gave": changed(sends=[send(tokens=json.dumps({PAT: 5}))]),
        "let go later, when another had acquired": waited(
            *ONE_THEN_TWO,
            acquired(2, 3, **THEIRS),
            released(2, 4),
            calls=[lease(1, 0), lease(2, 2.9, **THEIRS)],
            tokens=BY_TOKEN,
        ),
    },
    "no_permit_after_a_take_over": {
        "in flight, and not stopped": taken_over(1.5),
        "an override does not help": taken_over(1.5, override="for a good reason"),
        "a mark is no permit": taken_over(21.5, mark="stale_fencing_token"),
        "marked, and tried again": taken_over(
            1.9,
            1.3,
            attempt("deferred", 1.6, 450, 1.2),
            attempt("relayed", 2.1, 250, 1.9, claim_no=2),
            mark="stale_fencing_token",
        ),
        "unknown, and not judged again": retried(judged=False),
    },
    "one_holder_at_a_time": {
        "a lease within a lease": changed(
            calls=[lease(1, 3), lease(2, 5, **THEIRS)],
            events=[ACCEPTED, RELAYED, acquired(1, 3.1), acquired(2, 5.1, **THEIRS)],
        ),
        "a mail within another's lease": changed(
            calls=[lease(1, 0, **THEIRS), sent()], events=[acquired(1, 0.1, **THEIRS), ACCEPTED, RELAYED]
        ),
        "let go within another's lease": waited(acquired(1, 3, **THEIRS), calls=[lease(1, 2.9, **THEIRS)]),
    },
    "tokens_rise": {
        "one is left out": changed(calls=[], events=[ACCEPTED, RELAYED, acquired(1, 3), acquired(3, 5)]),
        "one comes twice": changed(calls=[], events=[ACCEPTED, RELAYED, acquired(1, 3), acquired(1, 5)]),
        "they fall where agents look": changed(
            calls=[lease(2, 3), lease(1, 5)], events=[ACCEPTED, RELAYED, acquired(1, 3), acquired(2, 5)]
        ),
        "the same for two leases": changed(calls=[lease(1, 3), lease(1, 5, name="other")]),
    },
}
KEPT = {
    "leases one after the other": changed(
        calls=[sent(), lease(1, 3), lease(2, 5, **THEIRS)],
        events=[ACCEPTED, RELAYED, acquired(1, 3.1), released(1, 4), acquired(2, 5.1, **THEIRS)],
    ),
    "let go later, when its own agent had acquired again": waited(
        *ONE_THEN_TWO, acquired(2, 3), released(2, 4), calls=[lease(1, 0), lease(2, 2.9)], tokens=BY_TOKEN
    ),
    "let go later, when another's lease was over": waited(
        acquired(1, 3, **THEIRS), released(1, 4.9), calls=[lease(1, 2.9, **THEIRS)]
    ),
    "let go within another's lease by an override": waited(
        acquired(1, 3, **THEIRS), calls=[lease(1, 2.9, **THEIRS)], override="for a good reason"
    ),
    "permitted before the take-over": taken_over(1.25, mark="stale_fencing_token"),
    "permitted between the take-over's time and its look": taken_over(
        1.305, 1.3, attempt("relayed", 2.1, 250, 1.305), mark="stale_fencing_token"
    ),
    "unknown at a take-over, and judged again": retried(judged=True),
    "transactional mail within another's lease": taken_over(1.5, kind="transactional"),
    "where leases do not bind": changed(
        calls=[lease(1, 0, **THEIRS), sent()], events=[acquired(1, 0.1, **THEIRS), ACCEPTED, RELAYED], leases_bind=False
    ),
    "to one's own people within another's lease": changed(
        calls=[lease(1, 0, **THEIRS), sent()],
        deliveries=[delivery(internal=1)],
        events=[acquired(1, 0.1, **THEIRS), ACCEPTED, RELAYED],
    ),
}
