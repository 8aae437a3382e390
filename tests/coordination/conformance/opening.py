"""The rows of the page's introduction and of its chapter on events: who may do and see what."""

from tests.coordination.conformance.registering import binding, registration
from tests.coordination.conformance.rows import (
    CONSENSUS,
    KEYLESS,
    LEASE,
    LEASED,
    ME,
    PROPOSED,
    USER,
    Differs,
    Http,
    Part,
    Row,
    Want,
    error,
    events,
    only,
    post,
)
from tests.coordination.conformance.shape import TEXT, TOKEN

BOXED = Differs(
    "9, point 1", "an agent needs no more rights than its work does, so a key limited to mailboxes may do this too"
)

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
            only(binding("not_requested"), "id", "agentName"),
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
            error(403, "mailbox_scope_denied"),
            (KEYLESS,),
        ),
    ),
)

EVENTS = Part(
    "Events",
    (
        Row(
            "`coordination.lease_acquired`: a new lease.",
            events("coordination.lease_acquired"),
            Want(
                {"items": [{"type": "coordination.lease_acquired", "leaseId": "$lease", "contactEmail": USER}]},
                part=True,
            ),
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
