"""Judges a case that has been played by every word of `expected`; a word that nobody knows is no success."""

from collections.abc import Mapping
from typing import Any

from tests.cases.play import Play
from tests.cases.received import EXPECTATIONS

SHOWN_ELSEWHERE = {"see", "or"}
EACH = "each"
"""What holds for each step is written a level deeper."""
NEVER = {500, 501, 502, 504}


async def judged(play: Play, expected: Mapping[str, Any]) -> None:
    """Note all faults of a case. Raises ValueError for an expectation that nobody judges."""
    unknown = unknown_words(expected)
    if unknown:
        raise ValueError(f"the expectation {unknown[0]!r} of {play.case.id} is not known to the driver")
    for word, value in [*expected.get(EACH, {}).items(), *expected.items()]:
        if word not in {EACH, *SHOWN_ELSEWHERE}:
            await EXPECTATIONS[word](play, value)
    for one in play.said:
        play.fault(one.status not in NEVER, f"step {one.step}: HTTP {one.status}")
        play.fault(one.status != 503 or "retry-after" in one.headers, f"step {one.step}: 503 without Retry-After")


def unknown_words(expected: Mapping[str, Any]) -> list[str]:
    """Words of an expectation that nobody here judges."""
    return sorted({*expected, *expected.get(EACH, {})} - set(EXPECTATIONS) - {EACH, *SHOWN_ELSEWHERE})
