"""What the demo shows: each act as a table, and at the end every outcome beside what it had to be."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from gateway.cli.printing import console, styled

PIPE_WIDTH = 140
"""Columns where the output is no terminal."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One thing that had to be so."""

    what: str
    expected: str
    seen: str

    @property
    def right(self) -> bool:
        """Whether it was so."""
        return self.expected == self.seen


@dataclass(slots=True)
class Board:
    """Prints as the demo goes on, and remembers outcomes."""

    outcomes: list[Outcome] = field(default_factory=list)
    out: Console = field(default_factory=lambda: _wide(console()))

    def act(self, title: str, words: str) -> None:
        """Begin an act."""
        self.out.print()
        self.out.print(styled(f"{self._next()}. {title}"), style="bold")
        self.out.print(styled(words))

    def _next(self) -> int:
        self._acts += 1
        return self._acts

    _acts: int = 0

    def say(self, words: object, style: str = "") -> None:
        """Print a line."""
        self.out.print(styled(words, style))

    def table(self, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a table; its cells may come from strangers."""
        shown = Table(header_style="bold")
        for name in head:
            shown.add_column(name, overflow="fold")
        for row in rows:
            shown.add_row(*(styled(cell) for cell in row))
        self.out.print(shown)

    def check(self, what: str, expected: object, seen: object) -> None:
        """Remember whether something was as it had to be, and say so at once where it was not."""
        outcome = Outcome(what, str(expected), str(seen))
        self.outcomes.append(outcome)
        if not outcome.right:
            self.say(f"wrong: {what}: {outcome.expected} was expected, {outcome.seen} was seen", "bad")

    def verdict(self) -> bool:
        """Print all outcomes and return whether every one was right."""
        shown = Table(header_style="bold", title="Outcomes", title_justify="left")
        for name in ("outcome", "expected", "seen", ""):
            shown.add_column(name, overflow="fold")
        for one in self.outcomes:
            mark = styled("ok", "good") if one.right else styled("WRONG", "bad")
            shown.add_row(styled(one.what), styled(one.expected), styled(one.seen), mark)
        self.out.print()
        self.out.print(shown)
        return bool(self.outcomes) and all(one.right for one in self.outcomes)


def _wide(out: Console) -> Console:
    if not out.is_terminal:
        out.width = PIPE_WIDTH
    return out
