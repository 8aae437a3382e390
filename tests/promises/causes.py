"""The promises about causes: no mail ends, is refused or is marked for nothing.

A cause is looked for in the log, in the attempts with their replies, and among the calls of the mail's own tenant alone: so
nothing that another tenant has said or done about the same people can be one. A transaction's events have one time.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.store.facts import suppression_subjects
from tests.promises.record import BIRTHS, History
from tests.promises.shapes import Row

SECOND = 1_000_000
LEAVES = {f"delivery.{name}": name for name in ("unknown", "blocked", "cancelled", "expired", "held", "bounced")}
LEAVES |= {f"delivery.{name}": name for name in ("queued", "scheduled", "relayed", "delivered")} | BIRTHS
LEAVES |= {"delivery.deferred": "queued"}
"""By event: the state in which it leaves a delivery; to be claimed and to get a permit is told to nobody."""
STOPS = {
    "suppressed": ("suppression.created", "suppression.imported"),
    "no_consent": ("consent.withdrawn",),
    "stale_fencing_token": ("lease.acquired",),
}
"""By reason: the events that stop what has no permit, and mark what has one."""


# --- how mail ends ----------------------------------------------------------------------------------------------------


def nothing_ends_without_a_cause(history: History) -> Iterator[str]:
    """Each delivery is what its last event says, and what stops, holds or ends one has a cause."""
    for row in history.rows.deliveries:
        story = history.story(row)
        last = story[-1]["name"] if story else "nothing"
        if LEAVES.get(last) != ("queued" if row["state"] in ("claimed", "permitted") else row["state"]):
            yield f"{row['id']} is {row['state']}, and what happened to it last is {last}"
    for name, has_a_cause in CAUSES.items():
        for event in history.named[name]:
            if not has_a_cause(history, event):
                told = event["data"]
                yield f"{told['delivery']}: {name} by {told.get('reason', 'nobody')!r} at {event['at_us']} has no cause"


def _bounced(history: History, event: Row) -> bool:
    """A 5yz, a mail that the smarthost cannot be given, or a 4yz when it was time to give up."""
    tries = history.tries[event["data"]["delivery"]]
    ended = [
        t for t in tries if t["ended_us"] and t["ended_us"] >= event["at_us"]
    ]  # told twice: once more after a doubt
    if event["data"].get("reason") == "gave_up":
        row = _row(history, event)
        old = row is not None and event["at_us"] - (row["since_us"] or row["created_us"]) >= history.give_up * SECOND
        often = 0 < history.max_attempts <= event["data"]["attempt"]
        return (old or often) and any(t["outcome"] == "deferred" for t in ended)
    unfit = any(t["outcome"] == "bounced" and not t["code"] and t["text"] and not t["permitted_us"] for t in ended)
    return unfit or any(t["outcome"] == "bounced" and 500 <= t["code"] < 600 for t in ended)


def _cancelled(history: History, event: Row) -> bool:
    """A call, a person's decision, or the end of the key that sent it; where it was marked first, some time before."""
    send, at = event["send_id"], event["at_us"]
    for one in history.about[send]:
        decision = one["data"].get("decision") if one["name"] == "send.resolved" and one["at_us"] == at else None
        if decision in ("cancel", "reject") and history.asked("resolve", at, request=send, decision=decision):
            return True
    return _taken_back(history, send, at)


def _taken_back(history: History, send: str, until: int | None) -> bool:
    """Whether somebody has called it back by a time, or has ended its key."""
    key = history.sends[send]["key_id"]
    ends = (e for e in history.named["key.revoked"] if e["data"].get("key") == key)
    gone = any(until is None or end["at_us"] <= until for end in ends)
    return gone or history.asked("cancel", until, request=send)


def _expired(history: History, event: Row) -> bool:
    """Its time is over, and it was never tried."""
    row = _row(history, event)
    if row is None:
        return False
    late = event["at_us"] - (row["not_before_us"] or row["created_us"]) >= history.lateness * SECOND
    return late and not row["attempts"]


def _held(history: History, event: Row) -> bool:
    """The decision of a release, or a pause of its mailbox."""
    paused = any(e["at_us"] == event["at_us"] for e in history.named["mailbox.paused"])
    return paused or _was_decided(history, event, "hold", "refuse")


def _blocked(history: History, event: Row) -> bool:
    """The decision of a release, or what stops mail in flight; what had a permit bore the mark of that until it came back."""
    if _was_decided(history, event, "refuse"):
        return True
    row, at, send = _row(history, event), event["at_us"], event["send_id"]
    marked = row is not None and any(t["permitted_us"] for t in history.tries[row["id"]])
    for stop in _stops(history, event["data"].get("reason", ""), event["contact"], event["actor"]):
        named = (*stop["data"].get("stopped", ()), *stop["data"].get("withdrew", ()))
        if (stop["at_us"] == at and send in named) or (marked and stop["at_us"] <= at):
            return True
    return False


