"""No byte of a client's becomes a second mail, a command, an end or a word of ours; and nobody can hold the door open."""

import asyncio
import ssl

import pytest

from gateway.doors.smtp import Limits
from gateway.store.schema import sends
from tests.doors.door import Door
from tests.doors.smtp.line import HEAD, MAIL, Submit, a_mail, a_submit, client_tls, request_of
from tests.world import BOXES, PAT

ENDS = [
    b"\n.\n",
    b"\n.\r",
    b"\r.\n",
    b"\r.\r",
    b"\n.\r\n",
    b"\r.\r\n",
    b"\r\n\0.\r\n",
    b"\r\n.\n",
    b"\r\n.\r",
    b"\r\n.\r\r\n",
]
SMUGGLED = b"MAIL FROM:<agent@gw.example.com>\r\nRCPT TO:<victim@example.net>\r\nDATA\r\n" + MAIL.encode()


@pytest.mark.parametrize("end", ENDS)
async def test_only_crlf_dot_crlf_ends_a_mail_and_all_else_like_it_is_refused(submit: Submit, end: bytes) -> None:
    async with submit.session() as client:
        await client.envelope()
        await client.say("DATA")
        reply = await client.say(MAIL.encode() + end + SMUGGLED + b".\r\n")
        after = await client.say("NOOP")

    assert reply.startswith("554 5.6.0 invalid_message; field=message; ")
    assert after.startswith("250 ")
    assert submit.door.world.rows_of(sends) == []


@pytest.mark.parametrize("pieces", [1, 2, 3, 5])
async def test_an_end_may_come_in_pieces(submit: Submit, pieces: int) -> None:
    data = MAIL.encode() + b"..\r\n.\r\n"
    async with submit.session() as client:
        await client.envelope()
        await client.say("DATA")
        for at in range(0, len(data), pieces):
            client.writer.write(data[at : at + pieces])
            await asyncio.sleep(0)
        reply = await client.reply()

    assert submit.body_of(reply).endswith(b"hi\r\n.\r\n")


@pytest.mark.parametrize(
    "line",
    [
        b"NOOP\n",
        b"NOOP x\n",
        b"NOOP x\ry\r\n",
        b"NOOP\r\r\n",
        b"NO\rOP\r\n",
        b"NOOP \0\r\n",
        b"RCPT TO:<pat@example.net>\nRCPT TO:<bee@example.net>\r\n",
        b"RCPT TO:<pat@example.net\rBcc>\r\n",
        b"\r\n",
        b"\xff\xfe\r\n",
        b"NOOP" + b" x" * 300 + b"\r\n",
        b"MAIL FROM:<agent@gw.example.com>" + b" " * 1100 + b"\r\n",
        b"x" * 20_000 + b"\r\n",
        b"XYZZY\r\n",
        b"TURN\r\n",
        b"BDAT 3 LAST\r\n",
    ],
)
async def test_a_malformed_line_is_refused_and_the_session_goes_on(submit: Submit, line: bytes) -> None:
    async with submit.session() as client:
        replies = [await client.say(line)]
        replies += [await client.reply() for _ in range(line[:-1].count(b"\n"))]
        after = await client.say("NOOP")

    assert all(reply.startswith(("500 5.5.", "503 ")) for reply in replies), replies
    assert after == "250 2.0.0 ok"


async def test_what_is_pipelined_behind_starttls_ends_the_session(submit: Submit) -> None:
    async with submit.talk() as client:
        await client.ehlo()
        reply = await client.say(b"STARTTLS\r\nMAIL FROM:<mallory@example.net>\r\n")

        assert reply.startswith("554 5.5.1 ")
        assert await client.reply() == ""


async def test_what_was_said_before_tls_does_not_count_after_it(wire: Door) -> None:
    async with a_submit(wire, smtp_trust=("127.0.0.1/32=a",)) as submit, submit.talk() as client:
        await client.ehlo()
        await client.log_in("b", submit.key("b"))
        await client.envelope()
        await client.say("STARTTLS")
        await client.upgrade()
        rcpt = await client.say(f"RCPT TO:<{PAT}>")
        mail = await client.say(f"MAIL FROM:<{BOXES[0]}>")
        await client.ehlo()
        reply = await client.send()
        again = await client.say("STARTTLS")

    assert rcpt.startswith("503 ")
    assert mail.startswith("503 ")
    assert wire.world.record(request_of(reply)).agent == wire.world.agent["a"]
    assert again.startswith("503 ")


