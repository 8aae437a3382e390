"""What makes two requests the same: the digest of what a mail says and the fingerprint of what was asked (SEMANTICS 5).

Both are taken over the meaning and not over bytes, so that a JSON request and the same mail handed in by SMTP agree.
"""

import hashlib
from collections.abc import Sequence

from gateway.core.parts import Attachment, lf


def digest(subject: str, text: str | None, html: str | None, attachments: Sequence[Attachment]) -> str:
    """The SHA-256, in hex, of what a mail says, the same whichever way it was handed in.

    Subject, text and html with LF line ends, and names, types and digests of the attachments. What the roads differ in
    does not count: how blanks in the subject were folded, one final line end of a body (SMTP cannot end a mail
    without), an absent body against an empty one, the order of attachments, the parameters of a type.
    """
    files = sorted((file.filename, file.media_type, hashlib.sha256(file.canonical).hexdigest()) for file in attachments)
    bodies = [lf(body or "").removesuffix("\n") for body in (text, html)]
    return _framed(" ".join(subject.split()), *bodies, *(item for file in files for item in file))


def fingerprint(
    digest: str,
    mailbox_id: str,
    recipient_keys: Sequence[str],
    in_reply_to: str | None,
    references: Sequence[str],
    own_headers: Sequence[tuple[str, str]],
) -> str:
    """The SHA-256, in hex, of what was asked for; the same request has the same one through every door.

    The order and repeats of recipients and the order of headers do not count, nor do blanks in values; `own_headers`
    are those of `Draft` or `Parsed`. A token or a schedule is never part of it.
    """
    own = sorted((name.lower(), " ".join(value.split())) for name, value in own_headers)
    people = sorted(set(recipient_keys))
    answered = [bare_id(in_reply_to)] if in_reply_to else []
    thread = [bare_id(reference) for reference in references]
    counts = f"{len(people)} {len(answered)} {len(thread)} {len(own)}"
    return _framed(digest, mailbox_id, counts, *people, *answered, *thread, *(item for pair in own for item in pair))


def bare_id(message_id: str) -> str:
    """A message id without the blanks and the angle brackets around it."""
    return message_id.strip().removeprefix("<").removesuffix(">")


def _framed(*items: str) -> str:
    """Texts each behind its length, so that no two lists are alike."""
    # Whether a lone surrogate may be sent is not judged here.
    octets = [item.encode("utf-8", "surrogatepass") for item in items]
    return hashlib.sha256(b"".join([b"%d:%b" % (len(data), data) for data in octets])).hexdigest()
