"""A paused mailbox: what it holds, what waits for it, and how all of that goes on (SEMANTICS 3, ARCHITECTURE 8)."""

from datetime import timedelta

import pytest

from gateway.core.delivery import Deferred, Relayed, State, Unknown
from gateway.core.errors import NotFoundError
from gateway.store import mailboxes
from tests.databases import Databases
from tests.world import BOXES, OK, PAT, START, TENANT, World, a_world, ids, verdict

BUSY = Deferred("451")
DAY = 86_400


def at(seconds: float) -> "object":
    """A time after the world's start."""
    return START + timedelta(seconds=seconds)


def reason(world: World, request: str) -> str:
    return world.record(request).deliveries[0].reason


async def test_what_a_pause_held_goes_on_in_the_order_of_acceptance(world: World) -> None:
    sent = [await world.send(to=f"p{n}@example.net") for n in range(5)]
    await world.relay((await world.claim(1))[0], BUSY)  # the oldest has been tried
    held = await world.pause_mailbox()
    world.advance(300)

    released = await world.resume_mailbox()
    await world.look()

    assert (held, released) == (5, 5)
    assert [world.state(one) for one in sent] == [State.QUEUED] * 5
    assert [world.record(one.record.id).decision_no for one in sent] == [2] * 5
    assert ids(await world.claim()) == [one.record.id for one in sent]


async def test_resumed_mail_is_judged_again(world: World) -> None:
    receipt = await world.send()
    await world.pause_mailbox()
    await world.suppress()
    await world.resume_mailbox()
    await world.look()

    assert world.state(receipt) is State.BLOCKED
    assert reason(world, receipt.record.id) == "suppressed"


async def test_mail_that_a_person_must_decide_about_stays_held_through_pause_and_resume(world: World) -> None:
    await world.relay(await world.claim_of(await world.send()), Unknown("silence"))
    world.advance(3600)
    receipt = await world.send("b")
    assert verdict(receipt) == ("hold", "unknown_outstanding")

    await world.pause_mailbox()
    released = await world.resume_mailbox()
    await world.look()

    assert released == 0
    assert world.state(receipt) is State.HELD
    assert reason(world, receipt.record.id) == "unknown_outstanding"


async def test_approved_mail_of_a_paused_mailbox_waits_for_it_and_keeps_its_approval(world: World) -> None:
    await world.relay(await world.claim_of(await world.send()), Unknown("silence"))
    world.advance(3600)
    receipt = await world.send("b")
    await world.pause_mailbox()

    record = await world.resolve(receipt.record.id, "approve")

    assert [d.state for d in record.deliveries] == [State.HELD]
    assert record.deliveries[0].reason == "mailbox_paused"
    assert await world.resume_mailbox() == 1
    await world.look()
    assert world.state(receipt) is State.QUEUED


async def test_an_approval_does_not_lift_a_pause(world: World) -> None:
    receipt = await world.send()
    await world.pause_mailbox()

    record = await world.resolve(receipt.record.id, "approve")

    assert [(d.state, d.reason) for d in record.deliveries] == [(State.HELD, "mailbox_paused")]
    await world.look()
    assert await world.claim() == []


async def test_scheduled_mail_that_falls_due_in_a_pause_is_held_and_goes_on_after_it(world: World) -> None:
    receipt = await world.send(not_before=at(100))
    held = await world.pause_mailbox()
    world.advance(101)
    await world.look()
    waiting = world.record(receipt.record.id).deliveries[0]

    await world.resume_mailbox()
    await world.look()

    assert held == 0
    assert (waiting.state, waiting.reason) == (State.HELD, "mailbox_paused")
    assert world.state(receipt) is State.QUEUED
    assert await world.relay(await world.claim_of(receipt)) is State.RELAYED


async def test_scheduled_mail_resumed_before_its_time_keeps_its_time(world: World) -> None:
    receipt = await world.send(not_before=at(1000))
    await world.pause_mailbox()
    await world.resume_mailbox()
    await world.look()

    assert world.state(receipt) is State.SCHEDULED
    assert world.record(receipt.record.id).deliveries[0].due_at == at(1000)


async def test_another_refusal_ends_mail_also_in_a_pause(world: World) -> None:
    receipt = await world.send(not_before=at(100))
    await world.pause_mailbox()
    await world.suppress()
    world.advance(101)
    await world.look()

    assert world.state(receipt) is State.BLOCKED
    assert reason(world, receipt.record.id) == "suppressed"


