"""Named steps at which a test may stop, fail or kill the process; in production nothing is armed and a step is a look-up.

`step` is for code in threads, `astep` for code on the loop. Only tests write into `armed`.
"""

from collections.abc import Callable
from typing import Any

armed: dict[str, Callable[[], Any]] = {}


def step(name: str) -> None:
    """Run what a test has armed for `name`, in this thread; it may block, raise, or kill the process."""
    if armed and (act := armed.get(name)):
        act()


async def astep(name: str) -> None:
    """Run what a test has armed for `name`; a coroutine that it returns is awaited."""
    if armed and (act := armed.get(name)):
        result = act()
        if hasattr(result, "__await__"):
            await result
