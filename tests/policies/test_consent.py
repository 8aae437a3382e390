"""Outreach needs the consent of every contact."""

import pytest

from gateway.core.facts import CONSENT_BASES, ConsentAnswer, ConsentAsk
from gateway.core.mail import Kind, Moment
from gateway.core.verdict import Mode
from policies import rules
from policies.consent import NO_CONSENT, Consent
from tests.builders import PAT, a_mail, asked, found

OTHER = "other@example.com"


@pytest.mark.parametrize("basis", CONSENT_BASES)
def test_every_basis_counts_where_nothing_else_is_said(basis: str) -> None:
    assert found(Consent(), a_mail(), {ConsentAsk(PAT): ConsentAnswer(basis)}) == ()


@pytest.mark.parametrize("moment", list(Moment))
@pytest.mark.parametrize("basis", ["", *CONSENT_BASES])
def test_a_withdrawal_outweighs_every_basis_at_any_time(basis: str, moment: Moment) -> None:
    (finding,) = found(Consent(), a_mail(moment=moment), {ConsentAsk(PAT): ConsentAnswer(basis, withdrawn=True)})

    assert finding.reason is NO_CONSENT
    assert finding.recipient == PAT
    assert finding.extra == {"consent": "withdrawn"}


@pytest.mark.parametrize("role", ["to", "cc", "bcc"])
def test_every_role_is_looked_at(role: str) -> None:
    mail = a_mail(**{"to": [OTHER], role: [PAT]})

    (finding,) = found(Consent(), mail, {ConsentAsk(PAT): ConsentAnswer()})

    assert (finding.recipient, finding.extra) == (PAT, {"consent": "none"})


def test_a_basis_that_is_not_taken_is_named() -> None:
    policy = Consent(bases=("explicit_opt_in",))

    (finding,) = found(policy, a_mail(), {ConsentAsk(PAT): ConsentAnswer("contractual")})

    assert finding.extra == {"consent": "other_basis", "basis": "contractual"}


@pytest.mark.parametrize("kind", [Kind.REPLY, Kind.TRANSACTIONAL])
def test_other_kinds_are_not_asked_about(kind: Kind) -> None:
    assert asked(Consent(), a_mail(kind=kind)) == set()


def test_the_tenants_own_people_are_not_asked_about() -> None:
    assert asked(Consent(), a_mail(to=[PAT, OTHER], internal=[PAT])) == {ConsentAsk(OTHER)}


def test_it_is_off_until_a_setting_says_otherwise() -> None:
    (off,) = (rule for rule in rules() if rule.name == "consent")
    (on,) = (rule for rule in rules({"consent": {"mode": "enforce"}}) if rule.name == "consent")

    assert (off.mode, off.concerns(a_mail())) == (Mode.OFF, False)
    assert (on.mode, on.concerns(a_mail())) == (Mode.ENFORCE, True)


@pytest.mark.parametrize("bases", [[], ["opt_in"], ["explicit_opt_in", "guess"]])
def test_a_basis_that_no_record_can_have_stops_the_start(bases: list[str]) -> None:
    with pytest.raises(ValueError, match=r"policies\.consent: bases must be some of explicit_opt_in, "):
        rules({"consent": {"bases": bases}})
