"""What is said must be a mail that every reader reads alike: not too large, each single header once, nothing forged.

The facts are computed before any lock (core/mime, from the bytes as they were handed in); what the words in it mean is
not looked at.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from gateway.core.facts import Answers, Ask
from gateway.core.judge import AT_ACCEPTANCE
from gateway.core.mail import Moment, Submission
from gateway.core.verdict import REFUSE, Finding, Reason

TOO_LARGE = Reason(
    "message_too_large", REFUSE, "3.4", "the message is too large", "make it smaller", reply="52", strict=413
)
INVALID = Reason("invalid_message", REFUSE, "6.0", "the message is not valid", "fix", reply="54", strict=422)
REASONS = (TOO_LARGE, INVALID)

RECEIVED_MAX = 50
"""Hops after which a mail goes in a circle. RFC 5321 6.3 means 100 for relays; a submission has had next to none."""

LINE_MAX = 998
"""Octets of a line without its CRLF (RFC 5322 2.1.1)."""


@dataclass(frozen=True, slots=True)
class Content:
    """Refuses messages above `max_bytes` octets on the wire and such as a next reader could take for something else."""

    when: ClassVar[frozenset[Moment]] = AT_ACCEPTANCE

    max_bytes: int = 10_485_760

    def asks(self, mail: Submission) -> tuple[Ask[object], ...]:  # noqa: ARG002  (the mail itself says it all)
        """Need no facts."""
        return ()

    def judge(self, mail: Submission, facts: Answers) -> Iterator[Finding]:  # noqa: ARG002
        """Name the size and each field with what is wrong with it."""
        if mail.content.size > self.max_bytes:
            yield TOO_LARGE.about(limit=self.max_bytes, size=mail.content.size)
        for field, why in _faults(mail):
            yield INVALID.about(field=field, why=why)


def _faults(mail: Submission) -> Iterator[tuple[str, str]]:
    traits = mail.content.traits
    yield from ((name, "may stand only once") for name in traits.repeated)
    if "from" in traits.missing:  # Date and Message-ID are added where they are missing (RFC 6409 8)
        yield "from", "is missing"
    yield from ((name, "holds control characters") for name in traits.control_characters)
    yield from ((name, "is not UTF-8") for name in traits.not_utf8)  # RFC 6532 3: nobody could say what it says
    # Those that the door has read as its own are no trait any more; what is left here is forged, or a slip in a name.
    yield from ((name, "is no header of the gateway, though it is named like one") for name in traits.gateway_headers)
    if traits.received > RECEIVED_MAX:
        yield "received", f"more than {RECEIVED_MAX} trace headers: the mail goes in a circle"
    if traits.nul:
        yield "message", "holds NUL characters"
    if traits.bare_newlines:
        yield "message", "holds line ends other than CRLF"
    if traits.longest_line > LINE_MAX:
        yield "message", f"holds a line longer than {LINE_MAX} octets"
