"""Statements on deliveries that several acts share: all of one send, locked, and a change of one of them."""

from typing import Any

import sqlalchemy as sa

from gateway.store.dialect import Dialect, by_index
from gateway.store.schema import deliveries

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")


def of_send(d: Dialect) -> sa.Executable:
    """The deliveries of the send `send`, in id order, which is the order of locks."""
    select = (
        sa.select(deliveries)
        .where(deliveries.c.tenant == TENANT, deliveries.c.send_id == sa.bindparam("send"))
        .order_by(deliveries.c.id)
    )
    return d.for_update(by_index(select, deliveries, "deliveries_send"), deliveries)


def altered(**values: Any) -> sa.Update:
    """A change of the delivery `id_`."""
    return (
        sa.update(deliveries)
        .where(deliveries.c.tenant == TENANT, deliveries.c.id == sa.bindparam("id_"))
        .values(**values)
    )
