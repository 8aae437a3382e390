"""What an attempt comes to: states, retries, stamps, suppressions, late replies (ARCHITECTURE 8, 9)."""

import asyncio
from datetime import timedelta

import pytest

from gateway.core.delivery import Bounced, Deferred, GivenBack, Outcome, Relayed, Reply, Retry, State, Unknown
from gateway.store import schema
from tests.world import BOXES, OK, PAT, START, World, reasons, verdict

BUSY = Deferred("451 to DOT", Reply(451, "4.3.0", "busy"))
REFUSED = Bounced("554 to DOT", Reply(554, "5.7.1", "no"))
GONE = Bounced("550 to RCPT", Reply(550, "5.1.1", "no such user"), stage="rcpt")
SILENT = Unknown("no reply to the dot within 600 s")


def stamped(world: World) -> list[tuple[str, str]]:
    """The contacts that count as contacted, with the send that reached them."""
    return [(row["key"], row["last_by"]) for row in world.rows_of(schema.contacts) if row["last_us"] is not None]


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Relayed(OK), State.RELAYED),
        (BUSY, State.QUEUED),
        (REFUSED, State.BOUNCED),
        (SILENT, State.UNKNOWN),
        (GivenBack("late"), State.QUEUED),
    ],
    ids=["2yz", "4yz", "5yz", "silence", "given-back"],
)
async def test_a_permitted_delivery_goes_where_its_reply_says(world: World, outcome: Outcome, state: State) -> None:
    receipt = await world.send()

    assert await world.relay(await world.claim_of(receipt), outcome) is state
    assert world.state(receipt) is state


@pytest.mark.parametrize(
    ("outcome", "state"),
    [(BUSY, State.QUEUED), (REFUSED, State.BOUNCED), (SILENT, State.QUEUED), (GivenBack("stopping"), State.QUEUED)],
    ids=["4yz", "5yz", "silence", "given-back"],
)
async def test_a_claimed_delivery_that_never_got_its_permit_is_plain(
    world: World, outcome: Outcome, state: State
) -> None:
    receipt = await world.send()

    assert await world.settle(await world.claim_of(receipt), outcome) is state
    assert stamped(world) == []


async def test_the_reply_stands_in_the_record_and_in_the_attempt(world: World) -> None:
    receipt = await world.send()
    claim = await world.claim_of(receipt)
    await world.relay(claim, BUSY)

    (delivery,) = world.record(receipt.record.id).deliveries
    (attempt,) = world.rows_of(schema.attempts)

    assert (delivery.code, delivery.enhanced, delivery.text, delivery.attempts) == (451, "4.3.0", "busy", 1)
    assert (attempt["claim_no"], attempt["outcome"], attempt["code"]) == (claim.claim_no, "deferred", 451)
    assert attempt["started_us"] < attempt["permitted_us"] < attempt["ended_us"]


async def test_what_is_told_twice_moves_no_time(world: World) -> None:
    """A settle whose commit was in doubt is made again."""
    claim = await world.claim_of(await world.send())
    await world.relay(claim, REFUSED)
    first = world.rows_of(schema.attempts)
    world.advance(60)

    assert await world.settle(claim, REFUSED) is None
    assert world.rows_of(schema.attempts) == first


@pytest.mark.parametrize("doubt", [SILENT, GivenBack("stopping")], ids=["silence", "given-back"])
async def test_no_doubt_replaces_a_reply(world: World, doubt: Outcome) -> None:
    """The store was away: the late reply is written before the silence that came first."""
    claim = await world.claim_of(await world.send())
    await world.permit(claim)
    await world.settle(claim, Relayed(OK))
    first = world.rows_of(schema.attempts)

    assert await world.settle(claim, doubt) is None
    assert world.rows_of(schema.attempts) == first


async def test_an_attempt_whose_permit_was_refused_does_not_either(world: World) -> None:
    receipt = await world.send()
    await world.relay(await world.claim_of(receipt), GivenBack("late"))
    claim = await world.claim_of(receipt)
    await world.suppress()
    assert await world.permit(claim) == "suppressed"
    await world.settle(claim, GivenBack("suppressed"))

    first, second = sorted(world.rows_of(schema.attempts), key=lambda row: row["claim_no"])
    assert (first["permitted_us"] is None, second["permitted_us"]) == (False, None)


