"""`profiles`, `--profile`, and the choice that is kept."""

import json
import stat
from pathlib import Path

import pytest

from gateway import profile
from gateway.profile import Profile
from tests.cli.conftest import Run
from tests.cli.processes import Up

HERE = Profile("http://127.0.0.1:8080", "gk_live_here-and-secret")
THERE = Profile("https://mail.example.com", "gk_live_there-and-secret")


@pytest.fixture
def two(bare: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with two profiles, of which none is chosen."""
    monkeypatch.delenv("GATEWAY_PROFILE")
    monkeypatch.setenv("HOME", str(bare))
    profile.write(HERE)
    with profile.chosen("there"):
        profile.write(THERE)
    return bare / ".config" / "gateway"


def test_they_are_listed_with_the_default_marked(run: Run, two: Path) -> None:
    (two / "broken.toml").write_text("url = ")
    (two / "no name.toml").write_text("url = ")

    listed = json.loads(run("profiles", "list", "--json").stdout)

    assert [(one["name"], one["default"], one["url"]) for one in listed] == [
        ("broken", False, None),
        ("profile", True, HERE.url),
        ("there", False, THERE.url),
    ]
    shown = run("profiles", "list").stdout
    assert "secret" not in shown
    assert [line.split()[1] for line in shown.splitlines() if line.startswith("*")] == ["profile"]


def test_without_any_there_are_none(run: Run, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(bare / "empty"))

    assert run("profiles", "list").stdout == "none\n"


def test_the_one_that_is_used_is_meant_from_then_on(run: Run, two: Path) -> None:
    done = run("profiles", "use", "there")

    assert (done.exit_code, done.stdout) == (0, "there is the default from now on\n")
    assert profile.read() == THERE
    assert stat.S_IMODE((two / "default").stat().st_mode) == 0o600
    assert json.loads(run("profiles", "show", "--json").stdout)["url"] == THERE.url


def test_a_variable_wins_over_the_choice_and_is_told_of(run: Run, two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_PROFILE", "profile")

    done = run("profiles", "use", "there")

    assert "GATEWAY_PROFILE wins over it: profile" in done.stderr
    assert profile.read() == HERE


@pytest.mark.parametrize("name", ["nowhere", "../there", "there.toml", ""])
def test_what_is_no_profile_cannot_be_used(run: Run, two: Path, name: str) -> None:
    done = run("profiles", "use", name)

    assert done.exit_code == 1
    assert done.stderr.startswith("error: there is no profile ")
    assert profile.read() == HERE


def test_one_is_shown_without_its_secret(run: Run, two: Path) -> None:
    shown = run("profiles", "show", "there")

    assert shown.exit_code == 0
    assert THERE.url in shown.stdout
    assert "gk_live_ther..." in shown.stdout
    assert "secret" not in shown.stdout
    assert run("profiles", "show", "nowhere").exit_code == 1


def test_a_choice_that_makes_no_sense_is_none(two: Path) -> None:
    for content in (b"../x", b"\xff", b""):
        (two / "default").write_bytes(content)

        assert profile.read() == HERE


def test_a_command_takes_the_profile_by_name_or_path(run: Run, running: Up, two: Path) -> None:
    with profile.chosen("up"):
        profile.write(Profile(running.url, running.key))

    by_name = run("agents", "leases", "--profile", "up", "--json")
    by_path = run("agents", "leases", "--profile", str(two / "up.toml"), "--json")
    neither = run("agents", "leases", "--profile", "nowhere", "--json")

    assert (by_name.exit_code, by_path.exit_code) == (0, 0), by_name.output
    assert neither.exit_code == 2
    assert str(two / "nowhere.toml") in neither.stderr
    assert profile.read() == HERE  # the choice was that command's alone


def test_a_send_takes_it_too(run: Run, running: Up, two: Path) -> None:
    with profile.chosen("up"):
        profile.write(Profile(running.url, running.key))
    mail = ("send", "--to", "profiled-by-name@example.net", "--subject", "s", "--text", "t", "--json")

    assert run(*mail, "--profile", "up").exit_code == 0


def test_init_writes_the_profile_that_it_is_told(run: Run, two: Path) -> None:
    made = json.loads(run("init", "--profile", "made", "--json").stdout)

    assert profile.read(two / "made.toml") == Profile("http://127.0.0.1:8080", made["rawKey"])
    assert profile.read() == HERE


def test_who_names_a_profile_means_its_gateway_and_not_the_store_that_is_here(run: Run, running: Up, two: Path) -> None:
    run("init", "--profile", "here")
    with profile.chosen("up"):
        profile.write(Profile(running.url, running.key))

    here, there = (
        [one["keyPrefix"] for one in json.loads(run("keys", "list", "--json", *args).stdout)]
        for args in ((), ("--profile", "up"))
    )

    assert running.key.startswith(there[0])
    assert there[0] not in here


def test_a_profile_that_is_named_goes_before_variables(
    run: Run, running: Up, two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with profile.chosen("up"):
        profile.write(Profile(running.url, running.key))
    monkeypatch.setenv("GATEWAY_URL", HERE.url)
    monkeypatch.setenv("GATEWAY_KEY", HERE.key)

    assert run("agents", "leases", "--profile", "up").exit_code == 0
    other = run("agents", "leases", "--profile", "up", "--key", THERE.key)
    assert other.stderr.startswith("error: 401 ")


@pytest.mark.parametrize(
    ("named", "starred", "says"),
    [
        ("profile", ["profile"], ""),
        ("there", ["there"], "GATEWAY_PROFILE names the one that is meant: {home}/there.toml\n"),
        ("gone", [], "the profile that GATEWAY_PROFILE names is missing: {home}/gone.toml\n"),
        ("{home}/there.toml", ["there"], "GATEWAY_PROFILE names the one that is meant: {home}/there.toml\n"),
    ],
)
def test_the_star_stands_at_the_one_that_the_variable_means(
    run: Run, two: Path, monkeypatch: pytest.MonkeyPatch, named: str, starred: list[str], says: str
) -> None:
    monkeypatch.setenv("GATEWAY_PROFILE", named.format(home=two))

    listed, told = run("profiles", "list"), json.loads(run("profiles", "list", "--json").stdout)

    assert [line.split()[1] for line in listed.stdout.splitlines() if line.startswith("*")] == starred
    assert [one["name"] for one in told if one["meant"]] == starred
    assert [one["name"] for one in told if one["default"]] == ["profile"]
    assert listed.stderr == says.format(home=two)


def test_a_default_that_has_gone_is_said_to_be_missing(run: Run, two: Path) -> None:
    run("profiles", "use", "there")
    (two / "there.toml").unlink()

    assert run("profiles", "list").stderr == f"the profile that is meant is missing: {two}/there.toml\n"


def test_a_variable_that_names_what_is_chosen_wins_over_nothing(
    run: Run, two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_PROFILE", "there")

    assert run("profiles", "use", "there").stderr == ""
