"""The store: the only folder that knows SQL. `Store` and `Tx` are its whole public face, beside one file per subject.

Whatever changes what a policy may read goes through `Store.write`: it takes the tenants' locks, then reads the time, does
the work and commits with a flush to disk. The grouped writer in `writer.py` calls it once for everybody who waits.
"""

import contextlib
import logging
import secrets
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar

import sqlalchemy as sa

from gateway.core.errors import CommitInDoubtError, GatewayError, StoreBusyError, StoreUnavailableError
from gateway.store import epochs
from gateway.store.clock import Steady, boot_us, from_us
from gateway.store.dialect import Dialect
from gateway.store.migrate import check, migrate
from gateway.store.sqlite import Sqlite
from gateway.store.steps import step
from gateway.store.tx import Profile, Statements, Tx, read_clock, read_plain_clock, write_clock

__all__ = ["Profile", "Store", "Tx", "check", "migrate"]

T = TypeVar("T")
log = logging.getLogger(__name__)


def dialect_of(url: str) -> Dialect:
    """Choose the database by URL; raises ValueError with one line for another kind or an unreadable URL."""
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError:
        msg = "DATABASE_URL: not a URL like sqlite:///gateway.db or postgresql://user@host/name"
        raise ValueError(msg) from None
    kinds: dict[str, Callable[[sa.URL], Dialect]] = {
        "sqlite": Sqlite,
        "postgresql": _postgres,
        "postgresql+psycopg": _postgres,
    }
    kind = kinds.get(parsed.drivername)
    if kind is None:
        msg = f"DATABASE_URL: {parsed.drivername} is not supported, use sqlite or postgresql"
        raise ValueError(msg)
    return kind(parsed)


def _postgres(url: sa.URL) -> Dialect:
    """PostgreSQL, whose driver is an extra: nothing of it is imported where it is not used."""
    try:
        from gateway.store.postgres import Postgres  # noqa: PLC0415
    except ImportError:
        msg = "DATABASE_URL: the driver for PostgreSQL is missing; install agent-mail-gateway[postgres]"
        raise ValueError(msg) from None
    return Postgres(url)


