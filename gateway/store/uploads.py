"""Files that were uploaded to be attached later: they live for a day, and each send takes a copy of their bytes.

Nothing that was accepted depends on an upload any more.
"""

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from gateway.core.errors import GatewayError
from gateway.store.clock import from_us
from gateway.store.dialect import Dialect, Row
from gateway.store.materials import uploads
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
LIFE_US = 24 * 3600 * 1_000_000
TENANT_BYTES = 268_435_456
"""Bytes of uploads that a tenant may have at once."""
SWEPT = 200
"""Uploads that one sweep takes away."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file without its bytes; `size` in bytes, `mailbox` `None` where it is for none in particular. Times UTC."""

    id: str
    tenant: str
    key_id: str
    mailbox: str | None
    filename: str
    content_type: str
    size: int
    sha256: str
    created_at: datetime
    expires_at: datetime


class FullError(GatewayError):
    """The tenant has as many bytes of uploads as it may; `used` of them."""

    def __init__(self, used: int) -> None:
        """Keep how many there are."""
        super().__init__("the tenant's uploads take up all the room that they may")
        self.used = used


@dataclass(frozen=True, slots=True)
class New:
    """A file to keep."""

    tenant: str
    key_id: str
    mailbox: str | None
    filename: str
    content_type: str
    data: bytes


ABOUT = tuple(column for column in uploads.c if column.name != "data")


def _insert(_: Dialect) -> sa.Executable:
    return sa.insert(uploads)


def _used(_: Dialect) -> sa.Executable:
    return sa.select(sa.func.coalesce(sa.func.sum(uploads.c.size), 0).label("used")).where(
        uploads.c.tenant == TENANT, uploads.c.expires_us > sa.bindparam("now")
    )


def _find(d: Dialect) -> sa.Executable:
    return sa.select(*ABOUT).where(d.owned(uploads.c.id, "ids"), uploads.c.expires_us > sa.bindparam("now"))


def _bytes(d: Dialect) -> sa.Executable:
    return sa.select(uploads.c.id, uploads.c.data).where(d.owned(uploads.c.id, "ids"))


def _delete(_: Dialect) -> sa.Executable:
    return sa.delete(uploads).where(uploads.c.tenant == TENANT, uploads.c.id == sa.bindparam("id_"))


def _expired(_: Dialect) -> sa.Executable:
    return (
        sa.select(uploads.c.tenant, uploads.c.id)
        .where(uploads.c.expires_us <= sa.bindparam("now"))
        .order_by(uploads.c.expires_us)
        .limit(sa.bindparam("top"))
    )


def keep(tx: Tx, wishes: Sequence[New]) -> list[Upload | Exception]:
    """Keep files for a day; FullError where the tenant would have more than TENANT_BYTES of them."""
    return [_keep(tx, wish) for wish in wishes]


def _keep(tx: Tx, new: New) -> Upload | Exception:
    now = tx.now_of(new.tenant)
    used = int(tx.rows(_used, {"tenant": new.tenant, "now": now})[0]["used"])
    if used + len(new.data) > TENANT_BYTES:
        return FullError(used)
    row = {
        "tenant": new.tenant,
        "id": f"att_{secrets.token_hex(12)}",
        "key_id": new.key_id,
        "mailbox": new.mailbox,
        "filename": new.filename,
        "content_type": new.content_type,
        "size": len(new.data),
        "sha256": hashlib.sha256(new.data).hexdigest(),
        "data": new.data,
        "created_us": now,
        "expires_us": now + LIFE_US,
    }
    tx.run(_insert, row)
    return _upload(row)


def find(tx: Tx, tenant: str, ids: Iterable[str]) -> dict[str, Upload]:
    """Uploads by id; ids that the tenant does not have, or no longer, are left out."""
    params = {"tenant": tenant, "ids": tx.array(sorted(set(ids))), "now": tx.now_of(tenant)}
    return {row["id"]: _upload(row) for row in tx.rows(_find, params)}


def data(tx: Tx, tenant: str, ids: Iterable[str]) -> dict[str, bytes]:
    """The bytes of uploads by id."""
    rows = tx.rows(_bytes, {"tenant": tenant, "ids": tx.array(sorted(set(ids)))})
    return {row["id"]: bytes(row["data"]) for row in rows}


def remove(tx: Tx, wishes: Sequence[tuple[str, str]]) -> list[bool]:
    """Remove uploads, by tenant and id. False where there is none."""
    return [bool(tx.run(_delete, {"tenant": tenant, "id_": upload})) for tenant, upload in wishes]


def expired(tx: Tx) -> list[tuple[str, str]]:
    """Tenant and id of uploads whose day is over, oldest first, so many as one sweep takes."""
    return [(row["tenant"], row["id"]) for row in tx.rows(_expired, {"now": tx.now_us, "top": SWEPT})]


def sweep(tx: Tx, wishes: Sequence[Sequence[tuple[str, str]]]) -> list[None]:
    """Take away what has expired; a file that somebody else has taken away meanwhile is no matter."""
    for some in wishes:
        tx.many(_delete, [{"tenant": tenant, "id_": upload} for tenant, upload in sorted(some)])
    return [None] * len(wishes)


def _upload(row: Row) -> Upload:
    return Upload(
        row["id"],
        row["tenant"],
        row["key_id"],
        row["mailbox"],
        row["filename"],
        row["content_type"],
        row["size"],
        row["sha256"],
        from_us(row["created_us"]),
        from_us(row["expires_us"]),
    )
