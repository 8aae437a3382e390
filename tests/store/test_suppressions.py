"""The suppression list: what it stops, in flight too, and for how long (SEMANTICS 1.5, ARCHITECTURE 8)."""

import asyncio
from datetime import timedelta

import pytest

from gateway.core.address import parse
from gateway.core.delivery import Deferred, Relayed, State, Unknown
from gateway.core.mail import Envelope, Recipient
from gateway.store import schema, suppressions
from tests.world import BOXES, OK, PAT, START, TENANT, World, verdict

BUSY = Deferred("451")
SUB = "x@mail.deep.example.org"


@pytest.mark.parametrize("claimed", [False, True], ids=["queued", "claimed"])
async def test_mail_in_flight_is_stopped_in_the_same_act(world: World, *, claimed: bool) -> None:
    receipt = await world.send()
    claims = await world.claim() if claimed else []

    _, stopped = await world.suppress()

    assert stopped == [receipt.record.id]
    assert world.state(receipt) is State.BLOCKED
    assert world.record(receipt.record.id).deliveries[0].reason == "suppressed"
    assert [await world.permit(claim) for claim in claims] == ["suppressed"] * len(claims)
    assert await world.claim() == []


@pytest.mark.parametrize("role", ["to", "cc", "bcc"])
async def test_copies_are_stopped_like_the_first_recipient(world: World, role: str) -> None:
    people = (Recipient(parse("first@example.net")), Recipient(parse(PAT), role))
    receipt = await world.nodes[0].intake.submit(world.ticket(envelope=Envelope(BOXES[0], people)))

    await world.suppress()

    assert world.states(receipt.record.id) == [State.QUEUED, State.BLOCKED]
    assert [one.role for one in world.record(receipt.record.id).deliveries] == ["to", role]


async def test_permitted_mail_is_marked_and_never_goes_a_second_time(world: World) -> None:
    receipt = await world.send()
    claim = await world.claim_of(receipt)
    await world.permit(claim)

    _, stopped = await world.suppress()

    assert stopped == []
    assert world.state(receipt) is State.PERMITTED
    assert await world.settle(claim, BUSY) is State.BLOCKED


async def test_a_mark_does_not_hide_that_the_mail_arrived(world: World) -> None:
    receipt = await world.send()
    claim = await world.claim_of(receipt)
    await world.permit(claim)
    await world.suppress()

    assert await world.settle(claim, Relayed(OK)) is State.RELAYED


async def test_unknown_mail_is_marked_too(world: World) -> None:
    receipt = await world.send()
    claim = await world.claim_of(receipt)
    await world.relay(claim, Unknown("silence"))

    await world.suppress()

    await world.resolve(receipt.record.id, "retry")
    assert world.state(receipt) is State.BLOCKED


async def test_a_mark_outlives_becoming_unknown(world: World) -> None:
    receipt = await world.send()
    claim = await world.claim_of(receipt)
    await world.permit(claim)
    await world.suppress()
    await world.settle(claim, Unknown("silence"))

    assert await world.settle(claim, BUSY) is State.BLOCKED


@pytest.mark.parametrize("state", [State.SCHEDULED, State.HELD])
async def test_waiting_mail_meets_the_suppression_at_its_release(world: World, state: State) -> None:
    receipt = await world.send(not_before=START + timedelta(hours=1) if state is State.SCHEDULED else None)
    if state is State.HELD:
        await world.pause_mailbox()
    await world.suppress()
    before = world.state(receipt)
    world.advance(3601)

    if state is State.HELD:
        await world.resolve(receipt.record.id, "approve")
    else:
        await world.look()

    assert before is state
    assert world.state(receipt) is State.BLOCKED


# --- whom an entry covers -----------------------------------------------------------------------------------------------


async def test_a_person_is_suppressed_however_the_address_is_written(world: World) -> None:
    receipt = await world.send(to="Some.One+news@googlemail.com")

    _, stopped = await world.suppress("someone@gmail.com")

    assert stopped == [receipt.record.id]
    assert verdict(await world.send(to="SomeOne@gmail.com")) == ("refuse", "suppressed")


@pytest.mark.parametrize("domain", ["mail.deep.example.org", "deep.example.org", "example.org"])
async def test_a_domain_covers_itself_and_what_is_below_it(world: World, domain: str) -> None:
    receipt = await world.send(to=SUB)

    _, stopped = await world.suppress(domain)

    assert stopped == [receipt.record.id]
    assert world.state(receipt) is State.BLOCKED
    assert verdict(await world.send(to=SUB)) == ("refuse", "suppressed")


@pytest.mark.parametrize("domain", ["x.mail.deep.example.org", "ample.org", "eep.example.org", "example.net"])
async def test_a_domain_covers_no_other(world: World, domain: str) -> None:
    receipt = await world.send(to=SUB)

    _, stopped = await world.suppress(domain)

    assert stopped == []
    assert world.state(receipt) is State.QUEUED
    assert verdict(await world.send(to="y@mail.deep.example.org")) == ("pass", None)


