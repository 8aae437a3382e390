"""A script while it is played: which lines are spent, which addresses have been seen, since when a line holds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from gateway.sink.script import Rule, Script


@dataclass(slots=True, eq=False)
class Play:
    """The memory of one server over all its connections; `clock` gives seconds and need only go forward."""

    script: Script
    clock: Callable[[], float]
    _spent: set[int] = field(default_factory=set)
    _seen: set[tuple[int, str]] = field(default_factory=set)
    _since: dict[int, float] = field(default_factory=dict)

    def cue(
        self, session: int, stage: str, nth: int, addresses: Iterable[str] = (), *, peek: bool = False
    ) -> Rule | None:
        """Returns the first line that fits, or None; with `peek` nothing is spent and no address counts as seen."""
        known = tuple(address.casefold() for address in addresses)
        for number, rule in enumerate(self.script.rules):
            if rule.stage == stage and rule.sessions.holds(session) and rule.times.holds(nth):
                if rule.address and rule.address not in known:
                    continue
                if self._fits(number, rule, known, peek=peek):
                    return rule
        return None

    def _fits(self, number: int, rule: Rule, known: tuple[str, ...], *, peek: bool) -> bool:
        if rule.once and number in self._spent:
            return False
        if rule.until is not None and self.clock() - self._since.setdefault(number, self.clock()) >= rule.until:
            return False
        if rule.new and all((number, address) in self._seen for address in known):
            return False
        if not peek:
            self._spent.add(number)
            self._seen.update((number, address) for address in known)
        return True

    def idle(self, session: int) -> Rule | None:
        """Returns the line that says what to do when no command comes."""
        return self.cue(session, "IDLE", 1, peek=True)
