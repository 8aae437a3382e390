"""Both clients behind one face for tests: the blocking one as it is, the other driven step by step on a loop of its own."""

import asyncio
import contextlib
import inspect
import time
from collections.abc import Callable, Iterator
from typing import Any

from gateway.client import AsyncClient, Client

PATIENCE = 60.0
"""Seconds for anything here; shared machines stall."""


class Blocking:
    """The client that blocks."""

    kind = Client

    def __init__(self, *args: Any, **more: Any) -> None:
        self.client = Client(*args, **more)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the client's own
        return getattr(self.client, name)

    def until(self, true: Callable[[], bool]) -> None:
        """Let time pass until something is so."""
        end = time.monotonic() + PATIENCE
        while not true():
            assert time.monotonic() < end
            time.sleep(0.02)

    def close(self) -> None:
        self.client.close()


class Awaited:
    """The client that is awaited: its methods and iterators, each step run to its end."""

    kind = AsyncClient

    def __init__(self, *args: Any, **more: Any) -> None:
        self.runner = asyncio.Runner()
        self.client = AsyncClient(*args, **more)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the client's own
        method = getattr(self.client, name)

        def act(*args: Any, **more: Any) -> Any:  # noqa: ANN401 - same
            made = method(*args, **more)
            if inspect.isasyncgen(made):
                return self._each(made)
            return self._run(made) if inspect.iscoroutine(made) else self._within(made)

        return act

    def _run(self, work: Any) -> Any:  # noqa: ANN401 - same
        return self.runner.run(work)

    def _each(self, made: Any) -> Iterator[Any]:  # noqa: ANN401 - same
        async def step() -> Any:  # noqa: ANN401 - same
            return await anext(made)

        try:
            while True:
                try:
                    yield self._run(step())
                except StopAsyncIteration:
                    return
        finally:
            self._run(made.aclose())

    @contextlib.contextmanager
    def _within(self, made: Any) -> Iterator[Any]:  # noqa: ANN401 - same
        yield self._run(made.__aenter__())
        self._run(made.__aexit__(None, None, None))

    def until(self, true: Callable[[], bool]) -> None:
        """Let time pass until something is so."""

        async def wait() -> None:
            async with asyncio.timeout(PATIENCE):
                while not true():  # noqa: ASYNC110 - what is waited for has no event
                    await asyncio.sleep(0.02)

        self._run(wait())

    def close(self) -> None:
        self._run(self.client.close())
        self.runner.close()


Asked = Blocking | Awaited
Either = Any
"""One of them, with the methods of its client, which the type checker sees in the client's own code."""
BOTH = (Blocking, Awaited)
