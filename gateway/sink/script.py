r"""The small language in which a rude smarthost is described, and its reader. Examples: fixtures/smarthost/*.txt.

A script is lines of text. Empty lines and lines that begin with `#` say nothing; every other line is

    STAGE [WHICH ...] ACT [ACT ...]

and changes what the server does at that stage; the first line that fits is taken, and where none fits the server is
well behaved: it keeps the order of commands (a second MAIL without RSET is a 503), takes each mail, and closes after a
421.

STAGE is one of
    BANNER     a client has connected              MAIL, RCPT, DATA, RSET, QUIT   the command has come
    EHLO       EHLO or HELO has come               BODY    the first bytes of a body have come; a reply here is unasked
    STARTTLS   the command has come; 220 upgrades  DOT     the body is whole
    AUTH       the command has come                IDLE n  no command has come for n seconds

WHICH narrows it down:
    2          the second time in this connection; `2+` from the second on; `*` always
    <address>  for this sender (MAIL) or recipient (RCPT, DATA, BODY, DOT: one of the recipients taken)
    ONCE       once in the life of the server
    NEW        when the stage sees this address for the first time in the life of the server (greylisting)
    UNTIL n    for n seconds after the line was first looked at

ACTs happen one after the other; the ordinary reply follows where none of them said anything or ended the line:
    "250 ok"         a reply, written as a JSON string; CRLF is added where it is missing; it may hold several lines
    DELAY n          nothing for n seconds
    HANG             nothing for ever, though the line is still read; `HANG n` for n seconds, then DROP
    DROP, RESET      ends the connection, in order or by a TCP reset
    HALF "250 ok"    the first half of a reply, and no end of line
    RAW "25"         these characters, and no more
    DRIP n "250 ok"  byte by byte with n seconds between
    EARLY "250 ok"   already in the packet of the reply before; at its own stage then nothing (after EHLO to DOT)
    WAIT             stops reading, and goes on when the test calls `go()`
    LOSE             at DOT: the mail is not kept. Else a mail counts as taken unless a reply of 4yz or 5yz refused it,
                     so `DOT DROP` is the server that takes the mail and never says so

`SESSION 2` on a line of its own makes the lines below it hold for the second connection only, `SESSION 2+` from the
second on, `SESSION *` for all, as at the top.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

STAGES = frozenset(
    {"BANNER", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "BODY", "DOT", "RSET", "QUIT", "IDLE"}
)
PLAIN = frozenset({"DROP", "RESET", "WAIT", "LOSE"})
"""Acts that take nothing."""
TIMED = frozenset({"DELAY", "DRIP"})
"""Acts that take seconds."""
SPOKEN = frozenset({"HALF", "RAW", "DRIP", "EARLY"})
"""Acts that take a text."""
TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|<[^>\s]*>|[^\s"]+)')
SECONDS = re.compile(r"\+?(\d+(?:\.\d+)?)s?")
SPAN = re.compile(r"(\*)|(\d+)(\+?)")


@dataclass(frozen=True, slots=True)
class Span:
    """The first and the last number that fit, both counted from 1; `last` 0 means no end."""

    first: int = 1
    last: int = 0

    def holds(self, number: int) -> bool:
        """Whether the number fits."""
        return self.first <= number and (not self.last or number <= self.last)


@dataclass(frozen=True, slots=True)
class Act:
    """One thing to do: `word` is SAY for a plain reply, else as in the script; `data` is what to write."""

    word: str
    data: bytes = b""
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a script."""

    stage: str
    acts: tuple[Act, ...]
    sessions: Span = Span()
    times: Span = Span()
    address: str = ""
    once: bool = False
    new: bool = False
    until: float | None = None
    idle: float = 0.0

    def early(self) -> bytes:
        """Returns what is said before this stage is reached."""
        return b"".join(act.data for act in self.acts if act.word == "EARLY")


@dataclass(frozen=True, slots=True)
class Script:
    """The lines of a script in their order."""

    rules: tuple[Rule, ...] = ()

    @staticmethod
    def load(path: Path) -> "Script":
        """Reads a file; raises OSError, and ValueError as `parse` does."""
        return Script.parse(path.read_text(encoding="utf-8"))

    @staticmethod
    def parse(text: str) -> "Script":
        """Reads the language above; raises ValueError that names the line."""
        rules: list[Rule] = []
        sessions = Span()
        for number, line in enumerate(text.splitlines(), 1):
            words = _words(line, number)
            if not words:
                continue
            try:
                if words[0] == "SESSION":
                    (sessions,) = (_span(word) for word in words[1:])
                else:
                    rules.append(_rule(words, sessions))
            except (ValueError, StopIteration) as error:
                why = str(error) or "something is missing at its end"
                raise ValueError(f"line {number} of the script: {why}: {line.strip()}") from None
        return Script(tuple(rules))


def _words(line: str, number: int) -> list[str]:
    line = line.strip()
    if not line or line.startswith("#"):
        return []
    words = TOKEN.findall(line)
    if TOKEN.sub("", line).strip():
        raise ValueError(f"line {number} of the script: a quotation mark is missing: {line}")
    return words


def _span(word: str) -> Span:
    match = SPAN.fullmatch(word)
    if not match:
        raise ValueError(f"{word!r} is no number")
    if match[1]:
        return Span()
    first = int(match[2])
    return Span(first, 0 if match[3] else first)


def _seconds(word: str) -> float:
    match = SECONDS.fullmatch(word)
    if not match:
        raise ValueError(f"{word!r} is no number of seconds")
    return float(match[1])


def _text(word: str) -> bytes:
    if not word.startswith('"'):
        raise ValueError(f"{word!r} should be a text in quotation marks")
    text = json.loads(word)
    return str(text).encode()


def _reply(word: str) -> bytes:
    data = _text(word)
    return data if data.endswith(b"\n") else data + b"\r\n"


def _rule(words: list[str], sessions: Span) -> Rule:
    stage, *rest = words
    if stage not in STAGES:
        raise ValueError(f"{stage!r} is no stage")
    idle = 0.0
    if stage == "IDLE":
        idle, rest = _seconds(rest[0] if rest else ""), rest[1:]
    tokens = iter(rest)
    acts: list[Act] = []
    times, address, once, new, until = Span(), "", False, False, None
    for word in tokens:
        if word == "UNTIL":
            until = _seconds(next(tokens))
        elif word in {"ONCE", "NEW"}:
            once, new = once or word == "ONCE", new or word == "NEW"
        elif word.startswith("<"):
            address = word[1:-1]
        elif SECONDS.fullmatch(word) and acts and acts[-1] == Act("HANG"):
            acts[-1] = Act("HANG", seconds=_seconds(word))
        elif SPAN.fullmatch(word):
            times = _span(word)
        else:
            acts.append(_act(word, tokens))
    if not acts:
        raise ValueError("it does not say what to do")
    return Rule(stage, tuple(acts), sessions, times, address.casefold(), once, new, until, idle)


def _act(word: str, tokens: Iterator[str]) -> Act:
    if word.startswith('"'):
        return Act("SAY", _reply(word))
    if word in PLAIN or word == "HANG":
        return Act(word)
    if word not in TIMED | SPOKEN:
        raise ValueError(f"{word!r} is nothing that can be done")
    seconds = _seconds(next(tokens)) if word in TIMED else None
    if word not in SPOKEN:
        return Act(word, seconds=seconds)
    data = _text(next(tokens)) if word == "RAW" else _reply(next(tokens))
    return Act(word, data[: len(data) // 2] if word == "HALF" else data, seconds)