async def test_a_handshake_that_fails_ends_the_session_alone(submit: Submit) -> None:
    async with submit.talk() as client:
        await client.ehlo()
        await client.say("STARTTLS")
        client.writer.write(b"EHLO this.is.no.tls\r\n" * 10)
        async with asyncio.timeout(5):
            await client.reader.read()
    with pytest.raises(ssl.SSLError):
        await asyncio.open_connection("127.0.0.1", submit.secure, ssl=ssl.create_default_context())
    await submit.empty()

    assert (await submit.send()).startswith("250 ")


async def test_octets_above_127_need_their_parameter(submit: Submit) -> None:
    text = a_mail("Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: 8bit", text="Grüße")
    subject = a_mail(head=HEAD.replace("hello", "Grüße"), message_id="two")
    latin = subject.encode("latin-1")

    without = await submit.send(text)
    eight_bit = await submit.send(text, more=" BODY=8BITMIME")
    header = await submit.send(subject, more=" BODY=8BITMIME")
    utf8 = await submit.send(subject, ("bee@example.net",), more=" SMTPUTF8")
    no_utf8 = await submit.send(latin, ("cee@example.net",), more=" SMTPUTF8 BODY=8BITMIME")

    assert without.startswith("554 5.6.0 invalid_message; field=message; ")
    assert submit.body_of(eight_bit).endswith("Grüße\r\n".encode())
    assert header.startswith("554 5.6.0 invalid_message; field=headers; ")
    assert b"with UTF8SMTPSA id" in submit.body_of(utf8)
    assert no_utf8.startswith("554 5.6.0 invalid_message; field=subject; ")


async def test_an_address_beyond_ascii_needs_smtputf8(submit: Submit) -> None:
    async with submit.session() as client:
        await client.envelope(())
        without = await client.say("RCPT TO:<pät@example.net>")
        await client.say("RSET")
        await client.envelope((), more=" SMTPUTF8")
        replies = [await client.say(f"RCPT TO:<{person}>") for person in ("pät@example.net", "pat@exämple.net")]
        broken = await client.say(b"RCPT TO:<p\xe4t@example.net>\r\n")
        reply = await client.content()

    assert without.startswith("553 5.6.7 ")
    assert [one[:3] for one in replies] == ["250", "250"]
    assert broken.startswith("550 5.1.3 ")
    people = [d.address for d in submit.door.world.record(request_of(reply)).deliveries]
    assert people == ["pät@example.net", "pat@xn--exmple-cua.net"]


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ("SIZE=100", "250"),
        ("size=100 body=7bit", "250"),
        ("BODY=8BITMIME SMTPUTF8 AUTH=<>", "250"),
        ("SIZE=10485761", "552 5.3.4 message_too_large; limit=10485760; size=10485761"),
        ("SIZE=99999999999999999999", "552 5.3.4"),
        ("SIZE=x", "501 5.5.4"),
        ("SIZE=", "501 5.5.4"),
        ("SIZE=1 SIZE=2", "501 5.5.4"),
        ("BODY=BINARYMIME", "501 5.5.4"),
        ("SMTPUTF8=yes", "501 5.5.4"),
        ("FUTURE=1", "555 5.5.4"),
        ("=1", "501 5.5.4"),
        ("SI\u00e4E=1", "501 5.5.4"),
    ],
)
async def test_parameters_of_mail(submit: Submit, parameters: str, code: str) -> None:
    async with submit.session() as client:
        assert (await client.say(f"MAIL FROM:<{BOXES[0]}> {parameters}")).startswith(code)


async def test_a_message_above_the_limit_is_read_to_its_end_and_refused(wire: Door) -> None:
    lines = ("x" * 98 + "\r\n") * 200
    async with a_submit(wire, Limits(message_bytes=10_000)) as submit, submit.session() as client:
        await client.envelope()
        reply = await client.content(MAIL + lines)
        after = await client.send()

    assert reply.startswith("552 5.3.4 message_too_large")
    assert after.startswith("250 ")


@pytest.mark.parametrize(
    ("mail", "field"),
    [
        (a_mail(text="x" * 999), "message"),
        ("Received: x\r\n" * 51 + MAIL, "received"),
        (MAIL.replace("From: ", "X-From: "), "from"),
        (HEAD + "Message-ID: <one@gw.example.com>\r\nno header\r\n\r\nhi\r\n", "rawMessage"),
        (MAIL.replace("hello", "=?utf-8?q?x=0D=0ABcc:_e@example.net?="), "subject"),
    ],
)
async def test_what_is_no_sound_message_is_refused(submit: Submit, mail: str, field: str) -> None:
    assert f"554 5.6.0 invalid_message; field={field}; " in await submit.send(mail)


