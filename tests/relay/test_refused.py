"""What is refused: plain at every stage before the dot and in a reply to it, with the words that were said."""

from pathlib import Path

import pytest

from gateway.core.delivery import Bounced, Deferred, Relayed, Reply, Unknown
from gateway.relay.attempt import verdict
from tests.relay.ends import ends, every_way, outgoing, serial
from tests.smtp import FIXTURES


@every_way
@pytest.mark.parametrize("pipelined", [True, False])
@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ('MAIL "451 4.7.1 later"', Deferred("451 to MAIL", Reply(451, "4.7.1", "later"))),
        ('MAIL "550 5.7.1 sender refused"', Bounced("550 to MAIL", Reply(550, "5.7.1", "sender refused"), "mail")),
        ('RCPT "421 4.7.0 unexpected volume"', Deferred("421 to RCPT", Reply(421, "4.7.0", "unexpected volume"))),
        ('RCPT "450 try again"', Deferred("450 to RCPT", Reply(450, "", "try again"))),
        ('RCPT "550 5.1.1 no such user"', Bounced("550 to RCPT", Reply(550, "5.1.1", "no such user"), "rcpt")),
        (
            r'RCPT "550-gone\r\n550 5.1.1 no such user"',
            Bounced("550 to RCPT", Reply(550, "5.1.1", "gone\nno such user"), "rcpt"),
        ),
        ('RCPT "552 5.2.2 mailbox full"', Bounced("552 to RCPT", Reply(552, "5.2.2", "mailbox full"), "rcpt")),
        ('DATA "451 4.3.0 no"', Deferred("451 to DATA", Reply(451, "4.3.0", "no"))),
        ('DATA "554 no valid recipients"', Bounced("554 to DATA", Reply(554, "", "no valid recipients"), "data")),
        ('DATA "250 what?"', Deferred("out of step: 250 to DATA", Reply(250, "", "what?"))),
        ('RCPT "354 go"', Deferred("out of step: 354 to RCPT", Reply(354, "", "go"))),
        ('MAIL "334 who?"\nRCPT "550 5.1.1 gone"', Deferred("out of step: 334 to MAIL", Reply(334, "", "who?"))),
        ('RCPT "hello there"', Deferred("unreadable reply: b'hello there\\r\\n'")),
        ('MAIL RAW "25" DROP', Deferred("closed by the smarthost after half a reply: b'25'")),
        ("RCPT DROP", Deferred("closed by the smarthost")),
        ('RCPT "550-5.1.1 gone" DROP', Deferred("closed by the smarthost after half a reply: ... b''")),
    ],
)
async def test_what_is_refused_before_the_body_is_plain_and_asks_no_permit(
    tmp_path: Path, way: str, pipelined: bool, script: str, outcome: Deferred | Bounced
) -> None:
    async with ends(tmp_path, way, script if pipelined else serial(way) + script) as both:
        found = await both.attempt()

    if getattr(outcome, "reply", None) is None:  # TLS and TCP end in words of their own
        assert isinstance(found, Deferred)
        assert found.why.split(":")[0].startswith((outcome.why.split(":")[0], "connection lost"))
    else:
        assert found == outcome
    assert (both.asked, both.sink.data_phases, both.sink.dots) == (0, 0, 0)


@every_way
@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ('DOT "451 4.3.0 local error"', Deferred("451 to DOT", Reply(451, "4.3.0", "local error"))),
        ('DOT "421 4.3.2 going down"', Deferred("421 to DOT", Reply(421, "4.3.2", "going down"))),
        ('DOT "554 5.6.0 content refused"', Bounced("554 to DOT", Reply(554, "5.6.0", "content refused"), "dot")),
        (
            FIXTURES / "dot-refused.txt",
            Bounced("550 to DOT", Reply(550, "5.7.26", "Not authenticated,\nsee the policy of the domain"), "dot"),
        ),
    ],
)
async def test_a_no_to_the_dot_is_plain_and_its_words_are_kept(
    tmp_path: Path, way: str, script: str | Path | None, outcome: Deferred | Bounced
) -> None:
    async with ends(tmp_path, way, script) as both:
        assert await both.attempt() == outcome
        assert (both.asked, both.sink.dots, len(both.sink.mails)) == (1, 1, 0)


