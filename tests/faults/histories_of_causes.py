"""Histories in which something has no cause, or is not on record, and some in which it nearly has none."""

from dataclasses import replace

from tests.faults.histories import (
    ACCEPTED,
    ISO,
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
    ended,
    event,
    lease,
    released,
    send,
    sent,
    stopped,
    suppressed,
    suppressing,
)
from tests.history import Call, History

BEE = "bee@example.net"
DAY = 86_400
TAKEN: Some = {"override": "it is urgent", "withdrew": ["req_1"]}
STALE = "stale_fencing_token"
CANCELLED = event("delivery.cancelled", 3, 1, reason="cancelled")
BOUNCED = event("delivery.bounced", 2.1, 1, reason="bounced", attempt=1)
BLOCKED = event("delivery.blocked", 3, 1, reason="suppressed")


def in_doubt(call: Call) -> Call:
    """The same, answered with 503 after a commit of which nobody knew."""
    return replace(call, status=503, answer={"error": "store_unavailable"})


def renewing(token: int, seconds: float) -> Call:
    """A lease that was kept for longer."""
    body = {"lease": f"lease-{token}", "fencingToken": token}
    return Call("a", "renew", at(seconds), body, at(seconds + 0.2), 200, {"renewed": True, "expiresAt": ISO.format(31)})


def refused(reason: str, *before: Some, tokens: int | None = None, calls: tuple[Call, ...] = ()) -> History:
    """A send that was refused at 1.1 for this reason."""
    said: Some = {} if tokens is None else {"tokens": {PAT: tokens}}
    return changed(
        calls=[*calls, sent(1, "blocked")],
        arrivals=[],
        deliveries=[stopped("blocked")],
        decisions=[decision(1.1, "refuse", reason, **said)],
        events=[*before, event("policy.blocked", 1.1, 1, reason=reason)],
    )


def refused_after_another(reason: str = "cooldown") -> History:
    """A's send is refused at 1.1; another agent's was accepted at 0.5 and came at 0.8."""
    found = refused(reason, event("send.queued", 0.5, 2, actor="b"), event("delivery.relayed", 0.9, 2))
    rows = replace(
        found.rows,
        sends=[send(), send(2, agent="b")],
        deliveries=[*found.rows.deliveries, delivery(2, permitted_us=at(0.7), judged_us=at(0.5), actor="b")],
        decisions=[*found.rows.decisions, decision(0.5, "pass", number=2)],
    )
    other = replace(sent(2, "queued", 0.4), agent="b")
    return replace(found, calls=[other, *found.calls], arrivals=[arrived(2, 0.8)], rows=rows)


def marked(why: str, *happened: Some, calls: tuple[Call, ...] = ()) -> History:
    """The good history with a mark."""
    return changed(calls=[sent(), *calls], deliveries=[delivery(forbidden=why)], events=[ACCEPTED, *happened, RELAYED])


def at_its_release(verdict: str, reason: str, name: str, *happened: Some, calls: tuple[Call, ...] = ()) -> History:
    """A mail that waited from 1.1 on and was judged again at 3."""
    return ended(
        name,
        calls=calls,
        sends=[send(decision_no=2)],
        deliveries=[stopped(name)],
        decisions=[decision(1.1, "pass"), decision(3, verdict, reason, no=2)],
        events=[event("send.scheduled", 1.1, 1), *happened, event(f"delivery.{name}", 3, 1, reason=reason)],
    )


def held(*happened: Some, state: str, calls: tuple[Call, ...]) -> History:
    """A mail that was held for a person."""
    about = {"deliveries": [stopped(state)], "decisions": [decision(1.1, "hold", "content_check")]}
    return ended(state, calls=calls, events=[event("send.held", 1.1, 1), *happened], **about)


