"""Headers beyond ASCII on their way through: in at each door, out to smarthosts that take them or not (RFC 6531, 6532)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.core.delivery import Bounced, Outcome, Relayed
from gateway.core.mime import read
from gateway.relay.worker import outgoing
from gateway.sink import Sink
from tests.doors.door import SEND, Door, a_send, b64
from tests.doors.smtp.line import Submit, request_of
from tests.relay.ends import ends
from tests.smtp import FIXTURES
from tests.world import BOXES, PAT

NO_UTF8 = 'EHLO "250-up\\r\\n250-8BITMIME\\r\\n250 SIZE 10485760"'
HOPS: dict[str, str | Path] = {"8BITMIME": NO_UTF8, "nothing": FIXTURES / "plain.txt"}
hops = pytest.mark.parametrize("hop", list(HOPS))
JOE = "jörg@example.net"
RAW = f"From: {BOXES[0]}\r\nTo: {PAT}\r\nMessage-ID: <one@gw.example.com>\r\n{{}}\r\nhi\r\n"


async def gone(door: Door, request: str, folder: Path, script: str | Path) -> tuple[dict[str, Outcome], Sink]:
    """What becomes of each copy of a request at a smarthost."""
    async with ends(folder, script=script) as both:
        claims = [claim for claim in await door.world.claim() if claim.send == request]
        assert claims
        return {claim.address: await both.attempt(outgoing(claim)) for claim in claims}, both.sink


def all_ascii(sink: Sink) -> bool:
    return all(command.isascii() for command in sink.commands) and all(
        mail.content.partition(b"\r\n\r\n")[0].isascii() for mail in sink.mails
    )


@hops
@pytest.mark.parametrize(
    "asked",
    [
        {"cc": [JOE]},
        {"replyTo": [JOE]},
        {"to": ..., "subject": ..., "text": ..., "rawMessage": b64(RAW.format(f"Cc: {JOE}\r\n"))},
        {"to": ..., "subject": ..., "text": ..., "rawMessage": b64(RAW.format(f"Reply-To: {JOE}\r\n"))},
    ],
    ids=["cc", "replyTo", "raw cc", "raw replyTo"],
)
async def test_a_local_part_in_a_header_goes_to_no_hop_without_smtputf8(
    door: Door, tmp_path: Path, hop: str, asked: dict[str, Any]
) -> None:
    body = (await door.post(SEND, a_send(**asked))).json()
    outcomes, sink = await gone(door, body["requestId"], tmp_path, HOPS[hop])

    assert PAT in outcomes
    for outcome in outcomes.values():
        assert isinstance(outcome, Bounced)
        assert outcome.why.startswith("5.6.7 ")
        assert outcome.stage == "local"
    assert not [command for command in sink.commands if command.startswith("MAIL")]


async def test_a_local_part_in_a_header_goes_where_smtputf8_is_offered(door: Door, tmp_path: Path) -> None:
    body = (await door.post(SEND, a_send(cc=[JOE]))).json()
    outcomes, sink = await gone(door, body["requestId"], tmp_path, "# well behaved")

    assert {type(outcome) for outcome in outcomes.values()} == {Relayed}
    mails = [command for command in sink.commands if command.startswith("MAIL")]
    assert len(mails) == 2
    assert all(command.endswith(" BODY=8BITMIME SMTPUTF8") for command in mails)


@hops
@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("Subject: Grüße", lambda said: said.subject == "Grüße"),
        ("Cc: Jörg <bee@example.net>", lambda said: ("Cc", "Jörg <bee@example.net>") in said.headers),
        ("X-Note: für dich", lambda said: ("X-Note", "für dich") in said.headers),
        ("Content-Type: text/plain; name=ü.txt", lambda said: said.attachments[0].filename == "ü.txt"),
    ],
)
async def test_text_and_names_in_a_header_are_encoded_for_a_hop_without_smtputf8(
    submit: Submit, tmp_path: Path, hop: str, line: str, kept: Callable[[Any], bool]
) -> None:
    reply = await submit.send(RAW.format(f"{line}\r\n"), more=" SMTPUTF8")
    outcomes, sink = await gone(submit.door, request_of(reply), tmp_path, HOPS[hop])

    assert [type(outcome) for outcome in outcomes.values()] == [Relayed]
    assert all_ascii(sink)
    assert not [command for command in sink.commands if "SMTPUTF8" in command]
    assert kept(read(sink.mails[0].content))


async def test_a_signed_mail_is_sent_as_it_is_or_not_at_all(submit: Submit, tmp_path: Path) -> None:
    raw = RAW.format("Subject: Grüße\r\nDKIM-Signature: v=1; d=gw.example.com\r\n")
    reply = await submit.send(raw, more=" SMTPUTF8")
    outcomes, sink = await gone(submit.door, request_of(reply), tmp_path, NO_UTF8)

    (outcome,) = outcomes.values()
    assert isinstance(outcome, Bounced)
    assert outcome.why.startswith("5.6.7 ")
    assert sink.mails == []


LATIN = {
    "subject": RAW.format("Subject: Grüße\r\n"),
    "x-note": RAW.format("X-Note: ü\r\n"),
    "content-disposition": RAW.format(
        "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nhi\r\n--b\r\n"
        'Content-Disposition: attachment; filename="ü.txt"\r\n\r\nx\r\n--b--\r\n'
    ),
}


@pytest.mark.parametrize("field", list(LATIN))
async def test_headers_in_another_charset_are_refused_at_all_doors_alike(submit: Submit, field: str) -> None:
    raw = LATIN[field].encode("latin-1")
    body = a_send(rawMessage=b64(raw), to=..., subject=..., text=...)

    answer = (await submit.door.post(SEND, body)).json()
    tried = (await submit.door.post(SEND, body | {"dryRun": True})).json()
    reply = await submit.send(raw.replace(b"<one@", b"<two@"), more=" SMTPUTF8 BODY=8BITMIME")

    assert (answer["status"], answer["reason"]) == (tried["status"], tried["reason"]) == ("blocked", "invalid_message")
    found = [(one["field"], one["why"]) for one in answer["findings"] if one.get("reason") == "invalid_message"]
    assert found == [(field, "is not UTF-8")]
    assert reply.startswith(f"554 5.6.0 invalid_message; field={field}; ")


async def test_the_headers_of_a_mail_within_a_mail_are_its_contents(submit: Submit) -> None:
    inner = "Content-Type: message/rfc822\r\n\r\nFrom: pat@example.net\r\nSubject: Grüße\r\n"
    raw = RAW.format(f"MIME-Version: 1.0\r\n{inner}").encode("latin-1")

    answer = (await submit.door.post(SEND, a_send(rawMessage=b64(raw), to=..., subject=..., text=...))).json()
    reply = await submit.send(raw.replace(b"<one@", b"<two@"), ("bee@example.net",), more=" BODY=8BITMIME")

    assert answer["status"] == "queued"
    assert reply.startswith("250 ")
