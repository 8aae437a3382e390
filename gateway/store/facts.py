"""One loader for every ask of `core/facts.py`: all asks of a kind are answered by one statement, for one tenant.

`LOADERS` is the table; the house test checks that no ask is missing.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from gateway.core.facts import (
    AgentAnswer,
    AgentAsk,
    Ask,
    ConflictsAsk,
    ConsensusAsk,
    ConsentAsk,
    Facts,
    Flight,
    FlightsAsk,
    KeyAnswer,
    KeyAsk,
    LastContactAnswer,
    LastContactAsk,
    LeaseAnswer,
    LeaseAsk,
    MailboxAnswer,
    MailboxAsk,
    RecentAsk,
    SuppressionAnswer,
    SuppressionAsk,
    ThreadAsk,
    UnknownsAsk,
    UsageAnswer,
    UsageAsk,
)
from gateway.core.mail import Kind
from gateway.store.clock import from_us, maybe_time, to_us
from gateway.store.conflicts import load_conflicts
from gateway.store.consensus import load_consensus
from gateway.store.consents import load_consents
from gateway.store.dialect import Builder, Dialect, Row
from gateway.store.recent import load_recents, load_threads
from gateway.store.schema import agents, api_keys, contacts, counters, deliveries, live, mailboxes, suppressions
from gateway.store.tx import Tx

Answered = dict[Ask[Any], Any]
TENANT: sa.BindParameter[str] = sa.bindparam("tenant")


class Look:
    """What the loaders ask of one tenant's tables; the same question put twice is answered once."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        """Look through `tx`, at its time."""
        self.tx = tx
        self.tenant = tenant
        self.now_us = tx.now_of(tenant)
        self._seen: dict[tuple[Builder, frozenset[str]], list[Row]] = {}

    def rows(self, builder: Builder, name: str, values: Iterable[str], **more: object) -> list[Row]:
        """The rows of a statement whose list parameter `name` is `values`."""
        wanted = frozenset(values)
        found = self._seen.get((builder, wanted))
        if found is None:
            params = {"tenant": self.tenant, name: self.tx.array(wanted), **more}
            found = self._seen[builder, wanted] = self.tx.rows(builder, params)
        return found


def load(tx: Tx, tenant: str, asks: Iterable[Ask[Any]]) -> Facts:
    """Answer all asks of one tenant from the store, under the tenant's lock; always in the order of `LOADERS`."""
    by_kind: defaultdict[type[Ask[Any]], list[Any]] = defaultdict(list)
    for ask in asks:
        by_kind[type(ask)].append(ask)
    answers: Answered = {}
    look = Look(tx, tenant)
    for kind in sorted(by_kind, key=_ORDER.__getitem__):
        answers.update(LOADERS[kind](look, by_kind[kind]))
    return Facts(from_us(tx.now_of(tenant)), answers)


def _key_rows(d: Dialect) -> sa.Executable:
    return sa.select(api_keys).where(d.owned(api_keys.c.id, "ids"))


def load_keys(look: Look, asks: Sequence[KeyAsk]) -> Answered:
    """API keys by id."""
    rows = look.rows(_key_rows, "ids", (a.key_id for a in asks))
    found = {
        row["id"]: KeyAnswer(
            row["status"] == "active",
            bool(row["transactional"]),
            None if row["mailboxes"] is None else tuple(json.loads(row["mailboxes"])),
            row["agent"],
        )
        for row in rows
    }
    return {ask: found.get(ask.key_id, KeyAnswer(live=False)) for ask in asks}


def _mailbox_rows(d: Dialect) -> sa.Executable:
    return sa.select(mailboxes).where(d.owned(mailboxes.c.id, "ids"))


def load_mailboxes(look: Look, asks: Sequence[MailboxAsk]) -> Answered:
    """Mailboxes by id, with the options an operator gave them, and with what their tenant has set for all of them."""
    rows = look.rows(_mailbox_rows, "ids", (a.mailbox for a in asks))
    profile = look.tx.profile(look.tenant)
    found = {}
    for row in rows:
        options = json.loads(row["options"])
        found[row["id"]] = MailboxAnswer(
            row["status"],
            row["key"],
            options.get("demands", ""),
            bool(options.get("may_reply")),
            bool(options.get("transactional")),
            options.get("cooldown", profile.cooldown),
            _listed(options),
            profile.allowed,
            bool(options.get("require_consensus")),
        )
    return {ask: found.get(ask.mailbox, MailboxAnswer("missing")) for ask in asks}


