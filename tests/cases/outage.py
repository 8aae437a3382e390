"""Takes the database away from the gateways of a case, and gives it back: its file, or every connection to it."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg import sql

from tests.cases.play import Play

SQLITE = "sqlite:///"
AWAY = ".away"


async def database(play: Play, number: int, step: dict[str, Any]) -> None:
    """Let the database be down or up."""
    states = {"down": False, "up": True}
    if step["state"] not in states:
        raise ValueError(f"a database that is {step['state']!r} is not known to the driver")
    up = states[step["state"]]
    play.house.let_go()
    await asyncio.to_thread(_sqlite if play.house.url.startswith(SQLITE) else _postgres, play.house.url, up=up)
    play.cut_off = not up


def _sqlite(url: str, *, up: bool) -> None:
    """A file that stands under another name; it stays the same file."""
    path = Path(url.removeprefix(SQLITE))
    away = path.with_name(path.name + AWAY)
    if up:
        away.rename(path)
    else:
        path.rename(away)


def _postgres(url: str, *, up: bool) -> None:
    """A database that lets nobody in; who is in is sent away."""
    at = sa.make_url(url)
    assert at.database is not None
    name = sql.Identifier(at.database)
    folder = at.query["host"]
    with contextlib.closing(
        psycopg.connect(f"host={folder} user={at.username} dbname=postgres", autocommit=True)
    ) as line:
        allowed = sql.SQL("true" if up else "false")
        line.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}").format(name, allowed))
        if not up:
            line.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (at.database,))
