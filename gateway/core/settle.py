"""What an attempt's outcome does to its delivery: pure, so that every row of the table can be tried."""

from dataclasses import dataclass
from typing import assert_never

from gateway.core.delivery import Bounced, Deferred, GivenBack, Outcome, Relayed, Reply, Retry, State, Unknown

GAVE_UP = "gave_up"


@dataclass(frozen=True, slots=True)
class Standing:
    """A delivery's row when its attempt comes back; `age` in seconds since acceptance, `forbidden` the mark's reason or ""."""

    state: State
    claim_no: int
    forbidden: str
    attempts: int
    age: float
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class Settlement:
    """The change to make: new state (`None`: only record the reply), attempts, seconds to the next try.

    `stamp` says that the contact counts as contacted now, `suppress` that the address is gone for good (5.1.1 at RCPT).
    """

    state: State | None
    attempts: int
    due_in: float | None = None
    reason: str = ""
    stamp: bool = False
    suppress: bool = False


def reply_of(outcome: Outcome) -> Reply | None:
    """The reply that the outcome rests on, if there was one."""
    return None if isinstance(outcome, Unknown | GivenBack) else outcome.reply


def settle(standing: Standing, claim_no: int, outcome: Outcome, retry: Retry, roll: float) -> Settlement:
    """Decide what `outcome`, reported under `claim_no`, makes of the delivery; `roll` in [0, 1) is the jitter.

    An old claim number changes nothing (law 6). A late reply under the current one settles an unknown as from permitted;
    2yz also ends a retry that was ordered, wherever that waits, 5yz an assumed relayed to bounced; a late 4yz after a decision
    is only recorded (ARCHITECTURE 8).
    """
    nothing = Settlement(None, standing.attempts)
    if claim_no != standing.claim_no:
        return nothing
    match standing.state:
        case State.CLAIMED | State.PERMITTED:
            return _from_taken(standing, outcome, retry, roll)
        case State.UNKNOWN if not isinstance(outcome, Unknown):
            return _from_taken(standing, outcome, retry, roll)
        case State.QUEUED | State.HELD | State.SCHEDULED if isinstance(outcome, Relayed):
            return Settlement(State.RELAYED, standing.attempts, stamp=True)
        case State.RELAYED if standing.assumed and isinstance(outcome, Bounced):
            return Settlement(State.BOUNCED, standing.attempts, reason="bounced")
        case _:
            return nothing


def _from_taken(standing: Standing, outcome: Outcome, retry: Retry, roll: float) -> Settlement:
    tried = standing.attempts + (standing.state is not State.UNKNOWN)  # a late reply belongs to an attempt that counted
    match outcome:
        case Relayed():
            return Settlement(State.RELAYED, tried, stamp=True)
        case Bounced(stage=stage, reply=reply):
            gone = stage == "rcpt" and reply is not None and reply.enhanced == "5.1.1"
            return Settlement(State.BOUNCED, tried, reason="bounced", suppress=gone)
        case Unknown() if standing.state is not State.CLAIMED:
            return Settlement(State.UNKNOWN, tried, reason="unknown", stamp=True)
        case GivenBack() | Unknown():  # a row that is still claimed proves that no permit was given, so no dot has left
            return _again(standing, standing.attempts, 0.0)
        case Deferred(counts=counts):
            attempts = tried if counts else standing.attempts
            if not standing.forbidden and retry.used_up(attempts, standing.age):
                return Settlement(State.BOUNCED, attempts, reason=GAVE_UP)
            return _again(standing, attempts, retry.backoff(max(attempts, 1), roll))
        case _:
            assert_never(outcome)


def _again(standing: Standing, attempts: int, due_in: float) -> Settlement:
    """Back to queued, unless the delivery was forbidden meanwhile."""
    if standing.forbidden:
        state = State.CANCELLED if standing.forbidden == "cancelled" else State.BLOCKED
        return Settlement(state, attempts, reason=standing.forbidden)
    return Settlement(State.QUEUED, attempts, due_in)
