"""What a step of kind `check` looks at: units used up, leases, sends."""

from typing import Any

import sqlalchemy as sa

from gateway.core.address import parse
from gateway.store.dialect import Dialect
from gateway.store.schema import counters, sends
from tests.cases.house import OPERATOR
from tests.cases.play import LEASES, Play


def _counters(_: Dialect) -> sa.Executable:
    return sa.select(counters)


def _sends(_: Dialect) -> sa.Executable:
    return sa.select(sends.c.id)


async def check(play: Play, number: int, step: dict[str, Any]) -> None:
    """Compare what there is to what there should be."""
    match step["check"]:
        case "quota_used":
            found = sum(row["used"] for row in play.house.store.read(lambda tx: tx.rows(_counters, {})))
        case "leases":
            answer = await play.house.call("GET", f"{LEASES}s", OPERATOR)
            key = parse(step["contact"]).key
            found = sum(parse(row["contactEmail"]).key == key for row in answer.json())
        case "sends":
            rows = play.house.store.read(lambda tx: tx.rows(_sends, {}))
            refused = {one.body["requestId"] for one in play.sends if "blocked" in one.decisions}
            found = len({row["id"] for row in rows} - refused)
        case other:
            raise ValueError(f"the check {other!r} is not known to the driver")
    play.fault(found == step["is"], f"step {number}: {step['check']} is {found}, not {step['is']}")
