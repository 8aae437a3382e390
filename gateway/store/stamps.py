"""The time of the last contact, in the contact's row: that a person was reached, or may have been (ARCHITECTURE 11, law 12)."""

import sqlalchemy as sa

from gateway.store.dialect import Dialect
from gateway.store.schema import contacts
from gateway.store.tx import Tx


def _stamp(d: Dialect) -> sa.Executable:
    insert = d.upsert(contacts)
    made: sa.Executable = insert.on_conflict_do_update(
        index_elements=[contacts.c.tenant, contacts.c.key],
        set_={"last_us": insert.excluded.last_us, "last_by": insert.excluded.last_by},
    )
    return made


def stamp(tx: Tx, tenant: str, contact: str, send: str) -> None:
    """Note that the contact was reached now, or may have been, by this send."""
    tx.run(
        _stamp,
        {
            "tenant": tenant,
            "key": contact,
            "lease_id": "",
            "owner": "",
            "token": 0,
            "foreign_token": 0,
            "intent": "",
            "address": "",
            "acquired_us": 0,
            "expires_us": 0,
            "last_us": tx.now_of(tenant),
            "last_by": send,
        },
    )
