"""A clock that is set wrong is wrong for all Python code that asks for the time, and no lease at any door goes by it."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults import test_races as races
from tests.faults import test_races_by_mail as by_mail
from tests.faults.conftest import Place
from tests.faults.found import trouble
from tests.servers import PATIENCE, environment

HOURS = 7200
FEW = 4
PROGRAM = """
import calendar, datetime, email.utils, json, logging, pickle, sys, time
from datetime import UTC
from datetime import datetime as early  # imported before the clock is set wrong, as others' modules are
from tests.faults import wrong_clock

class Own(early): pass
early.now(), Own.now(), time.time()  # whatever is remembered of where these are found is remembered now
wrong_clock.set_wrong(int(sys.argv[1]))
made = early.now(UTC)
assert type(made) is datetime.datetime is type(pickle.loads(pickle.dumps(made)))
assert type(Own.now()) is Own
print(json.dumps({
    "now": made.timestamp(), "naive": early.now().timestamp(), "utcnow": early.utcnow().replace(tzinfo=UTC).timestamp(),
    "own": Own.now(UTC).timestamp(), "today": early.today().timestamp(),
    "time": time.time(), "time_ns": time.time_ns() / 1e9,
    "clock": time.clock_gettime(time.CLOCK_REALTIME), "clock_ns": time.clock_gettime_ns(time.CLOCK_REALTIME) / 1e9,
    "gmtime": calendar.timegm(time.gmtime()), "localtime": time.mktime(time.localtime()),
    "given": calendar.timegm(time.gmtime(time.time())), "strftime": time.mktime(time.strptime(time.strftime("%c"))),
    "ctime": time.mktime(time.strptime(time.ctime())), "asctime": time.mktime(time.strptime(time.asctime())),
    "log": logging.makeLogRecord({}).created,
    "mail": email.utils.parsedate_to_datetime(email.utils.formatdate(usegmt=True)).timestamp(),
    "monotonic": time.monotonic(),
}))
"""


@pytest.mark.parametrize("seconds", [HOURS, -HOURS])
def test_a_wrong_clock_is_wrong_for_all_who_ask_for_the_time(seconds: int) -> None:
    true, measured = time.time(), time.monotonic()
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROGRAM, str(seconds)],
        env=environment() | {"TZ": "IST-5:30"},  # neither UTC nor a summer time
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    late = time.time() - true + 1  # some tell whole seconds
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)

    assert measured <= told.pop("monotonic") <= time.monotonic()
    assert {name: at for name, at in told.items() if not -1 <= at - true - seconds <= late} == {}


async def test_a_mail_at_a_host_with_a_wrong_clock_is_judged_as_at_any_other(
    sqlite_place: Place, tmp_path: Path, seed: int
) -> None:
    async with by_mail.an_arena(sqlite_place, tmp_path, seed, skew=HOURS) as arena:
        for race in (by_mail.a_wrong_clock, races.pause_past_expiry, races.cooldown_after_release):
            for number in range(FEW):
                await race(arena, f"pat-{number}@{race.__name__.replace('_', '-')}.example.net")
        await arena.stage.drained()

        assert arena.stage.judged() == []
    assert trouble(arena.stage) == []