async def test_an_attempt_that_had_no_permit_does_not_borrow_an_earlier_ones(world: World) -> None:
    receipt = await world.send()
    await world.relay(await world.claim_of(receipt), GivenBack("late"))
    await world.settle(await world.claim_of(receipt), BUSY)

    permits = [row["permitted_us"] for row in world.rows_of(schema.attempts)]

    assert [permit is None for permit in permits] == [False, True]


# --- who counts as contacted --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [Relayed(OK), SILENT], ids=["relayed", "unknown"])
async def test_delivery_and_unknown_stamp_the_contact(world: World, outcome: Outcome) -> None:
    receipt = await world.send()
    await world.relay(await world.claim_of(receipt), outcome)

    assert stamped(world) == [(PAT, receipt.record.id)]
    assert verdict(await world.send("b")) == ("defer", "cooldown")


@pytest.mark.parametrize("outcome", [REFUSED, GONE], ids=["dot", "rcpt"])
async def test_a_final_failure_leaves_nothing_behind(world: World, outcome: Outcome) -> None:
    receipt = await world.send(to=[PAT])
    await world.relay(await world.claim_of(receipt), outcome)

    assert stamped(world) == []
    assert reasons(await world.send("b", kind="reply")) == (["suppressed"] if outcome is GONE else [])


async def test_transactional_mail_and_the_tenants_own_people_are_not_stamped(world: World) -> None:
    first = await world.send(kind="transactional")
    await world.relay(await world.claim_of(first))
    second = await world.send(to="boss@gw.example.com")
    await world.relay(await world.claim_of(second))

    assert stamped(world) == []
    assert verdict(await world.send("b", to=[PAT, "boss@gw.example.com"])) == ("pass", None)


# --- an address that is gone --------------------------------------------------------------------------------------------


async def test_an_address_that_is_gone_is_suppressed(world: World) -> None:
    receipt = await world.send()
    await world.settle(await world.claim_of(receipt), GONE)

    (entry,) = world.rows_of(schema.suppressions)

    assert (entry["subject"], entry["reason_code"], entry["source"]) == (PAT, "hard_bounce", "smarthost")
    assert verdict(await world.send("b")) == ("refuse", "suppressed")


@pytest.mark.parametrize(
    "outcome",
    [
        Bounced("550 to DOT", Reply(550, "5.1.1", "no such user")),
        Bounced("550 to RCPT", Reply(550, "5.7.1", "no"), stage="rcpt"),
        Bounced("550 to RCPT", Reply(550, "", "no"), stage="rcpt"),
        Bounced("550 to MAIL", Reply(550, "5.1.1", "no"), stage="mail"),
    ],
)
async def test_no_other_refusal_suppresses(world: World, outcome: Bounced) -> None:
    receipt = await world.send()
    await world.settle(await world.claim_of(receipt), outcome)

    assert world.state(receipt) is State.BOUNCED
    assert world.rows_of(schema.suppressions) == []


@pytest.mark.parametrize("permitted", [False, True], ids=["claimed", "permitted"])
@pytest.mark.parametrize("first", [True, False], ids=["gone-first", "gone-last"])
async def test_a_gone_address_stops_the_mail_that_is_settled_with_it(
    world: World, *, permitted: bool, first: bool
) -> None:
    """Two mails to one person come back in one group: the suppression is not written over by the other's retry."""
    receipts = [await world.send(), await world.send(kind="reply")]
    claims = {claim.send: claim for claim in await world.claim()}
    mine, other = (claims[receipt.record.id] for receipt in receipts)
    if permitted:
        await world.permit(other)
    reports = [world.settle(mine, GONE), world.settle(other, BUSY)]

    await asyncio.gather(*(reports if first else reversed(reports)))

    assert world.state(receipts[0]) is State.BOUNCED
    assert world.state(receipts[1]) is State.BLOCKED
    assert await world.claim() == []


async def test_a_gone_address_is_a_bounce_and_not_also_a_block(world: World) -> None:
    receipt = await world.send()
    await world.settle(await world.claim_of(receipt), GONE)

    names = [row["name"] for row in world.rows_of(schema.events) if row["name"].startswith("delivery.")]

    assert names == ["delivery.bounced"]


# --- retries ------------------------------------------------------------------------------------------------------------


