"""`sink` as a process: one line for each mail, a Maildir, rude on request, and gone when it is told to."""

import json
import signal
import smtplib

import pytest

from tests.cli.processes import House, Staying

RAW = b"Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nMessage-ID: <1@gw.example.com>\r\n\r\nHello\r\n"


def port_of(sink: Staying) -> int:
    return int(sink.line(r"listening on 127\.0\.0\.1:(\d+)$", err=True)[1])


def deliver(port: int, content: bytes = RAW) -> None:
    with smtplib.SMTP("127.0.0.1", port, timeout=30) as client:
        client.sendmail("agent@gw.example.com", ["one@example.net", "two@example.net"], content)


def test_each_mail_is_one_line(house: House) -> None:
    with house.stay("sink", "--bind", "127.0.0.1:0") as sink:
        port = port_of(sink)
        deliver(port)
        deliver(port, b"Subject: a\x1b[2Jb\r\n\r\n")

        first, second = sink.line("^1 ").string, sink.line("^2 ").string

    assert first == f"1 <agent@gw.example.com> -> <one@example.net>, <two@example.net> {len(RAW)} bytes: Grüße"
    assert second.endswith("a\ufffd[2Jb")


def test_each_mail_is_one_line_of_json_where_that_is_wanted(house: House) -> None:
    with house.stay("sink", "--bind", "127.0.0.1:0", "--json") as sink:
        deliver(port_of(sink))

        mail = json.loads(sink.line("^{").string)

    assert mail == {
        "number": 1,
        "session": 1,
        "from": "agent@gw.example.com",
        "to": ["one@example.net", "two@example.net"],
        "bytes": len(RAW),
        "subject": "Grüße",
        "messageId": "<1@gw.example.com>",
    }


def test_mails_are_kept_in_the_maildir(house: House) -> None:
    with house.stay("sink", "--bind", "127.0.0.1:0", "--maildir", "mail") as sink:
        deliver(port_of(sink))
        sink.line("^1 ")

    (kept,) = (house.folder / "mail" / "new").iterdir()
    assert kept.read_bytes().endswith(b"\n\nHello\n")


def test_a_script_makes_it_rude(house: House) -> None:
    (house.folder / "rude.txt").write_text('RCPT "550 5.1.1 No such user here"\n')
    with house.stay("sink", "--bind", "127.0.0.1:0", "--script", "rude.txt") as sink:
        port = port_of(sink)

        with pytest.raises(smtplib.SMTPRecipientsRefused):
            deliver(port)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(house: House, number: int) -> None:
    with house.stay("sink", "--bind", "127.0.0.1:0") as sink:
        port_of(sink)

        assert sink.stop(number) == 0


def test_a_port_that_is_taken_is_one_line(house: House) -> None:
    with house.stay("sink", "--bind", "127.0.0.1:0") as sink:
        port = port_of(sink)

        ended = house.run("sink", "--bind", f"127.0.0.1:{port}")

    assert ended.code == 1
    assert ended.err == f"error: 127.0.0.1:{port} cannot be listened on: Address already in use\n"
