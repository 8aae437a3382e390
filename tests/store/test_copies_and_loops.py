"""Copies under another key and exchanges without an end, through the store: what counts, batches, releases, one alarm."""

import asyncio
import json

import pytest

from gateway.core.delivery import Bounced, Deferred, State, Unknown
from gateway.store.schema import alarms, events
from tests.databases import Databases
from tests.world import BOXES, PAT, World, a_world, verdict

OTHER = "other@example.net"
DAY = 86_400
TEXT = "Hello Pat, the new contract is ready for you to sign."
AGAIN = "Hi Pat: the new contract is ready for you to sign!"
OPEN = {"cooldown": {"seconds": 0}, "loop": {"pair": 2, "thread": 3}}
HELD = ("hold", "near_duplicate")
BROKEN = ("defer", "loop_suspected")


async def relayed(world: World, *args: object, **changes: object) -> str:
    """Sends a mail and has it relayed; gives its request id."""
    receipt = await world.send(*args, **{"reads": TEXT} | changes)  # type: ignore[arg-type]
    assert await world.relay(await world.claim_of(receipt)) is State.RELAYED
    return receipt.record.id


def first_named(world: World, request: str) -> list[str]:
    """The first requests that the last decision about a request names."""
    found = world.record(request).decision["findings"]
    return [f["extra"]["firstRequestId"] for f in found if f["reason"] == "near_duplicate"]


# --- copies -----------------------------------------------------------------------------------------------------------


async def test_a_copy_by_another_agent_after_the_cooldown_is_held_and_names_the_first(world: World) -> None:
    first = await relayed(world, "a")
    world.advance(700)

    copy = await world.send("b", mailbox=BOXES[1], reads=AGAIN)

    assert verdict(copy) == HELD
    assert world.state(copy) is State.HELD
    assert first_named(world, copy.record.id) == [first]


async def test_a_follow_up_with_new_words_goes(world: World) -> None:
    await relayed(world)
    world.advance(700)

    assert verdict(await world.send(subject="a call?", reads="Did you have time to look at it?"))[0] == "pass"


async def test_a_copy_a_day_later_goes(world: World) -> None:
    await relayed(world)
    world.advance(DAY + 1)

    assert verdict(await world.send(reads=TEXT))[0] == "pass"


async def test_the_same_key_is_a_repeat_and_no_copy(world: World) -> None:
    first = await relayed(world, key="k")
    world.advance(700)

    again = await world.send(key="k", reads=TEXT)

    assert again.replayed
    assert again.record.id == first


async def test_a_dry_run_tells_of_the_copy_and_of_the_first(world: World) -> None:
    first = await relayed(world)
    world.advance(700)

    preview = world.preview(world.ticket(reads=TEXT))

    assert verdict(preview) == HELD
    assert preview.record.decision["findings"][0]["extra"] == {"firstRequestId": first}


@pytest.mark.parametrize("fate", ["cancelled", "bounced", "refused"])
async def test_what_never_reached_the_person_has_no_copies(databases: Databases, fate: str) -> None:
    async with a_world(databases, {"cooldown": {"seconds": 0}}) as world:
        entry = (await world.suppress())[0].id if fate == "refused" else ""
        first = await world.send(reads=TEXT)
        if fate == "cancelled":
            await world.cancel(first.record.id)
        elif fate == "bounced":
            claim = await world.claim_of(first)
            await world.permit(claim)
            await world.settle(claim, Bounced("554 to DOT"))
        else:
            await world.unsuppress(entry)

        assert verdict(await world.send(reads=TEXT))[0] == "pass"


async def test_what_may_have_reached_the_person_has(databases: Databases) -> None:
    async with a_world(databases, {"cooldown": {"seconds": 0}}) as world:
        first = await world.send(reads=TEXT)
        claim = await world.claim_of(first)
        await world.permit(claim)
        await world.settle(claim, Unknown("silence"))

        assert first_named(world, (await world.send(reads=AGAIN)).record.id) == [first.record.id]


async def test_of_two_copies_in_one_batch_the_second_is_held(databases: Databases) -> None:
    async with a_world(databases, {"cooldown": {"seconds": 0}}) as world:
        tickets = [world.ticket(reads=TEXT), world.ticket(reads=AGAIN), world.ticket(to=OTHER, reads=TEXT)]
        receipts = await asyncio.gather(*map(world.nodes[0].intake.submit, tickets))

        assert [verdict(r)[0] for r in receipts] == ["pass", "hold", "pass"]
        assert first_named(world, receipts[1].record.id) == [receipts[0].record.id]


async def test_an_approval_lets_this_copy_go_and_no_other(world: World) -> None:
    await relayed(world)
    world.advance(700)
    copies = [await world.send(reads=AGAIN), await world.send("b", reads=TEXT)]

    await world.resolve(copies[0].record.id, "approve")

    assert [world.state(copy) for copy in copies] == [State.QUEUED, State.HELD]


async def test_an_approved_copy_meets_a_new_first_with_a_new_question(world: World) -> None:
    await relayed(world)
    world.advance(DAY - 700)
    copy = await world.send(reads=TEXT, not_before=None)
    held = world.state(copy)
    world.advance(800)  # the first one's day is over
    other = await relayed(world, "b", reads=AGAIN)
    world.advance(700)

    await world.resolve(copy.record.id, "approve")

    assert held is State.HELD
    assert world.state(copy) is State.HELD
    assert first_named(world, copy.record.id) == [other]


