"""A door on a world, on each kind of database."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.databases import Databases, SqliteFiles
from tests.doors.door import Door, a_door
from tests.world import World, a_world


@pytest_asyncio.fixture
async def world(databases: Databases) -> AsyncIterator[World]:
    """A world with the usual policies."""
    async with a_world(databases) as world:
        yield world


@pytest_asyncio.fixture
async def door(world: World) -> AsyncIterator[Door]:
    """The HTTP door of that world."""
    async with a_door(world) as door:
        yield door


@pytest_asyncio.fixture
async def wire(sqlite_files: SqliteFiles) -> AsyncIterator[Door]:
    """A door for what is settled before any database is asked; so one kind of it is enough."""
    async with a_world(sqlite_files) as world, a_door(world) as door:
        yield door


@pytest_asyncio.fixture
async def sqlite_world(sqlite_files: SqliteFiles) -> AsyncIterator[World]:
    """A world for doors with other settings than the usual."""
    async with a_world(sqlite_files) as world:
        yield world
