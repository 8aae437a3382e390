"""One history of a run, and what must be true of it: requests and answers, arrivals at the sink, rows and events at the end.

Whoever runs agents against gateways puts every request with its answer into a `History`, whatever became of it, every
mail that the sink took, and at the end all rows of the store. `violations` then says which promise was broken where; each
promise is one function in `CHECKS`. Nothing here knows how the gateway works inside: rows and events are its record.

Our own times are microseconds since 1970 by this machine's clock, the store's by its own; they are compared with each
other only where `one_clock` says that they are the same clock. A request without an answer may have happened or not.
The checks of leases suppose that no agent makes its lease shorter, and that a mail's Message-ID is its own.
"""

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from email.parser import BytesHeaderParser
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from gateway.core.address import parse
from gateway.sink import Mail
from gateway.store import dialect_of, schema
from gateway.store.clock import to_us

Row = Mapping[str, Any]
SLACK = 20_000
"""Microseconds by which two clocks of one machine are allowed to differ (SQLite's has milliseconds)."""
STANDING = {"queued", "claimed", "permitted"}
NEVER_LEFT = {"queued", "scheduled", "held", "blocked", "cancelled", "expired", "bounced", "claimed"}
ENDED_WITHOUT = {"delivery.blocked", "delivery.bounced", "delivery.cancelled", "delivery.expired", "delivery.held"}


@dataclass(frozen=True, slots=True)
class Call:
    """One request of an agent: `act` is send, suppress, acquire, renew, release, resolve or cancel.

    `answered`, `status` and `answer` are None where no answer came.
    """

    agent: str
    act: str
    asked: int
    body: Mapping[str, Any]
    answered: int | None = None
    status: int | None = None
    answer: Mapping[str, Any] | None = None

    @property
    def accepted(self) -> bool:
        """Whether a send was answered with a receipt for something that will go."""
        return self.act == "send" and self.status == 200 and (self.answer or {}).get("status") != "blocked"


@dataclass(frozen=True, slots=True)
class Arrival:
    """One mail that the sink took for one recipient."""

    at: int
    to: str
    message_id: str


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows that the checks look at, as the store holds them at the end."""

    sends: Sequence[Row] = ()
    deliveries: Sequence[Row] = ()
    attempts: Sequence[Row] = ()
    decisions: Sequence[Row] = ()
    events: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken, and where."""

    check: str
    where: str


@dataclass(frozen=True)
class History:
    """A run; `cooldown` in seconds, `drained` where nothing may be left on its way."""

    calls: Sequence[Call]
    arrivals: Sequence[Arrival]
    rows: Rows
    cooldown: float = 600.0
    drained: bool = True
    one_clock: bool = True
    events: Sequence[Row] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Read the events in the store's order."""
        read = [dict(row) | {"data": json.loads(row["data"])} for row in self.rows.events]
        object.__setattr__(self, "events", sorted(read, key=lambda row: (row["at_us"], row["id"])))

    @cached_property
    def sends(self) -> dict[str, Row]:
        """Send records by request id."""
        return {row["id"]: row for row in self.rows.sends}

    @cached_property
    def by_message(self) -> dict[str, Row]:
        """Send records by Message-ID."""
        return {row["message_id"]: row for row in self.rows.sends}

    @cached_property
    def of_send(self) -> dict[str, list[Row]]:
        """Deliveries by request id."""
        found = defaultdict(list)
        for row in self.rows.deliveries:
            found[row["send_id"]].append(row)
        return found

    @cached_property
    def about(self) -> dict[str, list[Row]]:
        """Events by request id."""
        found = defaultdict(list)
        for event in self.events:
            found[event["send_id"]].append(event)
        return found

    @cached_property
    def arrived(self) -> Counter[tuple[str, str]]:
        """How often each (Message-ID, person key) came to the sink."""
        return Counter((one.message_id, key_of(one.to)) for one in self.arrivals)

    def count(self, delivery: Row) -> int:
        """How often a delivery came to the sink."""
        return self.arrived[self.sends[delivery["send_id"]]["message_id"], delivery["contact"]]

    def names(self, delivery: Row) -> set[str]:
        """The names of all events of one delivery."""
        return {e["name"] for e in self.about[delivery["send_id"]] if e["data"].get("delivery") == delivery["id"]}

    def accepted_at(self, send: str) -> int | None:
        """When (the store's microseconds) a send was last let go; None where it never was. A send that waited: by its release."""
        for name in ("send.queued", "delivery.queued"):
            times: list[int] = [e["at_us"] for e in self.about[send] if e["name"] == name]
            if times:
                return max(times) if name == "send.queued" else min(times)
        return None

    @cached_property
    def leases(self) -> "dict[str, list[Tenure]]":
        """The leases on each contact in the store's order, with the end that is certain of each."""
        ends: dict[str, int] = {}
        for call in self.calls:
            if call.act in ("acquire", "renew") and call.answer and "expiresAt" in call.answer:
                lease = call.answer.get("id") or call.body["lease"]
                ends[lease] = max(ends.get(lease, 0), moment(call.answer["expiresAt"]))
        found: defaultdict[str, list[Tenure]] = defaultdict(list)
        for event in self.events:
            mine = found[event["contact"]] if event["name"].startswith("lease.") else []
            if event["name"] == "lease.acquired":
                if mine and "override" in event["data"]:
                    mine[-1] = replace(mine[-1], end=min(mine[-1].end, event["at_us"]))
                lease, at = event["data"]["lease"], event["at_us"]
                mine.append(Tenure(lease, event["data"]["token"], event["actor"], at, max(at, ends.get(lease, at))))
            elif event["name"] == "lease.released":
                for index, one in enumerate(mine):
                    if one.lease == event["data"]["lease"]:
                        mine[index] = replace(one, end=min(one.end, event["at_us"]))
        return found


