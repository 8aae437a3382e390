"""The promises about mail: it comes once, to nobody who must not get it, and is what the store and its answers say it is."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.promises.record import History
from tests.promises.shapes import SLACK, TRANSACTION, Call, Row, key_of

UNSENT = {"cancelled", "blocked", "bounced", "expired"}
STANDING = {"queued", "claimed", "permitted"}
NEVER_LEFT = {"queued", "scheduled", "held", "blocked", "cancelled", "expired", "bounced", "claimed"}
TOLD = {name: {name} for name in ("bounced", "cancelled", "expired", "delivered")}
TOLD |= {"relayed": {"relayed", "delivered", "bounced"}}
"""By status in an answer: the states of which one must be there at the end."""
FLYING = {"send.queued", "delivery.queued", "delivery.deferred"}
REACHED = {"delivery.relayed", "delivery.unknown"}
ENDED_WITHOUT = {"delivery.blocked", "delivery.bounced", "delivery.cancelled", "delivery.expired", "delivery.held"}


def one_delivery_for_one_send(history: History) -> Iterator[str]:
    """A key's mail comes to a person once, and once more for each retry that somebody ordered."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for one in history.arrivals:
        send = history.by_message.get(one.message_id)
        if send is None:
            yield f"{one.to} got {one.message_id}, which the store does not know"
        else:
            counts[send["mailbox"], send["idem_key"], key_of(one.to)] += 1
    ordered = {
        (send["mailbox"], send["idem_key"], row["contact"]): row["tried"]
        for row in history.rows.deliveries
        for send in [history.sends[row["send_id"]]]
    }
    for slot, count in counts.items():
        if count > 1 + ordered.get(slot, 0):
            yield f"{slot} came {count} times"


def none_to_the_suppressed(history: History) -> Iterator[str]:
    """No dot after a suppression that was acknowledged before the permit; what had a permit by then bears its mark."""
    acknowledged: dict[str, int] = {}
    for call in history.calls:
        if call.act == "suppress" and call.status == 200 and call.answered is not None:
            key = call.contact
            acknowledged[key] = min(acknowledged.get(key, call.answered), call.answered)
    for row in history.rows.deliveries:
        came, permitted = history.count(row), row["permitted_us"] or 0
        if history.one_clock and came and permitted > acknowledged.get(row["contact"], permitted) + SLACK:
            yield f"{row['id']} got its permit after the suppression of {row['contact']} was acknowledged"
    for event in history.events:
        if event["name"] != "suppression.created" or event["data"].get("campaign"):
            continue
        for row in history.rows.deliveries:
            if row["contact"] == event["contact"]:
                yield from _permitted_late(history, row, event["at_us"])
            if row["contact"] == event["contact"] and history.count(row):
                yield from _against_suppression(history, row, event["at_us"])


def _permitted_late(history: History, row: Row, since: int) -> Iterator[str]:
    """A permit after a suppression's time came before its look at what has one, which then left the mark."""
    for permit in history.permits(row):
        if permit > since and (not row["forbidden"] or permit - since > TRANSACTION):
            yield f"{row['id']} got its permit after {row['contact']} was suppressed"


def _against_suppression(history: History, row: Row, since: int) -> Iterator[str]:
    accepted = history.accepted_at(row)
    if accepted is not None and accepted > since:
        yield f"{row['id']} was accepted after {row['contact']} was suppressed"
    settled = {"delivery.relayed", "delivery.unknown", "delivery.deferred", "delivery.bounced"}
    later = any(e["at_us"] > since and e["name"] in settled for e in history.story(row))
    if accepted is not None and accepted < since and later and not row["forbidden"] and not row["assumed"]:
        yield f"{row['id']} to {row['contact']} arrived, and its suppression left no mark on it"


def none_within_a_cooldown(history: History) -> Iterator[str]:
    """Of two sends to one person the later is accepted only a cooldown after the earlier, and after that has arrived."""
    counted = {s["id"] for s in history.rows.sends if s["kind"] == "outreach" and not s["override"]}
    mine: defaultdict[str, list[tuple[int, Row]]] = defaultdict(list)
    for row in history.rows.deliveries:
        at = history.accepted_at(row)
        if at is not None and row["send_id"] in counted and not row["internal"]:
            mine[row["contact"]].append((at, row))
    span = round(history.cooldown * 1_000_000)
    for contact, rows in mine.items():
        for index, (at, row) in enumerate(ordered := sorted(rows, key=lambda pair: pair[0])):
            for earlier, other in ordered[:index]:
                cools, over = _cools(history, row, other, at), _over(history, other, at)
                if not over and (at - earlier < span or cools is None or at - cools < span):
                    yield f"{row['send_id']} was accepted while {other['send_id']} cooled {contact} down"


def _over(history: History, row: Row, at: int) -> bool:
    """Whether a delivery had ended by `at` without reaching anybody; what ends comes first in a transaction."""
    names = [e["name"] for e in history.life(row) if e["at_us"] <= at]
    return names[-1] in ENDED_WITHOUT and "delivery.unknown" not in names


