"""An agent as a process of its own that hands its mails in over SMTP, and asks for all else over HTTP.

`python -m tests.faults.mailer PORT KEY SKEW SMTPS_PORT NAME CA`: as `agent.py`, with the port at which TLS is spoken from
the start, the agent's name for AUTH, and the file with the certificates to check the gateway against. An order to send
becomes a mail with the key and the token in its headers, dated by the agent's own clock. Of about every other mail the
envelope is taken before the barrier, and its content given there; the others begin there. The reply to it is told in the
members that the same answer has over HTTP; what it leaves open is asked for, as an agent would.
"""

import contextlib
import json
import random
import re
import smtplib
import ssl
import sys
import time
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate
from typing import Any

from tests.faults.agent import PATIENCE, Agent, now, obey, wait_until

SENDING = "/v1/agent/request-send"
FROM = "agent@gw.example.com"
LOOK = 0.02
UNDER_WAY = {"queued", "relaying", "deferred"}
REPLY = re.compile(r"\d\.\d+\.\d+ (?:(already accepted|accepted|scheduled|held) as )?(\w+)")
REQUEST = re.compile(r"(?: as |; request=)(req_\w+)")
STATUS = {"451": 503, "554": 422}
"""HTTP's status for replies that are no decision about the mail; those of 550 and 450 are one, which HTTP answers with 200."""
HEADERS = {"idempotencyKey": "X-Gateway-Idempotency-Key", "fencingToken": "X-Gateway-Fencing-Token"}


class RefusedError(Exception):
    """The gateway said no; `code` and `text` are its reply."""

    def __init__(self, code: int, text: bytes) -> None:
        """Keep the reply."""
        super().__init__(code)
        self.code = code
        self.text = text.decode()


class Mailer(Agent):
    """One agent and its two connections."""

    def __init__(self, port: int, key: str, skew: float, door: tuple[int, str, str]) -> None:
        super().__init__(port, key, skew)
        self.smtps_port, self.name, ca = door
        self.tls = ssl.create_default_context(cafile=ca)
        self.session: smtplib.SMTP_SSL | None = None
        self.dice = random.Random(self.name)

    def carry_out(self, order: dict[str, Any]) -> dict[str, Any]:
        """Hand a mail in, or do as any agent does."""
        if order["path"] != SENDING:
            return super().carry_out(order)
        body = order["body"]
        try:
            session = self._open()
            early = self.dice.random() < 0.5
            refused = self._envelope(session, body["to"]) if early else None
            wait_until(order["at"])
            asked = now()
            if not early:
                refused = self._envelope(session, body["to"])
            if refused is None:
                session.send(self._content(body))
                if order.get("hangUp") is not None:
                    time.sleep(order["hangUp"])
                    self._close()
                    return {"asked": asked, "answered": None, "status": None, "answer": None}
                refused = RefusedError(*session.getreply())
            else:
                session.rset()
        except (OSError, smtplib.SMTPException):
            self._close()
            return {"asked": now(), "answered": None, "status": None, "answer": None}
        answered = now()
        return {"asked": asked, "answered": answered} | self._told(refused, body, order.get("prefer"))

    # --- the session --------------------------------------------------------------------------------------------------

    def _open(self) -> smtplib.SMTP_SSL:
        """A session that is logged in; the one of before, where it still lives."""
        if self.session is not None:
            with contextlib.suppress(OSError, smtplib.SMTPException):
                if self.session.noop()[0] == 250:
                    return self.session
            self._close()
        self.session = smtplib.SMTP_SSL("127.0.0.1", self.smtps_port, timeout=PATIENCE, context=self.tls)
        self.session.ehlo("agent.example.com")
        self.session.login(self.name, self.key)
        return self.session

    def _close(self) -> None:
        if self.session is not None:
            self.session.close()
            self.session = None

    def _envelope(self, session: smtplib.SMTP_SSL, to: str) -> RefusedError | None:
        """MAIL, RCPT and DATA; the first reply that is a refusal."""
        for command in (f"MAIL FROM:<{FROM}>", f"RCPT TO:<{to}>", "DATA"):
            code, text = session.docmd(command)
            if code >= 400:
                return RefusedError(code, text)
        return None

    def _content(self, body: dict[str, Any]) -> bytes:
        """The mail with its dot."""
        mail = EmailMessage(policy=SMTP)
        mail["From"], mail["To"], mail["Subject"] = FROM, body["to"], body["subject"]
        mail["Date"] = formatdate(time.time() + self.skew)
        mail["Message-ID"] = f"<{body['idempotencyKey'].replace('@', '.at.')}@agent.example.com>"
        for member, name in HEADERS.items():
            if member in body:
                mail[name] = str(body[member])
        mail.set_content(body["text"])
        return mail.as_bytes() + b".\r\n"  # no line of ours begins with a dot

    # --- what was answered --------------------------------------------------------------------------------------------

    def _told(self, said: RefusedError, body: dict[str, Any], prefer: str | None) -> dict[str, Any]:
        """Status and answer as HTTP has them."""
        found = REPLY.match(said.text)
        request = REQUEST.search(said.text)
        if found is None:
            return {"status": said.code, "answer": {"error": said.text}}
        answer: dict[str, Any] = {"requestId": request and request[1], "idempotencyKey": body["idempotencyKey"]}
        if said.code != 250:
            slug = found[2]
            return {
                "status": STATUS.get(str(said.code), 200),
                "answer": answer | {"status": "blocked", "reason": slug, "messageId": None, "replayed": False},
            }
        record = self._record(str(answer["requestId"]), until_done=bool(prefer))
        replayed = found[1] == "already accepted"
        status = record["status"] if prefer or replayed else "queued"
        return {"status": 200, "answer": record | answer | {"status": status, "replayed": replayed}}

    def _record(self, request: str, *, until_done: bool) -> dict[str, Any]:
        """The send as HTTP shows it; with `until_done` after its first attempt."""
        until = time.monotonic() + PATIENCE
        while True:
            self.line.request("GET", f"/v1/agent/requests/{request}", headers=self.headers({}))
            read = self.line.getresponse().read()
            record: dict[str, Any] = json.loads(read)
            if not until_done or record["status"] not in UNDER_WAY or time.monotonic() > until:
                return record
            time.sleep(LOOK)


def main() -> None:
    """Carry out orders until there are no more."""
    port, key, skew, smtps_port, name, ca = sys.argv[1:]
    obey(Mailer(int(port), key, float(skew), (int(smtps_port), name, ca)))


if __name__ == "__main__":
    main()
