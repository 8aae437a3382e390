"""Requests about who may do what: keys, invitations to agents, what a person decides; all others are in `calls`."""

from collections.abc import Sequence
from typing import Literal, TypedDict, Unpack

from gateway.client import granted
from gateway.client.call import Call, listed, shaped
from gateway.client.mail import in_query, part, wire
from gateway.client.reading import camel

Scope = Literal["read", "send", "manage", "operator"]

KEYS = "/v1/agent/keys"
ADOPT = "/v1/agent/adopt"
DECISIONS = "/v1/agent/decisions"


class KeyChange(TypedDict, total=False):
    """What may be changed of a key; `requests_per_minute=None` takes the limit off."""

    label: str
    scopes: Sequence[Scope]
    mailboxes: Sequence[str]
    scope_all_mailboxes: bool
    transactional: bool
    requests_per_minute: int | None


# --- keys -------------------------------------------------------------------------------------------------------------


def create_key(
    label: str,
    *,
    scopes: Sequence[Scope] = ("read", "send"),
    agent_name: str | None = None,
    mailboxes: Sequence[str] | None = None,
    scope_all_mailboxes: bool | None = None,
    transactional: bool = False,
    requests_per_minute: int | None = None,
) -> Call[granted.NewKey]:
    """Make a key within the reach of one's own; its secret is in this answer alone.

    `agent_name` (or an id) is the agent that it is bound to, `mailboxes` (ids or addresses) are those that it is for. What
    reaches beyond one's own key raises HumanDecisionRequired.
    """
    body = wire(
        {
            "label": label,
            "scopes": list(scopes),
            "agent_name": agent_name,
            "mailboxes": mailboxes,
            "scope_all_mailboxes": scope_all_mailboxes,
            "transactional": transactional,
            "requests_per_minute": requests_per_minute,
        }
    )
    return Call("POST", KEYS, shaped(granted.NewKey), body, again=False)


def api_keys() -> Call[list[granted.Key]]:
    """List the tenant's keys, oldest first, revoked ones too."""
    return Call("GET", KEYS, listed(granted.Key))


def change_key(key_id: str, **changes: Unpack[KeyChange]) -> Call[granted.Key]:
    """Narrow a key; what is not named stays. With an operator's key it can also be widened."""
    body = {camel(name): value for name, value in changes.items()}  # None is a value here, as `wire` has it not
    return Call("PATCH", f"{KEYS}/{part(key_id)}", shaped(granted.Key), body)


def revoke_key(key_id: str, *, queued: Literal["keep", "cancel"] = "keep") -> Call[granted.RevokedKey]:
    """End a key at once; `queued="cancel"` stops its mail that has not left as well."""
    return Call("DELETE", f"{KEYS}/{part(key_id)}", shaped(granted.RevokedKey), query={"queued": queued}, again=False)


def bind_key(
    key_id: str, *, agent_name: str | None = None, agent_id: str | None = None, reason: str | None = None
) -> Call[granted.BoundKey]:
    """Let a key act as an agent, named in either way, from now on (an operator's key)."""
    body = wire({"agent_name": agent_name, "agent_id": agent_id, "reason": reason})
    return Call("POST", f"{KEYS}/{part(key_id)}/bind", shaped(granted.BoundKey), body)


def unbind_key(key_id: str, *, reason: str | None = None) -> Call[granted.UnboundKey]:
    """Let a key act as no agent from now on (an operator's key)."""
    query = in_query({"reason": reason})
    return Call("DELETE", f"{KEYS}/{part(key_id)}/bind", shaped(granted.UnboundKey), query=query, again=False)


# --- invitations ------------------------------------------------------------------------------------------------------


def invite(
    label: str,
    *,
    agent_name: str | None = None,
    scopes: Sequence[Scope] = ("read", "send"),
    mailboxes: Sequence[str] | None = None,
    scope_all_mailboxes: bool | None = None,
    requests_per_minute: int | None = None,
    expires_minutes: int = 1440,
) -> Call[granted.NewInvite]:
    """Invite an agent: whoever has the token, which is in this answer alone, makes the agent's own key with it, once.

    Without `agent_name` the agent is called as the label says. What reaches beyond one's own key raises
    HumanDecisionRequired.
    """
    body = wire(
        {
            "label": label,
            "agent_name": agent_name,
            "scopes": list(scopes),
            "mailboxes": mailboxes,
            "scope_all_mailboxes": scope_all_mailboxes,
            "requests_per_minute": requests_per_minute,
            "expires_minutes": expires_minutes,
        }
    )
    return Call("POST", f"{ADOPT}/invite", shaped(granted.NewInvite), body, again=False)


def invites() -> Call[list[granted.Invite]]:
    """List the invitations that can still be claimed, newest first."""
    return Call("GET", f"{ADOPT}/pending", listed(granted.Invite))


def revoke_invite(invite_id: str) -> Call[granted.RevokedInvite]:
    """Take an invitation back that nobody has claimed."""
    return Call("DELETE", f"{ADOPT}/{part(invite_id)}", shaped(granted.RevokedInvite), again=False)


def claim(token: str) -> Call[granted.Claimed]:
    """Make the key of an invitation, once; no key is needed: a client that has none takes the token as its `key`."""
    return Call("POST", "/v1/adopt/claim", shaped(granted.Claimed), {"token": token}, again=False)


# --- what a person decides --------------------------------------------------------------------------------------------


def decisions(
    *,
    status: Literal["pending", "confirming", "confirmed", "rejected", "expired"] | None = None,
    limit: int = 100,
    offset: int = 0,
) -> Call[list[granted.Decision]]:
    """List what waits or has waited for a person, newest first; a key that is no operator's sees what it has asked for."""
    query = in_query({"status": status, "limit": limit, "offset": offset})
    return Call("GET", DECISIONS, listed(granted.Decision), query=query)


def decision(decision_id: str) -> Call[granted.Decision]:
    """Tell what was asked for, and what became of it."""
    return Call("GET", f"{DECISIONS}/{part(decision_id)}", shaped(granted.Decision))


def confirm(decision_id: str, *, reason: str | None = None) -> Call[granted.Decided]:
    """Carry out, as a person with an operator's key, what was asked for; raises Conflict where it cannot be, or waits no more.

    Its answer is the `result`, which may hold a new key's secret, this once.
    """
    return _decide(decision_id, "confirm", reason)


def reject(decision_id: str, *, reason: str | None = None) -> Call[granted.Decided]:
    """Refuse what was asked for; the key that has asked takes it back so."""
    return _decide(decision_id, "reject", reason)


def _decide(decision_id: str, verdict: Literal["confirm", "reject"], reason: str | None) -> Call[granted.Decided]:
    body = wire({"decision": verdict, "reason": reason})
    return Call("POST", f"{DECISIONS}/{part(decision_id)}", shaped(granted.Decided), body, again=False)
