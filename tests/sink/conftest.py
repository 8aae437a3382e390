"""Every asynchronous test of this folder runs on asyncio's own event loop and on uvloop."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from tests.smtp import LOOPS


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The hook of pytest-asyncio."""
    return LOOPS