async def test_no_kind_lease_or_override_gets_past_it(world: World) -> None:
    await world.suppress()
    lease = await world.lease("a")

    assert verdict(await world.send(token=lease.token)) == ("refuse", "suppressed")
    assert verdict(await world.send(kind="transactional")) == ("refuse", "suppressed")
    assert verdict(await world.send(kind="reply", override="a person says so")) == ("refuse", "suppressed")
    assert verdict(await world.send(to=["first@example.net", PAT])) == ("refuse", "suppressed")


async def test_the_tenants_own_people_can_be_suppressed_too(world: World) -> None:
    receipt = await world.send(to="boss@gw.example.com")

    _, stopped = await world.suppress("boss@gw.example.com")

    assert stopped == [receipt.record.id]
    assert verdict(await world.send(to="boss@gw.example.com")) == ("refuse", "suppressed")


# --- campaigns ----------------------------------------------------------------------------------------------------------


async def test_a_campaign_entry_binds_its_campaign_alone(world: World) -> None:
    await world.suppress(campaign="spring")

    assert verdict(await world.send(campaign="spring")) == ("refuse", "suppressed")
    assert verdict(await world.send(campaign="autumn")) == ("pass", None)
    assert verdict(await world.send(kind="reply")) == ("pass", None)


async def test_a_campaign_entry_stops_the_mail_of_its_campaign_in_flight(world: World) -> None:
    spring = await world.send(campaign="spring")
    claim = await world.claim_of(spring)
    other = await world.send(campaign="autumn", kind="reply")
    plain = await world.send(kind="reply")

    _, stopped = await world.suppress(campaign="spring")

    assert stopped == [spring.record.id]
    assert [world.state(one) for one in (spring, other, plain)] == [State.BLOCKED, State.QUEUED, State.QUEUED]
    assert await world.permit(claim) == "suppressed"


async def test_a_campaign_entry_marks_the_permitted_mail_of_its_campaign(world: World) -> None:
    spring = await world.send(campaign="spring")
    claim = await world.claim_of(spring)
    await world.permit(claim)

    await world.suppress(campaign="spring")

    assert await world.settle(claim, BUSY) is State.BLOCKED


async def test_entries_for_a_person_and_for_a_campaign_stand_side_by_side(world: World) -> None:
    general, _ = await world.suppress()
    await world.suppress(campaign="spring")

    await world.unsuppress(general.id)

    assert verdict(await world.send(campaign="spring")) == ("refuse", "suppressed")
    assert verdict(await world.send()) == ("pass", None)


# --- time and the list --------------------------------------------------------------------------------------------------


async def test_an_entry_that_ran_out_binds_nobody(world: World) -> None:
    await world.suppress(expires_at=START + timedelta(seconds=100))
    within = await world.send()
    world.advance(101)

    assert verdict(within) == ("refuse", "suppressed")
    assert verdict(await world.send()) == ("pass", None)


async def test_an_entry_that_has_run_out_before_it_came_stops_nothing(world: World) -> None:
    receipt = await world.send()

    _, stopped = await world.suppress(expires_at=START - timedelta(seconds=1))

    assert stopped == []
    assert world.state(receipt) is State.QUEUED


async def test_adding_an_entry_again_renews_it(world: World) -> None:
    first, _ = await world.suppress(reason="no_engagement", expires_at=START + timedelta(seconds=100))
    again, _ = await world.suppress(reason="complaint")
    world.advance(101)

    assert again.id == first.id
    assert (again.reason_code, again.expires_at) == ("complaint", None)
    assert len(world.rows_of(schema.suppressions)) == 1
    assert verdict(await world.send()) == ("refuse", "suppressed")


async def test_a_removed_entry_binds_nobody_and_leaves_an_event(world: World) -> None:
    entry, _ = await world.suppress()
    removed = await world.unsuppress(entry.id)

    assert removed == entry
    assert await world.unsuppress(entry.id) is None
    assert verdict(await world.send()) == ("pass", None)
    names = [row["name"] for row in world.rows_of(schema.events)]
    assert (names.count("suppression.created"), names.count("suppression.removed")) == (1, 1)


async def test_removing_an_entry_revives_no_mail(world: World) -> None:
    receipt = await world.send()
    entry, _ = await world.suppress()
    await world.unsuppress(entry.id)
    await world.look()

    assert world.state(receipt) is State.BLOCKED
    assert await world.claim() == []


