"""A small world on a real database: a tenant with mailboxes, agents and keys, nodes that share one store, a clock to move.

It is Wednesday, 4 March 2026, 12:30 UTC when a world is opened, and time goes on from there; `advance` moves it. Nothing
runs by itself: a test claims, permits, settles and looks as the relay and the release loop would. A second node has a
store, a writer and an epoch of its own on the same database; what a test does goes through the first unless it names one.
"""

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from typing import Any

import sqlalchemy as sa

import policies
from gateway.core.address import parse
from gateway.core.consensus import Vote
from gateway.core.delivery import Outcome, Relayed, Reply, Retry, State
from gateway.core.fingerprint import digest, fingerprint
from gateway.core.mail import Content, Envelope, Kind, Recipient, Submission
from gateway.core.record import Receipt, Record
from gateway.core.sketch import sketch
from gateway.intake.intake import Intake, Terms
from gateway.intake.waiting import ReleaseLoop
from gateway.intake.walk import Ticket
from gateway.settings import split_unknown
from gateway.store import (
    Store,
    Tx,
    agents,
    contacts,
    dialect_of,
    forbid,
    keys,
    leases,
    mailboxes,
    migrate,
    outbox,
    records,
    settles,
    suppressions,
    voting,
)
from gateway.store import schema as tables
from gateway.store.clock import from_us, to_us
from gateway.store.consensus import Cast, Consensus
from gateway.store.contacts import Held, Lease, Released
from gateway.store.dialect import Builder, Dialect
from gateway.store.forbid import Cancel
from gateway.store.outbox import Claim, ClaimRequest
from gateway.store.settles import Report
from gateway.store.suppressions import Suppression
from gateway.store.tx import set_clock_offset
from gateway.store.waiting import Resolve
from gateway.store.writer import Rank, Writer
from tests.databases import Databases

START = datetime(2026, 3, 4, 12, 30, tzinfo=UTC)
TENANT = "default"
NEIGHBOUR = "neighbour"
AGENTS = ("a", "b", "c")
BOXES = ("agent@gw.example.com", "desk@gw.example.com")
PAT = "pat@example.net"
BODY = b"Subject: hello\r\n\r\nhi\r\n"
OK = Reply(250, "2.0.0", "ok")
ROLL = 0.5

Options = Mapping[str, Mapping[str, object]]
Rows = dict[str, list[tuple[Any, ...]]]


def seeded(url: str) -> None:
    """Fills an empty database as every world begins; the `prepare` of `Databases.fresh`."""
    dialect = dialect_of(url)
    migrate(dialect)
    with contextlib.closing(Store(dialect)) as store:
        set_time(store, START - timedelta(minutes=1))
    with contextlib.closing(Store(dialect)) as store:  # time never runs backwards for a process that has seen it
        store.write((), lambda tx: agents.add_tenant(tx, TENANT))
        store.write((TENANT,), lambda tx: _seed(tx, TENANT, BOXES))


def _seed(tx: Tx, tenant: str, boxes: Sequence[str]) -> None:
    for address in boxes:
        agents.add_mailbox(tx, tenant, parse(address), {"may_reply": True})
    agents.register(tx, [agents.Register(tenant, name) for name in AGENTS])
    keys.create_keys(tx, [keys.NewKey(tenant, "usual", transactional=True)])


def set_time(store: Store, to: datetime) -> None:
    """Sets the store's clock for everybody."""

    def move(tx: Tx) -> None:
        set_clock_offset(tx, 0)
        set_clock_offset(tx, to_us(to) - tx.row(_database_clock, {})["us"])  # type: ignore[index]  # one row always

    store.write((), move)


def _database_clock(d: Dialect) -> sa.Executable:
    return sa.select(d.micros().label("us"))


@cache
def _all_of(table: sa.Table) -> Builder:
    return lambda _: sa.select(table).order_by(*table.primary_key)


