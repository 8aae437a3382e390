"""The demo's mail program: Python's smtplib, which knows nothing of this gateway but host, port, name and key."""

import asyncio
import smtplib
import ssl
from email.message import EmailMessage
from email.policy import SMTP

from gateway.cli.demo.board import Board
from gateway.cli.demo.stage import MAILBOX, Actor, Stage
from gateway.cli.demo.words import CUSTOMER, OPTED_OUT

NEWCOMER = "newcomer@example.org"
ANSWER_SECONDS = 20.0


class Program:
    """Hands mails in over SMTP as one of the agents."""

    def __init__(self, stage: Stage, agent: Actor) -> None:
        self._agent = agent
        self._port = stage.smtp_port
        self._tls = ssl.create_default_context(cadata=stage.certificate)

    async def send(self, to: str) -> str:
        """Hand a mail to this person in; returns the reply that decided it. Raises OSError."""
        return await asyncio.to_thread(self._send, to)

    def _send(self, to: str) -> str:
        mail = EmailMessage()
        mail["From"], mail["To"], mail["Subject"] = MAILBOX, to, "A demo of the gateway"
        mail["Message-ID"] = f"<demo-{to.partition('@')[0]}@gw.example.com>"
        mail.set_content("Hello from a mail program.")
        with smtplib.SMTP_SSL("localhost", self._port, context=self._tls, timeout=ANSWER_SECONDS) as client:
            client.login(self._agent.name, self._agent.key)
            for code, words in (client.mail(MAILBOX), client.rcpt(to)):
                if code >= 400:  # noqa: PLR2004  (a refusal)
                    return _said(code, words)
            return _said(*client.data(mail.as_bytes(policy=SMTP)))


def _said(code: int, words: bytes) -> str:
    return f"{code} {words.decode('ascii', 'replace')}"


async def play(stage: Stage, board: Board, agent: Actor) -> None:
    """The act in which a mail program meets the same rules."""
    board.act(
        "A mail program instead of HTTP",
        "It changes host and port; the answers come as SMTP replies that say what to do.",
    )
    program = Program(stage, agent)
    people = {"a newcomer": NEWCOMER, "the same mail again": NEWCOMER, "too soon": CUSTOMER, "opted out": OPTED_OUT}
    replies = {words: await program.send(to) for words, to in people.items()}
    board.table(("mail over SMTP", "reply"), list(replies.items()))
    for words, begins in (
        ("a newcomer", "250 2.0.0 accepted as"),
        ("the same mail again", "250 2.0.0 already accepted as"),
        ("too soon", "450 4.7.1 cooldown"),
        ("opted out", "550 5.7.1 suppressed"),
    ):
        reply = replies[words]
        board.check(f"over SMTP, {words}", begins, begins if reply.startswith(begins) else reply)
    await stage.sink.wait(2)
