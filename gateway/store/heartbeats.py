"""When agents were there last: who votes has to have been there not long ago (SEMANTICS 6)."""

from collections.abc import Sequence

import sqlalchemy as sa

from gateway.store.dialect import Dialect
from gateway.store.schema import agents
from gateway.store.tx import Tx


def _beat(_: Dialect) -> sa.Executable:
    return (
        sa.update(agents)
        .where(agents.c.tenant == sa.bindparam("tenant"), agents.c.id == sa.bindparam("id_"))
        .values(heartbeat_us=sa.bindparam("now"))
    )


def beat(tx: Tx, who: Sequence[tuple[str, str]]) -> list[None]:
    """Note that agents, each by tenant and id, are there now; in order of their ids, which is one order of locks."""
    tx.many(_beat, [{"tenant": t, "id_": agent, "now": tx.now_of(t)} for t, agent in sorted(set(who))])
    return [None] * len(who)
