"""The ledger of consents: records are only added, and the newest that counts decides (policy `consent`).

A withdrawal counts at once, whatever its times say; a grant that lies in the future does not count before. Nothing here is
ever changed or removed.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from gateway.core.asks import Ask
from gateway.core.facts import ConsentAnswer, ConsentAsk
from gateway.core.mail import Kind
from gateway.store import events, forbid
from gateway.store.clock import from_us, maybe_time, maybe_us
from gateway.store.dialect import Dialect, Row
from gateway.store.schema import consents
from gateway.store.tx import Tx

if TYPE_CHECKING:
    from gateway.store.facts import Look

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")


@dataclass(frozen=True, slots=True)
class Record:
    """A line to write: `granted_at` without a value is now; `revoked_at` makes it a withdrawal.

    `stops` names the kinds and mailboxes whose mail a withdrawal stops: none where the policy is not enforced (`None`), all
    where it is for all (empty), or where the tenant itself demands consent.
    """

    tenant: str
    key: str
    address: str
    basis: str
    source: str | None = None
    jurisdiction: str | None = None
    created_by: str = ""
    granted_at: datetime | None = None
    revoked_at: datetime | None = None
    stops: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Consent:
    """A line of the ledger; times UTC. `active` says whether it is a consent by the store's time."""

    id: str
    address: str
    basis: str
    source: str | None
    jurisdiction: str | None
    granted_at: datetime
    revoked_at: datetime | None
    created_at: datetime
    active: bool


def consent_rows(d: Dialect) -> sa.Executable:
    """Consent records by person key, oldest first, without grants that lie in the future; a withdrawal counts at once."""
    counts = sa.or_(consents.c.granted_us <= sa.bindparam("now"), consents.c.revoked_us.is_not(None))
    found = d.look_up(consents, consents.c.key, "keys", counts)
    return sa.select(found).order_by(found.c.key, found.c.no)


def load_consents(look: "Look", asks: Sequence[ConsentAsk]) -> dict[Ask[Any], Any]:
    """The newest record of each contact that counts now."""
    rows = look.rows(consent_rows, "keys", (a.contact for a in asks), now=look.now_us)
    found = {row["key"]: ConsentAnswer(row["basis"], row["revoked_us"] is not None) for row in rows}
    return {ask: found.get(ask.contact, ConsentAnswer()) for ask in asks}


def _insert(_: Dialect) -> sa.Executable:
    return sa.insert(consents)


def _last(_: Dialect) -> sa.Executable:
    """The newest record of a person, whether it counts yet or not."""
    return (
        sa.select(consents)
        .where(consents.c.tenant == TENANT, consents.c.key == sa.bindparam("person"))
        .order_by(consents.c.no.desc())
        .limit(sa.literal_column("1"))
    )


def record(tx: Tx, wishes: Sequence[Record]) -> list[tuple[Consent, list[str]]]:
    """Add lines, in order; a withdrawal stops outreach in flight where `stops` says so. Returns the requests stopped."""
    return [_record(tx, wish) for wish in wishes]


def _record(tx: Tx, wish: Record) -> tuple[Consent, list[str]]:
    now = tx.now_of(wish.tenant)
    last = tx.row(_last, {"tenant": wish.tenant, "person": wish.key})
    row = {
        "tenant": wish.tenant,
        "key": wish.key,
        "no": 1 if last is None else last["no"] + 1,
        "id": f"cns_{secrets.token_hex(12)}",
        "address": wish.address,
        "basis": wish.basis,
        "source": wish.source,
        "jurisdiction": wish.jurisdiction,
        "created_by": wish.created_by,
        "granted_us": now if wish.granted_at is None else maybe_us(wish.granted_at),
        "revoked_us": maybe_us(wish.revoked_at),
        "created_us": now,
    }
    tx.run(_insert, row)
    stopped = [] if wish.revoked_at is None else _stop(tx, wish)
    name = "consent.recorded" if wish.revoked_at is None else "consent.withdrawn"
    data = {"consent": row["id"], "basis": wish.basis, "stopped": stopped}
    events.append(tx, [events.Event(wish.tenant, name, contact=wish.key, actor=wish.created_by, data=data)])
    return _shown(row, now), stopped


def _stop(tx: Tx, wish: Record) -> list[str]:
    """Stop the mail in flight that the policy would refuse now: outreach to this contact (ARCHITECTURE 1, idea 5)."""
    stops = frozenset[str]() if tx.profile(wish.tenant).require_consent else wish.stops
    if stops is None:
        return []
    rows = [r for r in forbid.live_to(tx, wish.tenant, [wish.key]) if r["kind"] == Kind.OUTREACH and not r["internal"]]
    if stops:
        rows = [r for r in rows if not stops.isdisjoint({r["kind"], r["mailbox"]})]
    return forbid.stop_rows(tx, wish.tenant, rows, "no_consent", wish.created_by)


def find(tx: Tx, tenant: str, key: str) -> Consent | None:
    """The record of a person that decides now, else the newest that will; `None` where there is none."""
    params = {"tenant": tenant, "keys": tx.array([key]), "now": tx.now_of(tenant)}
    rows = tx.rows(consent_rows, params)
    row = rows[-1] if rows else tx.row(_last, {"tenant": tenant, "person": key})
    return None if row is None else _shown(row, params["now"])


def _shown(row: Row, now_us: int) -> Consent:
    return Consent(
        row["id"],
        row["address"],
        row["basis"],
        row["source"],
        row["jurisdiction"],
        from_us(row["granted_us"]),
        maybe_time(row["revoked_us"]),
        from_us(row["created_us"]),
        row["revoked_us"] is None and row["granted_us"] <= now_us,
    )
