"""What a run is made of: requests with their answers, arrivals at the sink, rows of the store, leases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from gateway.core.address import parse
from gateway.store.clock import to_us

Row = Mapping[str, Any]
SLACK = 20_000
"""Microseconds by which two clocks of one machine are allowed to differ (SQLite's has milliseconds)."""

TRANSACTION = 5_000_000
"""Microseconds that may lie between an act's time, which it reads first, and its look at what has a permit."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request of an agent: `act` is send, suppress, acquire, renew, release, resolve or cancel.

    `answered`, `status` and `answer` are None where no answer came, `tenant` where the store has only one.
    """

    agent: str
    act: str
    asked: int
    body: Mapping[str, Any]
    answered: int | None = None
    status: int | None = None
    answer: Mapping[str, Any] | None = None
    tenant: str | None = None

    @property
    def accepted(self) -> bool:
        """Whether a send was answered with a receipt for something that will go."""
        return self.act == "send" and self.status == 200 and (self.answer or {}).get("status") != "blocked"

    @property
    def contact(self) -> str:
        """The person key that an acquire or a suppress is about."""
        return key_of(self.body["contactEmail" if self.act == "acquire" else "recipientEmail"])

    @property
    def people(self) -> set[str]:
        """The person keys of those to whom a send is, each of them once."""
        given = [self.body.get(name) or () for name in ("to", "cc", "bcc")]
        return {key_of(one) for some in given for one in ((some,) if isinstance(some, str) else some)}

    @property
    def may_have_done(self) -> bool:
        """Whether it was done, as far as was answered.

        A strict no of a cancel may have stopped a part; a 503 may come after a commit of which nobody knows.
        """
        return self.status in (None, 200, 409, 503)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One mail that the sink took for one recipient."""

    at: int
    to: str
    message_id: str


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows that the checks look at, as the store holds them at the end."""

    sends: Sequence[Row] = ()
    deliveries: Sequence[Row] = ()
    attempts: Sequence[Row] = ()
    decisions: Sequence[Row] = ()
    events: Sequence[Row] = ()

    def tenants(self) -> set[str]:
        """Whose rows there are."""
        return {row["tenant"] for table in fields(self) for row in getattr(self, table.name)}

    def of(self, tenant: str) -> "Rows":
        """The rows of one tenant."""
        return Rows(*([r for r in getattr(self, table.name) if r["tenant"] == tenant] for table in fields(self)))


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken, and where."""

    check: str
    where: str


@dataclass(frozen=True, slots=True)
class Tenure:
    """A lease from its acquisition to the end that is certain, in the store's microseconds."""

    lease: str
    token: int
    agent: str
    start: int
    end: int


def key_of(address: str) -> str:
    """The person key of an address."""
    return parse(address).key


def moment(text: str) -> int:
    """Microseconds since 1970 of a time in an answer."""
    return to_us(datetime.fromisoformat(text))
