"""The rows of the chapters on asking for a consensus and on looking at one."""

from typing import Any

from tests.coordination.conformance.rows import (
    CHIEF,
    CONSENSUS,
    KEYLESS,
    ME,
    OTHER,
    Cli,
    Differs,
    Http,
    Part,
    Row,
    Tool,
    Want,
    error,
    get,
    only,
    post,
    unknown_agent,
)
from tests.coordination.conformance.shape import TEXT, TIME, UUID, After

SHOWN = ("approve", "reject", "activeAgents", "threshold", "nextAction", "decidedAt")
"""What a consensus has beside what is documented."""
COUNTS = "Beside it stand `approve` and `reject` (how many), `threshold`, `activeAgents` and `nextAction`."
ONE = f"{CONSENSUS}/$consensus"
AT_ONCE = Differs("9, point 7", "what is over reads so at once, as the votes are refused at once")
FIELDS = {"action": "pause outreach", "contactEmail": CHIEF, "reason": "Fatigue scores are high"}


def propose(minutes: Any = 5, **changes: Any) -> Http:  # noqa: ANN401 - a number, or nothing
    """A proposal; a member that is `...` is left out."""
    body = {"proposerAgent": "outreach-agent", "timeoutMinutes": minutes, **FIELDS} | changes
    return post(
        CONSENSUS,
        {name: one for name, one in body.items() if one is not ...},
        keep={"consensus": "id", "ends": "timeoutAt"},
    )


def vote(by: str, word: str = "approve", **more: Any) -> Http:
    """A vote by a bound key's agent."""
    return post(f"{ONE}/vote", {"vote": word, **more}, by, keep={"vote": "id"})


def stands(status: str) -> Want:
    """A vote after which the consensus stands so."""
    return Want({"consensusStatus": status}, part=True)


def a_consensus(status: str = "pending", minutes: float = 5) -> dict[str, Any]:
    """A consensus as it is answered."""
    return {
        "id": UUID,
        "tenantId": "$tenant",
        "requestingAgentId": "$agent",
        **FIELDS,
        "status": status,
        "timeoutAt": After(minutes),
        "createdAt": TIME,
    }


def missing(field: str, status: int = 422) -> Want:
    """A request that lacks something."""
    return Want({"error": "invalid_request", "errors": [{"field": field, "message": TEXT}]}, status, ("message",))


