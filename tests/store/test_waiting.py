"""Scheduled and held mail: its release, its lateness, and mail that has been queued for long (ARCHITECTURE 6, 8)."""

import asyncio
from datetime import timedelta

import pytest

from gateway.core.delivery import Deferred, State
from gateway.core.errors import ConflictError
from gateway.intake.intake import Terms
from gateway.store import records, revoke
from tests.databases import Databases
from tests.world import BOXES, PAT, START, TENANT, World, a_world, verdict

BUSY = Deferred("451")
DAY = 86_400


def at(seconds: float) -> "object":
    """A time after the world's start."""
    return START + timedelta(seconds=seconds)


async def test_scheduled_mail_goes_when_its_time_has_come_and_not_before(world: World) -> None:
    receipt = await world.send(not_before=at(1000))
    world.advance(990)
    early = await world.look()
    state = world.state(receipt)
    world.advance(20)
    await world.look()

    assert (early, state) == (0, State.SCHEDULED)
    assert world.state(receipt) is State.QUEUED
    assert await world.relay(await world.claim_of(receipt)) is State.RELAYED


async def test_mail_scheduled_for_the_past_goes_at_once(world: World) -> None:
    receipt = await world.send(not_before=at(-1000))

    assert world.state(receipt) is State.QUEUED


async def test_a_release_is_a_decision_of_its_own(world: World) -> None:
    receipt = await world.send(not_before=at(1000))
    world.advance(1001)
    await world.look()

    moments = world.store.read(
        lambda tx: [row["moment"] for row in records.decisions_of(tx, TENANT, receipt.record.id)]
    )

    assert moments == ["acceptance", "release"]
    assert world.record(receipt.record.id).decision_no == 2


async def test_a_release_that_must_wait_moves_only_the_time(world: World) -> None:
    other = await world.send("b", not_before=at(1000))
    world.advance(990)
    first = await world.send("a")
    await world.relay(await world.claim_of(first))
    world.advance(11)
    await world.look()

    (delivery,) = world.record(other.record.id).deliveries
    assert (delivery.state, delivery.reason) == (State.SCHEDULED, "cooldown")
    assert delivery.due_at is not None
    assert 585 <= (delivery.due_at - world.now).total_seconds() <= 600
    world.advance(600)
    await world.look()
    assert world.state(other) is State.QUEUED


async def test_a_release_is_never_asked_again_in_the_past(world: World) -> None:
    """Each look at mail that must wait has to move its time on, or the loop would spin."""
    receipt = await world.send("a", not_before=at(1000))
    await world.send("b", kind="reply")
    world.advance(1001)
    await world.look()

    due_at = world.record(receipt.record.id).deliveries[0].due_at

    assert world.state(receipt) is State.SCHEDULED
    assert due_at is not None
    assert due_at > world.now
    assert await world.look() == 0


async def test_released_mail_sees_only_flights_that_began_before_its_own(world: World) -> None:
    """Mail of two agents, both long queued, does not wait for each other in a circle."""
    first = await world.send("a")
    world.advance(1)
    await world.relay(await world.claim_of(first), BUSY)
    second = await world.send("a", kind="reply", subject="more")
    world.advance(700)
    await world.look()

    assert [claim.send for claim in await world.claim()] == [first.record.id, second.record.id]


async def test_long_queued_mail_is_judged_again_and_may_be_blocked(world: World) -> None:
    receipt = await world.send()
    world.advance(700)
    world.store.write((TENANT,), lambda tx: _close(world, tx))
    await world.look()

    assert world.state(receipt) is State.BLOCKED
    assert world.record(receipt.record.id).deliveries[0].reason == "mailbox_not_active"


def _close(world: World, tx: object) -> None:
    from gateway.store import agents

    agents.set_mailbox_status(tx, TENANT, world.box[BOXES[0]].id, "error")  # type: ignore[arg-type]


async def test_an_operators_word_holds_at_every_release(world: World) -> None:
    await world.lease("b", seconds=10 * DAY)
    receipt = await world.send("a", override="a person says so", not_before=at(1000))
    world.advance(1001)
    await world.look()
    await world.relay(await world.claim_of(receipt), BUSY)
    world.advance(3601)
    await world.look()

    assert world.record(receipt.record.id).decision_no == 3
    assert await world.relay(await world.claim_of(receipt)) is State.RELAYED


async def test_a_release_asks_neither_key_nor_quota(databases: Databases) -> None:
    async with a_world(databases, {"quota": {"tenant_hour": 1}}) as world:
        from gateway.store import keys

        receipt = await world.send(not_before=at(60))
        world.store.write((TENANT,), lambda tx: keys.revoke_key(tx, TENANT, world.key))
        world.advance(61)
        await world.look()

        assert world.state(receipt) is State.QUEUED


