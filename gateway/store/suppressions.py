"""The suppression list: people and domains that must not be mailed. An entry stops their mail in flight at once."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gateway.core.errors import HumanDecisionError
from gateway.store import events, forbid
from gateway.store.clock import from_us, maybe_time, maybe_us
from gateway.store.dialect import Dialect, Row
from gateway.store.facts import oldest_first, suppression_rows
from gateway.store.schema import suppressions, whole_domain
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
REASON_CODES = (
    "complaint",
    "hard_bounce",
    "manual_dnc",
    "legal_request",
    "role_account",
    "unsubscribe",
    "no_engagement",
)
SEVERAL = "several"
"""The maker of an entry that more than one have asked for: it is nobody's alone."""
SAID_NO = ("complaint", "manual_dnc", "legal_request", "unsubscribe")  # by a person; no machine's entry replaces them
FOR_GOOD = ("complaint", "legal_request", "unsubscribe")  # what an agent may not even take back that wrote it down


@dataclass(frozen=True, slots=True)
class New:
    """A suppression to add: `subject` is a person key or a domain, `address` as it was given."""

    subject: str
    address: str
    scope: str
    reason_code: str
    campaign: str = ""
    source: str = ""
    created_by: str = ""
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Suppression:
    """An entry of the list; times UTC. `made_by` is who asked for it, where that is one alone."""

    id: str
    subject: str
    address: str
    scope: str
    reason_code: str
    campaign: str
    source: str
    created_at: datetime
    expires_at: datetime | None
    made_by: str = ""

    def is_own(self, actor: str) -> bool:
        """Whether an agent may take it back: it made it, alone, and not because a person said no, or the law."""
        return self.made_by == actor and self.reason_code not in FOR_GOOD


def _upsert(d: Dialect) -> sa.Executable:
    return renewing(d.upsert(suppressions))


def renewing(insert: Any) -> sa.Executable:  # noqa: ANN401  (each dialect has its own class)
    """An insert that renews entries without weakening them; `now` is a parameter, in microseconds."""
    names = ("scope", "reason_code", "source", "expires_us")
    old, new = suppressions.c, insert.excluded
    as_long = sa.or_(new.expires_us.is_(None), old.expires_us <= new.expires_us)
    over = old.expires_us <= sa.bindparam("now", type_=sa.BigInteger())
    as_weighty = _weight(new.reason_code) >= _weight(old.reason_code)
    maker = sa.case((over, new.created_by), else_=old.created_by)  # what `share` has made of it
    made: sa.Executable = insert.on_conflict_do_update(
        index_elements=[old.tenant, old.subject, old.campaign],
        set_={n: new[n] for n in names} | {"created_by": maker},
        where=sa.or_(over, sa.and_(as_long, as_weighty)),
    )
    return made


def _weight(code: sa.ColumnElement[str]) -> sa.ColumnElement[int]:
    """How much a reason weighs: a no for good, another person's no, what a machine found. A lighter one replaces none."""

    def among(codes: Sequence[str]) -> sa.ColumnElement[bool]:
        return code.in_([sa.literal_column(f"'{one}'") for one in codes])

    zero, one, two = (sa.literal_column(digit, sa.Integer) for digit in "012")
    return sa.case((among(FOR_GOOD), two), (among(SAID_NO), one), else_=zero)


def _exact(_: Dialect) -> sa.Executable:
    return sa.select(suppressions).where(
        suppressions.c.tenant == TENANT,
        suppressions.c.subject == sa.bindparam("about"),
        suppressions.c.campaign == sa.bindparam("only"),
    )


def _of_others(d: Dialect) -> sa.Executable:
    mine = suppressions.c.created_by.in_([sa.bindparam("maker"), sa.literal_column(f"'{SEVERAL}'")])
    found = d.look_up(suppressions, suppressions.c.subject, "subjects", sa.not_(mine))
    return sa.select(found.c.id, found.c.subject, found.c.campaign)


def _belongs_to_several(_: Dialect) -> sa.Executable:
    one = (suppressions.c.tenant == TENANT, suppressions.c.id == sa.bindparam("id_"))
    return sa.update(suppressions).where(*one).values(created_by=sa.literal_column(f"'{SEVERAL}'"))


def share(tx: Tx, tenant: str, entries: Sequence[New]) -> None:
    """Write down that entries which are there are wanted by one more, the maker of these; whatever else becomes of them."""
    slots = {(new.subject, new.campaign) for new in entries}
    asked = {"tenant": tenant, "subjects": tx.array(sorted({subject for subject, _ in slots}))}
    rows = tx.rows(_of_others, asked | {"maker": entries[0].created_by})
    ids = sorted(row["id"] for row in rows if (row["subject"], row["campaign"]) in slots)
    tx.many(_belongs_to_several, [{"tenant": tenant, "id_": one} for one in ids])


