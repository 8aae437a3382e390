"""The schema: made from nothing on both databases, the same as in `schema.py`, and by several processes at once."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from gateway.store import Store, check, dialect_of, migrate
from gateway.store.schema import metadata
from tests.conftest import migrated
from tests.databases import Databases
from tests.world import World, seeded

CATALOGUE = {
    "sqlite": "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'",
    "postgresql": """
        SELECT 'column', table_name, column_name, data_type || ' ' || is_nullable || ' ' || coalesce(column_default, '')
          FROM information_schema.columns WHERE table_schema = 'public'
        UNION ALL SELECT 'index', tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
        UNION ALL SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid)
          FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    """,
}


def catalogue(url: str) -> set[tuple[Any, ...]]:
    """Everything that the database knows of its tables, but for Alembic's own."""
    dialect = dialect_of(url)
    with dialect.engine.connect() as connection:
        rows = connection.execute(sa.text(CATALOGUE[dialect.name])).fetchall()
    plain = {tuple(re.sub(r"[\s\"]+", " ", str(cell)).replace("( ", "(").strip() for cell in row) for row in rows}
    return {row for row in plain if "alembic_version" not in " ".join(row)}


def test_an_empty_database_is_brought_to_the_newest_schema(empty_database_url: str) -> None:
    dialect = dialect_of(empty_database_url)
    with pytest.raises(ValueError, match="run `gateway init`"):
        check(dialect)

    migrate(dialect)

    check(dialect)
    with dialect.engine.connect() as connection:
        assert set(sa.inspect(connection).get_table_names()) == {*metadata.tables, "alembic_version"}
        assert connection.execute(sa.text("SELECT id, offset_us, relay_paused FROM clock")).fetchall() == [(1, 0, 0)]


def test_looking_at_a_database_that_is_not_there_does_not_make_it(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"

    with pytest.raises(ValueError, match="is empty"):
        Store.open(f"sqlite:///{path}")

    assert not path.exists()


def test_the_schema_after_migration_equals_the_metadata(database_url: str) -> None:
    dialect = dialect_of(database_url)

    with dialect.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})

        assert compare_metadata(context, metadata) == []


def test_indexes_and_constraints_equal_the_metadata_to_the_letter(databases: Databases) -> None:
    """What Alembic does not compare: conditions of partial indexes, names and columns of constraints."""

    def made(url: str) -> None:
        engine = dialect_of(url).engine
        metadata.create_all(engine)
        engine.dispose()

    with databases.fresh(migrated) as by_migration, databases.fresh(made) as by_metadata:
        assert catalogue(by_migration) == catalogue(by_metadata)


def test_migrating_again_changes_nothing(databases: Databases) -> None:
    with databases.fresh(seeded) as url:
        world = World(url).open()
        before = world.rows()

        migrate(dialect_of(url))

        assert world.rows() == before
        for node in world.nodes:
            node.store.close()


def test_two_processes_that_migrate_at_once_both_succeed(databases: Databases) -> None:
    code = "import sys; from gateway.store import dialect_of, migrate; migrate(dialect_of(sys.argv[1]))"
    with databases.fresh() as url:
        processes = [
            subprocess.Popen([sys.executable, "-c", code, url], stderr=subprocess.PIPE, text=True) for _ in range(3)
        ]

        results = [(process.communicate(timeout=60)[1], process.returncode) for process in processes]

        assert [code for _, code in results] == [0, 0, 0], results
        check(dialect_of(url))


def test_a_migration_that_fails_leaves_the_database_as_it_was(empty_database_url: str) -> None:
    dialect = dialect_of(empty_database_url)
    with dialect.engine.connect() as connection:
        connection.execute(sa.text("CREATE TABLE sends (id INTEGER)"))

    with pytest.raises((ValueError, sa.exc.DBAPIError)):
        migrate(dialect)

    with dialect.engine.connect() as connection:
        assert set(sa.inspect(connection).get_table_names()) <= {"sends", "alembic_version"}


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite://", "in-memory"),
        ("sqlite:///:memory:", "in-memory"),
        ("mysql://x/y", "not supported"),
        ("sqlite+aiosqlite:///gateway.db", "not supported"),
        ("postgresql+asyncpg://x/y", "not supported"),
        ("sqlite:///gateway.db?mode=ro", "a path and nothing else"),
        ("sqlite://srv/gateway.db", "a path and nothing else"),
        ("nonsense", "not a URL"),
        ("postgresql://nobody@127.0.0.1:1/none", "cannot be reached"),
        ("sqlite:////nowhere/at/all/gateway.db", "cannot be (reached|made)"),
    ],
)
def test_a_database_that_cannot_be_had_is_one_line(url: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        migrate(dialect_of(url))

    assert str(refused.value).startswith("DATABASE_URL: ")
    assert "\n" not in str(refused.value)


def test_a_file_that_is_no_database_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, and longer than its header would be\n" * 20)
    dialect = dialect_of(f"sqlite:///{tmp_path / 'notes.txt'}")

    for look in (check, migrate):
        with pytest.raises(ValueError, match=r"^DATABASE_URL: the database cannot be used: [^\n]+$"):
            look(dialect)


def test_a_password_is_in_no_error() -> None:
    with pytest.raises(ValueError, match="DATABASE_URL") as refused:
        migrate(dialect_of("postgresql://user:s3cret@127.0.0.1:1/none"))

    assert "s3cret" not in str(refused.value)
