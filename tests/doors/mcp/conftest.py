"""A door behind a real server, and clients of the official SDK that speak to it."""

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio
import uvicorn

from tests.databases import Databases, SqliteFiles
from tests.doors.door import Door, a_door
from tests.doors.mcp.client import Served
from tests.doors.test_real_server import Server
from tests.world import World, a_world


async def serving(door: Door) -> AsyncIterator[Served]:
    """A door behind uvicorn."""
    server = Server(uvicorn.Config(door.app, port=0, log_config=None, lifespan="off", access_log=False))
    task = asyncio.create_task(server.serve())
    await server.opened.wait()
    try:
        yield Served(door, server.servers[0].sockets[0].getsockname()[1])
    finally:
        server.should_exit = True
        await task


@pytest_asyncio.fixture
async def world(databases: Databases) -> AsyncIterator[World]:
    """A world with the usual policies, on each kind of database."""
    async with a_world(databases) as world:
        yield world


@pytest_asyncio.fixture
async def served(world: World) -> AsyncIterator[Served]:
    """The door of that world on a port."""
    async with a_door(world) as door:
        async for one in serving(door):
            yield one


@pytest_asyncio.fixture
async def wired(sqlite_files: SqliteFiles) -> AsyncIterator[Served]:
    """The same on one kind of database, for what is settled before any is asked."""
    async with a_world(sqlite_files) as world, a_door(world) as door:
        async for one in serving(door):
            yield one
