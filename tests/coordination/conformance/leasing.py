"""The rows of the chapters on contact leases."""

from typing import Any

from tests.coordination.conformance.beginning import NAMED
from tests.coordination.conformance.rows import (
    KEYLESS,
    LEASE,
    LEASED,
    LEASES,
    ME,
    OTHER,
    SEND,
    TAKEN,
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
    get,
    mail,
    post,
    unknown_agent,
)
from tests.coordination.conformance.shape import TEXT, TIME, TOKEN, UUID, After

SHOWN = ("agentName", "fencingToken")
"""What a lease has beside what is documented."""
HOLDER = {"agentId": "$other", "agentName": "other-agent", "expiresAt": "$until"}
BLOCKED = Want({"status": "blocked", "reason": "lease_conflict", "leaseHolder": HOLDER}, part=True)
"""A send that another agent's lease stops."""
GOES = Want({"status": "queued"}, part=True)
BATCH = "/v1/agent/batch/request-send"
TRIED = {"dryRun": True}
TOLD = {"to": USER, "subject": "hello", "text": "hi"}


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


CONTACT_LEASES = Part(
    "Contact leases",
    (
        Row(
            "Another agent's lease blocks a single send: `lease_conflict` and a `leaseHolder`.",
            post(SEND, mail()),
            BLOCKED,
            (ME, OTHER, TAKEN),
        ),
        Row(
            "It blocks the dry run of a send.",
            post(SEND, mail() | TRIED),
            Want({"requestId": None, "status": "blocked", "reason": "lease_conflict", "leaseHolder": HOLDER}, part=True),
            (ME, OTHER, TAKEN),
        ),
        Row(
            "It blocks the tool `send_email`.",
            Tool("send_email", TOLD),
            Want(
                {"ok": False, "reason": "lease_conflict", "holder": {"agent": "other-agent", "until": "$until"}},
                part=True,
            ),
            (ME, OTHER, TAKEN),
        ),
        Row(
            "It blocks the command `send`.",
            Cli(f"send --to {USER} --subject hello --text hi"),
            Want({"status": "blocked", "reason": "lease_conflict", "leaseHolder": HOLDER}, 1, part=True),
            (ME, OTHER, TAKEN),
        ),
        Row(
            "It blocks the dry run of the command.",
            Cli(f"send --to {USER} --subject hello --text hi --dry-run"),
            Want({"status": "blocked", "reason": "lease_conflict"}, 1, part=True),
            (ME, OTHER, TAKEN),
        ),
        Row(
            "Batches are not held against leases.",
            post(BATCH, {"sends": [mail()]}),
            Want({"results": [{"status": "blocked", "reason": "lease_conflict", "leaseHolder": HOLDER}]}, part=True),
            (ME, OTHER, TAKEN),
            differs=Differs("9, point 2", "every item is judged by every policy: a batch is no way around a lease"),
        ),
        Row("A bound key that has the lease sends.", post(SEND, mail(), "other"), GOES, (OTHER, TAKEN)),
        Row(
            "So it does on the command line.",
            Cli(f"send --to {USER} --subject hello --text hi", "other"),
            Want({"status": TEXT, "requestId": TEXT}, 0, part=True),
            (OTHER, TAKEN),
        ),
        Row(
            "So it does as a tool.",
            Tool("send_email", TOLD, "other"),
            Want({"ok": True, "status": "queued"}, part=True),
            (OTHER, TAKEN),
        ),
        Row(
            "A key without an agent sends as the one that `X-Agent-Id` names, if no key is bound to it.",
            post(SEND, mail(), headers={"X-Agent-Id": "outreach-agent"}),
            GOES,
            (KEYLESS, LEASED),
        ),
        Row(
            "A bound key's agent goes before the header.",
            post(SEND, mail(), headers={"X-Agent-Id": "other-agent"}),
            error(403, "agent_mismatch", keyAgentId="$agent"),
            (ME, OTHER, TAKEN),
            differs=NAMED,
        ),
        Row(
            "Naming the lease's holder by the header does not count where a key is bound to it.",
            post(SEND, mail(), headers={"X-Agent-Id": "other-agent"}),
            error(403, "agent_bound_to_key", agentId="$other"),
            (OTHER, TAKEN),
            differs=NAMED,
        ),
        Row("A send of no agent is blocked by anybody's lease.", post(SEND, mail()), BLOCKED, (OTHER, TAKEN)),
        Row(
            "A reply is made as the replying key's own agent, so the lease's holder can reply.",
            post(SEND, mail(kind="reply", inReplyTo="<1@example.com>"), "other"),
            GOES,
            (OTHER, TAKEN),
            note="A reply is a send with `inReplyTo` and, where the mailbox allows it, `kind: reply`; it has no route, "
            "command or tool of its own.",
        ),
        Row(
            "Nobody else can reply.",
            post(SEND, mail(kind="reply", inReplyTo="<1@example.com>")),
            BLOCKED,
            (ME, OTHER, TAKEN),
        ),
    ),
)

