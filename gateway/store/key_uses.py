"""When API keys were last used; kept to within a minute or two, since a request waits for no writing down."""

from collections.abc import Mapping

import sqlalchemy as sa

from gateway.store.dialect import Dialect
from gateway.store.schema import api_keys
from gateway.store.tx import Tx


def _used(_: Dialect) -> sa.Executable:
    later = sa.or_(api_keys.c.used_us.is_(None), api_keys.c.used_us < sa.bindparam("at_us"))
    return (
        sa.update(api_keys)
        .where(api_keys.c.tenant == sa.bindparam("tenant"), api_keys.c.id == sa.bindparam("id_"), later)
        .values(used_us=sa.bindparam("at_us"))
    )


def note_uses(tx: Tx, ages: Mapping[tuple[str, str], float]) -> None:
    """Write down when keys (tenant and id) were last used, in seconds before now; an older time changes nothing."""
    tx.many(
        _used,
        [
            {"tenant": tenant, "id_": key_id, "at_us": tx.now_of(tenant) - round(age * 1_000_000)}
            for (tenant, key_id), age in sorted(ages.items())
        ],
    )
