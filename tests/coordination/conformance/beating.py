"""The rows of the chapter on heartbeats, and of who may name which agent."""

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
    USER,
    Cli,
    Http,
    Later,
    Part,
    Row,
    Tool,
    Want,
    error,
    get,
    post,
    unknown_agent,
)
from tests.coordination.conformance.shape import TEXT

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
        active(ME, OTHER, FIVE_MINUTES, ME, says="To register again refreshes the heartbeat.", count=1),
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
