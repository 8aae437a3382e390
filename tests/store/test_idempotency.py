"""One key, one send: races, replays, refusals, derived keys (SEMANTICS 5)."""

import asyncio
from datetime import timedelta

import pytest

from gateway.core.delivery import Bounced, Deferred, Reply, State
from gateway.core.errors import ConflictError
from gateway.store import records
from tests.databases import Databases
from tests.world import BOXES, PAT, TENANT, World, a_world, verdict


async def test_of_thirty_at_once_with_one_key_one_is_decided_and_the_rest_replay(world: World) -> None:
    nodes = [world.node(threads=True), world.node(threads=True)]

    receipts = await asyncio.gather(*(world.send(key="once", node=nodes[n % 2]) for n in range(30)))

    assert len({receipt.record.id for receipt in receipts}) == 1
    assert [receipt.replayed for receipt in receipts].count(False) == 1
    assert len(await world.claim()) == 1


async def test_thirty_at_once_in_one_group_are_one_send(world: World) -> None:
    receipts = await asyncio.gather(*(world.send(key="once") for _ in range(30)))

    assert len({receipt.record.id for receipt in receipts}) == 1
    assert [receipt.replayed for receipt in receipts] == [False] + [True] * 29
    assert len(world.rows()["deliveries"]) == 1


async def test_a_replay_tells_the_status_of_today(world: World) -> None:
    first = await world.send(key="once")
    await world.relay(await world.claim_of(first))

    again = await world.send(key="once")

    assert again.replayed
    assert again.record.id == first.record.id
    assert again.record.message_id == first.record.message_id
    assert [d.state for d in again.record.deliveries] == [State.RELAYED]


async def test_a_key_with_other_content_is_refused_and_names_the_first_request(world: World) -> None:
    first = await world.send(key="once")
    before = world.rows()

    with pytest.raises(ConflictError) as refused:
        await world.send(key="once", subject="another thing")

    assert refused.value.slug == "idempotency_key_reused"
    assert refused.value.extra["requestId"] == first.record.id
    assert world.rows() == before


async def test_a_key_belongs_to_its_mailbox(world: World) -> None:
    first = await world.send(key="once")

    other = await world.send(to="other@example.net", key="once", mailbox=BOXES[1])

    assert not other.replayed
    assert other.record.id != first.record.id
    assert world.state(other) is State.QUEUED


async def test_keys_are_compared_exactly(world: World) -> None:
    first = await world.send(key="Once")

    other = await world.send(to="other@example.net", key="once")

    assert not other.replayed
    assert other.record.id != first.record.id


@pytest.mark.parametrize("outcome", [Bounced("no", Reply(550, "5.7.1", "no")), None], ids=["bounced", "cancelled"])
async def test_a_send_that_has_ended_otherwise_than_blocked_keeps_its_key(
    world: World, outcome: Bounced | None
) -> None:
    first = await world.send(key="once")
    if outcome:
        await world.settle(await world.claim_of(first), outcome)
    else:
        await world.cancel(first.record.id)

    again = await world.send(key="once")

    assert again.replayed
    assert world.state(again) in {State.BOUNCED, State.CANCELLED}


# --- a blocked record does not use up its key ---------------------------------------------------------------------------


async def test_a_refused_send_is_judged_anew_under_the_same_request(world: World) -> None:
    entry, _ = await world.suppress()
    refused = await world.send(key="once")
    await world.unsuppress(entry.id)

    again = await world.send(key="once")

    assert world.store.read(lambda tx: len(records.decisions_of(tx, TENANT, refused.record.id))) == 2
    assert not again.replayed
    assert again.record.id == refused.record.id
    assert again.record.decision_no == 2
    assert again.record.created_at == refused.record.created_at
    assert world.state(again) is State.QUEUED
    assert (await world.claim_of(again)).body


