"""Who forbids a mail changes its row: suppression, take-over, cancel and mailbox pause, each in its own transaction.

Rows that have not been permitted are stopped at once; permitted and unknown ones are marked (`forbidden`), so that they
never go a second time (ARCHITECTURE 8). Scheduled and held mail meets suppression and take-over at its release.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from gateway.core.delivery import MARKABLE, STOPPABLE, UNSENT, State, allowed
from gateway.core.errors import NotFoundError
from gateway.core.mail import Kind
from gateway.core.record import Record
from gateway.store import events, records
from gateway.store.dialect import Dialect, Row, by_index
from gateway.store.schema import attempts, clock, deliveries, due, live, open_, sends
from gateway.store.statements import altered, of_send
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
PAUSED = "mailbox_paused"
MAY_ARRIVE = frozenset({State.PERMITTED, State.UNKNOWN, State.RELAYED, State.DELIVERED})
MAY_HAVE_GONE = ("unknown", "relayed")
"""What an attempt came to after which its mail may have arrived, whatever was decided about the delivery later."""


def _live_of(d: Dialect) -> sa.Executable:
    select = sa.select(deliveries).where(d.owned(deliveries.c.contact, "keys"), live).order_by(deliveries.c.id)
    return d.for_update(by_index(select, deliveries, "deliveries_live"), deliveries)


def _live_in_domain(d: Dialect) -> sa.Executable:
    name: sa.BindParameter[str] = sa.bindparam("domain")
    select = (
        sa.select(deliveries)
        .where(deliveries.c.tenant == TENANT, live)
        .where(
            sa.or_(
                deliveries.c.contact.endswith(sa.literal("@") + name),
                deliveries.c.contact.endswith(sa.literal(".") + name),
            )
        )
        .order_by(deliveries.c.id)
    )
    return d.for_update(by_index(select, deliveries, "deliveries_live"), deliveries)


def _move(_: Dialect) -> sa.Executable:
    return altered(state=sa.bindparam("to"), reason=sa.bindparam("why"), changed_us=sa.bindparam("now"))


def _mark(_: Dialect) -> sa.Executable:
    return altered(forbidden=sa.bindparam("why"))


def move(tx: Tx, tenant: str, rows: Iterable[Row], to: State, why: str, by: str = "") -> list[Row]:
    """Bring rows into a state that the table allows, with an event each, which says who did it. Returns them."""
    moved = list(rows)
    for row in moved:
        if not allowed(State(row["state"]), to):
            msg = f"no transition {row['state']} -> {to} for {row['id']}"
            raise AssertionError(msg)
    now = tx.now_of(tenant)
    tx.many(_move, [{"tenant": tenant, "id_": r["id"], "to": to.value, "why": why, "now": now} for r in moved])
    name = f"delivery.{to.value}"
    data = ({"reason": why} if why else {}) | ({"by": by} if by else {})
    happened = [
        events.Event(tenant, name, r["send_id"], r["contact"], r["actor"], {"delivery": r["id"], **data}) for r in moved
    ]
    events.append(tx, happened)
    return moved


def _mark_all(tx: Tx, tenant: str, rows: Iterable[Row], why: str) -> None:
    tx.many(_mark, [{"tenant": tenant, "id_": r["id"], "why": why} for r in rows])


def _of_campaign(d: Dialect) -> sa.Executable:
    return sa.select(sends.c.id).where(d.owned(sends.c.id, "ids"), sends.c.campaign == sa.bindparam("only"))


def stop_contact(tx: Tx, tenant: str, subject: str, why: str, campaign: str = "", by: str = "") -> list[str]:
    """Stop mail in flight to a person key, or to a whole domain (and its sub-domains), of one campaign or of all.

    Returns the request ids stopped.
    """
    if "@" in subject:
        rows = tx.rows(_live_of, {"tenant": tenant, "keys": tx.array([subject])})
    else:
        rows = tx.rows(_live_in_domain, {"tenant": tenant, "domain": subject})
    if campaign and rows:
        about = {"tenant": tenant, "ids": tx.array({r["send_id"] for r in rows}), "only": campaign}
        mine = {r["id"] for r in tx.rows(_of_campaign, about)}
        rows = [r for r in rows if r["send_id"] in mine]
    return stop_rows(tx, tenant, rows, why, by)


def stop_rows(tx: Tx, tenant: str, rows: Sequence[Row], why: str, by: str = "") -> list[str]:
    """Block live rows that have no permit, mark the others. Returns the request ids stopped."""
    _mark_all(tx, tenant, [r for r in rows if State(r["state"]) in MARKABLE], why)
    stopped = move(tx, tenant, [r for r in rows if State(r["state"]) in STOPPABLE], State.BLOCKED, why, by)
    return sorted({r["send_id"] for r in stopped})


def live_to(tx: Tx, tenant: str, contacts: Iterable[str]) -> list[Row]:
    """The live deliveries to these contacts, in id order and locked."""
    return tx.rows(_live_of, {"tenant": tenant, "keys": tx.array(contacts)})


def take_over(tx: Tx, tenant: str, contact: str, agent: str) -> tuple[str, ...]:
    """Stop the mail in flight of everybody but `agent` to a contact that it takes over. Returns the request ids."""
    rows = tx.rows(_live_of, {"tenant": tenant, "keys": tx.array([contact])})
    theirs = [r for r in rows if r["actor"] != agent and not r["internal"] and Kind(r["kind"]).leased]
    _mark_all(tx, tenant, [r for r in theirs if State(r["state"]) in MARKABLE], "stale_fencing_token")
    stopping = [r for r in theirs if State(r["state"]) in STOPPABLE]
    return tuple(
        sorted({r["send_id"] for r in move(tx, tenant, stopping, State.BLOCKED, "stale_fencing_token", agent)})
    )


@dataclass(frozen=True, slots=True)
class Cancel:
    """A wish of `by` that a send should not go; `may` says whether the caller may touch it."""

    tenant: str
    request: str
    may: Callable[[Record], bool]
    by: str = ""


def cancel(tx: Tx, wishes: Sequence[Cancel]) -> list[tuple[bool, Record] | Exception]:
    """Stop every recipient not yet permitted and mark the permitted.

    Returns whether none has left or may have (permitted, relayed, or ever unknown without a plain no since), with the record
    as it is then; NotFoundError where there is no such send, or not for this caller.
    """
    return [_cancel(tx, wish) for wish in wishes]


def _gone(d: Dialect) -> sa.Executable:
    return (
        sa.select(attempts.c.claim_no)
        .where(d.owned(attempts.c.delivery_id, "ids"))
        .where(sa.or_(*(attempts.c.outcome == sa.literal_column(f"'{came_to}'") for came_to in MAY_HAVE_GONE)))
        .limit(1)
    )


def _cancel(tx: Tx, wish: Cancel) -> tuple[bool, Record] | Exception:
    before = records.find(tx, wish.tenant, [wish.request]).get(wish.request)
    if before is None or not wish.may(before):
        return NotFoundError("no such request")
    rows = tx.rows(of_send, {"tenant": wish.tenant, "send": wish.request})
    _mark_all(tx, wish.tenant, [r for r in rows if State(r["state"]) in MARKABLE], "cancelled")
    move(tx, wish.tenant, [r for r in rows if State(r["state"]) in UNSENT], State.CANCELLED, "cancelled", wish.by)
    after = records.find(tx, wish.tenant, [wish.request])[wish.request]
    states = {d.state for d in after.deliveries}
    if State.CANCELLED not in states or not states.isdisjoint(MAY_ARRIVE):
        return False, after
    return not tx.rows(_gone, {"tenant": wish.tenant, "ids": tx.array([r["id"] for r in rows])}), after


def _of_mailbox(d: Dialect) -> sa.Executable:
    select = (
        sa.select(deliveries)
        .where(deliveries.c.tenant == TENANT, deliveries.c.mailbox == sa.bindparam("box"), live)
        .order_by(deliveries.c.id)
    )
    return d.for_update(by_index(select, deliveries, "deliveries_live"), deliveries)


def _look_again(_: Dialect) -> sa.Executable:
    return altered(judged_us=0)


def _leave(_: Dialect) -> sa.Executable:
    """What waits is not in flight, and has no place among those that are when it sets out again."""
    return altered(since_us=sa.null())


def hold_mailbox(tx: Tx, tenant: str, mailbox: str) -> int:
    """A paused mailbox's queued and claimed mail is held. Returns how many deliveries.

    What has its permit cannot be called back; should it return, it is judged again before another attempt.
    """
    rows = tx.rows(_of_mailbox, {"tenant": tenant, "box": mailbox})
    stopping = [r for r in rows if State(r["state"]) in STOPPABLE]
    tx.many(_look_again, [{"tenant": tenant, "id_": r["id"]} for r in rows if State(r["state"]) in MARKABLE])
    tx.many(_leave, [{"tenant": tenant, "id_": r["id"]} for r in stopping])
    return len(move(tx, tenant, stopping, State.HELD, PAUSED))


def _held_of(d: Dialect) -> sa.Executable:
    select = (
        sa.select(deliveries)
        .where(open_, deliveries.c.state == sa.literal_column("'held'"), deliveries.c.tenant == TENANT)
        .where(deliveries.c.mailbox == sa.bindparam("box"), deliveries.c.reason == sa.bindparam("why"))
        .order_by(deliveries.c.id)
    )
    return d.for_update(by_index(select, deliveries, "deliveries_open"), deliveries)


def _due_since(_: Dialect) -> sa.Executable:
    return altered(due_us=deliveries.c.created_us)


def let_go(tx: Tx, tenant: str, mailbox: str) -> int:
    """What is held for the mailbox's pause alone is scheduled for a release at once, in the order of acceptance.

    Returns how many deliveries. What a person has to decide about stays held.
    """
    rows = tx.rows(_held_of, {"tenant": tenant, "box": mailbox, "why": PAUSED})
    return _let_go(tx, tenant, rows)


def _held_sends(d: Dialect) -> sa.Executable:
    select = (
        sa.select(deliveries)
        .where(d.owned(deliveries.c.send_id, "ids"), deliveries.c.state == sa.literal_column("'held'"))
        .where(deliveries.c.reason == sa.bindparam("why"))
        .order_by(deliveries.c.send_id, deliveries.c.id)  # by the id alone SQLite would read all of the tenant's rows
    )
    return d.for_update(select, deliveries)


def let_go_sends(tx: Tx, tenant: str, ids: Iterable[str], why: str) -> int:
    """The same for what is held of these sends for one reason alone."""
    rows = tx.rows(_held_sends, {"tenant": tenant, "ids": tx.array(ids), "why": why})
    return _let_go(tx, tenant, rows)


def _let_go(tx: Tx, tenant: str, rows: Sequence[Row]) -> int:
    tx.many(_due_since, [{"tenant": tenant, "id_": r["id"]} for r in rows])
    return len(move(tx, tenant, rows, State.SCHEDULED, ""))


def _ahead(d: Dialect) -> sa.Executable:
    """Mail to contacts that waits for another agent's lease alone, and not for a time of its own; retries among it."""
    free = sa.or_(deliveries.c.not_before_us.is_(None), deliveries.c.not_before_us <= sa.bindparam("now"))
    return (
        sa.update(deliveries)
        .where(d.owned(deliveries.c.contact, "keys"), free)
        .where(due, deliveries.c.reason == sa.literal_column("'lease_conflict'"))
        .values(due_us=sa.bindparam("now"))
    )


def bring_forward(tx: Tx, tenant: str, contacts: Iterable[str]) -> None:
    """What waits for a lease on these contacts is due now: it was given back before its end."""
    keys = sorted(contacts)
    if keys:
        tx.run(_ahead, {"tenant": tenant, "keys": tx.array(keys), "now": tx.now_of(tenant)})


def _set_gate(_: Dialect) -> sa.Executable:
    return sa.update(clock).values(relay_paused=sa.bindparam("closed"))


def pause_relay(tx: Tx, *, paused: bool) -> None:
    """Close or open the relay for the whole installation; no row of mail changes."""
    tx.run(_set_gate, {"closed": int(paused)})