@every_way
@pytest.mark.parametrize("script", ["BANNER HANG", "EHLO HANG", "MAIL HANG", "RCPT HANG", "DATA HANG"])
async def test_silence_before_the_dot_is_deferred_in_time(tmp_path: Path, way: str, script: str | Path | None) -> None:
    async with ends(tmp_path, way, script, command_timeout=0.2) as both:
        outcome = await both.attempt()

    assert isinstance(outcome, Deferred)
    assert outcome.counts
    assert "within 0.2 s" in outcome.why
    assert both.sink.dots == 0


async def test_a_tarpit_has_one_deadline_for_a_whole_reply(tmp_path: Path) -> None:
    async with ends(tmp_path, script=FIXTURES / "tarpit.txt", command_timeout=0.3) as both:
        outcome = await both.attempt()

    assert isinstance(outcome, Deferred)
    assert "greeting within 0.3 s" in outcome.why


@every_way
@pytest.mark.parametrize("lines", [20_000, 100_000], ids=["what a kernel can hold", "more than that"])
async def test_a_body_that_is_not_taken_is_deferred_in_time(tmp_path: Path, way: str, lines: int) -> None:
    line = b"x" * 76 + b"\r\n"
    mail = outgoing(body=line * lines, size=len(line) * lines)
    async with ends(tmp_path, way, "BODY WAIT", receive_buffer=16_384, command_timeout=0.3) as both:
        assert await both.attempt(mail) == Deferred("the body was not taken in time")
        assert both.asked == 0


async def test_a_refused_recipient_behind_a_354_gets_no_body_and_no_dot(tmp_path: Path) -> None:
    async with ends(tmp_path, script='RCPT "550 5.1.1 no"\nDATA "354 go on anyway"') as both:
        assert await both.attempt() == Bounced("550 to RCPT", Reply(550, "5.1.1", "no"), "rcpt")
        await both.sink.until(lambda: both.sink.connected == 0)

        assert (both.asked, both.sink.dots) == (0, 0)


@pytest.mark.parametrize("pipelined", [True, False])
async def test_each_of_three_recipients_has_a_fate_of_its_own(tmp_path: Path, pipelined: bool) -> None:
    script = ("" if pipelined else serial()) + (FIXTURES / "rcpt-some.txt").read_text()
    async with ends(tmp_path, script=script) as both:
        names = ("gone@example.com", "pat@example.com", "later@example.com", "odd@example.com")
        outcomes = [await both.attempt(outgoing(recipient=name)) for name in names]

    assert [type(outcome) for outcome in outcomes] == [Bounced, Relayed, Deferred, Bounced]
    assert [mail.recipients for mail in both.sink.mails] == [("pat@example.com",)]
    assert both.sink.sessions == 1


async def test_a_greylisted_mail_is_deferred_once_and_then_relayed_once(tmp_path: Path) -> None:
    async with ends(tmp_path, script=FIXTURES / "greylist.txt") as both:
        outcomes = [await both.attempt() for _ in range(2)]

    assert [type(outcome) for outcome in outcomes] == [Deferred, Relayed]
    assert len(both.sink.mails) == 1


@pytest.mark.parametrize(
    ("script", "counts", "code"),
    [
        ("busy", False, 421),
        ('EHLO "421 4.3.2 busy"', False, 421),
        ("not-allowed", True, 554),
        ('BANNER "hello"', True, None),
        ('BANNER "220 up\\r\\n"\nEHLO DROP', True, None),
        ("BANNER RESET", True, None),
    ],
)
async def test_what_fails_before_mail_is_said_is_deferred_and_never_bounced(
    tmp_path: Path, script: str | Path | None, counts: bool, code: int | None
) -> None:
    path = FIXTURES / f"{script}.txt"
    async with ends(tmp_path, script=path if path.exists() else script) as both:
        outcome = await both.attempt()

    assert isinstance(outcome, Deferred)
    assert outcome.counts is counts
    assert (outcome.reply.code if outcome.reply else None) == code


async def test_a_black_hole_and_a_closed_port_are_deferred_and_the_third_attempt_delivers(tmp_path: Path) -> None:
    async with ends(tmp_path, script=FIXTURES / "black-hole.txt", command_timeout=0.3) as both:
        outcomes = [await both.attempt() for _ in range(3)]

    assert [type(outcome) for outcome in outcomes] == [Deferred, Deferred, Relayed]


@pytest.mark.parametrize("stage", ["mail", "rcpt", "data"])
def test_a_2yz_means_relayed_only_to_the_dot(stage: str) -> None:
    assert verdict(Reply(250), "dot") == Relayed(Reply(250))
    assert verdict(Reply(250), stage) == Unknown(f"250 to {stage.upper()}")
