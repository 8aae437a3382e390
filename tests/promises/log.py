"""The promises about the log: what was answered or has arrived stands in it, and what stands in it was asked for.

The other promises read the log: what is not in it they would pass over.
"""

from collections import defaultdict
from collections.abc import Iterator

from tests.promises.record import BEGUN, History
from tests.promises.shapes import SLACK, Row

GONE = "5.1.1"


def what_was_answered_and_arrived_is_on_record(history: History) -> Iterator[str]:
    """Accepted sends and arrived mail have their events and decisions, leases and suppressions their events."""
    for call in history.calls:
        send = history.sends.get((call.answer or {}).get("requestId", "")) if call.accepted else None
        if send is not None and not any(event["name"] in BEGUN for event in history.about[send["id"]]):
            yield f"{send['id']} was answered as accepted, and no event says so"
        if send is not None and not any(d["verdict"] in ("pass", "hold") for d in history.decisions[send["id"]]):
            yield f"{send['id']} was answered as accepted, and no decision says so"
        if send is not None and len(history.acceptances(send["id"])) < 2:
            for key in call.people - {row["contact"] for row in history.of_send[send["id"]]}:
                yield f"{send['id']} was answered as accepted, and has no delivery to {key}"
    for send in history.rows.sends:
        numbers = [row["no"] for row in history.decisions[send["id"]]]
        if numbers != list(range(1, send["decision_no"] + 1)):
            yield f"{send['id']} has the decisions {numbers}, of {send['decision_no']}"
    for row in history.rows.deliveries:
        if history.count(row):
            yield from _was_let_go(history, row)
    yield from _leases(history)
    yield from _suppressions(history)
    yield from _decisions(history)


def _was_let_go(history: History, row: Row) -> Iterator[str]:
    """Mail that arrived was accepted by an event and a decision, and let go before its permit."""
    birth, permit = history.birth(row["send_id"]), row["permitted_us"]
    if birth is None or birth["name"] not in BEGUN or history.accepted_at(row) is None:
        yield f"{row['id']} arrived, and no event says that it was let go"
    if not any(permit is None or one["at_us"] <= permit for one in history.let_go(row)):
        yield f"{row['id']} arrived, and no decision before its permit let it go"


def _leases(history: History) -> Iterator[str]:
    known = {(e["contact"], e["data"]["lease"], e["data"]["token"]) for e in history.named["lease.acquired"]}
    kept = {e["data"]["lease"] for e in history.named["lease.extended"]}
    for call in history.calls:
        answer = call.answer or {}
        if call.act == "acquire" and "fencingToken" in answer:
            lease = (call.contact, answer["id"], answer["fencingToken"])
            if lease not in known:
                yield f"{call.agent} was given {lease}, and no event says so"
        if call.act == "renew" and answer.get("renewed") is True and call.body["lease"] not in kept:
            yield f"{call.agent} was answered that {call.body['lease']} is renewed, and no event says so"


def _suppressions(history: History) -> Iterator[str]:
    """Each answer comes after an event of its own, or of an entry that was there before."""
    firsts: dict[str, int] = {}
    for event in history.named["suppression.created"]:
        firsts.setdefault(event["contact"], event["at_us"])
    for call in history.calls:
        if call.act == "suppress" and call.status == 200 and call.answered is not None:
            key = call.contact
            if key not in firsts or (history.one_clock and firsts[key] > call.answered + SLACK):
                yield f"{key} was answered as suppressed, and no event by then says so"


def _decisions(history: History) -> Iterator[str]:
    """Each decision that was answered is in the audit."""
    made = {(e["send_id"], e["data"]["decision"]) for e in history.named["send.resolved"]}
    for call in history.calls:
        if call.act == "resolve" and call.status == 200 and (call.body["request"], call.body["decision"]) not in made:
            yield f"{call.body['decision']} of {call.body['request']} was answered, and no event says so"


def nobody_acts_unasked(history: History) -> Iterator[str]:
    """What is accepted, taken, suppressed or decided was asked for, each time; an address is suppressed too when it is gone."""
    keys = {call.body.get("idempotencyKey") for call in history.calls if call.act == "send"}
    for send in history.rows.sends:
        if None not in keys and send["idem_key"] not in keys:  # without a key one is made
            yield f"nobody has asked for {send['id']}, {send['idem_key']}"
    yield from _takers(history)
    for event in history.named["send.resolved"]:
        decision, by = event["data"]["decision"], event["actor"]
        if by != "setting" and not history.asked(
            "resolve", event["at_us"], request=event["send_id"], decision=decision
        ):
            yield f"nobody has asked for {decision} of {event['send_id']}"


def _takers(history: History) -> Iterator[str]:
    """Each lease and each suppression is that of a call of its own, which came before."""
    wanted: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for call in sorted(history.calls, key=lambda call: call.asked):
        if call.act in ("acquire", "suppress") and call.may_have_done:
            wanted[call.act, call.contact].append(call.asked)
    for name, act in (("lease.acquired", "acquire"), ("suppression.created", "suppress")):
        for event in history.named[name]:
            asked = wanted[act, event["contact"]]
            if asked and (not history.one_clock or asked[0] <= event["at_us"] + SLACK):
                del asked[0]
            elif name == "lease.acquired" or not _is_gone(history, event):
                yield f"nobody has asked for {name} of {event['contact']} at {event['at_us']}"


def _is_gone(history: History, event: Row) -> bool:
    """Whether the smarthost said at this time that there is no such address."""
    bounced = (e for e in history.named["delivery.bounced"] if e["contact"] == event["contact"])
    tries = (t for e in bounced if e["at_us"] == event["at_us"] for t in history.tries[e["data"]["delivery"]])
    return any(t["enhanced"] == GONE and t["ended_us"] >= event["at_us"] for t in tries if t["ended_us"])
