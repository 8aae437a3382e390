"""What the commands print: JSON as it came, or lines and tables for people.

Texts of strangers (names, subjects, replies of servers) never reach a terminal raw: control characters are taken out,
and no text is read as markup. On a terminal the output has colours and boxes, elsewhere plain columns.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

REPLACEMENT = "\ufffd"
STYLES = {"good": "green", "bad": "bold red", "care": "yellow", "": ""}


def clean(value: object) -> str:
    """One line of printable text: blanks of all kinds become a space, every other control or format character U+FFFD."""
    text = "" if value is None else str(value)
    return "".join(c if c.isprintable() else " " if c.isspace() else REPLACEMENT for c in text)


def console(*, stderr: bool = False) -> "Console":
    """A console that reads no markup in what it prints."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=True)


def styled(text: object, style: str = "") -> "Text":
    """Text for a console: cleaned, without markup, in one of the `STYLES`."""
    from rich.text import Text

    return Text(clean(text), style=STYLES[style])


def document(body: object) -> None:
    """Print JSON on stdout, in ASCII: what is escaped there cannot act on a terminal."""
    sys.stdout.write(json.dumps(body, indent=2) + "\n")


def line(text: object, style: str = "") -> None:
    """Print one line on stdout."""
    if sys.stdout.isatty():
        console().print(styled(text, style))
    else:
        sys.stdout.write(clean(text) + "\n")


def note(text: object, style: str = "care") -> None:
    """Print one line on stderr."""
    if sys.stderr.isatty():
        console(stderr=True).print(styled(text, style))
    else:
        sys.stderr.write(clean(text) + "\n")


def fail(text: object, code: int = 1) -> NoReturn:
    """Print one line on stderr and end the command: code 1 refused or failed, 2 wrong usage or setting."""
    note(f"error: {clean(text)}", "bad")
    raise typer.Exit(code)


def pairs(rows: Iterable[tuple[str, object]]) -> None:
    """Print names and values under a headline; a value that is empty or `None` leaves its row out."""
    kept = [(name, clean(value)) for name, value in rows if value not in (None, "", [], ())]
    width = max((len(name) for name, _ in kept), default=0)
    for name, value in kept:
        line(f"  {name.ljust(width)}  {value}")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table on stdout: a box on a terminal, columns elsewhere; the word none where it has no row."""
    cells = [[clean(cell) for cell in row] for row in rows]
    if not cells:
        line("none")
        return
    if sys.stdout.isatty():
        from rich.table import Table

        shown = Table(header_style="bold")
        for name in head:
            shown.add_column(name, overflow="fold")  # an id that is cut is no id
        for row in cells:
            shown.add_row(*(styled(cell) for cell in row))
        console().print(shown)
        return
    widths = [max(len(row[n]) for row in [list(head), *cells]) for n in range(len(head))]
    for row in [list(head), *cells]:
        sys.stdout.write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n")


def member(body: Any, *names: str) -> Any:  # noqa: ANN401  (JSON)
    """A member of a nested JSON object, or `None` where there is none on the way."""
    for name in names:
        body = body.get(name) if isinstance(body, dict) else None
    return body
