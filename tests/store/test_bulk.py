"""Suppressions by the thousand: what a piece of a list writes, keeps and stops, and how the whole list is read."""

from datetime import timedelta

import pytest

from gateway.core.delivery import Deferred, State
from gateway.store import bulk, schema
from gateway.store.bulk import Added, Piece
from gateway.store.suppressions import New, Suppression
from gateway.store.writer import Rank
from tests.world import PAT, START, TENANT, World, verdict

SHORT, LONG = START + timedelta(hours=1), START + timedelta(hours=9)


def line(subject: str = PAT, reason: str = "hard_bounce", **changes: object) -> New:
    usual = {"scope": "campaign" if changes.get("campaign") else "tenant", "source": "file"}
    return New(subject, subject, reason_code=reason, **(usual | changes))  # type: ignore[arg-type]


async def add(world: World, *entries: New) -> Added:
    piece = Piece(TENANT, tuple(entries), "key:1")
    return await world.nodes[0].writer.do(Rank.FORBID, (TENANT,), bulk.add, piece)


def page(world: World, after: str, limit: int) -> list[Suppression]:
    return world.store.read(lambda tx: bulk.page(tx, TENANT, after=after, limit=limit), (TENANT,))


def pages(world: World, limit: int) -> list[list[Suppression]]:
    """The whole list, page by page."""
    found: list[list[Suppression]] = []
    while not found or len(found[-1]) == limit:
        found.append(page(world, found[-1][-1].id if found else "", limit))
    return found


def entries(world: World) -> dict[tuple[str, str], Suppression]:
    return {(one.subject, one.campaign): one for some in pages(world, 100) for one in some}


async def test_a_piece_is_written_with_all_that_its_lines_say(world: World) -> None:
    done = await add(
        world,
        line(),
        line("example.org", "legal_request", expires_at=LONG),
        line("c@example.net", "complaint", campaign="spring", source="desk"),
    )

    known = entries(world)
    assert done == Added(3, 0, ())
    assert known[PAT, ""].expires_at is None
    assert (known["example.org", ""].reason_code, known["example.org", ""].expires_at) == ("legal_request", LONG)
    third = known["c@example.net", "spring"]
    assert (third.scope, third.source, third.reason_code) == ("campaign", "desk", "complaint")
    assert verdict(await world.send()) == ("refuse", "suppressed")
    assert verdict(await world.send(to="x@mail.example.org")) == ("refuse", "suppressed")


async def test_the_same_piece_again_changes_nothing_that_binds(world: World) -> None:
    piece = [line(f"p{n}@example.net") for n in range(200)]
    first = await add(world, *piece)
    before = entries(world)

    await add(world, *piece)

    assert first.written == 200
    assert entries(world) == before


@pytest.mark.parametrize(
    ("there", "comes", "stays"),
    [
        (line(), line(expires_at=SHORT), ("hard_bounce", None)),
        (line(expires_at=LONG), line(reason="no_engagement", expires_at=SHORT), ("hard_bounce", LONG)),
        (line(expires_at=SHORT), line(expires_at=LONG), ("hard_bounce", LONG)),
        (line(reason="complaint", expires_at=SHORT), line(), ("complaint", SHORT)),
        (line(), line(reason="unsubscribe"), ("unsubscribe", None)),
    ],
    ids=["shorter", "shorter too", "longer", "a machine's", "a person's"],
)
async def test_no_entry_becomes_weaker(world: World, there: New, comes: New, stays: tuple[str, object]) -> None:
    await add(world, there)
    apart = await add(world, comes)
    within = await add(world, line("q@example.net"), line("q@example.net"))

    found = entries(world)[PAT, ""]
    assert (found.reason_code, found.expires_at) == stays
    assert apart.written + apart.kept == 1
    assert apart.kept == (found.expires_at != comes.expires_at or found.reason_code != comes.reason_code)
    assert len(entries(world)) == 2
    assert within.written + within.kept == 2


async def test_a_subject_may_stand_twice_in_a_piece_and_the_stronger_line_wins(world: World) -> None:
    await add(world, line(reason="complaint"), line(expires_at=SHORT), line(reason="no_engagement"))

    assert [(one.reason_code, one.expires_at) for one in entries(world).values()] == [("complaint", None)]


