"""Histories of two tenants who write to the same person: what one has is no cause for what befalls the other's mail."""

from tests.faults.histories import (
    ACCEPTED,
    GOOD,
    RELAYED,
    Some,
    Table,
    acquired,
    arrived,
    both,
    changed,
    delivery,
    ended,
    event,
    lease,
    send,
    sent,
    suppressed,
    suppressing,
)
from tests.faults.histories_of_causes import BLOCKED, STALE, TAKEN, marked, refused
from tests.history import Call, History, Rows

SECOND = [event("send.queued", 1.1, 2), event("delivery.relayed", 2.1, 2)]


def theirs(*happened: Some, calls: tuple[Call, ...] = ()) -> History:
    """The other tenant's mail to the same person, sent at the same time, and what else has happened there."""
    return changed(
        calls=[sent(2), *calls],
        arrivals=[arrived(2)],
        sends=[send(2)],
        deliveries=[delivery(2)],
        events=[*SECOND, *happened],
    )


def bare(*happened: Some, calls: tuple[Call, ...] = ()) -> History:
    """What has happened at the other tenant, without a mail."""
    return History(calls, [], Rows(events=happened))


SUPPRESSED = bare(suppressed(0.5), calls=(suppressing(0.4),))
TAKEN_BY_B = bare(acquired(1, 0.5, agent="b"), calls=(lease(1, 0.4, agent="b"),))
BROKEN: Table = {
    "nothing_ends_without_a_cause": {
        "stopped by another tenant's suppression": both(
            ended("blocked", BLOCKED), bare(suppressed(3, "req_1"), calls=(suppressing(2.9),))
        ),
        "stopped by another tenant's take-over": both(
            ended("blocked", event("delivery.blocked", 3, 1, reason=STALE)),
            bare(acquired(1, 3, agent="b", **TAKEN), calls=(lease(1, 2.9, agent="b"),)),
        ),
    },
    "causes_come_before_their_effects": {
        "another tenant's suppression": both(refused("suppressed"), SUPPRESSED),
        "another tenant's lease": both(refused("lease_conflict"), TAKEN_BY_B),
        "another tenant's token": both(
            refused(STALE, acquired(1, 0.1), tokens=1, calls=(lease(1, 0),)),
            bare(
                acquired(1, 0.1, agent="b"),
                acquired(2, 0.5, agent="b"),
                calls=(lease(1, 0, agent="b", until=0), lease(2, 0.4, agent="b")),
            ),
        ),
        "another tenant's mail": both(refused("cooldown"), theirs()),
        "marked by another tenant's suppression": both(
            marked("suppressed"), bare(suppressed(1.7), calls=(suppressing(1.6),))
        ),
        "marked by another tenant's lease": both(
            marked(STALE), bare(acquired(1, 1.7, agent="b"), calls=(lease(1, 1.6, agent="b"),))
        ),
    },
    "what_was_answered_and_arrived_is_on_record": {
        "the lease is written down for another tenant": both(
            changed(calls=[sent(), lease(1, 3)]), bare(acquired(1, 3.1), calls=(lease(1, 3),))
        ),
        "the suppression is written down for another tenant": both(
            changed(calls=[sent(), suppressing(3)]), bare(suppressed(3.1), calls=(suppressing(3),))
        ),
    },
    "answers_agree_with_the_record": {
        "answered with another tenant's request": both(GOOD, bare(calls=(sent(1, "queued", 5),))),
    },
    "none_to_the_suppressed": {
        "the second tenant's own suppression": both(GOOD, theirs(suppressed(1.3), calls=(suppressing(1.2),))),
    },
    "one_delivery_for_one_send": {
        "known to neither": both(changed(arrivals=[arrived(), arrived(7)]), theirs()),
    },
}
KEPT = {
    "both write to one person at once": both(GOOD, theirs()),
    "the other tenant's suppression": both(GOOD, SUPPRESSED),
    "the other tenant's suppression, and its own mail is stopped": both(
        GOOD,
        changed(
            calls=[sent(2), suppressing(2.9)],
            arrivals=[],
            sends=[send(2)],
            deliveries=[delivery(2, "blocked", permitted_us=None)],
            events=[SECOND[0], event("delivery.blocked", 3, 2, reason="suppressed"), suppressed(3, "req_2")],
        ),
    ),
    "the other tenant's lease": both(GOOD, TAKEN_BY_B),
    "the other tenant's take-over": both(
        GOOD, bare(acquired(1, 1.3, agent="b", override="it is urgent"), calls=(lease(1, 1.2, agent="b"),))
    ),
    "both have the first token": both(
        changed(calls=[sent(), lease(1, 3)], events=[ACCEPTED, RELAYED, acquired(1, 3.1)]),
        theirs(acquired(1, 3.1, agent="b"), calls=(lease(1, 3, agent="b"),)),
    ),
}
