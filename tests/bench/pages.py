"""A page of `requests` with many sends in the store as a ratio to the time with few: `python -m tests.bench.pages`.

The mark is 1.5 for the first page and for one in the middle. Other lines, without a mark: pages with a filter that most
sends fit, and with one that none does, which is the dearest page there can be.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import sqlalchemy as sa

from gateway.core.record import Record
from gateway.store import Tx, pages
from gateway.store.dialect import Builder
from gateway.store.pages import Place, Wanted
from gateway.store.schema import decisions, deliveries, sends
from tests.bench.judge import TENANT, Bench, databases, spread

MARK = 1.5
LIMIT = 50
PIECE = 5_000
START_US = 1_772_000_000_000_000
STEP = 8
"""Sends that have the same time."""


def rows_of(bench: Bench) -> dict[sa.Table, dict[str, Any]]:
    """The rows of one send as the gateway writes them."""
    bench.decide(1)
    with bench.store.dialect.engine.connect() as connection:
        tables = (sends, deliveries, decisions)
        return {table: dict(connection.execute(sa.select(table)).mappings().one()) for table in tables}


def fill(bench: Bench, count: int) -> None:
    """Write `count` sends that have been relayed, each like the one that was decided, to people of their own."""
    usual = rows_of(bench)

    def insert(table: sa.Table) -> Builder:
        return lambda _: sa.insert(table)

    builders = {table: insert(table) for table in usual}

    def one(number: int) -> dict[sa.Table, dict[str, Any]]:
        name, at = f"req_{number:012}x", START_US + number // STEP * 1_000_000
        key = {"idem_key": name, "idem_slot": name, "message_id": f"{name}@gw.example.com"}
        who = {"contact": f"other{number}@example.org", "address": f"other{number}@example.org"}
        return {
            sends: usual[sends] | key | {"id": name, "created_us": at, "decided_us": at},
            deliveries: usual[deliveries] | who | {"id": f"{name}.1", "send_id": name, "state": "relayed"},
            decisions: usual[decisions] | {"send_id": name, "at_us": at},
        }

    def some(tx: Tx, numbers: range) -> None:
        made = [one(number) for number in numbers]
        for table, builder in builders.items():
            tx.many(builder, [rows[table] for rows in made])

    for first in range(0, count, PIECE):
        bench.store.write((TENANT,), partial(some, numbers=range(first, min(first + PIECE, count))))


@dataclass(frozen=True, slots=True)
class Question:
    """A page that somebody asks for; `marked` where it has a mark."""

    name: str
    wanted: Wanted
    middle: bool = False
    marked: bool = False


QUESTIONS = (
    Question("first page", Wanted(), marked=True),
    Question("page in the middle", Wanted(), middle=True, marked=True),
    Question("filter that most fit", Wanted(status="relayed", kind="outreach")),
    Question("one person's", Wanted(contact="other7@example.org")),
    Question("filter that none fits", Wanted(campaign="nothing")),
)


def asked(bench: Bench, count: int, question: Question) -> Callable[[], float]:
    """Asks for a page; returns seconds."""
    after = Place(START_US + count // STEP // 2 * 1_000_000, "") if question.middle else None

    def read(tx: Tx) -> tuple[list[Record], Place | None]:
        return pages.page(tx, TENANT, question.wanted, after=after, limit=LIMIT)

    def act() -> float:
        begin = time.perf_counter()
        found, _ = bench.store.read(read, (TENANT,))
        took = time.perf_counter() - begin
        if len(found) not in (0, 1, LIMIT):
            raise SystemExit(f"{question.name}: {len(found)} rows")
        return took

    return act


def compare(few: Callable[[], float], many: Callable[[], float], rounds: int) -> tuple[float, float, list[float]]:
    """Medians in seconds with few and with many, and the ratio of each round; both are asked in turns."""
    small, large, ratios = [], [], []
    for _ in range(rounds):
        pairs = [(few(), many()) for _ in range(20)]
        a, b = (statistics.median(times) for times in zip(*pairs, strict=True))
        small.append(a)
        large.append(b)
        ratios.append(b / a)
    return statistics.median(small), statistics.median(large), ratios


def main() -> int:
    """Run and print; exit 1 where a ratio misses its mark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--few", type=int, default=1_000)
    parser.add_argument("--many", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    report: dict[str, Any] = {"database": options.database, "few": options.few, "many": options.many, "pages": {}}
    good = True
    with databases(options.database) as fresh:
        benches = [(Bench(fresh()), count) for count in (options.few, options.many)]
        for bench, count in benches:
            fill(bench, count)
        for question in QUESTIONS:
            few, many = (asked(bench, count, question) for bench, count in benches)
            small, large, ratios = compare(few, many, options.rounds)
            ratio = statistics.median(ratios)
            good &= ratio <= MARK or not question.marked
            report["pages"][question.name] = {"few_ms": small * 1e3, "many_ms": large * 1e3, "ratio": ratio}
            if not options.json:
                times = f"{small * 1e3:.2f} ms with {options.few}, {large * 1e3:.2f} ms with {options.many}"
                print(f"{options.database}: {question.name}: {times}, ratio {spread(ratios)}", flush=True)
        for bench, _ in benches:
            bench.store.close()
    if options.json:
        print(json.dumps(report | {"mark": MARK, "good": good}, indent=2))
    else:
        print(f"as asked, {MARK} or less:", "yes" if good else "no")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
