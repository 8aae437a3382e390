"""The walk of a batch: idempotency key, facts, judge, and what is to be written. A preview is the same walk without the write.

Nothing here commits; the caller's transaction does (ARCHITECTURE 6, steps 5 to 8).
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from gateway.core.delivery import State
from gateway.core.errors import ConflictError
from gateway.core.facts import Accepted, Ask, Decided, Facts, UsageAsk, name_of
from gateway.core.judge import Brief, Rule, brief, due, for_tenant, judge
from gateway.core.mail import Envelope, Submission
from gateway.core.record import Receipt, Record, document
from gateway.core.verdict import DEFER, HOLD, KEY_REUSED, Decision, Mode
from gateway.store import facts as fact_store
from gateway.store import mail as mail_store
from gateway.store import records
from gateway.store.mail import Judged
from gateway.store.tx import Tx

EQUAL_FOR = timedelta(minutes=1)
"""An equal refusal within this time only counts up (SEMANTICS 5)."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """A submission that waits for its group, with the bytes to relay and the words for the audit."""

    mail: Submission
    body: bytes
    send_reason: str | None = None


Result = Receipt | Exception


def walk(tx: Tx, tickets: Sequence[Ticket], rules: Sequence[Rule], *, write: bool) -> list[Result]:
    """Judge a batch of any tenants in order; with `write` the decisions are written into the open transaction."""
    results: dict[int, Result] = {}
    for tenant in sorted({t.mail.tenant for t in tickets}):
        mine = [(i, t) for i, t in enumerate(tickets) if t.mail.tenant == tenant]
        done = _Walk(tx, tenant, rules, write=write).run([t for _, t in mine])
        results |= {i: r for (i, _), r in zip(mine, done, strict=True)}
    return [results[i] for i in range(len(tickets))]


class _Walk:
    """One tenant's part of the batch."""

    def __init__(self, tx: Tx, tenant: str, rules: Sequence[Rule], *, write: bool) -> None:
        self.tx = tx
        self.tenant = tenant
        self.rules = for_tenant(rules, tx.profile(tenant).required)
        self.write = write
        self.known: dict[tuple[str, str], Record] = {}
        self.pairs: list[tuple[Judged, Record]] = []

    def run(self, tickets: Sequence[Ticket]) -> list[Result]:
        tickets = [self._placed(t) for t in tickets]
        self._look_up(tickets)
        cases = {i: brief(t.mail, self.rules) for i, t in enumerate(tickets) if not self._settled(t.mail)}
        asks = frozenset[Ask[Any]]().union(*(case.questions for case in cases.values()))
        facts = fact_store.load(self.tx, self.tenant, asks)
        results = [self._one(t, cases.get(i), facts) for i, t in enumerate(tickets)]
        if self.write and self.pairs:
            read = asks.union(*(_left_unasked(case, self.rules) for case in cases.values()))
            counted = frozenset((ask.scope, ask.window) for ask in read if isinstance(ask, UsageAsk))
            mail_store.write(self.tx, self.tenant, self.pairs, counted=counted)
        return results

    def _placed(self, ticket: Ticket) -> Ticket:
        """Mark the recipients that are the tenant's own people."""
        profile, envelope = self.tx.profile(self.tenant), ticket.mail.envelope
        marked = tuple(
            replace(r, internal=True) if profile.is_internal(r.address.key, r.address.domain) else r
            for r in envelope.recipients
        )
        if marked == envelope.recipients:
            return ticket
        return replace(ticket, mail=replace(ticket.mail, envelope=Envelope(envelope.reverse_path, marked)))

    def _look_up(self, tickets: Sequence[Ticket]) -> None:
        ids: dict[tuple[str, str], str] = {}
        for mailbox in sorted({t.mail.mailbox for t in tickets}):
            keys = [t.mail.idempotency_key for t in tickets if t.mail.mailbox == mailbox]
            found = records.by_idempotency(self.tx, self.tenant, mailbox, keys, expire=self.write)
            ids |= {(mailbox, key): request for key, request in found.items()}
        if ids:
            by_id = records.find(self.tx, self.tenant, ids.values())
            self.known = {slot: by_id[request] for slot, request in ids.items()}

    def _settled(self, mail: Submission) -> bool:
        """Whether a record of the store answers this mail without judging."""
        prior = self.known.get((mail.mailbox, mail.idempotency_key))
        return prior is not None and not prior.refused

    def _one(self, ticket: Ticket, case: Brief | None, facts: Facts) -> Result:
        mail = ticket.mail
        slot = (mail.mailbox, mail.idempotency_key)
        prior = self.known.get(slot)
        if prior is not None and not prior.refused:
            return _replay(prior, mail)
        if case is None:
            raise AssertionError  # settled mails returned above
        if prior is not None:
            mail = replace(mail, id=prior.id)
            case = replace(case, mail=mail)
        decision = judge(case, self.rules, facts)
        state = born(mail, decision, facts)
        if state is not State.BLOCKED:
            facts.advance(Accepted(mail, state is State.QUEUED, facts.now, name_of(facts, mail)))
        facts.note(Decided(mail, decision))
        judged = Judged(mail, ticket.body, decision, state, ticket.send_reason, prior)
        if prior is not None and _equal(prior, judged):
            return self._repeat(prior, judged)
        record = mail_store.build(self.tx, self.tenant, judged)
        self.pairs.append((judged, record))
        self.known[slot] = record
        return Receipt(record, warnings=_warnings(mail))

    def _repeat(self, prior: Record, judged: Judged) -> Receipt:
        """An equal refusal: only count it; the answer tells today's findings."""
        told = replace(prior, repeats=prior.repeats + 1, decision=document(judged.decision))
        pending = next((i for i, (_, r) in enumerate(self.pairs) if r.id == prior.id), None)
        if pending is not None:
            first, record = self.pairs[pending]
            self.pairs[pending] = (first, replace(record, repeats=record.repeats + 1))
        elif self.write:
            mail_store.count_repeat(self.tx, self.tenant, prior.id)
        self.known[judged.mail.mailbox, judged.mail.idempotency_key] = told
        return Receipt(told, warnings=_warnings(judged.mail))