def _cools(history: History, row: Row, other: Row, at: int) -> int | None:
    """From when on other mail cooled its person down for mail that was accepted at `at`; None where it was on its way.

    What has waited was accepted before, and is not held off by mail that came after it.
    """
    happened = [e for e in history.life(other) if e["at_us"] < at]
    fresh = history.life(row)[0]["name"] == "send.queued"
    if fresh and happened and happened[-1]["name"] in FLYING:
        return None
    reached = (e["at_us"] for e in happened if e["name"] in REACHED and e["data"].get("reason") != "assumed")
    return max(reached, default=0) if fresh else 0


def one_state_that_matches_the_sink(history: History) -> Iterator[str]:
    """Relayed means arrived, ended means not arrived, and nothing is left on its way."""
    pairs = Counter((row["send_id"], row["contact"]) for row in history.rows.deliveries)
    for pair, count in pairs.items():
        if count > 1:
            yield f"{pair} has {count} deliveries"
    for row in history.rows.deliveries:
        came, state = history.count(row), row["state"]
        if state in ("relayed", "delivered") and not came and not row["assumed"]:
            yield f"{row['id']} is {state} and never arrived"
        if state in NEVER_LEFT and came and "delivery.unknown" not in history.names(row):
            yield f"{row['id']} is {state} and arrived"
        if history.drained and state in STANDING:
            yield f"{row['id']} is still {state}"


def no_dot_without_a_permit(history: History) -> Iterator[str]:
    """What arrived had a permit, and no attempt has a number that its delivery never had."""
    for row in history.rows.deliveries:
        if history.count(row) and row["permitted_us"] is None:
            yield f"{row['id']} arrived without a permit"
    highest = {row["id"]: row["claim_no"] for row in history.rows.deliveries}
    for attempt in history.rows.attempts:
        name, number = attempt["delivery_id"], attempt["claim_no"]
        if number > highest.get(name, number):
            yield f"{name} has attempt {number} above its claim number {highest[name]}"


def answers_agree_with_the_record(history: History) -> Iterator[str]:
    """What an agent was told is what the store holds: nothing accepted is lost, and what has ended stays so."""
    for call in history.calls:
        answer = call.answer or {}
        if call.act != "send" or call.status != 200 or not answer.get("requestId"):
            continue
        send = history.sends.get(answer["requestId"])
        if send is None:
            yield f"{answer['requestId']} was answered {answer['status']} and is lost"
            continue
        if call.body.get("idempotencyKey", send["idem_key"]) != send["idem_key"]:
            yield f"{send['id']} has another key than {call.body['idempotencyKey']}"
        anew = len(history.acceptances(send["id"])) > 1  # stopped, and written anew
        if call.accepted and answer["messageId"] != send["message_id"] and not anew:
            yield f"{send['id']} was answered with {answer['messageId']}, and has {send['message_id']}"
        states = {row["state"] for row in history.of_send[send["id"]]}
        if not states & TOLD.get(answer["status"], states):
            yield f"{send['id']} was answered {answer['status']}, and is {sorted(states)}"
        yield from _true_refusal(history, send, call)
    yield from _last_words(history)
    yield from _true_cancels(history)


def _true_refusal(history: History, send: Row, call: Call) -> Iterator[str]:
    """A refusal names what is so: a stale token has a newer one."""
    answer = call.answer or {}
    if answer.get("status") == "blocked" and answer.get("reason") == "stale_fencing_token":
        token, contacts = call.body.get("fencingToken"), {row["contact"] for row in history.of_send[send["id"]]}
        newest = [t.token for contact in contacts for t in history.leases.get(contact, [])]
        if token is not None and token >= max(newest, default=0):
            yield f"{send['id']} was refused as stale with the newest token {token}"


def _true_cancels(history: History) -> Iterator[str]:
    """What was answered as cancelled has ended for everybody, and has come to nobody; what had been unknown may have."""
    for call in history.calls:
        if call.act == "cancel" and call.status == 200 and (call.answer or {}).get("cancelled") is True:
            for row in history.of_send[call.body["request"]]:
                came = history.count(row) and "delivery.unknown" not in history.names(row)
                if row["state"] not in UNSENT or came:
                    yield f"{row['id']} was answered as cancelled, and is {row['state']}"


def _last_words(history: History) -> Iterator[str]:
    """A key whose every request was refused has sent nothing."""
    calls: defaultdict[str, list[Call]] = defaultdict(list)
    for call in history.calls:
        if call.act == "send" and "idempotencyKey" in call.body:
            calls[call.body["idempotencyKey"]].append(call)
    for key, mine in calls.items():
        if all((c.answer or {}).get("status") == "blocked" for c in mine):
            came = [d for s in history.rows.sends if s["idem_key"] == key for d in history.of_send[s["id"]]]
            if any(history.count(row) for row in came):
                yield f"every request for {key} was refused, and its mail arrived"


def one_id_for_one_key(history: History) -> Iterator[str]:
    """Every answer for a key names the same request, and the store has one record of it."""
    ids: defaultdict[str, set[str]] = defaultdict(set)
    for call in history.calls:
        answer = call.answer or {}
        if call.act == "send" and answer.get("requestId") and "idempotencyKey" in call.body:
            ids[call.body["idempotencyKey"]].add(answer["requestId"])
    for key, found in ids.items():
        if len(found) > 1:
            yield f"{key} has the ids {sorted(found)}"
    for slot, count in Counter((s["mailbox"], s["idem_key"]) for s in history.rows.sends).items():
        if count > 1:
            yield f"{slot} has {count} records"
