"""Made-up histories of a few seconds: rows, events, calls and arrivals about one person, and a history that keeps everything.

Seconds count from 12:30. Whatever a row has that a check does not look at is left out.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from tests.history import Arrival, Call, History, Rows

PAT = "pat@example.net"
START = 1_772_627_400_000_000
SECOND = 1_000_000
ISO = "2026-03-04T12:{:02d}:00Z"
VERDICTS = {"send.queued": "pass", "send.scheduled": "pass", "send.held": "hold", "policy.blocked": "refuse"}
Some = dict[str, Any]
Table = Mapping[str, Mapping[str, History]]


def at(seconds: float) -> int:
    """Microseconds since 1970 of so many seconds after 12:30."""
    return START + round(seconds * SECOND)


# --- rows -------------------------------------------------------------------------------------------------------------


def send(number: int = 1, **changes: Any) -> Some:
    """A send, by agent a."""
    usual = {"id": f"req_{number}", "mailbox": "box", "idem_key": f"k{number}", "message_id": f"<{number}@gw>"}
    who = {"tenant": "default", "agent": "a", "actor": changes.get("agent", "a"), "key_id": "key"}
    return usual | who | {"kind": "outreach", "override": None, "tokens": "{}", "decision_no": 1} | changes


def delivery(number: int = 1, state: str = "relayed", **changes: Any) -> Some:
    """Its delivery to PAT, with a permit at 1.5."""
    usual = {"tenant": "default", "id": f"req_{number}.1", "send_id": f"req_{number}", "contact": PAT, "state": state}
    marks = {"actor": "a", "claim_no": 1, "attempts": 0, "tried": 0, "assumed": 0, "forbidden": "", "internal": 0}
    times = {"permitted_us": at(1.5), "created_us": at(1.1), "since_us": at(1.1), "judged_us": at(1.1)}
    return usual | marks | times | {"not_before_us": None} | changes


def stopped(state: str, **changes: Any) -> Some:
    """Its delivery, which has ended in this state without a permit."""
    return delivery(state=state, **{"permitted_us": None, **changes})


def attempt(outcome: str, seconds: float, code: int = 0, permit: float | None = None, /, **changes: Any) -> Some:
    """The first attempt at it, which ended then."""
    usual = {"tenant": "default", "delivery_id": "req_1.1", "claim_no": 1, "outcome": outcome, "code": code, "text": ""}
    times = {"ended_us": at(seconds), "permitted_us": None if permit is None else at(permit)}
    return usual | {"enhanced": ""} | times | changes


def event(name: str, seconds: float, number: int = 0, /, *, actor: str = "a", **data: Any) -> Some:
    """Something that happened, to PAT."""
    about = {"tenant": "default", "send_id": f"req_{number}" if number else "", "contact": PAT, "actor": actor}
    if number and name.startswith("delivery."):
        data = {"delivery": f"req_{number}.1", **data}
    return about | {"id": f"evt_{at(seconds)}", "name": name, "at_us": at(seconds), "data": json.dumps(data)}


def decision(seconds: float, verdict: str, reason: str = "", number: int = 1, **changes: Any) -> Some:
    """A decision about a send of agent a: its first one, or with `no` that of a release."""
    findings = [{"reason": reason, "recipient": PAT}] if reason else []
    said = {"findings": findings, "strictest": 0, "agent": "a", "key": "key", "tokens": changes.pop("tokens", {})}
    usual = {"tenant": "default", "send_id": f"req_{number}", "no": 1, "at_us": at(seconds), "verdict": verdict}
    moment = "release" if changes.get("no", 1) > 1 else "acceptance"
    return usual | {"reason": reason, "moment": moment, "document": json.dumps(said)} | changes


# --- events and calls -------------------------------------------------------------------------------------------------


def sent(number: int = 1, answer: str = "queued", seconds: float = 1.0, /, **changes: Any) -> Call:
    """A send to PAT that was answered at once."""
    body = {"to": PAT, "idempotencyKey": f"k{number}"} | changes
    told = {"requestId": f"req_{number}", "status": answer, "messageId": f"<{number}@gw>"}
    return Call("a", "send", at(seconds), body, at(seconds + 0.2), 200, told)


def lease(token: int, seconds: float, *, agent: str = "a", until: int = 31, name: str = "") -> Call:
    """An acquire that was answered with a lease."""
    told = {"id": name or f"lease-{token}", "fencingToken": token, "expiresAt": ISO.format(until)}
    return Call(agent, "acquire", at(seconds), {"contactEmail": PAT}, at(seconds + 0.2), 200, told)


def acquired(token: int, seconds: float, *, agent: str = "a", **data: Any) -> Some:
    """Its event."""
    return event("lease.acquired", seconds, actor=agent, lease=f"lease-{token}", token=token, **data)


def released(token: int, seconds: float) -> Some:
    """The end of a lease."""
    return event("lease.released", seconds, lease=f"lease-{token}", token=token)


def suppressing(seconds: float, whom: str = PAT) -> Call:
    """A suppression that was answered at once."""
    return Call("b", "suppress", at(seconds), {"recipientEmail": whom}, at(seconds + 0.2), 200, {})


def suppressed(seconds: float, *stops: str) -> Some:
    """Its event, and what it has stopped."""
    return event("suppression.created", seconds, actor="b", stopped=stops)


def deciding(act: str, seconds: float, status: int | None = 200, **body: Any) -> Call:
    """A cancel, or a resolve."""
    return Call("b", act, at(seconds), {"request": "req_1"} | body, at(seconds + 0.2) if status else None, status, {})


def arrived(number: int = 1, seconds: float = 2.0) -> Arrival:
    """What the sink took."""
    return Arrival(at(seconds), PAT, f"<{number}@gw>")


# --- histories --------------------------------------------------------------------------------------------------------

ACCEPTED = event("send.queued", 1.1, 1)
RELAYED = event("delivery.relayed", 2.1, 1)
UNKNOWN = event("delivery.unknown", 2.1, 1)
GOOD = History(
    [sent()],
    [arrived()],
    Rows([send()], [delivery()], (), [decision(1.1, "pass")], [ACCEPTED, RELAYED]),
)


def changed(**changes: Any) -> History:
    """The good history with other calls, arrivals or rows; without other decisions those that the events speak of."""
    rows = {name: changes.pop(name) for name in list(changes) if name in Rows.__dataclass_fields__}
    if "decisions" not in rows and "events" in rows:
        births = [one for one in rows["events"] if one["name"] in VERDICTS]
        rows["decisions"] = [
            decision(0, VERDICTS[one["name"]], at_us=one["at_us"], send_id=one["send_id"]) for one in births
        ]
    return replace(GOOD, rows=replace(GOOD.rows, **rows), **changes)


def ended(state: str, *happened: Some, calls: tuple[Call, ...] = (), **changes: Any) -> History:
    """A history in which the mail has not arrived, and these things have happened since it was accepted."""
    usual = {"deliveries": [stopped(state)], "events": [ACCEPTED, *happened], "calls": [sent(), *calls]}
    return changed(arrivals=[], **(usual | changes))


def both(mine: History, theirs: History) -> History:
    """Two histories as those of two tenants at one store."""

    def of(history: History, tenant: str) -> tuple[list[Call], Rows]:
        rows = ([{**row, "tenant": tenant} for row in getattr(history.rows, one.name)] for one in fields(Rows))
        return [replace(call, tenant=tenant) for call in history.calls], Rows(*rows)

    (calls, rows), (more, others) = of(mine, "one"), of(theirs, "two")
    tables = ((*getattr(rows, one.name), *getattr(others, one.name)) for one in fields(Rows))
    return replace(mine, calls=calls + more, arrivals=[*mine.arrivals, *theirs.arrivals], rows=Rows(*tables))
