"""A working session: mail programs hand in a mail over TLS, and it is the mail that they meant."""

import asyncio
import smtplib
from email.message import EmailMessage

import aiosmtplib

from gateway.store.schema import sends
from tests.doors.smtp.line import HEAD, MAIL, Submit, a_mail, client_tls, request_of
from tests.world import BOXES, PAT


def a_message(text: str = "hi") -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = BOXES[0], PAT, "hello"
    message["Message-ID"] = "<from-a-program@gw.example.com>"
    message.set_content(text)
    return message


async def test_smtplib_sends_over_starttls(submit_both: Submit) -> None:
    def run() -> tuple[dict[str, tuple[int, bytes]], list[str]]:
        with smtplib.SMTP("localhost", submit_both.plain, timeout=10) as client:
            client.starttls(context=client_tls())
            client.login("a", submit_both.key())
            offers = list(client.esmtp_features)
            return client.send_message(a_message()), offers

    refused, offers = await asyncio.to_thread(run)

    assert refused == {}
    assert {"size", "8bitmime", "smtputf8", "pipelining", "enhancedstatuscodes", "auth"} <= set(offers)
    (send,) = submit_both.door.world.rows_of(sends)
    assert (send["door"], send["agent"]) == ("smtp", submit_both.door.world.agent["a"])


async def test_smtplib_sends_over_implicit_tls(submit: Submit) -> None:
    def run() -> dict[str, tuple[int, bytes]]:
        with smtplib.SMTP_SSL("localhost", submit.secure, context=client_tls(), timeout=10) as client:
            client.login("a", submit.key())
            return client.send_message(a_message("Grüße"), mail_options=["BODY=8BITMIME"])

    assert await asyncio.to_thread(run) == {}


async def test_aiosmtplib_sends_over_starttls(submit: Submit) -> None:
    errors, words = await aiosmtplib.send(
        a_message(),
        hostname="localhost",
        port=submit.plain,
        start_tls=True,
        username="a",
        password=submit.key(),
        tls_context=client_tls(),
    )

    assert errors == {}
    assert "accepted as req_" in words


async def test_aiosmtplib_sends_over_implicit_tls(submit: Submit) -> None:
    errors, _ = await aiosmtplib.send(
        a_message(),
        hostname="localhost",
        port=submit.secure,
        use_tls=True,
        username="a",
        password=submit.key(),
        tls_context=client_tls(),
    )

    assert errors == {}


async def test_a_mail_keeps_its_bytes_and_gets_one_received_line(submit: Submit) -> None:
    reply = await submit.send(MAIL)

    body = submit.body_of(reply)
    received, _, rest = body.partition(b" +0000\r\n")
    assert rest == MAIL.encode()
    assert received.startswith(
        b"Received: from agent.example.com ([127.0.0.1])\r\n\tby gw.example.com with ESMTPSA id "
        + request_of(reply).encode()
    )


async def test_what_is_missing_comes_and_what_must_not_arrive_goes(submit: Submit) -> None:
    mail = "Return-Path: <x@example.net>\r\nBCC: hidden@example.net,\r\n\tother@example.net\r\n" + HEAD + "\r\nhi\r\n"

    body = submit.body_of(await submit.send(mail))

    head = body.partition(b"\r\n\r\n")[0].lower()
    assert b"\r\ndate: " in head
    assert b"\r\nmessage-id: <req_" in head
    assert b"return-path" not in head
    assert b"hidden" not in head
    assert b"other@" not in head
    assert head.count(b"received:") == 1


async def test_several_mails_go_through_one_session(submit: Submit) -> None:
    async with submit.session() as client:
        replies = [await client.send(a_mail(message_id=str(n)), (f"pat{n}@example.net",)) for n in range(3)]

        assert await client.say("QUIT") == "221 2.0.0 bye"

    assert len({request_of(reply) for reply in replies}) == 3


async def test_commands_in_one_packet_are_answered_in_order(submit: Submit) -> None:
    async with submit.session() as client:
        client.writer.write(f"MAIL FROM:<{BOXES[0]}>\r\nRCPT TO:<{PAT}>\r\nRCPT TO:<x>\r\nDATA\r\n".encode())
        replies = [await client.reply() for _ in range(4)]
        client.writer.write(MAIL.encode() + b".\r\nNOOP\r\nQUIT\r\n")
        replies += [await client.reply() for _ in range(3)]

    assert [reply[:3] for reply in replies] == ["250", "250", "550", "354", "250", "250", "221"]


async def test_the_people_of_the_envelope_get_the_roles_of_the_headers(submit: Submit) -> None:
    mail = a_mail("Cc: Cee <CEE@example.net>")

    reply = await submit.send(mail, ("bee@example.net", PAT, "cee@example.net"))

    record = submit.door.world.record(request_of(reply))
    assert [(d.address, d.role) for d in record.deliveries] == [
        (PAT, "to"),
        ("cee@example.net", "cc"),
        ("bee@example.net", "bcc"),
    ]


async def test_dots_are_taken_off_and_a_body_may_be_empty(submit: Submit) -> None:
    lines = ".first\r\n..\r\n.\r\nmid\r\n.last\r\n"

    body = submit.body_of(await submit.send(MAIL + lines))
    bare = submit.body_of(await submit.send(a_mail(message_id="two", text="")[:-2], ("bee@example.net",)))

    assert body.endswith(b"hi\r\n" + lines.encode())
    assert bare.endswith(b">\r\n\r\n")
