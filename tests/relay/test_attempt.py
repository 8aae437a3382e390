"""One attempt against every kind of smarthost: what it comes to, whether the permit was asked for, whether a dot left."""

import asyncio

import pytest

from gateway.core.delivery import Bounced, Deferred, GivenBack, Relayed, Reply, Unknown
from gateway.relay.attempt import verdict
from tests.relay.ends import ends, every_way, outgoing
from tests.smtp import FIXTURES


def serial(way: str = "plain") -> str:
    """Put before a script it takes PIPELINING away."""
    return 'EHLO "250-up.example.net\\r\\n{}250 8BITMIME"\n'.format("250-STARTTLS\\r\\n" if way == "starttls" else "")


@every_way
async def test_a_mail_is_relayed_in_its_steps_with_its_envelope_and_its_bytes(tmp_path, way):
    async with ends(tmp_path, way) as both:
        outcome = await both.attempt()

    assert outcome == Relayed(Reply(250, "2.0.0", "Taken"))
    assert both.steps == ["body.sent", "permit.committed", "dot.sent", "reply.read"]
    assert both.asked == 1
    (mail,) = both.sink.mails
    assert (mail.envelope_from, mail.recipients) == ("agent@example.com", ("pat@example.net",))
    assert (mail.raw, mail.content) == (outgoing().body, outgoing().body.replace(b"..", b"."))
    assert "MAIL FROM:<agent@example.com> SIZE=26" in both.sink.commands


@every_way
async def test_the_library_s_own_server_takes_it_too_with_a_login(tmp_path, way):
    async with ends(tmp_path, way, None, auth=None if way == "plain" else ("agent", "secret")) as both:
        outcomes = [await both.attempt() for _ in range(3)]

    assert [type(outcome) for outcome in outcomes] == [Relayed] * 3
    assert {mail.session for mail in both.sink.mails} == {1}


@every_way
@pytest.mark.parametrize("reply", ["250 2.0.0 ok", "250-ok\\r\\n250-and\\r\\n250 more", "252 ok", "250"])
async def test_any_whole_2yz_means_relayed(tmp_path, way, reply):
    async with ends(tmp_path, way, f'DOT "{reply}"') as both:
        assert isinstance(await both.attempt(), Relayed)


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
        ('RCPT "552 5.2.2 mailbox full"', Bounced("552 to RCPT", Reply(552, "5.2.2", "mailbox full"), "rcpt")),
        ('DATA "451 4.3.0 no"', Deferred("451 to DATA", Reply(451, "4.3.0", "no"))),
        ('DATA "554 no valid recipients"', Bounced("554 to DATA", Reply(554, "", "no valid recipients"), "data")),
        ('DATA "250 what?"', Deferred("out of step: 250 to a command", Reply(250, "", "what?"))),
        ('RCPT "hello there"', Deferred("unreadable reply: b'hello there\\r\\n'")),
        ('MAIL RAW "25" DROP', Deferred("closed by the smarthost after half a reply: b'25'")),
        ("RCPT DROP", Deferred("closed by the smarthost")),
        ('RCPT "550-5.1.1 gone" DROP', Deferred("closed by the smarthost after half a reply: ... b''")),
    ],
)
async def test_what_is_refused_before_the_body_is_plain_and_asks_no_permit(tmp_path, way, pipelined, script, outcome):
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
async def test_a_no_to_the_dot_is_plain_and_its_words_are_kept(tmp_path, way, script, outcome):
    async with ends(tmp_path, way, script) as both:
        assert await both.attempt() == outcome
        assert (both.asked, both.sink.dots, len(both.sink.mails)) == (1, 1, 0)


