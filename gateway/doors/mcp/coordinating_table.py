"""What the tools for agents among each other say of themselves; what they do is in `coordinating`."""

from gateway.doors.mcp.coordinating import (
    acquire_lease,
    create_consensus,
    get_consensus,
    heartbeat,
    list_leases,
    register_agent,
    release_lease,
    renew_lease,
    vote,
)
from gateway.doors.mcp.tool import HOLDER, Schema, Tool, number, rows, switch, table, text, whole

WHO: dict[str, Schema] = {
    "agent_name": text("The agent, by name; leave it out where your key is bound to it."),
    "agent_id": text("The same by id."),
}
HELD: dict[str, Schema] = {
    "holder": HOLDER,
    "lease_id": text("For renew_lease and release_lease."),
    "fencing_token": whole("Goes with every send to this contact: it proves that you still hold it."),
    "withdrew": rows("Mails of an older holder that were stopped.", {"type": "string"}),
}
VOTES: dict[str, Schema] = {
    "consensus_id": text("For vote, get_consensus and require_consensus_id of send_email."),
    "status": text("pending, approved, rejected or expired."),
    "approve": whole("Votes for it."),
    "reject": whole("Votes against it."),
    "threshold": whole("Votes that decide."),
}
CONTACT = text("The person's address.")
MINUTES = number("For how many minutes, 30 without it; fractions are allowed.", exclusiveMinimum=0)
TOOLS = (
    Tool(
        "register_agent",
        "Register an agent",
        "Enter the registry under a name of your own, once when you start; your key then acts as this agent. Registering "
        "again refreshes it.",
        register_agent,
        {
            "agent_name": text("Your name, unique in the tenant."),
            "agent_role": text("What you do, e.g. outbound, inbound, classifier."),
            "metadata": table("Whatever is to be kept with the agent."),
            "bind_key": switch("Let your key act as this agent; true without it.", default=True),
        },
        ("agent_name",),
        {"agent_id": text("The agent's id."), "binding": text("What became of your key.")},
        repeats=True,
    ),
    Tool(
        "heartbeat",
        "I am here",
        "Say that you are there. Only votes need it: who was not there for 5 minutes does not count.",
        heartbeat,
        WHO,
        repeats=True,
    ),
    Tool(
        "acquire_lease",
        "Take a contact",
        "Take a contact before you draft a mail, so that no other agent writes to them meanwhile. Taking one that you have "
        "extends it. Take it for the time you work (a minute for a draft), and give it back. If another agent has it, you are "
        "told who and until when.",
        acquire_lease,
        {
            "contact_email": CONTACT,
            **WHO,
            "intent": text("What for, e.g. outbound_sales."),
            "duration_minutes": MINUTES,
            "wait_seconds": number("How long to wait for it, in the order of arrival.", minimum=0, maximum=30),
        },
        ("contact_email",),
        HELD,
        repeats=True,
    ),
    Tool(
        "renew_lease",
        "Keep a contact",
        "Keep a contact while you are still at work. If that fails: stop, acquire again, then check again.",
        renew_lease,
        {
            "lease_id": text("The lease's id."),
            "fencing_token": whole("Its token."),
            "duration_minutes": MINUTES,
            **WHO,
        },
        ("lease_id",),
        repeats=True,
    ),
    Tool(
        "release_lease",
        "Give a contact back",
        "Give a contact back when you are done, so that others need not wait for its end.",
        release_lease,
        {"lease_id": text("The lease's id.")},
        ("lease_id",),
        {"in_flight": rows("Your mails that are still on their way there.", {"type": "string"})},
        repeats=True,
        destroys=True,
    ),
    Tool(
        "list_leases",
        "Who has whom",
        "List the contacts that agents have now, newest first, 20 at a time; or look one up.",
        list_leases,
        {
            "contact_email": text("Only this contact."),
            "agent": text("Only those of this agent, by name or id."),
            "cursor": text("next_cursor of the page before, with the same arguments."),
        },
        gives={
            "leases": rows("Contact, agent, until."),
            "count": whole("How many there are in all."),
            "next_cursor": text("For the next page; absent on the last."),
        },
        reads=True,
    ),
    Tool(
        "create_consensus",
        "Ask the other agents",
        "Ask the other agents to vote on an action about a contact, for instance a risky mail. The majority of those who are "
        "there decides. The gateway does not carry the action out, but send_email with require_consensus_id waits for the vote.",
        create_consensus,
        {
            "action": text("What is proposed."),
            "contact_email": CONTACT,
            "reason": text("Why."),
            **WHO,
            "timeout_minutes": number("For how long votes are taken; 5 without it.", exclusiveMinimum=0),
        },
        ("action", "contact_email", "reason"),
        VOTES,
    ),
    Tool(
        "get_consensus",
        "How a vote stands",
        "Say how a vote stands.",
        get_consensus,
        {"consensus_id": text("Its id.")},
        ("consensus_id",),
        VOTES,
        reads=True,
    ),
    Tool(
        "vote",
        "Vote",
        "Vote for or against; voting again replaces your vote. What is decided stays so.",
        vote,
        {
            "consensus_id": text("Its id."),
            "vote": text("Your vote.", enum=["approve", "reject"]),
            "reason": text("Why."),
            **WHO,
        },
        ("consensus_id", "vote"),
        {"vote": text("Your vote."), "status": VOTES["status"]},
        repeats=True,
    ),
)