async def test_a_line_that_ran_out_is_replaced(world: World) -> None:
    await add(world, line(reason="complaint", expires_at=SHORT))
    world.advance(3601)

    done = await add(world, line())

    assert done.written == 1
    assert entries(world)[PAT, ""].reason_code == "hard_bounce"


# --- mail in flight -----------------------------------------------------------------------------------------------------


async def test_a_piece_stops_what_it_forbids_in_the_same_act(world: World) -> None:
    person = await world.send(to="p@example.net")
    below = await world.send(to="x@mail.deep.example.org")
    spring = await world.send(to="s@example.net", campaign="spring")
    autumn = await world.send(to="s@example.net", campaign="autumn", kind="reply")
    free = await world.send(to="free@example.net")
    copied = await world.send(to=["first@example.net", "cc@example.net"])
    claims = await world.claim()

    done = await add(
        world,
        line("p@example.net"),
        line("example.org"),
        line("s@example.net", campaign="spring"),
        line("cc@example.net"),
        *(line(f"other{n}@example.com") for n in range(50)),
    )

    stopped = [person, below, spring, copied]
    assert set(done.stopped) == {one.record.id for one in stopped}
    assert [world.state(one) for one in (person, below, spring)] == [State.BLOCKED] * 3
    assert world.states(copied.record.id) == [State.CLAIMED, State.BLOCKED]
    assert [world.state(one) for one in (autumn, free)] == [State.CLAIMED] * 2
    words = {claim.address: await world.permit(claim) for claim in claims if claim.send == person.record.id}
    assert words == {"p@example.net": "suppressed"}


async def test_a_domains_campaign_entry_stops_that_campaign_below_it(world: World) -> None:
    spring = await world.send(to="x@mail.example.org", campaign="spring")
    plain = await world.send(to="y@mail.example.org")

    done = await add(world, line("example.org", campaign="spring"))

    assert done.stopped == (spring.record.id,)
    assert world.state(plain) is State.QUEUED


async def test_permitted_mail_is_marked(world: World) -> None:
    receipt = await world.send()
    claim = await world.claim_of(receipt)
    await world.permit(claim)

    done = await add(world, line())

    assert done.stopped == ()
    assert await world.settle(claim, Deferred("451")) is State.BLOCKED


async def test_a_line_that_has_run_out_before_it_came_stops_nothing(world: World) -> None:
    receipt = await world.send()

    done = await add(world, line(expires_at=START - timedelta(seconds=1)))

    assert done.stopped == ()
    assert world.state(receipt) is State.QUEUED


async def test_a_piece_leaves_one_event(world: World) -> None:
    receipt = await world.send()
    await add(world, line(), line("q@example.net"))

    rows = [row for row in world.rows_of(schema.events) if row["name"].startswith("suppression.")]
    assert [(row["name"], row["actor"]) for row in rows] == [("suppression.imported", "key:1")]
    assert rows[0]["data"] == f'{{"written": 2, "kept": 0, "stopped": ["{receipt.record.id}"]}}'


# --- the list as a whole ------------------------------------------------------------------------------------------------


async def test_the_whole_list_is_read_in_pages_each_entry_once(world: World) -> None:
    await world.suppress("single@example.net")
    await add(world, *(line(f"p{n:03}@example.net") for n in range(250)))
    await add(world, line("gone@example.net", expires_at=SHORT))
    world.advance(3601)

    found = pages(world, 100)

    subjects = [one.subject for some in found for one in some]
    assert [len(some) for some in found] == [100, 100, 51]
    assert sorted(subjects) == sorted({*(f"p{n:03}@example.net" for n in range(250)), "single@example.net"})


async def test_pages_stay_whole_while_others_write(world: World) -> None:
    await add(world, *(line(f"p{n}@example.net") for n in range(6)))

    first = page(world, "", 3)
    await world.unsuppress(first[0].id)
    await add(world, line("p0@example.net", "complaint"), line("late@example.net"))
    second = page(world, first[-1].id, 3)

    assert [one.subject for one in first] == ["p0@example.net", "p1@example.net", "p2@example.net"]
    assert [one.subject for one in second] == ["p3@example.net", "p4@example.net", "p5@example.net"]
