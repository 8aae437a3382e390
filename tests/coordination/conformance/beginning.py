"""The rows of the page's introduction and of the chapters on registering and heartbeats."""

from typing import Any

from tests.coordination.conformance.rows import (
    BEAT,
    CHIEF,
    CONSENSUS,
    KEYLESS,
    LEASE,
    LEASED,
    ME,
    OTHER,
    PROPOSED,
    REGISTER,
    SEND,
    USER,
    Cli,
    Differs,
    Http,
    Later,
    Part,
    Row,
    Tool,
    Want,
    error,
    events,
    get,
    mail,
    post,
    unknown_agent,
)
from tests.coordination.conformance.shape import AGENT, TEXT, TIME, TOKEN

SHOWN = ("metadata", "owner", "allowedRecipientDomains")
"""What a registration's answer has beside what is documented."""
BOXED = Differs("9, point 1", "an agent needs no more rights than its work does, so a key limited to mailboxes may do this too")
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
    return Want(registered(apiKeyBinding=word, **more), ours=SHOWN)


INTRODUCTION = Part(
    "Agent Coordination",
    (
        Row("Registering needs a write scope.", registration("reader"), error(403, "insufficient_scope", scope="send")),
        Row(
            "Leasing needs a write scope.",
            post(LEASE, {"contactEmail": USER, "agentName": "outreach-agent"}, "reader"),
            error(403, "insufficient_scope", scope="send"),
            (KEYLESS,),
        ),
        Row(
            "Voting needs a write scope.",
            post(f"{CONSENSUS}/$consensus/vote", {"agentName": "outreach-agent", "vote": "approve"}, "reader"),
            error(403, "insufficient_scope", scope="send"),
            (KEYLESS, PROPOSED),
        ),
        Row(
            "Changing an agent's config needs `manage`.",
            Http("PUT", "/v1/agent/agents/$agent/config", {"humanizer_enabled": False}, "sender"),
            error(403, "insufficient_scope", scope="manage"),
            (KEYLESS,),
        ),
        Row(
            "A key limited to mailboxes is refused where an agent is registered.",
            registration("boxed"),
            binding("not_requested"),
            differs=BOXED,
        ),
        Row(
            "A key limited to mailboxes is refused where a contact is leased.",
            post(LEASE, {"contactEmail": USER, "agentName": "outreach-agent"}, "boxed"),
            Want({"id": TEXT, "agentId": "$agent", "fencingToken": TOKEN}, part=True),
            (KEYLESS,),
            differs=BOXED,
        ),
        Row(
            "A key limited to mailboxes is refused where agents vote.",
            post(f"{CONSENSUS}/$consensus/vote", {"agentName": "outreach-agent", "vote": "approve"}, "boxed"),
            Want({"consensusRequestId": "$consensus", "vote": "approve", "consensusStatus": "approved"}, part=True),
            (KEYLESS, PROPOSED),
            differs=BOXED,
        ),
        Row(
            "A key limited to mailboxes is refused where an agent's config is changed.",
            Http("PUT", "/v1/agent/agents/$agent/config", {"humanizer_enabled": False}, "boxed"),
            Want({"error": TEXT, "message": TEXT}, 403, part=True),
            (KEYLESS,),
        ),
    ),
)

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
            Want(registered(id="$agent", agentRole="inbound", apiKeyBinding="not_requested"), ours=SHOWN),
            (KEYLESS,),
        ),
        Row(
            "Without a role it becomes `general` again.",
            registration(),
            Want(registered(id="$agent", apiKeyBinding="not_requested"), ours=SHOWN),
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
            Want(registered(), 0, SHOWN),
            of=("--agent-role",),
        ),
        Row(
            "`--metadata`: a JSON object, accepted and not kept.",
            Cli("agents register --agent-name outreach-agent --metadata '{\"team\": \"sales\"}'"),
            Want(registered(metadata={"team": "sales"}), 0, SHOWN),
            of=("--metadata",),
            differs=Differs("9, point 4", "it is kept with the agent: what was accepted should be there to read"),
        ),
        Row(
            "`--no-bind-key`: the key is not bound.",
            Cli("agents register --agent-name outreach-agent --no-bind-key"),
            Want(registered(apiKeyBinding="not_requested"), 0, SHOWN),
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
            binding("not_requested"),
            of=("tenantId",),
            note="Another tenant's id is 403 `tenant_mismatch`.",
        ),
        Row(
            "`agentName`: a text, required.",
            post(REGISTER, {"agentRole": "outbound"}),
            Want({"error": "invalid_request", "errors": [{"field": "agentName", "message": TEXT}]}, 422, ("message",)),
            of=("agentName",),
        ),
        Row("`agentRole`: a text; `general` without it.", registration(), binding("not_requested"), of=("agentRole",)),
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
            binding("agent_has_other_key", id="$other", agentName="other-agent"),
            (OTHER,),
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

