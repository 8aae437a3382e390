"""Random pasts and random mails, as plain data that a failing example prints and `play` carries out."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from hypothesis import strategies as st

from gateway.core.delivery import Bounced, Deferred, GivenBack, Outcome, Relayed, Reply, State, Unknown
from gateway.core.errors import ConflictError
from gateway.core.facts import (
    AgentAsk,
    Ask,
    ConsensusAsk,
    ConsentAsk,
    Facts,
    FlightsAsk,
    KeyAsk,
    LastContactAsk,
    LeaseAsk,
    MailboxAsk,
    RecentAsk,
    SuppressionAsk,
    ThreadAsk,
    UnknownsAsk,
    UsageAsk,
)
from gateway.core.record import Receipt, Record
from gateway.intake.walk import Ticket
from gateway.store import facts as fact_store
from gateway.store.contacts import Held
from gateway.store.dialect import Dialect
from gateway.store.fleet import consensus
from gateway.store.tx import Tx
from tests.world import AGENTS, BOXES, OK, TENANT, World

PEOPLE = ("p0@example.net", "p1@example.net", "P.2+tag@googlemail.com", "p3@deep.example.org", "boss@gw.example.com")
KEYS = tuple(f"k{n}" for n in range(4))
OPTIONS = {
    "quota": {"agent_hour": 4, "mailbox_day": 7, "tenant_month": 9},
    "recipient": {"max_recipients": 2},
    "lease": {"escalate_after": 1},
    "loop": {"pair": 3, "thread": 3, "seconds": 1800},
}
BUSY = Deferred("451 to DOT", Reply(451, "4.3.0", "busy"))
OUTCOMES: dict[str, Outcome] = {
    "relayed": Relayed(OK),
    "deferred": BUSY,
    "bounced": Bounced("554 to DOT", Reply(554, "5.7.1", "no")),
    "gone": Bounced("550 to RCPT", Reply(550, "5.1.1", "no such user"), stage="rcpt"),
    "unknown": Unknown("silence"),
    "given back": GivenBack("late"),
}


VOTES = ("vote-0", "vote-1")
FIELDS = ("subject", "kind", "token", "campaign", "mailbox", "override", "thread", "consensus")


@dataclass(frozen=True, slots=True)
class Mail:
    """A send to be; `after` are seconds from now until its schedule."""

    agent: str
    to: tuple[str, ...]
    key: str | None = None
    subject: str = "hello"
    kind: str = "outreach"
    token: int | None = None
    after: int | None = None
    campaign: str | None = None
    mailbox: str = BOXES[0]
    override: str | None = None
    derived_key: bool = False
    thread: str | None = None
    consensus: str | None = None

    def ticket(self, world: World) -> Ticket:
        """The send as a door hands it in."""
        fields = {name: getattr(self, name) for name in FIELDS}
        fields["mailbox"] = world.boxes[BOXES.index(self.mailbox)]
        not_before = None if self.after is None else world.now + timedelta(seconds=self.after)
        return world.ticket(
            self.agent, self.to, key=self.key, not_before=not_before, derived_key=self.derived_key, reads=True, **fields
        )


@dataclass(frozen=True, slots=True)
class Sent:
    """A send in the past and how far it came: a state on its way, or what its attempt came to."""

    mail: Mail
    fate: str


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease taken in the past, and perhaps given back."""

    agent: str
    person: str
    released: bool = False


@dataclass(frozen=True, slots=True)
class Suppressed:
    """An entry of the suppression list."""

    subject: str
    campaign: str = ""


@dataclass(frozen=True, slots=True)
class Voted:
    """A vote about a person that stands so, under an id that is the same in every world; `seconds` until it runs out."""

    which: str
    person: str
    status: str
    seconds: int


@dataclass(frozen=True, slots=True)
class Later:
    """Time that goes by, in seconds."""

    seconds: int


Act = Sent | Lease | Suppressed | Voted | Later

mails = st.builds(
    Mail,
    agent=st.sampled_from(AGENTS),
    to=st.lists(st.sampled_from(PEOPLE), min_size=1, max_size=3, unique=True).map(tuple),
    key=st.none() | st.sampled_from(KEYS),
    subject=st.sampled_from(["hello", "another thing"]),
    kind=st.sampled_from(["outreach", "outreach", "reply", "transactional"]),
    token=st.sampled_from([None, None, None, 1, 2]),
    after=st.sampled_from([None, None, None, -10, 900]),
    campaign=st.sampled_from([None, None, "spring"]),
    mailbox=st.sampled_from([BOXES[0], BOXES[0], BOXES[1]]),
    override=st.sampled_from([None, None, None, "a person says so"]),
    thread=st.sampled_from([None, None, "thread"]),
    consensus=st.sampled_from([None, None, None, None, *VOTES]),
)
fates = st.sampled_from(["queued", "claimed", "permitted", "cancelled", *OUTCOMES])
acts = (
    st.builds(Sent, mail=mails, fate=fates)
    | st.builds(Lease, agent=st.sampled_from(AGENTS), person=st.sampled_from(PEOPLE), released=st.booleans())
    | st.builds(
        Suppressed,
        subject=st.sampled_from([PEOPLE[0], PEOPLE[2], "example.org"]),
        campaign=st.sampled_from(["", "spring", "spring"]),
    )
    | st.builds(
        Voted,
        which=st.sampled_from(VOTES),
        person=st.sampled_from(PEOPLE[:2]),
        status=st.sampled_from(["pending", "approved", "approved", "rejected"]),
        seconds=st.sampled_from([300, 86_400]),
    )
    | st.builds(Later, seconds=st.sampled_from([1, 400, 700, 3700]))
)
pasts = st.lists(acts, max_size=6)
batches = st.lists(mails, min_size=2, max_size=6)


