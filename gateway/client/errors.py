"""What can go wrong when the gateway is asked, as classes; each says what to do next where the gateway said so.

Their names have no Error at the end: they are the gateway's own words, and read well behind `except`.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from gateway.client.shape import Holder, Json

Way = Literal["unreached", "late", "broken"]

REFUSED_FROM = 400
UNAVAILABLE_FROM = 500


def moment(text: object) -> datetime | None:
    """A time of the wire, or `None` where it is none."""
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


class GatewayError(Exception):
    """Something was not done. `status` is the HTTP status (0 without an answer), `slug` the gateway's word for it.

    `message` is its sentence and `body` all that it said; `idempotency_key` is the key that the request carried, and
    `retry_after` the seconds after which it may be asked again, where the gateway said so.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        body: Mapping[str, Any] | None = None,
        key: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        """Keep what was said."""
        super().__init__(message)
        self.message = message
        self.status = status
        self.body: Json = dict(body or {})
        self.idempotency_key = key
        self.retry_after = retry_after

    def __str__(self) -> str:
        """Status, slug and sentence."""
        first = " ".join(part for part in (str(self.status or ""), self.slug) if part)
        return f"{first}: {self.message}" if first else self.message

    def _text(self, name: str) -> str | None:
        value = self.body.get(name)
        return value if isinstance(value, str) else None

    @property
    def slug(self) -> str:
        """The gateway's word for it; empty where it gave none."""
        return self._text("error") or self._text("reason") or ""

    @property
    def request_id(self) -> str | None:
        """The send that it is about."""
        return self._text("requestId") or self._text("firstRequestId")

    @property
    def next_action(self) -> str | None:
        """What to do now."""
        return self._text("nextAction")

    @property
    def retry_at(self) -> datetime | None:
        """When it may be otherwise."""
        return moment(self.body.get("retryAt"))


class NotSetUp(GatewayError, ValueError):
    """The client has no URL or no key that it can use; `where` says which: url, key or profile."""

    def __init__(self, where: str, message: str) -> None:
        """Keep what is missing or wrong."""
        super().__init__(message)
        self.where = where


class Unreachable(GatewayError):
    """No answer came. `uncertain`: the request may have been carried out; ask again with `idempotency_key`.

    `way` says how it went: unreached (nobody was there), late (no answer in time), broken (the connection broke).
    """

    def __init__(self, way: Way, cause: str, *, url: str, key: str | None = None) -> None:
        """Say whether the outcome is known."""
        first = {"unreached": f"no gateway answers at {url}", "late": f"{url} gave no answer in time"}
        words = f"{first.get(way, f'the connection to {url} broke')} ({cause})"
        if way != "unreached":
            words += "; whether it was carried out is not known"
            words += f": ask with the idempotency key {key}" if key else ""
        super().__init__(words, key=key)
        self.way = way
        self.cause = cause

    @property
    def uncertain(self) -> bool:
        """Whether the request may have been carried out."""
        return self.way != "unreached"


class NotAGateway(GatewayError):
    """What answered does not speak as a gateway does."""


class Unauthorized(GatewayError):
    """The key is none, or is good no longer."""


class Forbidden(GatewayError):
    """The key may not do this."""


class AgentMismatch(Forbidden):
    """The key is bound to another agent."""


class AgentBoundToKey(Forbidden):
    """Another key is bound to that agent."""


class HumanDecisionRequired(Forbidden):
    """Only a person may do this; do not ask again, give them the link."""

    @property
    def decision_id(self) -> str | None:
        """What a person confirms or rejects; `None` where the request could not be kept."""
        return self._text("decisionId")

    @property
    def decision_url(self) -> str | None:
        """Where a person decides."""
        return self._text("decisionUrl")

    @property
    def loosens(self) -> tuple[str, ...]:
        """The controls that it would loosen."""
        found = self.body.get("loosens")
        return tuple(map(str, found)) if isinstance(found, list) else ()


class NotFound(GatewayError):
    """There is no such thing, or not for this key."""


