"""A smarthost that makes trouble: each mail has its own fate, nobody waits for another's, and none is told what is not so."""

import asyncio
from pathlib import Path

import pytest

from gateway.sink import Sink
from tests.faults.conftest import Place
from tests.faults.crowd import mail
from tests.faults.stage import Order, Stage, a_stage
from tests.faults.test_races import told
from tests.smtp import ca_file, server_tls

TROUBLE = {
    "gone": ('RCPT <gone@example.net> "550 5.1.1 No such user"', "bounced", 0),
    "odd": ('RCPT <odd@example.net> "501 5.1.3 Bad address"', "bounced", 0),
    "later": ('RCPT <later@example.net> ONCE "450 4.2.1 Try later"', "relayed", 1),
    "grey": ('RCPT <grey@example.net> NEW "450 4.7.1 Greylisted"', "relayed", 1),
    "full": ('DATA <full@example.net> ONCE "452 4.3.1 No room"', "relayed", 1),
    "busy-rcpt": ('RCPT <busy-rcpt@example.net> ONCE "421 4.3.2 Going down"', "relayed", 1),
    "busy-data": ('DATA <busy-data@example.net> ONCE "421 4.3.2 Going down"', "relayed", 1),
    "busy-body": ('BODY <busy-body@example.net> ONCE "421 4.3.2 Going down" DROP', "relayed", 1),
    "busy-dot": ('DOT <busy-dot@example.net> ONCE "421 4.3.2 Going down"', "relayed", 1),
    "early": ('BODY <early@example.net> ONCE "250 2.0.0 Taken"', "relayed", 1),
    "not-now": ('DOT <not-now@example.net> ONCE "451 4.3.0 Local error"', "relayed", 1),
    "after": ('DOT <after@example.net> "250 2.0.0 Taken" DROP', "relayed", 1),
    "refused": ('DOT <refused@example.net> "554 5.7.1 Spam"', "bounced", 0),
    "tarpit": ('DOT <tarpit@example.net> DRIP 0.02 "250 2.0.0 Taken"', "relayed", 1),
    "dropped": ("DOT <dropped@example.net> DROP", "unknown", 1),
    "reset": ("DOT <reset@example.net> LOSE RESET", "unknown", 0),
    "half": ('DOT <half@example.net> RAW "25" DROP', "unknown", 1),
    "half-lost": ('DOT <half-lost@example.net> LOSE HALF "250 2.0.0 Taken" DROP', "unknown", 0),
    "mute": ("DOT <mute@example.net> HANG", "unknown", 1),
}
"""By recipient: what the smarthost does about it, how its mail ends, and how often it arrives."""
GOOD = [f"good-{n}" for n in range(6)]
SCRIPT = "\n".join(line for line, _, _ in TROUBLE.values())
RESTING = ("relayed", "bounced", "unknown")


def fates(stage: Stage) -> dict[str, tuple[str, int]]:
    """State and number of arrivals by recipient."""
    history = stage.history()
    return {row["contact"].partition("@")[0]: (row["state"], history.count(row)) for row in history.rows.deliveries}


async def test_every_mail_has_its_own_fate_whatever_the_smarthost_does(place: Place) -> None:
    async with a_stage(place.url, place.key, script=SCRIPT, reply_timeout_seconds=6) as stage:
        operator = await stage.player(await stage.gateway(), place.key, "operator")
        orders = [Order(operator, "send", mail(name)) for name in (*TROUBLE, *GOOD)]
        for order in orders:
            assert told(await stage.one(order))["status"] == "queued"
        await stage.drained()

        assert fates(stage) == {name: (state, came) for name, (_, state, came) in TROUBLE.items()} | dict.fromkeys(
            GOOD, ("relayed", 1)
        )
        assert stage.judged() == []