@every_way
@pytest.mark.parametrize(
    "script",
    [
        "DOT DROP",
        "DOT RESET",
        "DOT LOSE DROP",
        'DOT RAW "25" DROP',
        'DOT RAW "25\\r\\n"',
        'DOT RAW "250 ok" DROP',
        'DOT "250-ok" DROP',
        'DOT "250-ok\\r\\n550 no"',
        'DOT "999 what"',
        'DOT "2500 ok"',
        'DOT "250ok"',
        'DOT "354 go on"',
        'DOT "hello there"',
        "DOT HANG",
        'DOT RAW "25" HANG',
        'DOT DRIP 0.1 "250 2.0.0 taken slowly"',
    ],
)
async def test_after_the_dot_all_but_a_whole_readable_reply_is_unknown(tmp_path, way, script):
    async with ends(tmp_path, way, script, reply_timeout=0.2) as both:
        outcome = await both.attempt()
        await both.sink.until(lambda: both.sink.dots == 1)

        assert isinstance(outcome, Unknown)
        assert both.asked == 1
        assert both.steps == ["body.sent", "permit.committed", "dot.sent"] or script == 'DOT "354 go on"'
        assert both.pool.resting == 0


async def test_a_reply_without_an_end_is_unknown(tmp_path):
    endless = r"250-and so on\r\n" * 3000
    async with ends(tmp_path, script=f'DOT RAW "{endless}" HANG', reply_timeout=5.0) as both:
        assert await both.attempt() == Unknown("a reply without an end")


async def test_what_follows_a_whole_reply_does_not_undo_it(tmp_path):
    async with ends(tmp_path, script='DOT "250 2.0.0 ok\\r\\n554 no\\r\\nwhat"') as both:
        assert await both.attempt() == Relayed(Reply(250, "2.0.0", "ok"))
        assert await both.attempt() == Relayed(Reply(250, "2.0.0", "ok"))

    assert both.sink.sessions == 2, "such a connection is not used again"


@every_way
async def test_an_early_250_in_the_packet_of_the_354_is_seen_before_the_permit(tmp_path, way):
    async with ends(tmp_path, way, FIXTURES / "early-250-same-packet.txt") as both:
        outcome = await both.attempt()

    assert isinstance(outcome, Deferred)
    assert outcome.why.startswith("unasked: 250")
    assert (both.asked, both.sink.dots) == (0, 0)


@every_way
@pytest.mark.parametrize(
    ("script", "why"),
    [('BODY "250 2.0.0 taken"', "unasked: 250"), ('BODY "421 4.3.2 closing"', "unasked: 421"), ("BODY DROP", "closed")],
)
async def test_what_is_said_while_the_permit_is_asked_for_stops_the_dot(tmp_path, way, script, why):
    async with ends(tmp_path, way, script.replace("BODY", "BODY WAIT")) as both:

        async def permit() -> None:
            await both.sink.until(lambda: both.sink.waiting == 1)
            both.sink.go()
            await both.sink.until(lambda: both.sink.connected == 0 if why == "closed" else both.sink.waiting == 0)

        outcome = await both.attempt(permit=permit)

    assert isinstance(outcome, Deferred)
    assert outcome.why.startswith((why, "connection lost") if why == "closed" else why)
    assert outcome.counts
    assert (both.asked, both.sink.dots, both.sink.mails) == (1, 0, [])


@every_way
async def test_what_has_arrived_but_was_not_read_yet_stops_the_dot_too(tmp_path, way):
    """The loop is held up after the permit, as under load: the 421 lies unread in the kernel when the dot is due."""
    async with ends(tmp_path, way) as both:
        loop = asyncio.get_running_loop()

        async def permit() -> None:
            # The answer of the smarthost's side is written in the same turn of the loop in which the permit ends.
            both.sink.hang_up("421 4.3.2 closing")
            loop.call_soon(lambda: None)

        outcome = await both.attempt(permit=permit)

    assert isinstance(outcome, Deferred)
    assert outcome.reply == Reply(421, "4.3.2", "closing")
    assert both.sink.dots == 0


@every_way
async def test_without_a_permit_no_dot_leaves_and_the_line_is_cut(tmp_path, way):
    async def refuse() -> str:
        return "suppressed"

    async with ends(tmp_path, way) as both:
        assert await both.attempt(permit=refuse) == GivenBack("suppressed")
        await both.sink.until(lambda: both.sink.connected == 0)

        assert (both.sink.data_phases, both.sink.dots, both.pool.resting) == (1, 0, 0)
        assert both.steps == ["body.sent"]


@every_way
async def test_a_permit_that_took_too_long_sends_no_dot(tmp_path, way):
    async with ends(tmp_path, way) as both:

        async def slow() -> None:
            both.now += 5.1

        assert await both.attempt(permit=slow) == GivenBack("late")
        await both.sink.until(lambda: both.sink.connected == 0)

        assert both.sink.dots == 0