class Invalid(GatewayError):
    """The gateway cannot read the request; nothing was done."""

    def __str__(self) -> str:
        """The sentence, and what is wrong, by field."""
        return "; ".join([super().__str__(), *(f"{name} {why}" for name, why in self.errors.items())])

    @property
    def errors(self) -> dict[str, str]:
        """What is wrong, by field."""
        found = self.body.get("errors")
        said: dict[str, str] = {}
        for one in found if isinstance(found, list) else ():
            if isinstance(one, dict):
                name, why = str(one.get("field")), str(one.get("message"))
                said[name] = f"{said[name]}; {why}" if name in said else why
        return said


class Conflict(GatewayError):
    """It cannot be done in the state that things are in."""


class ConsensusClosed(Conflict):
    """The vote came too late."""


class KeyReused(Conflict):
    """The idempotency key was used for another message before; `request_id` is that one."""


class TooMany(GatewayError):
    """Too many requests; nothing was done."""


class Unavailable(GatewayError):
    """The gateway cannot do it now; of a request that changes something the outcome may not be known."""


# --- what policy refuses ----------------------------------------------------------------------------------------------


class Refused(GatewayError):
    """Policy refuses: `reason` says why, `next_action` what to do, `retry_at` when it may be otherwise."""

    @property
    def reason(self) -> str:
        """The reason's slug."""
        return self._text("reason") or self.slug


class LeaseConflict(Refused):
    """Another agent has the contact; `holder` says who, and until when."""

    @property
    def holder(self) -> Holder:
        """Who has it; a member that the gateway did not say is `None`."""
        found = self.body.get("leaseHolder")
        found = found if isinstance(found, dict) else {}
        wire = {"agent_id": "agentId", "agent_name": "agentName", "kind": "kind", "request_id": "requestId"}
        texts = {name: one for name, said in wire.items() if isinstance(one := found.get(said), str)}
        return Holder(body=found, expires_at=moment(found.get("expiresAt")), **texts)


class StaleToken(Refused):
    """Another agent has had the contact since the token was given."""


class LeaseExpired(Refused):
    """The lease of the token is not alive any more."""


class LeaseLost(LeaseExpired):
    """A lease that was to be kept could not be renewed."""


class Suppressed(Refused):
    """The person must not be mailed, by any agent."""


class Cooldown(Refused):
    """The person was written to a short while ago."""


class LimitExceeded(Refused):
    """A limit is used up until `retry_at`."""


class Held(Refused):
    """The send waits for a person; do not send it again."""


BY_SLUG: dict[str, type[GatewayError]] = {
    "agent_mismatch": AgentMismatch,
    "agent_bound_to_key": AgentBoundToKey,
    "human_decision_required": HumanDecisionRequired,
    "consensus_closed": ConsensusClosed,
    "idempotency_key_reused": KeyReused,
}
BY_STATUS: dict[int, type[GatewayError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: TooMany,
}
BY_REASON: dict[str, type[Refused]] = {
    "lease_conflict": LeaseConflict,
    "stale_fencing_token": StaleToken,
    "lease_expired": LeaseExpired,
    "suppressed": Suppressed,
    "cooldown": Cooldown,
    **dict.fromkeys(("warmup_limit", "domain_throttled", "negative_signal_budget_exceeded"), LimitExceeded),
    **{f"{window}_limit_exceeded": LimitExceeded for window in ("hourly", "daily", "monthly")},
}


def of_answer(status: int, body: Json, *, key: str | None, retry_after: float | None) -> GatewayError:
    """The error that an answer of this status means."""
    message = str(body.get("message") or body.get("detail") or "refused")
    slug = str(body.get("error", ""))
    kind = BY_SLUG.get(slug) or BY_REASON.get(slug) or BY_STATUS.get(status)
    if kind is None:
        kind = Unavailable if status >= UNAVAILABLE_FROM else GatewayError
    return kind(message, status=status, body=body, key=key, retry_after=retry_after)


def of_refusal(status: int, body: Json) -> Refused:
    """The error that an answer means in which policy refuses or holds what was asked."""
    kind = Held if body.get("status") == "pending_approval" else BY_REASON.get(str(body.get("reason")), Refused)
    words = str(body.get("detail") or body.get("nextAction") or "refused")
    key = body.get("idempotencyKey")
    return kind(words, status=status, body=body, key=key if isinstance(key, str) else None)
