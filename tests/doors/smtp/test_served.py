"""The SMTP door of a real process: a mail goes to the smarthost, the certificate is renewed, a wrong setting stops the start."""

import asyncio
import signal
import smtplib
import ssl
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from gateway.sink import Sink
from tests.servers import Served, init, run_cli, start
from tests.smtp import authority

MAILBOX = "agent@gw.example.com"


def certify(folder: Path, by: str = "ours") -> dict[str, Any]:
    """Puts a new certificate into the folder; the settings that name it."""
    made = authority(by).issue_cert("localhost")
    made.private_key_pem.write_to_path(str(folder / "key.pem"))
    made.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
    return {"tls_cert": str(folder / "cert.pem"), "tls_key": str(folder / "key.pem")}


def port_of(served: Served, tls: str = "starttls") -> int:
    """The port of a door, from the log."""
    return int(next(line["port"] for line in served.lines if line["event"] == "smtp.listening" and line["tls"] == tls))


def trusting(by: str = "ours") -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority(by).configure_trust(context)
    return context


def a_message(number: int = 1) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = MAILBOX, f"pat{number}@example.net", "hello"
    message["Message-ID"] = f"<{number}@gw.example.com>"
    message.set_content("hi")
    return message


@pytest.fixture
def home(tmp_path: Path, sqlite_url: str) -> dict[str, Any]:
    """A store with a tenant, and its operator key."""
    made = init(sqlite_url, tmp_path / "profile.toml", MAILBOX)
    return {"url": sqlite_url, "key": made["rawKey"], "folder": tmp_path}


@pytest.fixture
def served(home: dict[str, Any]) -> Iterator[Served]:
    """A gateway without a relay, with both SMTP doors."""
    one = start(
        home["url"],
        roles="http,smtp",
        smtp_bind="127.0.0.1:0",
        smtps_bind="127.0.0.1:0",
        hostname="gw.example.com",
        **certify(home["folder"]),
    )
    try:
        yield one
    finally:
        one.kill()


def send(served: Served, key: str, message: EmailMessage, by: str = "ours") -> None:
    with smtplib.SMTP("localhost", port_of(served), timeout=20) as client:
        client.starttls(context=trusting(by))
        client.login(key[:16], key)
        client.send_message(message)


async def test_a_mail_goes_from_a_mail_program_to_the_smarthost(home: dict[str, Any]) -> None:
    async with Sink() as sink:
        served = await asyncio.to_thread(
            start,
            home["url"],
            roles="http,smtp,relay",
            smtp_bind="127.0.0.1:0",
            smarthost=f"smtp://127.0.0.1:{sink.port}",
            **certify(home["folder"]),
        )
        try:
            await asyncio.to_thread(send, served, home["key"], a_message())
            (mail,) = await sink.wait(1, 20)
        finally:
            await asyncio.to_thread(served.kill)

    assert (mail.envelope_from, list(mail.recipients)) == (MAILBOX, ["pat1@example.net"])
    assert mail.content.startswith(b"Received: from ")
    assert b"Message-ID: <1@gw.example.com>\r\n" in mail.content
    assert home["key"] not in str(served.lines)


def test_hangup_renews_the_certificate_and_a_wrong_one_changes_nothing(served: Served, home: dict[str, Any]) -> None:
    with smtplib.SMTP_SSL("localhost", port_of(served, "implicit"), context=trusting(), timeout=20) as open_before:
        certify(home["folder"], by="theirs")
        served.process.send_signal(signal.SIGHUP)
        served.wait_for("smtp.certificate_loaded")

        assert open_before.noop()[0] == 250
    send(served, home["key"], a_message(1), by="theirs")
    with pytest.raises(ssl.SSLCertVerificationError):
        send(served, home["key"], a_message(2), by="ours")
    (home["folder"] / "cert.pem").write_text("nothing")
    served.process.send_signal(signal.SIGHUP)
    line = served.wait_for("smtp.certificate_not_loaded")
    send(served, home["key"], a_message(3), by="theirs")

    assert "TLS_CERT" in line["cause"]


def test_a_door_that_is_asked_to_stop_stops(served: Served) -> None:
    client = smtplib.SMTP("localhost", port_of(served), timeout=20)
    try:
        assert client.noop()[0] == 250
        assert served.stop() == 0
        assert client.noop()[0] == 421
    finally:
        client.close()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"smtp_bind": "127.0.0.1:0"}, "SMTP_BIND"),
        ({"smtps_bind": "127.0.0.1:0", "smtp_trust": "127.0.0.0/8=a"}, "SMTPS_BIND"),
        ({"smtp_bind": "127.0.0.1:0", "smtp_trust": "everybody"}, "SMTP_TRUST"),
        ({"smtp_bind": "127.0.0.1:0", "tls_cert": "missing.pem"}, "TLS_CERT"),
        ({"smtp_bind": "127.0.0.1:0", "tls_cert": __file__}, "TLS_CERT"),
        ({"smtp_bind": "192.0.2.1:25", "smtp_trust": "127.0.0.0/8=a"}, "SMTP_BIND"),
    ],
)
def test_a_wrong_setting_stops_the_start_in_one_line(sqlite_url: str, settings: dict[str, str], named: str) -> None:
    done = run_cli("serve", "--roles", "smtp", database_url=sqlite_url, **settings)

    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith(f"error: {named}: ")
