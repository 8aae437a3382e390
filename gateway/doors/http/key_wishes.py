"""What may be asked for of a key: its scopes and mailboxes in either way of saying it, its limit."""

from typing import Annotated, Any, Literal

from pydantic import Field

from gateway.doors.fields import Name, Part, Shape, Words

Scope = Literal["read", "send", "manage", "operator"]


class MailboxScope(Part):
    """What a key may do in one mailbox; `manage` has the others within it."""

    mailbox_id: Name
    permissions: Annotated[list[Literal["read", "send", "manage"]], Field(min_length=1, max_length=3)] = Field(
        description="What it may do there."
    )


def scope_clashes(given: dict[str, Any]) -> list[tuple[str, str]]:
    """All mailboxes, or some, said in one way; a key has the same scopes in all of them."""
    everything, scoped = given.get("scopeAllMailboxes"), given.get("mailboxScopes")
    some = [name for name in ("mailboxes", "mailboxScopes") if given.get(name) is not None]
    if everything is True and some:
        return [(name, "stands beside scopeAllMailboxes") for name in some]
    if everything is False and not some:
        return [("mailboxes", "is required")]
    if scoped is None:
        return []
    beside = [name for name in ("mailboxes", "scopes") if given.get(name) is not None]
    found = [(name, "mailboxScopes says this") for name in beside]
    items = [one for one in scoped if isinstance(one, dict)] if isinstance(scoped, list) else []
    asked = [one.get("permissions") for one in items]
    if len({frozenset(map(str, one)) for one in asked if isinstance(one, list)}) > 1:
        found.append(("mailboxScopes", "a key has the same permissions in all its mailboxes; make one key for each"))
    return found


Boxes = Annotated[list[Name], Field(min_length=1, max_length=1000)]
Scoped = Annotated[list[MailboxScope], Field(min_length=1, max_length=1000)]
PerMinute = Annotated[int, Field(ge=1, le=1_000_000)]
EACH = "As documented for Molted; the permissions must be the same in all of them."


class KeyRequest(Shape):
    """A key to make."""

    label: Words
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=4, default_factory=lambda: ["read", "send"])]
    mailboxes: Boxes | None = Field(
        None, description="Ids or addresses; without it, all that the caller's own key has."
    )
    mailbox_scopes: Scoped | None = Field(None, description=EACH)
    scope_all_mailboxes: bool | None = None
    agent_name: Name | None = Field(
        None, description="Bind it to this agent, by name or id; without it, to that of the caller's own key, if any."
    )
    transactional: bool = Field(default=False, description="It may send mail that neither holds nor is held.")
    requests_per_minute: PerMinute | None = Field(
        None, description="How many requests it may make in a minute; without it, any number. An operator sets it."
    )

    @classmethod
    def clashes(cls, given: dict[str, Any]) -> list[tuple[str, str]]:
        """All mailboxes, or some."""
        return scope_clashes(given)


class KeyChange(Shape):
    """What becomes of a key; members that are left out stay as they are."""

    label: Words | None = None
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=4)] | None = None
    mailboxes: Boxes | None = Field(None, description="Ids or addresses.")
    mailbox_scopes: Scoped | None = Field(None, description=EACH)
    scope_all_mailboxes: bool | None = None
    transactional: bool | None = Field(None, description="Whether it may send mail that neither holds nor is held.")
    requests_per_minute: PerMinute | None = Field(
        None, description="How many requests it may make in a minute; null takes the limit off. An operator sets it."
    )

    @classmethod
    def clashes(cls, given: dict[str, Any]) -> list[tuple[str, str]]:
        """All mailboxes, or some; something to change."""
        fields = {"label", "scopes", "mailboxes", "mailboxScopes", "scopeAllMailboxes", "transactional"}
        present = {name for name in fields if given.get(name) is not None} | ({"requestsPerMinute"} & given.keys())
        return scope_clashes(given) if present else [("label", "there is nothing to change")]