@dataclass(frozen=True, slots=True)
class Tenure:
    """A lease from its acquisition to the end that is certain, in the store's microseconds."""

    lease: str
    token: int
    agent: str
    start: int
    end: int


Check = Callable[[History], Iterator[str]]
CHECKS: dict[str, Check] = {}


def check(promise: Check) -> Check:
    """Enter a function into the table of checks under its own name."""
    CHECKS[promise.__name__] = promise
    return promise


def violations(history: History) -> list[Violation]:
    """What is wrong with a history; an empty list where every promise was kept."""
    return [Violation(name, where) for name, promise in CHECKS.items() for where in promise(history)]


# --- the promises -----------------------------------------------------------------------------------------------------


@check
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


@check
def none_to_the_suppressed(history: History) -> Iterator[str]:
    """No dot after a suppression that was acknowledged before the permit; what had a permit by then bears its mark."""
    acknowledged: dict[str, int] = {}
    for call in history.calls:
        if call.act == "suppress" and call.status == 200 and call.answered is not None:
            key = key_of(call.body["recipientEmail"])
            acknowledged[key] = min(acknowledged.get(key, call.answered), call.answered)
    for row in history.rows.deliveries:
        came, permitted = history.count(row), row["permitted_us"] or 0
        if history.one_clock and came and permitted > acknowledged.get(row["contact"], permitted) + SLACK:
            yield f"{row['id']} got its permit after the suppression of {row['contact']} was acknowledged"
    for event in history.events:
        if event["name"] != "suppression.created" or event["data"].get("campaign"):
            continue
        for row in history.rows.deliveries:
            if row["contact"] == event["contact"] and history.count(row):
                yield from _against_suppression(history, row, event["at_us"])


def _against_suppression(history: History, row: Row, since: int) -> Iterator[str]:
    accepted = history.accepted_at(row["send_id"])
    if accepted is not None and accepted > since:
        yield f"{row['id']} was accepted after {row['contact']} was suppressed"
    settled = {"delivery.relayed", "delivery.unknown", "delivery.deferred", "delivery.bounced"}
    later = any(e["at_us"] > since and e["name"] in settled for e in history.about[row["send_id"]])
    if accepted is not None and accepted < since and later and not row["forbidden"] and not row["assumed"]:
        yield f"{row['id']} to {row['contact']} arrived, and its suppression left no mark on it"


@check
def none_by_a_stale_token(history: History) -> Iterator[str]:
    """A send that carried a token was accepted while that token was its agent's, and the newest."""
    tenures = history.leases
    for send in history.rows.sends:
        at = history.accepted_at(send["id"])
        if at is None:
            continue
        for contact, token in json.loads(send["tokens"]).items():
            before = [t for t in tenures.get(contact, []) if t.start < at]
            newer = [t for t in before if t.token > token]
            if newer:
                yield f"{send['id']} was accepted with token {token} of {contact} after token {newer[-1].token}"
            if not any(t.token == token and t.agent == send["agent"] for t in before):
                yield f"{send['id']} was accepted with token {token} of {contact}, which its agent never had"


@check
def none_within_a_cooldown(history: History) -> Iterator[str]:
    """Of two sends to one person the later is accepted, and arrives, only a cooldown after the earlier."""
    counted = {s["id"] for s in history.rows.sends if s["kind"] == "outreach" and not s["override"]}
    mine: defaultdict[str, list[tuple[int, Row]]] = defaultdict(list)
    for row in history.rows.deliveries:
        at = history.accepted_at(row["send_id"])
        if at is not None and row["send_id"] in counted and not row["internal"]:
            mine[row["contact"]].append((at, row))
    span = round(history.cooldown * 1_000_000)
    for contact, rows in mine.items():
        for index, (at, row) in enumerate(ordered := sorted(rows, key=lambda pair: pair[0])):
            for earlier, other in ordered[:index]:
                if at - earlier < span and not _over(history, other, at):
                    yield f"{row['send_id']} was accepted while {other['send_id']} cooled {contact} down"


def _over(history: History, row: Row, at: int) -> bool:
    """Whether a delivery had ended before `at` without reaching anybody."""
    ends = [e for e in history.about[row["send_id"]] if e["data"].get("delivery") == row["id"] and e["at_us"] < at]
    return bool(ends) and ends[-1]["name"] in ENDED_WITHOUT and "delivery.unknown" not in {e["name"] for e in ends}


