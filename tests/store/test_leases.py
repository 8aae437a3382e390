"""Leases and fencing tokens (SEMANTICS 6): the token rises with every new acquisition and never falls."""

import asyncio
from datetime import timedelta

import pytest

from gateway.store import events, leases, schema
from gateway.store.contacts import Held, Lease
from tests.world import PAT, TENANT, World, verdict


async def test_the_first_lease_has_token_one_and_says_whose_it_is(world: World) -> None:
    lease = await world.lease("a", seconds=60)

    assert (lease.token, lease.agent, lease.agent_name) == (1, world.agent["a"], "a")
    assert (lease.contact, lease.address, lease.intent, lease.withdrew) == (PAT, PAT, "to write", ())
    assert lease.expires_at - lease.acquired_at == timedelta(seconds=60)


async def test_extending_a_live_lease_of_ones_own_keeps_token_and_id(world: World) -> None:
    first = await world.lease("a", seconds=60)
    world.advance(30)

    again = await world.lease("a", seconds=60)

    assert (again.id, again.token, again.acquired_at) == (first.id, first.token, first.acquired_at)
    assert again.expires_at >= first.expires_at + timedelta(seconds=30)


async def test_one_person_is_one_lease_however_the_address_is_written(world: World) -> None:
    await world.lease("a", "Pat.Q+news@GoogleMail.com")

    assert isinstance(await world.acquire("b", "patq@gmail.com"), Held)


async def test_another_agents_live_lease_is_told_with_its_holder_and_end(world: World) -> None:
    lease = await world.lease("a", seconds=60)

    held = await world.acquire("b")

    assert isinstance(held, Held)
    assert held == Held(world.agent["a"], "a", lease.expires_at, "lease", lease.expires_at, held.left)
    assert 0 < held.left < 60


@pytest.mark.parametrize("end", ["release", "expiry", "restart"])
@pytest.mark.parametrize("agent", ["a", "b"])
async def test_the_token_rises_on_every_new_acquisition(world: World, end: str, agent: str) -> None:
    first = await world.lease("a", seconds=60)
    node = None
    if end == "release":
        await world.release(first.id)
    else:
        world.advance(61)
    if end == "restart":
        node = world.node()

    second = await world.lease(agent, node=node)

    assert second.token == first.token + 1
    assert second.id != first.id


async def test_the_token_outlives_stamps_and_bounced_mail(world: World) -> None:
    first = await world.lease("a")
    await world.relay(await world.claim_of(await world.send("a")))
    await world.release(first.id)

    assert (await world.lease("b")).token == 2


async def test_a_stamp_alone_gives_no_token_away(world: World) -> None:
    await world.relay(await world.claim_of(await world.send("a")))

    assert (await world.lease("b")).token == 1


async def test_of_twenty_that_acquire_at_once_on_two_nodes_one_has_the_lease(world: World) -> None:
    nodes = [world.node(threads=True), world.node(threads=True)]
    agents = ["a", "b", "c"]

    got = await asyncio.gather(*(world.acquire(agents[n % 3], node=nodes[n % 2]) for n in range(20)))

    leases = [lease for lease in got if isinstance(lease, Lease)]
    assert len({(lease.id, lease.token, lease.agent) for lease in leases}) == 1
    assert leases[0].token == 1
    assert {held.agent for held in got if isinstance(held, Held)} == {leases[0].agent}


# --- renew --------------------------------------------------------------------------------------------------------------


async def test_renewing_extends_and_keeps_the_token(world: World) -> None:
    lease = await world.lease("a", seconds=60)
    world.advance(30)

    until = await world.renew(lease.id, lease.token, 60)

    assert until >= lease.expires_at + timedelta(seconds=30)
    (still,) = world.store.read(lambda tx: leases.living(tx, TENANT), (TENANT,))
    assert (still.id, still.token, still.expires_at) == (lease.id, lease.token, until)


async def test_a_lease_that_ran_out_is_not_renewed(world: World) -> None:
    lease = await world.lease("a", seconds=60)
    world.advance(61)

    assert await world.renew(lease.id, lease.token) == "lease_expired"
    assert await world.renew(lease.id) == "lease_expired"


async def test_a_lease_that_was_given_back_is_not_renewed(world: World) -> None:
    lease = await world.lease("a")
    await world.release(lease.id)

    assert await world.renew(lease.id, lease.token) == "lease_expired"


async def test_an_old_lease_is_stale_once_another_agent_has_acquired(world: World) -> None:
    old = await world.lease("a", seconds=60)
    world.advance(61)
    new = await world.lease("b")

    assert await world.renew(old.id, old.token) == "stale_fencing_token"
    assert await world.renew(new.id, old.token) == "stale_fencing_token"
    assert await world.renew(new.id, new.token + 1) == "lease_expired"


