"""The unknown outcome: nothing guesses; a person, a setting or evidence decides (SEMANTICS 5)."""

import asyncio

import pytest

from gateway.core.delivery import Deferred, Relayed, State, Unknown
from gateway.core.errors import ConflictError, NotFoundError
from gateway.core.record import Receipt
from gateway.intake.waiting import ReleaseLoop
from gateway.settings import split_unknown
from gateway.store import agents, schema, waiting
from gateway.store.outbox import Claim
from tests.databases import Databases
from tests.world import BOXES, OK, PAT, TENANT, World, a_world, reasons, verdict

HOUR = 3600


async def unknown(world: World, **changes: object) -> tuple[Receipt, Claim]:
    """A send whose only delivery is unknown, with its claim."""
    receipt = await world.send(**changes)  # type: ignore[arg-type]
    claim = await world.claim_of(receipt)
    assert await world.relay(claim, Unknown("silence")) is State.UNKNOWN
    return receipt, claim


async def test_nothing_sends_the_unknown_again_by_itself(world: World) -> None:
    receipt, _ = await unknown(world)
    for _ in range(5):
        world.advance(24 * HOUR)
        await world.look()

    assert world.state(receipt) is State.UNKNOWN
    assert await world.claim() == []


async def test_a_repeat_with_the_same_key_tells_the_same_request(world: World) -> None:
    receipt, _ = await unknown(world, key="once")

    again = await world.send(key="once")

    assert (again.record.id, again.replayed) == (receipt.record.id, True)
    assert world.state(again) is State.UNKNOWN


async def test_it_counts_as_contacted_but_holds_nobody_off(world: World) -> None:
    await unknown(world)

    assert verdict(await world.send("b")) == ("defer", "cooldown")
    assert (await world.lease("b")).token == 1


async def test_the_same_content_to_the_same_person_is_held_and_another_is_not(world: World) -> None:
    first, _ = await unknown(world)
    world.advance(HOUR)

    same = await world.send("b")
    other = await world.send("b", subject="another thing")

    assert verdict(same) == ("hold", "unknown_outstanding")
    assert same.record.decision["findings"][0]["extra"]["unknownRequestId"] == first.record.id
    assert world.state(same) is State.HELD
    assert verdict(other) == ("pass", None)


async def test_an_event_names_it(world: World) -> None:
    receipt, _ = await unknown(world)

    names = [row["name"] for row in world.rows_of(schema.events) if row["send_id"] == receipt.record.id]

    assert "delivery.unknown" in names


# --- a person decides ---------------------------------------------------------------------------------------------------


async def test_a_retry_is_judged_again_and_is_not_stopped_by_its_own_stamp(world: World) -> None:
    receipt, _ = await unknown(world)

    await world.resolve(receipt.record.id, "retry")
    before = await world.claim()
    await world.look()
    claim = await world.claim_of(receipt)

    assert before == []
    assert claim.claim_no == 2

    assert await world.relay(claim) is State.RELAYED


async def test_a_retry_meets_what_forbids_it_now(world: World) -> None:
    receipt, _ = await unknown(world)
    await world.resolve(receipt.record.id, "retry")
    await world.suppress()

    assert world.state(receipt) is State.BLOCKED


async def test_a_retry_waits_for_anothers_lease(world: World) -> None:
    receipt, _ = await unknown(world)
    lease = await world.lease("b", seconds=100)
    await world.resolve(receipt.record.id, "retry")
    await world.look()
    waiting = world.record(receipt.record.id).deliveries[0]
    world.advance(101)
    await world.look()

    assert (waiting.state, waiting.due_at) == (State.QUEUED, lease.expires_at)
    assert (await world.claim_of(receipt)).claim_no == 2


@pytest.mark.parametrize(
    ("decision", "state"), [("assume_sent", State.RELAYED), ("cancel", State.CANCELLED), ("retry", State.QUEUED)]
)
async def test_a_decision_is_made_once_and_stands_in_the_audit(world: World, decision: str, state: State) -> None:
    receipt, _ = await unknown(world)

    record = await world.resolve(receipt.record.id, decision)
    with pytest.raises(ConflictError) as refused:
        await world.resolve(receipt.record.id, decision)

    assert record.deliveries[0].state is state
    assert refused.value.slug == "not_resolvable"
    (event,) = [row for row in world.rows_of(schema.events) if row["name"] == "send.resolved"]
    assert event["actor"] == "operator"
    assert decision in event["data"]


