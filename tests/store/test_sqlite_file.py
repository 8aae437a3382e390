"""A database file that is moved away or replaced under the process: nothing is acknowledged that would be lost with it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.core.errors import StoreUnavailableError
from gateway.store import Store
from tests.databases import SqliteFiles
from tests.world import TENANT, seeded


@pytest.fixture
def store(sqlite_files: SqliteFiles) -> Iterator[Store]:
    """A store on a file of its own, which has read and written."""
    with sqlite_files.fresh(seeded) as url:
        store = Store.open(url)
        try:
            write(store)
            read(store)
            yield store
        finally:
            store.close()


def write(store: Store) -> None:
    """Any transaction that writes."""
    store.write((TENANT,), lambda _: None)


def read(store: Store) -> None:
    """Any transaction that reads."""
    store.read(lambda _: None, (TENANT,))


def file_of(store: Store) -> Path:
    """Where its database is."""
    return Path(str(store.dialect.engine.url.database))


@pytest.mark.parametrize("act", [write, read])
def test_a_file_that_is_gone_takes_and_tells_nothing(store: Store, act: Callable[[Store], None]) -> None:
    path = file_of(store)
    path.rename(path.with_name("away.db"))

    with pytest.raises(StoreUnavailableError):
        act(store)

    assert not path.exists()


@pytest.mark.parametrize("act", [write, read])
def test_another_file_in_its_place_takes_and_tells_nothing(store: Store, act: Callable[[Store], None]) -> None:
    path = file_of(store)
    data = path.read_bytes()
    path.rename(path.with_name("away.db"))
    path.write_bytes(data)

    with pytest.raises(StoreUnavailableError):
        act(store)


def test_a_file_that_comes_back_is_used_again(store: Store) -> None:
    path = file_of(store)
    path.rename(path.with_name("away.db"))
    with pytest.raises(StoreUnavailableError):
        write(store)
    path.with_name("away.db").rename(path)

    write(store)
    read(store)