class Store:
    """One process's way to the database: a connection that writes, and some that read."""

    def __init__(self, dialect: Dialect, *, boot: Callable[[], int] = boot_us) -> None:
        """Open nothing yet; `boot` is the boot-time clock in microseconds."""
        self.dialect = dialect
        self.boot = boot
        self.epoch = secrets.token_hex(8)
        self._traced = False  # true once a commit of this process has left its trace there
        self.serving = False  # true once this process has an epoch row: then commits can be looked up after a doubt
        self._steady = Steady(boot)
        self._statements = Statements(dialect)
        self._lock = threading.Lock()  # the writing connection's
        self._pool = threading.Lock()  # the readers'
        self._writer: Any = None
        self._readers: list[Any] = []
        self._closings = 0
        self._group = 0

    @classmethod
    def open(cls, url: str, *, boot: Callable[[], int] = boot_us) -> "Store":
        """Open a migrated database. Raises ValueError where the URL is wrong or a migration is missing."""
        store = cls(dialect_of(url), boot=boot)
        check(store.dialect)
        return store

    def abort(self) -> None:
        """Make the transaction that runs fail now, from another thread: nothing may wait for a commit for ever."""
        connection = self._writer
        if connection is not None:
            self.dialect.abort(connection)

    def close(self) -> None:
        """Close all connections, those of reads that are under way as they end; the store may be used again."""
        with self._lock, self._pool:
            self._closings += 1
            for connection in self._readers:
                self._drop(connection)
            self._readers = []
            self._drop_writer()

    def about_now(self, tenant: str) -> datetime:
        """The tenant's time (UTC) as far as it is known without asking: for what is written into mail and first looks.

        What depends on the time is decided by that of a transaction. It is the host's clock where nothing is known yet.
        """
        us = self._steady.about(tenant)
        return datetime.now(UTC) if us is None else from_us(us)

    def read(self, work: Callable[[Tx], T], tenants: Iterable[str] = ()) -> T:
        """Run `work` on one consistent state of the store, without locks; it can write nothing.

        Raises StoreUnavailableError.
        """
        try:
            with self._reader() as cursor:
                tx = Tx(self.dialect, self._statements, cursor)
                try:
                    self._read_time(tx, sorted(set(tenants)))
                    return work(tx)
                finally:
                    cursor.execute("ROLLBACK")
        except self.dialect.outages as error:
            raise StoreUnavailableError(str(error)) from error

    @contextlib.contextmanager
    def _reader(self) -> Any:  # noqa: ANN401
        """A cursor in a transaction that reads; connections that have died in the meantime are dropped."""
        closings = self._closings
        connection, cursor = self._begin_read()
        try:
            yield cursor
        except BaseException:
            self._drop(connection)
            raise
        with self._pool:
            if closings == self._closings:
                self._readers.append(connection)
                return
        self._drop(connection)

    def _begin_read(self) -> tuple[Any, Any]:
        while True:
            with self._pool:
                kept = self._readers.pop() if self._readers else None
            connection = kept or self.dialect.connect(writer=False)
            try:
                cursor = self.dialect.cursor(connection)
                self.dialect.begin_read(cursor)
            except self.dialect.errors:
                self._drop(connection)
                if kept is None:
                    raise
            else:
                return connection, cursor

    def _drop(self, connection: Any) -> None:  # noqa: ANN401
        with contextlib.suppress(*self.dialect.errors):
            connection.close()

    def write(self, tenants: Iterable[str], work: Callable[[Tx], T]) -> T:
        """Run `work` in one transaction that holds the tenants' locks, and commit it to disk.

        Raises StoreUnavailableError when the database cannot answer or the outcome of the commit is not known; whatever
        `work` raises rolls everything back.
        """
        ids = sorted(set(tenants))
        with self._lock:
            self._group += 1
            cursor = self._begin(ids)
            tx = Tx(self.dialect, self._statements, cursor)
            try:
                self._read_time(tx, ids)
                result = work(tx)
                self._finish(tx)
                step("commit.before")
            except BaseException as error:
                self._rollback(cursor)
                if isinstance(error, self.dialect.outages):
                    if not self.dialect.busy(
                        error
                    ):  # it may be the session's own, such as a server that only reads now
                        self._drop_writer()
                    raise self._unavailable(error) from error
                raise
            self._commit(cursor, ids)
            self._traced = self._traced or self.serving
        step("commit.after")
        return result

    def _unavailable(self, error: Exception) -> StoreUnavailableError:
        return (StoreBusyError if self.dialect.busy(error) else StoreUnavailableError)(str(error))

    def _begin(self, ids: list[str]) -> Any:  # noqa: ANN401
        """Open the transaction; a connection that has died in the meantime is replaced once. A lock is waited for once."""
        for last in (False, True):
            try:
                if self._writer is None:
                    self._writer = self.dialect.connect(writer=True)
                cursor = self.dialect.cursor(self._writer)
                self.dialect.begin(cursor, ids)
            except self.dialect.errors as error:
                self._drop_writer()
                if last or self.dialect.busy(error):
                    raise self._unavailable(error) from error
            else:
                return cursor
        raise AssertionError  # the loop returns or raises

    def _read_time(self, tx: Tx, ids: Iterable[str]) -> None:
        names = list(ids)
        if names:
            for row in tx.rows(read_clock, {"ids": tx.array(names)}):
                now_us = self._steady.now(row["id"], row["now_us"], row["last_us"])
                tx.tenants[row["id"]] = (now_us, Profile.load(row["profile"]))
            if len(tx.tenants) != len(names):
                msg = "no such tenant"
                raise GatewayError(msg)
            tx.now_us = max(now for now, _ in tx.tenants.values())
        else:
            row = tx.row(read_plain_clock, {})
            assert row is not None, "the clock row is made by the first migration"  # noqa: S101
            tx.now_us = self._steady.now("", row["now_us"], row["last_us"] or 0)

    def _finish(self, tx: Tx) -> None:
        tx.many(write_clock, [{"t": tenant, "now_us": now} for tenant, (now, _) in tx.tenants.items()])
        if self.serving:
            epochs.touch(tx, self.epoch, self._group)

    def _rollback(self, cursor: Any) -> None:  # noqa: ANN401
        try:
            cursor.execute("ROLLBACK")
        except self.dialect.errors:
            self._drop_writer()

    def _drop_writer(self) -> None:
        if self._writer is not None:
            self._drop(self._writer)
            self._writer = None

    def _commit(self, cursor: Any, ids: list[str]) -> None:  # noqa: ANN401
        """Commit; after an error look up whether it took hold, under the same locks, by this process's group number."""
        try:
            cursor.execute("COMMIT")
        except self.dialect.errors as error:
            log.warning("the outcome of a commit is in doubt", extra={"cause": str(error)})
            self._rollback(cursor)
            self._drop_writer()
            if not self._took_hold(ids):
                raise StoreUnavailableError(str(error)) from error

    def _took_hold(self, ids: list[str]) -> bool:
        """Whether the group in doubt is in the store; its locks are free only once the older transaction has ended.

        Raises CommitInDoubtError where that cannot be learned.
        """
        if not self.serving:
            msg = "the outcome of a commit is not known, and this process leaves no trace of its own in the store"
            raise CommitInDoubtError(msg)
        try:
            cursor = self._begin(ids)
            try:
                group = epochs.group_of(Tx(self.dialect, self._statements, cursor), self.epoch)
            finally:
                self._rollback(cursor)
        except StoreUnavailableError as error:
            raise CommitInDoubtError(str(error)) from error
        except self.dialect.errors as error:
            raise CommitInDoubtError(str(error)) from error
        if group is None and self._traced:
            msg = "the outcome of a commit is not known, and this process was taken for dead meanwhile"
            raise CommitInDoubtError(msg)
        return group == self._group
