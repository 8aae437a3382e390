"""What must be true of the bytes on the wire and of the mails as another program reads them."""

import email
import email.policy
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.utils import parseaddr
from typing import Any

from gateway.sink import Mail

Check = Callable[[Mail, Any], object]
ENCODED_WORD = re.compile(rb"=\?[^?]*\?[qQbB]\?[^?]*\?=")
WORD_MAX = 75
"""Characters of an encoded word (RFC 2047 2)."""


def head(mail: Mail) -> bytes:
    """The header block of a mail."""
    return mail.content.partition(b"\r\n\r\n")[0] + b"\r\n"


def fields(mail: Mail) -> list[tuple[str, str]]:
    """The header fields as they stand: name and unfolded value."""
    unfolded = re.sub(rb"\r\n(?=[ \t])", b"", head(mail))
    pairs = [line.partition(b":") for line in unfolded.split(b"\r\n") if line]
    return [(name.decode("latin-1"), value.decode("utf-8", "replace").strip()) for name, _, value in pairs]


def names(mail: Mail) -> Counter[str]:
    """How often each header is there, by its name in lower case."""
    return Counter(name.lower() for name, _ in fields(mail))


def values(mail: Mail, name: str) -> list[str]:
    """The values of a header."""
    return [value for one, value in fields(mail) if one.lower() == name.lower()]


def message(mail: Mail) -> EmailMessage:
    """A mail as the standard library reads it."""
    read = email.message_from_bytes(mail.content, policy=email.policy.default)
    assert isinstance(read, EmailMessage)
    return read


def part(mail: Mail, kind: str) -> str | None:
    """The text of the body of this kind (plain, html), its line ends as LF."""
    found = message(mail).get_body((kind,))
    return None if found is None else str(found.get_content()).replace("\r\n", "\n")


def decoded(mail: Mail, name: str) -> str:
    """A header's text as RFC 2047 decodes it; of an address header the display name."""
    (value,) = values(mail, name)
    if name.lower() in {"from", "to", "cc", "reply-to"}:
        value = parseaddr(value)[0]
    return str(make_header(decode_header(value)))


def boundaries(mail: Mail) -> list[str]:
    """The boundaries of all multiparts of a mail."""
    return [str(found) for one in message(mail).walk() if (found := one.get_boundary())]


def _without_crlf(mail: Mail) -> bytes:
    return mail.raw.replace(b"\r\n", b"")


def _well_encoded(mail: Mail) -> bool:
    return all(len(word) <= WORD_MAX for word in ENCODED_WORD.findall(head(mail)))


CHECKS: dict[str, Check] = {
    "no_bare_lf": lambda mail, _: b"\n" not in _without_crlf(mail),
    "no_bare_cr": lambda mail, _: b"\r" not in _without_crlf(mail),
    "max_line": lambda mail, most: max(map(len, mail.raw.split(b"\r\n"))) <= most,
    "ascii_only": lambda mail, _: mail.raw.isascii(),
    "header_absent": lambda mail, absent: not any(names(mail)[name.lower()] for name in absent),
    "header_present": lambda mail, present: all(names(mail)[name.lower()] for name in present),
    "header_kept": lambda mail, kept: all(names(mail)[name.lower()] for name in kept),
    "header_count": lambda mail, counts: all(names(mail)[name.lower()] == count for name, count in counts.items()),
    "header_equals": lambda mail, said: all(values(mail, name) == [value] for name, value in said.items()),
    "contains": lambda mail, texts: all(text.encode() in mail.raw for text in texts),
    "not_contains": lambda mail, texts: not any(text.encode() in mail.raw for text in texts) and _well_encoded(mail),
    "not_contains_header_line": lambda mail, starts: (
        not any(
            line.lower().startswith(start.lower().encode()) for line in head(mail).split(b"\r\n") for start in starts
        )
    ),
    "message_id_domain": lambda mail, domain: values(mail, "Message-ID")[0].endswith(f"@{domain}>"),
    "boundary_unique": lambda mail, _: all(
        mail.content.count(f"--{one}\r\n".encode()) == len(message(mail).get_payload()) for one in boundaries(mail)[:1]
    ),
}
"""What holds for each mail alone."""


def _all_differ(lists: Iterable[Sequence[str]]) -> bool:
    every = [one for some in lists for one in some]
    return len(every) == len(set(every))


TOGETHER: dict[str, Callable[[list[Mail]], bool]] = {
    "boundary_unique": lambda mails: _all_differ(boundaries(mail) for mail in mails),
    "same_message_id": lambda mails: len({tuple(values(mail, "Message-ID")) for mail in mails}) == 1,
    "same_date_header": lambda mails: len({tuple(values(mail, "Date")) for mail in mails}) == 1,
}
"""What holds for all mails of a case together."""


def faults(mails: list[Mail], wanted: dict[str, Any]) -> list[str]:
    """What is not as it should be; raises ValueError for a word that is not known here."""
    found: list[str] = []
    for word, value in wanted.items():
        if word not in CHECKS and word not in TOGETHER:
            raise ValueError(f"the wire's word {word!r} is not known to the driver")
        if word in CHECKS:
            found += [f"mail {mail.number}: not {word}: {value}" for mail in mails if not CHECKS[word](mail, value)]
        if word in TOGETHER and mails and not TOGETHER[word](mails):
            found.append(f"not {word}")
    return found