async def play(world: World, past: list[Act]) -> None:
    """Carries a past out, act by act."""
    for act in past:
        match act:
            case Sent(mail, fate):
                await bring(world, mail, fate)
            case Lease(agent, person, released):
                got = await world.acquire(agent, person)
                if released and not isinstance(got, Held):
                    await world.release(got.id)
            case Suppressed(subject, campaign):
                await world.suppress(subject, campaign=campaign)
            case Voted():
                put(world, act)
            case Later(seconds):
                world.advance(seconds)
                await world.look()


def put(world: World, act: Voted) -> None:
    """Writes a vote as it stands; one of that id that is there stays."""
    row = {"tenant": TENANT, "id": act.which, "requested_by": world.agent["a"], "action": "write", "reason": "why"}
    row |= {"contact": world.ticket("a", act.person).mail.keys[0], "address": act.person, "status": act.status}

    def write(tx: Tx) -> None:
        now = tx.now_of(TENANT)
        times = {"created_us": now, "timeout_us": now + act.seconds * 1_000_000, "decided_us": None}
        tx.run(_put, row | times)

    world.store.write((TENANT,), write)


def _put(dialect: Dialect) -> sa.Executable:
    made: sa.Executable = dialect.upsert(consensus).on_conflict_do_nothing()
    return made


async def submit(world: World, mail: Mail) -> Receipt | ConflictError:
    """Submits a mail; a reused key is an answer too."""
    try:
        return await world.nodes[0].intake.submit(mail.ticket(world))
    except ConflictError as error:
        return error


async def bring(world: World, mail: Mail, fate: str) -> Receipt | None:
    """Submits a mail and, where it was let in and is due, brings it as far as `fate` says; None where it was not."""
    receipt = await submit(world, mail)
    if isinstance(receipt, ConflictError) or receipt.replayed or State.QUEUED not in world.states(receipt.record.id):
        return None
    if fate == "cancelled":
        await world.cancel(receipt.record.id)
    if fate in {"queued", "cancelled"}:
        return receipt
    for claim in await world.claim():
        if claim.send != receipt.record.id:
            await world.settle(claim, GivenBack("not this one"))
        elif fate == "gone":
            await world.settle(claim, OUTCOMES[fate])
        elif fate != "claimed":
            await world.permit(claim)
            if fate != "permitted":
                await world.settle(claim, OUTCOMES[fate])
    return receipt


# --- facts and decisions to compare -------------------------------------------------------------------------------------


def every_ask(world: World) -> set[Ask[Any]]:
    """All that a policy could ask about this small world."""
    keys = {person: world.ticket("a", person).mail.keys[0] for person in PEOPLE}.values()
    asks: set[Ask[Any]] = {KeyAsk(world.key)}
    for key in keys:
        asks |= {LeaseAsk(key), FlightsAsk(key), LastContactAsk(key), UnknownsAsk(key), ConsentAsk(key)}
        asks |= {RecentAsk(key, seconds) for seconds in (1800, 86400)}
        asks |= {SuppressionAsk(key, campaign) for campaign in (None, "spring")}
    asks |= {ThreadAsk("thread", 1800), *map(ConsensusAsk, (*VOTES, "nowhere"))}
    who = [("agent", agent) for agent in world.agent.values()]
    who += [("mailbox", box.id) for box in world.box.values()] + [("tenant", TENANT)]
    asks |= {UsageAsk(scope, one, window) for scope, one in who for window in ("hour", "day", "month")}
    asks |= {AgentAsk(agent) for agent in world.agent.values()} | {MailboxAsk(box.id) for box in world.box.values()}
    return asks


def load(world: World, asks: set[Ask[Any]]) -> dict[Ask[Any], Any]:
    """The answers as the store has them now."""
    facts: Facts = world.store.read(lambda tx: fact_store.load(tx, TENANT, asks), (TENANT,))
    return {ask: facts[ask] for ask in asks}


def changed(before: dict[Ask[Any], Any], after: dict[Ask[Any], Any]) -> set[Ask[Any]]:
    """The asks whose answers differ."""
    return {ask for ask in before if before[ask] != after[ask]}


TIMES = {"until", "at", "retry_at", "cooldownExpiresAt", "resetsAt", "expiresAt", "retryAt", "timeoutAt"}


def timeless(value: object) -> Any:  # noqa: ANN401
    """A document without its times: two worlds are never at the same microsecond."""
    if isinstance(value, dict):
        return {name: timeless(member) for name, member in value.items() if name not in TIMES}
    if isinstance(value, list | tuple):
        return [timeless(member) for member in value]
    return value


def told(result: Receipt | Exception) -> Any:  # noqa: ANN401
    """What the author of a send is told, without times."""
    if isinstance(result, ConflictError):
        return result.slug, timeless(result.extra)
    assert isinstance(result, Receipt), result
    record = result.record
    states = [(delivery.id, delivery.contact, delivery.state) for delivery in record.deliveries]
    return record.id, result.replayed, result.warnings, record.repeats, timeless(record.decision), states


def settled(record: Record) -> Record:
    """A record without what only time has changed."""
    return replace(record, repeats=0)
