"""Sets the clock of this process wrong, wherever Python code asks what time it is: `datetime.now`, `time.time`, all of them.

Who has imported `datetime` before meets it too, and nobody meets another class: its methods are replaced in the class
itself. Monotonic and boot-time clocks go on as they are, and with them every loop and time-out; so does C code that asks
the system, such as SQLite and the check of a certificate.
"""

import ctypes
import gc
import time
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from typing import Any

ORDINARY = {"gmtime": 0, "localtime": 0, "ctime": 0, "asctime": 0, "strftime": 1}
"""Functions that take the time as it is where they are given none: with how many arguments they are given none."""

KEPT: list[object] = []
"""The methods as they were: the interpreter remembers where it has found them, and owns nothing by that."""


def set_wrong(seconds: float) -> None:
    """Be ahead by so many seconds from now on, or behind. Raises RuntimeError where this Python cannot be deceived."""
    true = datetime.now(UTC).timestamp()
    _deceive_time(seconds)
    _deceive_datetime()
    if abs(datetime.now(UTC).timestamp() - true - seconds) > abs(seconds) / 2:
        raise RuntimeError("datetime.now tells the time as it was")


def _deceive_time(seconds: float) -> None:
    clock, clock_ns, ahead_ns = time.clock_gettime, time.clock_gettime_ns, round(seconds * 1_000_000_000)

    def wrong(which: int) -> float:
        return clock(which) + (seconds if which == time.CLOCK_REALTIME else 0)

    def wrong_ns(which: int) -> int:
        return clock_ns(which) + (ahead_ns if which == time.CLOCK_REALTIME else 0)

    new: dict[str, Callable[..., Any]] = {
        "clock_gettime": wrong,
        "clock_gettime_ns": wrong_ns,
        "time": lambda: wrong(time.CLOCK_REALTIME),
        "time_ns": lambda: wrong_ns(time.CLOCK_REALTIME),
    }
    for name in ORDINARY:
        new[name] = _given_the_time(name)
    for name, function in new.items():
        setattr(time, name, function)


def _given_the_time(name: str) -> Callable[..., Any]:
    old, few, broken_down = getattr(time, name), ORDINARY[name], name in ("asctime", "strftime")

    def function(*given: Any) -> Any:  # noqa: ANN401  (as the one it stands for)
        if len(given) > few:
            return old(*given)
        return old(*given, time.localtime() if broken_down else time.time())

    return function


def _deceive_datetime() -> None:
    def now(cls: type[datetime], tz: tzinfo | None = None) -> datetime:
        return cls.fromtimestamp(time.time(), tz)

    def utcnow(cls: type[datetime]) -> datetime:
        return cls.fromtimestamp(time.time(), UTC).replace(tzinfo=None)

    (methods,) = gc.get_referents(datetime.__dict__)  # what the class shows of itself is a view that cannot be written
    KEPT.append(dict(methods))
    methods |= {"now": classmethod(now), "utcnow": classmethod(utcnow)}
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime))