@pytest.mark.parametrize("outcome", [BUSY, Unknown("silence")])
async def test_what_had_its_permit_is_held_when_it_comes_back_in_a_pause(
    world: World, outcome: Deferred | Unknown
) -> None:
    receipt = await world.send()
    claim = await world.claim_of(receipt)
    assert await world.permit(claim) is None
    held = await world.pause_mailbox()

    await world.settle(claim, outcome)
    if isinstance(outcome, Unknown):
        await world.resolve(receipt.record.id, "retry")
    world.advance(60)
    assert await world.claim() == []
    await world.look()

    assert held == 0
    assert world.state(receipt) is State.HELD
    await world.resume_mailbox()
    await world.look()
    assert await world.relay(await world.claim_of(receipt)) is State.RELAYED


async def test_what_had_its_permit_and_arrives_is_relayed(world: World) -> None:
    receipt = await world.send()
    claim = await world.claim_of(receipt)
    await world.permit(claim)
    await world.pause_mailbox()

    assert await world.settle(claim, Relayed(OK)) is State.RELAYED


async def test_long_queued_mail_of_a_paused_mailbox_is_held_and_not_ended(world: World) -> None:
    """Its pause and its acceptance were two nodes' work at once: the release finds it queued."""
    receipt = await world.send()
    box = world.box[BOXES[0]].id
    world.advance(700)

    def pause_alone(tx: object) -> None:
        from gateway.store import agents

        agents.set_mailbox_status(tx, TENANT, box, "paused")  # type: ignore[arg-type]

    world.store.write((TENANT,), pause_alone)
    await world.look()

    assert (world.state(receipt), reason(world, receipt.record.id)) == (State.HELD, "mailbox_paused")


async def test_resumed_mail_respects_what_set_out_meanwhile(world: World) -> None:
    receipt = await world.send("a", not_before=at(10))
    await world.pause_mailbox()
    world.advance(11)
    await world.look()
    other = await world.send("b", mailbox=BOXES[1])
    await world.relay(await world.claim_of(other))
    await world.resume_mailbox()
    await world.look()

    assert (world.state(receipt), reason(world, receipt.record.id)) == (State.SCHEDULED, "cooldown")
    world.advance(700)
    await world.look()
    assert world.state(receipt) is State.QUEUED


async def test_a_pause_touches_no_other_mailbox_and_may_be_repeated(world: World) -> None:
    mine = await world.send()
    other = await world.send(to="p1@example.net", mailbox=BOXES[1])

    assert (await world.pause_mailbox(), await world.pause_mailbox()) == (1, 0)
    assert (world.state(mine), world.state(other)) == (State.HELD, State.QUEUED)
    assert await world.resume_mailbox(BOXES[1]) == 0
    assert world.state(mine) is State.HELD
    assert (await world.resume_mailbox(), await world.resume_mailbox()) == (1, 0)


async def test_mail_held_too_long_by_a_pause_expires(world: World) -> None:
    receipt = await world.send()
    await world.pause_mailbox()
    world.advance(DAY + 1)
    await world.resume_mailbox()
    await world.look()

    assert world.state(receipt) is State.EXPIRED


async def test_a_mailbox_that_is_not_there_cannot_be_paused(world: World) -> None:
    with pytest.raises(NotFoundError):
        world.store.write((TENANT,), lambda tx: mailboxes.pause(tx, TENANT, "mbx_nowhere"))


async def test_a_refused_send_under_a_pause_may_be_tried_again_after_it(world: World) -> None:
    await world.pause_mailbox()
    refused = await world.send(key="once")
    await world.resume_mailbox()

    again = await world.send(key="once")

    assert verdict(refused) == ("refuse", "mailbox_paused")
    assert verdict(again) == ("pass", None)
    assert again.record.id == refused.record.id


# --- values of the tenant's and the mailbox's own -----------------------------------------------------------------------


def settle_on(world: World, box: dict[str, object] | None = None, **values: object) -> None:
    from gateway.store import tenant_settings

    def work(tx: object) -> None:
        change = tenant_settings.Change(TENANT, "operator", person=True, values=values)
        tenant_settings.change(tx, [change])  # type: ignore[arg-type]
        wish = mailboxes.Change(TENANT, world.box[BOXES[0]].id, "operator", person=True, options=box or {})
        mailboxes.change(tx, [wish])  # type: ignore[arg-type]

    world.store.write((TENANT,), work)


