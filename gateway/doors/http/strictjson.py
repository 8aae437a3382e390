"""JSON as RFC 8259 and 7493 have it, and nothing that readers would read differently.

Refused: other encodings than UTF-8, a name twice in an object, NaN and infinity, numbers that no program can hold,
nesting without end, surrogates that stand alone.
"""

import json
import math
import re
from typing import Any

from gateway.doors.refusal import Faults, Refusal

DEPTH_MAX = 32
MEMBERS_MAX = 10_000
"""Members of one object."""
DIGITS_MAX = 20

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_ALONE = re.compile("[\ud800-\udfff]")


class _NotStrictError(ValueError):
    """Valid for some reader of JSON, and refused."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MEMBERS_MAX:
        raise _NotStrictError(f"an object has more than {MEMBERS_MAX} members")
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _NotStrictError("a name stands twice in an object")
    return members


def _integer(text: str) -> int:
    if len(text) > DIGITS_MAX:
        raise _NotStrictError("a number is too large")
    return int(text)


def _real(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _NotStrictError("a number is too large")
    return number


def _constant(_: str) -> float:
    raise _NotStrictError("NaN and Infinity are no numbers")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_real, parse_constant=_constant)


def loads(data: bytes) -> Any:  # noqa: ANN401  (JSON)
    """The value that a body holds. Raises Refusal `invalid_json` (400), Faults for surrogates that stand alone."""
    try:
        text = data.decode()
        value = _DECODER.decode(text)
    except UnicodeDecodeError:
        raise _refusal("the body is not UTF-8") from None
    except _NotStrictError as error:
        raise _refusal(str(error)) from None
    except RecursionError:
        raise _refusal("the body is nested too deeply") from None
    except ValueError:
        raise _refusal("the body is not JSON") from None
    if text.count("{") + text.count("[") > DEPTH_MAX and _deeper(value):
        raise _refusal("the body is nested too deeply")
    if _SURROGATE.search(text):
        _refuse_lone_surrogates(value)
    return value


def _refusal(why: str) -> Refusal:
    return Refusal(400, "invalid_json", why)


def _inside(value: object) -> list[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


def _deeper(value: object) -> bool:
    """Whether a value is nested deeper than DEPTH_MAX; level by level, so that depth itself costs no stack."""
    level = [value]
    for _ in range(DEPTH_MAX):
        level = [inner for one in level if isinstance(one, dict | list) for _, inner in _inside(one)]
    return any(isinstance(one, dict | list) for one in level)


def _refuse_lone_surrogates(value: object) -> None:
    found: list[tuple[str, str]] = []
    todo: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while todo:
        place, one = todo.pop()
        if isinstance(one, str) and _ALONE.search(one):
            found.append((path(place), "lone surrogates are not allowed"))
        for name, inner in _inside(one):
            if isinstance(name, str) and _ALONE.search(name):
                found.append((path((*place, name)), "lone surrogates are not allowed"))
            todo.append(((*place, name), inner))
    if found:
        raise Faults(sorted(found))


def path(place: tuple[str | int, ...]) -> str:
    """Where in a body something stands, like `attachments[0].contentType`; names that are not plain become `?`."""
    words = ""
    for part in place:
        if isinstance(part, int):
            words += f"[{part}]"
        else:
            plain = part if part.isascii() and part.isprintable() and 0 < len(part) <= 128 else "?"  # noqa: PLR2004
            words += f".{plain}" if words else plain
    return words or "body"
