"""The same mail twice, while the first is unknown, is a person's business."""

import pytest

from gateway.core.facts import UnknownsAsk
from gateway.core.mail import Moment
from policies.outstanding import UNKNOWN, Outstanding
from tests.builders import PAT, a_content, a_mail, asked, found

UNKNOWNS = UnknownsAsk(PAT)


@pytest.mark.parametrize("moment", list(Moment))
def test_a_copy_of_an_unknown_mail_is_held(moment: Moment) -> None:
    mail = a_mail(moment=moment, content=a_content(digest="d"))

    (finding,) = found(Outstanding(), mail, {UNKNOWNS: (("r-1", "d"), ("r-2", "d"))})

    assert finding.reason is UNKNOWN
    assert finding.recipient == PAT
    assert finding.extra == {"unknownRequestId": "r-1"}


def test_other_content_is_not_held() -> None:
    assert found(Outstanding(), a_mail(content=a_content(digest="d")), {UNKNOWNS: (("r-1", "e"),)}) == ()


def test_a_mail_is_not_held_by_itself() -> None:
    mail = a_mail(moment=Moment.RELEASE, content=a_content(digest="d"))

    assert found(Outstanding(), mail, {UNKNOWNS: (("r-own", "d"),)}) == ()


def test_a_copy_behind_itself_is_found() -> None:
    mail = a_mail(moment=Moment.RELEASE, content=a_content(digest="d"))

    (finding,) = found(Outstanding(), mail, {UNKNOWNS: (("r-own", "d"), ("r-2", "d"))})

    assert finding.extra == {"unknownRequestId": "r-2"}


def test_the_tenants_own_people_are_not_asked_about() -> None:
    assert asked(Outstanding(), a_mail(internal=[PAT])) == set()
