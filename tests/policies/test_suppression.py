"""The suppressed get nothing, in whatever role."""

import pytest

from gateway.core.facts import SuppressionAnswer, SuppressionAsk
from gateway.core.mail import Kind, Moment
from policies.suppression import SUPPRESSED, Suppression
from tests.builders import PAT, a_mail, asked, found

BOUNCED = SuppressionAnswer("tenant", "hard_bounce")


def test_a_person_who_is_not_on_the_list_gets_mail() -> None:
    assert found(Suppression(), a_mail()) == ()


@pytest.mark.parametrize("moment", list(Moment))
@pytest.mark.parametrize("kind", list(Kind))
def test_a_suppressed_person_gets_no_mail_of_any_kind_at_any_time(kind: Kind, moment: Moment) -> None:
    (finding,) = found(Suppression(), a_mail(kind=kind, moment=moment), {SuppressionAsk(PAT): BOUNCED})

    assert finding.reason is SUPPRESSED
    assert finding.recipient == PAT
    assert finding.extra == {"scope": "tenant", "reasonCode": "hard_bounce"}


@pytest.mark.parametrize("role", ["to", "cc", "bcc"])
def test_every_role_is_looked_at(role: str) -> None:
    mail = a_mail(**{"to": ["other@example.com"], role: [PAT]})

    assert [finding.recipient for finding in found(Suppression(), mail, {SuppressionAsk(PAT): BOUNCED})] == [PAT]


def test_the_tenants_own_people_are_looked_at_too() -> None:
    mail = a_mail(internal=[PAT])

    assert len(found(Suppression(), mail, {SuppressionAsk(PAT): BOUNCED})) == 1


def test_it_asks_for_the_mails_campaign() -> None:
    assert asked(Suppression(), a_mail(campaign="spring")) == {SuppressionAsk(PAT, "spring")}
    assert asked(Suppression(), a_mail()) == {SuppressionAsk(PAT, None)}
