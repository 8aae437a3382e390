"""Postfix as the client: it relays through us with SASL under TLS, and its queue and its reports understand our answers."""

import json
import re
import signal
import smtplib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.sink import Mail
from tests.conftest import migrated
from tests.counterparts import postfix
from tests.counterparts.postfix import Postfix
from tests.counterparts.programs import SENDER, Sinking, needs
from tests.counterparts.stand import Stand, standing, with_doors
from tests.databases import SqliteFiles
from tests.servers import PATIENCE, serving

pytestmark = needs("postfix", "postqueue", "sendmail")

FRONT = "front.example.com"
TAKES_REPORTS = r'EHLO "250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 DSN"'
"""A smarthost that is well behaved and offers DSN, and remembers what it was told."""
MORE = ("smtp_tls_secure_cert_match = gw.example.com", "smtp_destination_recipient_limit = 150")
"""Beside what docs/smtp.md says: the gateway's name where it is called by a number; more people than it takes at once."""
EIGHT_BIT = (b"MIME-Version: 1.0", b"Content-Type: text/plain; charset=utf-8", b"Content-Transfer-Encoding: 8bit")


@dataclass(frozen=True)
class Way:
    """The way of a mail: Postfix, the gateway, the sink; `home` is where reports to the sender end."""

    postfix: Postfix
    stand: Stand
    sink: Sinking
    home: Sinking

    def arrived(self, person: str) -> Mail:
        """The mail for a person, which Postfix has got rid of at the first try."""
        fate = self.postfix.fate_of(person)
        assert "status=sent (250 2.0.0 accepted as req_" in fate, fate
        return self.sink.mail_to(person)


def relaying_through(stand: Stand, home: int) -> tuple[dict[str, str], list[str]]:
    """The files and lines of a Postfix that relays through this gateway."""
    files = {
        "gateway-cert.pem": stand.certificate.read_text(),
        "passwords": f"[127.0.0.1]:{stand.port()} {stand.name}:{stand.key}\n",
        "transport": f"gw.example.com clear:[127.0.0.1]:{home}\n",
    }
    place = f"[127.0.0.1]:{stand.port()}"
    return files, [line.replace("[gateway.example.com]:587", place) for line in postfix.documented("in front")] + [
        *MORE
    ]


