"""Postfix as our smarthost: what it takes goes onward, what it refuses ends for that recipient alone, reports are its own."""

import contextlib
import re
import smtplib
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import migrated
from tests.counterparts import postfix
from tests.counterparts.postfix import Files, Postfix
from tests.counterparts.programs import SENDER, Sinking, needs, run
from tests.counterparts.stand import Stand, standing
from tests.databases import SqliteFiles
from tests.smtp import authority, ca_file

pytestmark = needs("postfix")

BEHIND = "relay.example.net"
SETTINGS = (
    "relayhost = [127.0.0.1]:{sink}",
    "smtpd_recipient_restrictions = check_recipient_access texthash:{{etc}}/access, permit_mynetworks, reject",
    "smtpd_error_sleep_time = 0",
    "header_checks = regexp:{{etc}}/header_checks",
    "transport_maps = texthash:{{etc}}/transport",
)
ACCESS = """
unwanted@example.net 550 5.7.1 We know why
nobody@example.net   550 5.1.1 No such person here
later@example.net    450 4.2.0 Greylisted
example.org          550 5.7.1 Nobody there
"""

BY_NETWORK = ("smtpd_sasl_auth_enable = no", "smtpd_relay_restrictions = permit_mynetworks, reject")
"""For a gateway that Postfix knows by its address: in place of what docs/smtp.md says of logins."""
LOGIN = ("cyrus_sasl_config_path = {etc}/sasl", "smtpd_recipient_restrictions = permit_sasl_authenticated, reject")


@dataclass(frozen=True)
class Way:
    """The way of a mail: the gateway, Postfix, the sink; `home` is where Postfix's reports to the sender end."""

    stand: Stand
    postfix: Postfix
    sink: Sinking
    home: Sinking


@contextlib.contextmanager
def behind(*more: str, files: Files) -> Iterator[tuple[Postfix, Sinking, Sinking]]:
    """A Postfix that relays to a sink, and the sink of reports."""
    issued = authority("ours").issue_cert("localhost")
    with Sinking() as sink, Sinking() as home:
        whole = {
            "chain.pem": issued.private_key_and_cert_chain_pem.bytes().decode(),
            "access": ACCESS,
            "header_checks": "/^Subject: unheard/ REJECT Not in these words\n",
            "transport": f"gw.example.com smtp:[127.0.0.1]:{home.port}\n",
            **files,
        }
        settings = [line.format(sink=sink.port) for line in SETTINGS]
        with postfix.running(BEHIND, *postfix.documented("behind"), *settings, *more, files=whole) as server:
            yield server, sink, home


