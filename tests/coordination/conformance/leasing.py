"""The rows of the chapter on taking a contact."""

from typing import Any

from tests.coordination.conformance.rows import (
    KEYLESS,
    LEASE,
    LEASED,
    ME,
    OTHER,
    TAKEN,
    USER,
    Cli,
    Differs,
    Http,
    Part,
    Row,
    Tool,
    Want,
    only,
    post,
    unknown_agent,
)
from tests.coordination.conformance.shape import (
    TEXT,
    TIME,
    TOKEN,
    UUID,
    After,
)

SHOWN = ("agentName", "fencingToken")
"""What a lease has beside what is documented."""
HOLDER = {"agentId": "$other", "agentName": "other-agent", "expiresAt": "$until"}


def a_lease(minutes: float = 30, **changes: Any) -> dict[str, Any]:
    """A lease as it is answered."""
    usual = {
        "id": UUID,
        "tenantId": "$tenant",
        "agentId": "$agent",
        "contactEmail": USER,
        "intent": "outbound_sales",
        "expiresAt": After(minutes),
        "createdAt": TIME,
    }
    return usual | changes


def wish(**changes: Any) -> Http:
    """A wish for the usual contact."""
    return post(LEASE, {"agentName": "outreach-agent", "contactEmail": USER} | changes)


def missing(field: str) -> Want:
    """A request that lacks something."""
    return Want({"error": "invalid_request", "errors": [{"field": field, "message": TEXT}]}, 422, ("message",))


COMMAND = f"agents lease --agent-name outreach-agent --contact-email {USER}"
ACQUIRING = Part(
    "Acquire a lease",
    (
        Row(
            "To acquire a contact that one has extends the lease to the new duration.",
            wish(durationMinutes=45, intent="outbound_sales"),
            only(Want(a_lease(45, id="$lease"), ours=SHOWN), "id", "expiresAt", "createdAt"),
            (ME, wish(intent="outbound_sales", durationMinutes=5), LEASED),
            note="`createdAt` and the fencing token stay as they are.",
        ),
        Row(
            "The command takes a contact.",
            Cli(f"{COMMAND} --intent outbound_sales --duration 30"),
            Want(a_lease(), 0, SHOWN),
            (ME,),
            ("CLI",),
        ),
        Row(
            "`--agent-id`: the agent by its id; this or its name.",
            Cli(f"agents lease --agent-id $agent --contact-email {USER}"),
            only(Want(a_lease(intent="general"), 0, SHOWN), "agentId"),
            (KEYLESS,),
            ("--agent-id",),
            note="A bound key needs neither.",
        ),
        Row(
            "`--agent-name`: the agent by its name, which the gateway looks up.",
            Cli(COMMAND),
            only(Want(a_lease(intent="general"), 0, SHOWN), "agentId"),
            (KEYLESS,),
            ("--agent-name",),
        ),
        Row(
            "`--contact-email`: whom to take, required.",
            Cli("agents lease --agent-name outreach-agent"),
            Want(None, 2, err="--contact-email"),
            (KEYLESS,),
            ("--contact-email",),
        ),
        Row(
            "`--intent`: what for; `general` without it.",
            Cli(COMMAND),
            only(Want(a_lease(intent="general"), 0, SHOWN), "intent"),
            (KEYLESS,),
            ("--intent",),
        ),
        Row(
            "`--duration`: minutes, 30 without it.",
            Cli(f"{COMMAND} --duration 5"),
            only(Want(a_lease(5, intent="general"), 0, SHOWN), "expiresAt"),
            (KEYLESS,),
            ("--duration",),
            note="Fractions are allowed here, too; `LEASE_MAX_MINUTES` is the limit.",
        ),
        Row(
            "The route takes a contact.",
            wish(intent="outbound_sales", durationMinutes=30),
            Want(a_lease(), ours=SHOWN),
            (ME,),
            ("POST /v1/agent/coordination/lease", "curl", "Response"),
            note="`fencingToken` goes with a send, and proves that the lease is still one's own.",
        ),
        Row(
            "`tenantId`: filled in from the key.",
            wish(tenantId="$tenant"),
            only(Want(a_lease(intent="general"), ours=SHOWN), "tenantId"),
            (ME,),
            ("tenantId",),
        ),
        Row(
            "`agentId`: the agent by its id; this or its name is required.",
            post(LEASE, {"contactEmail": USER}),
            missing("agentName"),
            (KEYLESS,),
            ("agentId",),
        ),
        Row(
            "`agentName`: the agent by its name, which the gateway looks up.",
            wish(),
            only(Want(a_lease(intent="general"), ours=SHOWN), "agentId"),
            (KEYLESS,),
            ("agentName",),
        ),
        Row(
            "`contactEmail`: whom to take, required.",
            post(LEASE, {"agentName": "outreach-agent"}),
            missing("contactEmail"),
            (KEYLESS,),
            ("contactEmail",),
        ),
        Row(
            "`intent`: what for; `general` without it.",
            wish(),
            only(Want(a_lease(intent="general"), ours=SHOWN), "intent"),
            (ME,),
            ("intent",),
        ),
        Row(
            "`durationMinutes`: fractions are allowed; 30 without it.",
            wish(durationMinutes=0.5),
            only(Want(a_lease(0.5, intent="general"), ours=SHOWN), "expiresAt"),
            (ME,),
            ("durationMinutes",),
        ),
        Row(
            "The tool takes `agent_name`, `contact_email`, `intent` and `duration_minutes`.",
            Tool(
                "acquire_lease",
                {
                    "agent_name": "outreach-agent",
                    "contact_email": USER,
                    "intent": "outbound_sales",
                    "duration_minutes": 30,
                },
            ),
            Want(
                {
                    "ok": True,
                    "lease_id": UUID,
                    "agent_name": "outreach-agent",
                    "contact_email": USER,
                    "intent": "outbound_sales",
                    "until": TIME,
                    "fencing_token": TOKEN,
                },
                part=True,
            ),
            (ME,),
            ("acquire_lease",),
        ),
        Row(
            "A contact that another agent has is no error: 200, `conflict` and the holder's id, name and end.",
            wish(),
            Want(
                {
                    "conflict": True,
                    "leaseHolder": HOLDER | {"kind": "lease"},
                    "reason": "lease_conflict",
                    "retryAt": "$until",
                    "nextAction": "stop; wait for release or hand off",
                }
            ),
            (ME, OTHER, TAKEN),
            ("Response (conflict)",),
            Differs(
                "9, point 8",
                "more is told: whether a lease or a mail is in the way, when to come back, what to do",
            ),
        ),
        Row(
            "The command tells a conflict, too.",
            Cli(COMMAND),
            Want({"conflict": True, "leaseHolder": HOLDER}, 1, part=True),
            (ME, OTHER, TAKEN),
            note="Its exit code is 1, so that a script stops there.",
        ),
        unknown_agent(wish(agentName="nobody"), "A lease"),
    ),
    (
        *("CLI", "POST /v1/agent/coordination/lease", "curl", "acquire_lease"),
        *("Response", "Response (conflict)"),
    ),
    (
        *("--agent-id", "--agent-name", "--contact-email", "--intent", "--duration"),
        *("tenantId", "agentId", "agentName", "contactEmail", "intent", "durationMinutes"),
    ),
    ("Options", "Response"),
)
