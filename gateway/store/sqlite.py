"""SQLite: one writer at a time, WAL, every commit flushed to disk."""

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

BUSY_MILLISECONDS = 10_000


class Sqlite:
    """The file is the lock: BEGIN IMMEDIATE serves all tenants."""

    name = "sqlite"
    errors: tuple[type[Exception], ...] = (sqlite3.Error,)
    outages: tuple[type[Exception], ...] = (sqlite3.OperationalError,)

    def __init__(self, url: sa.URL) -> None:
        """Keep the file's path; nothing is opened yet. Raises ValueError for an in-memory database (it is not durable)."""
        if not url.database or url.database == ":memory:":
            msg = "DATABASE_URL: an in-memory SQLite database keeps nothing; name a file, e.g. sqlite:///gateway.db"
            raise ValueError(msg)
        self.path = url.database
        self.engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        self.compiler: sa.Dialect = SQLiteDialect_pysqlite(paramstyle="named")

    def prepare(self) -> None:
        """Make the file so that only its owner can read it: it holds messages. Raises ValueError where it cannot be made."""
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return
        except OSError as error:
            msg = f"DATABASE_URL: {self.path} cannot be made: {error.strerror}"
            raise ValueError(msg) from None

    def connect(self, *, writer: bool) -> sqlite3.Connection:
        """Open the file in autocommit with WAL and FULL synchronisation (a power cut loses nothing acknowledged)."""
        connection = sqlite3.connect(
            self.path, timeout=BUSY_MILLISECONDS / 1000, isolation_level=None, check_same_thread=False
        )
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA query_only = {'OFF' if writer else 'ON'}")
        connection.row_factory = sqlite3.Row
        return connection

    def cursor(self, connection: sqlite3.Connection) -> sqlite3.Cursor:
        """Return a cursor with rows by name."""
        return connection.cursor()

    def begin(self, cursor: sqlite3.Cursor, tenants: Sequence[str]) -> None:  # noqa: ARG002  (one lock serves all)
        """Take the write lock before anything is read."""
        cursor.execute("BEGIN IMMEDIATE")

    def begin_read(self, cursor: sqlite3.Cursor) -> None:
        """Read one snapshot."""
        cursor.execute("BEGIN")

    def micros(self) -> sa.ColumnElement[int]:
        """Microseconds from julianday: SQLite before 3.42 has no unixepoch('subsec')."""
        return sa.literal_column("CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER) * 1000")

    def within(self, column: sa.ColumnElement[str], name: str) -> sa.ColumnElement[bool]:
        """A JSON array as a sub-select; joined as a table it became the inner loop of a scan of 10^6 rows."""
        return column.in_(sa.select(sa.func.json_each(sa.bindparam(name)).table_valued("value").c.value))

    def array(self, values: Iterable[str]) -> str:
        """A list parameter is JSON text."""
        return json.dumps(list(values))

    def upsert(self, table: sa.Table) -> Any:  # noqa: ANN401
        """SQLite's insert with ON CONFLICT."""
        return insert(table)

    def for_update(self, select: sa.Select[Any], of: sa.Table, *, skip_locked: bool = False) -> sa.Select[Any]:  # noqa: ARG002
        """Nothing to do: the writer is alone."""
        return select

    def together(self, connection: sqlite3.Connection) -> "contextlib.AbstractContextManager[object]":  # noqa: ARG002
        """There is nobody to wait for."""
        return contextlib.nullcontext()

    def abort(self, connection: sqlite3.Connection) -> None:
        """Interrupt the running statement."""
        connection.interrupt()
