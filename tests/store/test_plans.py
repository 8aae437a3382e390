"""What statements cost on SQLite, which knows nothing of its tables' sizes: rows are found by an index that names them.

Without ANALYZE it may take an index that only gives the order, and read all that a tenant has ever sent.
"""

import importlib
import inspect
import pkgutil
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import gateway.store
from gateway.store import dialect_of, migrate
from gateway.store.dialect import Builder, Dialect
from gateway.store.tx import Statements

LARGE = "attempts|contacts|contents|counters|consents|decisions|deliveries|events|people|sends|suppressions"
WHOLE = re.compile(rf"SCAN ({LARGE})\b|SEARCH ({LARGE})\b.*\(tenant=\?\)")
MAY = {
    # a partial index: what moves, not the history
    "bulk._live_contacts": "deliveries_live",
    "epochs._nameless": "deliveries_epoch",
    "forbid._live_in_domain": "deliveries_live",
    "forbid._of_mailbox": "deliveries_live",
    "forbid._held_of": "deliveries_open",
    # pages and the newest: the order is what is asked for, and a limit ends it
    "journal._newest": "sqlite_autoindex_events_1",
    "suppressions._newest": "suppressions_newest",
    "suppressions._newest_of": "suppressions_newest",
    "suppressions._newest_domains": "suppressions_newest",
    # a person revokes a key together with its mail
    "revoke._under_way": "deliveries_send",
}
"""Statements that read a whole index, and which."""


def builders() -> Iterator[tuple[str, Builder]]:
    """Every statement that a module of the store has as a function of the dialect."""
    for found in pkgutil.iter_modules(gateway.store.__path__, "gateway.store."):
        if found.ispkg:
            continue
        module = importlib.import_module(found.name)
        for name, function in vars(module).items():
            if inspect.isfunction(function) and function.__module__ == found.name:
                kinds = [one.annotation for one in inspect.signature(function).parameters.values()]
                if kinds == [Dialect] and found.name != "gateway.store.migrate":
                    yield f"{found.name.rpartition('.')[2]}.{name}", function


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "gateway.db"
    migrate(dialect_of(f"sqlite:///{path}"))
    return path


@pytest.mark.parametrize(("name", "builder"), list(builders()), ids=lambda one: one if isinstance(one, str) else "")
def test_a_statement_finds_its_rows_by_an_index(empty: Path, name: str, builder: Builder) -> None:
    text, constants = Statements(dialect_of(f"sqlite:///{empty}")).made(builder)
    given = dict.fromkeys(re.findall(r":(\w+)", text), '["a"]') | constants
    connection = sqlite3.connect(empty)
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", given)]
    connection.close()

    whole = {step for step in plan if WHOLE.match(step)}
    may = {step for step in whole if f"INDEX {MAY.get(name, '-')} " in f"{step} "}

    assert whole - may == set()
    assert bool(may) == (name in MAY), "the list of exceptions holds what needs one, and nothing else"


def test_all_statements_and_exceptions_are_looked_at() -> None:
    assert MAY.keys() <= {name for name, _ in builders()}
    assert len(dict(builders())) > 150