async def test_one_bad_recipient_among_good_ones_harms_only_itself(place: Place) -> None:
    names = ["good-1", "gone", "later", "dropped", "good-2"]
    async with a_stage(place.url, place.key, script=SCRIPT) as stage:
        operator = await stage.player(await stage.gateway(), place.key, "operator")
        body = mail("all") | {"to": [f"{name}@example.net" for name in names]}
        sent = told(await stage.one(Order(operator, "send", body)))
        await stage.drained()
        told_again = told(await stage.one(Order(operator, "send", body)))
        blocked = told(await stage.one(Order(operator, "send", mail("gone"))))

        good = ("relayed", 1)
        assert fates(stage) | {"gone": ("bounced", 0)} == {
            "good-1": good,
            "good-2": good,
            "later": good,
            "gone": ("bounced", 0),
            "dropped": ("unknown", 1),
        }
        assert told_again["requestId"] == sent["requestId"]
        assert told_again["counts"] == {"relayed": 3, "bounced": 1, "unknown": 1}
        assert blocked["reason"] == "suppressed"
        assert stage.judged() == []


@pytest.mark.parametrize("stage_name", ["BANNER", "EHLO", "MAIL", "RCPT", "DATA", "BODY", "DOT"])
async def test_a_smarthost_that_goes_down_anywhere_gets_the_mail_when_it_is_back(place: Place, stage_name: str) -> None:
    script = f'{stage_name} ONCE "421 4.3.2 Going down" DROP'
    async with a_stage(place.url, place.key, script=script) as stage:
        operator = await stage.player(await stage.gateway(), place.key, "operator")
        for name in ("one", "two"):
            await stage.one(Order(operator, "send", mail(name), prefer="wait=20"))
        await stage.drained()

        assert stage.sink.sessions > 1
        assert fates(stage) == {"one": ("relayed", 1), "two": ("relayed", 1)}
        assert stage.judged() == []


async def test_a_smarthost_that_goes_down_while_a_line_rests_gets_the_next_mail_by_another(place: Place) -> None:
    script = 'SESSION 1\nIDLE 1 "421 4.3.2 Going down" DROP'
    async with a_stage(place.url, place.key, script=script) as stage:
        operator = await stage.player(await stage.gateway(), place.key, "operator")
        assert told(await stage.one(Order(operator, "send", mail("one"), prefer="wait=20")))["status"] == "relayed"
        await stage.until(lambda _: not stage.sink.connected)
        said = [line.data for line in stage.sink.transcript if line.speaker == "S"]
        assert told(await stage.one(Order(operator, "send", mail("two"), prefer="wait=20")))["status"] == "relayed"

        assert said[-1].startswith(b"421")
        assert stage.sink.sessions == 2
        assert [row["attempts"] for row in stage.history().rows.deliveries] == [1, 1]
        assert stage.judged() == []


@pytest.mark.parametrize("fault", ["no STARTTLS", "wrong certificate"])
async def test_a_smarthost_that_is_not_safe_gets_no_mail_until_it_is(
    sqlite_place: Place, tmp_path: Path, fault: str
) -> None:
    wrong = fault == "wrong certificate"
    trusted, other = str(ca_file(tmp_path)), str(ca_file(tmp_path, "theirs"))
    async with a_stage(sqlite_place.url, sqlite_place.key) as stage:
        async with Sink(tls=server_tls() if wrong else None, on_mail=stage.took) as unsafe:
            stage.settings |= {
                "smarthost": f"smtp+starttls://127.0.0.1:{unsafe.port}",
                "smarthost_ca": other if wrong else trusted,
            }
            served = await stage.gateway()
            operator = await stage.player(served, sqlite_place.key, "operator")
            await stage.one(Order(operator, "send", mail("pat")))
            await stage.until(lambda history: history.rows.deliveries[0]["attempts"] > 1)
            (row,) = stage.history().rows.deliveries
            assert row["state"] in ("queued", "claimed")
            assert stage.arrivals == []
            assert await asyncio.to_thread(served.stop) == 0
        async with Sink(tls=server_tls(), on_mail=stage.took) as safe:
            stage.settings |= {"smarthost": f"smtp+starttls://127.0.0.1:{safe.port}", "smarthost_ca": trusted}
            await stage.gateway()
            await stage.drained()

        assert len(stage.arrivals) == 1
        assert stage.judged() == []
