"""A message that is handed in as bytes."""

import random
from typing import Any

import pytest

from tests.doors.door import SEND, Door, a_send, b64, faults
from tests.world import BOXES, PAT

RAW = (
    "From: Agent <agent@gw.example.com>\r\nTo: Pat <pat@example.net>\r\nCc: cee@example.net\r\nBcc: bee@example.net\r\n"
)
RAW += "Subject: hello\r\nX-Campaign: spring\r\n\r\nhi\r\n"


def a_raw(raw: str | bytes = RAW, **changes: Any) -> dict[str, Any]:
    return a_send(rawMessage=b64(raw), to=..., subject=..., text=..., **changes)


async def test_a_raw_message_brings_its_recipients_and_keeps_its_bytes(door: Door) -> None:
    body = (await door.post(SEND, a_raw())).json()

    message = door.message(body["requestId"])
    assert [(one["email"], one["role"]) for one in body["recipients"]] == [
        ("pat@example.net", "to"),
        ("cee@example.net", "cc"),
        ("bee@example.net", "bcc"),
    ]
    assert b"bee@" not in message
    assert b"X-Campaign: spring\r\n" in message
    assert f"Message-ID: <{body['messageId']}>\r\n".encode() in message
    assert door.world.record(body["requestId"]).subject == "hello"


async def test_named_recipients_win_over_those_of_a_raw_message(door: Door) -> None:
    body = (await door.post(SEND, a_raw() | {"to": "only@example.net"})).json()

    assert [one["email"] for one in body["recipients"]] == ["only@example.net"]


async def test_the_same_mail_in_parts_and_as_bytes_is_one_send(door: Door) -> None:
    first = await door.post(SEND, a_send(to=PAT, from_=BOXES[0]) | {"headers": {"X-Campaign": "spring"}})

    raw = RAW.replace("Cc: cee@example.net\r\nBcc: bee@example.net\r\n", "")
    again = await door.post(SEND, a_raw(raw))

    assert first.json()["status"] == "queued"
    assert again.json()["replayed"] is True


async def test_a_file_with_unix_lines_is_a_message_too(door: Door) -> None:
    body = (await door.post(SEND, a_raw(RAW.replace("\r\n", "\n")))).json()

    assert body["status"] == "queued"
    assert b"\n" not in door.message(body["requestId"]).replace(b"\r\n", b"")


async def test_a_raw_message_keeps_its_own_message_id(door: Door) -> None:
    body = (await door.post(SEND, a_raw("Message-ID: <own@example.com>\r\n" + RAW))).json()

    assert body["messageId"] == "own@example.com"


async def test_a_raw_message_chooses_its_mailbox_by_its_author(door: Door) -> None:
    body = (await door.post(SEND, a_raw(RAW.replace("agent@", "desk@")))).json()

    assert body["status"] == "queued"
    assert door.world.record(body["requestId"]).reverse_path == "desk@gw.example.com"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (RAW.replace("agent@gw", "ceo@gw"), "sender_not_allowed"),
        ("Sender: ceo@gw.example.com\r\n" + RAW, "sender_not_allowed"),
        ("From: ceo@gw.example.com\r\n" + RAW, "sender_not_allowed"),
        (RAW.replace("From: Agent <agent@gw.example.com>", "From: nobody at all"), "sender_not_allowed"),
        (RAW.replace("Agent <agent@gw.example.com>", "ceo@example.org:agent@gw.example.com;"), "sender_not_allowed"),
        (RAW.replace("Agent <agent@gw.example.com>", "Board: agent@gw.example.com;"), "sender_not_allowed"),
        (RAW.replace("From: Agent <agent@gw.example.com>\r\n", ""), "invalid_message"),
        ("Subject: again\r\n" + RAW, "invalid_message"),
        ("X-Gateway-Agent: b\r\n" + RAW, "invalid_message"),
        ("X-Fencing-Token: 7\r\n" + RAW, "invalid_message"),
        ("Subject: =?utf-8?q?a=00b=0D=0AX=3A_y?=\r\n" + RAW.replace("Subject: hello\r\n", ""), "invalid_message"),
        (RAW + "\x00\r\n", "invalid_message"),
        (RAW + "bare\nline\r\n", "invalid_message"),
        (RAW + "x" * 1000 + "\r\n", "invalid_message"),
    ],
)
async def test_a_raw_message_is_judged_as_it_came(door: Door, raw: str, reason: str) -> None:
    answer = await door.post(SEND, a_raw(raw))

    assert (answer.json()["status"], answer.json()["reason"]) == ("blocked", reason)


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        (RAW.replace("pat@example.net", "pat at example.net"), ["rawMessage.to[0]"]),
        (RAW.replace("cee@example.net", "(c) cee@example.net, x@"), ["rawMessage.cc[0]", "rawMessage.cc[1]"]),
        ("no header at all", ["rawMessage"]),
        ("Message-ID: <>\r\n" + RAW, ["rawMessage"]),
        ("Message-ID: <" + "x" * 2000 + "@example.com>\r\n" + RAW, ["rawMessage"]),
        ("From: agent@gw.example.com\r\nSubject: to nobody\r\n\r\nhi\r\n", ["to"]),
        ("".join(f"X-{n}: y\r\n" for n in range(1001)) + RAW, ["rawMessage"]),
    ],
)
async def test_a_raw_message_that_cannot_be_read_is_malformed(door: Door, raw: str, named: list[str]) -> None:
    assert faults(await door.post(SEND, a_raw(raw))) == named