def add_one(tx: Tx, tenant: str, new: New) -> tuple[Suppression, list[str]]:
    """Add an entry, or renew one without weakening it, and stop what it forbids. Returns the entry and what it stopped.

    An entry that stands for longer, and one whose reason weighs more (a no for good, a person's no, what a machine found),
    stays as it is. Stopped requests are given by id.
    """
    row = {
        "tenant": tenant,
        "id": f"sup_{secrets.token_hex(12)}",
        "subject": new.subject,
        "address": new.address,
        "scope": new.scope,
        "campaign": new.campaign,
        "reason_code": new.reason_code,
        "source": new.source,
        "created_by": new.created_by,
        "created_us": tx.now_of(tenant),
        "expires_us": maybe_us(new.expires_at),
    }
    share(tx, tenant, [new])
    tx.run(_upsert, {**row, "now": row["created_us"]})
    found = tx.rows(_exact, {"tenant": tenant, "about": new.subject, "only": new.campaign})[0]
    lives = new.expires_at is None or new.expires_at > from_us(tx.now_of(tenant))
    by = new.created_by
    stopped = forbid.stop_contact(tx, tenant, new.subject, "suppressed", new.campaign, by) if lives else []
    data = {"suppression": found["id"], "reasonCode": new.reason_code, "stopped": stopped}
    happened = events.Event(tenant, "suppression.created", contact=new.subject, actor=by, data=data)
    events.append(tx, [happened])
    return entry(found), stopped


def add(tx: Tx, wishes: Sequence[tuple[str, New]]) -> list[tuple[Suppression, list[str]]]:
    """Add entries for tenants, in order."""
    return [add_one(tx, tenant, new) for tenant, new in wishes]


def _delete(_: Dialect) -> sa.Executable:
    return sa.delete(suppressions).where(suppressions.c.tenant == TENANT, suppressions.c.id == sa.bindparam("id_"))


def _by_id(_: Dialect) -> sa.Executable:
    return sa.select(suppressions).where(suppressions.c.tenant == TENANT, suppressions.c.id == sa.bindparam("id_"))


def by_id(tx: Tx, tenant: str, entry_id: str) -> list[Suppression]:
    """The entry with this id, alone or not at all."""
    return [entry(row) for row in tx.rows(_by_id, {"tenant": tenant, "id_": entry_id})]


def remove(tx: Tx, wishes: Sequence[tuple[str, str, str]]) -> list[Suppression | None]:
    """Remove entries given by (tenant, id, who removes); `None` where there is none. The removal stays as an event."""
    removed: list[Suppression | None] = []
    for tenant, entry_id, actor in wishes:
        row = tx.row(_by_id, {"tenant": tenant, "id_": entry_id})
        removed.append(None if row is None else entry(row))
        if row is not None:
            tx.run(_delete, {"tenant": tenant, "id_": entry_id})
            data = {"suppression": entry_id, "reasonCode": row["reason_code"]}
            gone = events.Event(tenant, "suppression.removed", contact=row["subject"], actor=actor, data=data)
            events.append(tx, [gone])
    return removed


def take_back(tx: Tx, wishes: Sequence[tuple[str, str, str]]) -> list[Suppression | Exception | None]:
    """As `remove`, for an agent: HumanDecisionError for an entry that is not its own to take back."""
    done: list[Suppression | Exception | None] = []
    for tenant, entry_id, actor in wishes:
        foreign = [one for one in by_id(tx, tenant, entry_id) if not one.is_own(actor)]
        if foreign:
            done.append(HumanDecisionError("suppression", entry_id, [one.reason_code for one in foreign]))
        else:
            done += remove(tx, [(tenant, entry_id, actor)])
    return done


def _newest(_: Dialect) -> sa.Executable:
    return (
        sa.select(suppressions)
        .where(suppressions.c.tenant == TENANT)
        .order_by(suppressions.c.created_us.desc(), suppressions.c.id)
        .limit(sa.bindparam("top"))
        .offset(sa.bindparam("skip"))
    )


def _newest_of(_: Dialect) -> sa.Executable:
    return (
        sa.select(suppressions)
        .where(suppressions.c.tenant == TENANT, suppressions.c.subject == sa.bindparam("about"))
        .order_by(suppressions.c.created_us.desc(), suppressions.c.id)
        .limit(sa.bindparam("top"))
        .offset(sa.bindparam("skip"))
    )


def listed(tx: Tx, tenant: str, *, subject: str | None, limit: int, offset: int) -> list[Suppression]:
    """Entries, newest first, of one person or domain, or of all."""
    params: dict[str, Any] = {"tenant": tenant, "top": limit, "skip": offset}
    if subject is None:
        return [entry(row) for row in tx.rows(_newest, params)]
    return [entry(row) for row in tx.rows(_newest_of, params | {"about": subject})]


def _newest_domains(_: Dialect) -> sa.Executable:
    return (
        sa.select(suppressions)
        .where(suppressions.c.tenant == TENANT, whole_domain)
        .order_by(suppressions.c.created_us.desc(), suppressions.c.id)
        .limit(sa.bindparam("top"))
        .offset(sa.bindparam("skip"))
    )


def domains(tx: Tx, tenant: str, *, limit: int, offset: int) -> list[Suppression]:
    """Entries about whole domains, newest first."""
    return [entry(row) for row in tx.rows(_newest_domains, {"tenant": tenant, "top": limit, "skip": offset})]


def covering(tx: Tx, tenant: str, subjects: Sequence[str]) -> list[Suppression]:
    """Entries that live now and are about any of these person keys and domains, oldest first."""
    rows = tx.rows(suppression_rows, {"tenant": tenant, "subjects": tx.array(subjects), "now": tx.now_of(tenant)})
    return [entry(row) for row in oldest_first(rows)]


def entry(row: Row) -> Suppression:
    """A row of the table as an entry."""
    return Suppression(
        row["id"],
        row["subject"],
        row["address"],
        row["scope"],
        row["reason_code"],
        row["campaign"],
        row["source"],
        from_us(row["created_us"]),
        maybe_time(row["expires_us"]),
        row["created_by"],
    )
