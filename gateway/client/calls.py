"""The requests that a client can make, as functions that return them; `verbs` makes methods of both clients from them.

Those about who may do what are in `granting`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Unpack

from gateway.client import shapes
from gateway.client.call import Answer, Call, listed, plain, shaped
from gateway.client.errors import of_refusal
from gateway.client.mail import BatchMail, Config, Mail, in_query, made_key, part, wire
from gateway.client.reading import read
from gateway.client.shape import Json

COORDINATION = "/v1/agent/coordination"
BATCH_MAX = 500
"""Mails in one batch."""
WAIT_MAX = 30
"""The longest that the gateway lets a caller wait for its answer, in seconds."""


# --- who is who -------------------------------------------------------------------------------------------------------


def whoami() -> Call[shapes.Whoami]:
    """Say whose key this is, as which agent it acts, and what it may do."""
    return Call("GET", "/v1/agent/whoami", shaped(shapes.Whoami))


def register(
    agent_name: str, *, role: str = "general", bind_key: bool = False, metadata: Mapping[str, Any] | None = None
) -> Call[shapes.Agent]:
    """Register an agent, or refresh the one of that name; only with `bind_key` this key acts as that agent from now on."""
    body = wire({"agent_name": agent_name, "agent_role": role, "bind_key": bind_key, "metadata": metadata})
    return Call("POST", "/v1/agent/register", shaped(shapes.Agent), body)


def agents() -> Call[list[shapes.Agent]]:
    """List the tenant's agents, oldest first."""
    return Call("GET", "/v1/agent/agents", listed(shapes.Agent))


def heartbeat(*, agent: str | None = None) -> Call[bool]:
    """Mark an agent as active from now on; without a name the key's own."""
    return Call("POST", f"{COORDINATION}/heartbeat", lambda answer: bool(plain(answer)["ok"]), {}, agent=agent)


def config(agent: str) -> Call[Json]:
    """The configuration of an agent, by id."""
    return Call("GET", f"/v1/agent/agents/{part(agent)}/config", plain)


def update_config(agent: str, **changes: Unpack[Config]) -> Call[Json]:
    """Change members of an agent's configuration; the others stay."""
    return Call("PUT", f"/v1/agent/agents/{part(agent)}/config", plain, dict(changes))


# --- leases -----------------------------------------------------------------------------------------------------------


def _leased(answer: Answer) -> shapes.Lease:
    if isinstance(answer.body, dict) and answer.body.get("conflict"):
        raise of_refusal(answer.status, answer.body)
    return read(shapes.Lease, answer.body)


def acquire(
    contact: str,
    *,
    minutes: float = 30,
    intent: str = "general",
    wait_seconds: int = 0,
    override_reason: str | None = None,
    agent: str | None = None,
) -> Call[shapes.Lease]:
    """Take a contact, or extend the lease that one has; raises LeaseConflict where another agent has it.

    With `wait_seconds` (at most 30) it waits in line for as long. `override_reason`: an operator takes it over at once.
    """
    body = wire(
        {
            "contact_email": contact,
            "duration_minutes": minutes,
            "intent": intent,
            "wait_seconds": wait_seconds or None,
            "override_reason": override_reason,
        }
    )
    return Call("POST", f"{COORDINATION}/lease", _leased, body, agent=agent, wait=wait_seconds)


def renew(
    lease_id: str, *, fencing_token: int | None = None, minutes: float = 30, agent: str | None = None
) -> Call[shapes.Renewal]:
    """Keep a lease that is alive, from now on for so many minutes; of one that is not, `renewed` is false, and nothing raised."""
    body = wire({"fencing_token": fencing_token, "duration_minutes": minutes})
    return Call("PUT", f"{COORDINATION}/lease/{part(lease_id)}", shaped(shapes.Renewal), body, agent=agent)


