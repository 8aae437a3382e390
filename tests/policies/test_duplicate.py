"""A copy under another key is held, whoever sends it; what is no copy goes."""

from datetime import datetime

import pytest

from gateway.core.facts import Recent, RecentAsk
from gateway.core.mail import Kind, Moment
from gateway.core.sketch import sketch
from policies.duplicate import DUPLICATE, Duplicate
from tests.builders import PAT, a_content, a_mail, ago, asked, found, hence

TEXT = "Hello Pat, the new contract is ready for you to sign."
SAID = sketch("", TEXT, None)
RECENTS = RecentAsk(PAT, 86400)
COPY = a_content(sketch=SAID)


def recent(request: str = "r-1", since: datetime | None = None, **changes: object) -> Recent:
    usual = {"mailbox": "mailbox-2", "kind": Kind.OUTREACH, "sketch": SAID, "answers": ""}
    return Recent(request, since or ago(hours=3), **(usual | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("moment", list(Moment))
def test_a_copy_is_held_and_names_the_first(moment: Moment) -> None:
    mail = a_mail(moment=moment, content=COPY)

    (finding,) = found(Duplicate(), mail, {RECENTS: (recent(), recent("r-2"))})

    assert finding.reason is DUPLICATE
    assert finding.recipient == PAT
    assert finding.extra == {"firstRequestId": "r-1"}


def test_an_approval_names_the_first_request() -> None:
    (finding,) = found(Duplicate(), a_mail(content=COPY), {RECENTS: (recent(),)})

    assert finding.mark == "tried near_duplicate pat@example.com firstRequestId=r-1"


def test_a_request_that_is_judged_again_is_no_copy_of_itself() -> None:
    assert found(Duplicate(), a_mail(content=COPY), {RECENTS: (recent("r-own"),)}) == ()


def test_what_set_out_after_the_mail_is_no_reason_to_hold_it() -> None:
    mail = a_mail(moment=Moment.RELEASE, since=ago(hours=4), content=COPY)

    assert found(Duplicate(), mail, {RECENTS: (recent(),)}) == ()


def test_a_mail_that_leaves_after_the_window_is_no_copy() -> None:
    mail = a_mail(content=COPY, not_before=hence(hours=21))

    assert found(Duplicate(), mail, {RECENTS: (recent(),)}) == ()


def test_mail_of_which_it_is_not_known_how_it_reads_is_never_alike() -> None:
    assert asked(Duplicate(), a_mail()) == set()
    assert found(Duplicate(), a_mail(content=COPY), {RECENTS: (recent(sketch=b""),)}) == ()


def test_transactional_mail_is_neither_held_nor_counted() -> None:
    assert asked(Duplicate(), a_mail(kind=Kind.TRANSACTIONAL, content=COPY)) == set()
    assert found(Duplicate(), a_mail(content=COPY), {RECENTS: (recent(kind=Kind.TRANSACTIONAL),)}) == ()


@pytest.mark.parametrize(("answered", "held"), [("m-1@example.com", True), ("m-2@example.com", False), ("", False)])
def test_a_reply_is_a_copy_only_of_what_answers_the_same(answered: str, held: bool) -> None:
    content = a_content(sketch=SAID, in_reply_to="m-1@example.com")
    mail = a_mail(kind=Kind.REPLY, content=content)

    assert bool(found(Duplicate(), mail, {RECENTS: (recent(answers=answered),)})) is held


def test_the_tenants_own_people_are_not_asked_about() -> None:
    assert asked(Duplicate(), a_mail(internal=[PAT], content=COPY)) == set()


def test_without_a_window_nothing_is_asked() -> None:
    assert asked(Duplicate(seconds=0), a_mail(content=COPY)) == set()


@pytest.mark.parametrize("percent", [0, 101])
def test_a_share_must_be_one(percent: int) -> None:
    with pytest.raises(ValueError, match="percent must be from 1 to 100"):
        Duplicate(percent=percent)