def _listed(options: Mapping[str, Any]) -> frozenset[str] | None:
    """An allow list; `None` where there is none."""
    return None if options.get("allowed") is None else frozenset(options["allowed"])


def _agent_rows(d: Dialect) -> sa.Executable:
    return sa.select(agents.c.id, agents.c.name, agents.c.options).where(d.owned(agents.c.id, "ids"))


def load_agents(look: Look, asks: Sequence[AgentAsk]) -> Answered:
    """The names and allow lists of agents by id."""
    rows = look.rows(_agent_rows, "ids", (a.agent for a in asks))
    found = {row["id"]: AgentAnswer(row["name"], _listed(json.loads(row["options"]))) for row in rows}
    return {ask: found.get(ask.agent, AgentAnswer()) for ask in asks}


def contact_rows(d: Dialect) -> sa.Executable:
    """Contact rows by key, with the owner's name."""
    found = d.look_up(contacts, contacts.c.key, "keys")
    owner = sa.and_(agents.c.tenant == found.c.tenant, agents.c.id == found.c.owner)
    return sa.select(found, agents.c.name.label("owner_name")).select_from(found.outerjoin(agents, owner))


def load_leases(look: Look, asks: Sequence[LeaseAsk]) -> Answered:
    """Leases by contact; one that has run out by the store's clock has no holder, whatever a sweep has done."""
    found = {}
    for row in look.rows(contact_rows, "keys", (a.contact for a in asks)):
        alive = row["expires_us"] > look.now_us
        found[row["key"]] = LeaseAnswer(
            row["owner"] if alive else "",
            (row["owner_name"] or "") if alive else "",
            row["token"],
            from_us(row["expires_us"]) if alive else None,
            row["owner"],
            row["foreign_token"],
        )
    return {ask: found.get(ask.contact, LeaseAnswer()) for ask in asks}


def load_last_contacts(look: Look, asks: Sequence[LastContactAsk]) -> Answered:
    """The stamps of the last delivery, or of one that may have arrived."""
    rows = look.rows(contact_rows, "keys", (a.contact for a in asks))
    found = {row["key"]: LastContactAnswer(maybe_time(row["last_us"]), row["last_by"]) for row in rows}
    return {ask: found.get(ask.contact, LastContactAnswer()) for ask in asks}


def live_rows(d: Dialect) -> sa.Executable:
    """Live deliveries (in flight, or unknown) by contact, oldest first, with the acting agent's name."""
    found = d.look_up(deliveries, deliveries.c.contact, "keys", live)
    actor = sa.and_(agents.c.tenant == found.c.tenant, agents.c.id == found.c.actor)
    columns = [found.c[c] for c in ("id", "send_id", "contact", "actor", "state", "since_us", "kind", "digest")]
    return (
        sa.select(*columns, found.c.internal, found.c.created_us, agents.c.name.label("actor_name"))
        .select_from(found.outerjoin(agents, actor))
        .order_by(found.c.since_us, found.c.send_id)
    )


def load_flights(look: Look, asks: Sequence[FlightsAsk]) -> Answered:
    """Deliveries in flight that hold their contact."""
    found: defaultdict[str, list[Flight]] = defaultdict(list)
    for row in look.rows(live_rows, "keys", (a.contact for a in asks)):
        kind = Kind(row["kind"])
        if row["state"] == "unknown" or row["internal"] or not kind.leased:
            continue
        since, permitted = from_us(row["since_us"]), row["state"] == "permitted"
        flight = Flight(row["send_id"], row["actor"], row["actor_name"] or "", since, permitted, kind)
        found[row["contact"]].append(flight)
    return {ask: tuple(found.get(ask.contact, ())) for ask in asks}


def load_unknowns(look: Look, asks: Sequence[UnknownsAsk]) -> Answered:
    """Deliveries whose last attempt may have arrived."""
    found: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in look.rows(live_rows, "keys", (a.contact for a in asks)):
        if row["state"] == "unknown":
            found[row["contact"]].append((row["send_id"], row["digest"]))
    return {ask: tuple(found.get(ask.contact, ())) for ask in asks}


