"""How far a long command has come: a bar on a terminal, elsewhere a plain line on stderr now and then."""

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

from gateway.cli import printing

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

EVERY = 100_000
"""Rows between two plain lines."""


class Meter:
    """Counts rows while a block runs; `total` is what `at` runs up to, in bytes or rows, or `None` where nobody knows."""

    def __init__(self, what: str, total: int | None = None) -> None:
        """Show nothing yet."""
        self.what = what
        self.total = total
        self.rows = 0
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        """Begin to show, where somebody looks."""
        if sys.stderr.isatty():
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=printing.console(stderr=True))
            self._bar.start()
            self._task = self._bar.add_task(self.what, total=self.total)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.stop()

    def moved(self, rows: int, at: int | None = None) -> None:
        """Count rows more; `at` is how far that is of the total."""
        before = self.rows
        self.rows += rows
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=at, description=f"{self.what} {self.rows:,} rows")
        elif self.rows // EVERY > before // EVERY:
            printing.note(f"{self.what} {self.rows} rows")

    def note(self, text: str) -> None:
        """Print a line beside the bar."""
        if self._bar is not None:
            self._bar.console.print(printing.styled(text, "care"))
        else:
            printing.note(text)
