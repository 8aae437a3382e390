"""How far a key reaches: nobody gives away more than their own key can do, and what goes beyond that a person decides."""

from collections.abc import Sequence
from typing import Protocol

from fastapi import Request

from gateway.core.address import AddressError
from gateway.doors.auth import FREE_AGENT, Grant, unauthorized, with_implied
from gateway.doors.http.inlet import reader_of
from gateway.doors.http.key_wishes import MailboxScope
from gateway.doors.refusal import HumanRefusal, Refusal, forbidden, missing
from gateway.store import agents, keys
from gateway.store.agents import Agent
from gateway.store.keys import Key
from gateway.store.tx import Tx

KIND = "api-key"
BEYOND = "this reaches beyond your own key; an operator may do it"
LIMIT = "requestsPerMinute"


class Wish(Protocol):
    """A shape that asks for mailboxes in either way of saying it."""

    @property
    def mailboxes(self) -> list[str] | None:
        """Their ids or addresses."""

    @property
    def mailbox_scopes(self) -> list[MailboxScope] | None:
        """Each with its permissions."""

    @property
    def scope_all_mailboxes(self) -> bool | None:
        """Whether all are meant."""


def unchanged(grant: Grant, key: Key) -> None:
    """Refuse a key that is no longer what it was when it was looked up: a grant is believed for a second, what it gives stays.

    Called under the lock. Raises Refusal.
    """
    if key.status != "active":
        raise unauthorized()
    now = (with_implied(key.scopes), key.mailboxes, key.agent, key.per_minute)
    if now != (grant.scopes, grant.mailboxes, grant.agent, grant.per_minute):
        raise forbidden("human_decision_required", "your own key has just been changed; ask again")


def touchable(key: Key, grant: Grant) -> None:
    """Refuse what only a person may do: to touch a key that is neither the caller's own nor made by it."""
    if "operator" not in grant.scopes and grant.key_id not in (key.id, key.created_by):
        words = "this is neither your own key nor one that it has made; an operator may do it"
        raise HumanRefusal(words, kind=KIND, about=key.id)


def limit_within(grant: Grant, limit: int | None, *, was: int | None, about: str = "new") -> None:
    """Refuse a limit of requests that is weaker than the one that was there, unless a person asks."""
    weaker = was is not None and (limit is None or limit > was)
    if weaker and "operator" not in grant.scopes:
        words = "this loosens the limit of a key; an operator may do it"
        raise HumanRefusal(words, kind=KIND, about=about, loosens=[LIMIT])


def scopes_of(asked: Wish) -> tuple[str, ...]:
    """The scopes that `mailboxScopes` asks for, where it is there."""
    return tuple(dict.fromkeys(asked.mailbox_scopes[0].permissions)) if asked.mailbox_scopes else ()


def boxes_of(request: Request, asked: Wish, grant: Grant) -> tuple[str, ...] | None:
    """The ids of the mailboxes asked for; `None` for all. Raises Refusal."""
    named = asked.mailboxes or [one.mailbox_id for one in asked.mailbox_scopes or ()]
    if not named:
        return None if asked.scope_all_mailboxes else grant.mailboxes
    reader = reader_of(request, grant)
    found: list[str] = []
    for name in named:
        try:
            person = reader.sender(name).key
        except AddressError:
            person = ""
        box = next((box for box in grant.tenancy.mailboxes if name == box.id or person == box.key), None)
        if box is None:
            raise forbidden("mailbox_not_owned", "there is no such mailbox in this tenant")
        found.append(box.id)
    return tuple(dict.fromkeys(found))


def within(
    grant: Grant,
    scopes: frozenset[str],
    boxes: Sequence[str] | None,
    *,
    transactional: bool = False,
    about: tuple[str, str] = (KIND, "new"),
) -> None:
    """Refuse what reaches beyond the caller's own key; `about` is the kind and the id that the refusal names."""
    wider = {
        "scopes": not scopes <= grant.scopes,
        "mailboxes": grant.mailboxes is not None and (boxes is None or not set(boxes) <= set(grant.mailboxes)),
        "transactional": transactional and "operator" not in grant.scopes,
    }
    if any(wider.values()):
        loosens = [name for name, is_wider in wider.items() if is_wider]
        raise HumanRefusal(BEYOND, kind=about[0], about=about[1], loosens=loosens)


def agent_for(tx: Tx, grant: Grant, who: str) -> Agent:
    """The agent to bind a key to: a bound key's own, one that no key answers for, or, for an operator, any."""
    found = agents.find_agent(tx, grant.tenant, who)
    if found is None:
        raise missing("agent_not_found", "there is no such agent")
    if grant.agent not in (None, found.id) and "operator" not in grant.scopes:
        raise HumanRefusal(BEYOND, kind=KIND, about="new", loosens=["agentName"])
    free = found.id == grant.agent or not keys.is_bound(tx, grant.tenant, found.id)
    if not free and "operator" not in grant.scopes:
        raise Refusal(
            403, "agent_bound_to_key", "another key is bound to this agent", agentId=found.id, nextAction=FREE_AGENT
        )
    return found
