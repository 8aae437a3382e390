"""Votes of agents: when they have decided, and what a mail that waits for them must know of it.

The rule is that of the seed documents (consensus voting). Who votes and when is kept by the store.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from gateway.core.asks import Ask

ACTIVE_SECONDS = 300
"""An agent counts as active while its last heartbeat is less than this old."""
WAITS = "consensus_pending"
"""The reason for which mail is held until the votes have decided."""


class Status(StrEnum):
    """How a consensus stands; only the first can still change."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"


class Vote(StrEnum):
    """What an agent can say."""

    APPROVE = "approve"
    REJECT = "reject"


def threshold(active: int) -> int:
    """How many equal votes decide where so many agents are active: more than half of them, and never none."""
    return active // 2 + 1


def outcome(approvals: int, rejections: int, active: int) -> Status:
    """What the votes come to; all that were cast count, also those of agents that are active no longer.

    So both sides can reach the threshold: the larger one wins then, and an exact tie decides nothing.
    """
    needed = threshold(active)
    if approvals >= needed and approvals > rejections:
        return Status.APPROVED
    if rejections >= needed and rejections > approvals:
        return Status.REJECTED
    return Status.PENDING


def standing(kept: Status, *, late: bool) -> Status:
    """How a consensus stands that is `kept` so: what is still pending when its time has passed is expired at once."""
    return Status.EXPIRED if kept is Status.PENDING and late else kept


def awaited(decision: Mapping[str, Any], approved: Iterable[str]) -> str | None:
    """The id of the consensus that a send depends on, by the document of its last decision.

    `None` where it names none, or where a person has let it pass without: his word (`approved`, the marks of findings)
    outlasts the votes that come later and a time that runs out.
    """
    named: str | None = decision.get("consensus")
    return None if any(WAITS in mark.split(" ")[1:2] for mark in approved) else named


@dataclass(frozen=True, slots=True)
class ConsensusAnswer:
    """A consensus: how it stands, the key of the person that it is about, and when it runs out (UTC).

    `status` is `None` where the tenant has none of this id.
    """

    status: Status | None = None
    contact: str = ""
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class ConsensusAsk(Ask[ConsensusAnswer]):
    """How does this consensus stand, and whom is it about?"""

    consensus: str

    @property
    def subject(self) -> str:
        """The consensus's id."""
        return self.consensus
