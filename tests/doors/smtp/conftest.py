"""The SMTP door on a world, on each kind of database and on each kind of loop."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import pytest
import pytest_asyncio

from tests.doors.door import Door
from tests.doors.smtp.line import Submit, a_submit
from tests.smtp import LOOPS


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The hook of pytest-asyncio: each test runs on asyncio's own event loop and on uvloop."""
    return LOOPS


@pytest_asyncio.fixture
async def submit(wire: Door) -> AsyncIterator[Submit]:
    """The SMTP door, on SQLite: what it asks of the store is asked by the HTTP door too."""
    async with a_submit(wire) as submit:
        yield submit


@pytest_asyncio.fixture
async def submit_both(door: Door) -> AsyncIterator[Submit]:
    """The SMTP door on both kinds of database."""
    async with a_submit(door) as submit:
        yield submit
