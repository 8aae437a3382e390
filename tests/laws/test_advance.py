"""Law 1: advance equals reload. Law 2: together equals one by one."""

import asyncio
from typing import Any
from unittest import mock

from hypothesis import given, settings

from gateway.core.facts import Facts
from gateway.store import facts as fact_store
from tests.databases import Databases
from tests.laws.plays import OPTIONS, Act, Mail, batches, load, pasts, play, told
from tests.world import World, a_world

FEW = settings(max_examples=10)


@FEW
@given(past=pasts, batch=batches)
async def test_facts_advanced_in_memory_are_those_loaded_after_the_commit(
    databases: Databases, past: list[Act], batch: list[Mail]
) -> None:
    async with a_world(databases, OPTIONS) as world:
        await play(world, past)
        tickets = [mail.ticket(world) for mail in batch]
        seen: list[Facts] = []

        def spy(*args: Any, **names: Any) -> Facts:
            seen.append(loader(*args, **names))
            return seen[-1]

        loader = fact_store.load
        with mock.patch.object(fact_store, "load", spy):
            await asyncio.gather(*(world.nodes[0].intake.submit(t) for t in tickets), return_exceptions=True)

        (advanced,) = seen
        asks = set(advanced)
        assert {ask: advanced[ask] for ask in asks} == load(world, asks)


MOVING = {"last_us", "decided_us", "created_us", "idem_until_us", "due_us", "since_us", "judged_us", "changed_us"}
NEVER_ALIKE = {"at_us", "document", "not_before_us", "acquired_us", "expires_us", "lease_id", "permitted_us", "epoch"}


def shape(world: World) -> dict[str, list[dict[str, Any]]]:
    """What stands in the tables that a decision writes, without times."""
    rows = world.rows()
    names = ("sends", "deliveries", "decisions", "counters", "contacts")
    shown = {name: world.rows_of(next(t for t in _tables() if t.name == name)) for name in names}
    assert set(names) <= set(rows)
    skip = MOVING | NEVER_ALIKE
    return {name: [{k: v for k, v in row.items() if k not in skip} for row in found] for name, found in shown.items()}


def _tables() -> Any:  # noqa: ANN401
    from gateway.store.schema import metadata

    return metadata.sorted_tables


@FEW
@given(past=pasts, batch=batches)
async def test_a_batch_is_decided_as_its_mails_would_be_one_at_a_time(
    databases: Databases, past: list[Act], batch: list[Mail]
) -> None:
    seen = []
    for together in (True, False):
        async with a_world(databases, OPTIONS) as world:
            await play(world, past)
            tickets = [mail.ticket(world) for mail in batch]
            submit = world.nodes[0].intake.submit
            if together:
                results = await asyncio.gather(*map(submit, tickets), return_exceptions=True)
            else:
                results = [(await asyncio.gather(submit(ticket), return_exceptions=True))[0] for ticket in tickets]
            seen.append(([told(result) for result in results], shape(world)))  # type: ignore[arg-type]

    (told_together, tables_together), (told_alone, tables_alone) = seen
    assert told_together == told_alone
    for name, rows in tables_together.items():
        assert rows == tables_alone[name], name
