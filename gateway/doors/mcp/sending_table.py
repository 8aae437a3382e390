"""What the tools for sending say of themselves; what they do is in `sending`."""

from gateway.doors.mcp.sending import (
    batch_send,
    cancel_send,
    check_budget,
    check_suppression,
    contact_timeline,
    dry_run,
    get_request,
    list_requests,
    send_email,
    who_am_i,
)
from gateway.doors.mcp.tool import HOLDER, Schema, Tool, either, rows, switch, table, text, whole

ONE: Schema = {"type": "string"}


def people(says: str) -> Schema:
    """An address, or several."""
    return either(says, ONE, {"type": "array", "items": ONE})


MAIL: dict[str, Schema] = {
    "to": people("One address or several; the mail goes to all of them or to none."),
    "subject": text("The subject."),
    "text": text("The body as plain text; text, html, attachments or both bodies."),
    "html": text("The body as HTML."),
    "cc": people("Copies, seen by all."),
    "bcc": people("Copies that nobody sees."),
    "reply_to": people("Where answers go."),
    "from": text("One of your mailboxes; without it, your first. who_am_i lists them."),
    "kind": text(
        "outreach, as usual: leave it out. reply: you answer somebody, from a mailbox that was allowed to; transactional: a "
        "receipt or the like, from a key or mailbox that was allowed to.",
        enum=["outreach", "reply", "transactional"],
    ),
    "in_reply_to": text("The Message-ID that you answer."),
    "thread_id": text("Your name for the conversation."),
    "campaign_action": text("Your name for the step of a campaign."),
    "template_id": text(
        "A stored template, by slug; then payload has its variables, and subject and bodies are left out."
    ),
    "payload": table("The variables of the template."),
    "attachments": rows("Files: filename, content (base64), content_type."),
    "scheduled_at": text("Not before this time (ISO 8601 in UTC)."),
    "fencing_token": whole(
        "The token that acquire_lease gave for the only recipient: the mail goes only while you hold it."
    ),
    "require_consensus_id": text("Hold the mail until this consensus is approved."),
    "send_reason": text("Why you send it, for the people who answer for it."),
    "agent_name": text("As which agent, where your key is bound to none."),
}
KEY = text(
    "Your name for this one mail, e.g. your own name, the step and the person: all agents of a mailbox share its keys. The same "
    "key with the same content never sends twice: use it again whenever you are not sure. Without it one is made of the content."
)
ITEM: Schema = {
    "type": "object",
    "properties": {name: schema for name, schema in MAIL.items() if name != "agent_name"} | {"idempotency_key": KEY},
    "required": ["to"],
}
SENT: dict[str, Schema] = {
    "holder": HOLDER,
    "status": text("queued, scheduled, pending_approval (a person decides), blocked (refused), or a later state."),
    "request_id": text("The send's id, for get_request and cancel_send."),
    "idempotency_key": text("The key it is known by: repeat the call with it if you are not sure that it was done."),
    "replayed": switch("It had been taken before; nothing was sent now."),
    "recipients": rows("Each person's status, where they differ."),
}
REQUEST_ID = text("The id that send_email gave.")
TOOLS = (
    Tool(
        "send_email",
        "Send a mail",
        "Send one mail. It is judged first: another agent's lease, a recent mail to the same person, an opt-out, limits. A "
        "refusal is information, not a failure: do what next_action says. If you do not know whether a call was done, make "
        "it again with the same idempotency_key: it never sends twice.",
        send_email,
        MAIL | {"idempotency_key": KEY},
        ("to",),
        SENT,
        repeats=True,
    ),
    Tool(
        "dry_run",
        "Try a mail",
        "Judge a mail as send_email would now, and send nothing. It reserves nothing: another agent may be quicker.",
        dry_run,
        MAIL | {"idempotency_key": KEY},
        ("to",),
        SENT,
        reads=True,
    ),
    Tool(
        "batch_send",
        "Send many mails",
        "Send up to 500 mails, each judged like one of send_email; one that is refused harms no other. Give each its own "
        "idempotency_key: the whole call may then be made again.",
        batch_send,
        {
            "sends": rows("The mails, each with the arguments of send_email but agent_name.", ITEM),
            "agent_name": MAIL["agent_name"],
        },
        ("sends",),
        {
            "count": whole("How many there were."),
            "refused": rows("Those that do not go, the first ten, by their number from 0, with next_action."),
            "refused_by_reason": table("How many, by reason, where there are more than ten."),
            "request_ids": rows(
                "The ids of all, in order, where there are not more than 20.", {"anyOf": [ONE, {"type": "null"}]}
            ),
        },
        repeats=True,
    ),
    Tool(
        "get_request",
        "Where a mail stands",
        "Say where a mail stands, by request_id, or by idempotency_key if you never saw an answer.",
        get_request,
        {"request_id": REQUEST_ID, "idempotency_key": text("The key of the mail.")},
        gives=SENT | {"message_id": text("Its Message-ID."), "delivery_status": text("How far its delivery is.")},
        reads=True,
    ),
    Tool(
        "list_requests",
        "List mails",
        "List mails, newest first, ten at a time.",
        list_requests,
        {
            "status": text("Only those that stand so, e.g. pending_approval, unknown, blocked."),
            "recipient_email": text("Only those to this person."),
            "agent": text("Only those of this agent, by name or id."),
            "thread_id": text("Only those of this thread."),
            "limit": whole("How many.", minimum=1, maximum=50),
            "cursor": text("next_cursor of the page before, with the same arguments."),
        },
        gives={"items": rows("The mails."), "next_cursor": text("For the next page; absent on the last.")},
        reads=True,
    ),
    Tool(
        "cancel_send",
        "Take a mail back",
        "Stop a mail that has not left. What has left cannot be called back.",
        cancel_send,
        {"request_id": REQUEST_ID},
        ("request_id",),
        {"status": SENT["status"]},
        repeats=True,
        destroys=True,
    ),
    Tool(
        "check_suppression",
        "Has somebody opted out?",
        "Say whether an address must not be mailed. send_email checks it too.",
        check_suppression,
        {"contact_email": text("The address.")},
        ("contact_email",),
        {"suppressed": switch("Whether it must not be mailed."), "reason_code": text("Why.")},
        reads=True,
    ),
    Tool(
        "check_budget",
        "What may still be sent",
        "Say how many people may still be written to in this hour, day and month: by all, by you, from your mailbox.",
        check_budget,
        {"agent_name": text("Another agent."), "from": text("Another of your mailboxes than the first.")},
        gives={name: table("used, limit, remaining, until by window.") for name in ("tenant", "agent", "mailbox")},
        reads=True,
    ),
    Tool(
        "contact_timeline",
        "What is known of a person",
        "Say whether a person has opted out, who has them now, and the last ten mails to them by all agents.",
        contact_timeline,
        {"contact_email": text("The address.")},
        ("contact_email",),
        {"suppressed": switch("Opted out."), "lease": table("Who has them now."), "mails": rows("The last mails.")},
        reads=True,
    ),
    Tool(
        "who_am_i",
        "Who am I?",
        "Say as which agent you act, from which mailboxes you may send, and what your key may do. Call it first.",
        who_am_i,
        gives={
            "agent_id": either("The agent that your key is bound to.", ONE, {"type": "null"}),
            "agent_name": either("Its name.", ONE, {"type": "null"}),
            "mailboxes": rows("Addresses to send from.", {"type": "string"}),
        },
        reads=True,
    ),
)