async def test_eight_releases_at_once_release_once(world: World) -> None:
    receipt = await world.send(not_before=at(1000))
    world.advance(1001)
    nodes = [world.node(threads=True), world.node(threads=True)]

    done = await asyncio.gather(*(nodes[n % 2].intake.release(TENANT, receipt.record.id) for n in range(8)))

    assert sum(one is not None for one in done) == 1
    assert world.record(receipt.record.id).decision_no == 2


async def test_mail_that_is_not_due_is_not_released(world: World) -> None:
    receipt = await world.send(not_before=at(1000))

    assert await world.nodes[0].intake.release(TENANT, receipt.record.id) is None
    assert world.state(receipt) is State.SCHEDULED


# --- lateness -----------------------------------------------------------------------------------------------------------


async def test_scheduled_mail_that_is_too_late_expires(world: World) -> None:
    receipt = await world.send(not_before=at(1000))
    world.advance(1000 + DAY + 1)
    await world.look()

    assert world.state(receipt) is State.EXPIRED
    assert world.record(receipt.record.id).deliveries[0].reason == "too_late"


async def test_lateness_counts_from_the_schedule_and_not_from_acceptance(world: World) -> None:
    receipt = await world.send(not_before=at(2 * DAY))
    world.advance(2 * DAY + 1)
    await world.look()

    assert world.state(receipt) is State.QUEUED


async def test_lateness_of_a_schedule_that_had_passed_counts_from_acceptance(world: World) -> None:
    held = await world.send(to="third@example.net", not_before=at(-3 * DAY))
    plain = await world.send(to="fourth@example.net", not_before=at(-3 * DAY), mailbox=BOXES[1])
    await world.pause_mailbox()
    await world.pause_relay()
    world.advance(DAY - 60)
    await world.look()
    before = [world.state(held), world.state(plain)]
    world.advance(720)
    await world.look()

    assert before == [State.HELD, State.QUEUED]
    assert [world.state(held), world.state(plain)] == [State.EXPIRED, State.EXPIRED]


async def test_queued_mail_without_an_attempt_expires(world: World) -> None:
    receipt = await world.send()
    await world.pause_relay()
    world.advance(DAY + 1)
    await world.look()

    assert world.state(receipt) is State.EXPIRED


async def test_mail_with_an_attempt_does_not_expire(world: World) -> None:
    receipt = await world.send()
    await world.relay(await world.claim_of(receipt), BUSY)
    world.advance(DAY + 1)
    await world.look()

    assert world.state(receipt) is State.QUEUED


async def test_held_mail_that_is_too_late_expires(world: World) -> None:
    receipt = await world.send()
    await world.pause_mailbox()
    world.advance(DAY - 10)
    await world.look()
    before = world.state(receipt)
    world.advance(20)
    await world.look()

    assert (before, world.state(receipt)) == (State.HELD, State.EXPIRED)


async def test_mail_that_must_wait_beyond_its_lateness_expires_then(databases: Databases) -> None:
    async with a_world(databases, terms=Terms(max_lateness=500)) as world:
        receipt = await world.send("a", not_before=at(100))
        await world.lease("b", seconds=10_000)
        world.advance(101)
        await world.look()
        waiting = world.record(receipt.record.id).deliveries[0]
        world.advance(500)
        await world.look()

        assert waiting.due_at == at(600)
        assert world.state(receipt) is State.EXPIRED


async def test_approval_of_what_is_too_late_expires_it(world: World) -> None:
    receipt = await world.send()
    await world.pause_mailbox()
    world.advance(DAY + 1)

    await world.resolve(receipt.record.id, "approve")

    assert world.state(receipt) is State.EXPIRED


# --- a paused mailbox ---------------------------------------------------------------------------------------------------


async def test_a_paused_mailbox_holds_what_is_queued_or_claimed_and_no_more(world: World) -> None:
    queued = await world.send()
    claimed = await world.send(to="p1@example.net")
    permitted = await world.send(to="p2@example.net")
    elsewhere = await world.send(to="p3@example.net", mailbox=BOXES[1])
    for claim in await world.claim():
        if claim.send == permitted.record.id:
            await world.permit(claim)
        elif claim.send != claimed.record.id:
            await world.settle(claim, BUSY)

    count = await world.pause_mailbox()

    assert count == 2
    states = [world.state(one) for one in (queued, claimed, permitted, elsewhere)]
    assert states == [State.HELD, State.HELD, State.PERMITTED, State.QUEUED]
    assert verdict(await world.send(to="p4@example.net")) == ("refuse", "mailbox_paused")