@pytest.fixture(scope="module")
def way(sqlite_files: SqliteFiles, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    folder = tmp_path_factory.mktemp("front")
    with (
        sqlite_files.fresh(migrated) as url,
        Sinking(script=TAKES_REPORTS) as sink,
        Sinking() as home,
        standing(url, folder, f"smtp://127.0.0.1:{sink.port}") as stand,
    ):
        files, settings = relaying_through(stand, home.port)
        with postfix.running(FRONT, *settings, files=files) as client:
            yield Way(client, stand, sink, home)


def a_mail(person: str, body: bytes = b"hi\n", *headers: bytes) -> bytes:
    """A mail with LF line ends, as programs give it to sendmail."""
    head = [b"From: " + SENDER.encode(), b"To: " + person.encode(), b"Subject: hello", *headers]
    return b"\n".join([*head, b"", body])


def body_of(content: bytes) -> bytes:
    return content.partition(b"\r\n\r\n")[2]


def test_what_sendmail_takes_arrives_with_its_trace(way: Way) -> None:
    body = b".\n..\n.hidden\n" + "Grüße aus Köln\n".encode() + b"\n.\n.\n\nend\n"

    way.postfix.sendmail(a_mail("dots@example.net", body, *EIGHT_BIT), "--", "dots@example.net")

    mail = way.arrived("dots@example.net")
    assert body_of(mail.content) == body.replace(b"\n", b"\r\n")
    assert (mail.envelope_from, mail.recipients) == (SENDER, ("dots@example.net",))
    ours, theirs = re.findall(rb"^Received: (.+?;)", mail.content, re.MULTILINE | re.DOTALL)
    assert ours.startswith(b"from front.example.com ([127.0.0.1])\r\n\tby gw.example.com with ESMTPSA id req_")
    assert theirs.startswith(b"by front.example.com (Postfix, from userid ")


def test_what_comes_by_smtp_for_several_arrives_for_each(way: Way) -> None:
    people = [f"several{number}@example.net" for number in range(5)]
    with smtplib.SMTP("127.0.0.1", way.postfix.port, timeout=20) as client:
        client.sendmail(SENDER, people, a_mail(", ".join(people), b"hi\n", b"Bcc: nobody@example.org"))

    for person in people:
        mail = way.arrived(person)
        assert mail.recipients == (person,)
        assert mail.content.count(b"Received: ") == 2
        assert b"\nBcc:" not in mail.content


def test_lines_as_long_as_they_may_be_stay_and_longer_ones_are_folded_by_postfix(way: Way) -> None:
    fair, long = b"x" * 998, b"y" * 5000

    way.postfix.sendmail(a_mail("long@example.net", fair + b"\n" + long + b"\n"), "--", "long@example.net")

    lines = body_of(way.arrived("long@example.net").content).split(b"\r\n")
    assert lines[0] == fair
    assert b"".join(line.strip() for line in lines[1:]) == long
    assert max(map(len, lines)) == 998


def test_umlauts_in_headers_and_addresses_go_as_smtputf8(way: Way) -> None:
    person = "jörg@example.net"
    subject = "Subject: Überraschung".encode()
    message = a_mail(person, "Grüße\n".encode(), *EIGHT_BIT).replace(b"Subject: hello", subject)

    way.postfix.sendmail(message, "--", person)

    assert subject + b"\r\n" in way.arrived(person).content
    assert rf"RCPT TO:<{person}> ORCPT=utf-8;j\x{{F6}}rg@example.net" in way.sink.sink.commands  # RFC 6533 3
    assert [line for line in way.sink.sink.commands if line.startswith("MAIL") and line.endswith(" SMTPUTF8")]


def test_octets_that_nothing_announces_bounce_in_our_words(way: Way) -> None:
    way.postfix.sendmail(a_mail("bare@example.net", "Grüße\n".encode()), "--", "bare@example.net")

    fate = way.postfix.fate_of("bare@example.net")
    assert "dsn=5.6.0, status=bounced" in fate
    assert "octets above 127, for which MAIL needs BODY=8BITMIME" in fate


def test_wishes_for_reports_come_through(way: Way) -> None:
    wishes = ("-N", "success,delay", "-R", "hdrs", "-V", "letter+1")

    way.postfix.sendmail(a_mail("dsn@example.net"), *wishes, "--", "dsn@example.net")
    way.arrived("dsn@example.net")

    said = way.sink.sink.commands
    assert [line for line in said if line.startswith("MAIL") and line.endswith(" RET=HDRS ENVID=letter+2B1")]
    wished = "RCPT TO:<dsn@example.net> NOTIFY=SUCCESS,DELAY ORCPT=rfc822;dsn@example.net"
    assert wished in said


def test_a_suppressed_person_bounces_in_our_words_and_the_others_get_the_mail(way: Way) -> None:
    way.stand.suppress("gone@example.net")

    way.postfix.sendmail(a_mail("gone@example.net"), "--", "gone@example.net", "here@example.net")

    assert way.arrived("here@example.net").recipients == ("here@example.net",)
    fate = way.postfix.fate_of("gone@example.net")
    assert "dsn=5.7.1, status=bounced" in fate
    assert "550 5.7.1 suppressed; recipient=gone@example.net; " in fate
    report = way.home.mail_with(b"\nFinal-Recipient: rfc822; gone@example.net\r\n")
    assert (report.envelope_from, report.recipients) == (None, (SENDER,))
    assert b"Diagnostic-Code: smtp; 550 5.7.1 suppressed; recipient=gone@example.net;" in report.content
    assert way.sink.mails_to("gone@example.net") == []


def test_a_contact_of_another_agent_waits_in_the_queue_until_it_is_free(way: Way) -> None:
    lease = way.stand.lease("held@example.net", "other")

    way.postfix.sendmail(a_mail("held@example.net"), "--", "held@example.net", "beside@example.net")
    fate = way.postfix.fate_of("held@example.net")
    (waiting,) = [mail for mail in way.postfix.queue() if "held@example.net" in str(mail["recipients"])]
    way.stand.release(lease)
    way.postfix.flush()

    assert "dsn=4.7.1, status=deferred" in fate
    assert "450 4.7.1 lease_conflict; recipient=held@example.net; holder=" in fate
    assert waiting["queue_name"] == "deferred"
    assert ["lease_conflict" in one["delay_reason"] for one in waiting["recipients"]] == [True, True]  # all or nothing
    assert way.sink.mail_to("held@example.net").envelope_from == SENDER
    way.postfix.wait_for(r" to=<held@example\.net>.* status=sent")
    way.sink.mail_to("beside@example.net")
    assert [len(way.sink.mails_to(f"{name}@example.net")) for name in ("held", "beside")] == [1, 1]


def test_more_people_than_a_mail_may_have_get_it_in_parts(way: Way) -> None:
    people = [f"many{number}@example.net" for number in range(120)]

    way.postfix.sendmail(a_mail("many@example.net"), "--", *people)
    told = way.postfix.wait_for(r" to=<many\d+@example\.net>.* status=deferred")
    for person in people:
        way.postfix.fate_of(person)
    way.postfix.flush()

    assert "452 4.5.3 recipient_not_allowed; too many recipients; send the rest in a mail of its own" in told
    for person in people:
        way.sink.mail_to(person)
        assert len(way.sink.mails_to(person)) == 1


def test_another_sender_than_the_mailbox_bounces(way: Way) -> None:
    message = a_mail("forged@example.net").replace(SENDER.encode(), b"boss@gw.example.com")

    way.postfix.sendmail(message, "--", "forged@example.net")

    fate = way.postfix.fate_of("forged@example.net")
    assert "dsn=5.7.1, status=bounced" in fate
    assert "sender_not_allowed" in fate


def test_a_connection_that_postfix_keeps_carries_mail_behind_refusals(way: Way) -> None:
    kept = (
        f"smtp_connection_cache_destinations = [127.0.0.1]:{way.stand.port()}",
        "smtp_tls_connection_reuse = yes",
        "smtp_connection_cache_time_limit = 60s",
        "connection_cache_ttl_limit = 60s",
        "default_destination_concurrency_limit = 1",
    )
    files, settings = relaying_through(way.stand, way.home.port)
    gone, fine = ([f"{kind}{number}@example.net" for number in range(25)] for kind in ("refused", "kept"))
    for person in gone:
        way.stand.suppress(person)

    with postfix.running(FRONT, *settings, *kept, files=files) as client:
        for person in [*gone, *fine]:
            client.sendmail(a_mail(person), "--", person)
        fates = [client.fate_of(person) for person in [*gone, *fine]]
        uses = [
            int(used) for line in client.lines for used in re.findall(rf":{way.stand.port()}, conn_use=(\d+)", line)
        ]

    assert [re.findall("status=[a-z]+", fate) for fate in fates] == [["status=bounced"]] * 25 + [["status=sent"]] * 25
    assert max(uses) > 5


def test_a_gateway_that_dies_before_it_answers_is_asked_again_and_sends_once(sqlite_url: str, tmp_path: Path) -> None:
    armed = {"ARMED": json.dumps({"steps": {"commit.after": {"do": "kill"}}})}
    door = {"smtp_bind": f"127.0.0.1:{postfix.free_port()}"}
    with Sinking() as sink:
        smarthost = f"smtp://127.0.0.1:{sink.port}"
        with standing(
            sqlite_url, tmp_path, smarthost, module="tests.faults.armed", extra=armed, **door, roles="http,smtp"
        ) as victim:
            files, settings = relaying_through(victim, sink.port)
            with postfix.running(FRONT, *settings, files=files) as client:
                client.sendmail(a_mail("twice@example.net"), "--", "twice@example.net")
                fate = client.fate_of("twice@example.net")
                assert victim.served.process.wait(PATIENCE) == -signal.SIGKILL
                with serving(sqlite_url, smarthost=smarthost, **(with_doors(tmp_path) | door)) as heir:
                    client.flush()
                    sent = client.wait_for(r" to=<twice@example\.net>.* status=sent")
                    sink.mail_to("twice@example.net")
                    assert heir.stop() == 0

        assert "status=deferred" in fate
        assert "250 2.0.0 already accepted as req_" in sent
        assert len(sink.mails_to("twice@example.net")) == 1
