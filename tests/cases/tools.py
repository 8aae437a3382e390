"""Steps of a case that are calls of MCP: a tool, or the list of tools; the client may give up before it has an answer."""

import asyncio
import re
from typing import Any

from tests.cases.expect import expects
from tests.cases.play import Play

VERSION = "2025-11-25"
CALL, LIST = "tools/call", "tools/list"
SCALE = 100
"""A client's patience and a smarthost's delay are shortened alike, so that nobody waits for nothing."""


def speaks(step: dict[str, Any]) -> bool:
    """Whether a step is of this kind."""
    return CALL in step or LIST in step


async def speak(play: Play, number: int, step: dict[str, Any], _: int = 0) -> None:
    """Carry out a step."""
    method = CALL if CALL in step else LIST
    asked = _say(play, number, {"jsonrpc": "2.0", "id": number + 1, "method": method, "params": step[method]})
    patience = re.search(r"gives up after (\d+) s", step.get("client", ""))
    if patience:
        try:
            async with asyncio.timeout(int(patience[1]) / SCALE):
                await asked
        except TimeoutError:
            play.notes.append(f"step {number}: the client gave up")
        return
    said = (await asked)["result"]
    if method == LIST:
        play.facts["tools"] = {tool["name"]: tool for tool in said["tools"]}
        return
    told = said["structuredContent"]
    play.fault(told["ok"], f"step {number}: {told}")
    key = step[CALL]["arguments"].get("idempotency_key")
    first = play.facts.setdefault("told", {}).setdefault(key, told)
    same = (first["request_id"], first["idempotency_key"]) == (told["request_id"], told["idempotency_key"])
    play.fault(same, f"step {number}: another send than the first of that kind: {told}")


async def _say(play: Play, number: int, message: dict[str, Any]) -> dict[str, Any]:
    headers = {"Accept": "application/json, text/event-stream", **await _session(play)}
    answer = await play.house.call("POST", "/mcp", "agent-a", json=message, headers=headers)
    play.fault(answer.status_code == 200, f"step {number}: {answer.text[:200]}")
    body: dict[str, Any] = answer.json()
    return body


async def _session(play: Play) -> dict[str, str]:
    """The headers of the case's session, which begins with its first step."""
    if "session" not in play.facts:
        about = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "case", "version": "1"}}
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}
        headers = {"Accept": "application/json, text/event-stream"}
        answer = await play.house.call("POST", "/mcp", "agent-a", json=message, headers=headers)
        mine = {"Mcp-Session-Id": answer.headers["mcp-session-id"], "Mcp-Protocol-Version": VERSION}
        play.facts["session"] = mine
        done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await play.house.call("POST", "/mcp", "agent-a", json=done, headers=headers | mine)
    found: dict[str, str] = play.facts["session"]
    return found


@expects
async def schema_has(play: Play, names: list[str]) -> None:
    tool = play.facts["tools"]["send_email"]
    found = tool["inputSchema"]["properties"]
    play.fault(set(names) <= set(found), f"send_email takes {sorted(found)}")
    play.fault("never sends twice" in found["idempotency_key"]["description"], "the key does not say what it is for")
    hints = tool["annotations"]
    play.fault(hints["idempotentHint"] and not hints["readOnlyHint"], f"the hints are wrong: {hints}")
