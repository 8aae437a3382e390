"""Resources and prompts: what a model may read without a call, and two ways of working that are worth a text."""

import json
from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from gateway.doors.mcp import told
from gateway.doors.mcp.coordinating import SHOWN
from gateway.doors.mcp.tool import Answer, Ask

JSON = "application/json"
SCHEME = "gateway://"
RESOURCES = (
    types.Resource(
        name="leases",
        title="Who has whom",
        uri="gateway://leases",
        description="The newest 20 leases that live; list_leases has all of them, page by page.",
        mime_type=JSON,
    ),
    types.Resource(
        name="reasons",
        title="Reasons",
        uri="gateway://reasons",
        description="Every reason for which a mail is refused, put off or held, with what to do.",
        mime_type=JSON,
    ),
)
TEMPLATES = (
    types.ResourceTemplate(
        name="request",
        title="A mail",
        uri_template="gateway://requests/{id}",
        description="All that is known of a mail.",
        mime_type=JSON,
    ),
    types.ResourceTemplate(
        name="consensus",
        title="A vote",
        uri_template="gateway://consensus/{id}",
        description="How a vote stands.",
        mime_type=JSON,
    ),
)
PATHS = {
    "leases": "/v1/agent/coordination/leases",
    "reasons": "/v1/agent/reasons",
    "requests": "/v1/agent/requests/",
    "consensus": "/v1/agent/coordination/consensus/",
}
NAMED = ("requests", "consensus")


def _reasons(found: Any) -> list[dict[str, Any]]:  # noqa: ANN401  (JSON)
    return [told.plain(one, "reason", "verdict", "detail") | _following(one) for one in found]


def _following(one: dict[str, Any]) -> dict[str, str]:
    return {"next_action": told.following(one["nextAction"])}


SMALLER: dict[str, Callable[[Any], Any]] = {"leases": lambda found: found[:SHOWN], "reasons": _reasons}
"""Lists that would be long: what a model acts on."""


async def resource(uri: str, ask: Ask) -> types.ReadResourceResult:
    """Read a resource. Raises MCPError where there is no such one, or it may not be read."""
    kind, _, name = uri.removeprefix(SCHEME).partition("/")
    if not uri.startswith(SCHEME) or kind not in PATHS or bool(name) is not (kind in NAMED):
        raise MCPError(code=types.INVALID_PARAMS, message="there is no such resource")
    answer: Answer = await ask("GET", PATHS[kind] + told.segment(name))
    if not answer.good:
        said = told.refused(answer).body
        raise MCPError(code=types.INVALID_PARAMS, message=f"{said['reason']}: {said['detail']}", data=said)
    body = SMALLER[kind](answer.body) if kind in SMALLER else answer.body
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=JSON, text=text)])


def _argument(name: str, says: str, *, needed: bool = True) -> types.PromptArgument:
    return types.PromptArgument(name=name, description=says, required=needed)


PROMPTS = (
    types.Prompt(
        name="send_one_mail_safely",
        title="Send one mail safely",
        description="Look, take the contact, try, send, give back.",
        arguments=[_argument("to", "Whom to write to."), _argument("about", "What the mail is about.")],
    ),
    types.Prompt(
        name="take_over_a_contact",
        title="Take over a contact",
        description="Wait for a contact that another agent has, and go on from what was written.",
        arguments=[_argument("contact", "Whose contact it is.")],
    ),
)
SAFELY = """Write to {to} about {about}.

1. contact_timeline for {to}. Stop if suppressed. If another agent wrote lately, say so and ask whether to go on.
2. acquire_lease for {to}, for as long as you need to write (1 minute is a good beginning). If it is refused, do what next_action
   says; do not write.
3. Write the mail. If that takes longer than the lease, renew_lease; if that fails, begin again at 1.
4. dry_run with the fencing_token. If ok is false, do what next_action says.
5. send_email with the same arguments and an idempotency_key of your own, such as the step and the person. If you see no answer,
   call it again with the same key.
6. release_lease. Say what was sent, with its request_id, or why not."""
OVER = """Take over the contact {contact} from another agent.

1. contact_timeline for {contact}: what was written, and who has the contact now.
2. acquire_lease for {contact} with wait_seconds 30. While it is refused, wait until `until` and try again, at most three times;
   then tell a person who has it. Never write meanwhile, under no other name either.
3. When you have it: mails of the older holder named in withdrew were stopped. Do not send them again; write anew.
4. Go on as for one mail: dry_run, send_email with the fencing_token, release_lease."""
TEXTS = {"send_one_mail_safely": SAFELY, "take_over_a_contact": OVER}


def prompt(name: str, given: dict[str, Any]) -> types.GetPromptResult:
    """A prompt with its gaps filled. Raises MCPError where there is no such one, or an argument is missing."""
    known = next((one for one in PROMPTS if one.name == name), None)
    if known is None:
        raise MCPError(code=types.INVALID_PARAMS, message="there is no such prompt")
    wanted = [one.name for one in known.arguments or ()]
    missing = [one for one in wanted if not given.get(one)]
    if missing:
        raise MCPError(code=types.INVALID_PARAMS, message=f"missing: {', '.join(missing)}")
    text = TEXTS[name]
    for one in wanted:
        text = text.replace(f"{{{one}}}", str(given[one]))
    content = types.TextContent(type="text", text=text)
    return types.GetPromptResult(
        description=known.description, messages=[types.PromptMessage(role="user", content=content)]
    )
