"""`agents ...`: the registry, and who has which contact: register, heartbeat, lease, renew, release, list."""

import json
from typing import Annotated

import typer

from gateway.cli import options, printing
from gateway.cli.answers import holder, listed, objects, when
from gateway.cli.api import ANSWER_SECONDS, Api, part
from gateway.cli.printing import clean, member

UNBOUND = ("bound_to_other_agent", "agent_has_other_key")
"""Answers to a wish to bind a key that did not come true."""

Lease = Annotated[str, typer.Argument(metavar="LEASE_ID", help="The lease's id, as `agents lease` printed it.")]


def named(agent_id: str | None, agent_name: str | None) -> dict[str, str]:
    """The members that name an agent; none where the key's own agent is meant."""
    if agent_id is not None and agent_name is not None:
        raise typer.BadParameter("name the agent either by --agent-id or by --agent-name", param_hint="--agent-name")
    given = {"agentId": agent_id, "agentName": agent_name}
    return {name: value for name, value in given.items() if value is not None}


def register(
    agent_name: Annotated[
        str, typer.Option("--agent-name", metavar="NAME", help="The agent's name, unique in the tenant.")
    ],
    agent_role: Annotated[
        str, typer.Option("--agent-role", metavar="ROLE", help="What it does, e.g. outbound, inbound, classifier.")
    ] = "general",
    metadata: Annotated[
        str | None, typer.Option("--metadata", metavar="JSON", help="A JSON object that is kept with the agent.")
    ] = None,
    owner: Annotated[
        str | None, typer.Option("--owner", metavar="TEXT", help="Who answers for the agent; without it, as it was.")
    ] = None,
    no_bind_key: Annotated[
        bool,
        typer.Option(
            "--no-bind-key",
            help="Do not bind this API key to the agent (it is bound otherwise, until an operator changes that).",
        ),
    ] = False,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Put an agent into the registry, or refresh the one of that name, and bind this API key to it.

    Where the key cannot be bound, a warning says so on stderr; the agent is registered all the same.
    """
    body: dict[str, object] = {"agentName": agent_name, "agentRole": agent_role, "bindKey": not no_bind_key}
    if owner is not None:
        body["owner"] = owner
    if metadata is not None:
        try:
            body["metadata"] = json.loads(metadata)
        except ValueError:
            raise typer.BadParameter("is not JSON", param_hint="--metadata") from None
    api = Api(url, key, as_json=as_json)
    made = api.ask("POST", "/v1/agent/register", body=body).body
    _warn(api, made)
    if as_json:
        printing.document(made)
        return
    printing.line(f"registered {member(made, 'agentName')}", "good")
    rows = [("id", "id"), ("role", "agentRole"), ("registered", "registeredAt"), ("key", "apiKeyBinding")]
    printing.pairs([(name, member(made, field)) for name, field in rows])


def _warn(api: Api, made: object) -> None:
    """Say what did not become of it; and so where the key that has just been bound to an agent is a person's."""
    binding = member(made, "apiKeyBinding")
    if binding in UNBOUND:
        other = member(made, "boundToAgentId")
        printing.note(f"warning: the key was not bound: {binding}{f' ({clean(other)})' if other else ''}")
    if member(made, "refreshed") is False:
        printing.note("warning: the agent acts by a key of its own, and was left as it was")
    if binding == "bound" and "operator" in (member(api.ask("GET", "/v1/agent/whoami").body, "scopes") or []):
        printing.note(
            "warning: this is an operator's key, and it acts as this agent from now on; "
            "`gateway keys create --agent NAME` makes a key for an agent, `gateway keys unbind` takes this one back"
        )


def list_agents(url: options.Url = None, key: options.Key = None, as_json: options.Json = False) -> None:
    """List the tenant's agents, oldest first."""
    found = Api(url, key, as_json=as_json).ask("GET", "/v1/agent/agents").body
    if as_json:
        printing.document(found)
        return
    fields = ("id", "agentName", "agentRole", "registeredAt", "lastHeartbeat")
    printing.table(("id", "name", "role", "registered", "last heartbeat"), _rows(found, fields))


def get(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent, by id or name.")],
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Show an agent: its role, its owner, when it was last there, to whom it may write."""
    found = Api(url, key, as_json=as_json).ask("GET", f"/v1/agent/agents/{part(agent)}").body
    if as_json:
        printing.document(found)
        return
    printing.line(member(found, "agentName"))
    fields = [("id", "id"), ("role", "agentRole"), ("owner", "owner"), ("registered", "registeredAt")]
    fields += [("last heartbeat", "lastHeartbeat")]
    rows = [(name, member(found, field)) for name, field in fields]
    allowed, metadata = member(found, "allowedRecipientDomains"), member(found, "metadata")
    may = None if allowed is None else listed(allowed) or "nobody"
    printing.pairs([*rows, ("may write to", may), ("metadata", json.dumps(metadata) if metadata else None)])


def heartbeat(
    agent_id: options.AgentId = None,
    agent_name: options.AgentName = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Say that an agent is there; without a name it is the key's own."""
    body = dict[str, object](named(agent_id, agent_name))
    got = Api(url, key, as_json=as_json).ask("POST", "/v1/agent/coordination/heartbeat", body=body).body
    if as_json:
        printing.document(got)
    else:
        printing.line("noted", "good")


def lease(
    contact_email: Annotated[str, typer.Option("--contact-email", metavar="ADDRESS", help="Whom to take.")],
    agent_id: options.AgentId = None,
    agent_name: options.AgentName = None,
    intent: Annotated[str, typer.Option("--intent", metavar="WORD", help="What for, e.g. outbound_sales.")] = "general",
    duration: options.Duration = 30.0,
    wait: Annotated[
        int, typer.Option("--wait", metavar="SECONDS", min=0, max=30, help="Wait in line for it, at most 30 seconds.")
    ] = 0,
    take_over: Annotated[
        str | None,
        typer.Option("--take-over", metavar="REASON", help="Take it at once from whoever has it, as an operator."),
    ] = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Take a contact for an agent, so that no other agent may write to them; extend the lease that it has.

    The fencing token that is printed goes with every send under the lease. Exit code 1: somebody else has the contact.
    """
    body = {"contactEmail": contact_email, "intent": intent, "durationMinutes": duration} | named(agent_id, agent_name)
    body |= ({"waitSeconds": wait} if wait else {}) | ({"overrideReason": take_over} if take_over else {})
    api, seconds = Api(url, key, as_json=as_json), ANSWER_SECONDS + wait
    got = api.ask("POST", "/v1/agent/coordination/lease", body=body, seconds=seconds).body
    conflict = bool(member(got, "conflict"))
    if as_json:
        printing.document(got)
    elif conflict:
        printing.line("refused: lease_conflict", "bad")
        rows = [*holder(member(got, "leaseHolder")), ("try again", when(member(got, "retryAt")))]
        printing.pairs([*rows, ("next", member(got, "nextAction") or "stop; wait for release or hand off")])
    else:
        printing.line(f"{member(got, 'contactEmail')} is leased to {member(got, 'agentName')}", "good")
        withdrew = listed(member(got, "withdrew"))
        rows = [("lease", member(got, "id")), ("fencing token", member(got, "fencingToken"))]
        printing.pairs([*rows, ("until", when(member(got, "expiresAt"))), ("withdrew", withdrew)])
    if conflict:
        raise typer.Exit(1)


def renew_lease(
    lease_id: Lease,
    fencing_token: Annotated[
        int | None,
        typer.Option("--fencing-token", metavar="N", min=1, help="The lease's token; it must be the newest."),
    ] = None,
    duration: options.Duration = 30.0,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Keep a lease that is alive, from now on for the duration. Exit code 1: it is not alive any more."""
    body: dict[str, object] = {"durationMinutes": duration}
    if fencing_token is not None:
        body["fencingToken"] = fencing_token
    path = f"/v1/agent/coordination/lease/{part(lease_id)}"
    got = Api(url, key, as_json=as_json).ask("PUT", path, body=body).body
    renewed = bool(member(got, "renewed"))
    if as_json:
        printing.document(got)
    elif renewed:
        printing.line(f"renewed until {when(member(got, 'expiresAt'))}", "good")
    else:
        printing.line(f"not renewed: {member(got, 'reason')}; {member(got, 'nextAction')}", "bad")
    if not renewed:
        raise typer.Exit(1)


def release_lease(
    lease_id: Lease,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Give a contact back. Exit code 1: there is no such lease any more, or it is not yours."""
    path = f"/v1/agent/coordination/lease/{part(lease_id)}"
    got = Api(url, key, as_json=as_json).ask("DELETE", path).body
    released = bool(member(got, "released"))
    if as_json:
        printing.document(got)
    elif released:
        printing.line("released", "good")
        printing.pairs([("still on its way", listed(member(got, "inFlight")))])
    else:
        printing.line(f"not released: {member(got, 'reason')}", "bad")
    if not released:
        raise typer.Exit(1)


def leases(
    contact_email: Annotated[
        str | None, typer.Option("--contact-email", metavar="ADDRESS", help="Only the one on this contact.")
    ] = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="AGENT", help="Only those of this agent.")] = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """List the leases that are alive, newest first."""
    only = {name: value for name, value in (("contactEmail", contact_email), ("agent", agent)) if value is not None}
    found = Api(url, key, as_json=as_json).ask("GET", "/v1/agent/coordination/leases", query=only).body
    if as_json:
        printing.document(found)
        return
    fields = ("contactEmail", "agentName", "fencingToken", "intent", "expiresAt", "id")
    printing.table(("contact", "agent", "token", "intent", "until", "lease"), _rows(found, fields))


def _rows(found: object, fields: tuple[str, ...]) -> list[tuple[object, ...]]:
    """The members of each object of a list, in order."""
    return [tuple(member(one, field) for field in fields) for one in objects(found)]