def _row(history: History, event: Row) -> Row | None:
    """The delivery of an event; None where it is gone since: what was stopped may be judged anew, for others."""
    return next((r for r in history.of_send[event["send_id"]] if r["id"] == event["data"]["delivery"]), None)


def _was_decided(history: History, event: Row, *verdicts: str) -> bool:
    about = [d for d in history.decisions[event["send_id"]] if d["at_us"] == event["at_us"]]
    reason = event["data"].get("reason", "")
    return any(d["verdict"] in verdicts and d["reason"] == reason and d["moment"] == "release" for d in about)


def _stops(history: History, reason: str, contact: str, actor: str) -> Iterator[Row]:
    """The events that for this reason stop an actor's mail to this contact."""
    subjects = suppression_subjects(contact)
    for name in STOPS.get(reason, ()):
        for event in history.named[name]:
            theirs = name != "lease.acquired" or event["actor"] != actor
            if theirs and (name == "suppression.imported" or event["contact"] in subjects):
                yield event


CAUSES: dict[str, Callable[[History, Row], bool]] = {
    "delivery.bounced": _bounced,
    "delivery.cancelled": _cancelled,
    "delivery.expired": _expired,
    "delivery.held": _held,
    "delivery.blocked": _blocked,
}


# --- how mail is refused and marked -----------------------------------------------------------------------------------


def causes_come_before_their_effects(history: History) -> Iterator[str]:
    """What is refused or marked for a suppression, a lease or other mail has one that came before, of its own tenant.

    The store's time is the order of its commits.
    """
    taken = _acceptances(history)
    for decision in history.rows.decisions:
        if decision["reason"] in REASONS:
            document = json.loads(decision["document"])
            contact = document["findings"][document["strictest"]]["recipient"]
            refusal = _Refusal(decision, contact, document, taken[contact])
            if not REASONS[decision["reason"]](history, refusal):
                yield f"{decision['send_id']} was {decision['reason']} for {contact} before there was a cause"
    for row in history.rows.deliveries:
        mark, birth = row["forbidden"], history.birth(row["send_id"])
        since = birth["at_us"] if birth else 0
        stopped = any(event["at_us"] >= since for event in _stops(history, mark, row["contact"], row["actor"]))
        if mark and not stopped and not (mark == "cancelled" and _taken_back(history, row["send_id"], None)):
            yield f"{row['id']} is marked {mark} for {row['contact']} without a cause"


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A decision with the contact that it is about, what it says, and the acceptances of mail to that contact."""

    decision: Row
    contact: str
    document: Mapping[str, Any]
    taken: Sequence[Row]

    @property
    def actor(self) -> str:
        """Whose mail it was; a key that was refused may be another's since."""
        return str(self.document["agent"] or f"key:{self.document['key']}")

    def after(self, events: Iterable[Row]) -> Iterator[Row]:
        """Those events that came before it."""
        return (event for event in events if event["at_us"] <= self.decision["at_us"])


def _acceptances(history: History) -> defaultdict[str, list[Row]]:
    """By contact: the events by which mail to it was let go."""
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for name in ("send.queued", "delivery.queued"):
        for event in history.named[name]:
            for contact in event["data"].get("recipients", [event["contact"]]):
                found[contact].append(event)
    return found


def _suppressed(history: History, no: _Refusal) -> bool:
    return any(no.after(_stops(history, "suppressed", no.contact, no.actor)))


def _stale(history: History, no: _Refusal) -> bool:
    """A newer token; at a release that of another agent."""
    token, accepting = no.document["tokens"].get(no.contact), no.decision["moment"] == "acceptance"
    newer = [e for e in no.after(history.named["lease.acquired"]) if e["contact"] == no.contact]
    return token is not None and any(
        e["data"]["token"] > token and (accepting or e["actor"] != no.actor) for e in newer
    )


def _conflict(history: History, no: _Refusal) -> bool:
    """Another agent's lease, or its mail on the way."""
    leases = (event for event in history.named["lease.acquired"] if event["contact"] == no.contact)
    return any(event["actor"] != no.actor for event in no.after((*leases, *no.taken)))


def _cooled_down(_: History, no: _Refusal) -> bool:
    """Another mail to the same contact."""
    return any(event["send_id"] != no.decision["send_id"] for event in no.after(no.taken))


REASONS: dict[str, Callable[[History, _Refusal], bool]] = {
    "suppressed": _suppressed,
    "stale_fencing_token": _stale,
    "lease_conflict": _conflict,
    "cooldown": _cooled_down,
}
