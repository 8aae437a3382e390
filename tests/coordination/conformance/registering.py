"""The rows of the chapter on registering an agent and binding a key to it."""

from dataclasses import replace
from typing import Any

from tests.coordination.conformance.rows import (
    BEAT,
    KEYLESS,
    ME,
    OTHER,
    REGISTER,
    SEND,
    Cli,
    Differs,
    Http,
    Part,
    Row,
    Tool,
    Want,
    error,
    get,
    mail,
    only,
    post,
)
from tests.coordination.conformance.shape import AGENT, TEXT, TIME

SHOWN = ("metadata", "owner", "allowedRecipientDomains")
"""What a registration's answer has beside what is documented."""
NAMED = Differs("9, point 3", "an agent that was named wrongly is refused: a slip must not send as somebody else")


def registered(**changes: Any) -> dict[str, Any]:
    """A registration's answer."""
    usual = {
        "id": AGENT,
        "tenantId": "$tenant",
        "agentName": "outreach-agent",
        "agentRole": "general",
        "lastHeartbeat": TIME,
        "registeredAt": TIME,
        "apiKeyBinding": "bound",
    }
    return usual | changes


def registration(by: str = "key", **body: Any) -> Http:
    """A registration over HTTP."""
    return post(REGISTER, {"agentName": "outreach-agent"} | body, by)


def binding(word: str, **more: Any) -> Want:
    """A registration whose binding ended so."""
    return Want(registered(apiKeyBinding=word, **more), ours=SHOWN, show=("apiKeyBinding", *more))


LEFT_ALONE = replace(binding("agent_has_other_key", id="$other", agentName="other-agent"), ours=(*SHOWN, "refreshed"))
"""An agent with a key of its own is not refreshed by another one."""
OTHERS = Differs("9, point 3", "who does not act as an agent changes nothing of it either, and `refreshed` says so")