FIVE_MINUTES = Later(301)
TO_CREATE = {"action": "pause outreach", "contactEmail": CHIEF, "reason": "Fatigue scores are high"}


def active(*before: Http | Later, says: str, count: int, note: str = "") -> Row:
    """How many agents count as active once this was done."""
    asked = post(CONSENSUS, TO_CREATE | {"proposerAgent": "outreach-agent"})
    return Row(says, asked, Want({"activeAgents": count}, part=True), before, note=note)


def mismatch(what: str, ask: Http, *before: Http) -> Row:
    """A bound key that names another agent."""
    return Row(
        f"A bound key that names another agent is 403 `agent_mismatch` {what}.",
        ask,
        error(403, "agent_mismatch", keyAgentId="$agent"),
        (ME, OTHER, *before),
    )


def bound_elsewhere(what: str, ask: Http, *before: Http) -> Row:
    """A key without an agent that names one which another key is bound to."""
    return Row(
        f"A key without an agent that names one with a key is 403 `agent_bound_to_key` {what}.",
        ask,
        error(403, "agent_bound_to_key", agentId="$other"),
        (OTHER, KEYLESS, *before),
    )


VOTE = {"vote": "approve", "agentName": "other-agent"}
HEARTBEAT = Part(
    "Heartbeat",
    (
        active(
            ME, OTHER, FIVE_MINUTES, post(BEAT), says="An agent is active for five minutes after a heartbeat.", count=1
        ),
        active(ME, OTHER, says="An agent is active for five minutes after it registered.", count=2),
        active(
            ME,
            OTHER,
            FIVE_MINUTES,
            Http("PUT", "/v1/agent/agents/$agent/config", {"humanizer_enabled": False}),
            says="An agent is active for five minutes after its config was changed.",
            count=1,
        ),
        Row(
            "An agent that sends no heartbeats keeps its leases until they end.",
            get(LEASE + "s"),
            Want([{"id": "$lease"}], part=True),
            (ME, LEASED, FIVE_MINUTES),
        ),
        Row(
            "The command marks an agent as active.",
            Cli("agents heartbeat --agent-name outreach-agent"),
            Want(None, 0, out="noted"),
            (ME,),
            ("CLI",),
        ),
        Row(
            "`--agent-id`: the agent by its id; this or its name.",
            Cli("agents heartbeat --agent-id $agent"),
            Want({"ok": True}, 0),
            (KEYLESS,),
            ("--agent-id",),
            note="A bound key needs neither.",
        ),
        Row(
            "`--agent-name`: the agent by its name, which the gateway looks up.",
            Cli("agents heartbeat --agent-name outreach-agent"),
            Want({"ok": True}, 0),
            (KEYLESS,),
            ("--agent-name",),
        ),
        Row(
            "The route marks an agent as active.",
            post(BEAT, {"agentName": "outreach-agent"}),
            Want({"ok": True}),
            (KEYLESS,),
            ("POST /v1/agent/coordination/heartbeat", "curl", "Response"),
        ),
        Row(
            "`tenantId`: filled in from the key.",
            post(BEAT, {"agentName": "outreach-agent", "tenantId": "$tenant"}),
            Want({"ok": True}),
            (KEYLESS,),
            ("tenantId",),
        ),
        Row(
            "`agentId`: the agent by its id; this or its name is required.",
            post(BEAT, {}),
            Want({"error": "invalid_request", "errors": [{"field": "agentName", "message": TEXT}]}, 422, ("message",)),
            (KEYLESS,),
            ("agentId",),
        ),
        Row(
            "`agentName`: the agent by its name, which the gateway looks up.",
            post(BEAT, {"agentName": "outreach-agent"}),
            Want({"ok": True}),
            (KEYLESS,),
            ("agentName",),
        ),
        Row(
            "The tool takes `agent_name`.",
            Tool("heartbeat", {"agent_name": "outreach-agent"}),
            Want({"ok": True}, part=True),
            (ME,),
            ("heartbeat",),
        ),
        unknown_agent(post(BEAT, {"agentId": "agent_000000000000"}), "A heartbeat"),
        mismatch("at a heartbeat", post(BEAT, {"agentName": "other-agent"})),
        mismatch("at a lease", post(LEASE, {"agentId": "$other", "contactEmail": USER})),
        mismatch("at a proposal", post(CONSENSUS, TO_CREATE | {"proposerAgent": "other-agent"})),
        mismatch("at a vote", post(f"{CONSENSUS}/$consensus/vote", VOTE), PROPOSED),
        Row(
            "A bound key releases its own leases only.",
            Http("DELETE", f"{LEASE}/$lease"),
            error(403, "agent_mismatch", keyAgentId="$agent"),
            (ME, OTHER, post(LEASE, {"contactEmail": USER}, "other", keep={"lease": "id"})),
        ),
        Row("A body that names no agent means the key's own.", post(BEAT), Want({"ok": True}), (ME,)),
        bound_elsewhere("at a heartbeat", post(BEAT, {"agentName": "other-agent"})),
        bound_elsewhere("at a lease", post(LEASE, {"agentId": "$other", "contactEmail": USER})),
        bound_elsewhere("at a proposal", post(CONSENSUS, TO_CREATE | {"proposerAgent": "other-agent"})),
        bound_elsewhere("at a vote", post(f"{CONSENSUS}/$consensus/vote", VOTE), PROPOSED),
        Row(
            "A key without an agent does not release the lease of an agent that has a key.",
            Http("DELETE", f"{LEASE}/$lease"),
            error(403, "agent_bound_to_key", agentId="$other"),
            (OTHER, post(LEASE, {"contactEmail": USER}, "other", keep={"lease": "id"})),
        ),
    ),
    ("CLI", "POST /v1/agent/coordination/heartbeat", "curl", "heartbeat", "Response"),
    ("--agent-id", "--agent-name", "tenantId", "agentId", "agentName"),
    ("Response",),
)