async def test_a_body_in_no_charset_goes_as_it_is_and_a_header_in_none_is_refused(door: Door) -> None:
    body, header = RAW.encode() + b"\xff\xfe\r\n", RAW.encode().replace(b"hello", b"\xff\xfe")

    assert (await door.post(SEND, a_raw(body))).json()["status"] == "queued"
    answer = (await door.post(SEND, a_raw(header, idempotencyKey="two"))).json()
    assert (answer["status"], answer["reason"]) == ("blocked", "invalid_message")


NAMES = ("From", "To", "Cc", "Bcc", "Subject", "Message-ID", "In-Reply-To", "References", "Date", "Sender", "Reply-To")
MIME = ("Content-Type", "Content-Transfer-Encoding", "MIME-Version", "X-Y", "Resent-Bcc")
PIECES = (
    *(
        "agent@gw.example.com",
        "pat@example.net",
        "=?utf-8?q?a=00b?=",
        "=?utf-8?b?////?=",
        "\x00",
        "<a@b>",
        "base64",
        "(",
    ),
    *(
        "multipart/mixed; boundary=x",
        "text/plain; charset=utf-7",
        "\u00e9" * 300,
        "x" * 1200,
        '"',
        "<",
        ",",
        ";",
        "@",
        "",
    ),
    *(
        "=?idna?q?x?=",
        "\x7f",
        "\u2028",
        f"<{'m' * 990}@x>",
        "message/rfc822",
        "quoted-printable",
        "--x\r\n\r\n--x--",
        "\n",
    ),
)


def odd_message(dice: random.Random) -> bytes:
    """Something like a message: its usual lines, lines of odd pieces, octets that fell out of it."""
    lines = [line for line in ("From: agent@gw.example.com", "To: pat@example.net") if dice.random() < 0.8]
    more = range(dice.randint(0, 6))
    lines += [f"{dice.choice(NAMES + MIME)}: {' '.join(dice.choices(PIECES, k=dice.randint(0, 3)))}" for _ in more]
    raw = bytearray("\r\n".join([*lines, "", dice.choice(PIECES)]).encode())
    for _ in range(3 if dice.random() < 0.2 else 0):
        raw[dice.randrange(len(raw))] = dice.randrange(256)
    return bytes(raw)


async def test_whatever_is_handed_in_is_decided_or_refused(door: Door) -> None:
    dice, told = random.Random(5), set()
    for number in range(150):
        raw = odd_message(dice)
        answer = await door.post(SEND, a_raw(raw, idempotencyKey=str(number), bcc=f"p{number}@example.net"))
        assert answer.status_code in {200, 422}, (answer.text, raw)
        told.add(answer.json().get("reason") or answer.json()["status"] if answer.status_code == 200 else "malformed")

    assert {"queued", "malformed", "invalid_message", "sender_not_allowed"} <= told