async def test_scheduled_mail_is_compared_when_it_is_let_go(world: World) -> None:
    scheduled = await world.send(reads=TEXT, not_before=world.now.replace(hour=23))
    first = await relayed(world, "b", reads=AGAIN)
    world.advance(18 * 3600)
    await world.look()

    assert world.state(scheduled) is State.HELD
    assert first_named(world, scheduled.record.id) == [first]


async def test_mail_that_is_judged_again_while_queued_is_not_held_by_its_own_copy(databases: Databases) -> None:
    async with a_world(databases, {"cooldown": {"seconds": 0}}) as world:
        first = await world.send(reads=TEXT)
        claim = await world.claim_of(first)
        await world.permit(claim)
        await world.settle(claim, Deferred("451"))
        copy = await world.send(reads=TEXT)
        await world.resolve(copy.record.id, "approve")
        world.advance(900)
        await world.look()

        assert [world.state(mail) for mail in (first, copy)] == [State.QUEUED, State.QUEUED]


async def test_replies_are_compared_to_what_answers_the_same_message(databases: Databases) -> None:
    async with a_world(databases, {"cooldown": {"seconds": 0}}) as world:
        answers = {"kind": "reply", "reads": "Many thanks for your quick answer!"}
        first = await world.send(in_reply_to="m-1@example.net", **answers)
        other = await world.send(in_reply_to="m-2@example.net", **answers)
        again = await world.send(in_reply_to="m-1@example.net", **answers)

        assert [verdict(r)[0] for r in (first, other, again)] == ["pass", "pass", "hold"]
        assert first_named(world, again.record.id) == [first.record.id]


# --- loops ------------------------------------------------------------------------------------------------------------


def broken(world: World) -> list[tuple[str, str]]:
    """The alarms: contact and what the loop is of."""
    rows = [row for row in world.rows_of(events) if row["name"] == "loop.broken"]
    return sorted((row["contact"], json.loads(row["data"])["loopOf"]) for row in rows)


async def test_between_two_there_is_room_for_so_many_mails_and_one_alarm_tells(databases: Databases) -> None:
    async with a_world(databases, OPEN) as world:
        receipts = [await world.send(subject=f"n{n}", kind="reply") for n in range(5)]
        pair = f"{world.box[BOXES[0]].id} {PAT}"

        assert [verdict(r) for r in receipts] == [("pass", None)] * 2 + [BROKEN] * 3
        assert broken(world) == [(PAT, pair)]

        elsewhere = await world.send(to=OTHER, kind="reply")
        other_box = await world.send(mailbox=BOXES[1], kind="reply")
        assert [verdict(r)[0] for r in (elsewhere, other_box)] == ["pass", "pass"]


async def test_there_is_room_again_at_the_time_that_was_told_and_then_a_new_alarm(databases: Databases) -> None:
    async with a_world(databases, OPEN) as world:
        first = [await world.send(subject=f"n{n}", kind="reply") for n in range(3)]
        assert first[2].record.decision["retry_at"] is not None
        world.advance(3601)

        receipts = [await world.send(subject=f"m{n}", kind="reply") for n in range(4)]

        assert [verdict(r) for r in receipts] == [("pass", None)] * 2 + [BROKEN] * 2
        assert len(broken(world)) == 2
        assert len(world.rows_of(alarms)) == 1


async def test_a_thread_is_counted_over_people_and_mailboxes(databases: Databases) -> None:
    async with a_world(databases, OPEN) as world:
        tickets = [
            world.ticket(to=f"p{n}@example.net", thread="t-1", kind="reply", mailbox=BOXES[n % 2]) for n in range(5)
        ]
        receipts = await asyncio.gather(*map(world.nodes[0].intake.submit, tickets))
        other = await world.send(to="p9@example.net", thread="t-2", kind="reply")

        assert [verdict(r) for r in receipts] == [("pass", None)] * 3 + [BROKEN] * 2
        assert verdict(other)[0] == "pass"
        assert broken(world) == [("", "thread t-1")]


async def test_cancelled_mail_makes_no_loop(databases: Databases) -> None:
    async with a_world(databases, OPEN) as world:
        for n in range(4):
            receipt = await world.send(subject=f"n{n}", kind="reply")
            assert verdict(receipt)[0] == "pass"
            await world.cancel(receipt.record.id)


async def test_where_it_is_only_observed_nothing_is_refused_and_no_alarm_goes_off(databases: Databases) -> None:
    async with a_world(databases, OPEN | {"loop": {"mode": "observe", "pair": 1}}) as world:
        receipts = [await world.send(subject=f"n{n}", kind="reply") for n in range(3)]

        assert {verdict(r)[0] for r in receipts} == {"pass"}
        assert broken(world) == []


async def test_a_scheduled_mail_meets_the_count_when_it_is_let_go_and_the_alarm_goes_off_there(
    databases: Databases,
) -> None:
    async with a_world(databases, OPEN) as world:
        later = [
            await world.send(subject=f"n{n}", kind="reply", not_before=world.now.replace(hour=20)) for n in range(3)
        ]
        world.advance(14 * 3600)
        await world.look()

        states = sorted(world.state(receipt) for receipt in later)
        assert states == [State.QUEUED, State.QUEUED, State.SCHEDULED]
        assert len(broken(world)) == 1
