"""Golden scenarios: each file of `fixtures/scenarios` drives the real table of policies through the judge.

A scenario says what is given (in the words of scenario_words), which mail comes, and what the file's policy finds: a
list of findings, `pass`, or `not asked`.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from gateway.core.judge import brief, judge
from gateway.core.verdict import Decision
from policies import TABLE, rules
from tests.builders import NOW
from tests.scenario_words import facts_from, mail_from, plain

FOLDER = Path(__file__).parent.parent / "fixtures" / "scenarios"
KNOWN = {"name", "now", "options", "given", "mail", "expect", "reply"}


@dataclass(frozen=True, slots=True)
class Scenario:
    """One case of one file."""

    policy: str
    words: dict[str, Any]

    @property
    def now(self) -> datetime:
        time: datetime = self.words.get("now", NOW)
        return time

    def decided(self) -> Decision:
        """What the real table makes of the mail."""
        table = rules({self.policy: self.words.get("options", {})})
        case = brief(mail_from(self.words.get("mail", {}), self.now), table)
        return judge(case, table, facts_from(self.words.get("given", []), case.questions, self.now))


def scenarios() -> Iterator[Scenario]:
    for path in sorted(FOLDER.glob("*.toml")):
        for words in tomllib.loads(path.read_text())["scenario"]:
            yield Scenario(path.stem, words)


@pytest.mark.parametrize(
    "scenario", list(scenarios()), ids=lambda scenario: f"{scenario.policy}: {scenario.words['name']}"
)
def test_the_policy_finds_what_its_scenario_says(scenario: Scenario) -> None:
    decision = scenario.decided()

    mine = [plain(f, scenario.now) for f in decision.findings if f.policy == scenario.policy]
    outcome: object = "not asked" if scenario.policy not in decision.rules else mine or "pass"
    assert outcome == scenario.words["expect"]
    if "reply" in scenario.words:
        assert decision.reason is not None
        assert f"{decision.reason.code} {decision.reason.enhanced}" == scenario.words["reply"]
    assert set(scenario.words) <= KNOWN


@pytest.mark.parametrize("name", [row.name for row in TABLE])
def test_every_reason_of_a_policy_has_a_scenario(name: str) -> None:
    (row,) = (row for row in TABLE if row.name == name)
    mine = [scenario.words["expect"] for scenario in scenarios() if scenario.policy == name]

    found = {finding["reason"] for expect in mine if isinstance(expect, list) for finding in expect}

    assert found == {reason.slug for reason in row.module.REASONS}
    assert "pass" in mine


def test_the_names_of_scenarios_differ() -> None:
    names = [(scenario.policy, scenario.words["name"]) for scenario in scenarios()]

    assert len(names) == len(set(names))
