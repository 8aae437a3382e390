"""`agents consensus ...`: votes among agents: ask for them, look at one, vote, list."""

from typing import Annotated

import typer

from gateway.cli import options, printing
from gateway.cli.agents import named
from gateway.cli.answers import objects, when
from gateway.cli.api import Api, part
from gateway.cli.printing import member

PATH = "/v1/agent/coordination/consensus"
PAGE = 200
STYLES = {"approved": "good", "rejected": "bad", "expired": "bad"}

Which = Annotated[
    str, typer.Argument(metavar="CONSENSUS_ID", help="Its id, as `agents consensus create` has printed it.")
]


def create(
    action: Annotated[str, typer.Option("--action", metavar="TEXT", help="What is proposed.")],
    contact_email: Annotated[str, typer.Option("--contact-email", metavar="ADDRESS", help="Whom it is about.")],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why.")],
    agent_id: options.AgentId = None,
    agent_name: options.AgentName = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="MINUTES", help="How long votes are taken; fractions are allowed.")
    ] = 5.0,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Ask the other agents to vote; more than half of those that are active decide. Without a name the key's own agent asks."""
    who = named(agent_id, agent_name)
    members = {"agentId": "requestingAgentId", "agentName": "proposerAgent"}
    body: dict[str, object] = {members[name]: value for name, value in who.items()}
    body |= {"action": action, "contactEmail": contact_email, "reason": reason, "timeoutMinutes": timeout}
    made = Api(url, key, as_json=as_json).ask("POST", PATH, body=body).body
    _told(made, as_json=as_json)


def get(which: Which, url: options.Url = None, key: options.Key = None, as_json: options.Json = False) -> None:
    """Show how a vote stands and what to do: vote, wait, act or stop. Exit code 1: there is none of this id."""
    found = Api(url, key, as_json=as_json).ask("GET", f"{PATH}/{part(which)}").body
    _told(found, as_json=as_json)


def vote(
    which: Which,
    vote: Annotated[str, typer.Option("--vote", metavar="VOTE", help="approve or reject.")],
    agent_id: options.AgentId = None,
    agent_name: options.AgentName = None,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why.")] = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Vote as an agent, in place of its earlier vote; without a name it is the key's own. Exit code 1: the vote is over."""
    if vote not in ("approve", "reject"):
        raise typer.BadParameter("must be approve or reject", param_hint="--vote")
    body: dict[str, object] = {"vote": vote, **named(agent_id, agent_name)}
    body |= {} if reason is None else {"reason": reason}
    got = Api(url, key, as_json=as_json).ask("POST", f"{PATH}/{part(which)}/vote", body=body).body
    if as_json:
        printing.document(got)
        return
    status = member(got, "consensusStatus")
    printing.line(f"voted {member(got, 'vote')}; the consensus is {status}", STYLES.get(str(status), "care"))


def list_all(
    status: Annotated[
        str | None, typer.Option("--status", metavar="STATUS", help="pending, approved, rejected or expired.")
    ] = None,
    contact_email: Annotated[
        str | None, typer.Option("--contact-email", metavar="ADDRESS", help="Whom it is about.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=PAGE, help=f"How many at most, up to {PAGE}.")
    ] = 50,
    cursor: Annotated[
        str | None, typer.Option("--cursor", metavar="CURSOR", help="Go on where the list before has ended.")
    ] = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """List votes, newest first; where there are more, the cursor to go on with is told on stderr."""
    asked = {"status": status, "contactEmail": contact_email, "limit": str(limit), "cursor": cursor}
    query = {name: value for name, value in asked.items() if value is not None}
    found = Api(url, key, as_json=as_json).ask("GET", PATH, query=query).body
    if as_json:
        printing.document(found)
        return
    fields = ("id", "status", "action", "contactEmail", "approve", "reject", "timeoutAt")
    rows = [tuple(one.get(field) for field in fields) for one in objects(member(found, "items"))]
    printing.table(("consensus", "status", "action", "contact", "for", "against", "until"), rows)
    if member(found, "nextCursor") is not None:
        printing.note(f"there are more: --cursor {member(found, 'nextCursor')}")


def _told(found: object, *, as_json: bool) -> None:
    if as_json:
        printing.document(found)
        return
    status = str(member(found, "status"))
    printing.line(f"{member(found, 'action')}: {status}", STYLES.get(status, "care"))
    needed = member(found, "threshold")
    active = "" if needed is None else f" (needed: {needed} of {member(found, 'activeAgents')} active agents)"
    printing.pairs(
        [
            ("consensus", member(found, "id")),
            ("contact", member(found, "contactEmail")),
            ("reason", member(found, "reason")),
            ("asked by", member(found, "requestingAgentId")),
            ("votes", f"{member(found, 'approve')} for, {member(found, 'reject')} against{active}"),
            ("until", when(member(found, "timeoutAt"))),
            ("decided", member(found, "decidedAt")),
            ("next", member(found, "nextAction")),
        ]
    )
