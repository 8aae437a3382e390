"""Shell completion, as Typer makes it: the scripts, and what they are answered."""

import os
import subprocess
import sys

import pytest

SHELLS = ("bash", "zsh", "fish")


def asked(*args: str, **variables: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
    around = kept | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"} | variables
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


@pytest.mark.parametrize(
    ("words", "found"),
    [("ag", "agents"), ("agents le", "lease"), ("profiles ", "use"), ("send --idem", "--idempotency-key")],
)
@pytest.mark.parametrize("shell", SHELLS)
def test_commands_and_options_are_completed(shell: str, words: str, found: str) -> None:
    line = f"gateway {words}"
    place = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]

    assert found in asked(_GATEWAY_COMPLETE=f"complete_{shell}", **place)
