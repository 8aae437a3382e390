"""Mail that names a consensus waits for it; a mailbox may demand one."""

from dataclasses import replace

import pytest

from gateway.core.consensus import Status
from gateway.core.facts import ConsensusAnswer, ConsensusAsk, MailboxAsk
from gateway.core.mail import Kind, Moment
from policies import rules
from policies.consensus import PENDING, REJECTED, REQUIRED, Consensus
from tests.builders import OWN_MAILBOX, PAT, a_mail, asked, found, hence

VOTE = ConsensusAsk("vote-1")
OTHER = "other@example.com"
DEMANDING = {MailboxAsk("mailbox-1"): replace(OWN_MAILBOX, require_consensus=True)}


def stands(status: Status | None, contact: str = PAT) -> dict[ConsensusAsk, ConsensusAnswer]:
    return {VOTE: ConsensusAnswer(status, contact, hence(minutes=5))}


def test_a_demanding_mailbox_wants_a_consensus_about_every_recipient() -> None:
    agreed, both = stands(Status.APPROVED), a_mail(to=[PAT], bcc=[OTHER], consensus="vote-1")

    (refused,) = found(Consensus(), both, {**agreed, **DEMANDING})

    assert (refused.reason, refused.extra["consensus"]) == (REQUIRED, "not_all")
    assert found(Consensus(), both, agreed) == ()
    assert found(Consensus(), a_mail(consensus="vote-1"), {**agreed, **DEMANDING}) == ()


def test_who_names_one_asks_for_it_and_for_the_mailbox() -> None:
    assert asked(Consensus(), a_mail(consensus="vote-1")) == {VOTE, MailboxAsk("mailbox-1")}
    assert asked(Consensus(), a_mail()) == {MailboxAsk("mailbox-1")}
    assert asked(Consensus(), a_mail(moment=Moment.RELEASE)) == set()
    assert asked(Consensus(), a_mail(moment=Moment.RELEASE, consensus="vote-1")) == {VOTE}


@pytest.mark.parametrize("moment", list(Moment))
@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (Status.PENDING, PENDING),
        (Status.APPROVED, None),
        (Status.REJECTED, REJECTED),
        (Status.EXPIRED, REQUIRED),
        (None, REQUIRED),
    ],
)
def test_how_it_stands_decides(status: Status | None, reason: object, moment: Moment) -> None:
    findings = found(Consensus(), a_mail(consensus="vote-1", moment=moment), stands(status))

    assert [finding.reason for finding in findings] == ([reason] if reason else [])


def test_an_approval_of_the_hold_names_the_consensus_and_no_time() -> None:
    first, second = (
        found(Consensus(), a_mail(consensus="vote-1"), {VOTE: ConsensusAnswer(Status.PENDING, PAT, hence(minutes=n))})
        for n in (5, 6)
    )

    assert first[0].mark == second[0].mark
    assert "consensusId=vote-1" in first[0].mark


def test_each_use_that_it_cannot_have_is_told_in_its_own_words() -> None:
    unbound = found(Consensus(), a_mail(), DEMANDING)
    unknown = found(Consensus(), a_mail(consensus="vote-1"), stands(None))
    expired = found(Consensus(), a_mail(consensus="vote-1"), stands(Status.EXPIRED))
    other = found(Consensus(), a_mail(consensus="vote-1"), stands(Status.APPROVED, OTHER))

    findings = [*unbound, *unknown, *expired, *other]
    assert {finding.reason for finding in findings} == {REQUIRED}
    assert [finding.extra["consensus"] for finding in findings] == ["none", "unknown", "expired", "other_contact"]
    assert len({finding.text for finding in findings}) == 4


@pytest.mark.parametrize("role", ["to", "cc", "bcc"])
def test_it_may_be_about_any_of_the_contacts(role: str) -> None:
    mail = a_mail(**{"to": [PAT], role: [OTHER], "consensus": "vote-1"})

    assert found(Consensus(), mail, stands(Status.APPROVED, OTHER)) == ()


def test_where_all_are_the_tenants_own_people_it_is_about_one_of_them() -> None:
    mail = a_mail(internal=[PAT], consensus="vote-1")

    assert found(Consensus(), mail, stands(Status.APPROVED)) == ()
    assert [f.reason for f in found(Consensus(), mail, stands(Status.APPROVED, OTHER))] == [REQUIRED]


def test_a_demand_binds_outreach_and_replies_to_contacts_at_acceptance() -> None:
    for kind in (Kind.OUTREACH, Kind.REPLY):
        assert [f.reason for f in found(Consensus(), a_mail(kind=kind), DEMANDING)] == [REQUIRED]
    for free in (a_mail(kind=Kind.TRANSACTIONAL), a_mail(internal=[PAT]), a_mail(moment=Moment.RELEASE)):
        assert found(Consensus(), free) == ()


def test_an_operators_word_does_not_replace_it() -> None:
    (rule,) = (rule for rule in rules() if rule.name == "consensus")

    assert rule.concerns(a_mail(override="the customer is on the phone"))
