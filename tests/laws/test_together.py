"""Law 2 for leases: wishes that share a transaction come out as they would one after the other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any
from unittest import mock

import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.address import parse
from gateway.store import leases, schema
from gateway.store.contacts import Acquire, AnothersLeaseError, Held, Release, Released, Renew, Wish
from gateway.store.dialect import Builder, Dialect
from gateway.store.tx import Statements, Tx
from tests.databases import Databases
from tests.laws.plays import OPTIONS, PEOPLE, Act, Lease, Mail, Sent, pasts, play
from tests.world import AGENTS, TENANT, World, a_world

WHOM = PEOPLE[:2]
HELD: list[Act] = [Lease("a", WHOM[0]), Sent(Mail("a", WHOM[:1]), "queued"), Lease("b", WHOM[1])]
Way = Callable[[Tx, Sequence[Wish]], list[Any]]


@dataclass(frozen=True, slots=True)
class Wished:
    """A wish about the contact `person`, and the lease that it has by now where one is kept or given back."""

    what: str
    agent: str
    person: str
    token: int | None
    bound: bool | None
    operator: bool
    keeps: bool
    enforced: bool
    seconds: float

    def made(self, world: World, found: dict[str, str]) -> Wish:
        person = parse(self.person)
        agent, key, lease = world.agent[self.agent], person.key, found.get(person.key, "nowhere")
        if self.what == "acquire":
            why = "a person says so" if self.operator else None
            wish = Acquire(TENANT, agent, key, person.spec, "to write", self.seconds, 600)
            return replace(wish, operator_reason=why, keeps=self.keeps, enforced=self.enforced)
        owner = agent if self.bound is not False else None
        if self.what == "renew":
            return Renew(TENANT, owner, lease, self.token, self.seconds, self.bound)
        return Release(TENANT, owner, lease, self.token, self.bound)


wished = st.builds(
    Wished,
    what=st.sampled_from(["acquire", "acquire", "acquire", "renew", "release", "release"]),
    agent=st.sampled_from(AGENTS[:2]),
    person=st.sampled_from(WHOM),
    token=st.sampled_from([None, None, 1, 2]),
    bound=st.sampled_from([None, None, True, False]),
    operator=st.sampled_from([False, False, False, True]),
    keeps=st.sampled_from([False, False, True]),
    enforced=st.sampled_from([True, True, False]),
    seconds=st.sampled_from([60.0, 1800.0]),
)


def one_by_one(tx: Tx, wishes: Sequence[Wish]) -> list[Any]:
    return [answer for wish in wishes for answer in leases.serve(tx, [wish])]


def all_of(table: sa.Table) -> Builder:
    return lambda _: sa.select(table).order_by(*table.primary_key)


def said(words: str) -> Builder:
    def statement(_: Dialect) -> sa.Executable:
        return sa.text(words)

    return statement


def both(world: World, wishes: Sequence[Wish]) -> list[tuple[Any, ...]]:
    """What two ways of serving the wishes answer and leave behind, from the same state at the same time."""

    def attempt(tx: Tx, way: Way) -> tuple[Any, ...]:
        tx.run(said("SAVEPOINT here"), {})
        with mock.patch("uuid.uuid4", side_effect=map("lease-{}".format, count())):
            answers = [str(one) if isinstance(one, AnothersLeaseError) else one for one in way(tx, wishes)]
        tables = [[dict(row) for row in tx.rows(all_of(t), {})] for t in (schema.contacts, schema.deliveries)]
        events = [{k: v for k, v in dict(row).items() if k != "id"} for row in tx.rows(all_of(schema.events), {})]
        tx.run(said("ROLLBACK TO SAVEPOINT here"), {})
        return answers, *tables, events

    def work(tx: Tx) -> list[tuple[Any, ...]]:
        return [attempt(tx, way) for way in (leases.serve, one_by_one)]

    done: list[tuple[Any, ...]] = world.store.write((TENANT,), work)
    return done


@settings(max_examples=60)
@given(past=pasts.map(lambda past: past[:3]), batch=st.lists(wished, min_size=2, max_size=7))
async def test_leases_of_a_batch_are_as_they_would_be_one_at_a_time(
    databases: Databases, past: list[Act], batch: list[Wished]
) -> None:
    async with a_world(databases, OPTIONS) as world:
        await play(world, [*HELD, *past])
        found = {row["key"]: row["lease_id"] for row in world.rows_of(schema.contacts)}

        together, alone = both(world, [one.made(world, found) for one in batch])

        for mine, theirs in zip(together, alone, strict=True):
            assert mine == theirs


async def test_many_wishes_cost_as_many_statements_as_one(databases: Databases) -> None:
    async with a_world(databases) as world:

        def cost(number: int, letter: str) -> int:
            wishes = [Acquire(TENANT, world.agent["a"], f"{letter}{n}@example.net", "", "", 60) for n in range(number)]
            with mock.patch.object(Statements, "made", autospec=True, side_effect=Statements.made) as made:
                world.store.write((TENANT,), lambda tx: leases.serve(tx, wishes))
            return int(made.call_count)

        assert cost(50, "y") == cost(1, "x")


async def test_who_keeps_a_lease_or_finds_another_one_touches_no_mail(databases: Databases) -> None:
    async with a_world(databases) as world:
        kept = await world.lease("a")
        a, b = world.agent["a"], world.agent["b"]
        wishes: list[Wish] = [Renew(TENANT, a, kept.id, None, 60), Renew(TENANT, a, "nowhere", None, 60)]
        wishes += [Acquire(TENANT, who, kept.contact, kept.address, "", 60) for who in (a, b)]
        with mock.patch.object(Statements, "made", autospec=True, side_effect=Statements.made) as made:
            world.store.write((TENANT,), lambda tx: leases.serve(tx, wishes))

        used = {call.args[1].__name__ for call in made.call_args_list}
        assert {"contact_rows", "_by_lease", "_upsert"} <= used
        assert used.isdisjoint({"_live_of", "live_rows", "_ahead"})


async def test_a_contact_that_was_given_back_a_moment_ago_is_closed_by_mail_in_flight(databases: Databases) -> None:
    async with a_world(databases) as world:
        kept = await world.lease("a")
        await world.send("a", kept.address)
        wish = Acquire(TENANT, world.agent["b"], kept.contact, kept.address, "", 60)

        given, held = world.store.write((TENANT,), lambda tx: leases.serve(tx, [Release(TENANT, None, kept.id), wish]))

        assert isinstance(given, Released)
        assert given.released
        assert isinstance(held, Held)
        assert (held.kind, held.agent_name) == ("send", "a")