def _left_unasked(case: Brief, rules: Sequence[Rule]) -> Iterator[Ask[Any]]:
    """What rules that do not concern this mail ask about others: all mail counts, whichever mail a quota is for."""
    for rule in rules:
        if rule.mode is not Mode.OFF and rule.name not in case.asks:
            with contextlib.suppress(Exception):  # a policy that breaks is named where it is asked
                yield from rule.policy.asks(case.mail)


def born(mail: Submission, decision: Decision, facts: Facts) -> State:
    """The state in which the mail's deliveries begin."""
    if decision.verdict >= DEFER:
        return State.BLOCKED
    if decision.verdict is HOLD:
        return State.HELD
    return State.QUEUED if due(mail, decision, facts) else State.SCHEDULED


def _replay(prior: Record, mail: Submission) -> Result:
    if prior.fingerprint == mail.fingerprint:
        return Receipt(prior, replayed=True, warnings=_warnings(mail))
    return ConflictError(
        KEY_REUSED.slug,
        KEY_REUSED.text,
        requestId=prior.id,
        nextAction=KEY_REUSED.next,
        idempotencyKey=mail.idempotency_key,
    )


def _equal(prior: Record, judged: Judged) -> bool:
    reason = judged.decision.reason
    return (
        judged.state is State.BLOCKED
        and prior.fingerprint == judged.mail.fingerprint
        and reason is not None
        and prior.decision["reason"] == reason.slug
        and judged.decision.at - prior.decided_at < EQUAL_FOR
    )


def _warnings(mail: Submission) -> tuple[str, ...]:
    return ("derived_key",) if mail.derived_key else ()
