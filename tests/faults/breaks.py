"""Deliberate faults, to show that the races and kills find them: each entry of `BREAKS` makes the gateway wrong in one way.

They are applied inside a gateway process by `armed.py`, before it starts. Where a fault's window is a few microseconds
wide the fault also dawdles in it, so that it shows within a few rounds; `dawdle` alone changes no answer, which a test
shows as well. Those that are here let steps happen apart, late or in another order; those of `breaks_of_rules.py` get a
rule wrong.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from gateway.core.delivery import Deferred, Retry, State
from gateway.core.facts import FlightsAsk
from gateway.relay import reply, wire
from gateway.store import Store, events, facts, forbid, mail, outbox, schema, settles, waiting
from gateway.store.dialect import Dialect
from gateway.store.outbox import Claim
from gateway.store.postgres import Postgres, lock_number
from gateway.store.settles import Report
from gateway.store.tx import Tx
from gateway.store.writer import Rank, Writer

Thing = Any
"""What a function that is replaced takes and gives; a fault hands it on."""
PAUSE = 0.004
BREAKS: dict[str, Callable[[], None]] = {}


def fault(make: Callable[[], None]) -> Callable[[], None]:
    """Enter a fault into the table under its own name."""
    BREAKS[make.__name__] = make
    return make


def swap(owner: Thing, name: str, new: Thing) -> Thing:
    """Put something in the place of a function; returns what was there."""
    old = getattr(owner, name)
    setattr(owner, name, new)
    return old


@fault
def dawdle() -> None:
    """No fault: only slow between any two look-ups of facts, most of all between what was sent last and what is on its way."""
    load = facts.LOADERS[FlightsAsk]

    def flights(look: facts.Look, asks: Sequence[FlightsAsk]) -> Thing:
        time.sleep(10 * PAUSE)
        return load(look, asks)

    def rows(self: facts.Look, *words: Thing, **more: Thing) -> Thing:
        time.sleep(PAUSE)
        return old(self, *words, **more)

    facts.LOADERS[FlightsAsk] = flights
    old = swap(facts.Look, "rows", rows)


@fault
def drop_the_lock() -> None:
    """Judge without the tenant's lock."""

    def begin(self: Postgres, cursor: Thing, tenants: Sequence[str]) -> None:
        cursor.execute("BEGIN ISOLATION LEVEL READ COMMITTED")

    swap(Postgres, "begin", begin)


@fault
def read_the_clock_before_the_lock() -> None:
    """Read the time first, then wait for the tenant's lock."""
    drop_the_lock()

    def read_time(self: Store, tx: Tx, ids: Sequence[str]) -> None:
        names = list(ids)
        old(self, tx, names)
        if tx._cursor.connection is self._writer:
            time.sleep(10 * PAUSE if self._group % 2 else 0)
            for tenant in names:
                tx._cursor.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number(tenant),))

    old = swap(Store, "_read_time", read_time)


@fault
def settle_without_the_lock() -> None:
    """Write outcomes beside those who judge."""
    dawdle()

    async def do(self: Writer, rank: Rank, tenants: Sequence[str], work: Thing, argument: Thing) -> Thing:
        return await old(self, rank, () if rank is Rank.SETTLE else tenants, work, argument)

    def append(tx: Thing, happened: Thing) -> None:
        """The log takes no event of a tenant whose lock is not held: who drops the lock has to deceive it too."""
        mine = {event.tenant: (tx.now_us, None) for event in happened if event.tenant not in tx.tenants}
        tx.tenants.update(mine)
        told(tx, happened)
        for tenant in mine:
            del tx.tenants[tenant]

    old = swap(Writer, "do", do)
    told = swap(events, "append", append)


@fault
def skip_the_claim_number() -> None:
    """Permit and settle by the delivery's state alone."""

    def refusal(row: Thing, asked: Claim, *, paused: bool) -> str | None:
        return None if row is not None and row["state"] == State.CLAIMED else "not claimed"

    def settle(standing: Thing, claim_no: int, *more: Thing) -> Thing:
        return old(standing, standing.claim_no, *more)

    swap(outbox, "_refusal", refusal)
    old = swap(settles, "settle", settle)


@fault
def check_suppression_only_at_acceptance() -> None:
    """Let what is on its way go on, whoever is suppressed."""

    def stop_contact(*_: object) -> list[str]:
        return []

    swap(forbid, "stop_contact", stop_contact)


@fault
def look_up_facts_inside_the_permit() -> None:
    """Ask in the permit's transaction whether somebody is suppressed, in place of changing rows."""
    check_suppression_only_at_acceptance()

    def permit(tx: Tx, claims: Sequence[Claim]) -> list[str | None]:
        words: list[str | None] = old(tx, claims)
        for index, claim in enumerate(claims):
            about = {"tenant": claim.tenant, "subjects": tx.array([claim.address.lower()]), "now": tx.now_us}
            if words[index] is None and tx.rows(facts.suppression_rows, about):
                words[index] = "suppressed"
        time.sleep(50 * PAUSE)
        return words

    old = swap(outbox, "permit", permit)


@fault
def forget_the_key_of_a_blocked_send() -> None:
    """Keep no key with a send that is refused."""

    def row(judged: Thing, record: Thing) -> dict[str, Thing]:
        kept: dict[str, Thing] = old(judged, record)
        return kept | ({"idem_slot": None} if judged.state is State.BLOCKED else {})

    old = swap(mail, "_send_row", row)


def _bump(_: Dialect) -> sa.Executable:
    row = schema.contacts
    mine = (row.c.tenant == sa.bindparam("tenant"), row.c.key == sa.bindparam("contact"))
    return sa.update(row).where(*mine).values(token=row.c.token + 1)


@fault
def bump_tokens_in_flight() -> None:
    """Let each accepted send raise the token of its contact."""

    def write(tx: Tx, tenant: str, pairs: Sequence[Thing], **more: Thing) -> None:
        old(tx, tenant, pairs, **more)
        for judged, record in pairs:
            for delivery in record.deliveries if judged.state is State.QUEUED else ():
                tx.run(_bump, {"tenant": tenant, "contact": delivery.contact})

    old = swap(mail, "write", write)


@fault
def take_half_a_reply_as_a_yes() -> None:
    """Believe the first digits of a reply that breaks off."""

    def eof_received(self: wire.Wire) -> None:
        if self._waiting and self._replies.begun:
            self._waiting.popleft().set_result(reply.compose(int(self._replies._buffer[:3]), [""]))
        old(self)

    old = swap(wire.Wire, "eof_received", eof_received)


@fault
def try_again_what_is_unknown() -> None:
    """Queue again what a dead process had permitted, as if no dot had left."""

    def lost(claimed: Claim, why: str) -> Report:
        return Report(claimed, Deferred(why), Retry(0.1, 0.1), 0.0)

    swap(waiting, "lost", lost)


@fault
def answer_before_the_commit() -> None:
    """Say that it is done, and commit when the next one comes."""
    left: list[Thing] = []

    def commit(self: Store, cursor: Thing, ids: list[str]) -> None:
        left.append((cursor, ids))

    def begin(self: Store, ids: list[str]) -> Thing:
        while left:
            old_commit(self, *left.pop())
        return old_begin(self, ids)

    old_commit = swap(Store, "_commit", commit)
    old_begin = swap(Store, "_begin", begin)