def release(lease_id: str, *, fencing_token: int | None = None, agent: str | None = None) -> Call[shapes.Release]:
    """Give a contact back; of a lease that is alive no longer, `released` is false, and nothing raised."""
    query = in_query({"fencing_token": fencing_token})
    return Call("DELETE", f"{COORDINATION}/lease/{part(lease_id)}", shaped(shapes.Release), query=query, agent=agent)


def leases(*, contact: str | None = None, of_agent: str | None = None) -> Call[list[shapes.Lease]]:
    """List the tenant's leases that are alive, newest first: all, the one on a contact, or those of an agent."""
    query = in_query({"contact_email": contact, "agent": of_agent})
    return Call("GET", f"{COORDINATION}/leases", listed(shapes.Lease), query=query)


# --- mail -------------------------------------------------------------------------------------------------------------


def _sent(answer: Answer) -> shapes.Sent:
    return read(shapes.Sent, answer.body)


def _strictly(answer: Answer) -> shapes.Sent:
    sent = _sent(answer)
    sent.raise_for_refusal()
    return sent


def send(
    to: str | Sequence[str],
    *,
    idempotency_key: str | None = None,
    wait_seconds: int = 0,
    strict: bool = False,
    agent: str | None = None,
    **mail: Unpack[Mail],
) -> Call[shapes.Sent]:
    """Send a mail; what policy says is in the answer, or raised as Refused where `strict`.

    It always carries an idempotency key, made once where none is given, so that it may be repeated and is still one send.
    With `wait_seconds` (at most 30) the answer comes after the relay's first attempt.
    """
    key = idempotency_key or made_key()
    body = wire({"to": to, **mail, "idempotency_key": key})
    headers = {"Prefer": f"wait={wait_seconds}"} if wait_seconds else {}
    read = _strictly if strict else _sent
    path = "/v1/agent/request-send"
    return Call("POST", path, read, body, headers=headers, agent=agent, key=key, wait=wait_seconds)


def dry_run(
    to: str | Sequence[str], *, idempotency_key: str | None = None, agent: str | None = None, **mail: Unpack[Mail]
) -> Call[shapes.Sent]:
    """Say what `send` would answer, and write nothing."""
    body = wire({"to": to, **mail, "idempotency_key": idempotency_key})
    return Call("POST", "/v1/agent/simulate-send", _sent, body, agent=agent)


def batch(
    mails: Sequence[BatchMail], *, dry_run: bool = False, agent: str | None = None, **shared: Unpack[Mail]
) -> Call[shapes.Batch]:
    """Send up to 500 mails in order, each judged like a single one; `shared` is what all of them have in common.

    A mail without an idempotency key gets one. Raises ValueError where there are more.
    """
    if len(mails) > BATCH_MAX:
        raise ValueError(f"a batch has at most {BATCH_MAX} mails, not {len(mails)}")
    keys: Json = {} if dry_run else {"idempotency_key": None}
    items = [wire({**mail, **{name: mail.get(name) or made_key() for name in keys}}) for mail in mails]
    path = "/v1/agent/simulate-batch" if dry_run else "/v1/agent/batch/request-send"
    return Call("POST", path, shaped(shapes.Batch), {**wire(shared), "sends": items}, agent=agent, wait=90)


def request(request_id: str) -> Call[shapes.Sent]:
    """Tell where a send stands."""
    return Call("GET", f"/v1/agent/requests/{part(request_id)}", _sent)


def request_by_key(idempotency_key: str, *, mailbox_id: str | None = None) -> Call[shapes.Sent]:
    """Tell where the send of an idempotency key stands; raises NotFound where there is none: then it was not taken."""
    query = in_query({"idempotency_key": idempotency_key, "mailbox_id": mailbox_id})
    return Call("GET", "/v1/agent/requests", _sent, query=query)


def cancel(request_id: str) -> Call[shapes.Cancellation]:
    """Stop what has not left of a send."""
    return Call("DELETE", f"/v1/agent/sends/{part(request_id)}", shaped(shapes.Cancellation))


