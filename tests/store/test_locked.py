"""A lock that somebody else holds is waited for once: whoever waits behind it hears of it as soon as that is over."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
import pytest

from gateway.core.errors import StoreBusyError
from gateway.store import Tx, postgres, sqlite
from gateway.store.postgres import lock_number
from gateway.store.writer import Rank
from tests.world import TENANT, World

SHORT = 50


@contextlib.contextmanager
def held(url: str) -> Iterator[None]:
    """Hold the lock that a deciding transaction needs."""
    if url.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as file:
            file.execute("BEGIN IMMEDIATE")
            yield
            file.execute("ROLLBACK")
    else:
        with psycopg.connect(url.replace("+psycopg", "")) as line:
            line.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number(TENANT),))
            yield


@pytest.fixture
def begun(world: World, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The transactions that were begun from now on; locks are waited for `SHORT` milliseconds."""
    monkeypatch.setattr(sqlite, "BUSY_MILLISECONDS", SHORT)
    monkeypatch.setattr(postgres, "LOCK_MILLISECONDS", SHORT)
    world.store.close()  # the connections that it has wait longer
    tries: list[Sequence[str]] = []
    begin: Callable[..., None] = world.store.dialect.begin

    def counted(cursor: Any, tenants: Sequence[str]) -> None:  # noqa: ANN401 - a cursor of either driver
        tries.append(tenants)
        begin(cursor, tenants)

    monkeypatch.setattr(world.store.dialect, "begin", counted)
    return tries


async def test_all_who_wait_behind_a_lock_hear_of_it_after_one_wait(world: World, begun: list[Sequence[str]]) -> None:
    def work(tx: Tx, jobs: Sequence[int]) -> Sequence[int]:
        return jobs

    with held(world.url):
        results = await asyncio.gather(
            *(world.nodes[0].writer.do(Rank.LEASE, (TENANT,), work, n) for n in range(3)), return_exceptions=True
        )
    after = await world.nodes[0].writer.do(Rank.LEASE, (TENANT,), work, 7)

    assert [type(result) for result in results] == [StoreBusyError] * 3
    assert begun == [[TENANT]] * 2
    assert after == 7