async def test_eight_that_decide_at_once_on_two_nodes_make_one(world: World) -> None:
    receipt, _ = await unknown(world)
    nodes = [world.node(threads=True), world.node(threads=True)]

    results = await asyncio.gather(
        *(world.resolve(receipt.record.id, "retry", node=nodes[n % 2]) for n in range(8)), return_exceptions=True
    )

    assert sum(isinstance(result, ConflictError) for result in results) == 7
    assert world.rows_of(schema.deliveries)[0]["tried"] == 1
    await world.look()
    assert len(await world.claim()) == 1


async def test_eight_different_decisions_at_once_make_one(world: World) -> None:
    receipt, _ = await unknown(world)
    decisions = ["retry", "assume_sent", "cancel", "retry"] * 2

    results = await asyncio.gather(
        *(world.resolve(receipt.record.id, decision) for decision in decisions), return_exceptions=True
    )

    assert sum(isinstance(result, ConflictError) for result in results) == 7
    assert world.state(receipt) is State.QUEUED


async def test_what_is_not_unknown_cannot_be_resolved(world: World) -> None:
    receipt = await world.send()

    with pytest.raises(ConflictError):
        await world.resolve(receipt.record.id, "retry")
    with pytest.raises(NotFoundError):
        await world.resolve("req_nobody", "retry")


async def test_only_the_unknown_recipients_of_a_send_are_decided(world: World) -> None:
    receipt = await world.send(to=[PAT, "other@example.net"])
    mine, other = await world.claim()
    await world.relay(mine, Unknown("silence"))
    await world.relay(other)

    await world.resolve(receipt.record.id, "cancel")

    assert world.states(receipt.record.id) == [State.CANCELLED, State.RELAYED]


async def test_a_late_yes_after_a_cancel_is_only_kept(world: World) -> None:
    receipt, claim = await unknown(world)
    await world.resolve(receipt.record.id, "cancel")

    assert await world.settle(claim, Relayed(OK)) is None
    assert world.state(receipt) is State.CANCELLED
    assert world.rows_of(schema.attempts)[0]["outcome"] == "relayed"


@pytest.mark.parametrize("decision", ["cancel", "retry"])
async def test_what_may_have_arrived_is_never_said_to_be_cancelled(world: World, decision: str) -> None:
    receipt, claim = await unknown(world)
    await world.resolve(receipt.record.id, decision)

    cancelled, record = await world.cancel(receipt.record.id)
    await world.settle(claim, Relayed(OK))

    assert [d.state for d in record.deliveries] == [State.CANCELLED]
    assert not cancelled
    assert not (await world.cancel(receipt.record.id))[0]


async def test_after_a_plain_no_it_is_known_that_nothing_has_arrived(world: World) -> None:
    receipt, claim = await unknown(world)
    await world.settle(claim, Deferred("451"))

    cancelled, record = await world.cancel(receipt.record.id)

    assert ([d.state for d in record.deliveries], cancelled) == ([State.CANCELLED], True)


# --- a setting decides --------------------------------------------------------------------------------------------------


async def test_retry_once_after_tries_once_and_not_before(databases: Databases) -> None:
    async with a_world(databases, unknown="retry_once_after:1h") as world:
        receipt, _ = await unknown(world)
        world.advance(HOUR - 60)
        await world.look()
        early = world.state(receipt)
        world.advance(120)
        await world.look()
        await world.look()
        again = await world.claim_of(receipt)
        await world.relay(again, Unknown("silence"))
        world.advance(10 * HOUR)
        await world.look()

        assert early is State.UNKNOWN
        assert again.claim_no == 2
        assert world.state(receipt) is State.UNKNOWN


async def test_two_processes_that_read_the_same_page_retry_once(databases: Databases) -> None:
    async with a_world(databases, unknown="retry_once_after:1h") as world:
        receipt, _ = await unknown(world)
        world.advance(HOUR + 60)
        other = world.node()
        (one,) = other.store.read(lambda tx: waiting.open_page(tx, None, limit=500))
        await world.look()
        await world.look()
        await world.relay(await world.claim_of(receipt), Unknown("silence"))
        loop = ReleaseLoop(other.intake, split_unknown, world.unknown)
        await loop._ripen(one)
        await world.look(other)

        assert world.state(receipt) is State.UNKNOWN
        assert await world.claim() == []


