"""The clock jumps, the disk is full, the store is locked, the database dies: under load, and nothing is lost or doubled."""

import asyncio
import contextlib
import os
import resource
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from gateway.store.postgres import lock_number
from tests import servers
from tests.faults.conftest import Place
from tests.faults.stage import Stage, stopped
from tests.faults.test_kills import a_crowded_stage, all_wrong, settled, under_load
from tests.faults.test_unknown import ahead
from tests.history import Call
from tests.servers import Served

TENANT = "default"


async def gateways(stage: Stage, place: Place) -> list[Served]:
    """One on SQLite, two on PostgreSQL."""
    return [await stage.gateway() for _ in range(1 + place.postgres)]


async def more(stage: Stage, count: int) -> None:
    """Wait until the sink has taken so many more mails."""
    await stage.sink.wait(len(stage.sink.mails) + count, servers.PATIENCE)


def refused(stage: Stage) -> list[Call]:
    """The sends that were answered with 503."""
    return [call for call in stage.calls if call.status == 503]


async def a_refusal(stage: Stage) -> None:
    """Wait until a send was answered with 503."""
    known = len(refused(stage))
    async with asyncio.timeout(servers.PATIENCE):
        while len(refused(stage)) == known:  # noqa: ASYNC110 - the crowd notes it
            await asyncio.sleep(0.02)


async def test_a_clock_that_jumps_an_hour_harms_nobody(place: Place, seed: int) -> None:
    async with a_crowded_stage(place, seed) as (stage, crowd):
        served = await gateways(stage, place)
        async with under_load(crowd, *served):
            for hours in (1, 0, -1, 0):
                await more(stage, 20)
                await asyncio.to_thread(ahead, place.url, hours * 3600)
            await more(stage, 20)
        await settled(stage, crowd, served)

        assert refused(stage) == []
        assert await all_wrong(stage, crowd, "a clock that jumped", one_clock=False) == []
        assert "unknown" not in {row["state"] for row in stage.history().rows.deliveries}


@contextlib.contextmanager
def a_full_disk(served: Served, database: Path) -> Iterator[None]:
    """Let no file of this gateway grow while the block runs."""
    size = max(path.stat().st_size for path in database.parent.iterdir())
    usual = resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (size, usual[1]))
    try:
        yield
    finally:
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, usual)


async def test_a_full_disk_means_later_and_loses_nothing(sqlite_place: Place, seed: int) -> None:
    async with a_crowded_stage(sqlite_place, seed) as (stage, crowd):
        served = await stage.gateway()
        async with under_load(crowd, served):
            await more(stage, 20)
            with a_full_disk(served, Path(sqlite_place.url.removeprefix("sqlite:///"))):
                await a_refusal(stage)
            await more(stage, 20)
        await settled(stage, crowd, [served])

        assert refused(stage)
        assert await all_wrong(stage, crowd, "a full disk") == []


@pytest.fixture
def locked(request: pytest.FixtureRequest) -> float:
    """For how many seconds the store is locked: longer than CLAIM_SECONDS is on the stage; half a minute with `--slow`."""
    return 30.0 if request.config.getoption("--slow") else 6.0


@contextlib.contextmanager
def a_locked_store(place: Place) -> Iterator[None]:
    """Hold the lock that every gateway needs for what it writes."""
    if place.postgres:
        with psycopg.connect(place.url.replace("+psycopg", "")) as line:
            line.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number(TENANT),))
            yield
        return
    with contextlib.closing(sqlite3.connect(place.url.removeprefix("sqlite:///"), isolation_level=None)) as file:
        file.execute("BEGIN IMMEDIATE")
        yield
        file.execute("ROLLBACK")


async def test_a_store_that_is_locked_means_later_and_loses_nothing(place: Place, seed: int, locked: float) -> None:
    async with a_crowded_stage(place, seed) as (stage, crowd):
        served = await gateways(stage, place)
        async with under_load(crowd, *served):
            await more(stage, 20)
            with a_locked_store(place):
                await asyncio.gather(a_refusal(stage), asyncio.sleep(locked))
            await more(stage, 20)
        await settled(stage, crowd, served)

        assert refused(stage)
        assert await all_wrong(stage, crowd, "a locked store") == []


async def test_a_gateway_that_stops_with_the_lock_in_its_hand_stops_nobody_for_ever(place: Place, seed: int) -> None:
    async with a_crowded_stage(place, seed) as (stage, crowd):
        other = await stage.gateway()
        sleeper = await stage.gateway(steps={"commit.before": {"do": "stop", "on": 12}})
        async with under_load(crowd, other, sleeper):
            await asyncio.to_thread(stopped, sleeper)
            if (
                not place.postgres
            ):  # there the database ends the sleeper's session by itself, perhaps before anybody is refused
                await a_refusal(stage)
                stage.wake(sleeper)
            await more(stage, 5)
            if place.postgres:
                stage.wake(sleeper)
            await more(stage, 20)
        await settled(stage, crowd, [other, sleeper])

        assert await all_wrong(stage, crowd, "a gateway that stopped with the lock") == []


async def test_a_postgres_that_dies_and_recovers_under_load_loses_nothing(postgres_place: Place, seed: int) -> None:
    async with a_crowded_stage(postgres_place, seed) as (stage, crowd):
        served = await gateways(stage, postgres_place)
        for _ in range(3):
            async with under_load(crowd, *served):
                await more(stage, crowd.dice.randrange(10, 40))
                await asyncio.to_thread(crash, postgres_place.url)
                await more(stage, 10)
        await settled(stage, crowd, served)

        assert await all_wrong(stage, crowd, "3 crashes of PostgreSQL") == []


def crash(url: str) -> None:
    """Kill one of the server's processes: it then ends all others at once, recovers from its log and starts anew."""
    with contextlib.suppress(psycopg.OperationalError), psycopg.connect(url.replace("+psycopg", "")) as line:
        row = line.execute("SELECT pg_backend_pid()").fetchone()
        assert row is not None
        os.kill(row[0], signal.SIGKILL)
        line.execute("SELECT 1")