async def test_held_mail_holds_nobody_off(world: World) -> None:
    await world.send("a")
    await world.pause_mailbox()

    assert (await world.lease("b")).withdrew == ()
    assert verdict(await world.send("b", mailbox=BOXES[1])) == ("pass", None)


# --- cancel -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [State.QUEUED, State.SCHEDULED, State.HELD, State.CLAIMED])
async def test_what_has_no_permit_can_be_cancelled(world: World, state: State) -> None:
    receipt = await world.send(not_before=at(1000) if state is State.SCHEDULED else None)
    claims = await world.claim() if state is State.CLAIMED else []
    if state is State.HELD:
        await world.pause_mailbox()
    before = world.state(receipt)

    cancelled, record = await world.cancel(receipt.record.id)

    assert before is state
    assert cancelled
    assert [d.state for d in record.deliveries] == [State.CANCELLED]
    assert [await world.permit(claim) for claim in claims] == ["cancelled"] * len(claims)
    assert (await world.cancel(receipt.record.id))[0]


async def test_permitted_mail_is_not_cancelled_but_never_goes_a_second_time(world: World) -> None:
    receipt = await world.send()
    claim = await world.claim_of(receipt)
    await world.permit(claim)

    cancelled, record = await world.cancel(receipt.record.id)

    assert not cancelled
    assert [d.state for d in record.deliveries] == [State.PERMITTED]
    assert await world.settle(claim, BUSY) is State.CANCELLED


async def test_relayed_and_blocked_mail_cannot_be_cancelled(world: World) -> None:
    receipt = await world.send()
    await world.relay(await world.claim_of(receipt))
    await world.suppress("gone@example.net")
    refused = await world.send(to="gone@example.net")

    assert not (await world.cancel(receipt.record.id))[0]
    assert not (await world.cancel(refused.record.id))[0]
    assert (world.state(receipt), world.state(refused)) == (State.RELAYED, State.BLOCKED)


async def test_of_several_recipients_those_without_a_permit_are_stopped(world: World) -> None:
    receipt = await world.send(to=[PAT, "p1@example.net", "p2@example.net"])
    first, second, _ = await world.claim()
    await world.relay(first)
    await world.permit(second)

    cancelled, record = await world.cancel(receipt.record.id)

    assert not cancelled
    assert [d.state for d in record.deliveries] == [State.RELAYED, State.PERMITTED, State.CANCELLED]


async def test_a_cancel_succeeds_where_the_rest_had_failed_already(world: World) -> None:
    """None was permitted, relayed or unknown: nothing of it has gone or can go."""
    receipt = await world.send(to=[PAT, "other@example.net"])
    await world.suppress()

    cancelled, record = await world.cancel(receipt.record.id)

    assert cancelled
    assert [d.state for d in record.deliveries] == [State.BLOCKED, State.CANCELLED]


async def test_a_revoked_keys_mail_is_not_called_cancelled_where_it_may_have_left(world: World) -> None:
    permitted, queued = await world.send(), await world.send(to="other@example.net")
    await world.permit(await world.claim_of(permitted))

    _, ids = world.store.write(
        (world.tenant,), lambda tx: revoke.revoke(tx, world.tenant, world.key, cancel_queued=True)
    )

    assert ids == [queued.record.id]
    assert (world.state(permitted), world.state(queued)) == (State.PERMITTED, State.CANCELLED)


async def test_a_cancel_and_a_permit_at_once_have_one_winner(world: World) -> None:
    nodes = [world.node(threads=True), world.node(threads=True)]
    for n in range(10):
        receipt = await world.send(to=f"p{n}@example.net")
        claim = await world.claim_of(receipt)

        word, (cancelled, _) = await asyncio.gather(
            world.permit(claim, nodes[0]), world.cancel(receipt.record.id, nodes[1])
        )

        assert cancelled is (word is not None)
        if word is None:
            assert await world.settle(claim, BUSY) is State.CANCELLED
        assert world.state(receipt) is State.CANCELLED


async def test_a_cancelled_send_cannot_be_released_or_approved(world: World) -> None:
    receipt = await world.send(not_before=at(1000))
    await world.cancel(receipt.record.id)
    world.advance(1001)
    await world.look()

    assert world.state(receipt) is State.CANCELLED
    with pytest.raises(ConflictError):
        await world.resolve(receipt.record.id, "approve")