CREATE = f'agents consensus create --action "pause outreach" --contact-email {CHIEF} --reason "Fatigue scores are high"'
CREATED = Want(a_consensus(), 0, SHOWN)
CREATING = Part(
    "Create a consensus request",
    (
        Row(
            "The command asks the other agents to vote.",
            Cli(f"{CREATE} --agent-name outreach-agent --timeout 5"),
            CREATED,
            (ME,),
            ("CLI",),
        ),
        Row(
            "`--agent-id`: the agent that asks, by its id; this or its name.",
            Cli(f"{CREATE} --agent-id $agent"),
            only(CREATED, "requestingAgentId"),
            (KEYLESS,),
            ("--agent-id",),
            note="A bound key needs neither.",
        ),
        Row(
            "`--agent-name`: the agent that asks, by its name.",
            Cli(f"{CREATE} --agent-name outreach-agent"),
            only(CREATED, "requestingAgentId"),
            (KEYLESS,),
            ("--agent-name",),
        ),
        *(
            Row(says, Cli(CREATE.replace(part, "")), Want(None, 2, err=flag), (ME,), (flag,))
            for says, part, flag in (
                ("`--action`: what is proposed, required.", ' --action "pause outreach"', "--action"),
                ("`--contact-email`: whom it is about, required.", f" --contact-email {CHIEF}", "--contact-email"),
                ("`--reason`: why, required.", ' --reason "Fatigue scores are high"', "--reason"),
            )
        ),
        Row(
            "`--timeout`: minutes, 5 without it.",
            Cli(f"{CREATE} --timeout 60"),
            only(Want(a_consensus(minutes=60), 0, SHOWN), "timeoutAt"),
            (ME,),
            ("--timeout",),
        ),
        Row(
            "The route asks the other agents to vote.",
            propose(),
            Want(a_consensus(), ours=SHOWN),
            (ME,),
            ("POST /v1/agent/coordination/consensus", "curl", "Response"),
            note=COUNTS,
        ),
        Row(
            "`tenantId`: filled in from the key.",
            propose(tenantId="$tenant"),
            only(Want(a_consensus(), ours=SHOWN), "tenantId"),
            (ME,),
            ("tenantId",),
        ),
        Row(
            "`requestingAgentId`: the agent that asks, by its id; this or its name is required.",
            propose(proposerAgent=..., requestingAgentId="$agent"),
            only(Want(a_consensus(), ours=SHOWN), "requestingAgentId"),
            (KEYLESS,),
            ("requestingAgentId",),
        ),
        Row(
            "`proposerAgent`: the agent that asks, by its name.",
            propose(proposerAgent=...),
            missing("proposerAgent"),
            (KEYLESS,),
            ("proposerAgent",),
            note="A bound key needs neither.",
        ),
        Row(
            "`action`: what is proposed, required; `proposedAction` is the same.",
            propose(action=..., proposedAction="pause outreach"),
            only(Want(a_consensus(), ours=SHOWN), "action"),
            (ME,),
            ("action",),
        ),
        Row("`action` is required.", propose(action=...), missing("action"), (ME,)),
        Row(
            "`contactEmail`: whom it is about, required.",
            propose(contactEmail=...),
            missing("contactEmail"),
            (ME,),
            ("contactEmail",),
        ),
        Row("`reason`: why, required.", propose(reason=...), missing("reason"), (ME,), ("reason",)),
        Row(
            "`timeoutMinutes`: minutes, 5 without it.",
            propose(...),
            only(Want(a_consensus(), ours=SHOWN), "timeoutAt"),
            (ME,),
            ("timeoutMinutes",),
            note="At most a week.",
        ),
        Row(
            "The tool takes `agent_name`, `action`, `contact_email`, `reason` and `timeout_minutes`.",
            Tool(
                "create_consensus",
                {
                    "agent_name": "outreach-agent",
                    "action": "pause outreach",
                    "contact_email": CHIEF,
                    "reason": "Fatigue scores are high",
                    "timeout_minutes": 5,
                },
            ),
            Want({"ok": True, "consensus_id": UUID, "status": "pending", "contact_email": CHIEF}, part=True),
            (ME,),
            ("create_consensus",),
        ),
        unknown_agent(propose(proposerAgent="nobody"), "A proposal"),
    ),
    ("CLI", "POST /v1/agent/coordination/consensus", "curl", "create_consensus", "Response"),
    (
        *("--agent-id", "--agent-name", "--action", "--contact-email", "--reason", "--timeout"),
        *("tenantId", "requestingAgentId", "proposerAgent", "action", "contactEmail", "reason", "timeoutMinutes"),
    ),
    ("Options", "Response"),
)

NOWHERE = "b4c8e7a2-3f19-4d5e-a621-9c1d8f3e7b0a"
GETTING = Part(
    "Get a consensus request",
    (
        Row("The command shows one.", Cli("agents consensus get $consensus"), CREATED, (ME, propose()), ("CLI",)),
        Row(
            "The route answers what it answered when it was created, with the status of now.",
            get(ONE),
            Want(a_consensus("approved"), ours=SHOWN),
            (ME, propose(), vote("key")),
            ("GET /v1/agent/coordination/consensus/:id", "curl"),
        ),
        Row(
            "The tool takes `consensus_id`.",
            Tool("get_consensus", {"consensus_id": "$consensus"}),
            Want({"ok": True, "consensus_id": "$consensus", "status": "pending"}, part=True),
            (ME, propose()),
        ),
        Row(
            "The resource shows one.",
            Tool("gateway://consensus/$consensus"),
            Want(a_consensus(), ours=SHOWN),
            (ME, propose()),
        ),
        Row(
            "The single votes are not in it.",
            get(ONE),
            Want(a_consensus("pending"), ours=SHOWN),
            (ME, OTHER, propose(), vote("key")),
            note=f"`GET {CONSENSUS}/:id/votes` lists them.",
        ),
        Row("An unknown id is 404.", get(f"{CONSENSUS}/{NOWHERE}"), error(404, "consensus_not_found")),
    ),
    ("CLI", "GET /v1/agent/coordination/consensus/:id", "curl"),
)