EVENTS = Part(
    "Events",
    (
        Row(
            "`coordination.lease_acquired`: a new lease.",
            events("coordination.lease_acquired"),
            Want({"items": [{"type": "coordination.lease_acquired", "leaseId": "$lease", "contactEmail": USER}]}, part=True),
            (ME, LEASED),
        ),
        Row(
            "To extend a lease is no `coordination.lease_acquired`.",
            events("coordination.*"),
            Want(
                {"items": [{"type": "coordination.lease_acquired"}, {"type": "coordination.lease_extended"}]}, part=True
            ),
            (ME, LEASED, LEASED),
            note="It has a name of its own.",
        ),
        Row(
            "`coordination.lease_released`: a lease was given back.",
            events("coordination.lease_released"),
            Want({"items": [{"type": "coordination.lease_released", "leaseId": "$lease"}]}, part=True),
            (ME, LEASED, Http("DELETE", f"{LEASE}/$lease")),
        ),
        Row(
            "`coordination.consensus_requested`: agents are asked to vote.",
            events("coordination.consensus_requested"),
            Want({"items": [{"type": "coordination.consensus_requested", "consensusId": "$consensus"}]}, part=True),
            (ME, PROPOSED),
            note="Votes, decisions and ends by time have their events, too.",
        ),
        Row(
            "A key limited to mailboxes never sees them.",
            events("coordination.*", "boxed"),
            Want({"items": [{"type": "coordination.lease_acquired"}]}, part=True),
            (ME, LEASED),
            differs=Differs("9, point 1", "a key limited to mailboxes may lease, so it is told who has which contact"),
        ),
    ),
)
