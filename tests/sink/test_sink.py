"""The well-behaved sink: what it announces, takes, keeps and refuses."""

import asyncio
import smtplib
import ssl
from email.message import EmailMessage
from pathlib import Path

import pytest

from gateway.sink import Mail, Sink, run
from tests.smtp import authority, server_tls, talk


def client_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority("ours").configure_trust(context)
    return context


async def test_a_mail_arrives_as_it_was_and_as_it_came() -> None:
    async with Sink() as sink, talk(sink) as client:
        assert (await client.reply()).startswith("220 ")
        await client.say("EHLO client.example.com")
        await client.say("MAIL FROM:<agent@example.com>")
        await client.say("RCPT TO:<pat@example.net>")
        assert (await client.say("DATA")).startswith("354")
        assert (await client.say(b"Subject: dots\r\n\r\n..\r\n..hidden\r\n....\r\n.\r\n")).startswith("250 2.0.0")
        (mail,) = await sink.wait(1)

    assert mail == Mail(
        number=1,
        session=1,
        envelope_from="agent@example.com",
        recipients=("pat@example.net",),
        content=b"Subject: dots\r\n\r\n.\r\n.hidden\r\n...\r\n",
        raw=b"Subject: dots\r\n\r\n..\r\n..hidden\r\n....\r\n",
    )


async def test_it_announces_what_it_can() -> None:
    async with Sink(size=1234, tls=server_tls()) as sink, talk(sink) as client:
        await client.reply()
        offers = (await client.say("EHLO client.example.com")).split(" / ")

    assert {"250-PIPELINING", "250-SIZE 1234", "250-8BITMIME", "250-SMTPUTF8", "250-STARTTLS"} <= set(offers)
    assert not [offer for offer in offers if "AUTH" in offer]


async def test_a_whole_mail_in_one_packet_is_answered_in_order() -> None:
    async with Sink() as sink, talk(sink) as client:
        await client.reply()
        await client.say("EHLO client.example.com")
        first = await client.say(
            b"MAIL FROM:<> BODY=8BITMIME\r\nRCPT TO:<pat@example.net>\r\nDATA\r\nS: \xc3\xbc\r\n\r\nhi\r\n.\r\nQUIT\r\n"
        )
        rest = [await client.reply() for _ in range(4)]
        (mail,) = await sink.wait(1)

    assert [reply[:3] for reply in [first, *rest]] == ["250", "250", "354", "250", "221"]
    assert mail.envelope_from is None
    assert mail.content == mail.raw == b"S: \xc3\xbc\r\n\r\nhi\r\n"


async def test_utf8_addresses_are_kept() -> None:
    async with Sink() as sink, talk(sink) as client:
        await client.reply()
        await client.say("EHLO client.example.com")
        await client.say("MAIL FROM:<agent@example.com> SMTPUTF8")
        await client.say("RCPT TO:<jörg@example.net>")
        await client.say("DATA")
        await client.say(b"Subject: x\r\n\r\n.\r\n")
        (mail,) = await sink.wait(1)

    assert mail.recipients == ("jörg@example.net",)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("MAIL FROM:<agent@example.com> SIZE=5000", "552"),
        ("MAIL FROM:<agent@example.com> RET=FULL", "555"),
        ("RCPT TO:<pat@example.net>", "503"),
        ("DATA", "503"),
        ("STARTTLS", "454"),
    ],
)
async def test_it_says_no_where_a_standard_does(command: str, code: str) -> None:
    async with Sink(size=4096) as sink, talk(sink) as client:
        await client.reply()
        await client.say("EHLO client.example.com")

        assert (await client.say(command)).startswith(code)


@pytest.mark.parametrize("recipient", ["<>", "<a\0b@example.com>"])
async def test_an_empty_or_poisoned_recipient_is_refused(recipient: str) -> None:
    async with Sink() as sink, talk(sink) as client:
        await client.reply()
        await client.say("EHLO client.example.com")
        await client.say("MAIL FROM:<agent@example.com>")

        assert (await client.say(f"RCPT TO:{recipient}"))[:3] in {"501", "553"}


async def test_two_mails_of_one_connection_and_one_of_another_are_told_apart() -> None:
    async with Sink() as sink:
        async with talk(sink) as client:
            await client.reply()
            await client.say("EHLO client.example.com")
            for name in ("one", "two"):
                await client.say(f"MAIL FROM:<{name}@example.com>")
                await client.say("RCPT TO:<pat@example.net>")
                await client.say("DATA")
                await client.say(b"Subject: x\r\n\r\n.\r\n")
        async with talk(sink) as client:
            await client.reply()
            await client.say("HELO client.example.com")
            await client.say("MAIL FROM:<three@example.com>")
            await client.say("RCPT TO:<pat@example.net>")
            await client.say("DATA")
            await client.say(b"Subject: x\r\n\r\n.\r\n")
        await sink.wait(3)

    assert [(mail.number, mail.session, mail.envelope_from) for mail in sink.mails] == [
        (1, 1, "one@example.com"),
        (2, 1, "two@example.com"),
        (3, 2, "three@example.com"),
    ]


