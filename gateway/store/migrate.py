"""Bring a database to the newest schema, and say whether it is there. Alembic, configured in code."""

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from gateway.store.dialect import Dialect

MIGRATION_LOCK = 0x6761746577617900


def configuration() -> Config:
    """Alembic's settings: only where the revisions are."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config


def migrate(dialect: Dialect, revision: str = "head") -> None:
    """Upgrade the database to `revision`; several processes may try at once. Raises ValueError where it cannot be reached."""
    config = configuration()
    dialect.prepare()
    try:
        with dialect.engine.connect() as connection:
            if dialect.name == "postgresql":
                connection.execute(sa.text("SELECT pg_advisory_lock(:n)"), {"n": MIGRATION_LOCK})
            else:
                connection.execute(sa.text("PRAGMA busy_timeout = 10000"))
                connection.execute(sa.text("PRAGMA journal_mode = WAL"))
            connection.execute(sa.text("BEGIN" if dialect.name == "postgresql" else "BEGIN IMMEDIATE"))
            try:
                config.attributes["connection"] = connection
                command.upgrade(config, revision)
                connection.execute(sa.text("COMMIT"))
            except BaseException:
                connection.execute(sa.text("ROLLBACK"))
                raise
            finally:
                if dialect.name == "postgresql":
                    connection.execute(sa.text("SELECT pg_advisory_unlock(:n)"), {"n": MIGRATION_LOCK})
    except sa.exc.DBAPIError as error:
        raise ValueError(unreachable(error)) from error


def revisions(dialect: Dialect) -> tuple[str | None, str | None]:
    """The database's revision and the newest one. Raises ValueError where the database cannot be reached."""
    newest = ScriptDirectory.from_config(configuration()).get_current_head()
    if dialect.name == "sqlite" and not Path(getattr(dialect, "path", "")).exists():
        return None, newest  # looking must not make the file
    try:
        with dialect.engine.connect() as connection:
            return MigrationContext.configure(connection).get_current_revision(), newest
    except sa.exc.DBAPIError as error:
        raise ValueError(unreachable(error)) from error


def check(dialect: Dialect) -> None:
    """Raise ValueError with one line unless the database has the newest schema."""
    current, newest = revisions(dialect)
    if current != newest:
        if current is None:
            msg = "DATABASE_URL: the database is empty; run `gateway init`, which also makes a mailbox and a key"
        else:
            msg = f"DATABASE_URL: the database is at revision {current}, this version needs {newest}; run `gateway migrate`"
        raise ValueError(msg)


def unreachable(error: sa.exc.DBAPIError) -> str:
    """One line about a database that does not answer, or is none; the driver's own words hold no password."""
    cause = " ".join(str(error.orig).split())
    missing = isinstance(error, sa.exc.OperationalError)
    return f"DATABASE_URL: the database cannot be {'reached' if missing else 'used'}: {cause}"