def resolve(
    request_id: str,
    decision: Literal["retry", "assume_sent", "cancel", "approve", "reject"],
    *,
    reason: str | None = None,
) -> Call[shapes.Sent]:
    """Decide, as a person with an operator's key, about a send that waits for one."""
    path = f"/v1/agent/requests/{part(request_id)}/resolve"
    return Call("POST", path, _sent, wire({"decision": decision, "reason": reason}), again=False)


def trace(request_id: str) -> Call[Json]:
    """Tell all that was decided about a send, all attempts, and all that happened to it."""
    return Call("GET", f"/v1/ops/trace/{part(request_id)}", plain)


def budget(*, agent: str | None = None, mailbox_id: str | None = None) -> Call[shapes.Budget]:
    """Tell how many recipients were written to in each window, and how many more may be."""
    query = in_query({"agent": agent, "mailbox_id": mailbox_id})
    return Call("GET", "/v1/agent/budget", shaped(shapes.Budget), query=query)


# --- who must not be mailed -------------------------------------------------------------------------------------------


def check_suppression(
    email: str | None = None, *, domain: str | None = None, campaign_id: str | None = None
) -> Call[shapes.Suppression]:
    """Say whether a person or a domain is suppressed; where that is not known it raises Unavailable: do not send."""
    query = in_query({"email": email, "domain": domain, "campaign_id": campaign_id})
    return Call("GET", "/v1/suppressions/check", shaped(shapes.Suppression), query=query)


def add_suppression(
    email: str | None = None,
    *,
    domain: str | None = None,
    reason_code: str = "manual_dnc",
    source: str | None = None,
    campaign_id: str | None = None,
    expires_at: datetime | str | None = None,
) -> Call[Json]:
    """Suppress a person or a domain, for one campaign or for all mail; mail in flight is stopped before this answers."""
    values = {"recipient_email": email, "domain": domain, "reason_code": reason_code, "source": source}
    values |= {"campaign_id": campaign_id, "scope": "campaign" if campaign_id else None}
    return Call("POST", "/v1/suppressions", plain, wire({**values, "expires_at": expires_at}))


# --- votes ------------------------------------------------------------------------------------------------------------


def create_consensus(
    action: str, contact: str, reason: str, *, minutes: float = 5, agent: str | None = None
) -> Call[shapes.Consensus]:
    """Ask the tenant's other agents for their votes, for so many minutes."""
    body = wire({"action": action, "contact_email": contact, "reason": reason, "timeout_minutes": minutes})
    return Call("POST", f"{COORDINATION}/consensus", shaped(shapes.Consensus), body, agent=agent, again=False)


def consensus(consensus_id: str) -> Call[shapes.Consensus]:
    """Tell how a question stands."""
    return Call("GET", f"{COORDINATION}/consensus/{part(consensus_id)}", shaped(shapes.Consensus))


def vote(
    consensus_id: str, vote: Literal["approve", "reject"], *, reason: str | None = None, agent: str | None = None
) -> Call[shapes.Vote]:
    """Vote; another vote of the same agent replaces it. Raises ConsensusClosed where it is too late."""
    body = wire({"vote": vote, "reason": reason})
    return Call("POST", f"{COORDINATION}/consensus/{part(consensus_id)}/vote", shaped(shapes.Vote), body, agent=agent)


# --- what happens -----------------------------------------------------------------------------------------------------


def chosen(events: str | Sequence[str] | None, contact: str | None) -> dict[str, str]:
    """The query that chooses events: types or groups like `send.*`, and a person."""
    types = ",".join([events] if isinstance(events, str) else events or ()) or None
    return in_query({"event_types": types, "contact_email": contact})


def events(
    *,
    since: str | None = None,
    events: str | Sequence[str] | None = None,
    contact: str | None = None,
    limit: int = 100,
) -> Call[shapes.Events]:
    """List events, oldest first, after the one with the id `since`."""
    query = in_query({"since": since, "limit": limit}) | chosen(events, contact)
    return Call("GET", "/v1/agent/events", shaped(shapes.Events), query=query)
