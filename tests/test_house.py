"""The rules of the house that no linter knows: what lies where, how long a file may be, what a policy brings along."""

import ast
import importlib.metadata
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PRODUCT = ("gateway", "policies")
LINES = {"gateway": 300, "policies": 300, "tests": 500}
FUNCTION_LINES = 50
REQUIRED = {"pyproject.toml", "README.md", "gateway", "policies", "tests", "fixtures", "docker-compose.yml"}
ALLOWED = REQUIRED | {"LICENSE", "CHANGELOG.md", "constraints.txt", "docs"}
LEFT_BY_TOOLS = re.compile(
    r"\..*|__pycache__|build|dist|htmlcov|maildir|gateway\.(toml|log)|.*\.egg-info|.*\.db(-shm|-wal)?"
)
NAMELESS = {"utils", "util", "common", "helpers", "base", "manager", "domain", "misc"}
TEXT = {".py", ".md", ".toml", ".txt", ".yml", ".yaml", ".cfg", ".eml", ".html", ".css", ".js"}

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def modules(*folders: str) -> list[Path]:
    """All Python files below these folders, relative to the root."""
    return sorted(path.relative_to(ROOT) for folder in folders for path in (ROOT / folder).rglob("*.py"))


def texts() -> Iterator[Path]:
    """All text files of the project but this one, relative to the root."""
    for top in sorted(ALLOWED):
        for path in [ROOT / top] if (ROOT / top).is_file() else (ROOT / top).rglob("*"):
            if path.suffix in TEXT and path != Path(__file__):
                yield path.relative_to(ROOT)


def tree(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text())


def test_the_top_level_holds_what_was_agreed() -> None:
    names = {path.name for path in ROOT.iterdir() if not LEFT_BY_TOOLS.fullmatch(path.name)}

    assert names <= ALLOWED
    assert names >= REQUIRED


def test_no_module_is_called_by_a_name_that_says_nothing() -> None:
    assert [path for path in modules("gateway", "policies", "tests") if NAMELESS & {path.stem, path.parent.name}] == []


def test_every_module_says_what_it_is_for() -> None:
    assert [path for path in modules("gateway", "policies", "tests") if not ast.get_docstring(tree(path))] == []


def test_no_file_is_too_long() -> None:
    paths = [path for path in modules(*LINES) if "versions" not in path.parts]  # a revision is as long as what it makes
    lengths = {path: len((ROOT / path).read_text().splitlines()) for path in paths}

    assert {str(path): lines for path, lines in lengths.items() if lines > LINES[path.parts[0]]} == {}


def test_no_function_is_too_long() -> None:
    long = {
        f"{path}:{node.name}": node.end_lineno - node.lineno + 1
        for path in modules("gateway", "policies", "tests")
        if "versions" not in path.parts  # a revision is one long list of what it makes
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None
        if node.end_lineno - node.lineno + 1 > FUNCTION_LINES
    }

    assert long == {}


def test_the_core_and_the_policies_read_no_clock() -> None:
    readers = [
        f"{path}:{node.lineno}"
        for path in modules("gateway/core", "policies")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if node.func.attr in {"now", "utcnow", "today"}
    ]

    assert readers == []


@pytest.mark.parametrize(
    ("what", "where"),
    [
        ("work left undone", r"\b(TODO|FIXME|XXX|HACK)\b"),
        ("a path of one machine", r"(?<![\w.~])/(home|root|work|Users|mnt)/"),
    ],
)
def test_no_file_carries(what: str, where: str) -> None:
    found = [
        f"{path}:{number}"
        for path in texts()
        for number, line in enumerate((ROOT / path).read_text(errors="replace").splitlines(), 1)
        if re.search(where, line)
    ]

    assert found == [], what


def test_the_product_names_no_temporary_folder() -> None:
    assert [path for path in modules(*PRODUCT) if "/tmp" in (ROOT / path).read_text()] == []  # noqa: S108 - a word to look for


def policy_names() -> list[str]:
    return [path.stem for path in modules("policies") if path.name != "__init__.py"]


def test_every_policy_has_its_test_file_and_its_scenario_file() -> None:
    missing = [
        path
        for name in policy_names()
        for path in (f"tests/policies/test_{name}.py", f"fixtures/scenarios/{name}.toml")
        if not (ROOT / path).is_file()
    ]

    assert missing == []


def test_no_scenario_file_is_without_its_policy() -> None:
    assert {path.stem for path in (ROOT / "fixtures" / "scenarios").glob("*.toml")} <= set(policy_names())


def test_every_ask_has_its_loader_and_no_loader_is_without_an_ask() -> None:
    from gateway.core import facts
    from gateway.store.facts import LOADERS

    asks = {one for one in vars(facts).values() if isinstance(one, type) and issubclass(one, facts.Ask)} - {facts.Ask}

    assert len(asks) > 5
    assert set(LOADERS) == asks
    assert {one.__name__ for one in asks} <= set(facts.__all__)


def pins() -> dict[str, str]:
    """The tested set: canonical name to version."""
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+", line) for line in lines)
    return dict(line.split("==") for line in lines)


def requirements() -> list[Requirement]:
    """What pyproject.toml asks for, with all extras; the project's own extras left out."""
    optional = [line for extra in PROJECT["optional-dependencies"].values() for line in extra]
    asked = [Requirement(line) for line in [*PROJECT["dependencies"], *optional]]
    return [one for one in asked if one.name != PROJECT["name"]]


def test_every_dependency_is_bounded_and_its_tested_version_lies_within() -> None:
    for requirement in requirements():
        operators = {part.operator for part in requirement.specifier}

        assert operators == {">=", "<"}, requirement
        assert requirement.specifier.contains(pins()[canonicalize_name(requirement.name)]), requirement


def test_the_tested_set_is_complete() -> None:
    needed: set[str] = set()
    todo = requirements()
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        needed.add(name)
        for line in importlib.metadata.requires(name) or []:
            next_one = Requirement(line)
            extras = [{"extra": extra} for extra in requirement.extras] or [{"extra": ""}]
            wanted = next_one.marker is None or any(next_one.marker.evaluate(extra) for extra in extras)
            if wanted and canonicalize_name(next_one.name) not in needed:
                todo.append(next_one)

    assert needed == set(pins())


def test_the_version_is_the_newest_of_the_changelog_or_unreleased() -> None:
    from gateway import __version__

    headings = re.findall(r"^## \[([^]]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert headings[0] == "Unreleased"
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)
    assert headings[1:] == [] or headings[1] == __version__


def test_continuous_integration_runs_every_python_we_claim() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))

    assert workflow["jobs"]["run"]["strategy"]["matrix"]["python"] == claimed
    assert workflow["jobs"]["run"]["steps"][-1]["run"] == ".ci/run"
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
