"""The tenant's own book of contacts: what it knows of people, one entry for a person key.

Leases, cooldowns and suppressions are not here and do not depend on it: an entry can be made, changed and removed without
any effect on mail.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gateway.core.errors import ConflictError, NotFoundError
from gateway.store.clock import from_us
from gateway.store.dialect import Dialect, Row
from gateway.store.schema import people
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
FIELDS = ("address", "external_id", "name", "lifecycle_stage", "deal_stage", "metadata")
"""Columns that a caller may change, beside the key."""

METADATA_MAX = 16_384
"""Characters of an entry's metadata as JSON."""


@dataclass(frozen=True, slots=True)
class Person:
    """An entry of the book; times UTC."""

    id: str
    key: str
    address: str
    external_id: str | None
    name: str | None
    lifecycle_stage: str | None
    deal_stage: str | None
    metadata: dict[str, Any]
    created_at: datetime
    updated_at: datetime


Changes = Mapping[str, Any]
"""What to set, by column: `key` and `address` go together; `metadata` is merged by its top-level members, null removes one."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which entries are listed, oldest first: after an id (of an entry that may be gone), of one person or outer id."""

    limit: int
    offset: int = 0
    after: str = ""
    key: str | None = None
    external_id: str | None = None


def _insert(_: Dialect) -> sa.Executable:
    return sa.insert(people)


def _update(_: Dialect) -> sa.Executable:
    values: dict[str, Any] = {name: sa.bindparam(f"new_{name}") for name in ("key", *FIELDS, "updated_us")}
    return sa.update(people).where(people.c.tenant == TENANT, people.c.id == sa.bindparam("id_")).values(**values)


def _step_aside(_: Dialect) -> sa.Executable:
    """Let go of key and outer id, so that two entries of one call may change places."""
    return (
        sa.update(people)
        .where(people.c.tenant == TENANT, people.c.id == sa.bindparam("id_"))
        .values(key=people.c.id, external_id=sa.null())
    )


def _delete(_: Dialect) -> sa.Executable:
    return sa.delete(people).where(people.c.tenant == TENANT, people.c.id == sa.bindparam("id_"))


def _by_key(d: Dialect) -> sa.Executable:
    return sa.select(people).where(d.owned(people.c.key, "values"))


def _by_external_id(d: Dialect) -> sa.Executable:
    return sa.select(people).where(d.owned(people.c.external_id, "values"))


def _by_id(d: Dialect) -> sa.Executable:
    return sa.select(people).where(d.owned(people.c.id, "values"))


def _page(_: Dialect) -> sa.Executable:
    return (
        sa.select(people)
        .where(people.c.tenant == TENANT, people.c.id > sa.bindparam("after"))
        .order_by(people.c.id)
        .limit(sa.bindparam("top"))
        .offset(sa.bindparam("skip"))
    )


def listed(tx: Tx, tenant: str, wanted: Filter) -> list[Person]:
    """A page of entries, oldest first."""
    if wanted.key is None and wanted.external_id is None:
        params = {"tenant": tenant, "after": wanted.after, "top": wanted.limit, "skip": wanted.offset}
        return [_person(row) for row in tx.rows(_page, params)]
    by, value = (_by_key, wanted.key) if wanted.key is not None else (_by_external_id, wanted.external_id)
    found = [_person(row) for row in _rows(tx, tenant, by, [str(value)])]
    fit = [one for one in found if wanted.external_id in (None, one.external_id) and one.id > wanted.after]
    return fit[wanted.offset : wanted.offset + wanted.limit]


def _rows(tx: Tx, tenant: str, by: Any, values: Sequence[str]) -> list[Row]:  # noqa: ANN401  (a statement's builder)
    return tx.rows(by, {"tenant": tenant, "values": tx.array(values)}) if values else []


def find(tx: Tx, tenant: str, entry: str) -> Person | None:
    """An entry by its id."""
    row = next(iter(_rows(tx, tenant, _by_id, [entry])), None)
    return None if row is None else _person(row)


# --- one at a time ----------------------------------------------------------------------------------------------------


def create(tx: Tx, wishes: Sequence[tuple[str, Changes]]) -> list[Person | Exception]:
    """Make entries for tenants; ConflictError `contact_exists` with the id where the person, or the outer id, has one."""
    return [_one(tx, tenant, changes, None) for tenant, changes in wishes]


def change(tx: Tx, wishes: Sequence[tuple[str, str, Changes]]) -> list[Person | Exception]:
    """Change entries, by tenant and id; NotFoundError, or ConflictError `contact_exists` where another has that key."""
    done: list[Person | Exception] = []
    for tenant, entry, changes in wishes:
        known = find(tx, tenant, entry)
        done.append(NotFoundError("no such contact") if known is None else _one(tx, tenant, changes, known))
    return done


def _one(tx: Tx, tenant: str, changes: Changes, known: Person | None) -> Person | Exception:
    book = Book(tx, tenant, [changes], [] if known is None else [known])
    try:
        made = book.put(changes, book.by_id[known.id] if known is not None else None)
    except ConflictError as error:
        return error
    book.write()
    return _person(made)


