"""The server of the protocol: the official SDK's, with our tools, resources and prompts; `asking` gives the way to the gateway.

Nothing is kept between calls: each is made with the key that came with it.
"""

import json
from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from starlette.requests import Request

from gateway import __version__
from gateway.doors.mcp import told
from gateway.doors.mcp.coordinating_table import TOOLS as COORDINATING
from gateway.doors.mcp.pages import PROMPTS, RESOURCES, TEMPLATES, prompt, resource
from gateway.doors.mcp.sending_table import TOOLS as SENDING
from gateway.doors.mcp.tool import REPEAT, Ask, Told, Tool

Context = ServerRequestContext[Any, Request]
Asking = Callable[[Context], Ask]
"""Gives the way to the gateway for one call."""

TOOLS: tuple[Tool, ...] = (*SENDING, *COORDINATING)
BY_NAME = {tool.name: tool for tool in TOOLS}
INSTRUCTIONS = f"""You send mail through a gateway that other agents use too. Begin with who_am_i; where it names no agent,
register_agent. Before you write to somebody: contact_timeline, then acquire_lease. Send with send_email, its fencing_token and an
idempotency_key of your own; then release_lease. A result with ok: false is information: do what next_action says, and look at
repeat before you call again. Never work around a refusal with another key, address or wording.

What repeat means: {"; ".join(f"{word}: {means}" for word, means in REPEAT.items())}."""


def listed(tool: Tool) -> types.Tool:
    """A tool as the protocol lists it."""
    hints = types.ToolAnnotations(
        title=tool.title,
        read_only_hint=tool.reads,
        destructive_hint=tool.destroys,
        idempotent_hint=tool.reads or tool.repeats,
        open_world_hint=not tool.reads,
    )
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.says,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=hints,
    )


LISTED = types.ListToolsResult(tools=[listed(tool) for tool in TOOLS])


async def call(tool: Tool, given: dict[str, Any], ask: Ask) -> Told:
    """Call a tool; arguments that it does not know, or lacks, are named before anybody is asked."""
    faults = tool.faults(given)
    return told.faulty(faults) if faults else await tool.run(given, ask)


def result(said: Told) -> types.CallToolResult:
    """A result as the protocol has it: the object, and the same as text for clients that read no objects."""
    text = json.dumps(said.body, separators=(",", ":"), ensure_ascii=False)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=said.body, is_error=said.error
    )


def server(asking: Asking) -> Server[Any]:
    """The server; every call asks the gateway by what `asking` gives for it."""

    async def list_tools(_: Context, __: object) -> types.ListToolsResult:
        return LISTED

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = BY_NAME.get(params.name)
        if tool is None:
            raise MCPError(code=types.INVALID_PARAMS, message=f"there is no such tool, only {', '.join(BY_NAME)}")
        return result(await call(tool, params.arguments or {}, asking(context)))

    async def list_resources(_: Context, __: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=list(RESOURCES))

    async def list_templates(_: Context, __: object) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=list(TEMPLATES))

    async def read_resource(context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return await resource(str(params.uri), asking(context))

    async def list_prompts(_: Context, __: object) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=list(PROMPTS))

    async def get_prompt(_: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return prompt(params.name, params.arguments or {})

    made: Server[Any] = Server(
        "agent-mail-gateway",
        version=__version__,
        title="Agent mail gateway",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
    return made
