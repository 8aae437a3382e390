"""The race between an agent who takes a contact over by an operator's word and the retry of its former holder's mail.

The smarthost puts every first mail to a person off (4yz). At about the time at which it is tried again, the contact is taken
over with a reason: either the retry has its permit by then, or it never goes. Each round aims a little earlier where the
retry was first, a little later where it was not, so that both come close to each other and each is first at times; as long
as it is the same one, by twice as much each time.
"""

from dataclasses import dataclass, field

from tests.faults.agent import now
from tests.faults.conftest import Place
from tests.faults.meetings import described
from tests.faults.stage import Order
from tests.faults.test_races import Arena, acquire, an_arena, renew, send, told
from tests.history import SLACK, Call, moment

GREY = 'RCPT NEW "450 4.7.1 Greylisted"'
STEP = 0.02
"""Seconds by which a round aims differently from the one before, once it has been on both sides."""

FURTHEST = 0.32


@dataclass
class Aim:
    """By how many seconds the take-over begins after the time of the retry; who was told what, by person."""

    after: float = 0.0
    step: float = STEP
    taken: dict[str, tuple[str, Call]] = field(default_factory=dict)
    _later: bool | None = None

    def correct(self, *, later: bool) -> None:
        """Aim later the next time, or earlier."""
        self.step = min(self.step * 2, FURTHEST) if later == self._later else STEP
        self.after += self.step if later else -self.step
        self._later = later


async def override(arena: Arena, aim: Aim, person: str) -> None:
    """The former holder's mail goes or the new one's, as the answer to the take-over says; never both."""
    stage, (one, two) = arena.stage, arena.both()
    old = told(await stage.one(acquire(one, person)))
    sent = told(await stage.one(send(one, person, f"old-{person}", old["fencingToken"], prefer="wait=20")))
    assert sent["status"] == "deferred", sent
    left = (moment(sent["nextAttemptAt"]) - now()) / 1_000_000 + aim.after
    body = {"contactEmail": person, "durationMinutes": 10, "overrideReason": "the other one is stuck"}
    shifts = [max(0.0, left + arena.dice.uniform(0, STEP)) for _ in range(2)]

    taking, kept = await stage.together(Order(two, "acquire", body, late=shifts[0]), renew(one, old, late=shifts[1]))
    taken = told(taking)
    good = await stage.one(send(two, person, f"new-{person}", taken["fencingToken"]))
    late = await stage.one(send(one, person, f"late-{person}", old["fencingToken"]))

    withdrawn = taken.get("withdrew", [])
    assert taken["fencingToken"] > old["fencingToken"]
    assert withdrawn in ([], [sent["requestId"]])
    assert good.accepted == bool(withdrawn), (taken, good)
    assert (told(late)["status"], told(late)["reason"]) == ("blocked", "stale_fencing_token")
    assert told(kept)["renewed"] or told(kept)["reason"] == "stale_fencing_token"
    aim.correct(later=bool(withdrawn))
    aim.taken[sent["requestId"]] = "take-over" if withdrawn else "retry", taking
    arena.firsts[aim.taken[sent["requestId"]][0]] += 1


async def test_a_retry_goes_only_by_a_permit_from_before_the_contact_was_taken_over(
    place: Place, seed: int, rounds: int
) -> None:
    aim = Aim()
    async with an_arena(place, seed, {}, script=GREY, retry_first_seconds=1) as arena:
        for number in range(rounds):
            await override(arena, aim, f"pat-{number}@example.net")
        stage = arena.stage
        await stage.drained()

        history = stage.history()
        for request, (first, taking) in aim.taken.items():
            (row,) = history.of_send[request]
            came, permitted = history.count(row), row["permitted_us"]
            assert (row["state"], came) == (("blocked", 0) if first == "take-over" else ("relayed", 1))
            assert not came or (taking.answered is not None and permitted <= taking.answered + SLACK), row
        print(about := described("override", stage.meetings, arena.firsts))  # noqa: T201
        assert set(arena.firsts) == {"take-over", "retry"}, about
        assert stage.judged() == []