@dataclass(slots=True)
class Node:
    """One process of the gateway, as far as the heart is concerned."""

    store: Store
    writer: Writer
    intake: Intake

    async def close(self) -> None:
        await self.writer.close()
        self.store.close()


@dataclass(slots=True)
class World:
    """A tenant on a database (use `a_world`); `options` and `terms` are for all its nodes."""

    url: str
    options: Options = field(default_factory=dict)
    terms: Terms = field(default_factory=Terms)
    unknown: str = "hold"
    nodes: list[Node] = field(default_factory=list)
    box: dict[str, agents.Mailbox] = field(default_factory=dict)
    agent: dict[str, str] = field(default_factory=dict)
    key: str = ""
    tenant: str = TENANT
    boxes: tuple[str, ...] = BOXES
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    def open(self) -> "World":
        """Opens the first node of a database that `seeded` has prepared, and sets the clock."""
        with contextlib.closing(Store(dialect_of(self.url))) as passing:  # no node has seen another time
            set_time(passing, START)
        self.node()
        return self._found()

    def _found(self) -> "World":
        """Looks up what the tenant has."""
        store = self.store
        self.box = {box.address: box for box in store.read(lambda tx: agents.list_mailboxes(tx, self.tenant))}
        self.agent = {agent.name: agent.id for agent in store.read(lambda tx: agents.list_agents(tx, self.tenant))}
        self.key = store.read(lambda tx: keys.list_keys(tx, self.tenant))[0].id
        return self

    def neighbour(self) -> "World":
        """Another tenant of the same nodes, with agents of the same names and mailboxes of its own."""
        boxes = tuple(f"next-{address}" for address in BOXES)
        self.store.write((), lambda tx: agents.add_tenant(tx, NEIGHBOUR))
        self.store.write((NEIGHBOUR,), lambda tx: _seed(tx, NEIGHBOUR, boxes))
        other = World(self.url, self.options, self.terms, self.unknown, self.nodes, tenant=NEIGHBOUR, boxes=boxes)
        return other._found()

    def node(self, *, threads: bool = False, store: Store | None = None, options: Options | None = None) -> Node:
        """Opens another node; with `threads` its writer has a thread, else it writes when it is asked."""
        store = store or Store.open(self.url)
        writer = Writer(store, inline=not threads)
        rules = policies.rules(self.options if options is None else options)
        self.nodes.append(Node(store, writer, Intake(store, writer, rules, self.terms)))
        return self.nodes[-1]

    async def close(self) -> None:
        for node in self.nodes:
            await node.close()

    @property
    def store(self) -> Store:
        """The first node's store."""
        return self.nodes[0].store

    # --- time ---------------------------------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """The tenant's time (UTC)."""
        return self.store.read(lambda tx: tx.now, (self.tenant,))

    def advance(self, seconds: float) -> None:
        """Moves the store's clock on."""
        set_time(self.store, self.now + timedelta(seconds=seconds))

    # --- sends --------------------------------------------------------------------------------------------------------

    def ticket(
        self,
        agent: str | None = "a",
        to: str | Iterable[str] = PAT,
        *,
        key: str | None = None,
        subject: str = "hello",
        token: int | None = None,
        mailbox: str | None = None,
        body: bytes = BODY,
        reads: bool | str = False,
        **changes: Any,
    ) -> Ticket:
        """A send as a door would hand it in; `changes` are fields of Submission.

        With `reads` it is compared to others: by the usual text, or by this one.
        """
        number = next(self._numbers)
        people = [parse(text) for text in ([to] if isinstance(to, str) else to)]
        box = self.box[mailbox or self.boxes[0]]
        said = digest(subject, "hi", None, ())
        usual: dict[str, Any] = {
            "id": f"req_{number:06d}",
            "tenant": self.tenant,
            "mailbox": box.id,
            "agent": None if agent is None else self.agent.get(agent, agent),
            "key_id": self.key,
            "envelope": Envelope(box.address, tuple(Recipient(person) for person in people)),
            "content": Content(
                said,
                len(body),
                f"<{number}@gw.example.com>",
                (box.key,),
                subject,
                changes.pop("in_reply_to", None),
                sketch=sketch(subject, "hi" if reads is True else reads, None) if reads else b"",
            ),
            "idempotency_key": key or f"key-{number}",
            "fingerprint": fingerprint(said, box.id, [person.key for person in people], None, (), ()),
            "tokens": {} if token is None else {people[0].key: token},
        }
        if "kind" in changes:
            changes["kind"] = Kind(changes["kind"])
        return Ticket(Submission(**usual | changes), body)

    async def send(self, agent: str | None = "a", to: str | Iterable[str] = PAT, **changes: Any) -> Receipt:
        """Submits a send (see `ticket`) through the node `node`."""
        return await self._at(changes).intake.submit(self.ticket(agent, to, **changes))

    def preview(self, ticket: Ticket) -> Receipt:
        """The dry run of a send."""
        return self.nodes[0].intake.preview(ticket)

    async def cancel(self, request: str, node: Node | None = None) -> tuple[bool, Record]:
        """Cancels a send for somebody who may."""
        wish = Cancel(self.tenant, request, lambda _: True)
        result: tuple[bool, Record] = await self._do(Rank.FORBID, forbid.cancel, wish, node)
        return result

    # --- what forbids, and who has a contact --------------------------------------------------------------------------

    async def acquire(
        self, agent: str, contact: str = PAT, seconds: float = 3600, *, node: Node | None = None, **changes: Any
    ) -> Lease | Held:
        """Wishes for a contact; `changes` are fields of Acquire."""
        key = parse(contact).key
        wish = contacts.Acquire(self.tenant, self.agent[agent], key, contact, "to write", seconds, **changes)
        result: Lease | Held = await self._do(Rank.LEASE, leases.serve, wish, node)
        return result

    async def lease(self, agent: str, contact: str = PAT, seconds: float = 3600, **changes: Any) -> Lease:
        """Acquires a contact that must be free."""
        lease = await self.acquire(agent, contact, seconds, **changes)
        assert isinstance(lease, Lease), lease
        return lease

    async def renew(self, lease: str, token: int | None = None, seconds: float = 3600, agent: str | None = None) -> Any:  # noqa: ANN401
        """Renews a lease: its new end or why not."""
        wish = contacts.Renew(self.tenant, self.agent[agent] if agent else None, lease, token, seconds)
        return await self._do(Rank.LEASE, leases.serve, wish)

    async def release(self, lease: str, agent: str | None = None) -> Released:
        """Gives a lease back."""
        wish = contacts.Release(self.tenant, self.agent[agent] if agent else None, lease)
        result: Released = await self._do(Rank.LEASE, leases.serve, wish)
        return result

    async def propose(self, contact: str = PAT, seconds: float = 300, *, agent: str = "a") -> Consensus:
        """Asks the agents to vote."""
        wish = voting.New(self.tenant, self.agent[agent], "write", parse(contact).key, contact, "a reason", seconds)
        result: Consensus = await self._do(Rank.FORBID, voting.create, wish)
        return result

    async def vote(self, agent: str, which: str, vote: str = "approve", *, node: Node | None = None) -> Cast:
        """Votes; raises ConflictError once it is over."""
        wish = voting.Ballot(self.tenant, which, self.agent[agent], Vote(vote))
        result: Cast = await self._do(Rank.FORBID, voting.vote, wish, node)
        return result

    async def suppress(
        self, subject: str = PAT, reason: str = "manual_dnc", *, node: Node | None = None, **changes: Any
    ) -> tuple[Suppression, list[str]]:
        """Puts a person or a domain on the list; `changes` are fields of New."""
        key = parse(subject).key if "@" in subject else subject
        new = suppressions.New(key, subject, "campaign" if changes.get("campaign") else "tenant", reason, **changes)
        result: tuple[Suppression, list[str]] = await self._do(Rank.FORBID, suppressions.add, (self.tenant, new), node)
        return result

    async def unsuppress(self, entry: str) -> Suppression | None:
        """Takes an entry off the list."""
        result: Suppression | None = await self._do(Rank.FORBID, suppressions.remove, (self.tenant, entry, "operator"))
        return result

    async def pause_relay(self, *, paused: bool = True) -> None:
        """Closes or opens the relay."""
        self.store.write((), lambda tx: forbid.pause_relay(tx, paused=paused))

    async def pause_mailbox(self, address: str | None = None) -> int:
        """Pauses a mailbox; returns how many deliveries are held."""
        box = self.box[address or self.boxes[0]].id
        return self.store.write((self.tenant,), lambda tx: mailboxes.pause(tx, self.tenant, box)).held

    async def resume_mailbox(self, address: str | None = None) -> int:
        """Lets a mailbox go on; returns how many deliveries are let go."""
        box = self.box[address or self.boxes[0]].id
        return self.store.write((self.tenant,), lambda tx: mailboxes.resume(tx, self.tenant, box)).released

    # --- the relay ----------------------------------------------------------------------------------------------------

    async def claim(self, limit: int = 100, node: Node | None = None) -> list[Claim]:
        """Claims what is due, under the node's epoch."""
        at = node or self.nodes[0]
        wish = ClaimRequest(at.store.epoch, limit, round(self.terms.rejudge_after * 1_000_000))
        result: list[Claim] = await at.writer.do(Rank.CLAIM, (), outbox.claim, wish)
        return result

    async def claim_of(self, receipt: Receipt, node: Node | None = None) -> Claim:
        """Claims what is due and returns the claim of this send's only delivery; the others stay claimed."""
        return next(claim for claim in await self.claim(node=node) if claim.send == receipt.record.id)

    async def permit(self, claim: Claim, node: Node | None = None) -> str | None:
        """Asks the permit: None for yes, else why not."""
        at = node or self.nodes[0]
        word: str | None = await at.writer.do(Rank.PERMIT, (), outbox.permit, claim)
        return word

    async def settle(
        self, claim: Claim, outcome: Outcome, retry: Retry | None = None, *, node: Node | None = None
    ) -> State | None:
        """Reports what an attempt came to."""
        report = Report(claim, outcome, retry or Retry(), ROLL)
        state: State | None = await self._do(Rank.SETTLE, settles.settle_all, report, node)
        return state

    async def relay(self, claim: Claim, outcome: Outcome | None = None, retry: Retry | None = None) -> State | None:
        """Permit and settle."""
        assert await self.permit(claim) is None
        return await self.settle(claim, outcome or Relayed(OK), retry)

    async def resolve(self, request: str, decision: str, *, node: Node | None = None) -> Record:
        """Decides about an unknown or held send."""
        intake = (node or self.nodes[0]).intake
        wish = Resolve(self.tenant, request, decision, "operator", "for a reason")
        return await (intake.approve(wish) if decision == "approve" else intake.resolve(wish))

    async def look(self, node: Node | None = None) -> int:
        """One round of the release loop; returns how many sends were due."""
        loop = ReleaseLoop((node or self.nodes[0]).intake, split_unknown, self.unknown)
        due = await loop.look()
        await loop.sweep()
        return due

    # --- looking ------------------------------------------------------------------------------------------------------

    def record(self, request: str) -> Record:
        """A send's record as it is now."""
        return self.store.read(lambda tx: records.find(tx, self.tenant, [request]))[request]

    def states(self, request: str) -> list[State]:
        """The states of a send's deliveries, in the order of its recipients."""
        return [delivery.state for delivery in self.record(request).deliveries]

    def state(self, receipt: Receipt) -> State:
        """The state of a send's only delivery."""
        (state,) = self.states(receipt.record.id)
        return state

    def rows_of(self, table: sa.Table) -> list[dict[str, Any]]:
        """All rows of a table, in the order of its primary key."""
        return [
            dict(zip(row.keys(), tuple(row.values() if isinstance(row, dict) else row), strict=True))
            for row in self.store.read(lambda tx: tx.rows(_all_of(table), {}))
        ]

    def rows(self) -> Rows:
        """All rows of all tables but for times last seen, which every commit moves on."""
        seen: Rows = {}
        for table in tables.metadata.sorted_tables:
            moving = {"tenants": {"last_us"}, "epochs": {"beat", "group_no", "seen_us"}}.get(table.name, set())
            seen[table.name] = [
                tuple(value for name, value in row.items() if name not in moving) for row in self.rows_of(table)
            ]
        return seen

    # --- inside -------------------------------------------------------------------------------------------------------

    def _at(self, changes: dict[str, Any]) -> Node:
        node: Node = changes.pop("node", None) or self.nodes[0]
        return node

    async def _do(self, rank: Rank, work: Any, argument: object, node: Node | None = None) -> Any:  # noqa: ANN401
        return await (node or self.nodes[0]).writer.do(rank, (self.tenant,), work, argument)


