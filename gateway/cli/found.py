"""Founding: a migrated database with a tenant, its first mailbox and an operator key; what is there already stays."""

from dataclasses import dataclass

from gateway.core.address import Address
from gateway.store import Store, dialect_of, migrate
from gateway.store.agents import Mailbox, add_mailbox, add_tenant, has_tenant, list_mailboxes
from gateway.store.keys import SCOPES, NewKey, create_keys, list_keys
from gateway.store.tx import Tx


@dataclass(frozen=True, slots=True)
class Founded:
    """The tenant, its mailbox, and the operator key where this call made one."""

    tenant: str
    mailbox: Mailbox
    raw_key: str | None


def opened(url: str) -> Store:
    """A store on the newest schema; an empty or older database is migrated. Raises ValueError with one line."""
    migrate(dialect_of(url))
    return Store.open(url)


def found(store: Store, tenant: str, address: Address, *, named: bool = True) -> Founded:
    """Make what is missing of tenant, mailbox and operator key, in any number of processes at once.

    An address that nobody has `named` is only for a tenant that has no mailbox yet. Raises StoreUnavailableError.
    """

    def exist(tx: Tx) -> None:
        if not has_tenant(tx, tenant):
            add_tenant(tx, tenant)

    def furnish(tx: Tx) -> Founded:
        present = [] if named else list_mailboxes(tx, tenant)
        mailbox = present[0] if present else add_mailbox(tx, tenant, address)
        keys = list_keys(tx, tenant)
        if any("operator" in key.scopes and key.status == "active" for key in keys):
            return Founded(tenant, mailbox, None)
        ((_, raw),) = create_keys(tx, [NewKey(tenant, "operator", SCOPES)])
        return Founded(tenant, mailbox, raw)

    try:
        store.write([], exist)
    except store.dialect.errors:  # another process has just made it
        store.write([], exist)
    return store.write([tenant], furnish)
