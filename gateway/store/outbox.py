"""The outbox: workers claim rows and ask for the permit under their claim number (ARCHITECTURE 8, 9).

Claim and permit are compare-and-set; what an attempt came to is written by `settles.py`. Rows are always locked in id
order.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from gateway.core.delivery import State
from gateway.core.dsn import NONE, Dsn
from gateway.core.dsn import load as load_dsn
from gateway.store import forbid, records
from gateway.store.dialect import Dialect, Row
from gateway.store.schema import attempts, clock, deliveries, due, sends, taken
from gateway.store.statements import altered
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")


@dataclass(frozen=True, slots=True)
class Claim:
    """One delivery that this process may attempt; the numbers guard it against everybody else."""

    tenant: str
    delivery: str
    send: str
    claim_no: int
    address: str
    reverse_path: str | None
    body: bytes
    dsn: Dsn = NONE


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """How many rows a worker wants; `fresh_us`: rows judged longer ago are left to the release.

    `holding` are the deliveries, by tenant and id, that the worker has under way: whatever else is claimed under its epoch
    was claimed by a commit whose outcome it never learned, and is free again, as far as the transaction holds the locks of
    `tenants_of` (what is set free is told in the log). `None`: nothing is looked for.
    """

    epoch: str
    limit: int
    fresh_us: int
    holding: frozenset[tuple[str, str]] | None = None


def _claimable(d: Dialect) -> sa.Executable:
    open_gate = sa.select(clock.c.id).where(clock.c.relay_paused == 0).exists()
    select = (
        sa.select(*(deliveries.c[name] for name in ("tenant", "id", "send_id", "claim_no", "address", "dsn")))
        .where(due, deliveries.c.state == sa.literal_column("'queued'"))
        .where(deliveries.c.due_us <= sa.bindparam("now"), deliveries.c.judged_us > sa.bindparam("fresh"), open_gate)
        .order_by(deliveries.c.due_us, deliveries.c.id)
        .limit(sa.bindparam("limit"))
    )
    return d.for_update(select, deliveries, skip_locked=True)


def _any_due(_: Dialect) -> sa.Executable:
    open_gate = sa.select(clock.c.id).where(clock.c.relay_paused == 0).exists()
    return (
        sa.select(deliveries.c.id)
        .where(due, deliveries.c.state == sa.literal_column("'queued'"))
        .where(deliveries.c.due_us <= sa.bindparam("now"), deliveries.c.judged_us > sa.bindparam("fresh"), open_gate)
        .limit(1)
    )


def any_due(tx: Tx, fresh_us: int) -> bool:
    """Whether there is anything to claim now: a look that writes nothing."""
    return tx.row(_any_due, {"now": tx.now_us, "fresh": tx.now_us - fresh_us}) is not None


def _take(_: Dialect) -> sa.Executable:
    return altered(
        state=sa.literal_column("'claimed'"),
        claim_no=deliveries.c.claim_no + 1,
        epoch=sa.bindparam("by"),
        changed_us=sa.bindparam("now"),
    )


def _insert_attempt(_: Dialect) -> sa.Executable:
    return sa.insert(attempts)


def _paths(d: Dialect) -> sa.Executable:
    return sa.select(sends.c.id, sends.c.reverse_path).where(d.owned(sends.c.id, "ids"))


def claim(tx: Tx, requests: Sequence[ClaimRequest]) -> list[list[Claim]]:
    """Give each worker up to `limit` due rows, those that are due longest first; nothing while the relay is paused.

    A retry is due at its own, jittered time; what has waited so long that it is judged again, by its age (`release.py`).
    """
    return [_claim(tx, request) for request in requests]


def _claimed(d: Dialect) -> sa.Executable:
    select = (
        sa.select(deliveries)
        .where(taken, deliveries.c.epoch == sa.bindparam("by"), deliveries.c.state == sa.literal_column("'claimed'"))
        .order_by(deliveries.c.tenant, deliveries.c.id)
    )
    return d.for_update(select, deliveries)


def _tenants(_: Dialect) -> sa.Executable:
    mine = (taken, deliveries.c.epoch == sa.bindparam("by"), deliveries.c.state == sa.literal_column("'claimed'"))
    return sa.select(deliveries.c.tenant).where(*mine).distinct().order_by(deliveries.c.tenant)


def tenants_of(tx: Tx, epoch: str) -> list[str]:
    """The tenants of whom something is claimed under an epoch."""
    return [row["tenant"] for row in tx.rows(_tenants, {"by": epoch})]


def _free_strays(tx: Tx, request: ClaimRequest) -> None:
    holding = request.holding or frozenset()
    strays = [r for r in tx.rows(_claimed, {"by": request.epoch}) if (r["tenant"], r["id"]) not in holding]
    for tenant in sorted({r["tenant"] for r in strays} & tx.tenants.keys()):
        forbid.move(tx, tenant, [r for r in strays if r["tenant"] == tenant], State.QUEUED, "")


def _claim(tx: Tx, request: ClaimRequest) -> list[Claim]:
    if request.holding is not None:
        _free_strays(tx, request)
    fresh = tx.now_us - request.fresh_us
    rows = tx.rows(_claimable, {"now": tx.now_us, "fresh": fresh, "limit": request.limit})
    if not rows:
        return []
    taken = [{"tenant": r["tenant"], "id_": r["id"], "by": request.epoch, "now": tx.now_us} for r in rows]
    tx.many(_take, taken)
    tx.many(_insert_attempt, [_attempt_row(r, request.epoch, tx.now_us) for r in rows])
    by_tenant: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_tenant[row["tenant"]].append(row)
    claims = {}
    for tenant, mine in by_tenant.items():
        ids = sorted({r["send_id"] for r in mine})
        texts = records.bodies(tx, tenant, ids)
        paths = {r["id"]: r["reverse_path"] for r in tx.rows(_paths, {"tenant": tenant, "ids": tx.array(ids)})}
        for r in mine:
            send, number = r["send_id"], r["claim_no"] + 1
            dsn = load_dsn(r["dsn"])
            claims[tenant, r["id"]] = Claim(tenant, r["id"], send, number, r["address"], paths[send], texts[send], dsn)
    return [claims[r["tenant"], r["id"]] for r in rows]


def _attempt_row(row: Row, epoch: str, now: int) -> dict[str, Any]:
    return {
        "tenant": row["tenant"],
        "delivery_id": row["id"],
        "claim_no": row["claim_no"] + 1,
        "epoch": epoch,
        "started_us": now,
        "permitted_us": None,
        "ended_us": None,
        "outcome": "",
        "code": 0,
        "enhanced": "",
        "text": "",
    }


def rows_of(d: Dialect) -> sa.Executable:
    """Deliveries by id, locked in id order."""
    select = sa.select(deliveries).where(d.owned(deliveries.c.id, "ids")).order_by(deliveries.c.id)
    return d.for_update(select, deliveries)


def _permit(d: Dialect) -> sa.Executable:
    return (
        sa.update(deliveries)
        .where(d.owned(deliveries.c.id, "ids"))
        .where(deliveries.c.state == sa.literal_column("'claimed'"))
        .values(
            state=sa.literal_column("'permitted'"), permitted_us=sa.bindparam("now"), changed_us=sa.bindparam("now")
        )
    )


def permit(tx: Tx, claims: Sequence[Claim]) -> list[str | None]:
    """The last word before the dot: claimed -> permitted under the claim number. Returns `None` for yes, else why not."""
    found: dict[tuple[str, str], Row] = {}
    for tenant in sorted({c.tenant for c in claims}):
        ids = [c.delivery for c in claims if c.tenant == tenant]
        found |= {(tenant, r["id"]): r for r in tx.rows(rows_of, {"tenant": tenant, "ids": tx.array(ids)})}
    paused = tx.relay_paused()
    words = [_refusal(found.get((c.tenant, c.delivery)), c, paused=paused) for c in claims]
    for index, c in enumerate(claims):
        if words[index] is None and c in claims[:index]:  # one dot for one permit
            words[index] = State.PERMITTED.value
    for tenant in sorted({c.tenant for c in claims}):
        good = [c.delivery for c, no in zip(claims, words, strict=True) if no is None and c.tenant == tenant]
        if good:
            tx.run(_permit, {"tenant": tenant, "ids": tx.array(good), "now": tx.now_of(tenant)})
    return words


def _refusal(row: Row | None, asked: Claim, *, paused: bool) -> str | None:
    if row is None or row["claim_no"] != asked.claim_no:
        return "claimed by another"
    if row["state"] != State.CLAIMED:
        return str(row["reason"] or row["state"])
    return "relay paused" if paused else None
