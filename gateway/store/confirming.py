"""The time between a person's yes and its being carried out: one alone confirms a decision, and says what became of it."""

import json
from collections.abc import Sequence

import sqlalchemy as sa

from gateway.store.clock import maybe_time
from gateway.store.decisions import (
    CONFIRMED,
    CONFIRMING,
    PENDING,
    TENANT,
    Act,
    Decision,
    closed,
    each,
    find,
    rejected,
    row_of,
    settle,
    tell,
)
from gateway.store.dialect import Dialect
from gateway.store.fleet import human_decisions as table
from gateway.store.tx import Tx


def _anew(_: Dialect) -> sa.Executable:
    named = {"kind": "new_kind", "about": "new_about", "loosens": "new_loosens"}
    return (
        sa.update(table)
        .where(table.c.tenant == TENANT, table.c.id == sa.bindparam("id_"))
        .values({name: sa.bindparam(value) for name, value in named.items()})
    )


def claim(tx: Tx, acts: Sequence[Act]) -> list[Decision | Exception]:
    """Begin to confirm decisions, each by one alone; NotFoundError, ConflictError `decision_closed` where it waits no more.

    Nobody is told yet: who claims one carries it out, and says then that it is `done`, puts it back, or drops it. Who says
    nothing for a minute is gone: it waits again.
    """
    return each(acts, lambda act: closed(tx, act, CONFIRMING))


def done(tx: Tx, acts: Sequence[Act]) -> list[Decision | Exception]:
    """Confirm decisions which were claimed and have been carried out."""

    def confirm(act: Act) -> Decision:
        settle(tx, act, CONFIRMED, tx.now_of(act.tenant), act.actor)
        found = find(tx, act.tenant, act.id)
        tell(tx, "decision.confirmed", found.id, found.wish, act.actor, act.reason)
        return found

    return each(acts, confirm)


def put_back(tx: Tx, acts: Sequence[Act]) -> list[Decision | Exception]:
    """Let decisions wait again which were claimed and could not be carried out; with `now` they say what they are now."""

    def back(act: Act) -> Decision:
        if not _held(tx, act):
            return find(tx, act.tenant, act.id)
        if act.now is not None:
            kind, about, loosens = act.now
            new = {"new_kind": kind, "new_about": about, "new_loosens": json.dumps(loosens)}
            tx.run(_anew, {"tenant": act.tenant, "id_": act.id} | new)
        settle(tx, act, PENDING, None, None)
        return find(tx, act.tenant, act.id)

    return each(acts, back)


def drop(tx: Tx, acts: Sequence[Act]) -> list[Decision | Exception]:
    """Reject decisions which were claimed, and whose key is revoked."""

    def end(act: Act) -> Decision:
        found = find(tx, act.tenant, act.id)
        return rejected(tx, found, act.actor) if _held(tx, act) else found

    return each(acts, end)


def _held(tx: Tx, act: Act) -> bool:
    """Whether it is still who claimed it that has the decision: after a minute another may."""
    row = row_of(tx, act.tenant, act.id)
    claimed = None if row is None or row["status"] != CONFIRMING else (maybe_time(row["decided_us"]), row["decided_by"])
    return claimed == (act.claimed_at, act.actor)