async def test_nobody_renews_anothers_lease(world: World) -> None:
    lease = await world.lease("a")

    assert await world.renew(lease.id, lease.token, agent="b") == "stale_fencing_token"


# --- release ------------------------------------------------------------------------------------------------------------


async def test_a_released_contact_is_free_at_once(world: World) -> None:
    lease = await world.lease("a")

    released = await world.release(lease.id)

    assert (released.released, released.in_flight) == (True, ())
    assert world.store.read(lambda tx: leases.living(tx, TENANT), (TENANT,)) == []
    assert isinstance(await world.acquire("b"), Lease)


async def test_releasing_twice_or_by_an_old_id_releases_nothing(world: World) -> None:
    old = await world.lease("a")
    await world.release(old.id)
    new = await world.lease("b")

    again = await world.release(old.id)

    assert not again.released
    assert again.reason
    (still,) = world.store.read(lambda tx: leases.living(tx, TENANT), (TENANT,))
    assert still.id == new.id


async def test_a_bound_key_releases_only_its_own(world: World) -> None:
    lease = await world.lease("a")

    assert not (await world.release(lease.id, agent="b")).released
    assert (await world.release(lease.id, agent="a")).released


async def test_release_names_the_mail_that_is_still_on_its_way(world: World) -> None:
    lease = await world.lease("a")
    receipt = await world.send("a")

    released = await world.release(lease.id)

    assert released.in_flight == (receipt.record.id,)
    held = await world.acquire("b")
    assert isinstance(held, Held)
    assert (held.kind, held.request) == ("send", receipt.record.id)


async def test_the_living_are_listed_newest_first(world: World) -> None:
    for n, agent in enumerate(("a", "b", "c")):
        await world.lease(agent, f"p{n}@example.net", seconds=10 if agent == "b" else 3600)
    world.advance(11)

    living = world.store.read(lambda tx: leases.living(tx, TENANT), (TENANT,))

    assert [(lease.agent_name, lease.contact) for lease in living] == [("c", "p2@example.net"), ("a", "p0@example.net")]


async def test_leases_are_told_in_events(world: World) -> None:
    lease = await world.lease("a")
    await world.release(lease.id)

    names = [row["name"] for row in world.rows_of(schema.events) if row["name"].startswith("lease.")]

    assert names == ["lease.acquired", "lease.released"]
    assert world.store.read(lambda tx: events.of_send(tx, TENANT, "")) != []


# --- sends with tokens --------------------------------------------------------------------------------------------------


async def test_the_newest_token_of_a_live_lease_sends(world: World) -> None:
    lease = await world.lease("a")

    assert verdict(await world.send("a", token=lease.token)) == ("pass", None)


async def test_an_old_token_is_stale_whatever_became_of_the_lease(world: World) -> None:
    old = await world.lease("a")
    await world.release(old.id)
    await world.lease("a")

    assert verdict(await world.send("a", token=old.token)) == ("refuse", "stale_fencing_token")
    world.advance(3601)
    assert verdict(await world.send("a", token=old.token)) == ("refuse", "stale_fencing_token")


async def test_a_token_without_its_live_lease_is_expired(world: World) -> None:
    lease = await world.lease("a", seconds=60)
    ahead = await world.send("a", token=lease.token + 1)
    world.advance(61)

    assert verdict(ahead) == ("refuse", "lease_expired")
    assert verdict(await world.send("a", token=lease.token)) == ("refuse", "lease_expired")


async def test_nobody_sends_with_anothers_token(world: World) -> None:
    lease = await world.lease("a")

    result = verdict(await world.send("b", token=lease.token))

    assert result[0] in {"refuse", "defer"}
    assert result[1] in {"lease_conflict", "stale_fencing_token"}


async def test_without_a_token_anothers_live_lease_blocks_and_ones_own_does_not(world: World) -> None:
    lease = await world.lease("a", seconds=60)

    theirs = await world.send("b")

    assert verdict(theirs) == ("defer", "lease_conflict")
    (finding,) = theirs.record.decision["findings"]
    assert finding["extra"]["leaseHolder"]["agentId"] == lease.agent
    assert verdict(await world.send("a")) == ("pass", None)


async def test_a_lease_that_ran_out_blocks_nobody(world: World) -> None:
    await world.lease("a", seconds=60)
    world.advance(61)

    assert verdict(await world.send("b")) == ("pass", None)


async def test_a_lease_binds_copies_too_but_not_the_tenants_own(world: World) -> None:
    await world.lease("a", "copy@example.net")
    await world.lease("a", "boss@gw.example.com")

    assert verdict(await world.send("b", to=[PAT, "copy@example.net"])) == ("defer", "lease_conflict")
    assert verdict(await world.send("b", to=[PAT, "boss@gw.example.com"])) == ("pass", None)