def remove(tx: Tx, wishes: Sequence[tuple[str, str]]) -> list[bool]:
    """Remove entries, by tenant and id; what is known of the person elsewhere stays. False where there is none."""
    return [bool(tx.run(_delete, {"tenant": tenant, "id_": entry})) for tenant, entry in wishes]


# --- many at once -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Synced:
    """What became of one item of a call: the entry's id and `created` or `updated`."""

    id: str
    status: str


def sync(tx: Tx, wishes: Sequence[tuple[str, Sequence[Changes]]]) -> list[list[Synced | ConflictError]]:
    """Make or change entries found by their outer id, else by their person, in order; one that clashes harms no other."""
    done = []
    for tenant, items in wishes:
        book = Book(tx, tenant, items)
        done.append([book.sync(item) for item in items])
        book.write()
    return done


class Book:
    """The entries that a call may touch, read at once and written at once; each act sees the ones before it."""

    def __init__(self, tx: Tx, tenant: str, items: Sequence[Changes], more: Sequence[Person] = ()) -> None:
        """Read the entries of all keys and outer ids in `items`, and those of `more`."""
        self.tx = tx
        self.tenant = tenant
        keys = sorted({item["key"] for item in items if "key" in item})
        outer = sorted({item["external_id"] for item in items if item.get("external_id") is not None})
        rows = [*_rows(tx, tenant, _by_key, keys), *_rows(tx, tenant, _by_external_id, outer)]
        rows += _rows(tx, tenant, _by_id, [one.id for one in more])
        self.by_id: dict[str, dict[str, Any]] = {row["id"]: {c.name: row[c.name] for c in people.c} for row in rows}
        self._stored = {entry: (row["key"], row["external_id"]) for entry, row in self.by_id.items()}
        self._by_key = {row["key"]: row for row in self.by_id.values()}
        self._by_outer = {row["external_id"]: row for row in self.by_id.values() if row["external_id"] is not None}
        self._touched: dict[str, dict[str, Any]] = {}

    def sync(self, item: Changes) -> Synced | ConflictError:
        """Do what an item of a call says."""
        found = self._by_outer.get(item.get("external_id")) or self._by_key.get(item["key"])
        try:
            row = self.put(item, found)
        except ConflictError as error:
            return error
        return Synced(row["id"], "created" if found is None else "updated")

    def put(self, changes: Changes, row: dict[str, Any] | None) -> dict[str, Any]:
        """Make an entry, or change `row`. Raises ConflictError where another entry has that person or outer id."""
        for index, name in ((self._by_key, "key"), (self._by_outer, "external_id")):
            other = index.get(changes.get(name))
            if other is not None and other is not row:
                field = "email" if name == "key" else "externalId"
                raise ConflictError("contact_exists", "another contact has it", field=field, id=other["id"])
        now = self.tx.now_of(self.tenant)
        metadata = _merged("{}" if row is None else row["metadata"], changes.get("metadata", {}))
        if row is None:
            empty = dict.fromkeys(("external_id", "name", "lifecycle_stage", "deal_stage"))
            entry = f"con_{now:014x}{self.tx.serial():06x}{uuid.uuid4().hex[:8]}"
            row = {"tenant": self.tenant, "id": entry, **empty, "created_us": now}
        else:
            del self._by_key[row["key"]]
            self._by_outer.pop(row["external_id"], None)
        row |= {**changes, "metadata": metadata, "updated_us": now}
        self.by_id[row["id"]] = self._touched[row["id"]] = self._by_key[row["key"]] = row
        if row["external_id"] is not None:
            self._by_outer[row["external_id"]] = row
        return row

    def write(self) -> None:
        """Write what was touched."""
        old = {entry: row for entry, row in self._touched.items() if entry in self._stored}
        moved = [e for e, row in old.items() if self._stored[e] != (row["key"], row["external_id"])]
        self.tx.many(_step_aside, [{"tenant": self.tenant, "id_": entry} for entry in moved])
        names = ("key", *FIELDS, "updated_us")
        values = [{f"new_{name}": row[name] for name in names} for row in old.values()]
        self.tx.many(
            _update,
            [{"tenant": self.tenant, "id_": entry, **new} for entry, new in zip(old, values, strict=True)],
        )
        self.tx.many(_insert, [row for entry, row in self._touched.items() if entry not in self._stored])


def _merged(old: str, new: Mapping[str, Any]) -> str:
    """Metadata as JSON. Raises ConflictError where both together are too much."""
    kept = {name: value for name, value in {**json.loads(old), **new}.items() if value is not None}
    text = json.dumps(kept)
    if len(text) > METADATA_MAX:
        raise ConflictError(
            "metadata_too_large", f"the merged metadata is longer than {METADATA_MAX} characters as JSON"
        )
    return text


def _person(row: Row) -> Person:
    return Person(
        row["id"],
        row["key"],
        row["address"],
        row["external_id"],
        row["name"],
        row["lifecycle_stage"],
        row["deal_stage"],
        json.loads(row["metadata"]),
        from_us(row["created_us"]),
        from_us(row["updated_us"]),
    )