@contextlib.asynccontextmanager
async def a_world(
    databases: Databases, options: Options | None = None, terms: Terms | None = None, unknown: str = "hold"
) -> AsyncIterator[World]:
    """Yields a world as `seeded` made it; `options` are those of the policies, by name, as in the settings."""
    past = _pasts.setdefault(id(databases), [])
    home = past.pop() if past else Home(databases)
    home.renew()
    world = World(home.url, options or {}, terms or Terms(), unknown).open()
    try:
        yield world
    finally:
        await world.close()
    past.append(home)  # a database whose test has failed is left alone


class Home:
    """A database that serves one world after the other: making one takes longer than most tests."""

    def __init__(self, databases: Databases) -> None:
        self._stay = contextlib.ExitStack()  # its end is the end of all databases of this kind
        self.url = self._stay.enter_context(databases.fresh(seeded))
        self._engine = dialect_of(self.url).engine
        with self._engine.connect() as connection:
            self._rows = {
                table: [dict(row) for row in connection.execute(sa.select(table)).mappings()]
                for table in tables.metadata.sorted_tables
            }

    def renew(self) -> None:
        """Takes away all that was written since, in one commit."""
        with self._engine.connect() as connection:
            connection.execute(sa.text("BEGIN"))
            for table, rows in self._rows.items():
                connection.execute(sa.delete(table))
                if rows:
                    connection.execute(sa.insert(table), rows)
            connection.execute(sa.text("COMMIT"))


_pasts: dict[int, list[Home]] = {}
"""Databases that are free, by the kind that made them."""


def reasons(receipt: Receipt | Record) -> list[str]:
    """The reasons of all findings of a decision, in table order."""
    record = receipt.record if isinstance(receipt, Receipt) else receipt
    return [finding["reason"] for finding in record.decision["findings"]]


def verdict(receipt: Receipt) -> tuple[str, str | None]:
    """A decision's verdict and its reason."""
    return receipt.record.decision["verdict"], receipt.record.decision["reason"]


def moment(us: int) -> datetime:
    """The time of microseconds since 1970."""
    return from_us(us)


def ids(claims: Sequence[Claim]) -> list[str]:
    """The requests that claims are about."""
    return [claim.send for claim in claims]


def until_somebody_waits_for_a_lock(url: str) -> bool:
    """Returns once a session of this PostgreSQL waits for another one; False where none ever does."""
    with contextlib.closing(dialect_of(url).connect(writer=False)) as connection:
        for _ in range(5_000):
            if connection.execute("SELECT count(*) AS n FROM pg_locks WHERE NOT granted").fetchone()["n"]:
                return True
    return False