@pytest.fixture(scope="module")
def way(sqlite_files: SqliteFiles, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    folder = tmp_path_factory.mktemp("behind")
    with sqlite_files.fresh(migrated) as url, behind(*BY_NETWORK, files={}) as (server, sink, home):
        smarthost = f"smtp+starttls://localhost:{server.port}"
        with standing(url, folder, smarthost, smarthost_ca=ca_file(folder)) as stand:
            yield Way(stand, server, sink, home)


def recipients(answer: Any) -> dict[str, Any]:  # noqa: ANN401 - an answer of the HTTP door
    """What an answer says of each person."""
    return {one["email"]: one for one in answer["recipients"]}


def test_a_mail_goes_onward_under_tls_as_it_was(way: Way) -> None:
    text = ".\n..\n.hidden\nGrüße aus Köln\n\n.\n" + "x" * 900 + "\n"

    answer = way.stand.send("onward@example.net", subject="Überraschung für alle", text=text)

    mail = way.sink.mail_to("onward@example.net")
    assert answer["status"] == "relayed", answer
    assert (mail.envelope_from, mail.recipients) == (SENDER, ("onward@example.net",))
    (line,) = re.findall(rb"^Received: (.+?;)", mail.content, re.MULTILINE | re.DOTALL)
    assert line.startswith(b"from gw.example.com (unknown [127.0.0.1])\r\n\tby relay.example.net (Postfix) with ESMTPS")


def test_a_refused_recipient_bounces_alone_in_postfixs_words(way: Way) -> None:
    answer = way.stand.send("unwanted@example.net", "wanted@example.net")

    assert answer["counts"] == {"relayed": 1, "bounced": 1}
    told = recipients(answer)
    assert told["wanted@example.net"]["status"] == "relayed"
    assert told["unwanted@example.net"]["status"] == "bounced"
    assert "We know why" in str(told["unwanted@example.net"])
    assert way.sink.mail_to("wanted@example.net").recipients == ("wanted@example.net",)
    assert way.sink.mails_to("unwanted@example.net") == []
    assert way.stand.send("unwanted@example.net", text="again")["status"] == "bounced"  # not suppressed


def test_who_is_not_there_is_suppressed_from_then_on(way: Way) -> None:
    first = way.stand.send("nobody@example.net")
    second = way.stand.send("nobody@example.net", text="again")

    assert (first["status"], second["status"], second["reason"]) == ("bounced", "blocked", "suppressed")


def test_a_temporary_refusal_defers(way: Way) -> None:
    answer = way.stand.send("later@example.net")
    way.stand.ask("DELETE", f"agent/sends/{answer['requestId']}")

    assert answer["status"] == "deferred"
    assert "Greylisted" in str(recipients(answer)["later@example.net"])


def test_a_refusal_after_the_final_dot_bounces(way: Way) -> None:
    answer = way.stand.send("words@example.net", subject="unheard")

    assert answer["status"] == "bounced"
    assert "Not in these words" in str(recipients(answer)["words@example.net"])


def test_wishes_for_reports_are_passed_on_and_postfix_grants_them(way: Way) -> None:
    message = f"From: {SENDER}\r\nTo: report@example.net\r\nSubject: hello\r\n\r\nhi\r\n"
    with smtplib.SMTP("localhost", way.stand.port(), timeout=20) as client:
        client.starttls(context=ssl.create_default_context(cafile=str(way.stand.certificate)))
        client.login(way.stand.name, way.stand.key)
        wishes = ["NOTIFY=SUCCESS", "ORCPT=rfc822;first+2Bname@example.net"]  # +2B is a plus
        client.sendmail(SENDER, ["report@example.net"], message, ["RET=HDRS", "ENVID=letter+2B1"], wishes)

    report = way.home.mail_with(b"\nOriginal-Envelope-Id: letter+1\r\n")
    assert (report.envelope_from, report.recipients) == (None, (SENDER,))
    assert b"\nOriginal-Recipient: rfc822;first+name@example.net\r\n" in report.content
    assert b"\nAction: relayed\r\n" in report.content


def test_umlauts_in_addresses_are_passed_on(way: Way) -> None:
    answer = way.stand.send("jörg@example.net", text="Grüße")

    assert answer["status"] == "relayed", answer
    assert way.sink.mail_to("jörg@example.net").envelope_from == SENDER


def test_what_follows_on_a_connection_that_postfix_ends_for_its_refusals_is_not_lost(
    way: Way, sqlite_url: str, tmp_path: Path
) -> None:
    people = [f"refused{number}@example.org" for number in range(45)]
    smarthost = f"smtp+starttls://localhost:{way.postfix.port}"
    settings = {"smarthost_ca": str(ca_file(tmp_path)), "relay_concurrency": "1"}
    with standing(sqlite_url, tmp_path, smarthost, **settings) as stand:
        answer = stand.send(*people, "last@example.net")

    assert answer["counts"] == {"bounced": 45, "relayed": 1}
    assert {one["attempts"] for one in answer["recipients"]} == {1}
    assert way.sink.mail_to("last@example.net").envelope_from == SENDER
    way.postfix.wait_for("too many errors")


def test_tls_can_be_switched_off_by_name_on_the_loopback(way: Way, sqlite_url: str, tmp_path: Path) -> None:
    with standing(sqlite_url, tmp_path, f"smtp://127.0.0.1:{way.postfix.port}?tls=off") as stand:
        assert stand.send("clear@example.net")["status"] == "relayed"

    assert b"(Postfix) with ESMTP id " in way.sink.mail_to("clear@example.net").content


@needs("saslpasswd2")
@pytest.mark.parametrize(("word", "status"), [("sesame", "relayed"), ("barley", "deferred")])
def test_we_log_in_where_postfix_asks_for_it(sqlite_url: str, tmp_path: Path, word: str, status: str) -> None:
    base = tmp_path / "sasldb2"
    done = run("saslpasswd2", "-p", "-c", "-f", str(base), "-u", BEHIND, "relay", given=b"open sesame\n")
    assert done.returncode == 0, done.stderr
    logins = "pwcheck_method: auxprop\nauxprop_plugin: sasldb\nsasldb_path: {etc}/sasldb2\nmech_list: PLAIN LOGIN\n"
    files: dict[str, str | bytes] = {"sasldb2": base.read_bytes(), "sasl/smtpd.conf": logins}
    with behind(*LOGIN, files=files) as (server, sink, _):
        smarthost = f"smtp+starttls://relay%40{BEHIND}:open%20{word}@localhost:{server.port}"
        with standing(sqlite_url, tmp_path, smarthost, smarthost_ca=ca_file(tmp_path)) as stand:
            answer = stand.send("sesame@example.net")
            assert answer["status"] == status, "\n".join(server.lines)

        if status == "relayed":
            assert b"(Postfix) with ESMTPSA id " in sink.mail_to("sesame@example.net").content
        assert len(sink.sink.mails) == (status == "relayed")
