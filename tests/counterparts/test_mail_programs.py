"""swaks, msmtp, nodemailer and Python's smtplib hand in at both doors, hear refusals in our words, and README.md's lines work."""

import base64
import email
import re
import smtplib
import ssl
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

import pytest

from tests.conftest import migrated
from tests.counterparts.programs import Sinking, needs, needs_package, node_modules, run
from tests.counterparts.stand import Stand, standing
from tests.databases import SqliteFiles

MAILBOX, AGENT = "agent@example.com", "outreach-agent"
"""As in README.md."""
TRUSTED = "127.0.0.2"
README = (Path(__file__).parent.parent.parent / "README.md").read_text(encoding="utf-8")
DOORS = ("starttls", "implicit")
AFTER_DATA, AT_RCPT, AT_MAIL, AT_AUTH, LACKING = 26, 24, 23, 28, 10
"""Exit codes of swaks."""


@dataclass(frozen=True)
class Way:
    """The gateway, the sink behind it, and a key that is bound to the agent."""

    stand: Stand
    sink: Sinking
    key: str


@pytest.fixture(scope="module")
def way(sqlite_files: SqliteFiles, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    folder = tmp_path_factory.mktemp("programs")
    with sqlite_files.fresh(migrated) as url, Sinking() as sink:
        smarthost, trust = f"smtp://127.0.0.1:{sink.port}", f"{TRUSTED}/32=cron"
        with standing(url, folder, smarthost, mailbox=MAILBOX, smtp_trust=trust) as stand:
            stand.agent("cron")
            yield Way(stand, sink, stand.agent(AGENT))


def text_of(content: bytes) -> tuple[str, str]:
    """Subject and text of a mail, decoded."""
    message = email.message_from_bytes(content, policy=default)
    body = message.get_body(("plain",))
    assert body is not None
    return str(message["Subject"]), body.get_content().replace("\r\n", "\n")


def line_of_readme(start: str, way: Way) -> str:
    """README.md's line that begins so, for the port on which the gateway listens here."""
    (line,) = [line for line in README.splitlines() if line.startswith(start)]
    assert line.count("1587") == 1
    return line.replace("1587", str(way.stand.port()))


# --- swaks ------------------------------------------------------------------------------------------------------------


def swaks(way: Way, to: str, *words: str, tls: str = "starttls", key: str = "") -> tuple[int, str]:
    """One mail of swaks with these options; returns its exit code and what it printed."""
    server = ("--server", f"localhost:{way.stand.port(tls)}", "--from", MAILBOX, "--to", to)
    login = ("--auth-user", AGENT, "--auth-password", key or way.key) if "--auth" in words else ()
    done = run("swaks", *server, *words, *login, "--tls-verify", "--tls-ca-path", str(way.stand.certificate))
    if done.returncode == LACKING:
        pytest.skip(f"swaks lacks a module of Perl: {done.stderr}")
    return done.returncode, done.stdout + done.stderr


@needs("swaks")
@pytest.mark.parametrize("mechanism", ["PLAIN", "LOGIN"])
@pytest.mark.parametrize("tls", DOORS)
def test_swaks_sends(way: Way, tls: str, mechanism: str) -> None:
    person = f"swaks-{tls}-{mechanism}@example.net".lower()
    how = "--tls" if tls == "starttls" else "--tls-on-connect"

    code, said = swaks(way, person, how, "--auth", mechanism, "--body", ".\n..\n.hidden", tls=tls)

    assert code == 0, said
    assert f" ~> AUTH {mechanism}" in said
    assert text_of(way.sink.mail_to(person).content)[1].startswith(".\n..\n.hidden")


@needs("swaks")
def test_swaks_sends_without_tls_from_a_trusted_network_alone(way: Way) -> None:
    trusted, heard = swaks(way, "swaks-plain@example.net", "--local-interface", TRUSTED)
    stranger, told = swaks(way, "swaks-stranger@example.net")

    assert trusted == 0, heard
    assert b"with ESMTP id req_" in way.sink.mail_to("swaks-plain@example.net").content
    assert stranger == AT_MAIL, told
    assert "530 5.7.0 STARTTLS and a login are needed first" in told


@needs("swaks")
def test_swaks_hears_refusals(way: Way) -> None:
    way.stand.suppress("swaks-gone@example.net")
    usual = ("--tls", "--auth", "PLAIN")

    at_auth, login = swaks(way, "swaks-x@example.net", *usual, key=f"{way.key[:-1]}!")
    at_rcpt, suppressed = swaks(way, "swaks-gone@example.net", *usual)
    after_data, unheard = swaks(way, "swaks-x@example.net", *usual, "--header", "X-Gateway-Nothing: 1")

    assert (at_auth, at_rcpt, after_data) == (AT_AUTH, AT_RCPT, AFTER_DATA), unheard
    assert "535 5.7.8 the login is not valid" in login
    assert "550 5.7.1 suppressed; recipient=swaks-gone@example.net; " in suppressed
    assert "554 5.6.0 invalid_message; " in unheard


@needs("swaks", "bash")
def test_the_line_of_the_readme_for_swaks_works(way: Way) -> None:
    done = run("bash", "-c", line_of_readme("swaks ", way), variables={"A": way.key})

    assert done.returncode == 0, done.stdout
    assert way.sink.mail_to("sam@example.net").envelope_from == MAILBOX


# --- msmtp ------------------------------------------------------------------------------------------------------------


def msmtp(way: Way, to: str, body: str, *, tls: str = "starttls", mechanism: str = "plain") -> tuple[int, str]:
    """One mail of msmtp; returns its exit code and what it complained about."""
    settings = {
        "host": "localhost",
        "port": way.stand.port(tls),
        "from": MAILBOX,
        "auth": mechanism,
        "user": AGENT,
        "password": way.key,
        "tls": "on",
        "tls_starttls": "on" if tls == "starttls" else "off",
        "tls_trust_file": way.stand.certificate,
    }
    file = way.stand.folder / "msmtprc"
    file.touch(mode=0o600)
    file.write_text("account default\n" + "".join(f"{name} {value}\n" for name, value in settings.items()))
    message = f"From: {MAILBOX}\nTo: {to}\nSubject: hello\n\n{body}"
    done = run("msmtp", "-C", str(file), "--", to, given=message.encode())
    return done.returncode, done.stderr


@needs("msmtp")
@pytest.mark.parametrize("mechanism", ["plain", "login"])
@pytest.mark.parametrize("tls", DOORS)
def test_msmtp_sends(way: Way, tls: str, mechanism: str) -> None:
    person = f"msmtp-{tls}-{mechanism}@example.net"

    code, complaint = msmtp(way, person, ".\n..\n\nend\n", tls=tls, mechanism=mechanism)

    assert (code, complaint) == (0, "")
    assert text_of(way.sink.mail_to(person).content) == ("hello", ".\n..\n\nend\n")


@needs("msmtp")
def test_msmtp_fails_with_our_words_where_it_is_refused(way: Way) -> None:
    way.stand.suppress("msmtp-gone@example.net")
    lease = way.stand.lease("msmtp-held@example.net", "other")

    gone, suppressed = msmtp(way, "msmtp-gone@example.net", "hi\n")
    held, conflict = msmtp(way, "msmtp-held@example.net", "hi\n")
    way.stand.release(lease)
    bare, octets = msmtp(way, "msmtp-bare@example.net", "Grüße\n")

    assert 0 not in (gone, held, bare)
    assert "550 5.7.1 suppressed; recipient=msmtp-gone@example.net; " in suppressed
    assert "450 4.7.1 lease_conflict; recipient=msmtp-held@example.net; " in conflict
    assert "holds octets above 127, for which MAIL needs BODY=8BITMIME" in octets


# --- Python's smtplib -------------------------------------------------------------------------------------------------


def umlauts(person: str) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"] = f"Jörg Müller <{MAILBOX}>", f"Käthe Groß <{person}>"
    message["Subject"] = "Überraschung für alle, die längere Betreffzeilen als üblich lesen mögen"
    message.set_content("Grüße aus Köln\n")
    return message


def client_of(way: Way, tls: str) -> smtplib.SMTP:
    """A client that is logged in."""
    trusting = ssl.create_default_context(cafile=str(way.stand.certificate))
    port = way.stand.port(tls)
    if tls == "implicit":
        client: smtplib.SMTP = smtplib.SMTP_SSL("localhost", port, context=trusting, timeout=20)
    else:
        client = smtplib.SMTP("localhost", port, timeout=20)
        client.starttls(context=trusting)
    client.login(AGENT, way.key)
    return client


@pytest.mark.parametrize("tls", DOORS)
def test_smtplib_sends(way: Way, tls: str) -> None:
    message = umlauts(f"smtplib-{tls}@example.net")

    with client_of(way, tls) as client:
        refused = client.send_message(message, mail_options=["BODY=8BITMIME"])

    assert refused == {}
    mail = way.sink.mail_to(f"smtplib-{tls}@example.net")
    assert text_of(mail.content) == (message["Subject"], "Grüße aus Köln\n")
    assert mail.content.isascii() is False


def test_smtplib_sends_umlauts_in_the_address_without_further_words(way: Way) -> None:
    with client_of(way, "starttls") as client:
        assert client.send_message(umlauts("käthe@example.net")) == {}

    assert text_of(way.sink.mail_to("käthe@example.net").content)[1] == "Grüße aus Köln\n"


def test_smtplib_hears_refusals(way: Way) -> None:
    way.stand.suppress("smtplib-gone@example.net")
    with client_of(way, "starttls") as client:
        with pytest.raises(smtplib.SMTPRecipientsRefused) as refused:
            client.send_message(umlauts("smtplib-gone@example.net"), mail_options=["BODY=8BITMIME"])
        with pytest.raises(smtplib.SMTPDataError) as unannounced:
            client.send_message(umlauts("smtplib-x@example.net"))

        assert client.noop()[0] == 250

    code, said = refused.value.recipients["smtplib-gone@example.net"]
    assert (code, said.startswith(b"5.7.1 suppressed; ")) == (550, True)
    assert unannounced.value.smtp_code == 554


def test_the_line_of_the_readme_for_smtplib_works(way: Way) -> None:
    line = line_of_readme("smtp = smtplib.SMTP(", way)
    begin = "import os, smtplib, ssl\nfrom email.message import EmailMessage\nmessage = EmailMessage()\n"
    begin += f"message['From'], message['To'] = '{MAILBOX}', 'readme-smtplib@example.net'\nmessage.set_content('hi')\n"
    script = way.stand.folder / "readme.py"
    script.write_text(f"import os\nos.chdir({str(way.stand.folder)!r})\n{begin}{line}\nsmtp.quit()\n")

    done = run(sys.executable, str(script), variables={"A": way.key})

    assert done.returncode == 0, done.stderr
    assert way.sink.mail_to("readme-smtplib@example.net").envelope_from == MAILBOX


# --- nodemailer -------------------------------------------------------------------------------------------------------

BEGIN = "const fs = require('fs'), nodemailer = require('nodemailer'); process.chdir(process.env.FOLDER); "
SENT = ".then((info) => console.log('sent', info.response), (error) => console.log('refused', error.response))"
NODE = """
const implicit = process.env.TLS == 'implicit';
const message = {from: 'Jörg <agent@example.com>', to: process.env.TO, subject: 'Überraschung für alle',
  text: '.\\nGrüße\\n' + 'x'.repeat(3000), attachments: [{filename: 'Übersicht.bin', content: Buffer.from([0, 13, 10, 255])}]};
nodemailer.createTransport({host: 'localhost', port: process.env.PORT, secure: implicit, requireTLS: !implicit,
  tls: {ca: fs.readFileSync('gateway-cert.pem')}, auth: {user: 'outreach-agent', pass: process.env.A}}).sendMail(message)
"""


def node(way: Way, script: str, **variables: str) -> str:
    """Run a script; returns what it printed."""
    modules = {"NODE_PATH": str(node_modules()), "FOLDER": str(way.stand.folder), "A": way.key}
    done = run("node", "-e", f"{BEGIN}{script.strip()}{SENT}", variables=modules | variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_package("nodemailer")
@pytest.mark.parametrize("tls", DOORS)
def test_nodemailer_sends(way: Way, tls: str) -> None:
    person = f"nodemailer-{tls}@example.net"

    said = node(way, NODE, TLS=tls, TO=person, PORT=str(way.stand.port(tls)))

    assert said.startswith("sent 250 2.0.0 accepted as req_"), said
    content = way.sink.mail_to(person).content
    assert text_of(content) == ("Überraschung für alle", ".\nGrüße\n" + "x" * 3000)
    assert base64.b64encode(bytes([0, 13, 10, 255])) in content


@needs_package("nodemailer")
def test_nodemailer_hears_refusals(way: Way) -> None:
    way.stand.suppress("nodemailer-gone@example.net")

    said = node(way, NODE, TLS="starttls", TO="nodemailer-gone@example.net", PORT=str(way.stand.port()))

    assert re.match(r"refused 550 5\.7\.1 suppressed; recipient=nodemailer-gone@example\.net; ", said), said


@needs_package("nodemailer")
def test_the_line_of_the_readme_for_nodemailer_works(way: Way) -> None:
    message = f"const message = {{from: '{MAILBOX}', to: 'readme-node@example.net', text: 'hi'}}; "

    said = node(way, message + line_of_readme("nodemailer.createTransport(", way))

    assert said.startswith("sent 250 2.0.0 accepted as req_"), said
    assert way.sink.mail_to("readme-node@example.net").envelope_from == MAILBOX
