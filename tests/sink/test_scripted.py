"""The scripted server: well behaved where its script is silent, as rude as it says elsewhere."""

import asyncio

import pytest

from gateway.sink import Sink
from tests.smtp import FIXTURES, Talk, talk

BODY = b"Subject: x\r\n\r\n..\r\n.\r\n"


async def up_to(client: Talk, stage: str) -> str:
    """Speaks in order up to the stage and returns the reply to it."""
    said = await client.reply()
    for name, words in (
        ("EHLO", "EHLO client.example.com"),
        ("MAIL", "MAIL FROM:<agent@example.com>"),
        ("RCPT", "RCPT TO:<pat@example.net>"),
        ("DATA", "DATA"),
        ("DOT", BODY),
    ):
        said = await client.say(words)
        if name == stage:
            break
    return said


async def test_without_a_word_in_its_script_it_takes_the_mail_and_writes_all_down() -> None:
    async with Sink(script="# well behaved") as sink, talk(sink) as client:
        assert await up_to(client, "DOT") == "250 2.0.0 Taken"

    (mail,) = sink.mails
    assert (mail.content, mail.raw) == (b"Subject: x\r\n\r\n.\r\n", b"Subject: x\r\n\r\n..\r\n")
    assert (sink.data_phases, sink.dots, sink.sessions) == (1, 1, 1)
    assert [(line.speaker, line.data[:4]) for line in sink.transcript] == [
        ("S", b"220 "),
        ("C", b"EHLO"),
        ("S", b"250-"),
        ("C", b"MAIL"),
        ("S", b"250 "),
        ("C", b"RCPT"),
        ("S", b"250 "),
        ("C", b"DATA"),
        ("S", b"354 "),
        ("B", b"Subj"),
        ("C", b".\r\n"),
        ("S", b"250 "),
    ]


async def test_it_keeps_the_order_of_commands() -> None:
    async with Sink(script=FIXTURES / "data-later.txt") as sink, talk(sink) as client:
        assert (await up_to(client, "DATA")).startswith("451")
        assert (await client.say("MAIL FROM:<two@example.com>")).startswith("503")
        await client.say("RSET")
        assert (await client.say("RCPT TO:<two@example.net>")).startswith("503")
        assert (await client.say("MAIL FROM:<two@example.com>")).startswith("250")
        assert (await client.say("DATA")).startswith("503")
        await client.say("RCPT TO:<two@example.net>")
        await client.say("DATA")
        assert (await client.say(BODY)).startswith("250")

    assert [mail.recipients for mail in sink.mails] == [("two@example.net",)]


@pytest.mark.parametrize("name", ["busy", "busy-midway"])
async def test_it_closes_after_a_421(name: str) -> None:
    async with Sink(script=FIXTURES / f"{name}.txt") as sink, talk(sink) as client:
        said = await client.reply()
        if name == "busy-midway":
            await client.say("EHLO client.example.com")
            await client.say("MAIL FROM:<agent@example.com>")
            said = await client.say("RCPT TO:<pat@example.net>")

        assert said.startswith("421")
        assert await client.reply() == ""


@pytest.mark.parametrize(
    ("acts", "rest", "taken"),
    [
        ('"250 ok"', b"250 ok\r\n", 1),
        ('"451 later"', b"451 later\r\n", 0),
        ("DROP", b"", 1),
        ("LOSE DROP", b"", 0),
        ('HALF "250 ok" DROP', b"250 ", 1),
        ('RAW "25" DROP', b"25", 1),
        ('DRIP 0.001 "250 ok" DROP', b"250 ok\r\n", 1),
        ("HANG 0.01", b"", 1),
    ],
)
async def test_what_it_can_do_at_the_dot(acts: str, rest: bytes, taken: int) -> None:
    async with Sink(script=f"DOT {acts}") as sink, talk(sink) as client:
        await up_to(client, "DATA")
        client.writer.write(BODY + b"QUIT\r\n")
        said = await asyncio.wait_for(client.reader.read(), 5)

    assert said.removesuffix(b"221 2.0.0 Bye\r\n") == rest
    assert (len(sink.mails), sink.dots) == (taken, 1)


async def test_a_reset_is_a_reset() -> None:
    async with Sink(script="MAIL RESET") as sink, talk(sink) as client:
        await client.reply()
        with pytest.raises(ConnectionResetError):
            await client.say("MAIL FROM:<agent@example.com>")


async def test_an_early_reply_comes_in_the_packet_before_and_not_again() -> None:
    async with Sink(script=FIXTURES / "early-250-same-packet.txt") as sink, talk(sink) as client:
        await up_to(client, "RCPT")
        client.writer.write(b"DATA\r\n")
        assert await client.reader.read(100) == b"354 Go on\r\n250 2.0.0 Taken\r\n"
        assert await client.say(BODY + b"QUIT\r\n") == "221 2.0.0 Bye"


async def test_a_rest_too_long_is_ended() -> None:
    async with Sink(script='IDLE 0.01 "421 4.4.2 idle"') as sink, talk(sink) as client:
        await client.reply()
        assert await client.say("EHLO client.example.com")
        assert await client.reply() == "421 4.4.2 idle"
        assert await client.reply() == ""


async def test_it_stands_still_until_the_test_lets_it_go() -> None:
    async with Sink(script=FIXTURES / "late-after-dot.txt") as sink, talk(sink) as client:
        await up_to(client, "DATA")
        client.writer.write(BODY)
        await sink.until(lambda: sink.waiting == 1)
        sink.go()

        assert await client.reply() == "250 2.0.0 Taken, at last"


async def test_sessions_have_scripts_of_their_own() -> None:
    async with Sink(script='SESSION 1\nBANNER "421 later"\nSESSION 2+\nBANNER "554 never"') as sink:
        said = []
        for _ in range(3):
            async with talk(sink) as client:
                said.append(await client.reply())

    assert said == ["421 later", "554 never", "554 never"]


async def test_the_sink_can_hang_up_on_all() -> None:
    async with Sink(script="# well behaved") as sink, talk(sink) as client:
        await client.reply()
        sink.hang_up("421 4.3.2 going down")

        assert await client.reply() == "421 4.3.2 going down"
        assert await client.reply() == ""


async def test_a_line_without_end_or_with_a_bare_lf_is_no_command() -> None:
    async with Sink(script="# well behaved") as sink, talk(sink) as client:
        await client.reply()

        assert (await client.say(b"NOOP\n")).startswith("500")
        assert (await client.say(b"NOOP " + b"x" * 5000 + b"\r\n")).startswith("500")
        assert (await client.say("NOOP")).startswith("250")
        assert (await client.say("EXPN all")).startswith("502")