async def test_waits_double_up_to_the_longest_step(world: World) -> None:
    receipt = await world.send()
    retry = Retry(first=30, longest=120)
    waits = []
    for _ in range(4):
        claim = await world.claim_of(receipt)
        await world.relay(claim, BUSY, retry)
        (delivery,) = world.record(receipt.record.id).deliveries
        assert delivery.due_at is not None
        assert delivery.changed_at is not None
        waits.append((delivery.due_at - delivery.changed_at).total_seconds())
        world.advance(waits[-1] + 1)

    assert waits == [37.5, 75, 100, 100]


async def test_nothing_is_claimed_before_it_is_due(world: World) -> None:
    receipt = await world.send()
    await world.relay(await world.claim_of(receipt), BUSY, Retry(first=40))
    world.advance(49)

    assert await world.claim() == []
    world.advance(2)
    assert len(await world.claim()) == 1


async def test_the_last_attempt_bounces(world: World) -> None:
    receipt = await world.send()
    retry = Retry(first=1, max_attempts=2)
    await world.relay(await world.claim_of(receipt), BUSY, retry)
    world.advance(2)

    assert await world.relay(await world.claim_of(receipt), BUSY, retry) is State.BOUNCED
    assert world.record(receipt.record.id).deliveries[0].reason == "gave_up"


async def test_what_should_not_count_uses_up_no_attempt(world: World) -> None:
    receipt = await world.send()
    retry = Retry(first=1, max_attempts=2)
    for _ in range(3):
        await world.settle(await world.claim_of(receipt), Deferred("421 at connect", counts=False), retry)
        world.advance(2)

    assert world.state(receipt) is State.QUEUED
    assert world.record(receipt.record.id).deliveries[0].attempts == 0


async def test_a_delivery_is_given_up_by_age(world: World) -> None:
    receipt = await world.send()
    retry = Retry(give_up=500)
    await world.relay(await world.claim_of(receipt), BUSY, retry)
    world.advance(501)

    assert await world.relay(await world.claim_of(receipt), BUSY, retry) is State.BOUNCED


async def test_the_age_of_scheduled_mail_counts_from_its_first_release(world: World) -> None:
    receipt = await world.send(not_before=START + timedelta(seconds=1000))
    world.advance(1001)
    await world.look()
    retry = Retry(give_up=500)

    assert await world.relay(await world.claim_of(receipt), BUSY, retry) is State.QUEUED


async def test_given_back_mail_is_due_at_once(world: World) -> None:
    receipt = await world.send()
    await world.relay(await world.claim_of(receipt), GivenBack("late"))

    claim = await world.claim_of(receipt)

    assert claim.claim_no == 2
    assert await world.relay(claim) is State.RELAYED


# --- late replies -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("late", "state"),
    [(Relayed(OK), State.RELAYED), (REFUSED, State.BOUNCED), (BUSY, State.QUEUED)],
    ids=["2yz", "5yz", "4yz"],
)
async def test_a_late_reply_settles_the_unknown(world: World, late: Outcome, state: State) -> None:
    receipt = await world.send()
    claim = await world.claim_of(receipt)
    await world.relay(claim, SILENT)

    assert await world.settle(claim, late) is state
    assert world.record(receipt.record.id).deliveries[0].attempts == 1


async def test_two_reports_about_one_delivery_in_one_group_are_taken_in_order(world: World) -> None:
    receipt = await world.send()
    claim = await world.claim_of(receipt)
    await world.permit(claim)

    first, second = await asyncio.gather(world.settle(claim, SILENT), world.settle(claim, Relayed(OK)))

    assert (first, second) == (State.UNKNOWN, State.RELAYED)


async def test_mail_that_was_unknown_is_judged_again_before_it_goes_a_second_time(world: World) -> None:
    """While it was unknown it held nobody off: another agent may have the contact by now."""
    receipt = await world.send("a")
    claim = await world.claim_of(receipt)
    await world.relay(claim, SILENT)
    await world.lease("b")
    await world.settle(claim, BUSY)
    world.advance(60)

    assert await world.claim() == []
    await world.look()
    assert await world.claim() == []
    assert world.state(receipt) is State.QUEUED


