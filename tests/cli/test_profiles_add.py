"""`profiles add`: a key that was made elsewhere becomes a profile; and who has none is told how to come by one."""

import json
import re
import shlex
import socket
import stat
from pathlib import Path

import pytest

from gateway import profile
from gateway.profile import Profile
from tests.cli.conftest import Run
from tests.cli.processes import Up
from tests.client.wire_server import said, scripted

KEY = "gk_live_" + "Ab0_-" * 8 + "xyz"
"""Looks like a key, and no gateway knows it."""


@pytest.fixture
def home(bare: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a profile; the folder in which they go by a name."""
    monkeypatch.delenv("GATEWAY_PROFILE")
    monkeypatch.setenv("HOME", str(bare))
    return bare / ".config" / "gateway"


@pytest.fixture
def nobody() -> str:
    """A URL of the loopback at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize("way", ["option", "variable", "stdin"])
def test_a_profile_is_made_of_a_url_and_a_key_and_says_whose_that_is(
    run: Run, running: Up, home: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "variable":
        monkeypatch.setenv("GATEWAY_KEY", running.key)
    option = ("--key", running.key) if way == "option" else ()

    added = run(
        "profiles", "add", "third", "--url", f"{running.url}/", *option, stdin=f"{running.key}\n" * (way == "stdin")
    )

    assert added.exit_code == 0, added.output
    assert profile.read(home / "third.toml") == Profile(running.url, running.key)
    assert stat.S_IMODE((home / "third.toml").stat().st_mode) == 0o600
    assert running.key not in added.output
    assert re.search(r" key id +key_\w+\n +tenant +default\n +scopes +read, send, manage, operator\n", added.stdout)
    monkeypatch.delenv("GATEWAY_KEY", raising=False)
    assert run("whoami", "--profile", "third").exit_code == 0


def test_it_takes_a_path_and_answers_in_json_without_the_key(run: Run, running: Up, home: Path, bare: Path) -> None:
    path = str(bare / "deep" / "other.toml")

    added = run("profiles", "add", path, "--url", running.url, "--json", stdin=running.key)

    told = json.loads(added.stdout)
    assert (told["name"], told["path"], told["url"]) == (path, path, running.url)
    assert told["key"]["tenant_id"] == "default"
    assert running.key not in added.output
    assert profile.read(Path(path)) == Profile(running.url, running.key)


def test_where_no_gateway_answers_it_is_written_and_that_is_said(run: Run, home: Path, nobody: str) -> None:
    added = run("profiles", "add", "later", "--url", nobody, stdin=KEY)

    assert added.exit_code == 0
    assert f"the key was not tried: no gateway answers at {nobody}" in added.stderr
    assert profile.read(home / "later.toml") == Profile(nobody, KEY)
    assert KEY not in added.output


def test_where_something_else_answers_nothing_is_written_and_the_key_is_known_there(run: Run, home: Path) -> None:
    with scripted(said(200, {"welcome": True})) as server:
        added = run("profiles", "add", "typo", "--url", server.url, stdin=KEY)

    assert added.exit_code == 1
    assert "the key was sent there" in added.stderr
    assert not (home / "typo.toml").exists()
    assert KEY not in added.output


def test_a_key_that_the_gateway_does_not_take_is_not_written(run: Run, running: Up, home: Path) -> None:
    added = run("profiles", "add", "wrong", "--url", running.url, stdin=KEY)

    assert added.exit_code == 1
    assert added.stderr == f"error: {running.url} does not take this key; no profile was written\n"
    assert profile.names() == []


def test_one_that_is_there_is_replaced_only_by_force(run: Run, home: Path, nobody: str) -> None:
    run("profiles", "add", "third", "--url", nobody, stdin=KEY)
    new = KEY[:-1] + "2"
    (home / "third.toml").chmod(0o644)

    refused = run("profiles", "add", "third", "--url", nobody, stdin=new)
    kept = profile.read(home / "third.toml")
    forced = run("profiles", "add", "third", "--url", nobody, "--force", stdin=new)

    assert (refused.exit_code, forced.exit_code) == (1, 0)
    assert "--force" in refused.stderr
    assert kept == Profile(nobody, KEY)
    assert profile.read(home / "third.toml") == Profile(nobody, new)
    assert profile.read(home / "third.toml.old") == kept
    assert [stat.S_IMODE(path.stat().st_mode) for path in sorted(home.iterdir())] == [0o600, 0o600]


@pytest.mark.parametrize("name", ["n" * 300, "n" * 300 + "/third.toml"])
def test_a_name_that_no_file_can_have_is_said_in_one_line(
    run: Run, home: Path, nobody: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    added = run("profiles", "add", name, "--url", nobody, stdin=KEY)
    monkeypatch.setenv("GATEWAY_PROFILE", name)
    listed = run("profiles", "list")

    assert (added.exit_code, listed.exit_code) == (1, 0)
    assert added.stderr.splitlines()[-1] == f"error: the profile {name} cannot be written: File name too long"
    assert listed.stderr == f"the profile that GATEWAY_PROFILE names is missing: {name}\n"


@pytest.mark.parametrize(
    ("name", "url", "key", "says"),
    [
        ("third", "http://127.0.0.1:8080", "", "a key is needed"),
        ("third", "http://127.0.0.1:8080", "gk_live_tooshort", "that is no API key"),
        ("third", "http://127.0.0.1:8080", KEY + "0", "that is no API key"),
        ("third", "http://127.0.0.1:8080", "ga_inv_" + KEY[8:], "that is no API key"),
        ("third", "127.0.0.1:8080", KEY, "--url"),
        ("", "http://127.0.0.1:8080", KEY, "NAME"),
        ("..", "http://127.0.0.1:8080", KEY, "NAME"),
    ],
)
def test_what_cannot_be_a_profile_is_wrong_usage_and_shows_no_key(
    run: Run, home: Path, name: str, url: str, key: str, says: str
) -> None:
    refused = run("profiles", "add", name, "--url", url, stdin=key)

    assert refused.exit_code == 2, refused.output
    assert says in refused.stderr
    assert not key or key not in refused.output
    assert profile.names() == []


def test_who_has_lost_the_key_comes_back_by_the_commands_that_init_names(run: Run, running: Up, home: Path) -> None:
    with profile.chosen("first"):
        assert run("init").exit_code == 0
    again = run("init", "--profile", "third")
    create, add = re.findall(r"`(gateway [^`]*)`", again.stderr)

    made = run(*shlex.split(create)[1:])
    key = made.stdout.splitlines()[0]
    added = run(*shlex.split(add)[1:], stdin=key)

    assert again.exit_code == 0
    assert f"no profile was written, as no key was made: there is no {home / 'third.toml'}" in again.stderr
    assert re.search(r" operator key +made earlier, and not shown again\n +profile +none was written\n", again.stdout)
    assert added.exit_code == 0, added.output
    assert profile.read(home / "third.toml") == Profile("http://127.0.0.1:8080", key)


def test_init_names_tenant_config_and_force_where_they_are_needed(run: Run, home: Path, bare: Path) -> None:
    (bare / "its own.toml").write_text("")
    args = ("init", "--tenant", "second", "--mailbox", "a@second.example.org", "--config", "its own.toml", "--json")

    run(*args)
    again = run(*args)

    assert f"{home / 'profile.toml'} stays as it is" in again.stderr
    assert "--scopes operator --tenant second --config 'its own.toml'`" in again.stderr
    assert "`gateway profiles add profile --url http://127.0.0.1:8080 --force`" in again.stderr


# --- a profile that is not there, beside variables --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        (("GATEWAY_KEY",), "and beside --profile GATEWAY_KEY is not heeded; "),
        (("GATEWAY_URL", "GATEWAY_KEY"), "and beside --profile GATEWAY_URL and GATEWAY_KEY are not heeded; "),
        ((), "wide.toml; "),
    ],
)
def test_variables_that_a_named_profile_hides_are_named(
    run: Run, running: Up, home: Path, monkeypatch: pytest.MonkeyPatch, variables: tuple[str, ...], says: str
) -> None:
    known = {"GATEWAY_KEY": running.key, "GATEWAY_URL": running.url}
    for name in variables:
        monkeypatch.setenv(name, known[name])

    refused = run("whoami", "--profile", "wide")

    assert refused.exit_code == 2
    assert f"there is no profile {home / 'wide.toml'}" in refused.stderr
    assert says in refused.stderr
    assert "give one (--key), or make a profile: `gateway profiles add`" in refused.stderr
    assert running.key not in refused.output


def test_a_claim_beside_a_named_profile_says_that_the_variable_is_not_heeded(
    run: Run, running: Up, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_URL", running.url)

    hidden = run("adopt", "claim", "ga_inv_unknown", "--profile", "wide")
    given = run("adopt", "claim", "ga_inv_unknown", "--profile", "wide", "--url", f"{running.url}/")

    assert "and beside --profile GATEWAY_URL is not heeded; http://127.0.0.1:8080 is asked" in hidden.stderr
    assert "not heeded" not in given.stderr
    assert (hidden.exit_code, given.exit_code) == (1, 1)


def test_a_key_that_is_refused_is_looked_for_where_it_came_from(
    run: Run, running: Up, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_KEY", KEY)
    with profile.chosen("old"):
        profile.write(Profile(running.url, KEY))

    by_profile = run("whoami", "--profile", "old")
    by_variable = run("whoami", "--url", running.url)

    assert by_profile.stderr.rstrip().endswith(f"check --key and {home / 'old.toml'}")
    assert "check --key, GATEWAY_KEY and " in by_variable.stderr
