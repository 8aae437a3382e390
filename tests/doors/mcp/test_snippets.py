"""The entries of docs/mcp.md for three clients: they can be read, their commands exist, and they lead into a session."""

import itertools
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from gateway.settings import NOT_SETTINGS
from tests import docs_cli
from tests.doors.mcp.client import Served
from tests.doors.mcp.raw import ABOUT, BOTH

PAGE = (Path(__file__).parents[3] / "docs" / "mcp.md").read_text(encoding="utf-8")
COMMANDS = {path for path, _ in docs_cli.leaves()}
KEY = "GATEWAY_KEY"


def block(language: str) -> str:
    """The one block in this language before the chapter on results."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.partition("## Results")[0], re.DOTALL | re.MULTILINE)
    return str(found)


def claude() -> list[list[str]]:
    """The calls of Claude Code's command line, as words."""
    return [shlex.split(line) for line in block("bash").splitlines()]


def cursor() -> dict[str, Any]:
    """Cursor's entries."""
    return dict(json.loads(block("json"))["mcpServers"])


def codex() -> dict[str, Any]:
    """Codex's entries."""
    return dict(tomllib.loads(block("toml"))["mcp_servers"])


def test_claude_code_is_told_of_both_ways() -> None:
    http, stdio = claude()

    assert http[:5] == ["claude", "mcp", "add", "--transport", "http"]
    assert stdio[:5] == ["claude", "mcp", "add", "--transport", "stdio"]
    end = stdio.index("--")
    assert " ".join(stdio[end + 1 :]) in COMMANDS
    given = [word.partition("=")[0] for option, word in itertools.pairwise(stdio[:end]) if option == "--env"]
    assert set(given) == {KEY, "GATEWAY_URL"} <= NOT_SETTINGS


def test_cursor_and_codex_are_told_of_both_ways() -> None:
    for entries in (cursor(), codex()):
        http, stdio = entries.values()

        assert " ".join([stdio["command"], *stdio["args"]]) in COMMANDS
        assert {*stdio["env"], *stdio.get("env_vars", ())} == {KEY, "GATEWAY_URL"}
        assert set(http) <= {"url", "headers", "bearer_token_env_var"}


async def test_the_entries_for_http_open_a_session(wired: Served) -> None:
    key = wired.door.keys["a"]
    add = claude()[0]
    ways = [
        (add[6], add[add.index("--header") + 1].replace(f"${KEY}", key).partition(": ")[2]),
        (cursor()["mail"]["url"], cursor()["mail"]["headers"]["Authorization"].replace(f"${{env:{KEY}}}", key)),
        (codex()["mail"]["url"], f"Bearer {key}"),
    ]

    assert codex()["mail"]["bearer_token_env_var"] == KEY
    async with httpx.AsyncClient() as http:
        for url, given in ways:
            where = f"http://127.0.0.1:{wired.port}{urlsplit(url).path}"
            body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": ABOUT}
            answer = await http.post(where, json=body, headers={"Authorization": given, "Accept": BOTH})

            assert urlsplit(url).netloc == "127.0.0.1:8080"
            assert answer.headers["mcp-session-id"], answer.text
