"""A door behind a real server, on each kind of database, and a reader of its stream."""

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio
import uvicorn

from tests.databases import Databases
from tests.doors.door import a_door
from tests.doors.test_real_server import Server
from tests.events.reader import Served
from tests.world import World, a_world


@pytest_asyncio.fixture
async def world(databases: Databases) -> AsyncIterator[World]:
    """A world with the usual policies."""
    async with a_world(databases) as world:
        yield world


@pytest_asyncio.fixture
async def served(world: World) -> AsyncIterator[Served]:
    """Its door behind uvicorn."""
    async with a_door(world) as door:
        config = uvicorn.Config(door.app, port=0, log_config=None, lifespan="off", access_log=False)
        server = Server(config)
        serving = asyncio.create_task(server.serve())
        await server.opened.wait()
        one = Served(door, server.servers[0].sockets[0].getsockname()[1])
        try:
            yield one
        finally:
            await one.close()
            server.should_exit = True
            await serving
