"""Mail in flight and who may take a contact over (ARCHITECTURE 10)."""

import asyncio
from datetime import timedelta

import pytest

from gateway.core.delivery import Deferred, GivenBack, Relayed, State, Unknown
from gateway.store import schema
from gateway.store.contacts import Held, Lease
from tests.world import OK, PAT, START, World, verdict

OLD = 3601
BUSY = Deferred("451")


async def test_young_mail_in_flight_refuses_the_lease_and_the_send_of_others(world: World) -> None:
    receipt = await world.send("a")

    held = await world.acquire("b")
    theirs = await world.send("b", kind="reply")

    assert isinstance(held, Held)
    assert (held.agent_name, held.kind, held.request) == ("a", "send", receipt.record.id)
    assert held.until == receipt.record.created_at + timedelta(seconds=3600)
    assert held.retry_at <= held.until
    assert verdict(theirs) == ("defer", "lease_conflict")
    holder = theirs.record.decision["findings"][0]["extra"]["leaseHolder"]
    assert (holder["kind"], holder["requestId"], holder["agentName"]) == ("send", receipt.record.id, "a")


async def test_the_same_agent_passes_and_meets_only_the_cooldown(world: World) -> None:
    await world.send("a")

    assert isinstance(await world.acquire("a"), Lease)
    assert verdict(await world.send("a")) == ("defer", "cooldown")
    assert verdict(await world.send("a", kind="reply")) == ("pass", None)


async def test_a_flight_moves_no_token(world: World) -> None:
    lease = await world.lease("a")
    await world.send("a", token=lease.token)

    assert (await world.lease("a")).token == lease.token
    assert world.rows_of(schema.contacts)[0]["token"] == lease.token


async def test_transactional_mail_neither_holds_nor_is_held(world: World) -> None:
    await world.send("a", kind="transactional")
    await world.lease("b")

    assert verdict(await world.send("a", kind="transactional")) == ("pass", None)
    assert [world.states(f"req_{n:06d}") for n in (1, 2)] == [[State.QUEUED], [State.QUEUED]]


@pytest.mark.parametrize("claimed", [False, True], ids=["queued", "claimed"])
async def test_taking_over_old_mail_blocks_it_as_stale_and_says_so_to_both(world: World, *, claimed: bool) -> None:
    receipt = await world.send("a")
    claims = await world.claim() if claimed else []
    world.advance(OLD)

    lease = await world.lease("b")

    assert lease.withdrew == (receipt.record.id,)
    assert world.state(receipt) is State.BLOCKED
    assert world.record(receipt.record.id).deliveries[0].reason == "stale_fencing_token"
    assert [await world.permit(claim) for claim in claims] == ["stale_fencing_token"] * len(claims)
    assert "delivery.blocked" in [row["name"] for row in world.rows_of(schema.events) if row["send_id"]]


async def test_permitted_mail_is_not_taken_over_at_any_age(world: World) -> None:
    receipt = await world.send("a")
    await world.permit(await world.claim_of(receipt))
    world.advance(10 * OLD)

    held = await world.acquire("b")

    assert isinstance(held, Held)
    assert (held.kind, held.request) == ("send", receipt.record.id)
    assert held.until > world.now - timedelta(seconds=1)


async def test_a_deferral_does_not_make_a_flight_young_again(world: World) -> None:
    receipt = await world.send("a")
    world.advance(500)
    await world.relay(await world.claim_of(receipt), BUSY)
    world.advance(OLD - 500)
    await world.look()

    assert (await world.lease("b")).withdrew == (receipt.record.id,)


async def test_the_flight_of_scheduled_mail_begins_at_its_first_release(world: World) -> None:
    receipt = await world.send("a", not_before=START + timedelta(seconds=1000))
    free = await world.lease("b", seconds=10)
    world.advance(1001)
    await world.look()

    held = await world.acquire("c")

    assert free.withdrew == ()
    assert isinstance(held, Held)
    assert held.request == receipt.record.id
    assert (held.until - START).total_seconds() > 1001 + 3599


# --- an operator --------------------------------------------------------------------------------------------------------


async def test_an_operator_takes_a_living_lease_and_young_mail_at_once(world: World) -> None:
    old = await world.lease("a")
    queued = await world.send("a", token=old.token)

    new = await world.lease("b", operator_reason="a handed it over")

    assert new.token == old.token + 1
    assert new.withdrew == (queued.record.id,)
    assert world.state(queued) is State.BLOCKED
    assert verdict(await world.send("a", token=old.token)) == ("refuse", "stale_fencing_token")
    (event,) = [
        row for row in world.rows_of(schema.events) if row["name"] == "lease.acquired" and "override" in row["data"]
    ]
    assert "a handed it over" in event["data"]


@pytest.mark.parametrize("outcome", [BUSY, GivenBack("late")], ids=["4yz", "given-back"])
async def test_an_operator_marks_permitted_mail_so_that_it_never_goes_a_second_time(
    world: World, outcome: Deferred | GivenBack
) -> None:
    receipt = await world.send("a")
    claim = await world.claim_of(receipt)
    await world.permit(claim)

    lease = await world.lease("b", operator_reason="urgent")
    state = world.state(receipt)

    assert lease.withdrew == ()
    assert state is State.PERMITTED
    assert await world.settle(claim, outcome) is State.BLOCKED


