"""An agent as a process of its own that uses the tools for models: MCP over streamable HTTP, in one session.

`python -m tests.faults.model PORT KEY SKEW`: as `agent.py`. An order for which there is a tool becomes a call of that tool; all
else is asked over HTTP. The result is told in the members that the same answer has over HTTP; what a result leaves out, since
no model acts on it, is asked for afterwards.
"""

import http.client
import json
import re
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.faults.agent import PATIENCE, Agent, now, obey, wait_until

VERSION = "2025-11-25"
LOOK = 0.02
UNDER_WAY = {"queued", "relaying", "deferred"}
LEASE = re.compile("/v1/agent/coordination/lease/(.+)")
TOOLS = {
    ("POST", "/v1/agent/request-send"): "send_email",
    ("POST", "/v1/agent/coordination/lease"): "acquire_lease",
    ("POST", "/v1/agent/register"): "register_agent",
}
BY_LEASE = {"PUT": "renew_lease", "DELETE": "release_lease"}
Body = dict[str, Any]


def snake(name: str) -> str:
    """A member as the tools name it."""
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)


class Model(Agent):
    """One agent and its session."""

    def __init__(self, port: int, key: str, skew: float) -> None:
        super().__init__(port, key, skew)
        self.session: dict[str, str] = {}
        self.number = 0
        self.ids: dict[str, str] = {}
        about = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "model", "version": "1"}}
        self._say("initialize", about)
        answer = self.line.getresponse()
        answer.read()
        self.session = {"Mcp-Session-Id": answer.headers["mcp-session-id"], "Mcp-Protocol-Version": VERSION}

    def carry_out(self, order: Body) -> Body:
        """Call the tool for it, or do as any agent does where there is none."""
        name, given = self._tool(order)
        if name is None:
            return super().carry_out(order)
        if self.line.sock is None:
            self.line.connect()
        wait_until(order["at"])
        asked = now()
        try:
            self._say("tools/call", {"name": name, "arguments": given})
            if order.get("hangUp") is not None:
                time.sleep(order["hangUp"])
                self.line.close()
                return {"asked": asked, "answered": None, "status": None, "answer": None}
            response = self.line.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException):
            self.line.close()
            return {"asked": asked, "answered": None, "status": None, "answer": None}
        answered = now()
        if response.status != 200:
            return {"asked": asked, "answered": answered, "status": response.status, "answer": json.loads(text)}
        result = json.loads(text)["result"]
        return {"asked": asked, "answered": answered} | self._told(name, result, order)

    def _tool(self, order: Body) -> tuple[str | None, Body]:
        """The tool for an order and its arguments."""
        given = {snake(name): value for name, value in (order["body"] or {}).items()}
        held = LEASE.fullmatch(order["path"])
        if held:
            return BY_LEASE[order["method"]], given | {"lease_id": held[1]}
        return TOOLS.get((order["method"], order["path"])), given

    def _say(self, method: str, params: Body) -> None:
        self.number += 1
        body = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        own = {"Accept": "application/json, text/event-stream"} | self.session
        self.line.request("POST", "/mcp", json.dumps(body), self.headers({}) | own)

    # --- what was answered --------------------------------------------------------------------------------------------

    def _told(self, name: str, result: Body, order: Body) -> Body:
        """Status and answer as HTTP has them."""
        said: Body = result["structuredContent"]
        if result["isError"]:
            return {"status": 503 if said["repeat"] == "after_until" else 422, "answer": {"error": said["reason"]}}
        tell: dict[str, Callable[[Body], Body]] = {
            "send_email": lambda said: self._sent(said, until_done=bool(order.get("prefer"))),
            "acquire_lease": self._acquired,
            "register_agent": lambda said: {"id": said["agent_id"], "apiKeyBinding": said["binding"]},
            "renew_lease": lambda said: {"renewed": said["ok"], "reason": said.get("reason")} | _until(said),
            "release_lease": lambda said: {"released": said["ok"], "reason": said.get("reason")},
        }
        return {"status": 200, "answer": tell[name](said)}

    def _sent(self, said: Body, *, until_done: bool) -> Body:
        answer = {"requestId": said["request_id"], "idempotencyKey": said["idempotency_key"], "status": said["status"]}
        answer |= {"replayed": said.get("replayed", False), "reason": said.get("reason"), "messageId": None}
        if said["status"] == "blocked":
            return answer
        record = self._get(f"requests/{said['request_id']}")
        until = time.monotonic() + PATIENCE
        while until_done and record["status"] in UNDER_WAY and time.monotonic() < until:
            time.sleep(LOOK)
            record = self._get(f"requests/{said['request_id']}")
        status = record["status"] if until_done else said["status"]
        return answer | {"messageId": record["messageId"], "status": status}

    def _acquired(self, said: Body) -> Body:
        if said["ok"]:
            return {"id": said["lease_id"], "fencingToken": said["fencing_token"]} | _until(said)
        holder: Body = said["holder"]
        found = {"agentName": holder["agent"], "agentId": self._id(holder["agent"]), "kind": holder["kind"]}
        return {"conflict": True, "reason": said["reason"], "leaseHolder": found, "retryAt": said["until"]}

    def _id(self, name: str) -> str:
        """The id of an agent, which the tools call by its name."""
        if name not in self.ids:
            self.ids |= {one["agentName"]: one["id"] for one in self._get("agents")}
        return self.ids[name]

    def _get(self, path: str) -> Any:  # noqa: ANN401  (JSON)
        self.line.request("GET", f"/v1/agent/{path}", headers=self.headers({}))
        return json.loads(self.line.getresponse().read())


def _until(said: Body) -> Body:
    return {"expiresAt": said["until"]} if "until" in said else {}


def main() -> None:
    """Carry out orders until there are no more."""
    port, key, skew = sys.argv[1:]
    obey(Model(int(port), key, float(skew)))


if __name__ == "__main__":
    main()
