"""Which processes work on this store: each has an epoch with a beat; a process whose beat stands still is dead.

Death is judged by the watcher's own boot-time clock (a beat that does not change), never by comparing times in rows, so a
clock that jumps robs nobody. A process on the same machine that is plainly gone is dead at once.
"""

import os
from pathlib import Path

import sqlalchemy as sa

from gateway.store.dialect import Dialect
from gateway.store.schema import deliveries, epochs, taken
from gateway.store.tx import Tx


def _touch(_: Dialect) -> sa.Executable:
    return (
        sa.update(epochs)
        .where(epochs.c.id == sa.bindparam("epoch"))
        .values(group_no=sa.bindparam("group"), beat=epochs.c.beat + 1, seen_us=sa.bindparam("now"))
    )


def _insert(_: Dialect) -> sa.Executable:
    return sa.insert(epochs)


def _all(_: Dialect) -> sa.Executable:
    return sa.select(epochs)


def _nameless(_: Dialect) -> sa.Executable:
    known = sa.select(epochs.c.id)
    return sa.select(deliveries.c.epoch).where(taken, deliveries.c.epoch.not_in(known)).distinct()


def _group(d: Dialect) -> sa.Executable:
    select = sa.select(epochs.c.group_no).where(epochs.c.id == sa.bindparam("epoch"))
    return d.for_update(select, epochs)  # a transaction of ours that is still about to end holds this row


def _tenants(_: Dialect) -> sa.Executable:
    return sa.select(deliveries.c.tenant).where(deliveries.c.epoch == sa.bindparam("epoch"), taken).distinct()


def _delete(_: Dialect) -> sa.Executable:
    return sa.delete(epochs).where(epochs.c.id == sa.bindparam("epoch"))


def touch(tx: Tx, epoch: str, group: int) -> None:
    """Beat: this process is alive, and `group` is the transaction that it is about to commit. Makes the row where missing."""
    if tx.run(_touch, {"epoch": epoch, "group": group, "now": tx.now_us}) == 0:
        row = {"id": epoch, "host": host(), "beat": 1, "group_no": group, "seen_us": tx.now_us}
        tx.run(_insert, row)


def group_of(tx: Tx, epoch: str) -> int | None:
    """The last group that `epoch` committed."""
    row = tx.row(_group, {"epoch": epoch})
    return None if row is None else int(row["group_no"])


def beats(tx: Tx) -> list[tuple[str, str, int]]:
    """All epochs: id, host, beat.

    Those that hold deliveries and have no row never beat: a process taken for dead that claimed while it was forgotten.
    """
    known = [(row["id"], row["host"], row["beat"]) for row in tx.rows(_all, {})]
    return known + [(row["epoch"], "", -1) for row in tx.rows(_nameless, {})]


def tenants_of(tx: Tx, epoch: str) -> list[str]:
    """The tenants of whose deliveries the epoch holds some."""
    return sorted(row["tenant"] for row in tx.rows(_tenants, {"epoch": epoch}))


def forget(tx: Tx, epoch: str) -> None:
    """Remove the epoch of a process that has ended and holds nothing."""
    tx.run(_delete, {"epoch": epoch})


def host() -> str:
    """This process, so that another on the same machine can see that it is gone: boot, pid namespace, pid, start time."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = Path("/proc/self/ns/pid").readlink()
        return f"{boot} {space} {os.getpid()} {_started(os.getpid())}"
    except OSError:
        return ""


def gone(other: str) -> bool:
    """Whether `other` names a process of this machine and pid namespace that no longer runs."""
    mine, theirs = host().split(), other.split()
    if len(mine) != 4 or len(theirs) != 4 or mine[:2] != theirs[:2]:  # noqa: PLR2004
        return False
    try:
        return _started(int(theirs[2])) != theirs[3]
    except OSError:
        return True


def _started(pid: int) -> str:
    """When the process started, in clock ticks since boot: tells a reused pid apart. A zombie has ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return "ended" if fields[0] in {"Z", "X"} else fields[19]
