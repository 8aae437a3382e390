"""What agents have asked for and only a person may do: kept as it was asked until somebody decides, or a day is over.

It carries nothing out: that is the door's, with the authority of whoever confirms.
"""

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import sqlalchemy as sa

from gateway.core.errors import ConflictError, GatewayError, NotFoundError
from gateway.store import events
from gateway.store.clock import from_us, maybe_time, to_us
from gateway.store.dialect import Dialect, Row
from gateway.store.fleet import human_decisions as table
from gateway.store.tx import Tx

W = TypeVar("W")
R = TypeVar("R")

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
PENDING, CONFIRMING, CONFIRMED = "pending", "confirming", "confirmed"
REJECTED, EXPIRED = "rejected", "expired"
STATUSES = (PENDING, CONFIRMING, CONFIRMED, REJECTED, EXPIRED)
PENDING_MAX = 1000
"""Wishes of one tenant that wait for a person at once."""
KEY_PENDING_MAX = 100
"""Wishes of one key that wait at once: no key takes the room of all others."""
CONFIRMING_US = 60_000_000
"""Microseconds after which one that is being confirmed waits again: whoever has begun it is gone."""
REVOKED = "key_revoked"
"""Why the wishes of a key are rejected that was revoked."""
DAY_US = 86_400_000_000
LASTS_US = DAY_US
"""How long a person has to decide, in microseconds."""
SHOWN_US = 7 * DAY_US
"""How long after that a wish that nobody has decided can still be looked at."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A request that was refused because only a person may make it; `digest` is of who asked for what.

    `kind`, `about` and `loosens` are what the refusal said; `asked_by` is the id of the key, `actor` who it acts as.
    """

    tenant: str
    digest: str
    kind: str
    about: str
    loosens: tuple[str, ...]
    method: str
    path: str
    query: str
    body: str
    asked_by: str
    actor: str


@dataclass(frozen=True, slots=True)
class Decision:
    """A wish and what became of it: pending, confirming, confirmed, rejected or expired; times UTC."""

    id: str
    wish: Wish
    status: str
    created_at: datetime
    expires_at: datetime
    decided_at: datetime | None
    decided_by: str | None


@dataclass(frozen=True, slots=True)
class Act:
    """What is done about a decision by `actor`; `mine` is the id of the key that must have asked for it, if any.

    `claimed_at` is when it was claimed. `now` is what the refusal says now in place of kind, id and loosens, if that differs.
    """

    tenant: str
    id: str
    actor: str
    mine: str | None = None
    reason: str | None = None
    claimed_at: datetime | None = None
    now: tuple[str, str, tuple[str, ...]] | None = None


def _state() -> sa.ColumnElement[str]:
    """The status as it is now: what nobody has decided in time is expired at once; who began to confirm and is gone, has not."""
    now = sa.bindparam("now", type_=sa.BigInteger())
    given_up = sa.and_(table.c.status == CONFIRMING, table.c.decided_us + CONFIRMING_US <= now)
    waits = sa.or_(table.c.status == PENDING, given_up)
    late = sa.and_(waits, table.c.expires_us <= now)
    return sa.case(
        (late, sa.literal(EXPIRED, sa.Text())), (waits, sa.literal(PENDING, sa.Text())), else_=table.c.status
    )


def _same(_: Dialect) -> sa.Executable:
    alike = (
        table.c.tenant == TENANT,
        table.c.digest == sa.bindparam("same"),
        sa.or_(_state() == PENDING, _state() == CONFIRMING),
    )
    return sa.select(table.c.id).where(*alike)


def _of_key(_: Dialect) -> sa.Executable:
    waiting = (table.c.tenant == TENANT, table.c.asked_by == sa.bindparam("key"), _state() == PENDING)
    return sa.select(table, _state().label("state")).where(*waiting).order_by(table.c.created_us, table.c.id)


def _waiting(_: Dialect) -> sa.Executable:
    return sa.select(sa.func.count().label("many")).where(table.c.tenant == TENANT, _state() == PENDING)


def _forget(_: Dialect) -> sa.Executable:
    old = table.c.expires_us < sa.bindparam("before", type_=sa.BigInteger())
    undecided = sa.or_(table.c.status == PENDING, table.c.status == CONFIRMING)
    return sa.delete(table).where(table.c.tenant == TENANT, undecided, old)


def _insert(_: Dialect) -> sa.Executable:
    return sa.insert(table)


def _one(_: Dialect) -> sa.Executable:
    return sa.select(table, _state().label("state")).where(table.c.tenant == TENANT, table.c.id == sa.bindparam("id_"))


def _listed(_: Dialect) -> sa.Executable:
    mine, only = sa.bindparam("mine", type_=sa.Text()), sa.bindparam("only", type_=sa.Text())
    return (
        sa.select(table, _state().label("state"))
        .where(
            table.c.tenant == TENANT, sa.or_(mine == "", table.c.asked_by == mine), sa.or_(only == "", _state() == only)
        )
        .order_by(table.c.created_us.desc(), table.c.id)
        .limit(sa.bindparam("top"))
        .offset(sa.bindparam("skip"))
    )


def _decide(_: Dialect) -> sa.Executable:
    named = {"status": "new_status", "decided_us": "new_us", "decided_by": "new_by"}
    return (
        sa.update(table)
        .where(table.c.tenant == TENANT, table.c.id == sa.bindparam("id_"))
        .values({name: sa.bindparam(value) for name, value in named.items()})
    )


def keep(tx: Tx, wishes: Sequence[Wish]) -> list[str | None]:
    """Keep wishes for a person; the id of each, the same for the same wish while it waits, `None` where too many wait."""
    return [_keep(tx, wish) for wish in wishes]


