"""Claims and permits: each row once, oldest first, and the last word before the dot (ARCHITECTURE 8, 9)."""

import asyncio
import threading
from collections import Counter
from datetime import timedelta

import pytest

from gateway.core.delivery import Deferred, State
from gateway.store import outbox, schema
from gateway.store.outbox import Claim, ClaimRequest
from tests.world import PAT, START, World, ids

FRESH = 600_000_000
BUSY = Deferred("451")


async def fill(world: World, count: int) -> list[str]:
    """Accepted sends to as many people."""
    receipts = await asyncio.gather(*(world.send(to=f"p{n}@example.net") for n in range(count)))
    return [receipt.record.id for receipt in receipts]


async def test_two_stores_that_claim_side_by_side_get_each_row_once(world: World) -> None:
    requests = await fill(world, 200)
    stores = [world.node().store, world.node().store]
    start = threading.Barrier(2)
    got: list[list[Claim]] = [[], []]

    def work(n: int) -> None:
        wish = ClaimRequest(stores[n].epoch, 7, FRESH)
        start.wait(30)
        while claims := stores[n].write((), lambda tx: outbox.claim(tx, [wish]))[0]:
            got[n] += claims

    threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert Counter(ids(got[0]) + ids(got[1])) == Counter(requests)
    assert {row["epoch"] for row in world.rows_of(schema.deliveries)} <= {store.epoch for store in stores}


async def test_two_workers_in_one_group_get_each_row_once(world: World) -> None:
    requests = await fill(world, 10)

    first, second = await asyncio.gather(world.claim(6), world.claim(6))

    assert sorted(ids(first) + ids(second)) == sorted(requests)
    assert (len(first), len(second)) == (6, 4)


async def test_the_oldest_due_goes_first(world: World) -> None:
    for n in range(3):
        await world.send(to=f"p{n}@example.net")
        world.advance(1)

    claims = [*await world.claim(1), *await world.claim(2)]

    assert [claim.address for claim in claims] == ["p0@example.net", "p1@example.net", "p2@example.net"]


async def test_a_claim_carries_what_the_wire_needs(world: World) -> None:
    receipt = await world.send(to="P.1@Example.Net", body=b"Subject: x\r\n\r\nbody\r\n")

    claim = await world.claim_of(receipt)

    assert (claim.address, claim.reverse_path) == ("P.1@example.net", "agent@gw.example.com")
    assert (claim.body, claim.claim_no) == (b"Subject: x\r\n\r\nbody\r\n", 1)


async def test_every_recipient_is_a_claim_of_its_own(world: World) -> None:
    receipt = await world.send(to=["p1@example.net", "p2@example.net", "p3@example.net"])

    claims = await world.claim()

    assert [claim.address for claim in claims] == ["p1@example.net", "p2@example.net", "p3@example.net"]
    assert await world.relay(claims[1]) is State.RELAYED
    assert world.states(receipt.record.id) == [State.CLAIMED, State.RELAYED, State.CLAIMED]


async def test_every_entry_into_claimed_raises_the_number(world: World) -> None:
    receipt = await world.send()
    numbers = []
    for _ in range(3):
        claim = await world.claim_of(receipt)
        numbers.append(claim.claim_no)
        await world.settle(claim, BUSY)
        world.advance(4000)
        await world.look()

    assert numbers == [1, 2, 3]
    assert [row["claim_no"] for row in world.rows_of(schema.attempts)] == numbers


async def test_nothing_is_claimed_while_the_relay_is_paused(world: World) -> None:
    receipt = await world.send()
    await world.pause_relay()
    before = world.rows()

    assert await world.claim() == []
    assert not world.store.read(lambda tx: outbox.any_due(tx, FRESH))
    assert world.rows() == before
    await world.pause_relay(paused=False)
    assert world.store.read(lambda tx: outbox.any_due(tx, FRESH))
    assert ids(await world.claim()) == [receipt.record.id]


async def test_mail_judged_too_long_ago_is_left_to_the_release(world: World) -> None:
    receipt = await world.send()
    world.advance(601)

    early = await world.claim()
    await world.look()

    assert early == []
    assert ids(await world.claim()) == [receipt.record.id]


@pytest.mark.parametrize("state", ["scheduled", "held"])
async def test_what_waits_is_not_claimed(world: World, state: str) -> None:
    receipt = await world.send(not_before=START + timedelta(hours=1) if state == "scheduled" else None)
    if state == "held":
        await world.pause_mailbox()
    world.advance(4000)

    assert world.state(receipt) is State(state)
    assert await world.claim() == []


# --- the permit ---------------------------------------------------------------------------------------------------------


async def test_a_permit_is_given_once(world: World) -> None:
    claim = await world.claim_of(await world.send())

    words = [await world.permit(claim), await world.permit(claim)]

    assert words[0] is None
    assert words[1] is not None


async def test_a_permit_is_given_once_though_it_is_asked_twice_in_a_group(world: World) -> None:
    claim = await world.claim_of(await world.send())

    words = await asyncio.gather(world.permit(claim), world.permit(claim))

    assert words[0] is None
    assert words[1] is not None


async def test_a_worker_that_was_taken_for_dead_gets_no_permit(world: World) -> None:
    receipt = await world.send()
    old = await world.claim_of(receipt)
    await world.settle(old, BUSY)
    world.advance(60)
    new = await world.claim_of(receipt)

    late, current = await asyncio.gather(world.permit(old), world.permit(new))

    assert (late, current) == ("claimed by another", None)


async def test_no_permit_while_the_relay_is_paused(world: World) -> None:
    claim = await world.claim_of(await world.send())
    await world.pause_relay()

    assert await world.permit(claim) == "relay paused"
    await world.pause_relay(paused=False)
    assert await world.permit(claim) is None


async def test_no_permit_from_a_paused_mailbox(world: World) -> None:
    receipt = await world.send()
    claim = await world.claim_of(receipt)
    await world.pause_mailbox()

    assert await world.permit(claim) == "mailbox_paused"
    assert await world.settle(claim, BUSY) is None
    assert world.state(receipt) is State.HELD


async def test_a_permit_in_the_group_of_a_suppression_is_refused(world: World) -> None:
    """What forbids goes first, whoever came first."""
    receipt = await world.send()
    claim = await world.claim_of(receipt)

    word, (_, stopped) = await asyncio.gather(world.permit(claim), world.suppress(PAT))

    assert word == "suppressed"
    assert stopped == [receipt.record.id]


async def test_one_refused_permit_takes_no_other_with_it(world: World) -> None:
    await fill(world, 5)
    claims = await world.claim()
    await world.suppress("p2@example.net")

    words = await asyncio.gather(*(world.permit(claim) for claim in claims))

    assert words == [None, None, "suppressed", None, None]
