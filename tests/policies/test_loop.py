"""An exchange without an end is broken, and automatic answers go to people only."""

import pytest

from gateway.core.facts import Recent, RecentAsk, ThreadAsk
from gateway.core.mail import Kind, Moment
from policies.loop import AUTOMATIC, LOOP, Loop
from tests.builders import NOW, PAT, a_content, a_mail, ago, asked, found, hence

PAIR, THREAD = RecentAsk(PAT, 3600), ThreadAsk("t-1", 3600)


def sent(count: int, mailbox: str = "mailbox-1") -> tuple[Recent, ...]:
    """One mail a minute, up to a minute ago."""
    return tuple(Recent(f"r-{n}", ago(minutes=n), mailbox, Kind.REPLY, b"", "") for n in range(count, 0, -1))


@pytest.mark.parametrize("moment", list(Moment))
def test_between_two_there_is_room_for_so_many_mails_in_an_hour(moment: Moment) -> None:
    mail = a_mail(moment=moment)

    assert found(Loop(pair=3), mail, {PAIR: sent(2)}) == ()
    (finding,) = found(Loop(pair=3), mail, {PAIR: sent(4)})

    assert finding.reason is LOOP
    assert finding.recipient == PAT
    assert finding.until == hence(minutes=57)  # then two of them are younger than an hour
    assert finding.extra == {"loopOf": f"mailbox-1 {PAT}", "used": 4, "limit": 3, "windowSeconds": 3600}


def test_mail_of_another_mailbox_is_another_pair() -> None:
    assert found(Loop(pair=1), a_mail(), {PAIR: sent(5, "mailbox-2")}) == ()


def test_the_tenants_own_people_are_counted_too() -> None:
    (finding,) = found(Loop(pair=1), a_mail(internal=[PAT]), {PAIR: sent(1)})

    assert finding.recipient == PAT


def test_a_thread_is_counted_whoever_its_mail_goes_to() -> None:
    mail = a_mail(thread="t-1")
    pairs = tuple((f"r-{n}", ago(minutes=n)) for n in (3, 2, 1))

    assert found(Loop(thread=4), mail, {THREAD: pairs}) == ()
    (finding,) = found(Loop(thread=3), mail, {THREAD: pairs})

    assert finding.recipient is None
    assert finding.until == hence(minutes=57)
    assert finding.extra["loopOf"] == "thread t-1"


def test_mail_that_waited_counts_what_set_out_before_it() -> None:
    mail = a_mail(moment=Moment.RELEASE, since=ago(minutes=2), thread="t-1")
    pairs = (("r-2", ago(minutes=2)), ("r-1", ago(minutes=1)))

    assert found(Loop(pair=1, thread=1), mail, {PAIR: sent(2)[:0] + sent(1), THREAD: pairs}) == ()
    assert len(found(Loop(pair=1, thread=1), mail, {PAIR: sent(3), THREAD: (("r-3", ago(minutes=3)),)})) == 2


def test_a_mail_that_leaves_later_is_counted_then() -> None:
    assert found(Loop(pair=1), a_mail(not_before=hence(minutes=59)), {PAIR: sent(1)}) == ()


@pytest.mark.parametrize("policy", [Loop(pair=0, thread=0), Loop(seconds=0)])
def test_without_limits_nothing_is_asked(policy: Loop) -> None:
    assert asked(policy, a_mail(thread="t-1")) == set()
    assert found(policy, a_mail(thread="t-1"), now=NOW) == ()


def test_a_mail_without_a_thread_asks_about_people_only() -> None:
    assert asked(Loop(), a_mail(cc=["other@example.com"])) == {PAIR, RecentAsk("other@example.com", 3600)}


ANSWERS = [
    {"kind": Kind.REPLY},
    {"content": a_content(in_reply_to="m-1@example.com")},
    {"content": a_content(auto_submitted="auto-replied")},
]
PROGRAMS = [
    "mailer-daemon", "MAILER-DAEMON", "postmaster", "noreply", "no-reply", "no_reply", "donotreply", "do-not-reply",
    "owner-list", "list-request", "list-bounces", "bounce", "bounces+pat=example.com", "majordomo",
]  # fmt: skip


@pytest.mark.parametrize("changes", ANSWERS)
@pytest.mark.parametrize("local", PROGRAMS)
def test_an_automatic_answer_to_a_program_is_refused(local: str, changes: dict[str, object]) -> None:
    (finding,) = found(Loop(), a_mail(to=[f"{local}@example.com"], **changes))  # type: ignore[arg-type]

    assert finding.reason is AUTOMATIC
    assert finding.recipient == f"{local}@example.com".lower()


@pytest.mark.parametrize("local", ["pat", "pat.owner", "request", "norepliant", "owner", "bounced"])
def test_an_answer_to_a_person_is_not(local: str) -> None:
    assert found(Loop(), a_mail(to=[f"{local}@example.com"], kind=Kind.REPLY)) == ()


@pytest.mark.parametrize("local", PROGRAMS)
def test_what_answers_nothing_may_go_to_a_program(local: str) -> None:
    assert found(Loop(), a_mail(to=[f"{local}@example.com"])) == ()
