"""Every row of the table is done as it says, at its door; and the table has all that the page has."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import closing

import pytest
import pytest_asyncio

from gateway.store import Store
from tests.cli.processes import Up, up
from tests.coordination.conformance import table
from tests.coordination.conformance.drive import at_the_doors, on_the_command_line
from tests.coordination.conformance.rows import Part
from tests.coordination.conformance.table import PARTS
from tests.doors.door import a_door
from tests.doors.mcp.client import Served
from tests.doors.mcp.conftest import serving
from tests.world import World


@pytest_asyncio.fixture
async def served(world: World) -> AsyncIterator[Served]:
    """A door on a port, on each kind of database."""
    async with a_door(world) as door:
        async for one in serving(door):
            yield one


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A gateway that is up, for all commands."""
    with up(tmp_path_factory.mktemp("conformance")) as all_of_it:
        yield all_of_it


@pytest.fixture(scope="module")
def store(running: Up) -> Iterator[Store]:
    """Its store, in which each row gets a tenant of its own."""
    with closing(Store.open(running.house.env["GATEWAY_DATABASE_URL"])) as store:
        yield store


def titled(part: Part) -> str:
    return part.title.lower().replace(" ", "-")


def with_door(*doors: str) -> list[Part]:
    return [part for part in PARTS if any(row.ask.door in doors for row in part.rows)]


@pytest.mark.parametrize("part", with_door("http", "mcp", "event"), ids=titled)
async def test_over_http_and_mcp_it_is_as_the_table_says(served: Served, part: Part) -> None:
    rows = [row for row in part.rows if row.ask.door != "cli"]

    assert [fault for row in rows for fault in await at_the_doors(row, served)] == []


@pytest.mark.parametrize("part", with_door("cli"), ids=titled)
def test_on_the_command_line_it_is_as_the_table_says(running: Up, store: Store, part: Part) -> None:
    rows = [row for row in part.rows if row.ask.door == "cli"]

    assert [fault for row in rows for fault in on_the_command_line(row, running, store)] == []


# --- the table has all that the page has ------------------------------------------------------------------------------


def test_every_heading_is_there() -> None:
    titles = [title for part in PARTS for title in (part.title, *part.below)]

    assert len(titles) + len(table.BELOW) == table.HEADINGS
    assert len({part.title for part in PARTS}) == len(PARTS)


def test_every_example_and_every_row_of_a_table_is_there() -> None:
    kinds = Counter(
        "CLI" if name == "CLI" else "curl" if name == "curl" else "route" if "/v1/" in name else "JSON"
        for part in PARTS
        for name in part.examples
    )

    assert kinds == {"CLI": table.COMMANDS, "curl": table.CALLS, "route": table.ROUTES, "JSON": table.DOCUMENTS}
    assert sum(len(part.cells) for part in PARTS) == table.CELLS


@pytest.mark.parametrize("part", PARTS, ids=titled)
def test_every_example_and_every_row_of_a_table_is_tried(part: Part) -> None:
    named = Counter(name for row in part.rows for name in row.of)

    assert set(named) == {*part.examples, *part.cells}
    assert [name for name, times in named.items() if times > 1] == []


def test_no_cell_is_empty() -> None:
    rows = [row for part in PARTS for row in part.rows]

    assert [row for row in rows if not row.says or (row.want.body is None and not row.want.out + row.want.err)] == []
    assert [row for row in rows if row.differs is not None and not (row.differs.where and row.differs.why)] == []
    assert all(part.rows for part in PARTS)
