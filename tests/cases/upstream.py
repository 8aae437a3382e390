"""Turns the smarthost of a case (`.smtp`, kind smtp-upstream) into the sink's own language, and reads its head.

Each recipient gets a transaction of its own here, so what a case says of the n-th RCPT is said of the n-th recipient. A
rest of many seconds between two commands is played as a short one: what counts is that the smarthost has had enough.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.sink import Script

REST = 0.3
"""Seconds of an idle time that stand for all."""
STAGE = re.compile(r"(BANNER|EHLO|STARTTLS|AUTH|MAIL|RCPT|DATA|DOT|RSET|QUIT)\b(?: +(\d+\+?|\*)(?= ))?(.*)")
VARIANT = re.compile(r"V (\S+) (.+) EXPECT (.+)")
IDLE = re.compile(r'IDLE (\d+) THEN SEND (".*") AND CLOSE')
FIXED = {"ACCEPT TCP, SEND NOTHING": "BANNER HANG", "REFUSE TCP": "BANNER RESET"}


@dataclass(frozen=True, slots=True)
class Variant:
    """One of several replies to try, and what is expected of it, in words."""

    name: str = ""
    line: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Upstream:
    """A case's smarthost: what makes mail, the lines of its script, how the clock moves, what is asked afterwards."""

    head: dict[str, str]
    lines: tuple[str, ...]
    variants: tuple[Variant, ...] = (Variant(),)
    triggers: tuple[dict[str, Any], ...] = field(default=())

    @property
    def recipients(self) -> list[str]:
        """All recipients of the first mail, in order."""
        body = self.triggers[0]["json"]
        return [address for role in ("to", "cc", "bcc") for address in body.get(role, [])]

    def script(self, variant: Variant) -> str:
        """The sink's script."""
        lines = [line for one in (*self.lines, variant.line) for line in _translated(one, self.recipients) if line]
        once = any(line.startswith("KEEP OPEN") for line in self.lines)
        return "\n".join(_once(line) if once else line for line in lines) + "\n"

    @property
    def login(self) -> str:
        """User and password for the smarthost's URL."""
        return ":".join(self.head.get("credentials", "").split())

    @property
    def tls(self) -> bool:
        """Whether the smarthost offers TLS."""
        return "require-tls" in self.head or any(line.startswith("STARTTLS") for line in self.lines)

    def clock(self) -> tuple[float, float]:
        """By how much the clock moves in all, and in which steps (seconds)."""
        said = self.head.get("advance-clock", "")
        times = [_seconds(*found) for found in re.findall(r"(\d+) ?([smhd])", said)]
        if "steps" in said:
            return times[1], times[0]
        return (times[0], max(60.0, times[0] / 24)) if times else (0.0, 0.0)


def _seconds(number: str, unit: str) -> float:
    return float(number) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[unit]


def read(text: str) -> Upstream:
    """Reads a file of this kind."""
    top, _, rest = text.partition("\n---")
    head = dict(re.split(r": ?", line, maxsplit=1) for line in top.splitlines() if ":" in line)
    lines = [line.strip() for line in rest.splitlines() if line.strip()]
    given = json.loads(head["trigger"])
    triggers = tuple(given if isinstance(given, list) else [given])
    several = filter(None, map(VARIANT.fullmatch, lines))
    variants = tuple(Variant(found[1], found[2], tuple(found[3].split())) for found in several)
    plain = tuple(line for line in lines if line != "VARIANTS" and not VARIANT.fullmatch(line))
    return Upstream(head, plain, variants or (Variant(),), triggers)


def _translated(line: str, recipients: Sequence[str]) -> list[str]:
    if line in FIXED:
        return [FIXED[line]]
    if found := IDLE.fullmatch(line):
        return [f"IDLE {REST} {found[2]}"]
    if not line or line.startswith(("SESSION", "KEEP OPEN", "#")):
        return [line if line.startswith("SESSION") else ""]
    found = STAGE.fullmatch(line)
    if found is None:
        raise ValueError(f"{line!r} is not known to the driver")
    stage, which, act = found[1], found[2] or "", found[3].strip()
    again = STAGE.fullmatch(act)  # `DOT DOT HANG 600`, `RCPT * RCPT * UNTIL ...`: the name, then the whole line
    if again is not None and again[1] == stage:
        which, act = again[2] or which, again[3].strip()
    act = act.partition(" THEN ")[0]
    if stage != "RCPT" or not which.rstrip("+").isdigit():
        return [f"{stage} {act}"]
    first = int(which.rstrip("+")) - 1
    named = recipients[first:] if which.endswith("+") else recipients[first : first + 1]
    return [f"RCPT <{address}> {act}" for address in named]


def _once(line: str) -> str:
    """A smarthost that says no to a command once, and remembers what came before it."""
    return re.sub(r'^(DATA|RCPT|MAIL|DOT)( <[^>]*>)? (?="[45])', r"\1\2 ONCE ", line)


def checked(script: str) -> str:
    """A script that the sink can read. Raises ValueError."""
    Script.parse(script)
    return script