async def test_received_lines_of_before_stay_and_are_counted(submit: Submit) -> None:
    reply = await submit.send("Received: from there by here; Wed, 04 Mar 2026 12:00:00 +0000\r\n" * 50 + MAIL)

    assert submit.body_of(reply).count(b"Received: ") == 51


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("EHLO", "501"),
        ("EHLO two words", "501"),
        ("HELO", "501"),
        ("HELO agent.example.com", "250"),
        ("RSET x", "501"),
        ("QUIT now", "501"),
        ("DATA", "503 5.5.1"),
        ("RCPT TO:<pat@example.net>", "503 5.5.1"),
        ("MAIL FROM", "501 5.5.2"),
        ("MAIL FROM:agent@gw.example.com", "501 5.5.2"),
        ("MAIL TO:<agent@gw.example.com>", "501 5.5.2"),
        ("VRFY pat", "252 2.5.2"),
        ("VRFY", "501"),
        ("EXPN list", "502 5.5.1"),
        ("HELP", "214"),
        ("NOOP whatever", "250"),
        ("STARTTLS", "503"),
    ],
)
async def test_commands_out_of_order_or_out_of_use(submit: Submit, said: str, code: str) -> None:
    async with submit.session() as client:
        assert (await client.say(said)).startswith(code)


async def test_a_second_mail_does_not_begin_within_the_first(submit: Submit) -> None:
    async with submit.session() as client:
        await client.envelope()

        assert (await client.say(f"MAIL FROM:<{BOXES[0]}>")).startswith("503 5.5.1 ")
        assert (await client.say("DATA x")).startswith("501 ")
        assert (await client.say("RSET")).startswith("250 ")
        assert (await client.say("DATA")).startswith("503 ")


async def test_parameters_need_ehlo(submit: Submit) -> None:
    async with submit.session() as client:
        await client.say("HELO agent.example.com")
        plain = await client.say(f"MAIL FROM:<{BOXES[0]}> SIZE=1")
        reply = await client.send()

    assert plain.startswith("555 ")
    assert b"with SMTP id" in submit.body_of(reply)


# --- time and number --------------------------------------------------------------------------------------------------


async def test_too_many_faults_end_the_session(wire: Door) -> None:
    async with a_submit(wire, Limits(faults=3)) as submit, submit.talk(secure=True) as client:
        replies = [await client.say("XYZZY") for _ in range(4)]

        assert [reply[:3] for reply in replies] == ["500", "500", "500", "421"]
        assert await client.reply() == ""


async def test_what_a_client_has_pipelined_behind_a_refusal_is_no_fault(wire: Door) -> None:
    people = "".join(f"RCPT TO:<pat{number}@example.net>\r\n" for number in range(10))
    async with a_submit(wire, Limits(faults=1)) as submit, submit.session() as client:
        for refused in (
            f"MAIL FROM:<boss@example.org>\r\n{people}DATA\r\n",
            f"MAIL FROM:<{BOXES[0]}>\r\nRCPT TO:<x>\r\nDATA\r\n",
        ):
            for _ in range(3):
                client.writer.write(refused.encode())
                replies = [await client.reply() for _ in range(refused.count("\r\n"))]
                assert {reply[0] for reply in replies[1:]} == {"5"}, replies
                assert (await client.say("RSET")).startswith("250 ")
        assert (await client.send()).startswith("250 2.0.0 accepted as ")
        replies = [await client.say(f"RCPT TO:<{PAT}>") for _ in range(2)]

    assert [reply[:3] for reply in replies] == ["503", "421"]


async def test_an_idle_session_is_told_and_ended(wire: Door) -> None:
    async with a_submit(wire, Limits(idle_seconds=0.05)) as submit, submit.talk(secure=True) as client:
        assert await client.reply() == "421 4.4.2 no more time"
        assert await client.reply() == ""


async def test_a_command_that_comes_byte_by_byte_gets_no_more_time(wire: Door) -> None:
    async with a_submit(wire, Limits(idle_seconds=0.2)) as submit, submit.talk(secure=True) as client:

        async def drip() -> None:
            while True:
                client.writer.write(b"N")
                await asyncio.sleep(0.01)

        dripping = asyncio.create_task(drip())
        try:
            assert (await client.reply()).startswith("421 4.4.2 ")
        finally:
            dripping.cancel()


async def test_a_body_must_come_at_a_rate(wire: Door) -> None:
    limits = Limits(idle_seconds=0.1, message_bytes=1000, least_rate=10_000)
    async with a_submit(wire, limits) as submit, submit.talk(secure=True) as client:
        await client.ehlo()
        await client.log_in("a", submit.key())
        await client.envelope()
        await client.say("DATA")

        async def drip() -> None:
            while True:
                client.writer.write(b"x\r\n")
                await asyncio.sleep(0.01)

        dripping = asyncio.create_task(drip())
        try:
            assert (await client.reply()).startswith("421 4.4.2 ")
        finally:
            dripping.cancel()