async def test_a_refused_send_may_come_back_with_another_content_and_takes_its_fingerprint(world: World) -> None:
    await world.suppress()
    refused = await world.send(key="once")

    mended = await world.send(to="other@example.net", key="once", subject="better")

    assert mended.record.id == refused.record.id
    assert world.state(mended) is State.QUEUED
    assert mended.record.fingerprint != refused.record.fingerprint
    assert (await world.send(to="other@example.net", key="once", subject="better")).replayed
    with pytest.raises(ConflictError):
        await world.send(key="once")


async def test_a_send_stopped_in_flight_is_judged_anew_with_its_new_body(world: World) -> None:
    first = await world.send(key="once")
    entry, _ = await world.suppress()
    await world.unsuppress(entry.id)

    again = await world.send(key="once", subject="better", body=b"Subject: better\r\n\r\nhi\r\n")

    assert again.record.id == first.record.id
    assert (await world.claim_of(again)).body == b"Subject: better\r\n\r\nhi\r\n"


async def test_being_judged_anew_never_gives_an_old_claim_number_back(world: World) -> None:
    first = await world.send(key="once")
    old = await world.claim_of(first)
    entry, _ = await world.suppress()
    await world.unsuppress(entry.id)
    again = await world.send(key="once")

    new = await world.claim_of(again)

    assert new.claim_no > old.claim_no
    assert await world.permit(old) is not None
    assert await world.settle(old, Deferred("late")) is None
    assert world.state(again) is State.CLAIMED
    assert await world.relay(new) is State.RELAYED


async def test_claim_numbers_survive_fewer_and_then_more_recipients(world: World) -> None:
    people = [PAT, "x1@example.net", "x2@example.net"]
    first = await world.send(to=people, key="once")
    old = {claim.delivery: claim for claim in await world.claim()}
    for to in ([PAT], people):
        for person in people:
            entry, _ = await world.suppress(person)
            await world.unsuppress(entry.id)
        again = await world.send(to=to, key="once")
        assert again.record.id == first.record.id
        assert set(world.states(first.record.id)) == {State.QUEUED}

    new = {claim.delivery: claim for claim in await world.claim()}

    assert set(new) == set(old)
    assert all(new[name].claim_no > old[name].claim_no for name in new)


async def test_the_report_of_an_attempt_on_a_recipient_that_is_no_longer_there_harms_nobody(world: World) -> None:
    first = await world.send(to=[PAT, "x1@example.net"], key="once")
    claims = await world.claim()
    for person in (PAT, "x1@example.net"):
        entry, _ = await world.suppress(person)
        await world.unsuppress(entry.id)
    again = await world.send(key="once")

    states = [await world.settle(claim, Deferred("hung up")) for claim in claims]

    assert states == [None, None]
    assert again.record.id == first.record.id
    assert world.state(again) is State.QUEUED


async def test_a_send_that_was_ever_permitted_replays_though_it_ended_blocked(world: World) -> None:
    first = await world.send(key="once")
    claim = await world.claim_of(first)
    await world.permit(claim)
    entry, _ = await world.suppress()
    await world.settle(claim, Deferred("451"))
    await world.unsuppress(entry.id)

    again = await world.send(key="once")

    assert again.replayed
    assert world.state(again) is State.BLOCKED
    assert await world.claim() == []


async def test_a_send_blocked_for_one_recipient_alone_keeps_its_key(world: World) -> None:
    first = await world.send(to=[PAT, "other@example.net"], key="once")
    await world.suppress()

    again = await world.send(to=[PAT, "other@example.net"], key="once")

    assert again.replayed
    assert world.states(first.record.id) == [State.BLOCKED, State.QUEUED]


# --- equal refusals count up --------------------------------------------------------------------------------------------


async def test_equal_refusals_within_a_minute_only_count_up(world: World) -> None:
    await world.suppress()
    first = await world.send(key="once")
    before = world.rows()

    for times in (1, 2):
        again = await world.send(key="once")
        assert (again.record.repeats, again.record.id) == (times, first.record.id)

    after = world.rows()
    assert world.record(first.record.id).repeats == 2
    assert {name for name in after if after[name] != before[name]} == {"sends"}


