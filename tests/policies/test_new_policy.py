"""Whoever adds a policy writes its file, its test, its scenarios and one line of the table, and nothing else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEIGHBOUR = '    Row("cooldown", "Cooldown", overridable=True),\n'

POLICY = '''
"""No mail on Sundays (UTC)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gateway.core.facts import Answers, Ask
from gateway.core.judge import ALWAYS
from gateway.core.mail import Moment, Submission
from gateway.core.verdict import DEFER, Finding, Reason

REST_DAY = Reason("rest_day", DEFER, "7.1", "no mail on Sundays", "wait until retryAt", strict=429)
REASONS = (REST_DAY,)


@dataclass(frozen=True, slots=True)
class RestDay:
    """Lets mail wait until Monday."""

    when: ClassVar[frozenset[Moment]] = ALWAYS

    def asks(self, mail: Submission) -> tuple[Ask[object], ...]:
        """Need no facts: the time is always known."""
        return ()

    def judge(self, mail: Submission, facts: Answers) -> Iterator[Finding]:
        """Look at the day of the week."""
        if facts.now.isoweekday() == 7:
            midnight = facts.now.replace(hour=0, minute=0, second=0, microsecond=0)
            yield REST_DAY.about(until=midnight + timedelta(days=1))
'''

TEST = '''
"""Sundays."""

from datetime import UTC, datetime

from policies.rest_day import REST_DAY, RestDay
from tests.builders import NOW, a_mail, found


def test_on_sunday_mail_waits_until_monday() -> None:
    (finding,) = found(RestDay(), a_mail(), now=datetime(2026, 3, 8, 9, tzinfo=UTC))

    assert finding.reason is REST_DAY
    assert finding.until == datetime(2026, 3, 9, tzinfo=UTC)


def test_on_any_other_day_it_goes() -> None:
    assert found(RestDay(), a_mail(), now=NOW) == ()
'''

SCENARIOS = """
[[scenario]]
name = "on Wednesday"
expect = "pass"

[[scenario]]
name = "on Sunday"
now = 2026-03-08T09:00:00Z
expect = [{ reason = "rest_day", until = "in 15 hours" }]
reply = "450 4.7.1"
"""


def a_copy(where: Path) -> None:
    """What the scenarios and the policies' tests need of the house; the gateway itself is used as it is."""
    shutil.copytree(ROOT / "policies", where / "policies", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "fixtures" / "scenarios", where / "fixtures" / "scenarios")
    (where / "tests" / "policies").mkdir(parents=True)
    for name in ("__init__.py", "builders.py", "scenario_words.py", "test_scenarios.py", "policies/__init__.py"):
        shutil.copy(ROOT / "tests" / name, where / "tests" / name)
    (where / "gateway").symlink_to(ROOT / "gateway", target_is_directory=True)


def test_one_file_one_test_one_scenario_file_and_one_line(tmp_path: Path) -> None:
    a_copy(tmp_path)
    (tmp_path / "policies" / "rest_day.py").write_text(POLICY)
    (tmp_path / "tests" / "policies" / "test_rest_day.py").write_text(TEST)
    (tmp_path / "fixtures" / "scenarios" / "rest_day.toml").write_text(SCENARIOS)
    table = tmp_path / "policies" / "__init__.py"
    assert table.read_text().count(NEIGHBOUR) == 1
    table.write_text(table.read_text().replace(NEIGHBOUR, f'{NEIGHBOUR}    Row("rest_day", "RestDay"),\n'))

    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "tests"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    again = [*command[:-1], "tests/test_scenarios.py", "--collect-only"]
    listed = subprocess.run(
        again,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "rest_day: on Sunday" in listed.stdout
