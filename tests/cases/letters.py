"""The mails that a case hands in over SMTP: the file of a case, or the JSON of a send as a mail program writes it.

Neutral headers become the gateway's. A file is handed in byte for byte, with the line ends of mail.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import parseaddr
from typing import Any

from tests.cases.book import HOME, Case
from tests.cases.house import HOST

OURS = {
    b"x-idempotency-key": b"X-Gateway-Idempotency-Key",
    b"x-agent-lease": b"X-Gateway-Fencing-Token",
    b"x-agent-id": b"X-Gateway-Agent",
}
KEY, TOKEN = "X-Gateway-Idempotency-Key", "X-Gateway-Fencing-Token"
MEMBERS = {
    "idempotencyKey": KEY,
    "dedupeKey": KEY,
    "fencingToken": TOKEN,
    "kind": "X-Gateway-Kind",
    "campaignAction": "X-Gateway-Campaign-Action",
    "scheduledAt": "X-Gateway-Not-Before",
    "dryRun": "X-Gateway-Dry-Run",
    "replyTo": "Reply-To",
    "inReplyTo": "In-Reply-To",
    "subject": "Subject",
}
"""Members of a request, and the headers that say the same."""
READ = {"from", "to", "cc", "bcc", "text", "html", "headers", "references", "attachments", *MEMBERS}
WIRE = SMTP.clone(cte_type="7bit")
FIELD = re.compile(rb"^([!-9;-~]+)(?=[ \t]*:)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail with its envelope; `login` is who hands it in ("": nobody logs in), at which `listener`."""

    sender: str
    people: tuple[str, ...]
    raw: bytes
    login: str
    listener: str = "submission"

    @property
    def parameters(self) -> str:
        """What MAIL has to announce of it."""
        head, _, body = self.raw.partition(b"\r\n\r\n")
        wide = not head.isascii() or not "".join((self.sender, *self.people)).isascii()
        return ("" if body.isascii() else " BODY=8BITMIME") + (" SMTPUTF8" if wide else "")

    def header(self, name: str) -> str:
        """A header's value, or nothing."""
        found = re.search(rf"^{name}:[ \t]*([^\r\n]*)".encode(), self._head, re.MULTILINE | re.IGNORECASE)
        return found[1].decode("utf-8", "replace").strip() if found else ""

    @property
    def _head(self) -> bytes:
        return self.raw.partition(b"\r\n\r\n")[0]

    def headed(self, headers: Mapping[str, str]) -> "Letter":
        """With these headers more, by their neutral names or ours."""
        more = b"".join(f"{name}: {value}\r\n".encode() for name, value in headers.items())
        return replace(self, raw=ours(more) + self.raw)

    def told(self, name: str, value: str) -> "Letter":
        """With another value in a header."""
        line = re.compile(rf"^{name}:[^\r\n]*".encode(), re.MULTILINE | re.IGNORECASE)
        said = line.sub(f"{name}: {value}".encode(), self._head)
        return replace(self, raw=said + self.raw[len(self._head) :])

    def longer(self, octets: int) -> "Letter":
        """By so many octets at its end."""
        whole, rest = divmod(octets, 64)
        lines = (b"x" * 62 + b"\r\n") * whole + (b"x" * max(0, rest - 2) + b"\r\n" if rest else b"")
        return replace(self, raw=self.raw + lines)


def ours(head: bytes) -> bytes:
    """Header fields with the gateway's names instead of the neutral ones."""
    return FIELD.sub(lambda found: OURS.get(found[1].lower(), found[1]), head)


def of_case(case: Case) -> Letter:
    """The mail of a case of the kind eml-out."""
    raw = (HOME / case.file).read_bytes()
    if b"\r\n" not in raw:
        raw = raw.replace(b"\n", b"\r\n")
    head, blank, body = raw.partition(b"\r\n\r\n")
    said = case.envelope
    return Letter(
        said["mail_from"], tuple(said["rcpt_to"]), ours(head) + blank + body, said["login"] or "", said["listener"]
    )


def of_json(body: Mapping[str, Any], login: str) -> Letter:
    """The mail that a request (with our members) is; raises ValueError for a member that no header says."""
    if unknown := sorted(body.keys() - READ):
        raise ValueError(f"{unknown[0]!r} is not known to the driver as part of a mail")
    sender = body.get("from") or f"{login}@{HOST}"
    mail = EmailMessage(policy=WIRE)
    mail["From"] = sender
    for role in ("to", "cc"):
        if named := _list(body.get(role)):
            mail[role.title()] = ", ".join(named)
    for member, name in MEMBERS.items():
        if member in body:
            value = body[member]
            mail[name] = str(value).lower() if isinstance(value, bool) else str(value)
    if references := _list(body.get("references")):
        mail["References"] = " ".join(references)
    for name, value in body.get("headers", {}).items():
        mail[name] = value
    _fill(mail, body)
    everybody = [person for role in ("to", "cc", "bcc") for person in _list(body.get(role))]
    people = tuple(parseaddr(person)[1] for person in everybody)
    return Letter(parseaddr(sender)[1], people, mail.as_bytes(), login)


def _fill(mail: EmailMessage, body: Mapping[str, Any]) -> None:
    """Text, html and files."""
    if "text" in body:
        mail.set_content(body["text"])
        if "html" in body:
            mail.add_alternative(body["html"], subtype="html")
    else:
        mail.set_content(body.get("html", ""), subtype="html" if "html" in body else "plain")
    for file in body.get("attachments", ()):
        main, _, sub = file.get("contentType", "application/octet-stream").partition("/")
        mail.add_attachment(base64.b64decode(file["content"]), main, sub, filename=file["filename"])


def _list(value: str | Sequence[str] | None) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)
