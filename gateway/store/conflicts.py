"""Conflicts over contacts: written with the decisions that they are, and looked up for the rule of escalation."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from gateway.core.asks import Ask
from gateway.core.conflicts import SECONDS, ConflictsAsk, matters
from gateway.core.mail import Submission
from gateway.core.verdict import Decision
from gateway.store.dialect import Dialect
from gateway.store.schema import conflicts
from gateway.store.tx import Tx

if TYPE_CHECKING:
    from gateway.store.facts import Look

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
LASTS_US = SECONDS * 1_000_000


def _insert(d: Dialect) -> sa.Executable:
    insert = d.upsert(conflicts)
    keys = [conflicts.c.tenant, conflicts.c.subject, conflicts.c.actor, conflicts.c.send_id]
    made: sa.Executable = insert.on_conflict_do_update(index_elements=keys, set_={"at_us": insert.excluded.at_us})
    return made


def _forget(_: Dialect) -> sa.Executable:
    return sa.delete(conflicts).where(conflicts.c.tenant == TENANT, conflicts.c.at_us <= sa.bindparam("before"))


def record(tx: Tx, tenant: str, decided: Sequence[tuple[Submission, Decision]]) -> None:
    """Write the conflicts among decisions, and forget those that count no longer. Other decisions cost nothing."""
    now = tx.now_of(tenant)
    rows = [
        {"tenant": tenant, "subject": matter, "actor": mail.actor, "send_id": mail.id, "at_us": now}
        for mail, decision in decided
        for matter in sorted(matters(mail.thread, decision))
    ]
    if rows:
        tx.run(_forget, {"tenant": tenant, "before": now - LASTS_US})
        tx.many(_insert, rows)


def conflict_rows(d: Dialect) -> sa.Executable:
    """The conflicts in these matters that still count."""
    found = d.look_up(conflicts, conflicts.c.subject, "matters", conflicts.c.at_us > sa.bindparam("after"))
    return sa.select(found.c.subject, found.c.actor, found.c.send_id)


def load_conflicts(look: "Look", asks: Sequence[ConflictsAsk]) -> dict[Ask[Any], Any]:
    """The refused sends by actor and matter."""
    found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for row in look.rows(conflict_rows, "matters", (a.matter for a in asks), after=look.now_us - LASTS_US):
        found[row["actor"], row["subject"]].add(row["send_id"])
    return {ask: frozenset(found.get((ask.actor, ask.matter), ())) for ask in asks}