async def test_a_pause_between_permit_and_dot_sends_no_dot(tmp_path):
    async with ends(tmp_path) as both:

        async def sleep_through(step: str) -> None:
            if step == "permit.committed":
                both.now += 3600.0

        assert await both.attempt(step=sleep_through) == GivenBack("late")
        assert both.sink.dots == 0


async def test_time_before_the_permit_is_not_counted_against_it(tmp_path):
    async with ends(tmp_path) as both:

        async def slow_body(step: str) -> None:
            if step == "body.sent":
                both.now += 3600.0

        assert isinstance(await both.attempt(step=slow_body), Relayed)


@every_way
@pytest.mark.parametrize(
    ("at", "asked", "dots"),
    [("body.sent", 0, 0), ("permit.committed", 1, 0), ("dot.sent", 1, 1), ("reply.read", 1, 1)],
)
async def test_a_crash_at_a_step_leaves_what_the_failure_matrix_says(tmp_path, way, at, asked, dots):
    class Crash(Exception):
        pass

    async def crash(step: str) -> None:
        if step == at:
            raise Crash

    async with ends(tmp_path, way) as both:
        with pytest.raises(Crash):
            await both.attempt(step=crash)
        await both.sink.until(lambda: both.sink.connected == 0)

        assert (both.asked, both.sink.dots, len(both.sink.mails)) == (asked, dots, dots)


async def test_a_permit_that_raises_cuts_the_line_and_is_heard(tmp_path):
    async def broken() -> None:
        raise LookupError("store")

    async with ends(tmp_path) as both:
        with pytest.raises(LookupError):
            await both.attempt(permit=broken)
        await both.sink.until(lambda: both.sink.connected == 0)

        assert both.sink.dots == 0


