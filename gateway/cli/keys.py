"""`keys ...`: make, list, narrow and revoke API keys. A key's secret is shown when it is made and never again.

They open the store that the settings name, so that a first key, or a new one in place of a lost one, needs no running
gateway; a running one knows the change at once. With a URL or a key, or where there is no store but a profile, they are
HTTP clients like the other commands.
"""

from enum import StrEnum
from typing import Annotated, Any

import typer

from gateway.cli import keystore, options, printing
from gateway.cli.api import Api, part
from gateway.cli.printing import clean, member

SCOPES = ("read", "send", "manage", "operator")
PATH = "/v1/agent/keys"


WhichKey = Annotated[str, typer.Argument(metavar="KEY_ID", help="The key's id, key_...")]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why; it goes into the log of events.")]


class Queued(StrEnum):
    """What becomes of mail that a revoked key has under way."""

    KEEP = "keep"
    CANCEL = "cancel"


def create(
    label: Annotated[str, typer.Option("--label", metavar="TEXT", help="What the key is for.")],
    tenant: options.Tenant = None,
    scopes: Annotated[
        str,
        typer.Option(
            "--scopes", metavar="SCOPE,...", help="read, send, manage (its mailboxes), operator (all, as a person)."
        ),
    ] = "read,send",
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="AGENT", help="Bind it to this agent; in the store, a new one is registered."),
    ] = None,
    mailbox: Annotated[
        list[str] | None,
        typer.Option(
            "--mailbox", metavar="ADDRESS", help="Only for this mailbox; may be repeated. Without it, for all."
        ),
    ] = None,
    transactional: Annotated[
        bool,
        typer.Option(
            "--transactional", help="It may send mail of kind transactional, which neither holds nor is held."
        ),
    ] = False,
    config: options.Config = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Make an API key and print it, this once."""
    wanted = list(dict.fromkeys(word.strip() for word in scopes.split(",") if word.strip()))
    if not wanted or not set(wanted) <= set(SCOPES):
        raise typer.BadParameter(f"must be some of {', '.join(SCOPES)}", param_hint="--scopes")
    wish: dict[str, Any] = {"label": label, "scopes": wanted, "transactional": transactional}
    more = {"agentName": agent, "mailboxes": mailbox, "tenantId": tenant}
    wish |= {name: value for name, value in more.items() if value}
    api = _remote(url, key, config, as_json=as_json)
    made = keystore.create(config, wish) if api is None else api.ask("POST", PATH, body=wish).body
    if as_json:
        printing.document(made)
        return
    printing.line(member(made, "rawKey"))
    printing.note("this is the key; it is not shown again: `gateway profiles add NAME --url URL` keeps it", "")
    boxes = "all" if member(made, "scopeAllMailboxes") else _list(member(made, "mailboxes"))
    rows = [("id", member(made, "id")), ("label", member(made, "label")), ("scopes", _list(member(made, "scopes")))]
    printing.pairs([*rows, ("agent", member(made, "agentId")), ("mailboxes", boxes)])


def list_all(
    tenant: options.Tenant = None,
    config: options.Config = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """List the tenant's keys, oldest first, without their secrets."""
    api = _remote(url, key, config, as_json=as_json)
    query = {"tenantId": tenant} if tenant else None
    found = keystore.listed(config, tenant) if api is None else api.ask("GET", PATH, query=query).body
    if as_json:
        printing.document(found)
        return
    names = ("id", "keyPrefix", "label", "status", "scopes", "agentId", "lastUsedAt")
    rows = [[_list(member(one, n)) if n == "scopes" else member(one, n) for n in names] for one in found]
    printing.table(("id", "prefix", "label", "status", "scopes", "agent", "last used"), rows)


