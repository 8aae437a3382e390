"""One delivery: its states, its table of transitions, what an attempt can come to, and when to try again.

The table is literal (ARCHITECTURE 8): the drawing in the docs is made from it and the store refuses any change of state
that is not in it. Nothing here knows a database or a clock.
"""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Where a delivery stands; `claimed` and `permitted` are shown outside as relaying (SEMANTICS 3)."""

    QUEUED = "queued"
    SCHEDULED = "scheduled"
    HELD = "held"
    CLAIMED = "claimed"
    PERMITTED = "permitted"
    UNKNOWN = "unknown"
    RELAYED = "relayed"
    DELIVERED = "delivered"
    BOUNCED = "bounced"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


IN_FLIGHT = frozenset({State.QUEUED, State.CLAIMED, State.PERMITTED})
"""On its way: closes its contact to other agents until settled (ARCHITECTURE 10)."""

UNSENT = frozenset({State.QUEUED, State.SCHEDULED, State.HELD, State.CLAIMED})
"""No dot has left and none may be on its way: a cancel stops these at once."""

STOPPABLE = frozenset({State.QUEUED, State.CLAIMED})
"""Of these a suppression, a take-over or a pause stops what is not waiting; the rest meets them at its release."""

WAITING = frozenset({State.SCHEDULED, State.HELD})
"""Judged again when it is let go; until then it moves only quotas (law 11)."""

MARKABLE = frozenset({State.PERMITTED, State.UNKNOWN})
"""Cannot be stopped any more, but may be forbidden to go a second time."""

ENDED = frozenset({State.RELAYED, State.DELIVERED, State.BOUNCED, State.BLOCKED, State.CANCELLED, State.EXPIRED})

BORN = frozenset({State.QUEUED, State.SCHEDULED, State.HELD, State.BLOCKED})
"""The states in which the judge at acceptance can leave a new delivery."""

TRANSITIONS: dict[State, dict[State, str]] = {
    State.SCHEDULED: {
        State.QUEUED: "release",
        State.BLOCKED: "release (where suppressed, taken over, ...)",
        State.HELD: "release",
        State.RELAYED: "late reply",
        State.CANCELLED: "cancel",
        State.EXPIRED: "lateness",
    },
    State.HELD: {
        State.QUEUED: "release",
        State.RELAYED: "late reply",
        State.SCHEDULED: "release, where it must still wait",
        State.BLOCKED: "release (where suppressed, taken over, ...)",
        State.CANCELLED: "cancel or reject",
        State.EXPIRED: "lateness",
    },
    State.QUEUED: {
        State.CLAIMED: "worker",
        State.BLOCKED: "suppression, take-over or release",
        State.HELD: "release or pause",
        State.RELAYED: "late reply",
        State.BOUNCED: "given up",
        State.CANCELLED: "cancel",
        State.EXPIRED: "lateness",
    },
    State.CLAIMED: {
        State.PERMITTED: "permit",
        State.RELAYED: "2yz, where the store has lost the permit (fail-over)",
        State.QUEUED: "4yz, given back, or worker dead",
        State.HELD: "pause",
        State.BOUNCED: "5yz or attempts used up",
        State.BLOCKED: "suppression or take-over",
        State.CANCELLED: "cancel",
    },
    State.PERMITTED: {
        State.RELAYED: "2yz",
        State.QUEUED: "4yz, or given back with no byte of the dot sent",
        State.BOUNCED: "5yz or attempts used up",
        State.UNKNOWN: "all else",
        State.BLOCKED: "in place of queued where marked",
        State.CANCELLED: "in place of queued where marked",
    },
    State.UNKNOWN: {
        State.RELAYED: "late reply, evidence or decision",
        State.BOUNCED: "late reply or report",
        State.QUEUED: "retry ordered",
        State.CANCELLED: "person, or in place of queued where marked",
        State.BLOCKED: "in place of queued where marked",
    },
    State.RELAYED: {State.DELIVERED: "report", State.BOUNCED: "report or late reply"},
    State.BLOCKED: dict.fromkeys(sorted(BORN - {State.BLOCKED}), "the same key tried again"),
    State.DELIVERED: {},
    State.BOUNCED: {},
    State.CANCELLED: {},
    State.EXPIRED: {},
}


def allowed(old: State | None, new: State) -> bool:
    """Whether the table has the step; `None` stands for a delivery that is not there yet."""
    if old is None:
        return new in BORN
    return new in TRANSITIONS[old]


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply of the smarthost: code 200 to 599, enhanced status code or "" (RFC 3463), text without codes."""

    code: int
    enhanced: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Relayed:
    """The smarthost said 2yz to the dot."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class Deferred:
    """A plain no for now: 4yz at any stage, a failed connection, or no dot sent for another reason.

    `counts` is false where nothing was tried that should use up an attempt (421 at connect, given back at a stop).
    """

    why: str
    reply: Reply | None = None
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Bounced:
    """A plain no for good: 5yz. `stage` is the command it answered: "mail", "rcpt", "data", "dot", "local"."""

    why: str
    reply: Reply | None = None
    stage: str = "dot"


@dataclass(frozen=True, slots=True)
class Unknown:
    """The dot was begun and no whole, readable reply came (SEMANTICS 5)."""

    why: str


@dataclass(frozen=True, slots=True)
class GivenBack:
    """No byte of the dot has left: the permit was refused, came too late, or the process is stopping."""

    why: str


Outcome = Relayed | Deferred | Bounced | Unknown | GivenBack


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and how long to try. Seconds; `max_attempts` 0 means by time alone (RFC 5321 4.5.4.1)."""

    first: float = 30.0
    longest: float = 3600.0
    give_up: float = 172800.0
    max_attempts: int = 0

    def backoff(self, attempt: int, roll: float) -> float:
        """Seconds to wait after attempt number `attempt` (from 1): doubling, with jitter `roll` in [0, 1).

        The result lies between the step and one and a half of it, never below `first` (greylisting counts on it) and never
        above `longest`; the last step is two thirds of `longest`, so that it has room for the jitter.
        """
        longest = max(self.first, self.longest * 2 / 3)
        step = min(longest, self.first * 2.0 ** min(attempt - 1, 30))
        return step + (min(self.longest, step * 1.5) - step) * roll

    def used_up(self, attempt: int, age: float) -> bool:
        """Whether a delivery is given up after attempt number `attempt` at `age` seconds since acceptance."""
        return age >= self.give_up or (self.max_attempts > 0 and attempt >= self.max_attempts)
