"""Shell completion, as Typer makes it: the scripts, and what they are answered."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SHELLS = ("bash", "zsh", "fish")


def asked(*args: str, **variables: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
    around = kept | variables
    done = subprocess.run(
        [sys.executable, "-m", "gateway", *args], env=around, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gets_its_script(shell: str) -> None:
    script = asked("--show-completion", shell)

    assert f"_GATEWAY_COMPLETE=complete_{shell}" in script
    assert "gateway" in script


def test_another_word_is_no_shell() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "--show-completion", "abacus"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert "'abacus' is not one of" in done.stderr


def told(shell: str, words: str, **variables: str) -> str:
    """What a shell is answered after these words."""
    line = f"gateway {words}"
    place = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    return asked(_GATEWAY_COMPLETE=f"complete_{shell}", **place, **variables)


@pytest.mark.parametrize(
    ("words", "found"),
    [("ag", "agents"), ("agents le", "lease"), ("profiles ", "use"), ("send --idem", "--idempotency-key")],
)
@pytest.mark.parametrize("shell", SHELLS)
def test_commands_and_options_are_completed(shell: str, words: str, found: str) -> None:
    assert found in told(shell, words)


@pytest.mark.parametrize("words", ["profiles use st", "profiles show st", "send --profile st"])
@pytest.mark.parametrize("shell", SHELLS)
def test_profiles_are_completed(tmp_path: Path, shell: str, words: str) -> None:
    home = tmp_path / ".config" / "gateway"
    home.mkdir(parents=True)
    for name in ("staging", "other"):
        (home / f"{name}.toml").touch()

    found = told(shell, words, HOME=str(tmp_path))

    assert "staging" in found
    assert "other" not in found


@pytest.mark.parametrize("shell", SHELLS)
def test_it_is_set_up_in_the_home_alone(tmp_path: Path, shell: str) -> None:
    said = asked("--install-completion", shell, HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path / ".config"))

    place = Path(said.split("installed in ")[1].splitlines()[0])
    assert place.is_relative_to(tmp_path)
    assert f"_GATEWAY_COMPLETE=complete_{shell}" in place.read_text()
