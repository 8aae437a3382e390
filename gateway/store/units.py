"""The counters that quotas read, written in the transaction of the sends that they count."""

from collections import defaultdict
from collections.abc import Sequence

import sqlalchemy as sa

from gateway.core.mail import Submission
from gateway.store.clock import from_us
from gateway.store.dialect import Dialect
from gateway.store.facts import slot, window
from gateway.store.schema import counters
from gateway.store.tx import Tx


def _add_units(d: Dialect) -> sa.Executable:
    insert = d.upsert(counters)
    made: sa.Executable = insert.on_conflict_do_update(
        index_elements=[counters.c.tenant, counters.c.slot], set_={"used": counters.c.used + insert.excluded.used}
    )
    return made


def count(tx: Tx, tenant: str, mails: Sequence[Submission], counted: frozenset[tuple[str, str]]) -> None:
    """Add one unit a recipient to the counters that some quota reads; rows in slot order (one lock order)."""
    now, units = from_us(tx.now_of(tenant)), defaultdict[str, int](int)
    for mail in mails:
        who = {"agent": mail.actor, "mailbox": mail.mailbox, "tenant": mail.tenant}
        for scope, span in counted:
            units[slot(scope, who[scope], span, window(now, span)[0])] += len(mail.keys)
    tx.many(_add_units, [{"tenant": tenant, "slot": s, "used": n} for s, n in sorted(units.items())])
