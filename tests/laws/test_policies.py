"""Law 3: order is for the eye. Law 4: broken means later. Both through the store, beside the pure tests of the core."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from hypothesis import given, settings
from hypothesis import strategies as st

import policies
from gateway.core.delivery import State
from gateway.core.errors import ConflictError
from gateway.core.facts import Answers, Ask, LastContactAsk
from gateway.core.judge import ALWAYS, Rule
from gateway.core.mail import Moment, Submission
from gateway.core.verdict import Finding
from gateway.intake.intake import Intake
from tests.databases import Databases
from tests.laws.plays import OPTIONS, Act, Mail, batches, mails, pasts, play
from tests.world import World, a_world

RULES = policies.rules(OPTIONS)


def rejudging(world: World, rules: Iterable[Rule]) -> Intake:
    """An intake on the world's store that judges by other rules."""
    return Intake(world.store, world.nodes[0].writer, tuple(rules))


@settings(max_examples=10)
@given(past=pasts, batch=batches, order=st.permutations(RULES))
async def test_the_order_of_the_policies_changes_no_verdict(
    databases: Databases, past: list[Act], batch: list[Mail], order: list[Rule]
) -> None:
    async with a_world(databases, OPTIONS) as world:
        await play(world, past)
        usual, other = rejudging(world, RULES), rejudging(world, order)
        for mail in batch:
            ticket = mail.ticket(world)
            try:
                first = usual.preview(ticket)
            except ConflictError:
                continue
            second = other.preview(ticket)

            assert first.record.decision["verdict"] == second.record.decision["verdict"]
            assert [d.state for d in first.record.deliveries] == [d.state for d in second.record.deliveries]
            assert sorted(f["reason"] for f in first.record.decision["findings"]) == sorted(
                f["reason"] for f in second.record.decision["findings"]
            )


@dataclass(frozen=True, slots=True)
class Broken:
    """A policy that fails for some mail: where it asks, where it judges, or by reading what it did not ask for."""

    how: str
    agent: str
    when: ClassVar[frozenset[Moment]] = ALWAYS

    def asks(self, mail: Submission) -> Iterable[Ask[Any]]:
        if self.how == "asks" and mail.agent == self.agent:
            raise RuntimeError("broken")
        return ()

    def judge(self, mail: Submission, facts: Answers) -> Iterable[Finding]:
        if mail.agent != self.agent:
            return []
        if self.how == "judges":
            raise RuntimeError("broken")
        return [facts[LastContactAsk(mail.keys[0])]]  # type: ignore[list-item]


@settings(max_examples=10)
@given(
    past=pasts,
    batch=st.lists(mails, min_size=2, max_size=5),
    how=st.sampled_from(["asks", "judges", "reads"]),
    where=st.integers(0, len(RULES)),
)
async def test_a_broken_policy_means_later_for_the_mail_that_it_is_asked_about_and_nothing_for_others(
    databases: Databases, past: list[Act], batch: list[Mail], how: str, where: int
) -> None:
    async with a_world(databases, OPTIONS) as world:
        await play(world, past)
        broken = Rule("broken", Broken(how, world.agent["a"]))
        intake = rejudging(world, [*RULES[:where], broken, *RULES[where:]])
        tickets = [mail.ticket(world) for mail in batch]

        results = await asyncio.gather(*map(intake.submit, tickets), return_exceptions=True)

        for mail, result in zip(batch, results, strict=True):
            if isinstance(result, ConflictError):
                continue
            assert not isinstance(result, BaseException), result
            findings = [f for f in result.record.decision["findings"] if f["policy"] == "broken"]
            if mail.agent == "a" and not result.replayed:
                assert [(f["reason"], f["verdict"]) for f in findings] == [("policy_error", "defer")]
                assert {d.state for d in result.record.deliveries} == {State.BLOCKED}
            elif not result.replayed:
                assert findings == []
