"""One mail for one recipient as it goes over the wire, and the commands that announce it.

The last line of defence against an address that becomes a command and a body that ends before its end: both are
refused, never repaired, since what is wrong here was wrong before it was accepted.
"""

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from gateway.core.dsn import NONE, Dsn
from gateway.core.mimeascii import Form
from gateway.relay.wire import Offers

UNSAFE = r"\x00-\x20\x7f-\xa0<>\u2028\u2029\ud800-\udfff"
ADDRESS = re.compile(f"[^{UNSAFE}]+@[^{UNSAFE}@]+")
"""An address that stays one argument of one command: no blank, no control character, no bracket."""

LARGE = 65_536
_P = ParamSpec("_P")
_T = TypeVar("_T")
_beside = ThreadPoolExecutor(1, "outgoing")


async def beside(size: int, act: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
    """Do what reads a whole mail of `size` octets; where that takes time, in a thread, one mail after the other.

    So a mail that takes long to read holds up large mail alone, and nothing that the loop has to do.
    """
    if size <= LARGE:
        return act(*arguments, **named)
    return await asyncio.get_running_loop().run_in_executor(_beside, lambda: act(*arguments, **named))


class Unfit(Exception):  # noqa: N818 - says what the mail is
    """The mail cannot go to this smarthost, today or later; `why` begins with an enhanced status code (RFC 3463)."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A mail for one recipient.

    `envelope_from` is None for the null reverse-path; `body` is dot-stuffed, every line ends in CRLF, and the final dot
    is not in it; `size` is its length in bytes before stuffing (RFC 1870, 5). `seven_bit` makes the same mail in 7
    bits, for a smarthost without 8BITMIME, in the same form as `body`; it raises ValueError where that cannot be done.
    `headers` says what they are, those of the parts too: UTF-8 goes only where SMTPUTF8 is offered (RFC 6531, 3.2), else
    `narrow` makes the same mail with headers in ASCII, or raises ValueError. `dsn` are the author's wishes for reports,
    passed on where that is offered.
    """

    envelope_from: str | None
    recipient: str
    body: bytes
    size: int
    needs_smtputf8: bool = False
    eight_bit: bool = False
    seven_bit: Callable[[], bytes] | None = None
    headers: Form = Form.ASCII
    narrow: "Callable[[], Outgoing] | None" = None
    dsn: Dsn = NONE

    def fit(self, offers: Offers) -> tuple[bytes, bytes, bytes, bytes]:
        """Returns MAIL, RCPT and DATA, each with its CRLF, and the body to send; raises Unfit."""
        wide = self._wide()
        if wide and not offers.smtputf8:
            raise Unfit("5.6.7 the smarthost does not offer SMTPUTF8, which an address of this mail needs")
        if self.headers is Form.OCTETS:
            raise Unfit("5.6.0 a header of the mail is not UTF-8")
        if self.headers is Form.UTF8 and not offers.smtputf8:
            return self._narrowed().fit(offers)
        body, size = self._body(offers)
        if offers.size and size > offers.size:
            raise Unfit(f"5.3.4 the mail has {size} bytes and the smarthost takes at most {offers.size}")
        mail = f"MAIL FROM:<{self.envelope_from or ''}>"
        if offers.size is not None:
            mail += f" SIZE={size}"
        if self.eight_bit and offers.eight_bit:
            mail += " BODY=8BITMIME"
        if wide or self.headers is Form.UTF8:
            mail += " SMTPUTF8"
        rcpt = f"RCPT TO:<{self.recipient}>"
        if offers.dsn:
            mail, rcpt = mail + self.dsn.of_mail(), rcpt + self.dsn.of_rcpt()
        return f"{mail}\r\n".encode(), f"{rcpt}\r\n".encode(), b"DATA\r\n", body

    def _wide(self) -> bool:
        """Whether the envelope needs SMTPUTF8; raises Unfit for an address that is no argument of a command."""
        sender = self.envelope_from or ""
        for address in (sender, self.recipient):
            if not ADDRESS.fullmatch(address) and (address or address is not sender):
                raise Unfit("5.1.3 an address of the envelope cannot be put into a command")
        return self.needs_smtputf8 or not (sender + self.recipient).isascii()

    def _narrowed(self) -> "Outgoing":
        try:
            if self.narrow is not None:
                return self.narrow()
        except ValueError:
            pass
        raise Unfit("5.6.7 the smarthost does not offer SMTPUTF8, which a header of this mail needs")

    def _body(self, offers: Offers) -> tuple[bytes, int]:
        body, size = self.body, self.size
        if self.eight_bit and not offers.eight_bit:
            if self.seven_bit is None:
                raise Unfit("5.6.3 the mail has 8 bits and the smarthost does not offer 8BITMIME")
            try:
                body = self.seven_bit()
            except ValueError:
                raise Unfit("5.6.3 the smarthost does not offer 8BITMIME, and 7 bits cannot hold the mail") from None
            size = len(body)
        if not sound(body):
            raise Unfit("5.6.0 the mail is not in the form in which it can be sent")
        return body, size


def sound(body: bytes) -> bool:
    """Whether the body ends where it ends: all lines in CRLF, no CR or LF alone, no NUL, no line of a single dot."""
    lines = body.count(b"\r\n")
    return (
        body.endswith(b"\r\n")
        and lines == body.count(b"\n") == body.count(b"\r")
        and b"\0" not in body
        and b"\r\n.\r\n" not in body
        and not body.startswith(b".\r\n")
    )
