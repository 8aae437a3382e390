"""Prints what came of every case: `python -m tests.cases [ID ...]`, on SQLite, and on PostgreSQL with `--postgres`."""

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.cases.book import index
from tests.cases.run import left_out, on_its_own
from tests.databases import Databases, SqliteFiles, start_postgres


def main(words: list[str]) -> int:
    """Play the cases that are named, or all; returns 1 where one failed."""
    wanted = {word.upper() for word in words if not word.startswith("-")}
    failed = 0
    with ExitStack() as stack:
        databases: Databases
        if "--postgres" in words:
            databases = stack.enter_context(start_postgres())
        else:
            databases = SqliteFiles(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        for case in index():
            if wanted and case.id not in wanted:
                continue
            if why := left_out(case):
                _line(case.id, case.kind, "left out", why)
                continue
            result = on_its_own(case, databases)
            failed += not result.passed
            remark = "; ".join([*result.faults, *result.notes]) or case.fault
            _line(case.id, case.kind, "pass" if result.passed else "FAIL", remark)
    return 1 if failed else 0


def _line(*words: str) -> None:
    case, kind, result, remark = words
    sys.stdout.write(f"{case:<5}{kind:<15}{result:<10}{remark}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
