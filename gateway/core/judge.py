"""The judge: asks all policies for their asks, then for their findings; the strictest finding is the verdict.

A policy that raises, or reads what it did not ask for, yields a temporary refusal that names it (law 4): doubt means
later, never yes. Order is for the eye (law 3).
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

from gateway.core.facts import Accepted, Answers, Ask, Decided, Facts, View, name_of
from gateway.core.mail import Moment, Submission
from gateway.core.verdict import DEFER, PASS, POLICY_ERROR, Decision, Finding, Mode

log = logging.getLogger(__name__)

ALWAYS = frozenset(Moment)
AT_ACCEPTANCE = frozenset({Moment.ACCEPTANCE})


class Policy(Protocol):
    """One rule: says which facts it needs and what is wrong. Frozen; its options are its fields; silence is consent."""

    when: ClassVar[frozenset[Moment]]

    def asks(self, mail: Submission) -> Iterable[Ask[Any]]:
        """Name the facts that `judge` will read."""
        ...

    def judge(self, mail: Submission, facts: Answers) -> Iterable[Finding]:
        """Yield what is wrong with the mail."""
        ...


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table: a policy under its name, how seriously it is taken, and for which kinds and mailboxes.

    `applies_to` holds kinds of mail and ids of mailboxes; empty means all. `overridable` by an operator's word.
    """

    name: str
    policy: Policy
    mode: Mode = Mode.ENFORCE
    applies_to: frozenset[str] = field(default_factory=frozenset)
    overridable: bool = False

    def concerns(self, mail: Submission) -> bool:
        """Whether the policy is asked about this mail at this moment."""
        if self.mode is Mode.OFF or mail.moment not in self.policy.when:
            return False
        if self.overridable and mail.override:
            return False
        return not self.applies_to or not self.applies_to.isdisjoint({mail.kind.value, mail.mailbox})


def for_tenant(rules: Sequence[Rule], required: frozenset[str]) -> Sequence[Rule]:
    """The rules for a tenant that wants those named `required` enforced for all its mail, whatever is usual here."""
    if not required:
        return rules
    return tuple(
        replace(rule, mode=Mode.ENFORCE, applies_to=frozenset[str]()) if rule.name in required else rule
        for rule in rules
    )


@dataclass(frozen=True, slots=True)
class Brief:
    """One mail with the rules that concern it and what each of them asks; `broken` ones failed already while asking."""

    mail: Submission
    asks: dict[str, frozenset[Ask[Any]]]
    broken: frozenset[str]

    @property
    def questions(self) -> frozenset[Ask[Any]]:
        """All asks of all rules."""
        return frozenset[Ask[Any]]().union(*self.asks.values())  # a union of sets hashes nothing again


def brief(mail: Submission, rules: Sequence[Rule]) -> Brief:
    """Collect what the rules need to know about `mail`."""
    asks: dict[str, frozenset[Ask[Any]]] = {}
    broken: set[str] = set()
    for rule in rules:
        if not rule.concerns(mail):
            continue
        try:
            asks[rule.name] = frozenset(rule.policy.asks(mail))
        except Exception:
            log.exception("policy failed while asking", extra={"policy": rule.name, "request": mail.id})
            asks[rule.name] = frozenset()
            broken.add(rule.name)
    return Brief(mail, asks, frozenset(broken))


def judge(case: Brief, rules: Sequence[Rule], facts: Facts, approved: frozenset[str] = frozenset()) -> Decision:
    """Ask every rule that concerns the mail; the decision lists all findings in table order."""
    findings: list[Finding] = []
    for rule in rules:
        if rule.name in case.asks:
            findings += _ask_one(rule, case, facts)
    return Decision(tuple(findings), tuple(case.asks), facts.now, approved)


def _ask_one(rule: Rule, case: Brief, facts: Facts) -> list[Finding]:
    observed = rule.mode is Mode.OBSERVE
    if rule.name not in case.broken:
        try:
            found = list(rule.policy.judge(case.mail, View(facts, case.asks[rule.name])))
            return [f.by(rule.name, observed=observed) for f in found]  # what is no finding breaks here
        except Exception:
            log.exception("policy failed", extra={"policy": rule.name, "request": case.mail.id})
    return [POLICY_ERROR.about(policy=rule.name).by(rule.name, observed=observed)]


def due(mail: Submission, decision: Decision, facts: Facts) -> bool:
    """Whether the mail is in flight from the commit on: let through, and not scheduled for later."""
    return decision.verdict is PASS and (mail.not_before is None or mail.not_before <= facts.now)


def judge_all(cases: Sequence[Brief], rules: Sequence[Rule], facts: Facts) -> list[Decision]:
    """Judge a batch in order; each accepted mail advances the facts for the next (law 2)."""
    decisions: list[Decision] = []
    for case in cases:
        decision = judge(case, rules, facts)
        if decision.verdict < DEFER:
            facts.advance(Accepted(case.mail, due(case.mail, decision, facts), facts.now, name_of(facts, case.mail)))
        facts.note(Decided(case.mail, decision))
        decisions.append(decision)
    return decisions
