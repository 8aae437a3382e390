"""What all tests share: fresh databases of both kinds, the `--slow` option, the profile of hypothesis."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from gateway.store import dialect_of, migrate
from tests.databases import Databases, PostgresServer, SqliteFiles, start_postgres

settings.register_profile(
    "ci",
    deadline=None,  # shared machines stall
    derandomize=True,  # the same examples on each run; `--slow` looks for new ones
    max_examples=50,
    print_blob=True,
    # Examples that need a database of their own take one from `fresh_database`; a commit is a flush, so it takes time.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.register_profile("slow", settings.get_profile("ci"), derandomize=False)
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--slow`."""
    parser.addoption("--slow", action="store_true", help="run the tests marked slow as well")


def pytest_configure(config: pytest.Config) -> None:
    """With `--slow`, hypothesis looks for new examples."""
    if config.getoption("--slow"):
        settings.load_profile("slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips what is marked slow unless it was asked for."""
    if config.getoption("--slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="slow: runs with --slow"))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL for the session (for each worker, under xdist), started by the first test that needs it."""
    with start_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def sqlite_files(tmp_path_factory: pytest.TempPathFactory) -> SqliteFiles:
    """The folder of the session's SQLite databases."""
    return SqliteFiles(tmp_path_factory.mktemp("sqlite"))


@pytest.fixture(params=["sqlite", "postgres"])
def databases(request: pytest.FixtureRequest) -> Databases:
    """Both kinds of database, one after the other: a test that uses it runs twice."""
    name = {"sqlite": "sqlite_files", "postgres": "postgres_server"}[request.param]
    kind: Databases = request.getfixturevalue(name)
    return kind


def migrated(url: str) -> None:
    """Brings an empty database to the newest revision; the `prepare` of `Databases.fresh`."""
    dialect = dialect_of(url)
    migrate(dialect)
    dialect.engine.dispose()


@pytest.fixture
def database_url(databases: Databases) -> Iterator[str]:
    """The URL of a fresh, migrated database, of both kinds."""
    with databases.fresh(migrated) as url:
        yield url


@pytest.fixture
def empty_database_url(databases: Databases) -> Iterator[str]:
    """The URL of a fresh database without a table, of both kinds."""
    with databases.fresh() as url:
        yield url


@pytest.fixture
def sqlite_url(sqlite_files: SqliteFiles) -> Iterator[str]:
    """The URL of a fresh, migrated SQLite database."""
    with sqlite_files.fresh(migrated) as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of a fresh, migrated database on PostgreSQL."""
    with postgres_server.fresh(migrated) as url:
        yield url
