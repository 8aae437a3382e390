"""The databases that the other tests stand on: fresh, whole copies, on a server that leaves nothing behind."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from tests.databases import STOP_SECONDS, Databases, PostgresServer

prepared: list[str] = []


def with_a_table(url: str) -> None:
    prepared.append(url)
    run(url, "CREATE TABLE things (name VARCHAR)")


def run(url: str, statement: str) -> list[str]:
    """Executes one statement in a transaction of its own and returns the first column, if there is one."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        result = connection.execute(text(statement))
        return [row[0] for row in result] if result.returns_rows else []


def test_two_databases_share_nothing(databases: Databases) -> None:
    with databases.fresh(with_a_table) as one, databases.fresh(with_a_table) as two:
        run(one, "INSERT INTO things VALUES ('here')")

        assert run(one, "SELECT name FROM things") == ["here"]
        assert run(two, "SELECT name FROM things") == []


def test_a_template_is_prepared_once(databases: Databases) -> None:
    with databases.fresh(with_a_table):
        count = len(prepared)
    with databases.fresh(with_a_table) as again:
        assert run(again, "SELECT name FROM things") == []

    assert len(prepared) == count


def test_an_open_connection_does_not_keep_a_database_alive(postgres_server: PostgresServer) -> None:
    with contextlib.ExitStack() as left_open:
        with postgres_server.fresh() as url:
            left_open.enter_context(create_engine(url, poolclass=NullPool).connect())
        names = run(postgres_server.url(), "SELECT datname FROM pg_database")

    assert url.split("/")[-1].split("?")[0] not in names


def test_the_server_flushes_what_it_acknowledges(postgres_server: PostgresServer) -> None:
    assert run(postgres_server.url(), "SHOW fsync") == ["on"]
    assert run(postgres_server.url(), "SHOW synchronous_commit") == ["on"]


def test_a_killed_starter_leaves_no_server_and_no_folder() -> None:
    script = (
        "from tests.databases import start_postgres\nwith start_postgres() as s: print(s.folder, flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parent.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as starter:
        assert starter.stdout is not None
        folder = Path(starter.stdout.readline().strip())
        server = int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        starter.kill()

    deadline = time.monotonic() + STOP_SECONDS
    while folder.exists():
        assert time.monotonic() < deadline
        os.sched_yield()
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)
