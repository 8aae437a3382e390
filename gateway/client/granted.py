"""What the gateway answers about keys, invitations and what a person decides, as values; `shapes` has all others.

Secrets (`raw_key`, `token`, `api_key`, the `result` of what was confirmed) are in the answer that makes them and nowhere else;
they are not in the text that `repr` makes.
"""

from dataclasses import dataclass, field
from datetime import datetime

from gateway.client.shape import Json, Shape

# --- keys -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Key(Shape):
    """A key without its secret; `status` is active or revoked, `requests_per_minute` `None` where there is no limit."""

    id: str
    label: str
    status: str
    scopes: tuple[str, ...]
    key_prefix: str | None = None
    agent_id: str | None = None
    scope_all_mailboxes: bool = False
    mailboxes: tuple[str, ...] = ()
    transactional: bool = False
    requests_per_minute: int | None = None
    created_by_key_id: str | None = None
    created_at: datetime | None = None
    last_used_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey(Key):
    """A key that has just been made, with its secret, `raw_key`, this once."""

    raw_key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokedKey(Key):
    """A key that has ended; `cancelled` names the sends that were stopped with it."""

    cancelled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundKey(Key):
    """A key that acts as `agent_id`; `api_key_binding` is bound, or already_bound where it did before."""

    api_key_binding: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnboundKey(Key):
    """A key that acts as no agent; `unbound` is false where it did not before either."""

    unbound: bool


# --- invitations ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Invite(Shape):
    """An invitation without its token: what the key of who claims it will do."""

    id: str
    label: str
    status: str
    scopes: tuple[str, ...]
    token_prefix: str | None = None
    scope_all_mailboxes: bool = False
    mailboxes: tuple[str, ...] = ()
    agent_name: str | None = None
    requests_per_minute: int | None = None
    created_by_key_id: str | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewInvite(Invite):
    """An invitation that has just been made, with its `token`, this once."""

    token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokedInvite(Shape):
    """An invitation that was taken back."""

    id: str
    revoked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed(Shape):
    """What a new agent has: its key, `api_key`, this once, which is bound to the agent `agent_id`."""

    api_key: str = field(repr=False)
    key_id: str
    agent_id: str
    agent_name: str
    tenant_id: str | None = None
    label: str | None = None
    scopes: tuple[str, ...] = ()


# --- what a person decides --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Shape):
    """What an agent has asked for and a person decides; `status` is pending, confirming, confirmed, rejected or expired.

    `request` is what was asked: method, path, query and body. `loosens` names the controls that it would loosen. `reason` is
    why it was decided so, where `decision` was asked for one of them.
    """

    id: str
    status: str
    kind: str | None = None
    about: str | None = None
    loosens: tuple[str, ...] = ()
    request: Json = field(default_factory=dict)
    asked_by: str | None = None
    asked_by_key_id: str | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    decided_at: datetime | None = None
    decided_by: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided(Shape):
    """What was decided; `result` is the answer to the request that was confirmed: its HTTP status, and its body."""

    decision_id: str
    status: str
    decision: str | None = None
    result: Json = field(default_factory=dict, repr=False)
