"""What a mail needs of a smarthost, and what is never put on the wire."""

import asyncio
import threading
from pathlib import Path

import pytest

from gateway.core.delivery import Bounced, Relayed
from gateway.core.mimeascii import Form
from gateway.relay.outgoing import LARGE, Outgoing, beside
from tests.relay.ends import ends, outgoing
from tests.smtp import FIXTURES


@pytest.mark.parametrize(
    ("script", "mail", "why"),
    [
        ("plain", outgoing(recipient="jörg@example.net", needs_smtputf8=True), "5.6.7"),
        ("plain", outgoing(recipient="jörg@example.net"), "5.6.7"),
        ("plain", outgoing(headers=Form.UTF8), "5.6.7"),
        ("well", outgoing(headers=Form.OCTETS), "5.6.0"),
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
async def test_what_this_smarthost_can_never_take_bounces_here_and_keeps_the_line(
    tmp_path: Path, script: str | Path | None, mail: Outgoing, why: str
) -> None:
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


async def test_a_mail_in_8_bits_says_so_where_that_is_offered(tmp_path: Path) -> None:
    mail = outgoing(body="Subject: x\r\n\r\nGrüße\r\n".encode(), eight_bit=True, size=24)
    async with ends(tmp_path) as both:
        assert isinstance(await both.attempt(mail), Relayed)

    assert both.sink.commands[1] == "MAIL FROM:<agent@example.com> SIZE=24 BODY=8BITMIME"
    assert both.sink.mails[0].content == mail.body


async def test_a_mail_in_8_bits_goes_in_7_where_8_are_not_offered(tmp_path: Path) -> None:
    seven = b"Subject: x\r\n\r\nGr=C3=BC=C3=9Fe\r\n"
    mail = outgoing(body="Subject: x\r\n\r\nGrüße\r\n".encode(), eight_bit=True, seven_bit=lambda: seven)
    async with ends(tmp_path, script='EHLO "250-up.example.net\\r\\n250 SIZE 100"') as both:
        assert isinstance(await both.attempt(mail), Relayed)

    assert both.sink.commands[1] == f"MAIL FROM:<agent@example.com> SIZE={len(seven)}"
    assert both.sink.mails[0].content == seven


async def test_a_mail_that_7_bits_cannot_hold_bounces(tmp_path: Path) -> None:
    def seven() -> bytes:
        raise ValueError("signed")

    async with ends(tmp_path, script=FIXTURES / "plain.txt") as both:
        outcome = await both.attempt(outgoing(eight_bit=True, seven_bit=seven))

    assert isinstance(outcome, Bounced)
    assert outcome.why.startswith("5.6.3 ")


async def test_utf8_addresses_go_where_they_are_offered_and_the_flag_only_then(tmp_path: Path) -> None:
    async with ends(tmp_path) as both:
        await both.attempt(outgoing(recipient="jörg@example.net", needs_smtputf8=True))
        await both.attempt(outgoing(recipient="pat@xn--bcher-kva.example.com"))

    assert [mail.recipients for mail in both.sink.mails] == [("jörg@example.net",), ("pat@xn--bcher-kva.example.com",)]
    assert [command.endswith("SMTPUTF8") for command in both.sink.commands if command.startswith("MAIL")] == [
        True,
        False,
    ]


async def test_a_report_goes_out_with_the_null_reverse_path(tmp_path: Path) -> None:
    async with ends(tmp_path) as both:
        assert isinstance(await both.attempt(outgoing(envelope_from=None)), Relayed)

    assert both.sink.mails[0].envelope_from is None
    assert both.sink.commands[1] == "MAIL FROM:<> SIZE=26"


async def test_large_mail_is_read_beside_the_loop_one_after_the_other() -> None:
    """The loop has to answer and to beat meanwhile; small mail is not held up."""
    read, under_way = [], threading.Lock()
    go_on = threading.Event()

    def look(number: int) -> int:
        assert under_way.acquire(blocking=False)
        assert go_on.wait(60)
        read.append(number)
        under_way.release()
        return threading.get_ident()

    large = [asyncio.create_task(beside(LARGE + 1, look, number)) for number in range(3)]
    await asyncio.sleep(0)
    assert await beside(LARGE, threading.get_ident) == threading.get_ident()
    assert read == []
    go_on.set()

    assert threading.get_ident() not in await asyncio.gather(*large)
    assert read == [0, 1, 2]
