"""Judges a case that has been played by every word of `expected`; a word that nobody knows is no success."""

from collections.abc import Mapping
from typing import Any

from tests.cases.play import Play
from tests.cases.replied import EXPECTATIONS
from tests.cases.words import SMTP

SHOWN_ELSEWHERE = {"see", "or"}
EACH = "each"
"""What holds for each step is written a level deeper."""
NEVER = {500, 501, 502, 504}


async def judged(play: Play, expected: Mapping[str, Any]) -> None:
    """Note all faults of a case. Raises ValueError for an expectation that nobody judges."""
    unknown = unknown_words(expected)
    if unknown:
        raise ValueError(f"the expectation {unknown[0]!r} of {play.case.id} is not known to the driver")
    if not await _otherwise(play, expected):
        await _all(play, expected)
    for one in play.said:
        play.fault(one.status not in NEVER, f"step {one.step}: HTTP {one.status}")
        told = one.status != 503 or one.method == SMTP or "retry-after" in one.headers
        play.fault(told, f"step {one.step}: 503 without Retry-After")


async def _all(play: Play, expected: Mapping[str, Any]) -> None:
    for word, value in [*expected.get(EACH, {}).items(), *expected.items()]:
        if word not in {EACH, *SHOWN_ELSEWHERE}:
            await EXPECTATIONS[word](play, value)


async def _otherwise(play: Play, expected: Mapping[str, Any]) -> bool:
    """Whether it ended in the other way that is as fine."""
    if "or" not in expected:
        return False
    before = list(play.faults)
    await _all(play, expected["or"])
    fine = play.faults == before
    play.faults[:] = before
    return fine


def unknown_words(expected: Mapping[str, Any]) -> list[str]:
    """Words of an expectation that nobody here judges."""
    return sorted(
        {*expected, *expected.get(EACH, {}), *expected.get("or", {})} - set(EXPECTATIONS) - {EACH, *SHOWN_ELSEWHERE}
    )