async def test_a_cancelled_attempt_cuts_the_line(tmp_path):
    async with ends(tmp_path) as both:
        forever = asyncio.Event()

        async def hang() -> None:
            await forever.wait()

        task = asyncio.create_task(both.attempt(permit=hang))
        await both.sink.until(lambda: both.sink.data_phases == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await both.sink.until(lambda: both.sink.connected == 0)

        assert both.sink.dots == 0


@every_way
@pytest.mark.parametrize("script", ["BANNER HANG", "EHLO HANG", "MAIL HANG", "RCPT HANG", "DATA HANG"])
async def test_silence_before_the_dot_is_deferred_in_time(tmp_path, way, script):
    async with ends(tmp_path, way, script, command_timeout=0.2) as both:
        outcome = await both.attempt()

    assert isinstance(outcome, Deferred)
    assert outcome.counts
    assert "within 0.2 s" in outcome.why
    assert both.sink.dots == 0


async def test_a_tarpit_has_one_deadline_for_a_whole_reply(tmp_path):
    async with ends(tmp_path, script=FIXTURES / "tarpit.txt", command_timeout=0.3) as both:
        outcome = await both.attempt()

    assert isinstance(outcome, Deferred)
    assert "greeting within 0.3 s" in outcome.why


@every_way
async def test_a_big_body_is_gone_before_the_permit_is_asked_for(tmp_path, way):
    """Else the dot would stand behind megabytes when its time is counted."""
    line = b"x" * 76 + b"\r\n"
    mail = outgoing(body=line * 20_000, size=len(line) * 20_000)
    async with ends(tmp_path, way, "BODY WAIT", receive_buffer=16_384) as both:
        asked = asyncio.Event()

        async def permit() -> None:
            asked.set()

        task = asyncio.create_task(both.attempt(mail, permit))
        await both.sink.until(lambda: both.sink.waiting == 1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asked.wait(), 0.3)
        both.sink.go()

        assert isinstance(await task, Relayed)
        assert both.sink.mails[0].content == mail.body


@every_way
async def test_a_body_that_is_not_taken_is_deferred_in_time(tmp_path, way):
    line = b"x" * 76 + b"\r\n"
    mail = outgoing(body=line * 80_000, size=len(line) * 80_000)
    async with ends(tmp_path, way, "BODY WAIT", receive_buffer=16_384, command_timeout=0.3) as both:
        assert await both.attempt(mail) == Deferred("the body was not taken in time")
        assert both.asked == 0


@every_way
async def test_a_late_reply_is_heard_while_the_line_lingers(tmp_path, way):
    async with ends(tmp_path, way, FIXTURES / "late-after-dot.txt", reply_timeout=0.1) as both:
        outcome = await both.attempt(wants_late=True)
        before = list(both.late)
        both.sink.go()
        await both.sink.until(lambda: both.sink.connected == 0)

    assert outcome == Unknown("no reply to the dot within 0.1 s")
    assert before == []
    assert both.late == [Reply(250, "2.0.0", "Taken, at last")]


async def test_a_line_without_a_late_reply_is_cut_after_a_while(tmp_path):
    async with ends(tmp_path, script="DOT HANG", reply_timeout=0.05, linger=0.05) as both:
        assert isinstance(await both.attempt(wants_late=True), Unknown)
        await both.sink.until(lambda: both.sink.connected == 0)

        assert both.late == []


async def test_nobody_who_wants_a_late_reply_means_the_line_is_cut(tmp_path):
    async with ends(tmp_path, script="DOT HANG", reply_timeout=0.05) as both:
        assert isinstance(await both.attempt(), Unknown)
        await both.sink.until(lambda: both.sink.connected == 0)


async def test_a_refused_recipient_behind_a_354_gets_no_body_and_no_dot(tmp_path):
    async with ends(tmp_path, script='RCPT "550 5.1.1 no"\nDATA "354 go on anyway"') as both:
        assert await both.attempt() == Bounced("550 to RCPT", Reply(550, "5.1.1", "no"), "rcpt")
        await both.sink.until(lambda: both.sink.connected == 0)

        assert (both.asked, both.sink.dots) == (0, 0)


@pytest.mark.parametrize(
    ("script", "mail", "why"),
    [
        ("plain", outgoing(recipient="jörg@example.net", needs_smtputf8=True), "5.6.7"),
        ("plain", outgoing(recipient="jörg@example.net"), "5.6.7"),
        ("plain", outgoing(eight_bit=True), "5.6.3"),
        ("well", outgoing(size=33_554_433), "5.3.4"),
        ("well", outgoing(recipient="pat@example.net> NOTIFY=NEVER"), "5.1.3"),
        ("well", outgoing(recipient="pat@example.net\r\nDATA"), "5.1.3"),
        ("well", outgoing(recipient=""), "5.1.3"),
        ("well", outgoing(envelope_from="a@example.com\r\nRCPT TO:<b@example.net"), "5.1.3"),
        ("well", outgoing(recipient="p\ud800t@example.net"), "5.1.3"),
        ("well", outgoing(body=b"Subject: x\r\n\r\n.\r\nMAIL FROM:<b@example.com>\r\n"), "5.6.0"),
        ("well", outgoing(body=b".\r\n"), "5.6.0"),
        ("well", outgoing(body=b"Subject: x\n.\r\n"), "5.6.0"),
        ("well", outgoing(body=b"Subject: x\r.\r\n"), "5.6.0"),
        ("well", outgoing(body=b"Subject: x\r\n\0.\r\n"), "5.6.0"),
        ("well", outgoing(body=b"Subject: x\r\n\r\nno end"), "5.6.0"),
        ("well", outgoing(body=b""), "5.6.0"),
    ],
)
async def test_what_this_smarthost_can_never_take_bounces_here_and_keeps_the_line(tmp_path, script, mail, why):
    script = FIXTURES / "plain.txt" if script == "plain" else "# well behaved"
    async with ends(tmp_path, script=script) as both:
        outcome = await both.attempt(mail)
        after = await both.attempt()

    assert isinstance(outcome, Bounced)
    assert outcome.why.startswith(f"{why} ")
    assert (outcome.stage, outcome.reply) == ("local", None)
    assert isinstance(after, Relayed)
    assert both.sink.sessions == 1
    assert [command for command in both.sink.commands if command.startswith("MAIL")][1:] == []


async def test_a_mail_in_8_bits_says_so_where_that_is_offered(tmp_path):
    mail = outgoing(body="Subject: x\r\n\r\nGrüße\r\n".encode(), eight_bit=True, size=24)
    async with ends(tmp_path) as both:
        assert isinstance(await both.attempt(mail), Relayed)

    assert both.sink.commands[1] == "MAIL FROM:<agent@example.com> SIZE=24 BODY=8BITMIME"
    assert both.sink.mails[0].content == mail.body


async def test_a_mail_in_8_bits_goes_in_7_where_8_are_not_offered(tmp_path):
    seven = b"Subject: x\r\n\r\nGr=C3=BC=C3=9Fe\r\n"
    mail = outgoing(body="Subject: x\r\n\r\nGrüße\r\n".encode(), eight_bit=True, seven_bit=lambda: seven)
    async with ends(tmp_path, script='EHLO "250-up.example.net\\r\\n250 SIZE 100"') as both:
        assert isinstance(await both.attempt(mail), Relayed)

    assert both.sink.commands[1] == f"MAIL FROM:<agent@example.com> SIZE={len(seven)}"
    assert both.sink.mails[0].content == seven


async def test_a_mail_that_7_bits_cannot_hold_bounces(tmp_path):
    def seven() -> bytes:
        raise ValueError("signed")

    async with ends(tmp_path, script=FIXTURES / "plain.txt") as both:
        outcome = await both.attempt(outgoing(eight_bit=True, seven_bit=seven))

    assert isinstance(outcome, Bounced)
    assert outcome.why.startswith("5.6.3 ")


async def test_utf8_addresses_go_where_they_are_offered_and_the_flag_only_then(tmp_path):
    async with ends(tmp_path) as both:
        await both.attempt(outgoing(recipient="jörg@example.net", needs_smtputf8=True))
        await both.attempt(outgoing(recipient="pat@xn--bcher-kva.example.com"))

    assert [mail.recipients for mail in both.sink.mails] == [("jörg@example.net",), ("pat@xn--bcher-kva.example.com",)]
    assert [command.endswith("SMTPUTF8") for command in both.sink.commands if command.startswith("MAIL")] == [
        True,
        False,
    ]


async def test_a_report_goes_out_with_the_null_reverse_path(tmp_path):
    async with ends(tmp_path) as both:
        assert isinstance(await both.attempt(outgoing(envelope_from=None)), Relayed)

    assert both.sink.mails[0].envelope_from is None
    assert both.sink.commands[1] == "MAIL FROM:<> SIZE=26"


@pytest.mark.parametrize("pipelined", [True, False])
async def test_each_of_three_recipients_has_a_fate_of_its_own(tmp_path, pipelined):
    script = ("" if pipelined else serial()) + (FIXTURES / "rcpt-some.txt").read_text()
    async with ends(tmp_path, script=script) as both:
        names = ("gone@example.com", "pat@example.com", "later@example.com", "odd@example.com")
        outcomes = [await both.attempt(outgoing(recipient=name)) for name in names]

    assert [type(outcome) for outcome in outcomes] == [Bounced, Relayed, Deferred, Bounced]
    assert [mail.recipients for mail in both.sink.mails] == [("pat@example.com",)]
    assert both.sink.sessions == 1


async def test_a_greylisted_mail_is_deferred_once_and_then_relayed_once(tmp_path):
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
async def test_what_fails_before_mail_is_said_is_deferred_and_never_bounced(tmp_path, script, counts, code):
    path = FIXTURES / f"{script}.txt"
    async with ends(tmp_path, script=path if path.exists() else script) as both:
        outcome = await both.attempt()

    assert isinstance(outcome, Deferred)
    assert outcome.counts is counts
    assert (outcome.reply.code if outcome.reply else None) == code


async def test_a_black_hole_and_a_closed_port_are_deferred_and_the_third_attempt_delivers(tmp_path):
    async with ends(tmp_path, script=FIXTURES / "black-hole.txt", command_timeout=0.3) as both:
        outcomes = [await both.attempt() for _ in range(3)]

    assert [type(outcome) for outcome in outcomes] == [Deferred, Deferred, Relayed]


@pytest.mark.parametrize("stage", ["mail", "rcpt", "data"])
def test_a_2yz_means_relayed_only_to_the_dot(stage):
    assert verdict(Reply(250), "dot") == Relayed(Reply(250))
    assert verdict(Reply(250), stage) == Unknown(f"250 to {stage.upper()}")
