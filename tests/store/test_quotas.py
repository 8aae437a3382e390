"""Quotas: counters by window, written in the transaction that accepts (ARCHITECTURE 7)."""

import asyncio
from datetime import timedelta

import pytest

from gateway.core.delivery import Bounced, State
from gateway.store import schema
from tests.databases import Databases
from tests.world import BOXES, PAT, START, a_world, verdict

HOUR = ("defer", "hourly_limit_exceeded")
PASS = ("pass", None)


@pytest.mark.parametrize("nodes", [1, 2])
async def test_of_fifty_at_once_with_a_cap_of_five_exactly_five_go(databases: Databases, nodes: int) -> None:
    async with a_world(databases, {"quota": {"tenant_hour": 5}}) as world:
        at = [world.node(threads=True) for _ in range(nodes)]

        receipts = await asyncio.gather(
            *(world.send("abc"[n % 3], f"p{n}@example.net", node=at[n % nodes]) for n in range(50))
        )

        verdicts = [verdict(receipt) for receipt in receipts]
        assert (verdicts.count(PASS), verdicts.count(HOUR)) == (5, 45)
        assert [row["used"] for row in world.rows_of(schema.counters)] == [5]


async def test_each_recipient_is_a_unit_and_a_mail_that_does_not_fit_does_not_go(databases: Databases) -> None:
    async with a_world(databases, {"quota": {"agent_hour": 5}}) as world:
        people = [f"p{n}@example.net" for n in range(3)]

        first = await world.send(to=people)
        too_many = await world.send(to=[f"q{n}@example.net" for n in range(3)])
        fits = await world.send(to=["r1@example.net", "r2@example.net"])

        assert [verdict(receipt) for receipt in (first, too_many, fits)] == [PASS, HOUR, PASS]


async def test_agents_mailboxes_and_the_tenant_are_counted_apart(databases: Databases) -> None:
    options = {"quota": {"agent_hour": 1, "mailbox_hour": 2, "tenant_hour": 3}}
    async with a_world(databases, options) as world:
        sends = [("a", 0), ("a", 0), ("b", 0), ("c", 0), ("c", 1), ("b", 1)]

        verdicts = [
            verdict(await world.send(agent, f"p{n}@example.net", mailbox=BOXES[box]))
            for n, (agent, box) in enumerate(sends)
        ]

        assert verdicts == [PASS, HOUR, PASS, HOUR, PASS, HOUR]


@pytest.mark.parametrize(
    ("window", "ends", "reason"),
    [
        ("hour", START.replace(hour=13, minute=0), "hourly"),
        ("day", START.replace(day=5, hour=0, minute=0), "daily"),
        ("month", START.replace(month=4, day=1, hour=0, minute=0), "monthly"),
    ],
)
async def test_a_window_is_that_of_the_calendar(databases: Databases, window: str, ends: object, reason: str) -> None:
    async with a_world(databases, {"quota": {f"tenant_{window}": 1}}) as world:
        await world.send()
        over = await world.send(to="other@example.net")
        (finding,) = over.record.decision["findings"]
        world.advance((ends - START).total_seconds() - 5)  # type: ignore[operator]
        before = await world.send(to="third@example.net")
        world.advance(6)

        after = await world.send(to="fourth@example.net")

        assert finding["reason"] == f"{reason}_limit_exceeded"
        assert (finding["extra"]["used"], finding["extra"]["limit"], finding["extra"]["remaining"]) == (1, 1, 0)
        assert finding["until"] == f"{ends:%Y-%m-%dT%H:%M:%SZ}"
        assert verdict(before) == ("defer", f"{reason}_limit_exceeded")
        assert verdict(after) == PASS


async def test_refused_and_replayed_mail_uses_nothing_up(databases: Databases) -> None:
    async with a_world(databases, {"quota": {"tenant_hour": 2}}) as world:
        await world.suppress("gone@example.net")
        await world.send(to="gone@example.net")
        await world.send(key="once")
        await world.send(key="once")

        assert verdict(await world.send(to="other@example.net")) == PASS


@pytest.mark.parametrize("end", ["bounced", "cancelled", "blocked"])
async def test_a_unit_is_never_given_back(databases: Databases, end: str) -> None:
    async with a_world(databases, {"quota": {"tenant_hour": 1}}) as world:
        receipt = await world.send()
        if end == "bounced":
            await world.settle(await world.claim_of(receipt), Bounced("no"))
        elif end == "cancelled":
            await world.cancel(receipt.record.id)
        else:
            await world.suppress()

        assert world.state(receipt) is State(end)
        assert verdict(await world.send(to="other@example.net")) == HOUR


async def test_scheduled_and_held_mail_counts_when_it_is_accepted_and_not_again(databases: Databases) -> None:
    async with a_world(databases, {"quota": {"tenant_day": 2}}) as world:
        receipt = await world.send(not_before=START + timedelta(hours=1))
        world.advance(3601)
        await world.look()

        assert world.state(receipt) is State.QUEUED
        assert verdict(await world.send(to="p1@example.net")) == PASS
        assert verdict(await world.send(to="p2@example.net")) == ("defer", "daily_limit_exceeded")


async def test_a_quota_for_some_mail_counts_all_mail_alone_or_together(databases: Databases) -> None:
    """What has been used up is a fact, whichever mail a rule is asked about."""
    options = {"quota": {"tenant_hour": 2, "applies_to": ["outreach"]}}
    kinds = ["transactional", "reply", "outreach"]
    seen = []
    for together in (False, True):
        async with a_world(databases, options) as world:
            sends = [world.send(to=f"p{n}@example.net", kind=kind) for n, kind in enumerate(kinds)]
            receipts = await asyncio.gather(*sends) if together else [await send for send in sends]
            seen.append([verdict(receipt) for receipt in receipts])

    assert seen == [[PASS, PASS, HOUR]] * 2


async def test_another_key_to_the_same_person_is_a_unit_of_its_own(databases: Databases) -> None:
    async with a_world(databases, {"quota": {"tenant_hour": 2}}) as world:
        verdicts = [verdict(await world.send(to=PAT, kind="reply")) for _ in range(3)]

        assert verdicts == [PASS, PASS, HOUR]
