"""The page for models: anybody may read it, it is short, and what it names is there."""

import re
from pathlib import Path

from gateway.doors.http import pages
from gateway.doors.mcp.server import TOOLS
from tests.doors.door import Door

ROOT = Path(__file__).parent.parent.parent
TOKENS = 1000


async def test_anybody_may_read_it(wire: Door) -> None:
    answer = await wire.client.get("/llms.txt")

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text == (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8")
    assert answer.text.startswith("# Agent mail gateway\n\n> ")


async def test_every_route_that_it_names_is_there(wire: Door) -> None:
    named = re.findall(r"\]\((/[\w/.-]*)\)", pages.FOR_MODELS)
    answers = [await wire.get(path) for path in named]

    assert len(named) == 4
    assert {path: answer.status_code for path, answer in zip(named, answers, strict=True)} == {
        "/mcp": 400,  # a session is opened first
        "/docs": 200,
        "/openapi.json": 200,
        "/v1/agent/reasons": 200,
    }


def test_every_tool_and_every_file_that_it_names_is_there() -> None:
    tools = {tool.name for tool in TOOLS}
    arguments = {name for tool in TOOLS for name in (*tool.takes, *tool.output_schema["properties"])}
    words = set(re.findall(r"`([a-z]+_[a-z_]+)`", pages.FOR_MODELS)) - {"pending_approval"}

    assert {"send_email", "acquire_lease", "contact_timeline"} <= words <= tools | arguments
    assert [path for path in re.findall(r"docs/\w+\.md", pages.FOR_MODELS) if not (ROOT / path).is_file()] == []


def test_it_is_short() -> None:
    assert len(pages.FOR_MODELS) / 4 < TOKENS  # four characters a token, about
