"""Revoking a key together with what becomes of its wishes and its mail under way, in one transaction (SEMANTICS 6)."""

import sqlalchemy as sa

from gateway.core.delivery import MARKABLE, UNSENT
from gateway.core.record import Record
from gateway.store import decisions, forbid
from gateway.store.dialect import Dialect
from gateway.store.keys import STORE, Key, revoke_key
from gateway.store.schema import deliveries, sends
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
UNDER_WAY = tuple(sorted(state.value for state in UNSENT | MARKABLE))


def _under_way(_: Dialect) -> sa.Executable:
    same = sa.and_(sends.c.tenant == deliveries.c.tenant, sends.c.id == deliveries.c.send_id)
    states = deliveries.c.state.in_([sa.literal_column(f"'{name}'") for name in UNDER_WAY])
    return (
        sa.select(sends.c.id)
        .distinct()
        .select_from(deliveries.join(sends, same))
        .where(deliveries.c.tenant == TENANT, sends.c.key_id == sa.bindparam("by"), states)
        .order_by(sends.c.id)
    )


def revoke(
    tx: Tx, tenant: str, key_id: str, *, cancel_queued: bool = False, actor: str = STORE
) -> tuple[Key, list[str]]:
    """End a key and what it has asked of a person; with `cancel_queued` stop all its mail that has not been permitted.

    Returns the key as it was, and the ids of the requests that were cancelled, of which nothing can have left.
    Raises as `revoke_key` does.
    """
    key = revoke_key(tx, tenant, key_id, actor=actor)
    decisions.reject_of(tx, tenant, key_id, actor)
    if not cancel_queued:
        return key, []

    def may(_: Record) -> bool:
        return True

    ids = [row["id"] for row in tx.rows(_under_way, {"tenant": tenant, "by": key_id})]
    done = forbid.cancel(tx, [forbid.Cancel(tenant, request, may, actor) for request in ids])
    return key, [request for request, said in zip(ids, done, strict=True) if isinstance(said, tuple) and said[0]]