def suppression_rows(d: Dialect) -> sa.Executable:
    """Suppressions by person key or domain that have not run out; `oldest_first` sorts them.

    An order asked for here would have SQLite read the whole list in that order.
    """
    lives = sa.or_(suppressions.c.expires_us.is_(None), suppressions.c.expires_us > sa.bindparam("now"))
    found = d.look_up(suppressions, suppressions.c.subject, "subjects", lives)
    return sa.select(found)


def oldest_first(rows: Sequence[Row]) -> list[Row]:
    """Suppressions in the order in which they were made."""
    return sorted(rows, key=lambda row: (row["created_us"], row["id"]))


def suppression_subjects(key: str) -> list[str]:
    """The key itself, its domain, and every parent domain (a suppressed domain covers its sub-domains)."""
    labels = key.rpartition("@")[2].split(".")
    return [key, *(".".join(labels[i:]) for i in range(len(labels)))]


def load_suppressions(look: Look, asks: Sequence[SuppressionAsk]) -> Answered:
    """The suppression that covers each person: one for every mail before a campaign's own, by address before by domain."""
    subjects = {s for ask in asks for s in suppression_subjects(ask.key)}
    rows = oldest_first(look.rows(suppression_rows, "subjects", subjects, now=look.now_us))
    found: defaultdict[str, list[Any]] = defaultdict(list)
    for row in rows:
        found[row["subject"]].append(row)
    answers: Answered = {}
    for ask in asks:
        covering = [row for s in suppression_subjects(ask.key) for row in found.get(s, ())]
        binding = [row for row in covering if not row["campaign"] or row["campaign"] == ask.campaign]
        first = min(binding, key=lambda row: row["campaign"] != "", default=None)
        answers[ask] = None if first is None else SuppressionAnswer(_scope(first), first["reason_code"])
    return answers


def _scope(row: Any) -> str:  # noqa: ANN401
    return str(row["scope"]) if "@" in row["subject"] else "domain"


def window(now: datetime, name: str) -> tuple[datetime, datetime]:
    """The calendar window (UTC) named hour, day or month that holds `now`: its start and the start of the next."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    if name == "hour":
        return hour, hour + timedelta(hours=1)
    day = hour.replace(hour=0)
    if name == "day":
        return day, day + timedelta(days=1)
    month = day.replace(day=1)
    return month, (month + timedelta(days=32)).replace(day=1)


def slot(scope: str, who: str, name: str, start: datetime) -> str:
    """The counter of one window: scope, who, window and its start."""
    return f"{scope}/{name}/{to_us(start)}/{who}"


def _counter_rows(d: Dialect) -> sa.Executable:
    found = d.look_up(counters, counters.c.slot, "slots")
    return sa.select(found.c.slot, found.c.used)


def load_usage(look: Look, asks: Sequence[UsageAsk]) -> Answered:
    """Counters of the running calendar windows."""
    now = from_us(look.now_us)
    slots = {ask: slot(ask.scope, ask.who, ask.window, window(now, ask.window)[0]) for ask in asks}
    rows = look.rows(_counter_rows, "slots", slots.values())
    found = {row["slot"]: row["used"] for row in rows}
    return {ask: UsageAnswer(found.get(slots[ask], 0), window(now, ask.window)[1]) for ask in asks}


Loader = Callable[[Look, Any], Answered]
LOADERS: dict[type[Ask[Any]], Loader] = {
    KeyAsk: load_keys,
    MailboxAsk: load_mailboxes,
    AgentAsk: load_agents,
    LeaseAsk: load_leases,
    ConflictsAsk: load_conflicts,
    LastContactAsk: load_last_contacts,
    FlightsAsk: load_flights,
    UnknownsAsk: load_unknowns,
    SuppressionAsk: load_suppressions,
    ConsensusAsk: load_consensus,
    ConsentAsk: load_consents,
    UsageAsk: load_usage,
    RecentAsk: load_recents,
    ThreadAsk: load_threads,
}
_ORDER = {kind: number for number, kind in enumerate(LOADERS)}
