"""Decisions against what the database could do at best: `python -m tests.bench.judge [--database sqlite|postgres]`.

1. Grouped decisions per second as a ratio to raw grouped inserts of the very rows that these decisions wrote.
2. The time of one decision with many contacts in the store as a ratio to the time with few.
"""

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

import policies
from gateway.app import calm_the_collector
from gateway.core.address import parse
from gateway.core.mail import Content, Envelope, Recipient, Submission
from gateway.intake.walk import Ticket, walk
from gateway.store import Store, Tx, agents, dialect_of, keys, migrate
from gateway.store.dialect import Dialect
from gateway.store.schema import contacts, contents, decisions, deliveries, events, sends
from tests.databases import start_postgres

TENANT = "bench"
GROUP = 64
TABLES = (contents, sends, deliveries, decisions, events)
BODY = b"Subject: bench\r\n\r\n" + b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd\r\n" * 32


class Bench:
    """A fresh store with one mailbox and one key, and an endless supply of mails to new people."""

    def __init__(self, url: str) -> None:
        migrate(dialect_of(url))
        self.store = Store.open(url)
        self.store.write((), lambda tx: agents.add_tenant(tx, TENANT))
        sender = parse("agent@gw.example.com")
        self.box = self.store.write((TENANT,), lambda tx: agents.add_mailbox(tx, TENANT, sender))
        wish = keys.NewKey(TENANT, "bench")
        self.key = self.store.write((TENANT,), lambda tx: keys.create_keys(tx, [wish]))[0][0]
        self.rules = policies.rules()
        self.number = 0

    def ticket(self) -> Ticket:
        """The next mail, to somebody new."""
        self.number += 1
        n = self.number
        person = Recipient(parse(f"person{n}@example.net"))
        content = Content("digest", len(BODY), f"<{n}@gw.example.com>", (self.box.key,), "bench")
        envelope = Envelope(self.box.address, (person,))
        mail = Submission(
            f"req_{n:012}", TENANT, self.box.id, None, self.key.id, envelope, content, f"key-{n}", f"print-{n}"
        )
        return Ticket(mail, BODY)

    def decide(self, count: int) -> float:
        """Decide about `count` mails in groups; returns decisions per second."""
        tickets = [self.ticket() for _ in range(count)]
        begin = time.perf_counter()
        for at in range(0, count, GROUP):
            group = tickets[at : at + GROUP]
            self.store.write((TENANT,), partial(walk, tickets=group, rules=self.rules, write=True))
        return count / (time.perf_counter() - begin)

    def one(self) -> float:
        """Decide about one mail; returns seconds."""
        ticket = self.ticket()
        begin = time.perf_counter()
        self.store.write((TENANT,), lambda tx: walk(tx, [ticket], self.rules, write=True))
        return time.perf_counter() - begin

    def fill(self, count: int) -> None:
        """Put `count` contacts into the store that are not asked about."""
        row = {c.name: 0 for c in contacts.c} | {"tenant": TENANT, "lease_id": "", "owner": "", "intent": ""}
        row |= {"address": "", "last_by": ""}

        def insert(_: Dialect) -> sa.Executable:
            return sa.insert(contacts)

        def some(tx: Tx, first: int) -> None:
            tx.many(insert, [row | {"key": f"other{n}@example.org"} for n in range(first, min(first + 10_000, count))])

        for first in range(0, count, 10_000):
            self.store.write((TENANT,), partial(some, first=first))


def written(bench: Bench) -> list[tuple[sa.Table, list[dict[str, Any]]]]:
    """All rows that the decisions wrote, by table."""
    with bench.store.dialect.engine.connect() as connection:
        return [(t, [dict(r._mapping) for r in connection.execute(sa.select(t))]) for t in TABLES]


def insert_raw(dialect: Dialect, rows: list[tuple[sa.Table, list[dict[str, Any]]]], count: int) -> float:
    """Insert the rows in groups of as many sends, one commit a group, on the bare driver; returns sends per second."""
    connection = dialect.connect(writer=True)
    cursor = dialect.cursor(connection)
    texts = [str(sa.insert(t).compile(dialect=dialect.compiler)) for t, _ in rows]
    begin = time.perf_counter()
    for at in range(0, count, GROUP):
        cursor.execute("BEGIN")
        for text, (_, lines) in zip(texts, rows, strict=True):
            cursor.executemany(text, lines[at : at + GROUP])
        cursor.execute("COMMIT")
    rate = count / (time.perf_counter() - begin)
    connection.close()
    return rate


@contextlib.contextmanager
def databases(kind: str) -> Iterator[Any]:
    """A source of fresh database URLs of one kind."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=Path.home())))
        server = stack.enter_context(start_postgres()) if kind == "postgres" else None
        count = iter(range(1_000_000))

        def fresh() -> str:
            name = f"bench{next(count)}"
            if server is None:
                return f"sqlite:///{folder.resolve() / name}.db"
            with sa.create_engine(server.url(), isolation_level="AUTOCOMMIT").connect() as connection:
                connection.execute(sa.text(f"CREATE DATABASE {name}"))
            return server.url(name)

        yield fresh


def spread(values: list[float], digits: int = 2) -> str:
    """Median and range."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def main() -> int:
    """Run and print; exit 1 where a ratio misses its mark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=64 * 30, help="decisions a round")
    parser.add_argument("--few", type=int, default=1_000)
    parser.add_argument("--many", type=int, default=1_000_000)
    options = parser.parse_args()
    calm_the_collector()
    with databases(options.database) as fresh:
        ratios, rates = [], []
        for _ in range(options.rounds):
            bench = Bench(fresh())
            rate = bench.decide(options.count)
            rows = written(bench)
            bench.store.close()
            target = dialect_of(fresh())
            migrate(target)
            raw = insert_raw(target, rows, options.count)
            ratios.append(rate / raw)
            rates.append(rate)
        print(f"{options.database}: grouped decisions/s {spread(rates, 0)}, of raw grouped inserts {spread(ratios)}")
        few, many = Bench(fresh()), Bench(fresh())
        few.fill(options.few)
        many.fill(options.many)
        growth = []
        for _ in range(options.rounds):
            times = [(few.one(), many.one()) for _ in range(100)]
            growth.append(statistics.median(t for _, t in times) / statistics.median(t for t, _ in times))
        print(f"{options.database}: one decision with {options.many} contacts / with {options.few}: {spread(growth)}")
    good = statistics.median(ratios) >= 0.3 and statistics.median(growth) <= 1.5
    print("as asked: 0.3 or more, 1.5 or less:", "yes" if good else "no")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