@check
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


@check
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


@check
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
        if call.accepted and answer["messageId"] != send["message_id"]:
            yield f"{send['id']} was answered with {answer['messageId']}, and has {send['message_id']}"
        states = {row["state"] for row in history.of_send[send["id"]]}
        if answer["status"] == "relayed" and not states & {"relayed", "delivered", "bounced"}:
            yield f"{send['id']} was answered relayed, and is {sorted(states)}"
        yield from _true_refusal(history, send, call)
    yield from _last_words(history)


def _true_refusal(history: History, send: Row, call: Call) -> Iterator[str]:
    """A refusal names what is so: a stale token has a newer one."""
    answer = call.answer or {}
    if answer.get("status") == "blocked" and answer.get("reason") == "stale_fencing_token":
        token, contacts = call.body.get("fencingToken"), {row["contact"] for row in history.of_send[send["id"]]}
        newest = [t.token for contact in contacts for t in history.leases.get(contact, [])]
        if token is not None and token >= max(newest, default=0):
            yield f"{send['id']} was refused as stale with the newest token {token}"


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


@check
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


@check
def tokens_rise(history: History) -> Iterator[str]:
    """Each acquisition has the next token, in the store's order and in the order in which agents saw them."""
    for contact, tenures in history.leases.items():
        tokens = [tenure.token for tenure in tenures]
        if tokens != list(range(1, len(tokens) + 1)):
            yield f"the tokens of {contact} are {tokens}"
    got: defaultdict[str, list[Call]] = defaultdict(list)
    for call in history.calls:
        if call.act == "acquire" and call.answer and "fencingToken" in call.answer:
            got[key_of(call.body["contactEmail"])].append(call)
    for contact, calls in got.items():
        for earlier in calls:
            for later in calls:
                if earlier.answered is not None and earlier.answered < later.asked:
                    yield from _not_lower(contact, earlier.answer or {}, later.answer or {})


def _not_lower(contact: str, earlier: Mapping[str, Any], later: Mapping[str, Any]) -> Iterator[str]:
    first, then = earlier["fencingToken"], later["fencingToken"]
    if then < first or (then == first) != (earlier["id"] == later["id"]):
        yield f"{contact} gave token {first} and later {then}"


@check
def one_holder_at_a_time(history: History) -> Iterator[str]:
    """No lease begins before the one before it has ended, and nobody else's mail is accepted while it lives."""
    tenures = history.leases
    for contact, mine in tenures.items():
        for first, second in itertools.pairwise(mine):
            if second.start < first.end:
                yield f"{contact} had two holders: {first} and {second}"
    for row in history.rows.deliveries:
        send = history.sends[row["send_id"]]
        at = history.accepted_at(send["id"])
        if at is None or send["kind"] == "transactional" or send["override"] or row["internal"]:
            continue
        for tenure in tenures.get(row["contact"], []):
            if tenure.start < at < tenure.end and tenure.agent != send["agent"]:
                yield f"{send['id']} was accepted while another agent held {row['contact']}"


@check
def causes_come_before_their_effects(history: History) -> Iterator[str]:
    """A decision that names a suppression or a newer token is dated after it: the store's time is the order of its commits."""
    firsts: dict[tuple[str, str], int] = {}
    for event in history.events:
        if event["name"] in ("suppression.created", "lease.acquired"):
            firsts.setdefault((event["name"], event["contact"]), event["at_us"])
    causes = {"suppressed": "suppression.created", "stale_fencing_token": "lease.acquired"}
    for decision in history.rows.decisions:
        cause = causes.get(decision["reason"])
        contacts = {row["contact"] for row in history.of_send[decision["send_id"]]}
        times = [firsts[cause, contact] for contact in contacts if (cause, contact) in firsts] if cause else []
        if times and min(times) > decision["at_us"]:
            yield f"{decision['send_id']} was {decision['reason']} before there was a cause"


# --- gathering --------------------------------------------------------------------------------------------------------


def key_of(address: str) -> str:
    """The person key of an address."""
    return parse(address).key


def moment(text: str) -> int:
    """Microseconds since 1970 of a time in an answer."""
    return to_us(datetime.fromisoformat(text))


def arrivals_of(mail: Mail, at: int) -> list[Arrival]:
    """The arrivals of one mail that a sink took at `at`."""
    message_id = BytesHeaderParser().parsebytes(mail.content)["message-id"].strip(" \t\r\n<>")  # it may be folded
    return [Arrival(at, to, message_id) for to in mail.recipients]


def read_rows(url: str) -> Rows:
    """All rows of a store, read past the gateway."""
    engine = dialect_of(url).engine
    tables = ("sends", "deliveries", "attempts", "decisions", "events")
    with engine.connect() as connection:
        read = {
            name: [dict(r) for r in connection.execute(sa.select(getattr(schema, name))).mappings()] for name in tables
        }
    engine.dispose()
    return Rows(**read)