REJECTED = (event("delivery.cancelled", 3, 1, reason="rejected"), event("send.resolved", 3, 1, decision="reject"))
MARKED_AND_BACK = ended(
    "blocked",
    suppressed(1.7),
    event("delivery.blocked", 2.1, 1, reason="suppressed", attempt=1),
    calls=(suppressing(1.6),),
    deliveries=[delivery(state="blocked", forbidden="suppressed")],
    attempts=[attempt("deferred", 2.1, 450, 1.5)],
)
GAVE_UP = event("delivery.bounced", 2.1, 1, reason="gave_up", attempt=3)
LONG_AGO = at(2.1 - 2 * DAY)
BROKEN: Table = {
    "nothing_ends_without_a_cause": {
        "no event tells": ended("blocked"),
        "an event tells something else": ended("cancelled", BLOCKED, suppressed(3, "req_1"), calls=(suppressing(2.9),)),
        "blocked for nothing": ended("blocked", BLOCKED),
        "blocked by a suppression that has stopped another": ended(
            "blocked", BLOCKED, suppressed(3, "req_9"), calls=(suppressing(2.9),)
        ),
        "blocked by a suppression of before, and never marked": ended(
            "blocked", suppressed(2, "req_9"), BLOCKED, calls=(suppressing(1.9),)
        ),
        "blocked by a suppression of somebody else": ended(
            "blocked", BLOCKED, suppressed(3, "req_1") | {"contact": BEE}, calls=(suppressing(2.9, BEE),)
        ),
        "stopped by the lease of its own agent": ended(
            "blocked", event("delivery.blocked", 3, 1, reason=STALE), acquired(1, 3, **TAKEN), calls=(lease(1, 2.9),)
        ),
        "blocked at a release that decided otherwise": at_its_release("pass", "", "blocked"),
        "bounced without a reply": ended("bounced", BOUNCED, attempts=[attempt("bounced", 2.1)]),
        "bounced by a 4yz": ended("bounced", BOUNCED, attempts=[attempt("bounced", 2.1, 450, text="later")]),
        "bounced by the reply of another time": ended("bounced", BOUNCED, attempts=[attempt("bounced", 1.9, 550)]),
        "given up too early": ended("bounced", GAVE_UP, attempts=[attempt("deferred", 2.1, 450)]),
        "given up without a try": ended("bounced", GAVE_UP, deliveries=[stopped("bounced", since_us=LONG_AGO)]),
        "cancelled by nobody": ended("cancelled", CANCELLED),
        "cancelled before the call": ended("cancelled", CANCELLED, calls=(deciding("cancel", 9),)),
        "cancelled by a call that was refused": ended("cancelled", CANCELLED, calls=(deciding("cancel", 2.9, 404),)),
        "cancelled by the end of another key": ended("cancelled", event("key.revoked", 3, key="other"), CANCELLED),
        "rejected by nobody": held(*REJECTED, state="cancelled", calls=()),
        "expired before its time": ended("expired", event("delivery.expired", 3, 1, reason="too_late")),
        "expired after an attempt": ended(
            "expired",
            event("delivery.expired", DAY + 2, 1, reason="too_late"),
            deliveries=[stopped("expired", attempts=1)],
        ),
        "held by nobody": ended("held", event("delivery.held", 3, 1, reason="mailbox_paused")),
    },
    "causes_come_before_their_effects": {
        "suppressed before the suppression": refused("suppressed", suppressed(1.3), calls=(suppressing(1.2),)),
        "suppressed for somebody else": refused(
            "suppressed", suppressed(0.5) | {"contact": BEE}, calls=(suppressing(0.4, BEE),)
        ),
        "suppressed by nobody": refused("suppressed"),
        "a newer token that is no newer": refused(STALE, acquired(1, 0.1), tokens=1, calls=(lease(1, 0),)),
        "in the way of itself": refused("lease_conflict", acquired(1, 0.1), calls=(lease(1, 0),)),
        "in the way of nobody": refused("lease_conflict"),
        "cooled down by itself": refused("cooldown", event("send.queued", 0.5, 1)),
        "marked for nothing": marked("suppressed"),
        "marked by its own agent": marked(STALE, acquired(1, 1.6), calls=(lease(1, 1.5),)),
        "marked by a lease of before": changed(
            calls=[lease(1, 0, agent="b"), sent()],
            deliveries=[delivery(forbidden=STALE)],
            events=[acquired(1, 0.1, agent="b"), released(1, 0.9), ACCEPTED, RELAYED],
        ),
        "marked by nobody's cancel": marked("cancelled"),
    },
    "what_was_answered_and_arrived_is_on_record": {
        "accepted without an event": ended("unknown", decisions=[decision(1.1, "pass")], events=[UNKNOWN]),
        "accepted by a refusal": ended("unknown", UNKNOWN, decisions=[decision(1.1, "refuse", "no_consent")]),
        "accepted for two, and there is a delivery to one": changed(calls=[sent(to=[PAT, BEE])]),
        "a decision is missing": changed(sends=[send(decision_no=2)]),
        "arrived without an event": changed(events=[RELAYED], decisions=[decision(1.1, "pass")]),
        "arrived, and refused at last": changed(
            events=[ACCEPTED, event("policy.blocked", 1.2, 1), RELAYED], decisions=[decision(1.1, "pass")]
        ),
        "arrived without a decision": changed(decisions=[]),
        "arrived, and never let go": changed(events=[event("send.scheduled", 1.1, 1), RELAYED]),
        "let go after its permit": changed(decisions=[decision(1.7, "pass")]),
        "a lease without an event": changed(calls=[sent(), lease(1, 3)]),
        "a lease with another token": changed(
            calls=[sent(), lease(2, 3)], events=[ACCEPTED, RELAYED, acquired(1, 3.1)]
        ),
        "a lease that is kept without an event": changed(
            calls=[sent(), lease(1, 3), renewing(1, 4)], events=[ACCEPTED, RELAYED, acquired(1, 3.1)]
        ),
        "a decision without an event": ended("unknown", UNKNOWN, calls=(deciding("resolve", 3, decision="retry"),)),
        "a suppression without an event": changed(calls=[sent(), suppressing(3)]),
        "a suppression that came after its answer": changed(
            calls=[sent(), suppressing(3)], events=[ACCEPTED, RELAYED, suppressed(4)]
        ),
    },
    "nobody_acts_unasked": {
        "a mail": changed(calls=[sent(2)]),
        "a lease": changed(events=[ACCEPTED, RELAYED, acquired(1, 3)]),
        "two leases by one call": changed(
            calls=[sent(), lease(1, 2.9)], events=[ACCEPTED, RELAYED, acquired(1, 3), released(1, 4), acquired(2, 5)]
        ),
        "a lease before the call": changed(calls=[sent(), lease(1, 9)], events=[ACCEPTED, RELAYED, acquired(1, 3)]),
        "a suppression": changed(events=[ACCEPTED, RELAYED, suppressed(3)]),
        "a suppression for a bounce that said something else": ended(
            "bounced", BOUNCED, suppressed(2.1), attempts=[attempt("bounced", 2.1, 550, enhanced="5.7.1")]
        ),
        "a decision": changed(events=[ACCEPTED, RELAYED, event("send.resolved", 3, 1, decision="retry")]),
    },
}
KEPT = {
    "blocked by a suppression": ended("blocked", BLOCKED, suppressed(3, "req_1"), calls=(suppressing(2.9),)),
    "marked, put off, and blocked": MARKED_AND_BACK,
    "blocked at its release": at_its_release(
        "refuse", "suppressed", "blocked", suppressed(2), calls=(suppressing(1.9),)
    ),
    "stopped by a take-over": ended(
        "blocked",
        event("delivery.blocked", 3, 1, reason=STALE),
        acquired(1, 3, agent="b", **TAKEN),
        calls=(lease(1, 2.9, agent="b"),),
    ),
    "stopped by a withdrawn consent": ended(
        "blocked",
        event("delivery.blocked", 3, 1, reason="no_consent"),
        event("consent.withdrawn", 3, stopped=["req_1"]),
    ),
    "bounced by a 5yz": ended("bounced", BOUNCED, attempts=[attempt("bounced", 2.1, 550)]),
    "bounced, since the smarthost cannot be given it": ended(
        "bounced", BOUNCED, attempts=[attempt("bounced", 2.1, text="the smarthost has no SMTPUTF8")]
    ),
    "bounced, and the address is gone": ended(
        "bounced", BOUNCED, suppressed(2.1), attempts=[attempt("bounced", 2.1, 550, enhanced="5.1.1")]
    ),
    "given up in time": ended(
        "bounced",
        GAVE_UP,
        deliveries=[stopped("bounced", since_us=LONG_AGO)],
        attempts=[attempt("deferred", 2.1, 450)],
    ),
    "given up after so many attempts": ended(
        "bounced", GAVE_UP, attempts=[attempt("deferred", 2.1, claim_no=1)], max_attempts=3
    ),
    "cancelled by a call without an answer": ended("cancelled", CANCELLED, calls=(deciding("cancel", 2.9, None),)),
    "cancelled in part": ended("cancelled", CANCELLED, calls=(deciding("cancel", 2.9, 409),)),
    "cancelled with its key": ended("cancelled", event("key.revoked", 3, key="key"), CANCELLED),
    "marked by a cancel": marked("cancelled", calls=(deciding("cancel", 1.6),)),
    "rejected": held(*REJECTED, state="cancelled", calls=(deciding("resolve", 2.9, decision="reject"),)),
    "held for a person": held(state="held", calls=()),
    "expired": ended("expired", event("delivery.expired", DAY + 2, 1, reason="too_late")),
    "held by a pause": ended("held", event("delivery.held", 3, 1, reason="mailbox_paused"), event("mailbox.paused", 3)),
    "held at its release": at_its_release("hold", "content_check", "held"),
    "refused as suppressed": refused("suppressed", suppressed(0.5), calls=(suppressing(0.4),)),
    "refused for a newer token": refused(
        STALE,
        acquired(1, 0.1),
        acquired(2, 0.5, agent="b"),
        tokens=1,
        calls=(lease(1, 0, until=0), lease(2, 0.4, agent="b")),
    ),
    "refused for another's lease": refused(
        "lease_conflict", acquired(1, 0.5, agent="b"), calls=(lease(1, 0.4, agent="b"),)
    ),
    "refused for another's mail on the way": refused_after_another("lease_conflict"),
    "refused for another mail": refused_after_another(),
    "to one person by two spellings": changed(calls=[sent(to=[PAT, "Pat@Example.NET"], cc=PAT)]),
    "stopped, and judged anew for fewer people": changed(
        calls=[sent(1, "queued", 0.4, to=[PAT, BEE]), lease(1, 0.6, agent="b"), sent()],
        sends=[send(decision_no=2)],
        decisions=[decision(0.5, "pass"), decision(1.1, "pass", no=2, moment="acceptance")],
        events=[
            event("send.queued", 0.5, 1, recipients=[PAT, BEE]),
            event("delivery.blocked", 0.7, 1, reason=STALE),
            acquired(1, 0.7, agent="b", **TAKEN),
            released(1, 0.9),
            ACCEPTED,
            RELAYED,
        ],
    ),
    "suppressed twice, and told once": changed(
        calls=[sent(), suppressing(3), suppressing(5)], events=[ACCEPTED, RELAYED, suppressed(3.1)]
    ),
    "a lease that is kept": changed(
        calls=[sent(), lease(1, 3), lease(1, 5), renewing(1, 6)],
        events=[ACCEPTED, RELAYED, acquired(1, 3.1), event("lease.extended", 6.1, lease="lease-1", token=1)],
    ),
    "a lease and a suppression that were answered with 503, and made": changed(
        calls=[sent(), in_doubt(lease(1, 3)), in_doubt(suppressing(4))],
        events=[ACCEPTED, RELAYED, acquired(1, 3.1), suppressed(4.1)],
    ),
    "cancelled, and answered with 503": ended("cancelled", CANCELLED, calls=(deciding("cancel", 2.9, 503),)),
    "marked by a cancel that was answered with 503": marked("cancelled", calls=(deciding("cancel", 1.6, 503),)),
    "bounced, and told so twice": ended("bounced", BOUNCED, attempts=[attempt("bounced", 2.4, 550)]),
    "a retry by a setting": changed(
        events=[ACCEPTED, RELAYED, event("send.resolved", 2.05, 1, actor="setting", decision="assume_sent")]
    ),
}