async def test_what_an_operator_marked_may_still_have_arrived(world: World) -> None:
    receipt = await world.send("a")
    claim = await world.claim_of(receipt)
    await world.permit(claim)
    await world.lease("b", operator_reason="urgent")

    assert await world.settle(claim, Relayed(OK)) is State.RELAYED
    assert world.state(receipt) is State.RELAYED


@pytest.mark.parametrize("with_flight", [False, True], ids=["alone", "beside-mail-in-flight"])
async def test_an_operator_marks_unknown_mail(world: World, *, with_flight: bool) -> None:
    receipt = await world.send("a")
    claim = await world.claim_of(receipt)
    await world.relay(claim, Unknown("silence"))
    if with_flight:
        await world.send("a", kind="reply", subject="more")

    await world.lease("b", operator_reason="urgent")

    assert world.record(receipt.record.id).deliveries[0].forbidden == "stale_fencing_token"
    await world.resolve(receipt.record.id, "retry")
    assert world.state(receipt) is State.BLOCKED


async def test_taking_over_old_mail_marks_the_unknown_beside_it(world: World) -> None:
    receipt = await world.send("a")
    await world.relay(await world.claim_of(receipt), Unknown("silence"))
    await world.send("a", kind="reply", subject="more")
    world.advance(OLD)

    await world.lease("b")
    await world.resolve(receipt.record.id, "retry")

    assert world.state(receipt) is State.BLOCKED


async def test_a_take_over_leaves_the_takers_own_mail_and_other_contacts_alone(world: World) -> None:
    other = await world.send("a", to="other@example.net")
    mine = await world.send("b", to=[PAT, "third@example.net"])
    world.advance(OLD)

    lease = await world.lease("b", operator_reason="urgent")

    assert lease.withdrew == ()
    assert world.state(other) is State.QUEUED
    assert world.states(mine.record.id) == [State.QUEUED, State.QUEUED]


async def test_a_take_over_leaves_the_tenants_own_people_and_transactional_mail_alone(world: World) -> None:
    own = await world.send("a", to="boss@gw.example.com")
    needed = await world.send("a", kind="transactional")

    await world.lease("b", operator_reason="urgent")
    await world.lease("b", "boss@gw.example.com", operator_reason="urgent")

    assert world.state(own) is State.QUEUED
    assert world.state(needed) is State.QUEUED


async def test_only_the_contact_taken_over_is_stopped_of_a_mail_to_several(world: World) -> None:
    receipt = await world.send("a", to=[PAT, "other@example.net"])

    await world.lease("b", operator_reason="urgent")

    assert world.states(receipt.record.id) == [State.BLOCKED, State.QUEUED]


async def test_with_leases_not_enforced_acquire_blocks_no_mail(world: World) -> None:
    receipt = await world.send("a")
    world.advance(OLD)

    lease = await world.lease("b", enforced=False)

    assert lease.withdrew == ()
    assert world.state(receipt) is State.QUEUED


async def test_a_take_over_and_a_permit_at_once_have_one_winner(world: World) -> None:
    """Two nodes: either the permit came first and the lease is refused, or the mail is stopped and gets no permit."""
    nodes = [world.node(threads=True), world.node(threads=True)]
    for n in range(8):
        person = f"p{n}@example.net"
        receipt = await world.send("a", to=person)
        claim = await world.claim_of(receipt)
        world.advance(OLD)

        word, got = await asyncio.gather(world.permit(claim, nodes[0]), world.acquire("b", person, node=nodes[1]))

        state = world.state(receipt)
        if word is None:
            assert (type(got), state) == (Held, State.PERMITTED)
        else:
            assert (type(got), state) == (Lease, State.BLOCKED)


# --- mail that waited yields to a later lease ---------------------------------------------------------------------------


async def test_scheduled_mail_with_a_token_is_stale_once_another_has_acquired(world: World) -> None:
    lease = await world.lease("a", seconds=100)
    receipt = await world.send("a", token=lease.token, not_before=START + timedelta(seconds=1000))
    world.advance(200)
    await world.lease("b", seconds=100)
    world.advance(900)
    await world.look()

    assert world.state(receipt) is State.BLOCKED
    assert world.record(receipt.record.id).deliveries[0].reason == "stale_fencing_token"


@pytest.mark.parametrize("again", [False, True], ids=["ended", "acquired-again"])
async def test_scheduled_mail_stands_whatever_became_of_its_own_lease(world: World, *, again: bool) -> None:
    lease = await world.lease("a", seconds=100)
    receipt = await world.send("a", token=lease.token, not_before=START + timedelta(seconds=1000))
    world.advance(200)
    if again:
        assert (await world.lease("a", seconds=100)).token == lease.token + 1
    world.advance(900)
    await world.look()

    assert world.state(receipt) is State.QUEUED


async def test_scheduled_mail_without_a_token_waits_while_anothers_lease_lives(world: World) -> None:
    receipt = await world.send("a", not_before=START + timedelta(seconds=100))
    lease = await world.lease("b", seconds=500)
    world.advance(101)
    await world.look()
    waiting = world.record(receipt.record.id).deliveries[0]
    world.advance(500)
    await world.look()

    assert (waiting.state, waiting.reason) == (State.SCHEDULED, "lease_conflict")
    assert waiting.due_at == lease.expires_at
    assert world.state(receipt) is State.QUEUED
