"""Tables in Markdown, for what is made from the code."""

from collections.abc import Iterable


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table with these titles; nothing in a cell can end it or be taken for HTML."""
    titles = tuple(head)
    lines = [titles, ("---",) * len(titles), *(tuple(map(cell, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(text: str) -> str:
    """A text as it may stand in a cell; a text in code marks is shown as it is, so only its bars are escaped there."""
    flat = " ".join(text.split()).replace("|", r"\|")
    return flat if flat.startswith("`") else prose(flat)


def prose(text: str) -> str:
    """A text that is not taken for HTML."""
    return text.replace("<", "&lt;")
