"""What the store asks of a database; `sqlite.py` and `postgres.py` answer.

Statements are written once in SQLAlchemy Core and compiled once to text for the database at hand, then run on the driver's
own cursor: half the cost of running them through the engine (ARCHITECTURE 12).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import sqlalchemy as sa

Row = Any  # sqlite3.Row or a psycopg dict: both answer row["name"]


class Dialect(Protocol):
    """One database: how to connect, lock, read its clock, pass lists, and tell its errors apart."""

    name: str
    engine: sa.Engine
    compiler: sa.Dialect
    errors: tuple[type[Exception], ...]
    outages: tuple[type[Exception], ...]  # those that mean: not now

    def prepare(self) -> None:
        """Make what must be there before the first connection. Raises ValueError where it cannot be made."""

    def busy(self, error: Exception) -> bool:
        """Whether the error says that a lock was waited for in vain."""

    def connect(self, *, writer: bool) -> Any:  # noqa: ANN401  (a DB-API connection)
        """Return a driver's connection in autocommit, set up for durable work; readers may not write."""

    def cursor(self, connection: Any) -> Any:  # noqa: ANN401
        """Return a cursor whose rows answer by name."""

    def begin(self, cursor: Any, tenants: Sequence[str]) -> None:  # noqa: ANN401
        """Open a transaction and take the tenants' locks in the order given; the time is read only after this."""

    def begin_read(self, cursor: Any) -> None:  # noqa: ANN401
        """Open a transaction that reads one state of the store."""

    def micros(self) -> sa.ColumnElement[int]:
        """The expression for the database's clock, in microseconds, not frozen at the transaction's start."""

    def within(self, column: sa.ColumnElement[str], name: str) -> sa.ColumnElement[bool]:
        """Whether the column's value is one of a list parameter's."""

    def owned(self, column: sa.Column[Any], name: str) -> sa.ColumnElement[bool]:
        """Whether a row is the tenant's (parameter `tenant`) and the column's value one of a list parameter's.

        In the form that uses the index on both, whatever the database believes of a table that has just grown.
        """

    def look_up(self, table: sa.Table, column: sa.Column[Any], name: str, *more: sa.ColumnElement[bool]) -> sa.Subquery:
        """The tenant's rows whose column is one of a list parameter's values, found by one look into the index for each."""

    def array(self, values: Iterable[str]) -> Any:  # noqa: ANN401
        """The value to pass for a list parameter."""

    def records(self, name: str, columns: Sequence[sa.Column[Any]]) -> sa.Select[Any]:
        """Select the rows of a parameter that is JSON text: a list of objects with these members."""

    def upsert(self, table: sa.Table) -> Any:  # noqa: ANN401  (each dialect has its own class)
        """Return an insert that knows on-conflict clauses."""

    def for_update(self, select: sa.Select[Any], of: sa.Table, *, skip_locked: bool = False) -> sa.Select[Any]:
        """Lock the selected rows where the database needs that."""

    def abort(self, connection: Any) -> None:  # noqa: ANN401
        """Make whatever the connection waits for fail now; called from another thread."""


Builder = Callable[[Dialect], sa.Executable]
"""Makes a statement for a dialect; compiled once per store."""


def by_index(select: sa.Select[Any], table: sa.Table, index: str) -> sa.Select[Any]:
    """Have SQLite find the rows by this index, and sort them afterwards; PostgreSQL decides by itself."""
    return select.with_hint(table, f"INDEXED BY {index}", "sqlite")


def compiled(dialect: Dialect, builder: Builder) -> tuple[str, dict[str, Any]]:
    """The statement's text with named parameters in the driver's own style, and the constants that stand in it."""
    made = builder(dialect).compile(dialect=dialect.compiler)  # type: ignore[attr-defined]
    return str(made), {name: value for name, value in made.params.items() if value is not None}