def _keep(tx: Tx, wish: Wish) -> str | None:
    now = tx.now_of(wish.tenant)
    about = {"tenant": wish.tenant, "now": now}
    same = tx.row(_same, about | {"same": wish.digest})
    if same is not None:
        return str(same["id"])
    tx.run(_forget, {"tenant": wish.tenant, "before": now - SHOWN_US})
    own = len(tx.rows(_of_key, about | {"key": wish.asked_by}))
    if own >= KEY_PENDING_MAX or tx.rows(_waiting, about)[0]["many"] >= PENDING_MAX:
        return None
    made = f"dec_{secrets.token_hex(12)}"
    names = ("tenant", "digest", "kind", "about", "method", "path", "query", "body", "asked_by", "actor")
    row = {name: getattr(wish, name) for name in names} | {"id": made, "loosens": json.dumps(wish.loosens)}
    times = {"created_us": now, "expires_us": now + LASTS_US, "decided_us": None, "decided_by": None}
    tx.run(_insert, row | times | {"status": PENDING})
    tell(tx, "decision.requested", made, wish, wish.actor)
    return made


def row_of(tx: Tx, tenant: str, decision: str) -> Row | None:
    """The row of a decision, with its `state`, if there is one."""
    return tx.row(_one, {"tenant": tenant, "id_": decision, "now": tx.now_of(tenant)})


def find(tx: Tx, tenant: str, decision: str, mine: str | None = None) -> Decision:
    """A decision by its id; with `mine` only one that this key has asked for. Raises NotFoundError."""
    row = row_of(tx, tenant, decision)
    if row is None or mine not in (None, row["asked_by"]):
        raise NotFoundError("no such decision")
    return _decision(row)


def why(tx: Tx, found: Decision) -> str | None:
    """Why it was decided so, as the log says it; `None` where nobody said, and while it waits."""
    if found.decided_at is None:
        return None
    told = events.of_moment(tx, found.wish.tenant, to_us(found.decided_at))
    return next((data.get("reason") for _, data in told if data.get("decisionId") == found.id), None)


def listed(tx: Tx, tenant: str, *, mine: str | None, status: str | None, limit: int, offset: int) -> list[Decision]:
    """Decisions, newest first: those that one key has asked for, or all; of one status, or all."""
    some = {"mine": mine or "", "only": status or "", "top": limit, "skip": offset}
    return [_decision(row) for row in tx.rows(_listed, some | {"tenant": tenant, "now": tx.now_of(tenant)})]


def reject_of(tx: Tx, tenant: str, key_id: str, actor: str) -> None:
    """Reject all that waits of a key which is revoked in this transaction."""
    for row in tx.rows(_of_key, {"tenant": tenant, "key": key_id, "now": tx.now_of(tenant)}):
        rejected(tx, _decision(row), actor)


def rejected(tx: Tx, found: Decision, actor: str) -> Decision:
    """The decision, rejected since its key is revoked."""
    act = Act(found.wish.tenant, found.id, actor)
    settle(tx, act, REJECTED, tx.now_of(act.tenant), actor)
    tell(tx, "decision.rejected", found.id, found.wish, actor, REVOKED)
    return find(tx, act.tenant, act.id)


def reject(tx: Tx, acts: Sequence[Act]) -> list[Decision | Exception]:
    """Refuse decisions, or take them back; NotFoundError, ConflictError `decision_closed` where it waits no more."""

    def refuse(act: Act) -> Decision:
        found = closed(tx, act, REJECTED)
        tell(tx, "decision.rejected", found.id, found.wish, act.actor, act.reason)
        return found

    return each(acts, refuse)


def closed(tx: Tx, act: Act, status: str) -> Decision:
    """The decision, which waited until now and has this status from now on."""
    found = find(tx, act.tenant, act.id, act.mine)
    if found.status != PENDING:
        raise ConflictError("decision_closed", "this waits for nobody any more", status=found.status)
    settle(tx, act, status, tx.now_of(act.tenant), act.actor)
    return find(tx, act.tenant, act.id)


def settle(tx: Tx, act: Act, status: str, at: int | None, by: str | None) -> None:
    """Give a decision a status, with when it was decided and by whom."""
    new = {"new_status": status, "new_us": at, "new_by": by}
    tx.run(_decide, {"tenant": act.tenant, "id_": act.id} | new)


def tell(tx: Tx, name: str, decision: str, wish: Wish, actor: str, reason: str | None = None) -> None:
    """Write down what has happened to a decision."""
    data = {"decisionId": decision, "kind": wish.kind, "about": wish.about, "loosens": list(wish.loosens)}
    data |= {} if reason is None else {"reason": reason}
    events.append(tx, [events.Event(wish.tenant, name, actor=actor, data=data)])


def each(wishes: Sequence[W], act: Callable[[W], R]) -> list[R | Exception]:
    """Each on its own: one that cannot be done harms no other."""
    made: list[R | Exception] = []
    for wish in wishes:
        try:
            made.append(act(wish))
        except GatewayError as error:
            made.append(error)
    return made


def _decision(row: Row) -> Decision:
    wish = Wish(
        row["tenant"],
        row["digest"],
        row["kind"],
        row["about"],
        tuple(json.loads(row["loosens"])),
        row["method"],
        row["path"],
        row["query"],
        row["body"],
        row["asked_by"],
        row["actor"],
    )
    times = from_us(row["created_us"]), from_us(row["expires_us"])
    if row["state"] in (PENDING, EXPIRED):
        return Decision(row["id"], wish, row["state"], *times, None, None)
    return Decision(row["id"], wish, row["state"], *times, maybe_time(row["decided_us"]), row["decided_by"])
