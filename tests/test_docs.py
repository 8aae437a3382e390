"""README.md and docs/ say what is so: their tables, commands, settings, links and examples are tried against the code."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.app import rules_of
from gateway.cli.demo.stage import stage
from gateway.core.delivery import State
from gateway.settings import NOT_SETTINGS, Settings, given
from policies import TABLE, reasons
from tests import docs, docs_cli, docs_http
from tests.test_house import ALLOWED

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
README_PROSE = 300
"""Lines of README.md beside those that are made from the code."""

RENEW = "run `python -m tests.docs --write`, and read what it has changed"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    """The code blocks of a page in this language; "" for those without one."""
    return [text for kind, text in FENCE.findall(page(name)) if kind == language]


def test_every_promise_points_to_a_test_that_is_there() -> None:
    chapter = page("README.md").partition("## What is promised, and how it is tested")[2].partition("\n## ")[0]
    promises = chapter.split("\n\nReal processes")[0].split("\n- ")[1:]

    named = [re.findall(r"`(tests/\w+/test_\w+\.py)(?:::(\w+))?`", promise) for promise in promises]

    assert len(named) > 5
    assert all(named)
    assert [found for pairs in named for found in pairs if f"def {found[1]}" not in page(found[0])] == []


# --- what is made from the code ---------------------------------------------------------------------------------------


def test_no_table_has_fallen_behind_the_code() -> None:
    assert list(docs.behind()) == [], RENEW


def test_a_place_that_is_missing_is_an_error() -> None:
    with pytest.raises(ValueError, match="not one place for settings"):
        docs.renewed("no markers", "settings", "| a |")


def test_every_setting_every_reason_and_every_policy_is_described() -> None:
    readme, operations = page("README.md"), page("docs/operations.md")

    assert [name for name in Settings.model_fields if f"| `{name.upper()}` |" not in readme] == []
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []
    assert [one.slug for one in reasons() if f"| `{one.slug}` |" not in readme] == []
    assert [row.name for row in TABLE if f"| `{row.name}` |" not in operations] == []


def test_every_state_is_described_and_drawn() -> None:
    states = page("docs/states.md")

    assert [state for state in State if f"\n| `{state}` | `" not in states] == []
    assert [state for state in State if not re.search(rf"--> {state}\b", states)] == []


def test_every_command_and_every_option_is_described() -> None:
    cli = page("docs/cli.md")

    for name, command in docs_cli.leaves():
        chapter = cli.partition(f"### `{name}`\n")[2].partition("\n### ")[0]

        assert command.help, name
        assert [one.name for one in docs_cli.options_of(command) if not one.help] == [], name
        words = [one.opts[0] for one in docs_cli.options_of(command) if one.param_type_name == "option"]
        assert [word for word in words if f"`{word}" not in chapter] == [], name


def test_an_option_that_means_something_else_than_its_namesakes_is_described_with_its_command() -> None:
    shared, _, commands = page("docs/cli.md").partition("## Commands\n")
    config, added, other = (
        commands.partition(f"### `gateway {name}`\n")[2].partition("\n### ")[0]
        for name in ("agents update-config", "profiles add", "init")
    )

    assert "| `--config FILE` |  | TOML file" in shared
    assert "| `--config JSON` | (needed) | A JSON object" in config
    assert not re.search("^Also .*`--config`", config, re.MULTILINE)
    assert "| `--key KEY` |  | The API key (gk_live_...); without it, the first line of stdin." in added
    assert re.search("^Also .*`--config`", other, re.MULTILINE)


def test_every_route_and_every_member_is_described() -> None:
    http = page("docs/http.md")
    schemas: dict[str, Any] = docs_http.application().openapi()["components"]["schemas"]

    for method, path, operation in docs_http.described():
        assert f"### `{method} {path}`\n" in http
        assert operation.get("description"), path
    assert not re.search(r"\| +\|$", http, re.MULTILINE), "a member or an error without a word; see tests/docs_http.py"
    assert [name for name in schemas if f"### {name}\n" not in http] == []


def test_every_error_that_the_door_can_give_has_its_sentence() -> None:
    slugs = {slug for _, slug, _ in docs_http.refusals()}

    assert {"unauthorized", "invalid_request", "not_found", "store_unavailable"} <= slugs
    assert [slug for slug in slugs if f"| `{slug}` |" not in page("docs/http.md")] == []


# --- what is written by hand ------------------------------------------------------------------------------------------


def test_the_readme_has_its_two_commands_where_the_check_looks_for_them() -> None:
    lines = page("README.md").splitlines()
    check = (ROOT / ".ci" / "run").read_text(encoding="utf-8")

    for start in ("python3 -m venv .venv && ", ".venv/bin/pip install -c constraints.txt -e '.[test]' && "):
        assert len([line for line in lines if line.startswith(start)]) == 1
        assert start in check


def test_the_readme_can_be_read_in_a_few_minutes() -> None:
    made = sum(len(docs.PARTS["README.md", name]().splitlines()) for path, name in docs.PARTS if path == "README.md")

    assert len(page("README.md").splitlines()) - made <= README_PROSE


def slug(heading: str) -> str:
    """The anchor that a heading gets on the usual forges."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page(name)):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (ROOT / name).parent / path if path else ROOT / name

        assert linked.exists(), target
        headings = re.findall(r"^#+ (.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE) if anchor else []
        assert not anchor or anchor in map(slug, headings), target


@pytest.mark.parametrize("name", PAGES)
def test_every_file_that_is_named_is_there(name: str) -> None:
    named = set(re.findall(r"`((?:gateway|policies|tests|docs|fixtures)/[\w/.-]+)`", page(name)))
    example = {path for path in named if "quiet_hours" in path}

    assert [path for path in sorted(named - example) if not (ROOT / path).exists()] == []


def spoken(name: str) -> Iterator[list[str]]:
    """Every call of our command on a page, as words; in blocks, and in the text between back-ticks."""
    code = [line for text in blocks(name, "") for line in text.replace("\\\n", " ").splitlines()]
    code += re.findall(r"`(gateway [^`\n]+)`", FENCE.sub("", page(name)))
    for line in code:
        for call in re.findall(r"(?:^|&& |\$\(|[A-Z_]+=\S+ )(?:\.venv/bin/)?gateway ((?:'[^']*'|[^|&()])*)", line):
            yield [word for word in shlex.split(call) if not re.match(r"\d?>", word)]


@pytest.mark.parametrize("name", PAGES)
def test_every_call_of_our_command_is_one_that_it_knows(name: str) -> None:
    known = {" ".join(path.split()[1:]): command for path, command in docs_cli.leaves()}

    for words in spoken(name):
        leaf = next((path for n in (3, 2, 1) if (path := " ".join(words[:n])) in known), None)
        assert leaf is not None, words
        options = {word for one in docs_cli.options_of(known[leaf]) for word in one.opts}
        assert {word for word in words if word.startswith("--")} <= options, words


def test_calls_are_found_where_they_stand() -> None:
    assert ["demo"] in list(spoken("README.md"))
    assert ["keys", "create", "--label", "outreach", "--agent", "outreach-agent"] in list(spoken("README.md"))
    assert len(list(spoken("docs/operations.md"))) > 5


@pytest.mark.parametrize("name", PAGES)
def test_every_variable_that_is_named_exists(name: str) -> None:
    known = {f"GATEWAY_{setting.upper()}" for setting in Settings.model_fields} | NOT_SETTINGS

    assert set(re.findall(r"\bGATEWAY_[A-Z_]+\b", page(name))) <= known


@pytest.mark.parametrize("name", PAGES)
def test_every_settings_file_that_is_shown_can_be_read(name: str) -> None:
    for text in blocks(name, "toml"):
        if not re.search(r"\[\[scenario\]\]|quiet_hours|\[mcp_servers", text):
            assert rules_of(given(tomllib.loads(text)))


# --- the examples of README.md ----------------------------------------------------------------------------------------


FORMS = (
    *(r"req_[a-z0-9]+", r"agent_[0-9a-f]{12}", r"key_[0-9a-f]{16}", r"mbx_[0-9a-f]{16}", r"gk_live_[\w-]{8}"),
    *(r"\d{4}-\d\d-\d\dT[\d:.]+Z", r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
)


def alike(shown: Any, seen: Any) -> bool:  # noqa: ANN401 - JSON
    """Whether what is shown is a part of what is seen; ids and times need only look alike."""
    if isinstance(shown, dict):
        return isinstance(seen, dict) and all(name in seen and alike(one, seen[name]) for name, one in shown.items())
    if isinstance(shown, list):
        return isinstance(seen, list) and len(shown) == len(seen) and all(map(alike, shown, seen))
    for form in FORMS:
        if isinstance(shown, str) and re.fullmatch(form, shown):
            return isinstance(seen, str) and re.fullmatch(form, seen) is not None
    return bool(shown == seen)


async def test_the_two_sends_are_answered_as_the_readme_shows() -> None:
    asked = [json.loads(body) for body in re.findall(r" -d '(\{.*\})'$", page("README.md"), re.MULTILINE)]
    goes, goes_not = (json.loads(text) for text in blocks("README.md", "json"))

    async with stage() as up:
        outreach, support = up.agents
        for agent in up.agents:
            await agent.ask("POST", "/v1/agent/register", {"agentName": agent.name, "bindKey": True})
        await outreach.lease("pat@example.net")
        path = "/v1/agent/request-send"
        first = await outreach.ask("POST", path, asked[0], headers={"Prefer": "wait=10"})
        second = await support.ask("POST", path, asked[1])

    assert alike(goes, first), first
    assert alike(goes_not, second), second
    assert len(asked) == 2


async def test_key_lease_and_consensus_are_answered_as_the_page_on_http_shows() -> None:
    """Whole answers: no member is left out, and none is in another case."""
    whose, lease, consensus = (json.loads(text) for text in blocks("docs/http.md", "json"))
    asked = [json.loads(text) for text in re.findall(r'`(\{"contactEmail": [^`]*\})`', page("docs/http.md"))]

    async with stage() as up:
        for agent in up.agents:
            await agent.ask("POST", "/v1/agent/register", {"agentName": agent.name, "bindKey": True})
        agent = up.agents[0]
        known = await agent.ask("GET", "/v1/agent/whoami")
        taken = await agent.ask("POST", "/v1/agent/coordination/lease", asked[0])
        begun = await agent.ask("POST", "/v1/agent/coordination/consensus", asked[1])

    for shown, seen in ((whose, known), (lease, taken), (consensus, begun)):
        assert alike(shown, seen), seen
        assert set(shown) == set(seen) - {"httpStatus"}


def named_files() -> dict[str, str]:
    """The files of the policy example, by the path that the line before each block names."""
    found = re.findall(r"`([\w/]+\.\w+)`:\n\n```\w+\n(.*?)^```$", page("README.md"), re.DOTALL | re.MULTILINE)
    return {path: text for path, text in found if "quiet_hours" in path}


def with_the_example(where: Path) -> None:
    """A copy of the house in which a reader has followed the chapter on policies."""
    for name in (*ALLOWED, ".ci"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, where / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, where / name)
    for path, text in named_files().items():
        (where / path).write_text(text, encoding="utf-8")
    (found,) = re.finditer(r"after the one that begins with `(.+?)`:\n\n```python\n(.*?\n)```", page("README.md"))
    neighbour, line = found.groups()
    table = where / "policies" / "__init__.py"
    lines = [text for text in table.read_text(encoding="utf-8").splitlines(keepends=True) if text != line]
    (place,) = (n for n, text in enumerate(lines, 1) if text.strip().startswith(neighbour))
    table.write_text("".join([*lines[:place], line, *lines[place:]]), encoding="utf-8")
    (where / "gateway.toml").write_text(blocks("README.md", "toml")[-1], encoding="utf-8")


OBSERVED = """
from gateway.app import rules_of
from gateway.settings import load
(rule,) = (rule for rule in rules_of(load("gateway.toml")) if rule.name == "quiet_hours")
assert (rule.mode, rule.policy.begins, rule.policy.ends) == ("observe", 22, 6), rule
"""


HERE = "test_a_reader_adds_a_policy_by_the_readme_alone"
TRIED = (
    *("tests/policies", "tests/test_scenarios.py", "tests/test_docs.py"),
    "tests/test_house.py::test_every_policy_has_its_test_file_and_its_scenario_file",
    "tests/test_house.py::test_the_top_level_holds_what_was_agreed",
    "--ignore=tests/policies/test_new_policy.py",  # it does the same with a policy of its own
)


def test_a_reader_adds_a_policy_by_the_readme_alone(tmp_path: Path) -> None:
    with_the_example(tmp_path)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
    around = kept | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    quiet = ("policies/quiet_hours.py", "tests/policies/test_quiet_hours.py")

    assert sorted(named_files()) == ["fixtures/scenarios/quiet_hours.toml", *quiet]
    for command in (
        ("-m", "tests.docs", "--write"),
        ("-m", "pytest", "-q", "-p", "no:cacheprovider", *TRIED, "--deselect", "tests/test_docs.py::" + HERE),
        ("-m", "ruff", "check", "--no-cache", *quiet),
        ("-m", "ruff", "format", "--no-cache", "--check", *quiet),
        ("-m", "mypy", "--cache-dir", str(tmp_path / "types"), *quiet),
        ("-c", OBSERVED),
    ):
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env=around, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    assert "| `quiet_hours` | these are quiet hours | defer |" in (tmp_path / "README.md").read_text(encoding="utf-8")