@pytest.mark.parametrize(
    ("tenant", "box", "first", "second"),
    [(None, None, 600, 600), (60, None, 60, 60), (None, 30, 30, 600), (60, 0, 0, 60), (0, 90, 90, 0)],
)
async def test_the_cooldown_is_the_mailboxs_own_else_the_tenants_else_the_gateways(
    world: World, tenant: int | None, box: int | None, first: int, second: int
) -> None:
    settle_on(world, {"cooldown": box}, cooldown=tenant)
    await world.relay(await world.claim_of(await world.send()))

    for mailbox, seconds in ((BOXES[0], first), (BOXES[1], second)):
        receipt = await world.send("b", mailbox=mailbox, subject=mailbox)
        assert verdict(receipt) == (("defer", "cooldown") if seconds else ("pass", None))
        if not seconds:
            await world.cancel(receipt.record.id)
        else:
            until = max(f["until"] for f in receipt.record.decision["findings"])
            assert until.startswith((START + timedelta(seconds=seconds)).isoformat()[:16])


@pytest.mark.parametrize(
    ("tenant", "box", "state"),
    [
        ({}, None, State.UNKNOWN),
        ({"*": "assume_sent_after:1h"}, None, State.RELAYED),
        ({"reply": "assume_sent_after:1h"}, None, State.UNKNOWN),
        ({"outreach": "assume_sent_after:1h"}, {"reply": "hold"}, State.RELAYED),
        ({"outreach": "assume_sent_after:1h"}, {"*": "hold"}, State.UNKNOWN),
        ({"*": "hold"}, {"outreach": "assume_sent_after:1h"}, State.RELAYED),
    ],
)
async def test_the_setting_for_unknown_is_the_mailboxs_own_else_the_tenants(
    world: World, tenant: dict[str, str], box: dict[str, str] | None, state: State
) -> None:
    settle_on(world, {"unknown": box}, unknown=tenant)
    receipt = await world.send()
    await world.relay(await world.claim_of(receipt), Unknown("silence"))
    world.advance(3601)
    await world.look()

    assert world.state(receipt) is state


async def test_a_tenant_that_requires_consent_gets_the_policy_though_it_is_off(databases: Databases) -> None:
    async with a_world(databases, {"consent": {"mode": "off"}}) as world:
        before = await world.send()
        waiting = await world.send(to="p1@example.net", not_before=at(100))
        settle_on(world, require_consent=True)
        world.advance(101)
        await world.look()

        assert verdict(before) == ("pass", None)
        assert verdict(await world.send(to="p2@example.net")) == ("refuse", "no_consent")
        assert verdict(await world.send(to="p2@example.net", kind="reply")) == ("pass", None)
        assert reason(world, waiting.record.id) == "no_consent"
        settle_on(world, require_consent=False)
        assert verdict(await world.send(to="p3@example.net")) == ("pass", None)


async def test_lists_of_tenant_mailbox_and_agent_bind_the_next_mail_and_what_waits(world: World) -> None:
    from gateway.store import tenant_settings

    waiting = await world.send(not_before=at(100))
    settle_on(world, {"allowed": ["example.net"]}, allowed=frozenset(["*.net"]))
    agent = tenant_settings.AgentChange(TENANT, world.agent["b"], "operator", person=True, allowed=[])
    world.store.write((TENANT,), lambda tx: tenant_settings.change_agent(tx, [agent]))

    assert verdict(await world.send(to="p1@example.net")) == ("pass", None)
    assert verdict(await world.send(to="p1@example.org")) == ("refuse", "recipient_not_allowed")
    assert verdict(await world.send("b", to="p2@example.net")) == ("refuse", "recipient_not_allowed")
    assert verdict(await world.send("b", to="p2@example.net", mailbox=BOXES[1])) == ("refuse", "recipient_not_allowed")
    settle_on(world, {"allowed": ["example.org"]})
    world.advance(101)
    await world.look()
    assert (world.state(waiting), reason(world, waiting.record.id)) == (State.BLOCKED, "recipient_not_allowed")


async def test_two_changes_in_one_transaction_lose_nothing(world: World) -> None:
    from gateway.store import tenant_settings

    changes = [
        tenant_settings.Change(TENANT, "operator", person=True, values={"cooldown": 60}),
        tenant_settings.Change(TENANT, "operator", person=True, enter=frozenset([PAT])),
    ]
    world.store.write((TENANT,), lambda tx: tenant_settings.change(tx, changes))

    profile = world.store.read(lambda tx: tx.profile(TENANT), (TENANT,))

    assert (profile.cooldown, profile.internal) == (60, frozenset([PAT]))