REGISTERING = Part(
    "Register an agent",
    (
        Row(
            "The command registers an agent and binds its key.",
            Cli("agents register --agent-name outreach-agent --agent-role outbound"),
            Want(registered(agentRole="outbound"), 0, SHOWN),
            of=("CLI",),
        ),
        Row(
            "An agent of the same name is updated: it keeps its id, its heartbeat is refreshed, its role is set.",
            registration(agentRole="inbound"),
            binding("not_requested", id="$agent", agentRole="inbound", lastHeartbeat=TIME),
            (KEYLESS,),
        ),
        Row(
            "Without a role it becomes `general` again.",
            registration(),
            binding("not_requested", id="$agent", agentRole="general"),
            (post(REGISTER, {"agentName": "outreach-agent", "agentRole": "outbound"}, keep={"agent": "id"}),),
        ),
        Row(
            "`--agent-name`: a text, required, unique in the tenant.",
            Cli("agents register"),
            Want(None, 2, err="--agent-name"),
            of=("--agent-name",),
        ),
        Row(
            "`--agent-role`: a text; `general` without it.",
            Cli("agents register --agent-name outreach-agent"),
            only(Want(registered(), 0, SHOWN), "agentRole"),
            of=("--agent-role",),
        ),
        Row(
            "`--metadata`: a JSON object, accepted and not kept.",
            Cli('agents register --agent-name outreach-agent --metadata \'{"team": "sales"}\''),
            only(Want(registered(metadata={"team": "sales"}), 0, SHOWN), "metadata"),
            of=("--metadata",),
            differs=Differs("9, point 4", "it is kept with the agent: what was accepted should be there to read"),
        ),
        Row(
            "`--no-bind-key`: the key is not bound.",
            Cli("agents register --agent-name outreach-agent --no-bind-key"),
            only(Want(registered(apiKeyBinding="not_requested"), 0, SHOWN), "apiKeyBinding"),
            of=("--no-bind-key",),
        ),
        Row(
            "A key that another agent has is a warning on stderr, and exit code 0.",
            Cli("agents register --agent-name second-agent"),
            Want(
                registered(agentName="second-agent", apiKeyBinding="bound_to_other_agent", boundToAgentId="$agent"),
                0,
                SHOWN,
                err=r"warning: the key was not bound: bound_to_other_agent \($agent\)",
                show=("apiKeyBinding", "boundToAgentId"),
            ),
            (ME,),
        ),
        Row(
            "An agent that another key has is a warning on stderr, and exit code 0.",
            Cli("agents register --agent-name other-agent"),
            Want(None, 0, out="registered other-agent", err="warning: the key was not bound: agent_has_other_key"),
            (OTHER,),
        ),
        Row(
            "The route registers an agent; the id is `agent_` and twelve characters.",
            registration(agentRole="outbound", bindKey=True),
            Want(registered(agentRole="outbound"), ours=SHOWN),
            of=("POST /v1/agent/register", "curl", "Response"),
        ),
        Row(
            "`tenantId`: filled in from the key.",
            registration(tenantId="$tenant"),
            only(binding("not_requested"), "tenantId"),
            of=("tenantId",),
            note="Another tenant's id is 403 `tenant_mismatch`.",
        ),
        Row(
            "`agentName`: a text, required.",
            post(REGISTER, {"agentRole": "outbound"}),
            Want({"error": "invalid_request", "errors": [{"field": "agentName", "message": TEXT}]}, 422, ("message",)),
            of=("agentName",),
        ),
        Row(
            "`agentRole`: a text; `general` without it.",
            registration(),
            only(binding("not_requested"), "agentRole"),
            of=("agentRole",),
        ),
        Row(
            "`bindKey`: true or false; false without it, and nothing but `true` binds.",
            registration(bindKey=False),
            binding("not_requested"),
            of=("bindKey",),
            note='What is neither, such as `1` or `"true"`, is 422.',
        ),
        Row(
            "The tool takes `agent_name` and `agent_role`, and binds the key.",
            Tool("register_agent", {"agent_name": "outreach-agent", "agent_role": "outbound"}),
            Want({"ok": True, "agent_id": AGENT, "binding": "bound", "agent_role": "outbound"}, part=True),
            of=("register_agent",),
        ),
        Row(
            "`bind_key` of the tool is true without it.",
            Tool("register_agent", {"agent_name": "outreach-agent", "bind_key": False}),
            Want({"ok": True, "binding": "not_requested"}, part=True),
        ),
        Row(
            "An agent is named by its id or its name in every other call.",
            post(BEAT, {"agentId": "$agent"}),
            Want({"ok": True}),
            (KEYLESS,),
        ),
        Row("`bound`: the key acts as this agent from now on.", registration(bindKey=True), binding("bound")),
        Row(
            "`already_bound`: the same key and the same agent again.",
            registration(bindKey=True),
            binding("already_bound", id="$agent"),
            (ME,),
        ),
        Row(
            "`bound_to_other_agent`: the key is another agent's and stays so; `boundToAgentId` says whose. The status is 200.",
            registration(agentName="second-agent", bindKey=True),
            binding("bound_to_other_agent", agentName="second-agent", boundToAgentId="$agent"),
            (ME,),
        ),
        Row(
            "`agent_has_other_key`: another key answers for the agent, so this one is not bound. The status is 200.",
            registration(agentName="other-agent", bindKey=True),
            LEFT_ALONE,
            (OTHER,),
            differs=OTHERS,
        ),
        Row(
            "`not_requested`: `bindKey` was false, or left out.", registration(bindKey=False), binding("not_requested")
        ),
        Row(
            "`not_applicable`: there was no key that could be bound.",
            registration("", bindKey=True),
            error(401, "unauthorized"),
            note="Nobody registers here without a key, so this word is never the answer to a request.",
        ),
        Row(
            "To bind is for good: no route undoes it.",
            Http("DELETE", "/v1/agent/keys/$key_id/bind", None, "key"),
            Want({"error": "human_decision_required"}, 403, part=True),
            (ME,),
            note="True for agents' keys; an operator can bind and unbind, and bind a second key to an agent.",
        ),
        Row(
            "To act as another agent, another API key is needed.",
            registration("third", agentName="second-agent", bindKey=True),
            binding("bound", agentName="second-agent"),
            (ME,),
        ),
        Row(
            "Every send of a bound key is its agent's.",
            get("/v1/agent/requests/$request"),
            Want({"agentId": "$agent"}, part=True),
            (ME, post(SEND, mail(), keep={"request": "requestId"})),
        ),
        Row(
            "A bound key picks up its agent's config.",
            get("/v1/agent/config/humanizer", query={"agentId": "outreach-agent"}),
            Want({"effective": {"enabled": False, "style": "casual"}}, part=True),
            (ME, Http("PUT", "/v1/agent/agents/$agent/config", {"humanizer_style": "casual"})),
            note="This gateway rewrites no mail. It keeps the config, and `effective` tells programs that do what holds.",
        ),
        Row(
            "A bound key's agent goes before the header `X-Agent-Id`.",
            post(SEND, mail(), headers={"X-Agent-Id": "other-agent"}),
            error(403, "agent_mismatch", keyAgentId="$agent"),
            (ME, OTHER),
            differs=NAMED,
        ),
        Row(
            "A key without an agent names one by `X-Agent-Id`, if no key is bound to it.",
            get("/v1/agent/requests/$request"),
            Want({"agentId": "$agent"}, part=True),
            (KEYLESS, post(SEND, mail(), headers={"X-Agent-Id": "outreach-agent"}, keep={"request": "requestId"})),
        ),
        Row(
            "`X-Agent-Id` with an agent that another key is bound to does not count.",
            post(SEND, mail(), headers={"X-Agent-Id": "other-agent"}),
            error(403, "agent_bound_to_key", agentId="$other"),
            (OTHER,),
            differs=NAMED,
        ),
        Row(
            "`X-Agent-Id` with an unknown agent does not count.",
            post(SEND, mail(), headers={"X-Agent-Id": "nobody"}),
            error(404, "agent_not_found"),
            differs=NAMED,
        ),
    ),
    ("CLI", "POST /v1/agent/register", "curl", "register_agent", "Response"),
    (
        *("--agent-name", "--agent-role", "--metadata", "--no-bind-key"),
        *("tenantId", "agentName", "agentRole", "bindKey"),
    ),
    ("Options", "Response"),
)
