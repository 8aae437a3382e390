"""Whether races were races: how often those who were to act at once did so, and who was first how often.

A round in which an agent began only when the other had its answer proves nothing, whatever the reason: a barrier that was
over before its order had come, or a machine that was busy. Such rounds are counted, and there may not be too many.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.history import Call

LATE = 0.001
"""Seconds after its time from which on an agent is said to have been late."""
ENOUGH = 0.25
"""The share of rounds in which the acts must have been under way at the same time."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """Acts that were to be done at one barrier; `behind` is by how many seconds the latest of the agents missed its time."""

    calls: tuple[Call, ...]
    behind: float

    @property
    def overlapped(self) -> bool:
        """Whether two of the acts were under way at the same time: each was asked for before the other was answered."""
        spans = [(call.asked, self._end(call)) for call in self.calls]
        return any(
            begin < other_end and other_begin < end
            for index, (begin, end) in enumerate(spans)
            for other_begin, other_end in spans[:index]
        )

    def _end(self, call: Call) -> int:
        """When it was answered; one whose agent hung up is taken to have lasted as long as the longest of the others."""
        if call.answered is not None:
            return call.answered
        return call.asked + max((c.answered - c.asked for c in self.calls if c.answered is not None), default=0)


def share(meetings: Sequence[Meeting]) -> float:
    """The share of meetings that overlapped."""
    return sum(one.overlapped for one in meetings) / max(1, len(meetings))


def described(name: str, meetings: Sequence[Meeting], outcomes: Mapping[str, int]) -> str:
    """One line about a race: how many of its meetings were some, how many agents were late, who was first how often."""
    met, late = sum(one.overlapped for one in meetings), sum(one.behind > LATE for one in meetings)
    worst = max((one.behind for one in meetings), default=0.0) * 1000
    firsts = ", ".join(f"{word} {count}" for word, count in sorted(Counter(outcomes).items()))
    return f"{name}: {met} of {len(meetings)} at once, {late} late (by {worst:.1f} ms at most); first: {firsts or '-'}"