@pytest.mark.parametrize("by", ["retry", "late 4yz", "pause"])
async def test_what_has_left_flight_goes_behind_what_has_set_out_meanwhile(world: World, by: str) -> None:
    first = await world.send("a")
    claim = await world.claim_of(first)
    if by == "pause":
        await world.pause_mailbox()
    else:
        await world.relay(claim, SILENT)
        world.advance(3600)
    second = await world.send("b", mailbox=BOXES[1], subject="another thing")
    on_its_way = await world.claim_of(second)
    await world.permit(on_its_way)
    match by:
        case "retry":
            await world.resolve(first.record.id, "retry")
        case "late 4yz":
            await world.settle(claim, BUSY)
        case _:
            await world.resume_mailbox()
    world.advance(60)
    await world.look()

    assert await world.claim() == []
    assert world.record(first.record.id).deliveries[0].reason == "lease_conflict"  # the other's send is in the way
    assert await world.settle(on_its_way, Relayed(OK)) is State.RELAYED


async def test_a_retry_that_waits_for_a_lease_goes_when_it_is_given_back(world: World) -> None:
    receipt = await world.send("a")
    await world.relay(await world.claim_of(receipt), SILENT)
    world.advance(700)
    held = await world.lease("b")
    await world.resolve(receipt.record.id, "retry")
    await world.look()
    before = world.record(receipt.record.id).deliveries[0].reason
    await world.release(held.id)
    await world.look()

    assert before == "lease_conflict"
    assert await world.relay(await world.claim_of(receipt)) is State.RELAYED


async def test_an_unknown_that_turns_out_unsent_goes_when_nobody_minds(world: World) -> None:
    receipt = await world.send("a")
    claim = await world.claim_of(receipt)
    await world.relay(claim, SILENT)
    await world.settle(claim, GivenBack("late"))
    await world.look()

    assert await world.relay(await world.claim_of(receipt)) is State.RELAYED


async def test_a_late_yes_ends_a_retry_that_was_ordered(world: World) -> None:
    receipt = await world.send()
    claim = await world.claim_of(receipt)
    await world.relay(claim, SILENT)
    await world.resolve(receipt.record.id, "retry")

    assert await world.settle(claim, Relayed(OK)) is State.RELAYED
    await world.look()
    assert await world.claim() == []


@pytest.mark.parametrize("where", [State.HELD, State.SCHEDULED])
async def test_a_late_yes_ends_it_wherever_it_waits(world: World, where: State) -> None:
    receipt = await world.send()
    claim = await world.claim_of(receipt)
    await world.relay(claim, SILENT)
    await world.resolve(receipt.record.id, "retry")
    await world.pause_mailbox()
    if where is State.SCHEDULED:
        await world.resume_mailbox()

    assert world.state(receipt) is where
    assert await world.settle(claim, Relayed(OK)) is State.RELAYED
    await world.resume_mailbox()
    await world.look()
    assert await world.claim() == []
    assert stamped(world) == [(PAT, receipt.record.id)]


@pytest.mark.parametrize("late", [BUSY, REFUSED, GivenBack("late")], ids=["4yz", "5yz", "given-back"])
async def test_a_late_no_does_not_undo_a_retry_that_was_ordered(world: World, late: Outcome) -> None:
    receipt = await world.send()
    claim = await world.claim_of(receipt)
    await world.relay(claim, SILENT)
    await world.resolve(receipt.record.id, "retry")

    assert await world.settle(claim, late) is None
    assert world.state(receipt) is State.QUEUED


async def test_a_late_no_ends_what_was_assumed_sent_as_bounced(world: World) -> None:
    receipt = await world.send()
    claim = await world.claim_of(receipt)
    await world.relay(claim, SILENT)
    await world.resolve(receipt.record.id, "assume_sent")

    assert await world.settle(claim, BUSY) is None
    assert world.state(receipt) is State.RELAYED
    assert await world.settle(claim, REFUSED) is State.BOUNCED


async def test_a_reply_of_record_is_not_undone_by_a_later_one(world: World) -> None:
    receipt = await world.send()
    claim = await world.claim_of(receipt)
    await world.relay(claim)

    assert [await world.settle(claim, outcome) for outcome in (REFUSED, BUSY, SILENT)] == [None] * 3
    assert world.state(receipt) is State.RELAYED


async def test_a_late_reply_under_an_old_claim_number_is_only_kept(world: World) -> None:
    receipt = await world.send()
    old = await world.claim_of(receipt)
    await world.relay(old, SILENT)
    await world.resolve(receipt.record.id, "retry")
    await world.look()
    new = await world.claim_of(receipt)

    assert await world.settle(old, Relayed(OK)) is None
    assert world.state(receipt) is State.CLAIMED
    assert [row["outcome"] for row in world.rows_of(schema.attempts)] == ["relayed", ""]
    assert await world.relay(new) is State.RELAYED
