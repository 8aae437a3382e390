"""Deliberate faults that get a rule wrong: who is one person, what a mark, a stamp, a key or a token is for, whose clock counts.

They are entered into the same table as those of `breaks.py`, which is whole once this module is imported.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from gateway.core import settle
from gateway.core.address import KeyRules
from gateway.core.facts import LeaseAsk
from gateway.core.mail import Submission
from gateway.core.record import Record
from gateway.doors.smtp import orders
from gateway.intake import walk
from gateway.intake.intake import Intake
from gateway.intake.walk import Ticket
from gateway.store import facts, leases, mail, records, stamps
from gateway.store.clock import to_us
from gateway.store.contacts import Book, Renew
from gateway.store.tx import Tx
from tests.faults.breaks import BREAKS, PAUSE, Thing, fault, swap

__all__ = ["BREAKS"]


@fault
def keep_the_case_of_a_contact() -> None:
    """Know a person by the address as it is spelled."""

    def key(self: KeyRules, local: str, domain: str) -> str:
        return f"{local}@{self.canonical(domain)}"

    swap(KeyRules, "key", key)


@fault
def lease_by_the_hosts_clock() -> None:
    """Ask this host's clock whether a lease still lives, and add to its time to keep it longer."""
    load = facts.LOADERS[LeaseAsk]

    def leases_of(look: facts.Look, asks: Sequence[LeaseAsk]) -> Thing:
        look.now_us, kept = to_us(datetime.now(UTC)), look.now_us
        found = load(look, asks)
        look.now_us = kept
        return found

    def renew(book: Book, wish: Renew) -> Thing:
        book.now, kept = to_us(datetime.now(UTC)), book.now
        done = old(book, wish)
        book.now = kept
        return done

    facts.LOADERS[LeaseAsk] = leases_of
    old = swap(leases, "_renew", renew)


@fault
def write_no_stamp() -> None:
    """Forget whom a mail has reached."""

    def stamp(tx: Tx, tenant: str, contact: str, send: str) -> None:
        return

    swap(stamps, "stamp", stamp)


@fault
def ignore_the_mark() -> None:
    """Queue again what the smarthost has put off, whoever has forbidden it meanwhile."""

    def again(standing: settle.Standing, attempts: int, due_in: float) -> settle.Settlement:
        made: settle.Settlement = old(replace(standing, forbidden=""), attempts, due_in)
        return made

    old = swap(settle, "_again", again)


@fault
def look_up_the_key_outside_the_transaction() -> None:
    """Look for a key first, then wait for the lock; who finds the key taken there records his own send beside the other."""
    seen: dict[str, dict[tuple[str, str], Record]] = {}
    late: set[str] = set()

    def known(tx: Tx, asked: Submission | Record) -> dict[tuple[str, str], Record]:
        ids = records.by_idempotency(tx, asked.tenant, asked.mailbox, [asked.idempotency_key], expire=False)
        return {
            (one.mailbox, one.idempotency_key): one for one in records.find(tx, asked.tenant, ids.values()).values()
        }

    async def submit(self: Intake, ticket: Ticket) -> Thing:
        asked = ticket.mail
        seen[asked.id] = await asyncio.to_thread(self.store.read, lambda tx: known(tx, asked), (asked.tenant,))
        await asyncio.sleep(5 * PAUSE)
        return await old_submit(self, ticket)

    def look_up(self: Thing, tickets: Sequence[Ticket]) -> None:
        for ticket in tickets:
            self.known |= seen.pop(ticket.mail.id, {})

    def write(tx: Tx, tenant: str, pairs: Thing, **more: Thing) -> None:
        late.update(record.id for _, record in pairs for other in known(tx, record).values() if other.id != record.id)
        old_write(tx, tenant, pairs, **more)

    def row(judged: Thing, record: Record) -> dict[str, Thing]:
        made: dict[str, Thing] = old_row(judged, record)
        return made | ({"idem_slot": None} if record.id in late else {})

    old_submit = swap(Intake, "submit", submit)
    swap(walk._Walk, "_look_up", look_up)
    old_write = swap(mail, "write", write)
    old_row = swap(mail, "_send_row", row)


@fault
def ignore_the_token_over_smtp() -> None:
    """The header with the fencing token is taken out of the mail, and nobody reads it."""
    swap(orders, "tokens", lambda *_: None)


@fault
def use_another_key_over_smtp() -> None:
    """The header with the key is taken out of the mail, and the key is made of the Message-ID."""
    read = orders.read

    def without(said: Thing, reader: Thing) -> Thing:
        wishes = read(said, reader)
        return replace(wishes, asked=wishes.asked.model_copy(update={"idempotency_key": None}))

    swap(orders, "read", without)


# --- no fault of a rule -----------------------------------------------------------------------------------------------


@fault
def fit_no_longer() -> None:
    """What a fault does to a gateway whose functions have changed: it takes nothing, and falls over. Nothing is found by that."""
    swap(leases, "_acquire", lambda: None)
