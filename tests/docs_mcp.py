"""The tables of docs/mcp.md: the tools with what they take, the resources, the prompts."""

from typing import Any

from gateway.doors.mcp.pages import PROMPTS, RESOURCES, TEMPLATES
from gateway.doors.mcp.server import TOOLS
from gateway.doors.mcp.tool import REPEAT, Tool
from tests.markdown import table


def tools() -> str:
    """Every tool: its name, what it does, its arguments, its hints."""
    return table(("tool", "what it does", "arguments", "hints"), map(_tool, TOOLS))


def _tool(tool: Tool) -> tuple[str, ...]:
    words = {
        "reads only": tool.reads,
        "may be repeated": tool.repeats and not tool.reads,
        "ends something": tool.destroys,
    }
    names = [f"**`{name}`**" if name in tool.needs else f"`{name}`" for name in tool.takes]
    return f"`{tool.name}`", tool.says, ", ".join(names), ", ".join(word for word, so in words.items() if so)


def arguments() -> str:
    """Every argument of every tool, once: its type, what it says, and which tools take it."""
    known: dict[tuple[str, str, str], list[str]] = {}
    for tool in TOOLS:
        for name, schema in tool.takes.items():
            known.setdefault((name, _kind(schema), schema["description"]), []).append(f"`{tool.name}`")
    rows = [(f"`{name}`", kind, says, ", ".join(where)) for (name, kind, says), where in sorted(known.items())]
    return table(("argument", "type", "what it says", "in"), rows)


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    known: dict[str, str] = {"string": "text", "integer": "whole number", "boolean": "true or false", "array": "list"}
    return known.get(schema["type"], str(schema["type"]))


def repeats() -> str:
    """What `repeat` can be."""
    return table(("`repeat`", "what calling again would do"), [(f"`{word}`", means) for word, means in REPEAT.items()])


def resources() -> str:
    """Every resource."""
    rows = [(f"`{one.uri}`", one.description or "") for one in RESOURCES]
    rows += [(f"`{one.uri_template}`", one.description or "") for one in TEMPLATES]
    return table(("resource", "what it holds"), rows)


def prompts() -> str:
    """Every prompt."""
    rows = [
        (
            f"`{one.name}`",
            one.description or "",
            ", ".join(f"**`{argument.name}`**" for argument in one.arguments or ()),
        )
        for one in PROMPTS
    ]
    return table(("prompt", "what it leads through", "arguments"), rows)