COMMAND = f"agents lease --agent-name outreach-agent --contact-email {USER}"
ACQUIRING = Part(
    "Acquire a lease",
    (
        Row(
            "To acquire a contact that one has extends the lease to the new duration.",
            wish(durationMinutes=45, intent="outbound_sales"),
            Want(a_lease(45, id="$lease"), ours=SHOWN),
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
            Want(a_lease(intent="general"), 0, SHOWN),
            (KEYLESS,),
            ("--agent-id",),
            note="A bound key needs neither.",
        ),
        Row(
            "`--agent-name`: the agent by its name, which the gateway looks up.",
            Cli(COMMAND),
            Want(a_lease(intent="general"), 0, SHOWN),
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
            Want(a_lease(intent="general"), 0, SHOWN),
            (KEYLESS,),
            ("--intent",),
        ),
        Row(
            "`--duration`: minutes, 30 without it.",
            Cli(f"{COMMAND} --duration 5"),
            Want(a_lease(5, intent="general"), 0, SHOWN),
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
            Want(a_lease(intent="general"), ours=SHOWN),
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
            Want(a_lease(intent="general"), ours=SHOWN),
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
            Want(a_lease(intent="general"), ours=SHOWN),
            (ME,),
            ("intent",),
        ),
        Row(
            "`durationMinutes`: fractions are allowed; 30 without it.",
            wish(durationMinutes=0.5),
            Want(a_lease(0.5, intent="general"), ours=SHOWN),
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
                8, "more is told: whether a lease or a mail on its way is in the way, when to come back, what to do"
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

NOWHERE = "d290f1ee-6c54-4b01-90e6-d701748f0851"
RELEASE = Http("DELETE", f"{LEASE}/$lease")
GONE = Want({"released": False}, ours=("reason",))
RELEASING = Part(
    "Release a lease",
    (
        Row(
            "The command gives a lease back.",
            Cli("agents release-lease $lease"),
            Want({"released": True}, 0),
            (ME, LEASED),
            ("CLI",),
        ),
        Row(
            "The route gives a lease back.",
            RELEASE,
            Want({"released": True}),
            (ME, LEASED),
            ("DELETE /v1/agent/coordination/lease/:id", "curl", "Response"),
            note="`inFlight` names mail that is still on its way there.",
        ),
        Row(
            "The tool takes `lease_id`.",
            Tool("release_lease", {"lease_id": "$lease"}),
            Want({"ok": True}, part=True),
            (ME, LEASED),
            ("release_lease",),
        ),
        Row("`released` is false for an id that no lease has.", Http("DELETE", f"{LEASE}/{NOWHERE}"), GONE, (ME,)),
        Row("`released` is false once it was given back.", RELEASE, GONE, (ME, LEASED, RELEASE)),
        Row("`released` is false once it has ended.", RELEASE, GONE, (ME, LEASED, Later(1801))),
        Row(
            "Any agent's key can release any lease of the tenant.",
            RELEASE,
            error(403, "agent_mismatch", keyAgentId="$agent"),
            (ME, OTHER, TAKEN),
            differs=Differs("9, point 6", "the page says elsewhere that a bound key releases only its own leases, and so it is"),
        ),
        Row(
            "A key without an agent releases the lease of an agent that no key is bound to.",
            Http("DELETE", f"{LEASE}/$lease", by="other"),
            Want({"released": True}),
            (KEYLESS, LEASED),
        ),
    ),
    ("CLI", "DELETE /v1/agent/coordination/lease/:id", "curl", "release_lease", "Response"),
    below=("Response",),
)

SECOND = post(LEASE, {"contactEmail": "second@example.com", "agentName": "outreach-agent"}, keep={"second": "id"})
LISTING = Part(
    "List active leases",
    (
        Row(
            "Leases that have not ended are listed, newest first.",
            get(LEASES),
            Want([{"id": "$second"}, {"id": "$lease"}], part=True),
            (ME, LEASED, Later(1), SECOND),
        ),
        Row("One that has ended is not listed.", get(LEASES), Want([]), (ME, LEASED, Later(1801))),
        Row("A read scope is enough.", get(LEASES, "reader"), Want([{"id": "$lease"}], part=True), (ME, LEASED)),
        Row(
            "A key limited to mailboxes is refused.",
            get(LEASES, "boxed"),
            Want([{"id": "$lease"}], part=True),
            (ME, LEASED),
            differs=Differs("9, point 1", "who may lease may see who has whom"),
        ),
        Row(
            "The command lists them.",
            Cli("agents leases"),
            Want([a_lease(id="$lease", intent="general")], 0, SHOWN),
            (ME, LEASED),
            ("CLI",),
        ),
        Row(
            "The route lists them.",
            get(LEASES),
            Want([a_lease(id="$lease", intent="general")], ours=SHOWN),
            (ME, LEASED),
            ("GET /v1/agent/coordination/leases", "curl", "Response"),
            note="`contactEmail` and `agent` in the query look one up.",
        ),
        Row(
            "The tool `list_leases` has no arguments that it needs.",
            Tool("list_leases"),
            Want({"ok": True, "leases": [{"lease_id": "$lease", "agent": "outreach-agent"}]}, part=True),
            (ME, LEASED),
        ),
        Row(
            "The resource lists them.",
            Tool("gateway://leases"),
            Want([a_lease(id="$lease", intent="general")], ours=SHOWN),
            (ME, LEASED),
        ),
    ),
    ("CLI", "GET /v1/agent/coordination/leases", "curl", "Response"),
)
