"""The command line, `gateway`: init, serve, sink, send, keys, agents, suppressions, requests, migrate, doctor, demo.

Commands about data are HTTP clients of a running gateway; `init`, `keys`, `migrate` and `doctor` open the store that
the settings name. Heavy imports stay inside commands, so that `gateway --help` answers at once. Exit codes: 0 done,
1 refused or failed, 2 wrong usage or setting (SEMANTICS 8).
"""

import os
import sys

__all__ = ["main"]

COMPLETION = ("--install-completion", "--show-completion")
NAMED_SHELL = "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"
"""What Typer takes for: the word after these options names the shell. Otherwise it detects one and drops the word."""


def main() -> None:
    """Run the command line; ends the process with its exit code."""
    from gateway.cli.tree import app

    if len(sys.argv) > 2 and sys.argv[1] in COMPLETION:  # noqa: PLR2004 - the program, the option, the shell
        os.environ[NAMED_SHELL] = "1"
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(
                errors="backslashreplace"
            )  # a terminal that cannot show a character is no reason to fail
    app(prog_name="gateway")