async def test_the_list_is_newest_first(world: World) -> None:
    for n in range(3):
        await world.suppress(f"p{n}@example.net")
        world.advance(1)

    def listed(subject: str | None, limit: int, offset: int) -> list[str]:
        entries = world.store.read(
            lambda tx: suppressions.listed(tx, TENANT, subject=subject, limit=limit, offset=offset), (TENANT,)
        )
        return [entry.subject for entry in entries]

    assert listed(None, 10, 0) == ["p2@example.net", "p1@example.net", "p0@example.net"]
    assert listed(None, 1, 1) == ["p1@example.net"]
    assert listed("p0@example.net", 10, 0) == ["p0@example.net"]


async def test_a_suppression_and_a_permit_at_once_have_one_winner(world: World) -> None:
    """Two nodes: the mail is stopped, or it has its permit and is marked; never neither."""
    nodes = [world.node(threads=True), world.node(threads=True)]
    for n in range(10):
        person = f"p{n}@example.net"
        receipt = await world.send(to=person)
        claim = await world.claim_of(receipt)

        word, (_, stopped) = await asyncio.gather(world.permit(claim, nodes[0]), world.suppress(person, node=nodes[1]))

        if word is None:
            assert stopped == []
            assert await world.settle(claim, BUSY) is State.BLOCKED
        else:
            assert stopped == [receipt.record.id]
        assert world.state(receipt) is State.BLOCKED


async def test_a_suppression_and_a_claim_at_once_stop_the_mail(world: World) -> None:
    nodes = [world.node(threads=True), world.node(threads=True)]
    for n in range(10):
        person = f"p{n}@example.net"
        receipt = await world.send(to=person)

        claims, (_, stopped) = await asyncio.gather(world.claim(node=nodes[0]), world.suppress(person, node=nodes[1]))

        assert stopped == [receipt.record.id]
        assert [await world.permit(claim) for claim in claims] == ["suppressed"] * len(claims)
        assert world.state(receipt) is State.BLOCKED


# --- an entry that comes again ------------------------------------------------------------------------------------------

SHORT, LONG = START + timedelta(hours=1), START + timedelta(hours=9)
SAID_NO = ("complaint", "manual_dnc", "legal_request", "unsubscribe")
BY_MACHINE = sorted(set(suppressions.REASON_CODES) - set(SAID_NO))


async def test_a_permanent_entry_stays_permanent(world: World) -> None:
    await world.suppress(reason="hard_bounce")
    again, _ = await world.suppress(reason="hard_bounce", expires_at=LONG)

    assert again.expires_at is None


async def test_a_longer_entry_is_not_shortened_and_a_shorter_one_is_prolonged(world: World) -> None:
    await world.suppress(reason="hard_bounce", expires_at=LONG)
    kept, _ = await world.suppress(reason="no_engagement", expires_at=SHORT)
    prolonged, _ = await world.suppress(reason="no_engagement", expires_at=LONG + timedelta(hours=1))

    assert (kept.reason_code, kept.expires_at) == ("hard_bounce", LONG)
    assert (prolonged.reason_code, prolonged.expires_at) == ("no_engagement", LONG + timedelta(hours=1))


@pytest.mark.parametrize("machine", BY_MACHINE)
@pytest.mark.parametrize("said", SAID_NO)
async def test_what_a_person_said_is_not_replaced_by_a_machine(world: World, said: str, machine: str) -> None:
    await world.suppress(reason=said, expires_at=SHORT, source="the person")
    kept, _ = await world.suppress(reason=machine, source="a machine")

    assert (kept.reason_code, kept.source, kept.expires_at) == (said, "the person", SHORT)


@pytest.mark.parametrize("said", SAID_NO)
async def test_what_a_machine_found_gives_way_to_what_a_person_said(world: World, said: str) -> None:
    await world.suppress(reason="hard_bounce")
    now, _ = await world.suppress(reason=said)

    assert now.reason_code == said


async def test_an_entry_that_has_run_out_is_replaced_by_any(world: World) -> None:
    await world.suppress(reason="complaint", expires_at=LONG)
    world.advance(9 * 3600)
    now, _ = await world.suppress(reason="no_engagement", expires_at=world.now + timedelta(hours=1))

    assert now.reason_code == "no_engagement"
    assert verdict(await world.send()) == ("refuse", "suppressed")


async def test_a_weaker_entry_for_one_campaign_leaves_the_general_one_alone(world: World) -> None:
    general, _ = await world.suppress(reason="complaint")
    await world.suppress(reason="no_engagement", campaign="spring", expires_at=SHORT)

    entries = world.store.read(lambda tx: suppressions.listed(tx, TENANT, subject=PAT, limit=9, offset=0), (TENANT,))
    assert [one for one in entries if not one.campaign] == [general]


async def test_mail_in_flight_is_stopped_by_an_entry_that_was_there_already(world: World) -> None:
    entry, _ = await world.suppress(expires_at=SHORT)
    world.advance(3601)
    receipt = await world.send()

    again, stopped = await world.suppress(reason="hard_bounce")

    assert (again.id, stopped) == (entry.id, [receipt.record.id])
