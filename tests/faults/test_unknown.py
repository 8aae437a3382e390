"""What is unknown stays so until somebody decides, once: a repeat, another key, eight operators at a time, or a setting."""

import random

import pytest

from gateway.store import Store
from gateway.store.tx import set_clock_offset
from tests.faults.conftest import Place
from tests.faults.crowd import mail
from tests.faults.stage import Order, Stage, a_stage, interleavings
from tests.faults.test_races import told
from tests.history import Row

ARRIVED, LOST = "DOT ONCE DROP", "DOT ONCE LOSE DROP"
HOUR = 3600
DECISIONS = {"retry": ("relayed", 2), "assume_sent": ("relayed", 1), "cancel": ("cancelled", 1)}
"""What becomes of a mail that had arrived, and how often it has come in the end."""


def ahead(url: str, seconds: float) -> None:
    """Set the store's clock ahead of its database's by so many seconds, or back."""
    store = Store.open(url)
    store.write((), lambda tx: set_clock_offset(tx, round(seconds * 1_000_000)))
    store.close()


async def unknown(stage: Stage) -> Row:
    """Wait until the only delivery is unknown."""
    await stage.until(lambda history: [row["state"] for row in history.rows.deliveries] == ["unknown"])
    return stage.history().rows.deliveries[0]


@pytest.mark.parametrize("script", [ARRIVED, LOST], ids=["arrived", "lost"])
async def test_an_unknown_send_is_told_and_not_sent_again(place: Place, script: str) -> None:
    async with a_stage(place.url, place.key, script=script) as stage:
        operator = await stage.player(await stage.gateway(), place.key, "operator")
        first = told(await stage.one(Order(operator, "send", mail("pat"))))
        await unknown(stage)

        again = told(await stage.one(Order(operator, "send", mail("pat"))))
        other = told(await stage.one(Order(operator, "send", mail("pat") | {"idempotencyKey": "other"})))
        reply = mail("pat") | {"idempotencyKey": "reply", "text": "something else\n"}
        cooled = told(await stage.one(Order(operator, "send", reply)))

        assert (again["requestId"], again["status"]) == (first["requestId"], "unknown")
        assert again["nextAction"] == "do not resend; ask or resolve"
        assert other["status"] == "blocked"
        assert {finding["reason"] for finding in other["findings"]} >= {"cooldown", "unknown_outstanding"}
        assert cooled["reason"] == "cooldown"
        assert len(stage.arrivals) == (script is ARRIVED)
        assert stage.judged() == []


@pytest.mark.parametrize("decision", DECISIONS)
async def test_of_eight_operators_and_an_agent_at_once_one_decides(place: Place, seed: int, decision: str) -> None:
    async with a_stage(place.url, place.key, script=ARRIVED) as stage:
        dice = random.Random(seed)
        gateways = [await stage.gateway(), await stage.gateway()] if place.postgres else [await stage.gateway()]
        people = [await stage.player(gateways[n % len(gateways)], place.key, "operator") for n in range(9)]
        sent = told(await stage.one(Order(people[8], "send", mail("pat"))))
        await unknown(stage)
        orders = [
            Order(person, "resolve", {"decision": decision}, {"request": sent["requestId"]}, late=late)
            for person, late in zip(people, interleavings(dice, 8), strict=False)
        ]

        *decided, repeated = await stage.together(*orders, Order(people[8], "send", mail("pat")))
        await stage.drained()
        (row,) = stage.history().rows.deliveries

        assert sorted(call.status or 0 for call in decided) == [200, *[409] * 7]
        assert told(repeated)["requestId"] == sent["requestId"]
        assert (row["state"], len(stage.arrivals)) == DECISIONS[decision]
        assert stage.judged() == []


@pytest.mark.parametrize(
    ("setting", "script", "ends"),
    [
        ("retry_once_after:1h", LOST, ("relayed", 0, 1)),
        ("assume_sent_after:1h", LOST, ("relayed", 1, 0)),
        ("hold", LOST, ("unknown", 0, 0)),
    ],
    ids=["retry", "assume", "hold"],
)
async def test_a_setting_decides_when_its_time_has_come(
    place: Place, setting: str, script: str, ends: tuple[str, int, int]
) -> None:
    async with a_stage(place.url, place.key, script=script, unknown=setting) as stage:
        served = await stage.gateway()
        operator = await stage.player(served, place.key, "operator")
        sent = told(await stage.one(Order(operator, "send", mail("pat"))))
        await unknown(stage)
        ahead(place.url, HOUR + 1)
        if setting == "hold":
            await stage.gateway()  # its first sweep comes at once
            await stage.one(Order(operator, "send", mail("other"), prefer="wait=20"))
        else:
            await stage.until(lambda history: history.rows.deliveries[0]["state"] == "relayed")
        row = next(row for row in stage.history().rows.deliveries if row["send_id"] == sent["requestId"])

        came = sum(one.to == "pat@example.net" for one in stage.arrivals)
        assert (row["state"], row["assumed"], came) == ends
        assert stage.judged(one_clock=False) == []
