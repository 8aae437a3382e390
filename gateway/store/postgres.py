"""PostgreSQL through psycopg 3: one advisory lock per tenant, READ COMMITTED, rows locked in id order."""

import contextlib
import hashlib
import os
import socket
from collections.abc import Iterable, Sequence
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg.rows import dict_row
from sqlalchemy.dialects.postgresql import array, insert
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

LOCK_MILLISECONDS = 10_000
STATEMENT_MILLISECONDS = 30_000
IDLE_MILLISECONDS = 30_000


class Postgres:
    """The tenant's advisory lock is the first statement of every deciding transaction; look-ups are later statements."""

    name = "postgresql"
    errors: tuple[type[Exception], ...] = (psycopg.Error,)
    outages: tuple[type[Exception], ...] = (
        psycopg.OperationalError,
        psycopg.InterfaceError,
        psycopg.errors.ReadOnlySqlTransaction,  # a primary that has been demoted: another one serves
        psycopg.errors.IdleInTransactionSessionTimeout,
        psycopg.errors.TransactionTimeout,
    )

    def __init__(self, url: sa.URL) -> None:
        """Keep the address; nothing is opened yet."""
        self.url = url.set(drivername="postgresql").render_as_string(hide_password=False)
        self.engine = sa.create_engine(
            url.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool
        )
        self.compiler: sa.Dialect = PGDialect_psycopg()  # type: ignore[no-untyped-call]

    def prepare(self) -> None:
        """Nothing to make: the database is the operator's."""

    def busy(self, error: Exception) -> bool:
        """Another session has held a lock for LOCK_MILLISECONDS."""
        return isinstance(error, psycopg.errors.LockNotAvailable)

    def connect(self, *, writer: bool) -> "psycopg.Connection[dict[str, Any]]":
        """Connect in autocommit; time-outs free a stuck judge, synchronous_commit keeps what was acknowledged."""
        options = {
            "lock_timeout": LOCK_MILLISECONDS,
            "statement_timeout": STATEMENT_MILLISECONDS,
            "idle_in_transaction_session_timeout": IDLE_MILLISECONDS,
            "default_transaction_read_only": "off" if writer else "on",
            # A plan kept from when a table was empty uses any index that begins with the tenant, and is never made anew
            # before the table is analysed; planning costs 0.05 ms.
            "plan_cache_mode": "force_custom_plan",
            # Before it is analysed a table of 10^5 rows is taken for some ten, which are then all fetched and sorted for a
            # page; without this the index gives them in order.
            "enable_bitmapscan": "on" if writer else "off",
        }
        connection = psycopg.connect(
            self.url, autocommit=True, row_factory=dict_row, connect_timeout=10, application_name="gateway"
        )
        try:
            for name, value in options.items():
                connection.execute("SELECT set_config(%s, %s, false)", (name, str(value)))
            if writer:  # a cluster may default to off; a stronger setting (remote_apply) stays
                connection.execute(
                    "SELECT set_config('synchronous_commit', 'on', false) "
                    "WHERE current_setting('synchronous_commit') IN ('off', 'local')"
                )
        except BaseException:
            connection.close()
            raise
        return connection

    def cursor(self, connection: "psycopg.Connection[dict[str, Any]]") -> "psycopg.Cursor[dict[str, Any]]":
        """Return a cursor with rows by name."""
        return connection.cursor()

    def begin(self, cursor: "psycopg.Cursor[dict[str, Any]]", tenants: Sequence[str]) -> None:
        """Begin and take each tenant's lock in the order given; it ends with the transaction."""
        cursor.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
        for tenant in tenants:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number(tenant),))

    def begin_read(self, cursor: "psycopg.Cursor[dict[str, Any]]") -> None:
        """Read one snapshot over several statements."""
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def micros(self) -> sa.ColumnElement[int]:
        """The wall clock at the statement, not at the transaction's start (which lags by the wait for the lock)."""
        return sa.literal_column("CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)")

    def within(self, column: sa.ColumnElement[str], name: str) -> sa.ColumnElement[bool]:
        """An array as a sub-select; `= ANY` went over to a sequential scan at 128 values, this does not."""
        array = sa.bindparam(name, type_=sa.ARRAY(sa.Text))
        table = sa.func.unnest(array).table_valued("value").render_derived(name=f"each_{name}")
        return column.in_(sa.select(table.c.value))

    def owned(self, column: sa.Column[Any], name: str) -> sa.ColumnElement[bool]:
        """Tenant and value as pairs of one list.

        With the tenant as a constant a plan for a table without statistics read all of the tenant's rows, 10^5 for one.
        """
        values = sa.bindparam(name, type_=sa.ARRAY(sa.Text))
        tenant = sa.cast(sa.bindparam("tenant"), sa.Text)
        tenants = sa.func.array_fill(tenant, array([sa.func.cardinality(values)]), type_=sa.ARRAY(sa.Text))
        pairs = sa.func.unnest(tenants, values).table_valued("tenant", "value").render_derived(name=f"each_{name}")
        return sa.tuple_(column.table.c.tenant, column).in_(sa.select(pairs.c.tenant, pairs.c.value))

    def look_up(self, table: sa.Table, column: sa.Column[Any], name: str, *more: sa.ColumnElement[bool]) -> sa.Subquery:
        """A lateral sub-select behind an optimisation fence: no plan can turn it round and read the table instead."""
        values = sa.bindparam(name, type_=sa.ARRAY(sa.Text))
        each = sa.func.unnest(values).table_valued("value").render_derived(name=f"each_{name}")
        tenant: sa.BindParameter[str] = sa.bindparam("tenant")
        one = sa.select(table).where(table.c.tenant == tenant, column == each.c.value, *more)
        rows = one.offset(sa.literal_column("0")).lateral("one")
        return sa.select(rows).select_from(each.join(rows, sa.true())).subquery("found")

    def array(self, values: Iterable[str]) -> list[str]:
        """A list parameter is a list."""
        return list(values)

    def records(self, name: str, columns: Sequence[sa.Column[Any]]) -> sa.Select[Any]:
        """The objects become rows of the columns' types."""
        each = sa.func.json_to_recordset(sa.cast(sa.bindparam(name), sa.JSON))
        named = [sa.column(c.name, c.type) for c in columns]
        return sa.select(each.table_valued(*named).render_derived(name="each", with_types=True))

    def upsert(self, table: sa.Table) -> Any:  # noqa: ANN401
        """PostgreSQL's insert with ON CONFLICT."""
        return insert(table)

    def for_update(self, select: sa.Select[Any], of: sa.Table, *, skip_locked: bool = False) -> sa.Select[Any]:
        """Lock the rows in the order selected."""
        return select.with_for_update(of=of, skip_locked=skip_locked)

    def abort(self, connection: "psycopg.Connection[dict[str, Any]]") -> None:
        """Cut the line: a cancel would be answered with success by a commit that waits for a standby, and it is not durable."""
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)


def lock_number(tenant: str) -> int:
    """The tenant's advisory lock: a signed 64-bit number, the same in every process."""
    return int.from_bytes(hashlib.sha256(b"gateway tenant " + tenant.encode()).digest()[:8], "big", signed=True)
