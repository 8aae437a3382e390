"""What has found a fault: checks of the history and assertions of a race, by name; and what is no finding at all.

A fault that makes a gateway answer with an error, or write an exception into its log, shows nothing of the races: it only
fits the gateway no longer. `trouble` says so, for faults and without any.
"""

import queue
import traceback
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from tests.faults.stage import Stage
from tests.history import Violation
from tests.servers import Served

BAD = {"error", "critical"}
OK = 200


@dataclass(frozen=True, slots=True)
class Finding:
    """When something was found: by which assertion ("" for none), by which checks, and in what words."""

    when: str
    assertion: str
    checks: frozenset[str]
    words: str

    def is_by(self, finders: Collection[str]) -> bool:
        """Whether one of these has found it: names of checks, and words of assertions; an assertion has to be one of them.

        That other checks have found it as well is no harm: a fault may break more promises than one.
        """
        asserted = any(words in self.assertion for words in finders)
        return asserted if self.assertion else not self.checks.isdisjoint(finders)

    def __str__(self) -> str:
        """In one line."""
        by = [*([self.assertion] if self.assertion else []), *sorted(self.checks)]
        return f"{self.when} by {by}: {self.words}"


def finding(when: str, error: Exception | None, violations: Sequence[Violation]) -> Finding | None:
    """What was found by an assertion that failed and by checks; None where nothing was."""
    if error is None and not violations:
        return None
    words = str(violations[0] if error is None else error)
    return Finding(when, assertion(error) if error else "", frozenset(one.check for one in violations), words)


def assertion(error: Exception) -> str:
    """The line that failed, with the function in which it stands."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.name}: {last.line}"


def is_caught(stage: Stage, name: str, found: Finding | None, by: Collection[str]) -> bool:
    """Whether a fault was found by one of these, and without any error; says by what it was."""
    errors = trouble(stage)
    print(f"{name}: {found}", *errors, sep="\n  but: ")  # noqa: T201 - the numbers of a run
    return found is not None and found.is_by(by) and not errors


def trouble(stage: Stage) -> list[str]:
    """Answers with another status than 200, and what gateways have logged as an error; to be asked when they have ended."""
    answers = [f"{call.act} was answered {call.status}" for call in stage.calls if call.status not in (None, OK)]
    return answers + [str(line) for served in stage.gateways for line in _log(served) if _is_bad(line)]


def _log(served: Served) -> list[dict[str, Any]]:
    """All lines of a log, those included for which nobody has waited."""
    while True:
        try:
            served.lines.append(served._news.get_nowait())
        except queue.Empty:
            return served.lines


def _is_bad(line: dict[str, Any]) -> bool:
    return line.get("level") in BAD or "exception" in line or line["event"] == "TEXT"
