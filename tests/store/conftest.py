"""A world on each kind of database."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.databases import Databases
from tests.world import World, a_world


@pytest_asyncio.fixture
async def world(databases: Databases) -> AsyncIterator[World]:
    """A world with the usual policies, on both kinds of database."""
    async with a_world(databases) as world:
        yield world
