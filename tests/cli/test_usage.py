"""Usage: every command explains itself, starts light, and a wrong call ends with code 2 and one sentence."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from gateway.cli.tree import app
from tests.cli.conftest import Run
from tests.cli.processes import Up

HEAVY = {"alembic", "aiosmtpd", "aiosmtplib", "fastapi", "httpx", "pydantic", "rich.console", "sqlalchemy", "uvicorn"}

COMMANDS = [
    "adopt claim", "adopt invite", "adopt pending", "adopt revoke", "agents config", "agents consensus create",
    "agents consensus get", "agents consensus list", "agents consensus vote", "agents get", "agents heartbeat",
    "agents lease", "agents leases", "agents list", "agents register", "agents release-lease", "agents renew-lease",
    "agents update-config", "attachments upload", "budget", "consent check", "consent record", "contacts get",
    "contacts list", "contacts sync", "decisions confirm", "decisions list", "decisions reject", "decisions show",
    "demo", "doctor", "events list", "init", "keys bind", "keys create", "keys list", "keys narrow", "keys revoke",
    "keys unbind", "listen", "mailboxes add", "mailboxes list", "mailboxes pause", "mailboxes resume", "mailboxes set",
    "mailboxes show", "mcp", "migrate", "profiles add", "profiles list", "profiles show", "profiles use", "relay pause",
    "relay resume", "relay status", "requests cancel", "requests list", "requests resolve", "requests show", "send", "send batch",
    "serve", "sink", "suppressions add", "suppressions check", "suppressions export", "suppressions import",
    "suppressions list", "suppressions remove", "templates add-version", "templates create", "templates get",
    "templates lint", "templates list", "templates publish", "templates render", "tls self-signed", "version", "whoami",
]  # fmt: skip


def commands(node: Any, names: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - of click
    """Every command with its full name."""
    inner = getattr(node, "commands", None)
    if inner is None or node.invoke_without_command:
        yield " ".join(names), node
    for name, one in (inner or {}).items():
        yield from commands(one, (*names, name))


ALL = dict(commands(get_command(app)))


def test_the_commands_are_those_that_were_agreed() -> None:
    assert sorted(ALL) == COMMANDS


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_command_and_every_option_has_its_sentence(name: str) -> None:
    command = ALL[name]

    assert command.help
    assert command.help[0].isupper()
    missing = [option.name for option in command.params if not option.help]
    assert missing == []


@pytest.mark.parametrize("name", sorted(ALL))
def test_help_is_printed_for_every_command(run: Run, name: str) -> None:
    result = run(*name.split(), "--help")

    assert result.exit_code == 0
    assert "Usage: " in result.stdout


@pytest.mark.parametrize("name", [name for name in sorted(ALL) if name not in {"demo", "mcp", "serve", "sink"}])
def test_every_command_that_answers_can_answer_in_json(name: str) -> None:
    assert "--json" in [flag for option in ALL[name].params for flag in option.opts]


def test_the_tree_of_commands_imports_nothing_heavy() -> None:
    code = f"import sys, gateway.cli.tree; print([n for n in {sorted(HEAVY)!r} if n in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout == "[]\n"


def test_without_the_driver_for_postgresql_all_else_works() -> None:
    code = "import sys; sys.modules['psycopg'] = None; import gateway.app; gateway.store.dialect_of('postgresql://x/y')"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)

    assert done.stderr.splitlines()[-1].startswith("ValueError: DATABASE_URL: the driver for PostgreSQL is missing")


MAIL = ("send", "--to", "pat@example.net", "--subject", "s")
KEY = ("--key", "gk_live_x")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("nothing",), "No such command"),
        (("send",), "--to"),
        (("send", "--to", "pat@example.net", "--text", "t"), "--subject"),
        (MAIL, "--text"),
        ((*MAIL, "--eml", "x.eml"), "--eml"),
        ((*MAIL, "--html", "missing.html"), "missing.html"),
        ((*MAIL, "--html", "latin1.html"), "not UTF-8"),
        ((*MAIL, "--text", "t", "--fencing-token", "true"), "--fencing-token"),
        ((*MAIL, "--text", "t", "--fencing-token", "0"), "--fencing-token"),
        ((*MAIL, "--text", "t", "--agent", "z\u00fcrich", *KEY), "--agent"),
        ((*MAIL, "--text", "t", "--url", "ftp://127.0.0.1", *KEY), "--url"),
        ((*MAIL, "--text", "t", "--url", "http://user@127.0.0.1", *KEY), "--url"),
        ((*MAIL, "--text", "t", "--url", "http://127.0.0.1:99999", *KEY), "--url"),
        ((*MAIL, "--text", "t", "--url", "http://127.0.0.1:1?x=1", *KEY), "--url"),
        ((*MAIL, "--text", "t", "--key", "two words"), "characters that no key has"),
        ((*MAIL, "--text", "t"), "no API key"),
        (
            ("agents", "lease", "--contact-email", "x@example.net", "--agent-id", "a", "--agent-name", "b"),
            "--agent-name",
        ),
        (("agents", "lease", "--contact-email", "x@example.net", "--duration", "long"), "--duration"),
        (("agents", "register", "--agent-name", "a", "--metadata", "{"), "--metadata"),
        (("agents", "release-lease"), "LEASE_ID"),
        (("agents", "consensus", "create", "--action", "a", "--contact-email", "x@example.net"), "--reason"),
        (("agents", "consensus", "vote", "c", "--vote", "maybe"), "--vote"),
        (("requests", "show"), "REQUEST_ID"),
        (("requests", "show", "req_1", "--idempotency-key", "k"), "REQUEST_ID"),
        (("requests", "resolve", "req_1", "--decision", "maybe"), "--decision"),
        (("suppressions", "check"), "--email"),
        (("suppressions", "check", "--email", "x@example.net", "--domain", "example.net"), "--email"),
        (("suppressions", "list", "--limit", "501"), "--limit"),
        (("keys", "create"), "--label"),
        (("keys", "create", "--label", "x", "--scopes", "root"), "--scopes"),
        (("keys", "create", "--label", "x", "--scopes", ","), "--scopes"),
        (("init", "--tenant", "../x"), "--tenant"),
        (("init", "--mailbox", "nobody"), "--mailbox"),
        (("sink", "--bind", "2525"), "--bind"),
        (("sink", "--script", "missing.txt"), "--script"),
        (("sink", "--script", "bad.txt"), "line 1"),
        (("serve", "--roles", "http,cook"), "ROLES"),
        (("serve", "--bind", "8080"), "HTTP_BIND"),
    ],
)
def test_a_wrong_call_ends_with_code_2_and_says_what_is_wrong(
    run: Run, bare: Path, args: tuple[str, ...], says: str
) -> None:
    (bare / "latin1.html").write_bytes("<p>Z\u00fcrich".encode("latin-1"))
    (bare / "bad.txt").write_text("DOT MAYBE\n")

    result = run(*args)

    assert result.exit_code == 2, result.output
    assert says in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("command", ["serve", "init", "migrate", "doctor"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("COOLDOWN_SECONDS", "soon"),
        ("COOLDOWN_SECOND", "5"),
        ("DATABASE_URL", "sqlite:///:memory:"),
        ("DATABASE_URL", "oracle://x/y"),
        ("CONFIG", "missing.toml"),
    ],
)
def test_a_wrong_setting_is_one_line_that_names_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: str, name: str, value: str
) -> None:
    monkeypatch.setenv(f"GATEWAY_{name}", value)

    result = run(command)

    assert result.exit_code == (1 if command == "doctor" else 2), result.output
    said = result.stdout if command == "doctor" else result.stderr
    lines = [line for line in said.splitlines() if name in line]
    assert lines
    assert len(said.splitlines()) == 1 or command == "doctor"


def test_the_options_of_serve_win_over_the_environment(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gateway.cli.setup import settings_of

    monkeypatch.setenv("GATEWAY_ROLES", "relay")
    monkeypatch.setenv("GATEWAY_HTTP_BIND", "127.0.0.1:1")
    monkeypatch.setenv("GATEWAY_COOLDOWN_SECONDS", "7")

    settings = settings_of(None, {"roles": "http", "http_bind": "127.0.0.1:0"})

    assert (settings.roles, settings.http_bind, settings.cooldown_seconds) == (("http",), "127.0.0.1:0", 7)


def test_the_version_is_that_of_the_package(run: Run) -> None:
    from gateway import __version__

    assert run("version").stdout == f"{__version__}\n"
    assert json.loads(run("version", "--json").stdout) == {"version": __version__}


def test_where_nobody_listens_the_url_and_the_command_are_named(run: Run) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    result = run("agents", "leases", "--url", f"http://127.0.0.1:{port}", *KEY)

    assert result.exit_code == 1
    assert f"no gateway answers at http://127.0.0.1:{port}" in result.stderr
    assert "gateway serve" in result.stderr


def test_where_no_tls_is_spoken_that_is_said(run: Run, running: Up) -> None:
    result = run("whoami", "--url", running.url.replace("http:", "https:"), *KEY)

    assert result.exit_code == 1
    assert result.stderr.endswith("what answers there does not speak TLS; is it http:// there?\n")


def test_where_nobody_listens_for_tls_nobody_is_told_to_start_a_gateway(run: Run) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"https://127.0.0.1:{taken.getsockname()[1]}"
    result = run("whoami", "--url", url, *KEY)

    assert f"no gateway answers at {url} (Connection refused); look at the URL" in result.stderr


def test_who_asks_whose_key_it_is_is_told_the_id_that_other_commands_take(at: Run) -> None:
    told = json.loads(at("whoami", "--json").stdout)

    assert f" {told['key_id']} ({told['key_prefix']}...)\n" in at("whoami").stdout


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("events list", "id, which --since takes, is in --json alone"),
        ("listen", "with --json one object on each line, with its id"),
        ("keys", "in the store that the settings name; over HTTP with"),
        ("adopt claim", "else the profile's where there is one, else http://127.0.0.1:8080"),
    ],
)
def test_help_says_what_was_asked_of_it(run: Run, command: str, says: str) -> None:
    shown = run(*command.split(), "--help").stdout

    assert says in " ".join(shown.replace("\u2502", " ").split())
