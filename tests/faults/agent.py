"""An agent as a process of its own: takes orders as JSON lines, carries each out over HTTP, answers with a JSON line.

`python -m tests.faults.agent PORT KEY SKEW`. An order is `{"at", "method", "path", "body", "prefer", "hangUp"}`: `at` is the
barrier, in seconds of the machine's monotonic clock, at which all agents of a round begin; with `hangUp` the agent closes
the line so many seconds after its request has left, and reads no answer. SKEW is by how many seconds its own clock is
wrong: it dates its requests by that clock. The answer is `{"asked", "answered", "status", "answer", "behind"}`, in true
microseconds since 1970; without an answer the three before the last are null. `behind` is by how many seconds the agent
began after `at`.
"""

import contextlib
import http.client
import json
import sys
import time
from email.utils import formatdate
from typing import Any

PATIENCE = 60.0
SPIN = 0.002
"""Seconds before the barrier from which on it is watched without sleeping."""


def now() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


class Barrier:
    """Waits for a time of the monotonic clock; `behind` is by how many seconds the last wait ended after it."""

    behind = 0.0

    def __call__(self, moment: float) -> None:
        """Return at this time."""
        left = moment - time.monotonic() - SPIN
        if left > 0:
            time.sleep(left)
        while (current := time.monotonic()) < moment:
            pass
        self.behind = current - moment


wait_until = Barrier()
"""The barrier of this process: an agent carries out one order at a time."""


class Agent:
    """One agent and its connection."""

    def __init__(self, port: int, key: str, skew: float) -> None:
        self.line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self.key = key
        self.skew = skew

    def headers(self, order: dict[str, Any]) -> dict[str, str]:
        """Its key, the date by its own clock, what it prefers."""
        dated = formatdate(time.time() + self.skew, usegmt=True)
        usual = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", "Date": dated}
        return usual | ({"Prefer": order["prefer"]} if order.get("prefer") else {})

    def carry_out(self, order: dict[str, Any]) -> dict[str, Any]:
        """Ask, and read the answer unless the order is to hang up."""
        if self.line.sock is None:
            with contextlib.suppress(OSError):
                self.line.connect()
        body = None if order.get("body") is None else json.dumps(order["body"])
        wait_until(order["at"])
        asked = now()
        try:
            self.line.request(order["method"], order["path"], body, self.headers(order))
            if order.get("hangUp") is not None:
                time.sleep(order["hangUp"])
                self.line.close()
                return {"asked": asked, "answered": None, "status": None, "answer": None}
            response = self.line.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException):
            self.line.close()
            return {"asked": asked, "answered": None, "status": None, "answer": None}
        return {"asked": asked, "answered": now(), "status": response.status, "answer": json.loads(text)}


def main() -> None:
    """Carry out orders until there are no more."""
    port, key, skew = sys.argv[1:]
    obey(Agent(int(port), key, float(skew)))


def obey(agent: Agent) -> None:
    """Read orders and tell what came of them, until there are no more."""
    for line in sys.stdin:
        told = agent.carry_out(json.loads(line))
        sys.stdout.write(json.dumps(told | {"behind": wait_until.behind}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
