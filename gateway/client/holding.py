"""A lease that is held while a block runs: when it is due to be renewed, and whether it is lost."""

from contextvars import ContextVar
from datetime import datetime

from gateway.client.call import Call
from gateway.client.calls import release, renew
from gateway.client.errors import Forbidden, GatewayError, Invalid, LeaseLost, NotFound, Unauthorized
from gateway.client.shapes import Lease, Release, Renewal

SHORTEST = 0.5
"""Seconds between two tries to renew a lease."""
FOR_GOOD = (Forbidden, Invalid, NotFound, Unauthorized)

held: ContextVar[tuple["Hold", ...]] = ContextVar("held", default=())
"""The leases of the blocks that this thread or task is in."""


class Hold:
    """A lease that is held; `token` goes with every send under it, and raises LeaseLost once the lease is lost."""

    def __init__(self, lease: Lease, minutes: float, agent: str | None, began: float) -> None:
        """Hold a lease that was asked for at `began`, in seconds of the clock that is used for all of this."""
        self._lease = lease
        self._minutes = minutes
        self._agent = agent
        self._renewed = began
        self._until: datetime = lease.expires_at
        self._lost: LeaseLost | None = None

    @property
    def lease(self) -> Lease:
        """The lease as it was acquired."""
        return self._lease

    @property
    def expires_at(self) -> datetime:
        """Until when it is known to be alive, by the gateway's clock."""
        return self._until

    @property
    def token(self) -> int:
        """The fencing token. Raises LeaseLost."""
        self.check()
        return self._lease.fencing_token

    @property
    def lost(self) -> bool:
        """Whether it could not be renewed."""
        return self._lost is not None

    def check(self) -> None:
        """Raise LeaseLost where it could not be renewed."""
        if self._lost is not None:
            raise self._lost

    def wait(self, now: float) -> float:
        """Seconds until it is to be renewed: at half of its time, then at half of what is left."""
        ends = self._renewed + self._minutes * 60
        half = self._renewed + self._minutes * 30
        return max(half - now if now < half else (ends - now) / 2, SHORTEST)

    def renewal(self) -> Call[Renewal]:
        """The request that renews it."""
        return renew(self._lease.id, fencing_token=self._lease.fencing_token, minutes=self._minutes, agent=self._agent)

    def renewed(self, done: Renewal, began: float) -> None:
        """Take the answer of a renewal that was asked for at `began`."""
        if done.renewed:
            self._renewed, self._until = began, done.expires_at or self._until
        else:
            self._lose(
                f"the lease on {self._lease.contact_email} was not renewed: {done.reason}",
                done.reason,
                done.next_action,
            )

    def failed(self, error: GatewayError, now: float) -> None:
        """Take an error: it is lost where asking again is of no use, or its time is over."""
        if isinstance(error, FOR_GOOD) or now >= self._renewed + self._minutes * 60:
            self._lose(f"the lease on {self._lease.contact_email} could not be renewed: {error}", "lease_expired")

    def _lose(self, words: str, reason: str | None, then: str | None = None) -> None:
        action = then or "acquire again, then check again"
        body = {"reason": reason or "lease_expired", "nextAction": action, "contactEmail": self._lease.contact_email}
        self._lost = LeaseLost(words, body=body)

    def giving_back(self) -> Call[Release]:
        """The request that gives it back."""
        return release(self._lease.id, fencing_token=self._lease.fencing_token, agent=self._agent)


def enter(hold: Hold) -> None:
    """The block that holds this begins."""
    held.set((*held.get(), hold))


def leave(hold: Hold) -> None:
    """The block that held this has ended."""
    held.set(tuple(one for one in held.get() if one is not hold))


def check() -> None:
    """Raise LeaseLost where a lease that this block is to hold is lost."""
    for hold in held.get():
        hold.check()
