"""The rows of the chapter on contact leases: whose sends a lease stops."""

from tests.coordination.conformance.leasing import HOLDER
from tests.coordination.conformance.registering import NAMED
from tests.coordination.conformance.rows import (
    KEYLESS,
    LEASED,
    ME,
    OTHER,
    SEND,
    TAKEN,
    USER,
    Cli,
    Differs,
    Part,
    Row,
    Tool,
    Want,
    error,
    mail,
    post,
)
from tests.coordination.conformance.shape import TEXT

BLOCKED = Want({"status": "blocked", "reason": "lease_conflict", "leaseHolder": HOLDER}, part=True)
"""A send that another agent's lease stops."""
GOES = Want({"status": "queued"}, part=True)
BATCH = "/v1/agent/batch/request-send"
TRIED = {"dryRun": True}
TOLD = {"to": USER, "subject": "hello", "text": "hi"}

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
            Want(
                {"requestId": None, "status": "blocked", "reason": "lease_conflict", "leaseHolder": HOLDER}, part=True
            ),
            (ME, OTHER, TAKEN),
        ),
        Row(
            "It blocks a simulation.",
            post("/v1/agent/simulate-send", mail()),
            Want({"wouldAllow": False, "reason": "lease_conflict", "leaseHolder": HOLDER}, part=True),
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
            "It blocks the tool's dry run.",
            Tool("dry_run", TOLD),
            Want({"ok": False, "reason": "lease_conflict", "holder": {"agent": "other-agent"}}, part=True),
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