async def test_assume_sent_after_closes_the_case(databases: Databases) -> None:
    async with a_world(databases, unknown="assume_sent_after:24h") as world:
        receipt, _ = await unknown(world)
        world.advance(23 * HOUR)
        await world.look()
        early = world.state(receipt)
        world.advance(2 * HOUR)
        await world.look()

        assert early is State.UNKNOWN
        (delivery,) = world.record(receipt.record.id).deliveries
        assert (delivery.state, delivery.assumed) == (State.RELAYED, True)


async def test_a_mailbox_may_have_its_own_setting_by_kind(databases: Databases) -> None:
    async with a_world(databases, unknown="hold") as world:
        options = {"may_reply": True, "unknown": {"reply": "assume_sent_after:1h"}}
        world.store.write((TENANT,), lambda tx: agents.set_mailbox_options(tx, TENANT, world.box[BOXES[0]].id, options))
        outreach, _ = await unknown(world)
        reply, _ = await unknown(world, to="other@example.net", kind="reply")
        world.advance(2 * HOUR)
        await world.look()

        assert world.state(outreach) is State.UNKNOWN
        assert world.state(reply) is State.RELAYED


# --- held mail and a person's word --------------------------------------------------------------------------------------


async def held(world: World) -> Receipt:
    """A send that is held because the same mail is unknown."""
    await unknown(world)
    world.advance(HOUR)
    receipt = await world.send("b")
    assert world.state(receipt) is State.HELD
    return receipt


async def test_an_approved_hold_goes(world: World) -> None:
    receipt = await held(world)

    record = await world.resolve(receipt.record.id, "approve")

    assert record.deliveries[0].state is State.QUEUED
    assert record.decision["findings"][0]["approved"]
    assert await world.relay(await world.claim_of(receipt)) is State.RELAYED


async def test_approval_satisfies_the_hold_and_all_else_is_judged_again(world: World) -> None:
    receipt = await held(world)
    await world.suppress()

    record = await world.resolve(receipt.record.id, "approve")

    assert record.deliveries[0].state is State.BLOCKED
    assert sorted(reasons(record)) == ["suppressed", "unknown_outstanding"]


async def test_approval_of_what_must_still_wait_lets_it_wait(world: World) -> None:
    receipt = await held(world)
    lease = await world.lease("c", seconds=100)

    record = await world.resolve(receipt.record.id, "approve")
    world.advance(101)
    await world.look()

    assert (record.deliveries[0].state, record.deliveries[0].due_at) == (State.SCHEDULED, lease.expires_at)
    assert world.state(receipt) is State.QUEUED


async def test_approval_satisfies_exactly_the_hold_that_it_names(world: World) -> None:
    await unknown(world, to="p1@example.net")
    world.advance(HOUR)
    receipt = await world.send("b", to=["p1@example.net", "p2@example.net"])
    other, _ = await unknown(world, to="p2@example.net")
    world.advance(HOUR)

    record = await world.resolve(receipt.record.id, "approve")
    again = await world.resolve(receipt.record.id, "approve")

    assert {d.state for d in record.deliveries} == {State.HELD}
    assert [f["approved"] for f in record.decision["findings"]] == [True, False]
    assert record.decision["findings"][1]["extra"]["unknownRequestId"] == other.record.id
    assert {d.state for d in again.deliveries} == {State.QUEUED}


async def test_an_approval_does_not_carry_over_to_another_content_under_the_same_key(world: World) -> None:
    await unknown(world)
    world.advance(HOUR)
    receipt = await world.send("b", key="once")
    await world.suppress("gone@example.net")
    await world.resolve(receipt.record.id, "approve")
    entry, _ = await world.suppress()
    await world.unsuppress(entry.id)

    again = await world.send("b", key="once", subject="another thing")

    assert again.record.id == receipt.record.id
    assert again.record.approved == frozenset()


async def test_a_rejected_hold_is_cancelled(world: World) -> None:
    receipt = await held(world)

    record = await world.resolve(receipt.record.id, "reject")

    assert record.deliveries[0].state is State.CANCELLED
    with pytest.raises(ConflictError):
        await world.resolve(receipt.record.id, "approve")


async def test_approving_eight_times_at_once_lets_it_go_once(world: World) -> None:
    receipt = await held(world)

    results = await asyncio.gather(
        *(world.resolve(receipt.record.id, "approve") for _ in range(8)), return_exceptions=True
    )

    assert sum(isinstance(result, ConflictError) for result in results) == 7
    assert world.state(receipt) is State.QUEUED