def narrow(
    key_id: WhichKey,
    tenant: options.Tenant = None,
    scopes: Annotated[
        str | None,
        typer.Option("--scopes", metavar="SCOPE,...", help="What is left to it, of read, send, manage, operator."),
    ] = None,
    mailbox: Annotated[
        list[str] | None, typer.Option("--mailbox", metavar="ADDRESS", help="Only for this mailbox; may be repeated.")
    ] = None,
    per_minute: Annotated[
        int | None, typer.Option("--per-minute", metavar="N", min=1, help="How many requests it may make in a minute.")
    ] = None,
    config: options.Config = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Take scopes or mailboxes from a key, or limit it. In the store, and with an operator's key, it can also be widened."""
    wanted = None if scopes is None else list(dict.fromkeys(word.strip() for word in scopes.split(",") if word.strip()))
    if wanted is not None and (not wanted or not set(wanted) <= set(SCOPES)):
        raise typer.BadParameter(f"must be some of {', '.join(SCOPES)}", param_hint="--scopes")
    more = {"scopes": wanted, "mailboxes": mailbox, "requestsPerMinute": per_minute}
    wish = {name: value for name, value in more.items() if value}
    if not wish:
        raise typer.BadParameter("give --scopes, --mailbox or --per-minute")
    api = _remote(url, key, config, as_json=as_json)
    if api is None:
        changed = keystore.changed(config, tenant, key_id, wish)
    else:
        body = wish | ({"tenantId": tenant} if tenant else {})
        changed = api.ask("PATCH", f"{PATH}/{part(key_id)}", body=body).body
    if as_json:
        printing.document(changed)
        return
    printing.line(f"changed {member(changed, 'id')}", "good")
    boxes = "all" if member(changed, "scopeAllMailboxes") else _list(member(changed, "mailboxes"))
    rows = [("scopes", _list(member(changed, "scopes"))), ("mailboxes", boxes)]
    printing.pairs([*rows, ("requests a minute", member(changed, "requestsPerMinute"))])


def revoke(
    key_id: WhichKey,
    tenant: options.Tenant = None,
    queued: Annotated[
        Queued,
        typer.Option(
            "--queued", help="Its mail that has not left: keep leaves it with its agent, cancel stops it as well."
        ),
    ] = Queued.KEEP,
    config: options.Config = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """End a key at once. The tenant's last operator key cannot be revoked."""
    api = _remote(url, key, config, as_json=as_json)
    if api is None:
        gone = keystore.revoked(config, tenant, key_id, cancel_queued=queued is Queued.CANCEL)
    else:
        query = {"queued": queued.value} | ({"tenantId": tenant} if tenant else {})
        gone = api.ask("DELETE", f"{PATH}/{part(key_id)}", query=query).body
    if as_json:
        printing.document(gone)
        return
    printing.line(f"revoked {member(gone, 'id')}", "good")
    printing.pairs([("label", member(gone, "label")), ("cancelled", _list(member(gone, "cancelled")))])


def bind(
    key_id: WhichKey,
    agent_id: options.AgentId = None,
    agent_name: options.AgentName = None,
    reason: Reason = None,
    tenant: options.Tenant = None,
    config: options.Config = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Let a key act as an agent from now on, whatever it acted as before. Several keys may act as one agent."""
    if (agent_id is None) == (agent_name is None):
        raise typer.BadParameter("name the agent, by --agent-id or by --agent-name", param_hint="--agent-name")
    wish = {"agentId": agent_id, "agentName": agent_name, "reason": reason}
    wish = {name: value for name, value in wish.items() if value is not None}
    api = _remote(url, key, config, as_json=as_json)
    if api is None:
        done = keystore.bound(config, tenant, key_id, wish)
    else:
        body = wish | ({"tenantId": tenant} if tenant else {})
        done = api.ask("POST", f"{PATH}/{part(key_id)}/bind", body=body).body
    if as_json:
        printing.document(done)
        return
    printing.line(f"{member(done, 'id')} acts as {member(done, 'agentId')}", "good")
    printing.pairs([("label", member(done, "label")), ("binding", member(done, "apiKeyBinding"))])


def unbind(
    key_id: WhichKey,
    reason: Reason = None,
    tenant: options.Tenant = None,
    config: options.Config = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Let a key act as no agent from now on; its mail that is under way stays with its agent."""
    api = _remote(url, key, config, as_json=as_json)
    wish = {"reason": reason} if reason else {}
    if api is None:
        done = keystore.bound(config, tenant, key_id, wish)
    else:
        query = wish | ({"tenantId": tenant} if tenant else {})
        done = api.ask("DELETE", f"{PATH}/{part(key_id)}/bind", query=query).body
    if as_json:
        printing.document(done)
        return
    was = "acts as no agent any more" if member(done, "unbound") else "acted as no agent"
    printing.line(f"{member(done, 'id')} {was}", "good")


def _remote(url: str | None, key: str | None, config: str | None, *, as_json: bool) -> Api | None:
    """The gateway to ask over HTTP, or `None` where the store is here."""
    if url is not None or key is not None or keystore.elsewhere(config):
        return Api(url, key, as_json=as_json)
    return None


def _list(found: object) -> str:
    return ",".join(clean(one) for one in found) if isinstance(found, list | tuple) else clean(found)
