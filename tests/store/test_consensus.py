"""Votes in the store, and mail that waits for them: decided, expired and let go in one transaction."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from gateway.coordination.clock import Clock, Job
from gateway.core.consensus import Status
from gateway.core.delivery import Deferred, State
from gateway.core.errors import ConflictError, NotFoundError, StoreUnavailableError
from gateway.store import agents, consensus, heartbeats, voting
from gateway.store.consensus import Consensus
from gateway.store.fleet import awaited
from gateway.store.schema import events as event_table
from gateway.store.tx import Tx
from tests.world import BOXES, PAT, TENANT, World, reasons, verdict

BUSY = Deferred("451")


def now(world: World, which: Consensus) -> Consensus:
    return world.store.read(lambda tx: consensus.find(tx, TENANT, which.id), (TENANT,))


def told(world: World) -> list[tuple[str, Any]]:
    """The events of consensus, oldest first, with their status."""
    import json

    rows = sorted(world.rows_of(event_table), key=lambda row: row["id"])
    return [(r["name"], json.loads(r["data"]).get("status")) for r in rows if r["name"].startswith("consensus.")]


async def tick(world: World) -> int:
    return await Clock(world.store, world.nodes[0].writer).look()


def reason(world: World, request: str) -> str:
    return world.record(request).deliveries[0].reason


# --- votes ------------------------------------------------------------------------------------------------------------


async def test_two_of_three_active_agents_decide(world: World) -> None:
    vote = await world.propose()

    first = await world.vote("a", vote.id)
    second = await world.vote("b", vote.id)

    assert (first.status, second.status) == (Status.PENDING, Status.APPROVED)
    found = now(world, vote)
    assert found.status is Status.APPROVED
    assert found.decided_at is not None
    assert told(world) == [
        ("consensus.requested", "pending"),
        ("consensus.voted", "pending"),
        ("consensus.voted", "approved"),
        ("consensus.decided", "approved"),
    ]


async def test_a_vote_replaces_the_agents_earlier_one(world: World) -> None:
    vote = await world.propose()
    await world.vote("a", vote.id, "approve")
    again = await world.vote("a", vote.id, "reject")
    last = await world.vote("b", vote.id, "approve")

    assert (again.status, last.status) == (Status.PENDING, Status.PENDING)
    stand = world.store.read(lambda tx: consensus.votes_on(tx, TENANT, vote.id), (TENANT,))
    assert [(one.agent, one.vote.value) for one in stand] == [
        (world.agent["a"], "reject"),
        (world.agent["b"], "approve"),
    ]


async def test_an_agent_counts_as_active_for_less_than_five_minutes(world: World) -> None:
    vote = await world.propose(seconds=3600)
    world.advance(250)  # the last heartbeat of all was a minute before the start
    only = [(TENANT, world.agent["c"])]
    world.store.write((TENANT,), lambda tx: heartbeats.beat(tx, only))

    first = await world.vote("a", vote.id)

    assert first.status is Status.APPROVED  # c alone is active, and one of one is more than half


async def test_votes_of_agents_that_are_gone_still_count(world: World) -> None:
    vote = await world.propose(seconds=3600)
    await world.vote("a", vote.id, "reject")
    world.advance(250)
    only = [(TENANT, world.agent["c"])]
    world.store.write((TENANT,), lambda tx: heartbeats.beat(tx, only))

    tied = await world.vote("c", vote.id, "approve")
    decided = await world.vote("b", vote.id, "approve")

    assert (tied.status, decided.status) == (Status.PENDING, Status.APPROVED)


async def test_with_nobody_active_one_vote_decides(world: World) -> None:
    vote = await world.propose(seconds=3600)
    world.advance(600)

    assert (await world.vote("b", vote.id, "reject")).status is Status.REJECTED


async def test_a_decision_is_final_and_the_vote_that_comes_late_is_not_recorded(world: World) -> None:
    vote = await world.propose()
    await world.vote("a", vote.id)
    await world.vote("b", vote.id)
    before = world.rows()

    with pytest.raises(ConflictError) as raised:
        await world.vote("c", vote.id, "reject")

    assert (raised.value.slug, raised.value.extra) == ("consensus_closed", {"status": "approved"})
    assert world.rows() == before


async def test_what_has_run_out_is_expired_before_any_sweep(world: World) -> None:
    vote = await world.propose(seconds=60)
    world.advance(61)

    with pytest.raises(ConflictError) as raised:
        await world.vote("a", vote.id)

    assert raised.value.extra == {"status": "expired"}
    assert now(world, vote).status is Status.EXPIRED
    assert told(world) == [("consensus.requested", "pending")]
    assert await tick(world) == 1
    assert told(world)[1:] == [("consensus.expired", "expired")]
    assert await tick(world) == 0


async def test_the_last_votes_of_two_nodes_at_once_make_one_decision(world: World) -> None:
    vote = await world.propose()
    await world.vote("a", vote.id, "approve")
    await world.vote("b", vote.id, "reject")
    other = world.node(threads=True)
    third = world.store.write((TENANT,), lambda tx: agents.register(tx, [agents.Register(TENANT, "d")]))[
        0
    ].agent  # four are active: three must agree
    world.agent["d"] = third.id
    await world.vote("b", vote.id, "approve")

    done = await asyncio.gather(
        world.vote("c", vote.id, "approve"), world.vote("d", vote.id, "reject", node=other), return_exceptions=True
    )

    assert now(world, vote).status is Status.APPROVED
    assert [one for one in told(world) if one[0] == "consensus.decided"] == [("consensus.decided", "approved")]
    assert all(not isinstance(one, Exception) or isinstance(one, ConflictError) for one in done)


async def test_nobody_votes_on_what_is_not_there(world: World) -> None:
    with pytest.raises(NotFoundError):
        await world.vote("a", "nothing")


async def test_pages_go_from_the_newest_on_and_filter_by_how_it_stands_now(world: World) -> None:
    made = [await world.propose(f"p{n}@example.net", seconds=60 if n % 2 else 3600) for n in range(6)]
    world.advance(61)

    def page(status: str | None, contact: str | None, after: tuple[int, str] | None, limit: int) -> Any:  # noqa: ANN401
        return world.store.read(
            lambda tx: consensus.page(tx, TENANT, status, contact, after=after, limit=limit), (TENANT,)
        )

    first, place = page(None, None, None, 4)
    rest, end = page(None, None, place, 4)
    expired, _ = page("expired", None, None, 10)
    one, _ = page("pending", "p2@example.net", None, 10)
    assert [found.id for found in [*first, *rest]] == [found.id for found in reversed(made)]
    assert end is None
    assert [found.contact for found in expired] == ["p5@example.net", "p3@example.net", "p1@example.net"]
    assert [found.id for found in one] == [made[2].id]


# --- mail that waits --------------------------------------------------------------------------------------------------


async def test_mail_is_held_until_the_votes_agree_and_goes_then(world: World) -> None:
    vote = await world.propose()
    receipt = await world.send(consensus=vote.id)
    early = await world.look()
    await world.vote("a", vote.id)
    held = world.state(receipt)
    await world.vote("b", vote.id)
    due = world.state(receipt)
    await world.look()

    assert verdict(receipt) == ("hold", "consensus_pending")
    assert (early, held, due) == (0, State.HELD, State.SCHEDULED)
    assert world.state(receipt) is State.QUEUED
    assert await world.relay(await world.claim_of(receipt)) is State.RELAYED


async def test_mail_ends_blocked_where_the_agents_decide_against_it(world: World) -> None:
    vote = await world.propose()
    receipt = await world.send(consensus=vote.id)
    for agent in ("a", "b"):
        await world.vote(agent, vote.id, "reject")
    await world.look()

    assert (world.state(receipt), reason(world, receipt.record.id)) == (State.BLOCKED, "consensus_rejected")


async def test_mail_ends_blocked_where_the_time_runs_out(world: World) -> None:
    vote = await world.propose(seconds=60)
    receipt = await world.send(consensus=vote.id)
    world.advance(61)
    await tick(world)
    await world.look()

    assert (world.state(receipt), reason(world, receipt.record.id)) == (State.BLOCKED, "consensus_required")


async def test_what_was_decided_before_decides_at_acceptance(world: World) -> None:
    yes, no = await world.propose(), await world.propose()
    for agent in ("a", "b"):
        await world.vote(agent, yes.id, "approve")
        await world.vote(agent, no.id, "reject")

    refused = await world.send(consensus=no.id)
    unknown = await world.send(consensus="nobody's")
    taken = await world.send(consensus=yes.id)

    assert verdict(refused) == ("refuse", "consensus_rejected")
    assert verdict(unknown) == ("refuse", "consensus_required")
    assert verdict(taken) == ("pass", None)


async def test_another_tenants_consensus_is_unknown(world: World) -> None:
    world.store.write((), lambda tx: agents.add_tenant(tx, "elsewhere"))
    wish = voting.New("elsewhere", "agent_x", "write", PAT, PAT, "why", 300)
    (theirs,) = world.store.write(("elsewhere",), lambda tx: voting.create(tx, [wish]))

    receipt = await world.send(consensus=theirs.id)

    assert receipt.record.decision["findings"][0]["extra"]["consensus"] == "unknown"


async def test_a_schedule_is_kept_by_mail_that_was_let_go(world: World) -> None:
    vote = await world.propose()
    receipt = await world.send(consensus=vote.id, not_before=world.now + timedelta(hours=1))
    for agent in ("a", "b"):
        await world.vote(agent, vote.id)
    await world.look()
    waiting = world.state(receipt)
    world.advance(3601)
    await world.look()

    assert (waiting, world.state(receipt)) == (State.SCHEDULED, State.QUEUED)


async def test_all_else_is_judged_again_when_the_votes_agree(world: World) -> None:
    vote = await world.propose()
    receipt = await world.send(consensus=vote.id)
    await world.suppress()
    for agent in ("a", "b"):
        await world.vote(agent, vote.id)
    await world.look()

    assert (world.state(receipt), reason(world, receipt.record.id)) == (State.BLOCKED, "suppressed")


async def test_mail_of_a_paused_mailbox_stays_and_meets_the_decision_when_that_goes_on(world: World) -> None:
    vote = await world.propose()
    receipt = await world.send(consensus=vote.id)
    await world.pause_mailbox()
    for agent in ("a", "b"):
        await world.vote(agent, vote.id)
    await world.look()
    paused = (world.state(receipt), reason(world, receipt.record.id))
    await world.resume_mailbox()
    await world.look()

    assert paused == (State.HELD, "mailbox_paused")
    assert world.state(receipt) is State.QUEUED


async def test_a_persons_word_outlasts_the_votes(world: World) -> None:
    vote = await world.propose(seconds=60)
    later = world.now + timedelta(hours=1)
    at_once = await world.send(consensus=vote.id)
    other = await world.send(
        to="cee@example.net", consensus=(await world.propose("cee@example.net", 60)).id, not_before=later
    )
    for one in (at_once, other):
        await world.resolve(one.record.id, "approve")
    assert (world.state(at_once), world.state(other)) == (State.QUEUED, State.SCHEDULED)

    await world.relay(await world.claim_of(at_once), BUSY)
    world.advance(3700)
    await tick(world)
    await world.look()

    assert (world.state(at_once), world.state(other)) == (State.QUEUED, State.QUEUED)
    assert world.record(other.record.id).decision["consensus"]


async def test_a_person_may_reject_what_waits_for_votes(world: World) -> None:
    vote = await world.propose()
    receipt = await world.send(consensus=vote.id)

    await world.resolve(receipt.record.id, "reject")
    for agent in ("a", "b"):
        await world.vote(agent, vote.id)
    await world.look()

    assert world.state(receipt) is State.CANCELLED


async def test_a_mail_that_has_gone_to_one_of_two_is_tried_again_for_the_other(world: World) -> None:
    vote = await world.propose()
    for agent in ("a", "b"):
        await world.vote(agent, vote.id)
    receipt = await world.send(to=[PAT, "bee@example.net"], consensus=vote.id)
    for claim in await world.claim():
        await world.relay(claim, None if claim.address == PAT else BUSY)
    world.advance(700)
    await world.look()

    assert world.states(receipt.record.id) == [State.RELAYED, State.QUEUED]


async def test_a_refused_key_is_tried_again_with_another_consensus(world: World) -> None:
    no, yes = await world.propose(), await world.propose()
    for agent in ("a", "b"):
        await world.vote(agent, no.id, "reject")
    refused = await world.send(key="k", consensus=no.id)
    held = await world.send(key="k", consensus=yes.id)
    again = await world.send(key="k", consensus=no.id)

    assert verdict(refused) == ("refuse", "consensus_rejected")
    assert (held.record.id, verdict(held)) == (refused.record.id, ("hold", "consensus_pending"))
    assert (again.replayed, verdict(again)) == (True, ("hold", "consensus_pending"))
    assert [row["consensus"] for row in world.rows_of(awaited)] == [yes.id]


async def test_a_mailbox_demands_a_consensus(world: World) -> None:
    box = world.box[BOXES[0]].id
    world.store.write((TENANT,), lambda tx: agents.set_mailbox_options(tx, TENANT, box, {"require_consensus": True}))
    vote = await world.propose()

    without = await world.send()
    with_it = await world.send(consensus=vote.id)
    free = await world.send(to="bee@example.net", mailbox=BOXES[1])

    assert reasons(without) == ["consensus_required"]
    assert reasons(with_it) == ["consensus_pending"]
    assert reasons(free) == []


# --- the clock --------------------------------------------------------------------------------------------------------


async def test_a_job_that_fails_harms_no_other_and_the_store_that_is_away_ends_nothing(world: World) -> None:
    vote = await world.propose(seconds=60)
    world.advance(61)
    heard, calls = asyncio.Event(), 0

    def fails(_: Tx, tenants: Sequence[str]) -> list[Any]:
        return [ValueError("broken")] * len(tenants)

    def away(tx: Tx) -> list[str]:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise StoreUnavailableError("away")
        return voting.overdue(tx)

    def expire(tx: Tx, tenants: Sequence[str]) -> list[int]:
        done = voting.expire(tx, tenants)
        heard.set()
        return done

    jobs = (Job("broken", lambda _: [TENANT], fails), Job("votes", away, expire))
    clock = Clock(world.store, world.nodes[0].writer, jobs)
    clock.start()
    await asyncio.wait_for(heard.wait(), 20)
    await clock.stop()

    assert calls > 1
    assert ("consensus.expired", "expired") in told(world)
    assert now(world, vote).status is Status.EXPIRED
