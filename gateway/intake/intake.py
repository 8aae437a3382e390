"""Intake: submit, preview, release, resolve. Every door and every wait goes through here, into one group with all others."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gateway.core.delivery import State
from gateway.core.errors import ConflictError, NotFoundError
from gateway.core.judge import Rule, brief, for_tenant, judge
from gateway.core.record import Receipt, Record
from gateway.core.verdict import DEFER, HOLD, Decision
from gateway.intake.walk import Result, Ticket, walk
from gateway.store import Store, release, waiting
from gateway.store import facts as fact_store
from gateway.store.clock import from_us
from gateway.store.release import Waiting
from gateway.store.tx import Tx
from gateway.store.waiting import Resolve
from gateway.store.writer import Rank, Writer

ASK_AGAIN = timedelta(seconds=30)
"""When a release is tried again after a check that could not answer or that names no time."""
SOONEST = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Terms:
    """How long waiting mail may wait: seconds until it is judged again, and until it is too late (SEMANTICS 8)."""

    rejudge_after: float = 600.0
    max_lateness: float = 86400.0


class Intake:
    """The only way in. Decisions of all doors and tenants share transactions; acceptance and outbox are one commit."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        rules: Sequence[Rule],
        terms: Terms | None = None,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """Judge by `rules`; `wake` is called when something new may be in the outbox."""
        self.store = store
        self.writer = writer
        self.rules = tuple(rules)
        self.terms = terms or Terms()
        self.wake = wake

    async def submit(self, ticket: Ticket) -> Receipt:
        """Judge and record a submission; returns once it is on disk.

        Raises ConflictError `idempotency_key_reused` (with requestId), or StoreUnavailableError: then nothing is known to
        be written and the same key may be tried again.
        """
        receipt = await self.writer.do(Rank.DECIDE, (ticket.mail.tenant,), self._decide, ticket)
        if any(d.state is State.QUEUED for d in receipt.record.deliveries):
            self.wake()
        return receipt

    async def submit_all(self, tickets: Sequence[Ticket]) -> list[Receipt | BaseException]:
        """Submit many in their order, into as few groups as can be; each result is what `submit` returns or raises."""
        return await asyncio.gather(*map(self.submit, tickets), return_exceptions=True)

    def _decide(self, tx: Tx, tickets: Sequence[Ticket]) -> list[Result]:
        return walk(tx, tickets, self.rules, write=True)

    def preview(self, ticket: Ticket) -> Receipt:
        """Judge a submission as `submit` would now, and write nothing (law 7). Blocks; raises as `submit` does."""
        mail = ticket.mail
        result = self.store.read(lambda tx: walk(tx, [ticket], self.rules, write=False), (mail.tenant,))[0]
        if isinstance(result, Exception):
            raise result
        return result

    def preview_all(self, tickets: Sequence[Ticket]) -> list[Result]:
        """Judge tickets of one tenant as if they came one after the other, and write nothing. Blocks.

        Each result is what `submit` would return or raise. Raises StoreUnavailableError.
        """
        tenants = {ticket.mail.tenant for ticket in tickets}
        return self.store.read(lambda tx: walk(tx, tickets, self.rules, write=False), tenants)

    async def release(self, tenant: str, request: str) -> Record | None:
        """Judge again what is due of a send that has waited; `None` where nothing of it waits any more."""
        found = await self.writer.do(Rank.DECIDE, (tenant,), self._release, (tenant, request))
        self.wake()
        return found

    async def approve(self, wish: Resolve) -> Record:
        """Let a held send go as far as its holds are concerned; all else is judged again, in the same transaction.

        Raises NotFoundError, or ConflictError `not_resolvable` where nothing of it is held.
        """
        record = await self.writer.do(Rank.DECIDE, (wish.tenant,), self._approve, wish)
        self.wake()
        return record

    async def resolve(self, wish: Resolve) -> Record:
        """Decide about an unknown send (retry, assume_sent, cancel) or reject a held one.

        Raises as `approve` does; of several at once the first decides, the others meet the new state.
        """
        record = await self.writer.do(Rank.FORBID, (wish.tenant,), waiting.resolve, wish)
        self.wake()
        return record

    def _release(self, tx: Tx, wishes: Sequence[tuple[str, str]]) -> list[Record | Exception | None]:
        states = (State.SCHEDULED, State.QUEUED)
        fresh = round(self.terms.rejudge_after * 1_000_000)
        done: list[Record | Exception | None] = []
        for tenant, request in wishes:
            case = release.waiting(tx, tenant, request, states, fresh_us=fresh)
            done.append(None if case is None else self._judge_again(tx, case, case.record.approved))
        return done

    def _approve(self, tx: Tx, wishes: Sequence[Resolve]) -> list[Record | Exception]:
        return [self._approve_one(tx, wish) for wish in wishes]

    def _approve_one(self, tx: Tx, wish: Resolve) -> Record | Exception:
        case = release.waiting(tx, wish.tenant, wish.request, (State.HELD,), fresh_us=None)
        if case is None:
            known = waiting.exists(tx, wish.tenant, wish.request)
            refusal = ConflictError("not_resolvable", "nothing of this request is held")
            return refusal if known else NotFoundError("no such request")
        waiting.note_decision(tx, wish)
        holds = {f["mark"] for f in case.record.decision["findings"] if f["verdict"] == "hold" and not f["observed"]}
        return self._judge_again(tx, case, case.record.approved | holds)

    def _judge_again(self, tx: Tx, case: Waiting, approved: frozenset[str]) -> Record:
        now = tx.now_of(case.record.tenant)
        limit = case.counts_from + timedelta(seconds=self.terms.max_lateness)
        if case.untried and from_us(now) >= limit:
            return release.expire(tx, case)
        rules = for_tenant(self.rules, tx.profile(case.record.tenant).required)
        question = brief(case.mail, rules)
        facts = fact_store.load(tx, case.record.tenant, question.questions)
        decision = judge(question, rules, facts, approved)
        to, due_at = _next(decision, case, limit)
        return release.write(tx, case, decision, to, due_at)


def _next(decision: Decision, case: Waiting, limit: datetime) -> tuple[State | None, datetime | None]:
    """The state that a release leads to (`None`: it stays), and when it is asked again where it must wait."""
    if decision.verdict > DEFER:
        return State.HELD if decision.waits else State.BLOCKED, None
    held = case.rows[0]["state"] == State.HELD
    if decision.verdict == DEFER:
        due_at = max(decision.retry_at or decision.at + ASK_AGAIN, decision.at + SOONEST)
        return (State.SCHEDULED if held else None), min(due_at, limit) if case.untried else due_at
    if decision.verdict == HOLD:
        return State.HELD, None
    if case.mail.not_before is not None and case.mail.not_before > decision.at:
        return State.SCHEDULED, case.mail.not_before
    return State.QUEUED, None
