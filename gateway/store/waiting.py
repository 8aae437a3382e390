"""Mail that waits: what is due for its release, what a dead process left behind, what is unknown, what came too late."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from gateway.core.delivery import State
from gateway.core.errors import ConflictError, NotFoundError
from gateway.core.record import Record
from gateway.store import epochs, events, forbid, records
from gateway.store.dialect import Dialect, Row, by_index
from gateway.store.outbox import Claim
from gateway.store.schema import deliveries, due, mailboxes, open_, taken, tenants
from gateway.store.settles import lost, settle_all
from gateway.store.statements import altered, of_send
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
US = 1_000_000


def _due(_: Dialect) -> sa.Executable:
    """By age: since when mail was let go, for what has never been since it was due. Due times alone are jittered."""
    stale = sa.or_(
        deliveries.c.state == sa.literal_column("'scheduled'"),
        sa.and_(deliveries.c.state == sa.literal_column("'queued'"), deliveries.c.judged_us <= sa.bindparam("fresh")),
    )
    since = sa.func.min(sa.func.coalesce(deliveries.c.since_us, deliveries.c.due_us)).label("first_us")
    select = (
        sa.select(deliveries.c.tenant, deliveries.c.send_id, since)
        .where(due, deliveries.c.due_us <= sa.bindparam("now"), stale)
        .group_by(deliveries.c.tenant, deliveries.c.send_id)
        .order_by(sa.literal_column("first_us"), deliveries.c.send_id)
        .limit(sa.bindparam("top"))
    )
    return by_index(select, deliveries, "deliveries_due")


def due_for_release(tx: Tx, *, fresh_us: int, limit: int) -> list[tuple[str, str]]:
    """(tenant, request) pairs with mail that is due and must be judged again, oldest first."""
    params = {"now": tx.now_us, "fresh": tx.now_us - fresh_us, "top": limit}
    return [(row["tenant"], row["send_id"]) for row in tx.rows(_due, params)]


def _of_epoch(d: Dialect) -> sa.Executable:
    select = (
        sa.select(deliveries)
        .where(deliveries.c.epoch == sa.bindparam("by"), taken)
        .order_by(deliveries.c.tenant, deliveries.c.id)
    )
    return d.for_update(select, deliveries)


def recover(tx: Tx, dead: Sequence[str]) -> list[int]:
    """Take up what dead processes held: claimed rows are queued again, permitted ones become unknown.

    Returns how many rows, by epoch. The caller's transaction holds the locks of `epochs.tenants_of`.
    """
    counts = []
    for epoch in dead:
        rows = [r for r in tx.rows(_of_epoch, {"by": epoch}) if r["tenant"] in tx.tenants]
        for tenant in sorted({r["tenant"] for r in rows}):
            claimed = [r for r in rows if r["tenant"] == tenant and r["state"] == State.CLAIMED]
            forbid.move(tx, tenant, claimed, State.QUEUED, "")
        permitted = [_claim(r) for r in rows if r["state"] == State.PERMITTED]
        settle_all(tx, [lost(claim, "the process that relayed it has ended") for claim in permitted])
        if not tx.rows(_of_epoch, {"by": epoch}):
            epochs.forget(tx, epoch)
        counts.append(len(rows))
    return counts


def _claim(row: Row) -> Claim:
    return Claim(row["tenant"], row["id"], row["send_id"], row["claim_no"], row["address"], None, b"")


def _open(_: Dialect) -> sa.Executable:
    """A page of deliveries that wait open, beyond the last one seen."""
    at, seen = sa.bindparam("at", type_=sa.BigInteger), sa.bindparam("seen", type_=sa.Text)
    box = sa.and_(mailboxes.c.tenant == deliveries.c.tenant, mailboxes.c.id == deliveries.c.mailbox)
    return (
        sa.select(deliveries, mailboxes.c.options, tenants.c.profile)
        .select_from(deliveries.join(mailboxes, box).join(tenants, tenants.c.id == deliveries.c.tenant))
        .where(
            open_, sa.or_(deliveries.c.changed_us > at, sa.and_(deliveries.c.changed_us == at, deliveries.c.id > seen))
        )
        .order_by(deliveries.c.changed_us, deliveries.c.id)
        .limit(sa.bindparam("top"))
    )


@dataclass(frozen=True, slots=True)
class Ripe:
    """A delivery that waits open (held, unknown) and for which time alone may decide."""

    tenant: str
    request: str
    delivery: str
    state: State
    kind: str
    tried: int
    age_us: int
    changed_us: int
    lateness_us: int
    unknown: Mapping[str, str] = field(default_factory=dict)


def _unknown(row: Row) -> dict[str, str]:
    """The setting by kind: a mailbox's own goes before the tenant's, and each of them may have one for all kinds (`*`)."""
    found: dict[str, str] = {}
    for text in (row["profile"], row["options"]):
        own = json.loads(text).get("unknown") or {}
        found = own if "*" in own else found | own
    return found


def open_page(tx: Tx, after: Ripe | None, *, limit: int) -> list[Ripe]:
    """Held and unknown deliveries beyond `after`, longest unchanged first, with what was set for unknown ones."""
    at, seen = (after.changed_us, after.delivery) if after else (-1, "")
    rows = tx.rows(_open, {"at": at, "seen": seen, "top": limit})
    return [
        Ripe(
            r["tenant"],
            r["send_id"],
            r["id"],
            State(r["state"]),
            r["kind"],
            r["tried"],
            tx.now_us - r["changed_us"],
            r["changed_us"],
            tx.now_us - max(r["not_before_us"] or 0, r["created_us"]) if not r["attempts"] else -1,
            _unknown(r),
        )
        for r in rows
    ]


def _requeue(_: Dialect) -> sa.Executable:
    """It sets out anew: whoever has the contact in flight by now goes before it."""
    now: sa.BindParameter[int] = sa.bindparam("now", type_=sa.BigInteger)
    return altered(judged_us=0, due_us=now, since_us=now, tried=deliveries.c.tried + 1)


def _assume(_: Dialect) -> sa.Executable:
    return altered(assumed=1)


@dataclass(frozen=True, slots=True)
class Resolve:
    """A decision about a send: retry, assume_sent, cancel for unknown ones, reject for held ones (approve is a release).

    `only` limits it to one delivery (a setting decides by delivery, a person by request), `changed_us` to it as it was read.
    """

    tenant: str
    request: str
    decision: str
    actor: str
    why: str = ""
    only: str | None = None
    changed_us: int | None = None


UNKNOWN_DECISIONS = ("retry", "assume_sent", "cancel")


def resolve(tx: Tx, wishes: Sequence[Resolve]) -> list[Record | Exception]:
    """Carry decisions out; of several at once about one send the first makes it, the others meet its new state.

    Returns the record afterwards; NotFoundError, or ConflictError `not_resolvable` where nothing waits for this decision.
    """
    return [_resolve(tx, wish) for wish in wishes]


def _resolve(tx: Tx, wish: Resolve) -> Record | Exception:
    if not exists(tx, wish.tenant, wish.request):
        return NotFoundError("no such request")
    state = State.UNKNOWN if wish.decision in UNKNOWN_DECISIONS else State.HELD
    rows = tx.rows(of_send, {"tenant": wish.tenant, "send": wish.request})
    open_rows = [r for r in rows if r["state"] == state and wish.only in (None, r["id"])]
    open_rows = [r for r in open_rows if wish.changed_us in (None, r["changed_us"])]
    if not open_rows:
        words = " and ".join(sorted({r["state"] for r in rows}))
        return ConflictError("not_resolvable", f"nothing of this request is {state.value}", states=words)
    _ACTS[wish.decision](tx, wish, open_rows)
    note_decision(tx, wish)
    return records.find(tx, wish.tenant, [wish.request])[wish.request]


def exists(tx: Tx, tenant: str, request: str) -> bool:
    """Whether the tenant has such a send."""
    return bool(records.find(tx, tenant, [request]))


def note_decision(tx: Tx, wish: Resolve) -> None:
    """Write into the audit who decided what about a send, and why."""
    data = {"decision": wish.decision, "why": wish.why}
    events.append(tx, [events.Event(wish.tenant, "send.resolved", wish.request, actor=wish.actor, data=data)])


def _retry(tx: Tx, wish: Resolve, rows: Sequence[Row]) -> None:
    """Queue again, to be judged first; what was forbidden meanwhile ends instead."""
    free = [r for r in rows if not r["forbidden"]]
    forbid.move(tx, wish.tenant, free, State.QUEUED, "", wish.actor)
    now = tx.now_of(wish.tenant)
    tx.many(_requeue, [{"tenant": wish.tenant, "id_": r["id"], "now": now} for r in free])
    for row in rows:
        if row["forbidden"]:
            end = State.CANCELLED if row["forbidden"] == "cancelled" else State.BLOCKED
            forbid.move(tx, wish.tenant, [row], end, row["forbidden"], wish.actor)


def _assume_sent(tx: Tx, wish: Resolve, rows: Sequence[Row]) -> None:
    forbid.move(tx, wish.tenant, rows, State.RELAYED, "assumed", wish.actor)
    tx.many(_assume, [{"tenant": wish.tenant, "id_": r["id"]} for r in rows])


def _cancel(tx: Tx, wish: Resolve, rows: Sequence[Row]) -> None:
    why = "cancelled" if wish.decision == "cancel" else "rejected"
    forbid.move(tx, wish.tenant, rows, State.CANCELLED, why, wish.actor)


_ACTS: dict[str, Any] = {
    "retry": _retry,
    "assume_sent": _assume_sent,
    "cancel": _cancel,
    "reject": _cancel,
}


def expire(tx: Tx, late: Sequence[tuple[str, str]]) -> list[bool]:
    """End held deliveries, given by (tenant, delivery), that are too late to be useful."""
    ended = []
    for tenant, delivery in late:
        rows = tx.rows(_held, {"tenant": tenant, "id_": delivery})
        ended.append(bool(forbid.move(tx, tenant, rows, State.EXPIRED, "too_late")))
    return ended


def _held(d: Dialect) -> sa.Executable:
    select = sa.select(deliveries).where(
        deliveries.c.tenant == TENANT,
        deliveries.c.id == sa.bindparam("id_"),
        deliveries.c.state == sa.literal_column("'held'"),
    )
    return d.for_update(select, deliveries)