@pytest.mark.parametrize("implicit", [False, True])
@pytest.mark.parametrize("script", [None, "# well behaved"])
async def test_the_standard_library_delivers_over_tls_with_a_login(implicit: bool, script: str | Path | None) -> None:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "agent@example.com", "pat@example.net", "Grüße"
    message.set_content("Ein Text.\n.\nNoch einer.\n")

    def deliver() -> None:
        client: smtplib.SMTP
        if implicit:
            client = smtplib.SMTP_SSL("localhost", sink.port, timeout=5, context=client_tls())
        else:
            client = smtplib.SMTP("localhost", sink.port, timeout=5)
        with client:
            if not implicit:
                client.starttls(context=client_tls())
            client.login("agent", "a secret")
            client.send_message(message)

    async with Sink(tls=server_tls(), implicit=implicit, auth=("agent", "a secret"), script=script) as sink:
        await asyncio.to_thread(deliver)
        (mail,) = await sink.wait(1)

    assert mail.content.endswith(b"Ein Text.\r\n.\r\nNoch einer.\r\n")


@pytest.mark.parametrize("script", [None, "# well behaved"])
async def test_a_wrong_password_takes_no_mail(script: str | Path | None) -> None:
    async with Sink(auth=("agent", "a secret"), script=script) as sink, talk(sink) as client:
        await client.reply()
        await client.say("EHLO client.example.com")

        assert (await client.say("AUTH PLAIN AGFnZW50AHdyb25n")).startswith("535")
        assert (await client.say("MAIL FROM:<agent@example.com>")).startswith("530")


async def test_a_maildir_holds_the_mail_before_it_is_answered(tmp_path: Path) -> None:
    seen: list[tuple[Mail, int]] = []
    folder = tmp_path / "box"
    sink = Sink(maildir=folder, on_mail=lambda mail: seen.append((mail, len(list((folder / "new").iterdir())))))
    async with sink, talk(sink) as client:
        await client.reply()
        await client.say("EHLO client.example.com")
        await client.say("MAIL FROM:<agent@example.com>")
        await client.say("RCPT TO:<pat@example.net>")
        await client.say("DATA")
        await client.say(b"Subject: x\r\n\r\nhi\r\n.\r\n")
        (mail,) = await sink.wait(1)

    (path,) = (folder / "new").iterdir()
    assert path.read_bytes() == (b"Return-Path: <agent@example.com>\nDelivered-To: pat@example.net\nSubject: x\n\nhi\n")
    assert seen == [(mail, 1)]
    assert not list((folder / "tmp").iterdir())


@pytest.mark.parametrize("script", [None, "# well behaved"])
async def test_a_maildir_that_cannot_be_written_is_a_452_and_no_mail(tmp_path: Path, script: str | Path | None) -> None:
    (tmp_path / "box").write_text("a file where the folder should be")
    async with Sink(maildir=tmp_path / "box", script=script) as sink, talk(sink) as client:
        await client.reply()
        await client.say("EHLO client.example.com")
        await client.say("MAIL FROM:<agent@example.com>")
        await client.say("RCPT TO:<pat@example.net>")
        await client.say("DATA")

        assert (await client.say(b"Subject: x\r\n\r\nhi\r\n.\r\n")).startswith("452")
        assert sink.mails == []


async def test_a_fault_of_ours_is_a_451_without_its_text() -> None:
    def broken(mail: Mail) -> None:
        raise RuntimeError("a secret")

    async with Sink(on_mail=broken) as sink, talk(sink) as client:
        await client.reply()
        await client.say("EHLO client.example.com")
        await client.say("MAIL FROM:<agent@example.com>")
        await client.say("RCPT TO:<pat@example.net>")
        await client.say("DATA")

        assert await client.say(b"Subject: x\r\n\r\nhi\r\n.\r\n") == "451 4.3.0 Local error"


async def test_a_client_that_goes_in_the_middle_of_a_body_leaves_nothing() -> None:
    async with Sink() as sink:
        async with talk(sink) as client:
            await client.reply()
            await client.say("EHLO client.example.com")
            await client.say("MAIL FROM:<agent@example.com>")
            await client.say("RCPT TO:<pat@example.net>")
            await client.say("DATA")
            client.writer.write(b"Subject: x\r\n\r\nhi\r\n")
        async with talk(sink) as client:
            await client.reply()

    assert sink.mails == []


async def test_wait_gives_up_in_time() -> None:
    async with Sink() as sink:
        with pytest.raises(TimeoutError):
            await sink.wait(1, timeout=0.01)


async def test_the_engine_of_the_command_serves_until_it_is_cancelled(tmp_path: Path) -> None:
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    mails: list[Mail] = []
    engine = asyncio.create_task(run(("127.0.0.1", 0), tmp_path, None, mails.append, port.set_result))
    message = EmailMessage()
    message["From"], message["To"] = "agent@example.com", "pat@example.net"

    def deliver(number: int) -> None:
        with smtplib.SMTP("127.0.0.1", number, timeout=5) as client:
            client.send_message(message)

    await asyncio.to_thread(deliver, await port)
    engine.cancel()
    with pytest.raises(asyncio.CancelledError):
        await engine

    assert [mail.recipients for mail in mails] == [("pat@example.net",)]
    assert len(list((tmp_path / "new").iterdir())) == 1
