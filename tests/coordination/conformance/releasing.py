"""The rows of the chapters on giving a contact back and on who has whom."""

from tests.coordination.conformance.leasing import SHOWN, a_lease
from tests.coordination.conformance.rows import (
    KEYLESS,
    LEASE,
    LEASED,
    LEASES,
    ME,
    OTHER,
    TAKEN,
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
    post,
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
        Row(
            "The command tells that, too.",
            Cli(f"agents release-lease {NOWHERE}"),
            Want({"released": False}, 1, ("reason",)),
            (ME,),
            note="Its exit code is 1, so that a script sees that it had nothing.",
        ),
        Row("`released` is false once it was given back.", RELEASE, GONE, (ME, LEASED, RELEASE)),
        Row("`released` is false once it has ended.", RELEASE, GONE, (ME, LEASED, Later(1801))),
        Row(
            "Any agent's key can release any lease of the tenant.",
            RELEASE,
            error(403, "agent_mismatch", keyAgentId="$agent"),
            (ME, OTHER, TAKEN),
            differs=Differs(
                "9, point 6", "the page says elsewhere that a bound key releases only its own leases, and so it is"
            ),
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
