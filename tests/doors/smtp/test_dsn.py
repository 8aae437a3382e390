"""Wishes for reports (RFC 3461): offered, read, kept for each recipient and passed on where the smarthost takes them."""

import pytest

from gateway.core.dsn import NONE
from gateway.relay.wire import Offers
from gateway.relay.worker import outgoing
from tests.doors.smtp.line import Submit, request_of
from tests.world import BOXES, PAT

BEE = "bee@example.net"
TAKES_ALL = Offers(pipelining=True, size=0, eight_bit=True, smtputf8=True, dsn=True)


async def test_wishes_are_passed_on_for_each_recipient(submit_both: Submit) -> None:
    async with submit_both.session() as client:
        assert " DSN" in await client.ehlo()
        await client.envelope((), more=" RET=hdrs ENVID=QQ+2B1")
        await client.say(f"RCPT TO:<{PAT}> NOTIFY=SUCCESS,DELAY ORCPT=rfc822;Pat+2Bx@example.net")
        await client.say(f"RCPT TO:<{BEE}>")
        reply = await client.content()

    world = submit_both.door.world
    assert reply.startswith("250 2.0.0 accepted as "), reply
    claims = {claim.address: outgoing(claim) for claim in await world.claim() if claim.send == request_of(reply)}
    mail, rcpt, *_ = claims[PAT].fit(TAKES_ALL)
    assert mail.endswith(b" RET=HDRS ENVID=QQ+2B1\r\n")
    assert rcpt == f"RCPT TO:<{PAT}> NOTIFY=SUCCESS,DELAY ORCPT=rfc822;Pat+2Bx@example.net\r\n".encode()
    mail, rcpt, *_ = claims[BEE].fit(TAKES_ALL)
    assert mail.endswith(b" RET=HDRS ENVID=QQ+2B1\r\n")
    assert rcpt == f"RCPT TO:<{BEE}>\r\n".encode()
    mail, rcpt, *_ = claims[PAT].fit(Offers())
    assert (mail, rcpt) == (f"MAIL FROM:<{BOXES[0]}>\r\n".encode(), f"RCPT TO:<{PAT}>\r\n".encode())


async def test_a_mail_without_wishes_has_none(submit: Submit) -> None:
    reply = await submit.send()

    (claim,) = [claim for claim in await submit.door.world.claim() if claim.send == request_of(reply)]
    assert claim.dsn == NONE


@pytest.mark.parametrize(
    ("mail", "rcpt"),
    [
        (" RET=BODY", ""),
        (" ENVID=a=b", ""),
        (" ENVID=+0D+0ARCPT", ""),
        (" RET=FULL RET=HDRS", ""),
        ("", " NOTIFY=NEVER,SUCCESS"),
        ("", " NOTIFY"),
        ("", " ORCPT=pat@example.net"),
        ("", " ORCPT=rfc822;pat+0D+0A@example.net"),
    ],
)
async def test_wishes_that_are_malformed_are_refused(submit: Submit, mail: str, rcpt: str) -> None:
    async with submit.session() as client:
        replies = [await client.say(f"MAIL FROM:<{BOXES[0]}>{mail}"), await client.say(f"RCPT TO:<{PAT}>{rcpt}")]

    assert replies[0 if mail else 1].startswith("501 5.5.4 ")


async def test_utf8_in_headers_is_announced_where_it_can_be(submit: Submit) -> None:
    head = f"From: {BOXES[0]}\r\nTo: {PAT}\r\nSubject: Grüße\r\nMessage-ID: <one@gw.example.com>\r\n\r\nhi\r\n"
    reply = await submit.send(head, more=" SMTPUTF8")

    (claim,) = [claim for claim in await submit.door.world.claim() if claim.send == request_of(reply)]
    mail, *_ = outgoing(claim).fit(TAKES_ALL)
    assert mail.endswith(b" BODY=8BITMIME SMTPUTF8\r\n")
