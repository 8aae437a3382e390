"""`adopt ...`: hand a new agent a key of its own: invite it, claim the invitation on its machine, list, take back."""

from typing import Annotated, Any

import typer

from gateway import profile
from gateway.cli import options, printing
from gateway.cli.answers import listed, objects, when
from gateway.cli.api import Api, part
from gateway.cli.printing import clean, member

INVITE = "/v1/agent/adopt/invite"
PENDING = "/v1/agent/adopt/pending"
CLAIM = "/v1/adopt/claim"
DAY = 1440


def invite(
    label: Annotated[
        str, typer.Option("--label", metavar="TEXT", help="What the key is for; the agent's name is made of it.")
    ],
    agent_name: Annotated[
        str | None, typer.Option("--agent-name", metavar="NAME", help="The agent's name, in place of the label.")
    ] = None,
    scopes: Annotated[
        str | None,
        typer.Option("--scopes", metavar="SCOPE,...", help="read, send, manage, operator; read,send without it."),
    ] = None,
    mailbox: Annotated[
        list[str] | None, typer.Option("--mailbox", metavar="ADDRESS", help="Only for this mailbox; may be repeated.")
    ] = None,
    scope_all: Annotated[
        bool,
        typer.Option("--scope-all", help="For all mailboxes; without it and --mailbox, for those of one's own key."),
    ] = False,
    per_minute: Annotated[
        int | None,
        typer.Option(
            "--per-minute",
            metavar="N",
            min=1,
            help="How many requests its key may make in a minute; without it, as many as one's own.",
        ),
    ] = None,
    expires_minutes: Annotated[
        int,
        typer.Option("--expires-minutes", metavar="MINUTES", min=1, max=43_200, help="How long it can be claimed."),
    ] = DAY,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Invite an agent and print the token, this once: who claims it has a key within the reach of one's own."""
    wish: dict[str, Any] = {"agentName": agent_name, "mailboxes": mailbox, "requestsPerMinute": per_minute}
    words = None if scopes is None else [word.strip() for word in scopes.split(",") if word.strip()]
    wish |= {"label": label, "scopes": words, "scopeAllMailboxes": scope_all or None, "expiresMinutes": expires_minutes}
    body = {name: value for name, value in wish.items() if value is not None}
    made = Api(url, key, as_json=as_json).ask("POST", INVITE, body=body).body
    if as_json:
        printing.document(made)
    else:
        _invited(made)


def _invited(made: object) -> None:
    printing.line(member(made, "token"))
    printing.note("this is the token; it is not shown again: the agent runs `gateway adopt claim TOKEN --url URL`", "")
    boxes = "all" if member(made, "scopeAllMailboxes") else listed(member(made, "mailboxes"))
    rows = [("id", member(made, "id")), ("label", member(made, "label")), ("agent", member(made, "agentName"))]
    rows += [("scopes", listed(member(made, "scopes"))), ("mailboxes", boxes)]
    printing.pairs([*rows, ("until", when(member(made, "expiresAt")))])


def claim(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="The invitation's token, ga_inv_...")],
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Make the key of an invitation, bound to an agent of its own, and print it, this once; no key is needed.

    Say where the gateway is that has made the invitation: `gateway adopt claim TOKEN --url URL`. Without --url it is
    GATEWAY_URL (not beside --profile), else the profile's where there is one, else http://127.0.0.1:8080.

    The key is written into the profile, where the other commands find it, unless there is one, or --json is given.
    """
    api = Api(url, token, as_json=as_json)  # the token stands where a key would: there is none yet
    made = api.ask("POST", CLAIM, body={"token": token}, retry="the invitation may have been used up").body
    if as_json:
        printing.document(made)
        return
    printing.line(member(made, "apiKey"))
    printing.note("this is the key; it is not shown again", "")
    kept = _keep(profile.Profile(api.url, clean(member(made, "apiKey"))))
    rows = [
        ("agent", member(made, "agentName")),
        ("agent id", member(made, "agentId")),
        ("key id", member(made, "keyId")),
    ]
    printing.pairs([*rows, ("label", member(made, "label")), ("tenant", member(made, "tenantId")), ("profile", kept)])


def _keep(mine: profile.Profile) -> str | None:
    """Write the profile, where there is none; says so where it does not."""
    if profile.place().exists():
        printing.note(f"there is a profile, {profile.place()}, which is left as it is: keep the key yourself")
        return None
    try:
        return str(profile.write(mine))
    except OSError as error:
        printing.note(
            f"warning: the profile {profile.place()} cannot be written: {error.strerror}; keep the key yourself"
        )
        return None


def pending(url: options.Url = None, key: options.Key = None, as_json: options.Json = False) -> None:
    """List the invitations that can still be claimed, newest first, without their tokens."""
    found = Api(url, key, as_json=as_json).ask("GET", PENDING).body
    if as_json:
        printing.document(found)
        return
    names = ("id", "tokenPrefix", "label", "agentName", "expiresAt")
    rows = [(*(one.get(name) for name in names), listed(one.get("scopes"))) for one in objects(found)]
    printing.table(("id", "token", "label", "agent", "until", "scopes"), rows)


def revoke(
    invite_id: Annotated[str, typer.Argument(metavar="INVITE_ID", help="The invitation's id, inv_...")],
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Take an invitation back that nobody has claimed."""
    gone = Api(url, key, as_json=as_json).ask("DELETE", f"/v1/agent/adopt/{part(invite_id)}").body
    if as_json:
        printing.document(gone)
    else:
        printing.line(f"revoked {member(gone, 'id')}", "good")
