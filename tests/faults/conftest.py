"""Stores of both kinds with a tenant, a mailbox and an operator's key; the number of rounds; the seed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.databases import Databases, PostgresServer, Prepare, SqliteFiles
from tests.faults.stage import prepared

SEED = 1


@dataclass(frozen=True, slots=True)
class Place:
    """A store, the operator's key, and whether several gateways are to share it."""

    url: str
    key: str
    postgres: bool


@pytest.fixture(scope="session")
def the_keys() -> dict[str, str]:
    """The operator's key of the prepared store of each kind."""
    return {}


@pytest.fixture(scope="session")
def prepare(the_keys: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Prepare:
    """Makes a store ready; the same function for the whole session, so that it runs once for each kind."""
    return prepared(the_keys, tmp_path_factory.mktemp("profiles"))


@contextmanager
def a_place(databases: Databases, prepare: Prepare, keys: dict[str, str]) -> Iterator[Place]:
    """A fresh store."""
    with databases.fresh(prepare) as url:
        kind = url.partition(":")[0]
        yield Place(url, keys[kind], kind != "sqlite")


@pytest.fixture
def place(databases: Databases, prepare: Prepare, the_keys: dict[str, str]) -> Iterator[Place]:
    """A fresh store of both kinds."""
    with a_place(databases, prepare, the_keys) as made:
        yield made


@pytest.fixture
def postgres_place(postgres_server: PostgresServer, prepare: Prepare, the_keys: dict[str, str]) -> Iterator[Place]:
    """A fresh store on PostgreSQL."""
    with a_place(postgres_server, prepare, the_keys) as made:
        yield made


@pytest.fixture
def sqlite_place(sqlite_files: SqliteFiles, prepare: Prepare, the_keys: dict[str, str]) -> Iterator[Place]:
    """A fresh store on SQLite."""
    with a_place(sqlite_files, prepare, the_keys) as made:
        yield made


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    """How often a race is run: 20 times, 200 with `--slow`."""
    return 200 if request.config.getoption("--slow") else 20


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of all dice; printed, so that a run can be had again."""
    print(f"seed {SEED}")  # noqa: T201 - shown where a test fails
    return SEED
