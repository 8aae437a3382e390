"""SQLite: one writer at a time, WAL, every commit flushed to disk."""

import json
import os
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

BUSY_MILLISECONDS = 10_000
CHECKPOINT_PAGES = 4000
"""Pages of 4 KiB in the log before they are copied to the file."""


class _Compiler(SQLiteCompiler):
    """Writes hints: without ANALYZE an index that only gives the order is taken before one that finds the rows."""

    def get_from_hint_text(self, table: sa.FromClause, text: str | None) -> str | None:  # noqa: ARG002
        """INDEXED BY stands behind the table; the statement fails where that index cannot serve it."""
        return text


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
        if url.query or url.host:
            msg = "DATABASE_URL: SQLite takes a path and nothing else, e.g. sqlite:///gateway.db or sqlite:////srv/gateway.db"
            raise ValueError(msg)
        self.path = url.database
        self._file: tuple[int, int] | None = None  # device and inode of what was opened first
        self.engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        self.compiler: sa.Dialect = SQLiteDialect_pysqlite(paramstyle="named")
        self.compiler.statement_compiler = _Compiler

    def prepare(self) -> None:
        """Make the file so that only its owner can read it: it holds messages. Raises ValueError where it cannot be made."""
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return
        except OSError as error:
            msg = f"DATABASE_URL: {self.path} cannot be made: {error.strerror}"
            raise ValueError(msg) from None

    def busy(self, error: Exception) -> bool:
        """Another process has held the write lock for BUSY_MILLISECONDS."""
        return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY

    def connect(self, *, writer: bool) -> sqlite3.Connection:
        """Open the file in autocommit with WAL and FULL synchronisation (a power cut loses nothing acknowledged).

        It is never made here: an empty one would hide that the right one is gone.
        """
        self._refuse_another_file()
        connection = sqlite3.connect(
            f"{Path(self.path).absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=BUSY_MILLISECONDS / 1000,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        # Pages that many commits in a row have changed go to the file once: a quarter of the time of a long import.
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA query_only = {'OFF' if writer else 'ON'}")
        connection.row_factory = sqlite3.Row
        return connection

    def cursor(self, connection: sqlite3.Connection) -> sqlite3.Cursor:
        """Return a cursor with rows by name."""
        return connection.cursor()

    def begin(self, cursor: sqlite3.Cursor, tenants: Sequence[str]) -> None:  # noqa: ARG002  (one lock serves all)
        """Take the write lock before anything is read."""
        self._refuse_another_file()
        cursor.execute("BEGIN IMMEDIATE")

    def begin_read(self, cursor: sqlite3.Cursor) -> None:
        """Read one snapshot."""
        self._refuse_another_file()
        cursor.execute("BEGIN")

    def _refuse_another_file(self) -> None:
        """A file that was removed or replaced is still there for who has it open, and what is written there is lost.

        Nothing goes on from another file either: this process knows things that stood in the first one.
        """
        try:
            found = Path(self.path).stat()
        except OSError as error:
            msg = f"the database file cannot be found: {error.strerror}"
            raise sqlite3.OperationalError(msg) from None
        if self._file is None:
            self._file = (found.st_dev, found.st_ino)
        elif self._file != (found.st_dev, found.st_ino):
            msg = "another file stands in place of the database that was opened; start again to use it"
            raise sqlite3.OperationalError(msg)

    def micros(self) -> sa.ColumnElement[int]:
        """Microseconds from julianday: SQLite before 3.42 has no unixepoch('subsec')."""
        return sa.literal_column("CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER) * 1000")

    def within(self, column: sa.ColumnElement[str], name: str) -> sa.ColumnElement[bool]:
        """A JSON array as a sub-select; joined as a table it became the inner loop of a scan of 10^6 rows."""
        return column.in_(sa.select(sa.func.json_each(sa.bindparam(name)).table_valued("value").c.value))

    def owned(self, column: sa.Column[Any], name: str) -> sa.ColumnElement[bool]:
        """Both columns are constants to the index."""
        tenant: sa.BindParameter[str] = sa.bindparam("tenant")
        return sa.and_(column.table.c.tenant == tenant, self.within(column, name))

    def look_up(self, table: sa.Table, column: sa.Column[Any], name: str, *more: sa.ColumnElement[bool]) -> sa.Subquery:
        """SQLite does so by itself."""
        return sa.select(table).where(self.owned(column, name), *more).subquery("found")

    def array(self, values: Iterable[str]) -> str:
        """A list parameter is JSON text."""
        return json.dumps(list(values))

    def records(self, name: str, columns: Sequence[sa.Column[Any]]) -> sa.Select[Any]:
        """Each member is looked up in its object; without a WHERE the parser would take ON CONFLICT for a join's ON."""
        each = sa.func.json_each(sa.bindparam(name)).table_valued("value")
        members = [
            sa.func.json_extract(each.c.value, sa.literal_column(f"'$.{c.name}'")).label(c.name) for c in columns
        ]
        return sa.select(*members).select_from(each).where(sa.true())

    def upsert(self, table: sa.Table) -> Any:  # noqa: ANN401
        """SQLite's insert with ON CONFLICT."""
        return insert(table)

    def for_update(self, select: sa.Select[Any], of: sa.Table, *, skip_locked: bool = False) -> sa.Select[Any]:  # noqa: ARG002
        """Nothing to do: the writer is alone."""
        return select

    def abort(self, connection: sqlite3.Connection) -> None:
        """Interrupt the running statement."""
        connection.interrupt()
