"""Laws 6 and 10, and the promises, over random histories of everything that the heart can do.

The machine keeps a small model of what was promised to whom; the database itself notes every change of state.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gateway.core.delivery import GivenBack, Relayed, State, Unknown
from gateway.core.errors import ConflictError
from gateway.core.mail import Kind
from gateway.core.record import Receipt
from gateway.store import schema, waiting
from gateway.store.clock import to_us
from gateway.store.contacts import Lease
from gateway.store.outbox import Claim
from tests.databases import Databases, PostgresServer
from tests.laws.plays import BUSY, KEYS, OUTCOMES, Mail, submit
from tests.laws.watch import Changes, against_the_table, watched
from tests.world import AGENTS, BOXES, OK, START, TENANT, World

R = TypeVar("R")
T = TypeVar("T")
PEOPLE = ("p0@example.net", "p1@example.net", "p2@example.net", "p3@deep.example.org")
FLIGHT_MAX, COOLDOWN = timedelta(seconds=3600), timedelta(seconds=600)
FLYING = {"queued", "claimed", "permitted"}

mails = st.builds(
    Mail,
    agent=st.sampled_from(AGENTS),
    to=st.lists(st.sampled_from(PEOPLE), min_size=1, max_size=2, unique=True).map(tuple),
    key=st.sampled_from([None, None, *KEYS]),
    kind=st.sampled_from(["outreach", "reply", "reply", "transactional"]),
    token=st.sampled_from([None, None, None, None, 1, 2]),
    after=st.sampled_from([None, None, None, None, 900]),
    campaign=st.sampled_from([None, "spring"]),
    mailbox=st.sampled_from([BOXES[0], BOXES[0], BOXES[1]]),
)


numbers = st.integers(0, 7)
outcomes = st.sampled_from(
    ["relayed", "deferred", "bounced", "unknown", "unknown", "given back", "permitted", "claimed"]
)


class Heart(RuleBasedStateMachine):
    """One world with two nodes."""

    def __init__(self, databases: Databases) -> None:
        super().__init__()
        self.stay = ExitStack()
        self.runner = self.stay.enter_context(asyncio.Runner())
        self.world = World(self.stay.enter_context(databases.fresh(watched))).open()
        self.nodes = [self.world.nodes[0], self.world.node()]
        self.changes = Changes(self.world)
        self.newest: dict[str, int] = {}
        self.by: dict[tuple[str, int], int] = {}
        self.given: set[tuple[str, int]] = set()
        self.over: set[str] = set()  # deliveries that must never get a permit again
        self.entries: dict[str, tuple[str, str]] = {}
        self.lease: dict[str, tuple[str, int, datetime]] = {}
        self.tokens: dict[str, int] = {}
        self.closed = False
        self.paused: set[str] = set()
        self.requests: list[str] = []
        self.claims: list[Claim] = []
        self.permits: list[Claim] = []
        self.unknowns: list[Claim] = []
        self.leases: list[str] = []

    def do(self, work: Coroutine[Any, Any, R]) -> R:
        return self.runner.run(work)

    def teardown(self) -> None:
        self.changes.close()
        self.do(self.world.close())
        self.stay.close()

    def rows(self, table: Any) -> list[dict[str, Any]]:  # noqa: ANN401
        return self.world.rows_of(table)

    def holder(self, person: str, at: datetime) -> str | None:
        """Who has a live lease on a person, as far as was promised."""
        owner, _, until = self.lease.get(person, ("", 0, at))
        return owner if until > at else None

    def covered(self, person: str, campaign: str | None) -> bool:
        """Whether a suppression forbids mail to a person."""
        domain = person.partition("@")[2]
        return any(
            (subject in (person, domain) or domain.endswith("." + subject)) and only in ("", campaign)
            for subject, only in self.entries.values()
        )

    # --- sends --------------------------------------------------------------------------------------------------------

    @initialize(first=st.lists(mails, min_size=3, max_size=5), came_to=st.lists(outcomes, min_size=2, max_size=4))
    def begin(self, first: list[Mail], came_to: list[str]) -> None:
        self.changes.new()
        for mail in first:
            self.send(mail)
        self.relay(0, came_to)

    @rule(mail=mails)
    def send(self, mail: Mail) -> None:
        before, stamps = self.rows(schema.deliveries), self.rows(schema.contacts)
        receipt = self.do(submit(self.world, mail))
        if isinstance(receipt, ConflictError):
            return
        if not receipt.replayed and State.QUEUED in {d.state for d in receipt.record.deliveries}:
            self.check_accepted(mail, receipt, before, stamps)
        self.requests.append(receipt.record.id)

    def check_accepted(
        self, mail: Mail, receipt: Receipt, before: list[dict[str, Any]], stamps: list[dict[str, Any]]
    ) -> None:
        """Promises 4, 5 and 6 at acceptance: token, suppression, lease and flight, cooldown."""
        at, kind, me = receipt.record.decided_at, Kind(mail.kind), self.world.agent[mail.agent]
        for person in mail.to:
            assert not self.covered(person, mail.campaign)
            if not kind.leased:
                continue
            assert self.holder(person, at) in {None, me}
            if mail.token is not None and person == mail.to[0]:
                assert self.holder(person, at) == me
                assert self.lease[person][1] == mail.token
            for row in before:
                if row["contact"] == person and row["state"] in FLYING and Kind(row["kind"]).leased:
                    young = at - _time(row["since_us"]) < FLIGHT_MAX
                    assert row["actor"] == me or not (young or row["state"] == "permitted")
                    assert not kind.asks_cooldown
            for row in stamps:
                if row["key"] == person and row["last_us"] is not None and kind.asks_cooldown:
                    assert at - _time(row["last_us"]) >= COOLDOWN

    @rule(mail=mails)
    def preview(self, mail: Mail) -> None:
        before = self.world.rows()
        with contextlib.suppress(ConflictError):
            self.world.preview(mail.ticket(self.world))
        assert self.world.rows() == before

    @rule(number=numbers)
    def cancel(self, number: int) -> None:
        request = _one_of(self.requests, number)
        _, record = self.do(self.world.cancel(request))
        assert not {d.state for d in record.deliveries} & {State.QUEUED, State.SCHEDULED, State.HELD, State.CLAIMED}
        ended = {State.CANCELLED, State.PERMITTED, State.UNKNOWN}
        self.over |= {d.id for d in record.deliveries if d.state in ended}

    @rule(decision=st.sampled_from(["retry", "retry", "assume_sent", "cancel", "approve", "reject"]))
    def resolve(self, decision: str) -> None:
        state = "held" if decision in {"approve", "reject"} else "unknown"
        request = next((row["send_id"] for row in self.rows(schema.deliveries) if row["state"] == state), None)
        if request is None:
            return
        try:
            self.do(self.world.resolve(request, decision))
        except ConflictError:
            return
        if decision in {"cancel", "reject", "assume_sent"}:
            ended = {State.CANCELLED, State.RELAYED}
            self.over |= {d.id for d in self.world.record(request).deliveries if d.state in ended}

    # --- the relay ----------------------------------------------------------------------------------------------------

    @rule(node=st.integers(0, 1), limit=st.integers(1, 3))
    def claim(self, node: int, limit: int) -> None:
        got = self.do(self.world.claim(limit, self.nodes[node]))
        assert not (got and self.closed)
        for claim in got:
            assert self.world.record(claim.send).mailbox not in self.paused
            assert claim.claim_no > self.newest.get(claim.delivery, 0)
            self.newest[claim.delivery] = claim.claim_no
            self.by[claim.delivery, claim.claim_no] = node
        self.claims += got

    @precondition(lambda self: self.claims)
    @rule(number=numbers)
    def permit(self, number: int) -> None:
        self.ask_for_the_permit(_one_of(self.claims, number))

    def ask_for_the_permit(self, claim: Claim) -> bool:
        if self.do(self.world.permit(claim)) is not None:
            return False
        assert not self.closed
        assert self.newest[claim.delivery] == claim.claim_no
        assert (claim.delivery, claim.claim_no) not in self.given
        assert claim.delivery not in self.over
        assert not self.covered(claim.address, self.world.record(claim.send).campaign)
        self.given.add((claim.delivery, claim.claim_no))
        self.permits.append(claim)
        return True

    @rule(node=st.integers(0, 1), came_to=st.lists(outcomes, min_size=2, max_size=4))
    def relay(self, node: int, came_to: list[str]) -> None:
        """A worker's round: claim, permit and settle each as drawn; some are left where they are."""
        old = len(self.claims)
        self.claim(node, len(came_to))
        for claim, outcome in zip(self.claims[old:], came_to, strict=False):
            if outcome != "claimed" and self.ask_for_the_permit(claim) and outcome != "permitted":
                self.settle(0, outcome)

    @precondition(lambda self: self.claims)
    @rule(number=numbers, outcome=st.sampled_from(["deferred", "gone", "given back"]))
    def settle_without_a_permit(self, number: int, outcome: str) -> None:
        claim = _one_of(self.claims, number)
        if (claim.delivery, claim.claim_no) in self.given:
            return
        state = self.do(self.world.settle(claim, OUTCOMES[outcome]))
        if outcome == "gone" and state is State.BOUNCED:
            self.suppressed_by_the_smarthost()

    def suppressed_by_the_smarthost(self) -> None:
        for row in self.rows(schema.suppressions):
            self.entries[row["id"]] = (row["subject"], row["campaign"])

    @precondition(lambda self: self.permits)
    @rule(number=numbers, outcome=outcomes.filter(lambda outcome: outcome in OUTCOMES))
    def settle(self, number: int, outcome: str) -> None:
        claim = self.permits.pop(-1 - number % len(self.permits))
        state = self.do(self.world.settle(claim, OUTCOMES[outcome]))
        if state in {State.RELAYED, State.BOUNCED}:
            self.over.add(claim.delivery)
        if outcome == "unknown":
            self.unknowns.append(claim)

    @precondition(lambda self: self.unknowns)
    @rule(number=numbers, outcome=st.sampled_from([Relayed(OK), BUSY, OUTCOMES["bounced"], GivenBack("late")]))
    def a_late_reply(self, number: int, outcome: Any) -> None:  # noqa: ANN401
        claim = self.unknowns.pop(-1 - number % len(self.unknowns))
        state = self.do(self.world.settle(claim, outcome))
        if state in {State.RELAYED, State.BOUNCED}:
            self.over.add(claim.delivery)

    @rule(node=st.integers(0, 1))
    def a_node_is_taken_for_dead(self, node: int) -> None:
        old = len(self.claims)
        self.claim(node, 2)
        for claim in self.claims[old : old + 1]:
            self.ask_for_the_permit(claim)
        epoch = self.nodes[node].store.epoch
        self.world.store.write((TENANT,), lambda tx: waiting.recover(tx, [epoch]))
        held = [row["state"] for row in self.rows(schema.deliveries) if row["epoch"] == epoch]
        assert not {"claimed", "permitted"} & set(held)
        self.claim(1 - node, 3)
        for claim in self.claims:  # it wakes and asks for what it held: some of that is claimed by the other node now
            if self.by[claim.delivery, claim.claim_no] == node:
                assert self.do(self.world.permit(claim)) is not None

    @rule(closed=st.sampled_from([False, False, True]))
    def pause_or_open_the_relay(self, closed: bool) -> None:
        self.closed = closed
        self.do(self.world.pause_relay(paused=closed))

    # --- contacts and lists -------------------------------------------------------------------------------------------

    @rule(agent=st.sampled_from(AGENTS), person=st.sampled_from(PEOPLE), operator=st.booleans())
    def acquire(self, agent: str, person: str, operator: bool) -> None:
        before, me = self.rows(schema.deliveries), self.world.agent[agent]
        got = self.do(self.world.acquire(agent, person, 1800, operator_reason="so" if operator else None))
        if not isinstance(got, Lease):
            return
        at = got.expires_at - timedelta(seconds=1800)
        mine = self.holder(person, at) == me
        assert mine or operator or self.holder(person, at) is None
        assert got.token == self.tokens.get(person, 0) + (not mine)
        if not mine:
            self.check_taken(before, got, me, at, operator=operator)
        self.lease[person] = (me, got.token, got.expires_at)
        self.tokens[person] = got.token
        self.leases.append(got.id)

    def check_taken(self, before: list[dict[str, Any]], got: Lease, me: str, at: datetime, *, operator: bool) -> None:
        """What was in the way of a new lease, and what became of it."""
        for row in before:
            if row["contact"] != got.contact or row["actor"] == me or not Kind(row["kind"]).leased:
                continue
            if row["state"] in FLYING and not operator:
                assert row["state"] != "permitted"
                assert at - _time(row["since_us"]) >= FLIGHT_MAX
            if row["state"] in {"queued", "claimed"}:
                assert row["send_id"] in got.withdrew
                assert self.world.record(row["send_id"]).deliveries
            if row["state"] == "permitted":
                self.over.add(row["id"])

    @precondition(lambda self: self.leases)
    @rule(number=numbers, again=st.booleans())
    def release_or_renew(self, number: int, again: bool) -> None:
        lease = _one_of(self.leases, number)
        person = next((row["key"] for row in self.rows(schema.contacts) if row["lease_id"] == lease), None)
        if again:
            until = self.do(self.world.renew(lease, seconds=1800))
            if isinstance(until, datetime):
                assert person is not None
                self.lease[person] = (*self.lease[person][:2], until)
            return
        if self.do(self.world.release(lease)).released:
            assert person is not None
            self.lease.pop(person)

    @rule(subject=st.sampled_from([*PEOPLE, "example.org"]), campaign=st.sampled_from(["", "spring"]))
    def suppress(self, subject: str, campaign: str) -> None:
        entry, _ = self.do(self.world.suppress(subject, campaign=campaign))
        self.entries[entry.id] = (subject, campaign)
        for row in self.rows(schema.deliveries):
            if row["state"] in {"queued", "claimed"}:
                assert not self.covered(row["contact"], self.world.record(row["send_id"]).campaign)

    @precondition(lambda self: self.entries)
    @rule(number=numbers)
    def unsuppress(self, number: int) -> None:
        entry = _one_of(list(self.entries), number)  # ids are random, their order is not
        del self.entries[entry]
        self.do(self.world.unsuppress(entry))

    @rule(box=st.sampled_from(BOXES), back=st.booleans())
    def pause_or_resume_a_mailbox(self, box: str, back: bool) -> None:
        mailbox = self.world.box[box].id
        before = [row for row in self.rows(schema.deliveries) if row["mailbox"] == mailbox]
        if back:
            self.paused.discard(mailbox)
            released = self.do(self.world.resume_mailbox(box))
            assert released == sum((row["state"], row["reason"]) == ("held", "mailbox_paused") for row in before)
        else:
            self.paused.add(mailbox)
            held = self.do(self.world.pause_mailbox(box))
            assert held == sum(row["state"] in {"queued", "claimed"} for row in before)

    # --- time ---------------------------------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([1, 60, 700, 700, 2000, 3700, 90_000]), look=st.sampled_from([True, True, False]))
    def time_goes_by(self, seconds: int, look: bool) -> None:
        self.world.advance(seconds)
        if look:
            self.do(self.world.look())

    # --- what always holds --------------------------------------------------------------------------------------------

    @invariant()
    def no_state_changes_but_by_the_table(self) -> None:
        assert against_the_table(self.changes.new()) == []

    @invariant()
    def every_send_has_its_decision_and_its_deliveries(self) -> None:
        sends, decided = self.rows(schema.sends), self.rows(schema.decisions)
        assert {row["id"] for row in sends} == {row["send_id"] for row in self.rows(schema.deliveries)}
        assert {row["id"] for row in sends} == {row["send_id"] for row in decided}
        for row in sends:
            numbers = [one["no"] for one in decided if one["send_id"] == row["id"]]
            assert sorted(numbers) == list(range(1, row["decision_no"] + 1))

    @invariant()
    def every_claim_has_its_attempt(self) -> None:
        made = {(row["delivery_id"], row["claim_no"]) for row in self.rows(schema.attempts)}
        assert made == {(name, no) for name, newest in self.newest.items() for no in _attempts(made, name, newest)}

    @invariant()
    def tokens_never_fall(self) -> None:
        for row in self.rows(schema.contacts):
            assert row["token"] == self.tokens.get(row["key"], 0)


def _attempts(made: set[tuple[str, int]], name: str, newest: int) -> list[int]:
    """The numbers of a delivery's attempts: the newest is there, and none is beyond it."""
    numbers = [no for one, no in made if one == name]
    assert max(numbers) == newest
    return numbers


def _one_of(things: list[T], number: int) -> T:
    return things[-1 - number % len(things)]


def _time(us: int) -> datetime:
    return START + timedelta(microseconds=us - to_us(START))


def test_whatever_happens_the_table_and_the_promises_hold(databases: Databases) -> None:
    examples = 12 if isinstance(databases, PostgresServer) else 30  # each has a database of its own
    run_state_machine_as_test(
        lambda: Heart(databases),  # type: ignore[arg-type]  # whatever makes a machine will do
        settings=settings(max_examples=examples, stateful_step_count=60, deadline=None),
    )


def test_the_watch_sees_what_the_table_does_not_have() -> None:
    wrong = [("blocked", "bounced", None), ("queued", None, 0), ("blocked", None, 1), (None, "claimed", None)]
    right = [("queued", "claimed", None), ("blocked", None, 0), (None, "held", None)]

    assert len(against_the_table([*wrong, *right])) == len(wrong)
    assert isinstance(OUTCOMES["unknown"], Unknown)
