"""Law 7: preview equals submit, and leaves no row behind."""

from hypothesis import given, settings

from gateway.core.errors import ConflictError
from gateway.core.record import Receipt
from gateway.core.status import answer
from gateway.intake.walk import Ticket
from tests.databases import Databases
from tests.laws.plays import OPTIONS, Act, Mail, batches, pasts, play, told
from tests.world import World, a_world


def previewed(world: World, ticket: Ticket) -> Receipt | ConflictError:
    """What the dry run says."""
    try:
        return world.preview(ticket)
    except ConflictError as error:
        return error


async def submitted(world: World, ticket: Ticket) -> Receipt | ConflictError:
    """What the send itself says."""
    try:
        return await world.nodes[0].intake.submit(ticket)
    except ConflictError as error:
        return error


@settings(max_examples=10)
@given(past=pasts, batch=batches)
async def test_a_dry_run_says_what_the_send_would_say_and_writes_nothing(
    databases: Databases, past: list[Act], batch: list[Mail]
) -> None:
    async with a_world(databases, OPTIONS) as world:
        await play(world, past)
        for mail in batch:
            ticket = mail.ticket(world)
            before = world.rows()

            dry = previewed(world, ticket)

            assert world.rows() == before
            wet = await submitted(world, ticket)
            assert told(dry) == told(wet)
            if isinstance(dry, Receipt) and isinstance(wet, Receipt):
                assert answer(dry).keys() == answer(wet).keys()
