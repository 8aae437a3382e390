"""A line that breaks at the commit: what was done is looked up, and nothing is done twice or lost (ARCHITECTURE 7)."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from gateway.core.delivery import GivenBack, Relayed, Retry, State
from gateway.core.errors import CommitInDoubtError, StoreUnavailableError
from gateway.relay.pool import Pool
from gateway.relay.smarthost import Smarthost
from gateway.relay.worker import Worker
from gateway.sink import Sink
from gateway.store import Store, dialect_of, epochs, outbox, schema, steps
from gateway.store.outbox import Claim, ClaimRequest
from gateway.store.writer import Rank
from tests.databases import Databases, PostgresServer
from tests.world import OK, START, Node, World, a_world, ids, until_somebody_waits_for_a_lock

FRESH = 600_000_000
ASKED = 2


class Line:
    """A dialect whose line breaks at commits, `took` after the commit took hold and `lost` before it did.

    With `slow` the server commits only when somebody waits for what that transaction holds.
    Then as many connections as `refusals` says are refused: ASKED are those by which the store would look it up.
    """

    def __init__(self, url: str) -> None:
        self._dialect = dialect_of(url)
        self.url = url
        self.slow = threading.Thread(target=self._commit_when_somebody_waits)
        self.unheard: Any = None  # the cursor and the connection of a commit that is still on its way
        self.commits: list[str] = []
        self.refusals = 0
        self.broken = False

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._dialect, name)

    def connect(self, *, writer: bool) -> Any:  # noqa: ANN401
        if self.broken and self.refusals:
            self.refusals -= 1
            raise self.outages[0]("nobody answers")
        return self._dialect.connect(writer=writer)

    def _commit_when_somebody_waits(self) -> None:
        cursor, close = self.unheard
        until_somebody_waits_for_a_lock(self.url)
        cursor.execute("COMMIT")
        close()

    def cursor(self, connection: Any) -> "Breaking":  # noqa: ANN401
        return Breaking(self, self._dialect.cursor(connection), connection)


class Breaking:
    """A cursor on such a line."""

    def __init__(self, line: Line, cursor: Any, connection: Any) -> None:  # noqa: ANN401
        self._line = line
        self._cursor = cursor
        self._connection = connection
        self._late = False

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._cursor, name)

    def execute(self, text: str, *args: Any) -> Any:  # noqa: ANN401
        if self._late:  # the server has not heard that we gave up
            return None
        if text != "COMMIT" or not self._line.commits:
            return self._cursor.execute(text, *args)
        fate = self._line.commits.pop(0)
        if fate == "slow":
            self._late = True
            self._line.unheard = self._cursor, self._connection.close
            self._connection.close = lambda: None
            self._line.slow.start()
            raise self._line.outages[0]("no answer in time")
        if fate == "took":
            self._cursor.execute(text)
        self._connection.close()
        self._line.broken = True
        raise self._line.outages[0]("the line is dead")


@pytest.fixture
def line(world: World) -> Line:
    return Line(world.url)


@pytest.fixture
def node(world: World, line: Line) -> Node:
    """A node of a serving process behind such a line."""
    node = world.node(store=Store(line))
    node.store.serving = True
    return node


@pytest.fixture
def armed() -> Iterator[dict[str, Any]]:
    """The named steps, disarmed at the end."""
    yield steps.armed
    steps.armed.clear()


async def test_a_commit_that_took_hold_is_answered_as_usual(world: World, line: Line, node: Node) -> None:
    line.commits = ["took"]

    receipt = await world.send(key="once", node=node)

    assert not receipt.replayed
    assert node.writer.groups == 1
    assert world.states(receipt.record.id) == [State.QUEUED]
    assert len(world.rows()["decisions"]) == 1


async def test_a_commit_that_was_lost_is_made_again(world: World, line: Line, node: Node) -> None:
    line.commits = ["lost"]

    receipt = await world.send(key="once", node=node)

    assert not receipt.replayed
    assert world.states(receipt.record.id) == [State.QUEUED]
    assert len(world.rows()["decisions"]) == 1


@pytest.mark.parametrize("fate", ["took", "lost"])
async def test_where_nobody_can_be_asked_the_caller_is_told_and_may_repeat_the_key(
    world: World, line: Line, node: Node, fate: str
) -> None:
    line.commits, line.refusals = [fate], ASKED

    with pytest.raises(CommitInDoubtError):
        await world.send(key="once", node=node)
    again = await world.send(key="once", node=node)

    assert again.replayed is (fate == "took")
    assert len(world.rows()["sends"]) == 1
    assert len(await world.claim()) == 1


@pytest.mark.parametrize("fate", ["took", "lost"])
async def test_a_process_that_leaves_no_trace_does_not_try_a_doubtful_group_again(
    world: World, line: Line, node: Node, fate: str
) -> None:
    node.store.serving = False
    line.commits = [fate]

    with pytest.raises(StoreUnavailableError):
        await world.send(key="once", node=node)

    assert len(world.rows()["sends"]) == (fate == "took")


async def test_a_process_that_was_forgotten_meanwhile_cannot_know(world: World, line: Line, node: Node) -> None:
    """Whoever took it for dead has taken its trace away: that there is none says nothing of the commit."""
    await world.send(node=node)
    world.store.write((), lambda tx: epochs.forget(tx, node.store.epoch))
    line.commits = ["lost"]

    with pytest.raises(CommitInDoubtError):
        await world.acquire("a", "x@example.net", node=node)


async def test_a_server_that_only_reads_now_is_left(postgres_server: PostgresServer) -> None:
    """A primary that was demoted keeps its sessions; another one has its address (PostgreSQL 25006)."""
    async with a_world(postgres_server) as world:
        claim = await world.claim_of(await world.send())
        await world.permit(claim)
        assert world.store._writer is not None
        world.store._writer.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")

        assert await world.settle(claim, Relayed(OK)) is State.RELAYED


async def test_everybody_in_a_doubtful_group_is_told(world: World, line: Line, node: Node) -> None:
    line.commits, line.refusals = ["took"], ASKED

    results = await asyncio.gather(
        world.send(node=node), world.acquire("b", "x@example.net", node=node), return_exceptions=True
    )

    assert [type(result) for result in results] == [CommitInDoubtError] * 2


async def test_an_older_group_is_not_taken_for_the_one_in_doubt(world: World, line: Line, node: Node) -> None:
    await world.send(node=node)
    line.commits = ["lost"]

    receipt = await world.send(to="other@example.net", node=node)

    assert len(world.rows()["sends"]) == 2
    assert world.states(receipt.record.id) == [State.QUEUED]


async def test_a_permit_in_doubt_sends_nothing_and_the_mail_goes_again(world: World, line: Line, node: Node) -> None:
    receipt = await world.send()
    claim = await world.claim_of(receipt, node)
    line.commits, line.refusals = ["took"], ASKED

    with pytest.raises(StoreUnavailableError):
        await world.permit(claim, node)

    assert await world.settle(claim, GivenBack("the store could not be asked"), node=node) is State.QUEUED
    assert (await world.claim_of(receipt)).claim_no == 2


async def test_a_commit_that_is_still_on_its_way_is_waited_for(postgres_server: PostgresServer) -> None:
    """A claim takes no tenant's lock; the older transaction holds the process's own epoch until it ends."""
    async with a_world(postgres_server) as world:
        line = Line(world.url)
        node = world.node(store=Store(line))
        node.store.serving = True
        receipt = await world.send(node=node)
        line.commits = ["slow"]

        claims = await claim_holding(node, None)
        line.slow.join()

        assert ids(claims) == [receipt.record.id]
        assert await world.permit(claims[0], node) is None


# --- claims whose answer never came -------------------------------------------------------------------------------------


async def claim_holding(node: Node, holding: frozenset[tuple[str, str]] | None) -> list[Claim]:
    """What a worker claims that has `holding` under way."""
    wish = ClaimRequest(node.store.epoch, 100, FRESH, holding)
    tenants = () if holding is None else node.store.read(lambda tx: outbox.tenants_of(tx, node.store.epoch))
    claims: list[Claim] = await node.writer.do(Rank.CLAIM, tenants, outbox.claim, wish)
    return claims


async def test_claims_in_doubt_are_free_again_and_those_under_way_are_not(world: World, line: Line, node: Node) -> None:
    first = await world.send()
    held = await claim_holding(node, None)
    second = await world.send(to="other@example.net")
    line.commits, line.refusals = ["took"], ASKED
    with pytest.raises(StoreUnavailableError):
        await claim_holding(node, None)
    stray = world.state(second)

    again = await claim_holding(node, frozenset((claim.tenant, claim.delivery) for claim in held))

    assert stray is State.CLAIMED
    assert ids(again) == [second.record.id]
    assert again[0].claim_no == 2
    assert world.state(first) is State.CLAIMED
    assert await world.permit(held[0], node) is None


async def test_claims_of_another_process_are_not_touched(world: World, node: Node) -> None:
    receipt = await world.send()
    claim = await world.claim_of(receipt)

    assert await claim_holding(node, frozenset()) == []
    assert await world.permit(claim) is None


async def test_a_worker_takes_up_what_it_claimed_unknowingly(databases: Databases) -> None:
    async with a_world(databases) as world, Sink() as sink:
        line = Line(world.url)
        node = world.node(store=Store(line), threads=True)
        node.store.serving = True
        receipt = await world.send()
        settled = asyncio.Event()
        pool = Pool(Smarthost.parse(f"smtp://127.0.0.1:{sink.port}"))
        worker = Worker(node.store, node.writer, pool, Retry(), settled=lambda *_: settled.set())
        line.commits, line.refusals = ["took"], ASKED
        worker.start()
        async with asyncio.timeout(30):
            await settled.wait()
        await worker.stop()

        assert world.state(receipt) is State.RELAYED
        assert world.rows_of(schema.deliveries)[0]["claim_no"] == 2
        assert len(sink.mails) == 1


# --- the named steps ----------------------------------------------------------------------------------------------------


async def test_what_fails_before_the_commit_leaves_nothing(world: World, armed: dict[str, Any]) -> None:
    before = world.rows()

    def fail() -> None:
        raise world.store.dialect.outages[0]("the disk is full")

    armed["commit.before"] = fail
    with pytest.raises(StoreUnavailableError):
        await world.send(key="once")
    armed.clear()

    assert world.rows() == before
    assert not (await world.send(key="once")).replayed


async def test_an_answer_that_never_left_is_given_to_the_repeat(world: World, armed: dict[str, Any]) -> None:
    """The process dies between the commit and its answer; the caller asks again, elsewhere."""

    def die() -> None:
        raise SystemExit

    ticket = world.ticket(key="once")
    armed["commit.after"] = die
    with pytest.raises(SystemExit):
        world.store.write(("default",), lambda tx: world.nodes[0].intake._decide(tx, [ticket]))
    armed.clear()

    again = await world.send(key="once", node=world.node())

    assert again.replayed
    assert again.record.created_at >= START
    assert len(await world.claim()) == 1


async def test_a_server_that_is_cut_off_at_the_commit_is_asked_again(
    postgres_server: Databases, armed: dict[str, Any]
) -> None:
    async with a_world(postgres_server) as world:
        world.store.serving = True
        cuts = [1]

        def cut() -> None:
            if cuts:
                cuts.pop()
                assert world.store._writer is not None
                pid = world.store._writer.info.backend_pid
                with psycopg.connect(world.store.dialect.url, autocommit=True) as other:  # type: ignore[attr-defined]
                    other.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))

        armed["commit.before"] = cut

        receipt = await world.send(key="once")

        assert cuts == []
        assert not receipt.replayed
        assert len(world.rows()["sends"]) == 1
