"""What an answer must look like: values as they are, kinds where only the look is settled, and the gap between two times.

It compares and shows; it asks nobody.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Kind:
    """A text that looks like this; `shown` stands for it on the page."""

    shown: str
    pattern: str

    def fits(self, value: object, _: Mapping[str, Any]) -> bool:
        """Whether a value is one of the kind."""
        return isinstance(value, str) and re.fullmatch(self.pattern, value) is not None


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from 1."""

    shown: str = "number"

    @staticmethod
    def fits(value: object, _: Mapping[str, Any]) -> bool:
        """Whether a value is one."""
        return type(value) is int and value >= 1


@dataclass(frozen=True, slots=True)
class After:
    """A time so many minutes after the one in a member beside it."""

    minutes: float
    member: str = "createdAt"

    @property
    def shown(self) -> str:
        """As it stands on the page."""
        return f"{self.member} + {self.minutes:g} min"

    def fits(self, value: object, around: Mapping[str, Any]) -> bool:
        """Whether a value is that time, but for less than a second."""
        begun = around.get(self.member)
        if not (TIME.fits(value, around) and TIME.fits(begun, around)):
            return False
        gap = datetime.fromisoformat(str(value)) - datetime.fromisoformat(str(begun))
        return abs(gap.total_seconds() - self.minutes * 60) < 1


Kinds = Kind | Whole | After
AGENT = Kind("agent_...", r"agent_.{12}")
UUID = Kind("uuid", r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIME = Kind("time", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
TEXT = Kind("text", r"(?s).+")
TOKEN = Whole()


def faults(shown: Any, seen: Any, *, ours: tuple[str, ...] = (), part: bool = False, at: str = "") -> Iterator[str]:  # noqa: ANN401
    """What is not as shown. Members that are not shown are faults, but for `ours` (dotted names), or all where `part`."""
    if isinstance(shown, Mapping):
        yield from _members(shown, seen, ours, part=part, at=at)
    elif isinstance(shown, list):
        if not isinstance(seen, list) or len(seen) != len(shown):
            yield f"{at or 'it'} is {seen!r}, not a list of {len(shown)}"
            return
        for one, other in zip(shown, seen, strict=True):
            yield from faults(one, other, ours=ours, part=part, at=at)
    elif isinstance(shown, Kinds):
        if not shown.fits(seen, {}):
            yield f"{at or 'it'} is {seen!r}, not {shown.shown}"
    elif type(shown) is not type(seen) or shown != seen:
        yield f"{at or 'it'} is {seen!r}, not {shown!r}"


def _members(shown: Mapping[str, Any], seen: Any, ours: tuple[str, ...], *, part: bool, at: str) -> Iterator[str]:  # noqa: ANN401
    if not isinstance(seen, dict):
        yield f"{at or 'it'} is {seen!r}, not an object"
        return
    for name, one in shown.items():
        place = f"{at}.{name}" if at else name
        if name not in seen:
            yield f"{place} is missing"
        elif isinstance(one, After):
            if not one.fits(seen[name], seen):
                yield f"{place} is {seen[name]!r}, not {one.shown}"
        else:
            yield from faults(one, seen[name], ours=ours, part=part, at=place)
    known = {name.removeprefix(f"{at}." if at else "") for name in ours}
    if not part and (more := sorted(set(seen) - set(shown) - known)):
        yield f"{at or 'it'} has {more} beside what is documented"


def written(shown: Any) -> str:  # noqa: ANN401 - JSON with kinds in it
    """A shape as JSON, with the kinds in their own words."""

    def plain(one: Any) -> Any:  # noqa: ANN401 - the same
        if isinstance(one, Mapping):
            return {name: plain(value) for name, value in one.items()}
        if isinstance(one, list):
            return [plain(value) for value in one]
        return f"\0{one.shown}\0" if isinstance(one, Kinds) else one

    return re.sub(r'"\\u0000(.*?)\\u0000"', r"\1", json.dumps(plain(shown), ensure_ascii=True))
