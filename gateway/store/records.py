"""Send records are read back here: by idempotency key, by id, as the deliveries they are made of."""

import json
from collections import defaultdict
from collections.abc import Iterable

import sqlalchemy as sa

from gateway.core.delivery import State
from gateway.core.record import DeliveryRecord, Record
from gateway.store.clock import from_us, maybe_time
from gateway.store.dialect import Dialect, Row
from gateway.store.schema import attempts, contents, decisions, deliveries, sends
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")


def _by_slot(d: Dialect) -> sa.Executable:
    found = d.look_up(sends, sends.c.idem_slot, "keys", sends.c.mailbox == sa.bindparam("mailbox"))
    return sa.select(found.c.id, found.c.mailbox, found.c.idem_slot, found.c.idem_until_us)


def _free_slot(_: Dialect) -> sa.Executable:
    return (
        sa.update(sends).where(sends.c.tenant == TENANT, sends.c.id == sa.bindparam("id_")).values(idem_slot=sa.null())
    )


def by_idempotency(tx: Tx, tenant: str, mailbox: str, keys: Iterable[str], *, expire: bool) -> dict[str, str]:
    """Request ids by idempotency key; with `expire`, derived keys past their day give their slot back."""
    found = {}
    for row in tx.rows(_by_slot, {"tenant": tenant, "mailbox": mailbox, "keys": tx.array(sorted(set(keys)))}):
        if row["idem_until_us"] is not None and row["idem_until_us"] <= tx.now_of(tenant):
            if expire:
                tx.run(_free_slot, {"tenant": tenant, "id_": row["id"]})
        else:
            found[row["idem_slot"]] = row["id"]
    return found


def _send_rows(d: Dialect) -> sa.Executable:
    found = d.look_up(sends, sends.c.id, "ids")
    last = sa.and_(
        decisions.c.tenant == found.c.tenant,
        decisions.c.send_id == found.c.id,
        decisions.c.no == found.c.decision_no,
    )
    return sa.select(found, decisions.c.document).select_from(found.join(decisions, last))


def _delivery_of(d: Dialect) -> sa.Executable:
    found = d.look_up(deliveries, deliveries.c.send_id, "ids")
    return sa.select(found).order_by(found.c.send_id, found.c.id)


def find(tx: Tx, tenant: str, ids: Iterable[str]) -> dict[str, Record]:
    """Records by request id; ids that the tenant does not have are left out."""
    params = {"tenant": tenant, "ids": tx.array(sorted(set(ids)))}
    found: defaultdict[str, list[DeliveryRecord]] = defaultdict(list)
    for row in tx.rows(_delivery_of, params):
        found[row["send_id"]].append(delivery_record(row))
    return {row["id"]: _record(row, found[row["id"]]) for row in tx.rows(_send_rows, params)}


def delivery_record(row: Row) -> DeliveryRecord:
    """A delivery's row as its record."""
    return DeliveryRecord(
        row["id"],
        row["contact"],
        row["address"],
        row["role"],
        State(row["state"]),
        row["attempts"],
        from_us(max(row["due_us"], row["judged_us"])),  # what was let go again keeps a place in the past
        row["reason"],
        row["detail"],
        row["code"],
        row["enhanced"],
        row["text"],
        maybe_time(row["permitted_us"]),
        from_us(row["changed_us"]),
        bool(row["assumed"]),
        row["forbidden"],
    )


def _record(row: Row, delivered: list[DeliveryRecord]) -> Record:
    delivered.sort(key=lambda d: int(d.id.rpartition(".")[2]))
    return Record(
        row["id"],
        row["tenant"],
        row["mailbox"],
        row["agent"],
        row["key_id"],
        row["actor"],
        row["idem_key"],
        row["fingerprint"],
        row["kind"],
        row["subject"],
        row["message_id"],
        ", ".join(json.loads(row["header_from"])),
        row["reverse_path"],
        row["size"],
        row["door"],
        from_us(row["created_us"]),
        from_us(row["decided_us"]),
        row["decision_no"],
        json.loads(row["document"]),
        tuple(delivered),
        row["campaign"],
        row["thread"],
        row["in_reply_to"],
        maybe_time(row["not_before_us"]),
        row["send_reason"],
        json.loads(row["tokens"]),
        frozenset(json.loads(row["approved"])),
        row["repeats"],
        row["digest"],
        row["idem_until_us"] is not None,
        row["template"],
    )


def _decision_rows(_: Dialect) -> sa.Executable:
    return (
        sa.select(decisions)
        .where(decisions.c.tenant == TENANT, decisions.c.send_id == sa.bindparam("id_"))
        .order_by(decisions.c.no)
    )


def decisions_of(tx: Tx, tenant: str, request: str) -> list[Row]:
    """All decisions about one send, oldest first."""
    return tx.rows(_decision_rows, {"tenant": tenant, "id_": request})


def _attempt_rows(_: Dialect) -> sa.Executable:
    tried = sa.and_(attempts.c.tenant == deliveries.c.tenant, attempts.c.delivery_id == deliveries.c.id)
    ours = sa.select(deliveries.c.id).where(deliveries.c.tenant == TENANT, deliveries.c.send_id == sa.bindparam("send"))
    return (
        sa.select(attempts, deliveries.c.address)
        .select_from(attempts.join(deliveries, tried))
        .where(attempts.c.tenant == TENANT, attempts.c.delivery_id.in_(ours))
        .order_by(attempts.c.started_us, attempts.c.delivery_id, attempts.c.claim_no)
    )


def attempts_of(tx: Tx, tenant: str, request: str) -> list[Row]:
    """All attempts to deliver one send, oldest first, with the recipient's address."""
    return tx.rows(_attempt_rows, {"tenant": tenant, "send": request})


def _bodies(d: Dialect) -> sa.Executable:
    return sa.select(d.look_up(contents, contents.c.send_id, "ids"))


def bodies(tx: Tx, tenant: str, ids: Iterable[str]) -> dict[str, bytes]:
    """The messages' bytes by request id."""
    rows = tx.rows(_bodies, {"tenant": tenant, "ids": tx.array(sorted(set(ids)))})
    return {row["send_id"]: bytes(row["body"]) for row in rows}