async def test_bodies_of_all_sessions_together_have_a_limit(wire: Door) -> None:
    part = b"a line of some mail\r\n" * 10_000
    limits = Limits(message_bytes=1_000_000, bodies_bytes=300_000)
    async with a_submit(wire, limits) as submit, submit.session() as first, submit.session() as second:
        await first.envelope()
        await first.say("DATA")
        first.writer.write(HEAD.encode() + b"\r\n" + part)
        async with asyncio.timeout(10):
            while submit.house._held.total() < len(part):  # noqa: ASYNC110  (the door tells nobody what it holds)
                await asyncio.sleep(0.01)
        await second.envelope(("second@example.net",))
        await second.say("DATA")
        second.writer.write(HEAD.encode() + b"\r\n" + part)

        assert (await second.reply()).startswith("421 4.3.2 ")
        assert (await first.say(b".\r\n")).startswith("250 ")
        assert (await submit.send(to=("third@example.net",))).startswith("250 ")
        assert submit.house._held.total() == 0


async def test_more_sessions_than_there_is_room_for_are_sent_away(wire: Door) -> None:
    async with a_submit(wire, Limits(sessions=1)) as submit:
        async with submit.talk(secure=True) as client:
            reader, writer = await asyncio.open_connection("127.0.0.1", submit.plain)
            plain = await reader.read()
            writer.close()
            with pytest.raises(OSError):  # noqa: PT011  (whatever the handshake ends with)
                await asyncio.open_connection("127.0.0.1", submit.secure, ssl=client_tls(), server_hostname="localhost")
            assert (await client.say("NOOP")).startswith("250 ")
        await submit.empty()

        assert plain.startswith(b"421 4.3.2 ")
        assert (await submit.send()).startswith("250 ")


def test_sessions_of_one_address_have_a_limit_of_their_own(submit: Submit) -> None:
    house = submit.house
    house.limits = Limits(sessions_by_address=1)

    class Guest:
        address = "192.0.2.1"

    guest = Guest()
    house.enter(guest)

    assert house.room_for("192.0.2.1").startswith("421 4.7.0 ")
    assert house.room_for("192.0.2.2") == ""
    house.leave(guest)
    house.leave(guest)
    assert house.room_for("192.0.2.1") == ""


async def test_a_slow_client_holds_up_nobody(submit: Submit) -> None:
    async with submit.session() as slow:
        await slow.envelope(("slow@example.net",))
        await slow.say("DATA")
        slow.writer.write(a_mail(message_id="slow").encode())

        assert (await submit.send()).startswith("250 ")
        assert (await slow.say(b".\r\n")).startswith("250 ")


@pytest.mark.parametrize("secure", [False, True])
async def test_replies_that_nobody_reads_are_not_piled_up(submit: Submit, secure: bool) -> None:
    async with submit.talk(secure=secure) as client:
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        kept = 0
        for _ in range(100):
            client.writer.write(b"EHLO x\r\n" * 20_000)
            if await stalls(client.writer):
                (session,) = submit.house.sessions
                kept = len(session.lines._kept) + session.transport.get_write_buffer_size()
            if kept:  # else it was only slow
                break
        else:
            pytest.fail("the door goes on reading")
        client.writer.transport.abort()

    assert 0 < kept < 1_000_000  # TLS reads ahead


async def stalls(writer: asyncio.StreamWriter) -> bool:
    """Whether the other side has stopped taking what is written, for all that can be seen in two seconds."""
    try:
        async with asyncio.timeout(2):
            await writer.drain()
    except TimeoutError:
        return True
    return False


async def test_a_door_that_closes_waits_for_no_mail_that_is_not_whole(wire: Door) -> None:
    async with a_submit(wire) as submit, submit.session() as client:
        await client.envelope()
        await client.say("DATA")
        client.writer.write(MAIL.encode())
        async with asyncio.timeout(5):
            await submit.smtp.stop()

        assert (await client.reply()).startswith("421 4.3.2 ")
    assert wire.world.rows_of(sends) == []


async def test_a_door_that_closes_answers_what_is_being_judged_and_sends_the_others_away(wire: Door) -> None:
    async with a_submit(wire) as submit, submit.session() as idle, submit.session() as busy:
        await busy.envelope()
        await busy.say("DATA")
        busy.writer.write(MAIL.encode() + b".\r\n")
        await busy.writer.drain()
        reading = asyncio.create_task(busy.reply())
        while not any(s.mail is None and not s.lines.waiting for s in submit.house.sessions):  # noqa: ASYNC110  (nobody is told)
            await asyncio.sleep(0)
        await submit.smtp.stop()

        assert (await idle.reply()).startswith("421 4.3.2 ")
        assert (await reading).startswith("250 2.0.0 accepted as ")
        assert await busy.reply() == ""
