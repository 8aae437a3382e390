"""In which order waiting mail goes: by its age, not by the time of its retry, and nobody waits for ever for what is older."""

from datetime import timedelta

import pytest
import sqlalchemy as sa

from gateway.core.delivery import Deferred
from gateway.core.record import Receipt
from gateway.intake import waiting
from gateway.intake.waiting import ReleaseLoop
from gateway.settings import split_unknown
from tests.world import START, World

BUSY = Deferred("451")
HOUR = 3600


@pytest.fixture(autouse=True)
def two_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look lets two sends go."""
    monkeypatch.setattr(waiting, "AT_ONCE", 2)


async def put_off(world: World, *names: str) -> None:
    """Mail of this order, whose retries are due in the reverse order."""
    receipts: list[Receipt] = []
    for name in names:
        receipts.append(await world.send(to=f"{name}@example.net"))
        world.advance(1)
    claims = await world.claim()
    for claim in reversed(claims):
        await world.settle(claim, BUSY)
        world.advance(1)


async def released(world: World) -> None:
    """Look until nothing is left to be judged again."""
    while await world.look():
        pass


async def claimed(world: World, limit: int = 100) -> list[str]:
    """Whose mail is claimed, in order."""
    return [claim.address.partition("@")[0] for claim in await world.claim(limit)]


async def test_mail_that_has_waited_goes_oldest_first_whenever_its_retry_was_due(world: World) -> None:
    await put_off(world, *"abcde")
    world.advance(HOUR)
    await world.look()

    assert await claimed(world, 1) == ["a"]
    await released(world)
    assert await claimed(world) == [*"bcde"]


async def test_mail_that_cannot_be_judged_keeps_nobody_else_back(world: World) -> None:
    await put_off(world, *"abcde")
    broken = sa.text("UPDATE sends SET tokens = '{' WHERE id IN (SELECT send_id FROM deliveries WHERE contact < 'd')")
    world.store.write((), lambda tx: tx.run(lambda _: broken, {}))
    world.advance(HOUR)
    loop = ReleaseLoop(world.nodes[0].intake, split_unknown, "hold")

    looks = [await loop.look() for _ in range(4)]

    assert looks == [0, 1, 1, 0]
    assert await claimed(world) == [*"de"]


async def test_new_mail_goes_behind_what_has_waited(world: World) -> None:
    await put_off(world, *"abc")
    world.advance(HOUR)
    await world.look()
    await world.send(to="new@example.net")
    await released(world)

    assert await claimed(world) == [*"abc", "new"]


async def test_new_mail_does_not_wait_for_ever_for_what_is_put_off_again_and_again(world: World) -> None:
    await put_off(world, "old")
    world.advance(HOUR)
    await world.send(to="new@example.net")
    await released(world)
    (first,) = await world.claim(1)  # there is room for one at a time
    await world.settle(first, BUSY)
    world.advance(HOUR + 100)
    await released(world)

    assert first.address == "old@example.net"
    assert await claimed(world) == ["new", "old"]


async def test_mail_that_was_never_tried_keeps_its_place_however_often_it_is_judged(world: World) -> None:
    await world.send(to="first@example.net")
    world.advance(HOUR)
    await released(world)
    world.advance(300)
    await world.send(to="second@example.net")
    world.advance(400)
    await released(world)

    assert await claimed(world) == ["first", "second"]


async def test_scheduled_mail_is_as_old_as_its_release(world: World) -> None:
    await world.send(to="later@example.net", not_before=START + timedelta(seconds=400))
    world.advance(300)
    await world.send(to="first@example.net")
    world.advance(200)
    await released(world)
    claims = await world.claim()
    for claim in claims:
        await world.settle(claim, BUSY)
    world.advance(HOUR)
    await released(world)

    assert [claim.address for claim in claims] == ["first@example.net", "later@example.net"]
    assert await claimed(world) == ["first", "later"]