async def test_a_refusal_after_a_minute_is_a_decision_of_its_own(world: World) -> None:
    await world.suppress()
    await world.send(key="once")
    world.advance(61)

    again = await world.send(key="once")

    assert (again.record.decision_no, again.record.repeats) == (2, 0)


async def test_a_refusal_for_another_reason_is_a_decision_of_its_own(world: World) -> None:
    entry, _ = await world.suppress()
    await world.send(key="once")
    await world.unsuppress(entry.id)
    await world.lease("b")

    again = await world.send(key="once")

    assert verdict(again) == ("defer", "lease_conflict")
    assert again.record.decision_no == 2


async def test_equal_refusals_of_one_group_count_up_too(world: World) -> None:
    await world.suppress()

    receipts = await asyncio.gather(*(world.send(key="once") for _ in range(4)))

    assert {receipt.record.id for receipt in receipts} == {receipts[0].record.id}
    assert world.record(receipts[0].record.id).repeats == 3
    assert len(world.rows()["decisions"]) == 1


# --- derived keys -------------------------------------------------------------------------------------------------------


async def test_a_derived_key_is_free_after_a_day_and_not_before(world: World) -> None:
    first = await world.send(key="derived", derived_key=True)
    await world.relay(await world.claim_of(first))
    world.advance(24 * 3600 - 60)
    within = await world.send(key="derived", derived_key=True)
    world.advance(120)

    after = await world.send(key="derived", derived_key=True)

    assert within.replayed
    assert within.warnings == ("derived_key",)
    assert not after.replayed
    assert after.record.id != first.record.id
    assert world.state(after) is State.QUEUED
    assert world.state(first) is State.RELAYED


async def test_a_key_of_the_caller_is_kept_for_good(world: World) -> None:
    first = await world.send(key="once")
    await world.relay(await world.claim_of(first))
    world.advance(timedelta(days=400).total_seconds())

    again = await world.send(key="once")

    assert again.replayed
    assert again.record.id == first.record.id


async def test_a_dry_run_after_a_day_sees_the_derived_key_free_and_frees_nothing(world: World) -> None:
    ticket = world.ticket(key="derived", derived_key=True)
    first = await world.send(key="derived", derived_key=True)
    await world.relay(await world.claim_of(first))
    world.advance(24 * 3600 + 1)
    before = world.rows()

    seen = world.preview(ticket)

    assert not seen.replayed
    assert verdict(seen) == ("pass", None)
    assert world.rows() == before


# --- in one group -------------------------------------------------------------------------------------------------------


async def test_in_a_group_a_repeat_replays_and_a_reused_key_fails_alone(world: World) -> None:
    first, repeat, reused, other = await asyncio.gather(
        world.send(key="once"),
        world.send(key="once"),
        world.send(key="once", subject="another thing"),
        world.send(to="other@example.net"),
        return_exceptions=True,
    )

    assert not isinstance(first, BaseException)
    assert not isinstance(repeat, BaseException)
    assert not isinstance(other, BaseException)
    assert (repeat.record.id, repeat.replayed) == (first.record.id, True)
    assert isinstance(reused, ConflictError)
    assert reused.extra["requestId"] == first.record.id
    assert world.state(other) is State.QUEUED


async def test_in_a_group_a_refused_send_is_judged_anew_when_it_comes_mended(databases: Databases) -> None:
    async with a_world(databases, {"recipient": {"max_recipients": 1}}) as world:
        refused, mended = await asyncio.gather(
            world.send(to=[PAT, "other@example.net"], key="once"), world.send(key="once")
        )

        assert verdict(refused) == ("refuse", "recipient_not_allowed")
        assert mended.record.id == refused.record.id
        assert world.states(mended.record.id) == [State.QUEUED]
        assert world.record(mended.record.id).decision_no == 2
        assert len(world.rows()["decisions"]) == 2
