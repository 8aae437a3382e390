"""Law 11: waiting mail does not wait for itself. Law 12: accepted counts at once, and a final failure leaves nothing."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gateway.core.delivery import State
from gateway.core.errors import ConflictError
from gateway.core.facts import (
    Ask,
    FlightsAsk,
    LastContactAsk,
    RecentAsk,
    SuppressionAnswer,
    SuppressionAsk,
    ThreadAsk,
    UnknownsAsk,
    UsageAsk,
)
from gateway.core.mail import Kind
from gateway.core.record import Receipt
from gateway.store.contacts import Held
from gateway.store.schema import deliveries
from tests.databases import Databases
from tests.laws.plays import (
    OPTIONS,
    OUTCOMES,
    Act,
    Mail,
    batches,
    bring,
    changed,
    every_ask,
    load,
    mails,
    pasts,
    play,
    submit,
)
from tests.world import a_world, reasons

ROOMY = {"quota": {"tenant_month": 1000}, "recipient": {"max_recipients": 3}}
FEW = settings(max_examples=10)


def alone(mail: Mail) -> Mail:
    """The mail with a key that nobody has used, without token or demands of its own."""
    return replace(mail, key="of its own", token=None, override=None)


@FEW
@given(past=pasts, mail=mails, held=st.booleans())
async def test_mail_that_waits_moves_only_quotas_until_its_release(
    databases: Databases, past: list[Act], mail: Mail, *, held: bool
) -> None:
    mail = replace(alone(mail), after=None if held else 5000, subject="held" if held else "later")
    async with a_world(databases, ROOMY) as world:
        if held:  # the same mail is unknown: the next one waits for a person
            await bring(world, replace(mail, agent="a", key="the first", kind="outreach"), "unknown")
            world.advance(700)
        await play(world, past)
        asks = every_ask(world)
        before = load(world, asks)

        receipt = await submit(world, mail)

        assert isinstance(receipt, Receipt)
        assume(set(world.states(receipt.record.id)) <= {State.SCHEDULED, State.HELD})
        after = load(world, asks)
        assert all(isinstance(ask, UsageAsk) for ask in changed(before, after))
        tenant = UsageAsk("tenant", "default", "month")
        assert after[tenant].used == before[tenant].used + len(mail.to)


@FEW
@given(past=pasts, mail=mails)
async def test_a_release_sees_neither_itself_nor_its_own_stamp(
    databases: Databases, past: list[Act], mail: Mail
) -> None:
    """What nothing else stands in the way of goes at its time, whatever it has done itself."""
    mail = replace(alone(mail), after=3000)
    async with a_world(databases, ROOMY) as world:
        await play(world, past)
        receipt = await submit(world, mail)
        assert isinstance(receipt, Receipt)
        assume(set(world.states(receipt.record.id)) == {State.SCHEDULED})
        for claim in await world.claim():  # the past is over: all that was under way has ended
            await world.settle(claim, OUTCOMES["bounced"])
        others = [row for row in world.rows_of(deliveries) if row["send_id"] != receipt.record.id]
        assume(not any(row["state"] == State.SCHEDULED for row in others))  # it would be let go beside this one
        world.advance(4300)
        before = load(world, every_ask(world))
        in_the_way = [
            ask
            for ask in before
            if ask.subject in _keys(receipt)
            and (
                (isinstance(ask, FlightsAsk | UnknownsAsk) and before[ask])
                or (
                    isinstance(ask, LastContactAsk)
                    and before[ask].at
                    and before[ask].at > world.now - timedelta(minutes=10)
                )
                or (isinstance(ask, SuppressionAsk) and before[ask])
            )
        ]
        assume(not in_the_way)

        await world.look()
        await world.look()

        (reason,) = {d.reason for d in world.record(receipt.record.id).deliveries}
        assert set(world.states(receipt.record.id)) == {State.QUEUED} or reason == "lease_conflict"


def _keys(receipt: Receipt) -> set[str]:
    return {delivery.contact for delivery in receipt.record.deliveries}


@FEW
@given(past=pasts, mail=mails, fate=st.sampled_from(["queued", "claimed", "permitted", "deferred"]))
async def test_from_the_commit_on_its_contacts_are_closed_to_others_and_in_cooldown(
    databases: Databases, past: list[Act], mail: Mail, fate: str
) -> None:
    mail = replace(alone(mail), after=None)
    other = next(agent for agent in "abc" if agent != mail.agent)
    async with a_world(databases, ROOMY) as world:
        await play(world, past)
        receipt = await bring(world, mail, fate)
        assume(receipt is not None)
        assert receipt is not None
        closed = Kind(mail.kind).leased
        for delivery in world.record(receipt.record.id).deliveries:
            internal = delivery.contact.endswith("@gw.example.com")
            flights = load(world, {FlightsAsk(delivery.contact)})[FlightsAsk(delivery.contact)]
            mine = [flight for flight in flights if flight.request == receipt.record.id]

            theirs = await world.acquire(other, delivery.address)
            send = await submit(world, Mail(other, (delivery.address,), kind="reply", subject="theirs"))
            again = await submit(world, Mail(mail.agent, (delivery.address,), subject="more"))

            assert bool(mine) is (closed and not internal)
            if mine:
                assert mine[0].permitted is (delivery.state is State.PERMITTED)
                assert isinstance(theirs, Held)
                assert isinstance(send, Receipt)
                assert "lease_conflict" in reasons(send)
                assert isinstance(again, Receipt)
                assert "cooldown" in reasons(again)


@FEW
@given(past=pasts, mail=mails, fate=st.sampled_from(["relayed", "unknown", "bounced", "gone", "cancelled"]))
async def test_what_is_over_leaves_a_stamp_or_nothing(
    databases: Databases, past: list[Act], mail: Mail, fate: str
) -> None:
    mail = replace(alone(mail), after=None)
    async with a_world(databases, ROOMY) as world:
        await play(world, past)
        for claim in await world.claim():  # so that `bring` has nothing else to bring back
            await world.settle(claim, OUTCOMES["bounced"])
        asks = every_ask(world)
        before = load(world, asks)
        receipt = await bring(world, mail, fate)
        assume(receipt is not None)
        assert receipt is not None

        after = load(world, asks)

        people = {d.contact for d in world.record(receipt.record.id).deliveries}
        bound = {key for key in people if not key.endswith("@gw.example.com")}
        stamped = bound if fate in {"relayed", "unknown"} and Kind(mail.kind).starts_cooldown else set()
        moved = {ask for ask in changed(before, after) if not isinstance(ask, UsageAsk | RecentAsk | ThreadAsk)}
        expected: set[Ask[Any]] = {LastContactAsk(key) for key in stamped}
        if fate == "unknown":
            expected |= {UnknownsAsk(key) for key in people}
        if fate == "gone":
            gone = {SuppressionAsk(key, campaign) for key in people for campaign in (None, "spring")}
            assert {after[ask] for ask in gone} == {SuppressionAnswer("tenant", "hard_bounce")}
            expected |= gone
        assert moved == expected
        assert all(after[LastContactAsk(key)].by == receipt.record.id for key in stamped)


@FEW
@given(past=pasts, batch=batches)
async def test_a_refused_mail_moves_nothing_and_a_waiting_one_only_quotas(
    databases: Databases, past: list[Act], batch: list[Mail]
) -> None:
    async with a_world(databases, OPTIONS) as world:
        await play(world, past)
        for mail in batch:
            asks = every_ask(world)
            before = load(world, asks)

            receipt = await submit(world, mail)

            moved = changed(before, load(world, asks))
            states = set() if isinstance(receipt, ConflictError) else set(world.states(receipt.record.id))
            if states <= {State.BLOCKED} or (isinstance(receipt, Receipt) and receipt.replayed):
                assert moved == set()
            elif states <= {State.SCHEDULED, State.HELD}:
                assert all(isinstance(ask, UsageAsk) for ask in moved)
            else:
                assert all(isinstance(ask, UsageAsk | FlightsAsk | RecentAsk | ThreadAsk) for ask in moved)
