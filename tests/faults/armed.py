"""The gateway with its steps armed: `python -m tests.faults.armed serve ...` does as `gateway serve`, until a step is met.

The environment variable ARMED holds JSON: `{"steps": {"dot.sent": {"do": "kill", "on": 3}}, "break": "", "skew": 0}`.
A step (`gateway/store/steps.py`) is met for the `on`-th time and then, once, does one of

    kill      SIGKILL to this process
    stop      SIGSTOP to this process; somebody has to continue it
    hold      wait until the file `gate` exists
    raise     an error of the gateway's own

or each time it is met does `dawdle`: wait up to `seconds`, by dice with the seed `seed`. What it does is first said in
the log, as the event `armed`. `break` names a deliberate fault of `BREAKS`; `skew` is by how many seconds the clock of
this host is wrong: it is so for the whole process, before anything of the gateway is loaded.
"""

import asyncio
import json
import logging
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults import wrong_clock

log = logging.getLogger("gateway.armed")
LOOK = 0.005


class _Step:
    """One armed step."""

    def __init__(self, name: str, order: dict[str, Any]) -> None:
        self.name = name
        self.order = order
        self.met = 0
        self.dice = random.Random(order.get("seed", 0))

    def __call__(self) -> object:
        """Do as ordered; what has to wait on the loop is returned as a coroutine."""
        self.met += 1
        if self.order["do"] == "dawdle":
            return self._wait(self.dice.uniform(0, self.order["seconds"]))
        if self.met != self.order.get("on", 1):
            return None
        log.warning("armed", extra={"step": self.name, "act": self.order["do"]})
        return self._once()

    def _once(self) -> object:
        match self.order["do"]:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "stop":  # by way of this very thread: sent to the process, it would find it some steps later
                signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
            case "hold":
                return self._hold(Path(self.order["gate"]))
            case "raise":
                raise RuntimeError(self.name)
        return None

    def _wait(self, seconds: float) -> object:
        if _on_the_loop():
            return asyncio.sleep(seconds)
        time.sleep(seconds)
        return None

    def _hold(self, gate: Path) -> object:
        if _on_the_loop():
            return _opened(gate)
        while not _is_open(gate):
            time.sleep(LOOK)
        return None


def _on_the_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _is_open(gate: Path) -> bool:
    return gate.exists()


async def _opened(gate: Path) -> None:
    while not _is_open(gate):  # noqa: ASYNC110 - the file is another process's word
        await asyncio.sleep(LOOK)


def arm(orders: dict[str, Any]) -> None:
    """Set the clock of this host wrong, then arm steps and break what is to be broken."""
    if orders.get("skew"):
        wrong_clock.set_wrong(orders["skew"])
    from gateway.store import steps
    from tests.faults.breaks_of_rules import BREAKS

    made: dict[str, Callable[[], Any]] = {name: _Step(name, order) for name, order in orders.get("steps", {}).items()}
    steps.armed.update(made)
    if orders.get("break"):
        BREAKS[orders["break"]]()


if __name__ == "__main__":
    arm(json.loads(os.environ.get("ARMED", "{}")))
    from gateway.cli import main

    main()
