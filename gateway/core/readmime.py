"""Messages that come as bytes, read: what they say, and facts about their form that policies judge.

What is odd but can be read becomes a trait; only what cannot be read within the limits raises. It repairs no address
and judges nothing.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gateway.core.headers import counted, decode, has_controls, to_text, value_of
from gateway.core.mimetree import Part, body_of, own_parts, parameters, tree
from gateway.core.parts import Attachment, crlf, lf

# RFC 5322 3.6 and RFC 2045: at most once. Bcc too, but it is removed anyhow, however often it stands there.
_SINGLE = frozenset({
    "from", "sender", "reply-to", "to", "cc", "date", "message-id", "in-reply-to", "references", "subject",
    "mime-version", "content-type", "content-transfer-encoding",
})  # fmt: skip
_NEEDED = ("from", "date", "message-id")

_ID = re.compile(r"<[^<>]*>|[^\s<>]+")


@dataclass(frozen=True, slots=True)
class Traits:
    """Facts about a message's form; a policy judges them. Names of headers are in lower case; a clean message has none.

    `repeated`: headers that must be single but are not. `missing`: of From, Date and Message-ID. `control_characters`:
    headers with such in their raw or decoded value. `not_utf8`: headers, of parts too, that no reader can tell the
    characters of (RFC 6532 3). `gateway_headers`: X-Gateway-* and X-Fencing-Token. `received`: how
    many. `eight_bit`, `bare_newlines` (CR or LF alone), `nul`: whether there are any. `longest_line` in octets.
    """

    repeated: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    control_characters: tuple[str, ...] = ()
    not_utf8: tuple[str, ...] = ()
    gateway_headers: tuple[str, ...] = ()
    received: int = 0
    eight_bit: bool = False
    bare_newlines: bool = False
    nul: bool = False
    longest_line: int = 0


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a message says. Of a header that stands twice the first counts, but `header_from` has every From.

    Addresses are strings as they stand in the header, one mailbox each, for `address.parse` to judge. `headers` are
    all, decoded, in order; `own_headers` those that the fingerprint counts. Texts have LF line ends.
    """

    subject: str
    text: str | None
    html: str | None
    attachments: tuple[Attachment, ...]
    header_from: tuple[str, ...]
    sender: str | None
    message_id: str | None
    date: str | None
    in_reply_to: str | None
    references: tuple[str, ...]
    reply_to: tuple[str, ...]
    headers: tuple[tuple[str, str], ...]
    own_headers: tuple[tuple[str, str], ...]
    to: tuple[str, ...]
    cc: tuple[str, ...]
    bcc: tuple[str, ...]
    traits: Traits


def read(raw: bytes) -> Parsed:
    """Reads a message; raises `MimeError` for malformed header lines and beyond the limits of size and number."""
    data = crlf(raw)  # the same object where all line ends are CRLF
    root = tree(data)
    encoded = [(name, value_of(raw_field)) for name, raw_field in root.fields]
    first: dict[str, str] = {}
    for name, value in encoded:
        first.setdefault(name.lower(), value)
    decoded = tuple((name, decode(value)) for name, value in encoded)
    text, html, files = _contents(data, root)

    def people(header: str, *, groups: bool = True) -> tuple[str, ...]:
        values = [value for name, value in encoded if name.lower() == header]
        return tuple(item for value in values for item in mailboxes(value, groups=groups))

    reply_to = people("reply-to")
    own = [(name.lower(), value) for name, value in decoded if counted(name)]
    if reply_to:
        own.append(("reply-to", ", ".join(map(_bare, reply_to))))
    return Parsed(
        subject=decode(first.get("subject", "")),
        text=text,
        html=html,
        attachments=tuple(files),
        header_from=people("from", groups=False),  # though RFC 6854 allows them: "a@b.example: me@c.example;"
        sender=first.get("sender"),
        message_id=first.get("message-id"),
        date=first.get("date"),
        in_reply_to=next(iter(_ID.findall(first.get("in-reply-to", ""))), None),
        references=tuple(_ID.findall(first.get("references", ""))),
        reply_to=reply_to,
        headers=decoded,
        own_headers=tuple(own),
        to=people("to"),
        cc=people("cc"),
        bcc=people("bcc"),
        traits=_traits(raw, root, encoded, bare=data is not raw),
    )


def auto_submitted(headers: Iterable[tuple[str, str]]) -> str:
    """The keyword of the first Auto-Submitted header, in lower case, without comments and parameters (RFC 3834 5)."""
    for name, value in headers:
        if name.lower() == "auto-submitted":
            return re.sub(r"\([^()]*\)", "", value).partition(";")[0].strip().lower()
    return ""


def _traits(raw: bytes, root: Part, encoded: list[tuple[str, str]], *, bare: bool) -> Traits:
    names = [name.lower() for name, _ in encoded]
    once = dict.fromkeys(names)
    odd = dict.fromkeys(name.lower() for name, value in encoded if has_controls(value.replace("\t", " ")))
    return Traits(
        repeated=tuple(name for name in once if name in _SINGLE and names.count(name) > 1),
        missing=tuple(name for name in _NEEDED if name not in once),
        control_characters=tuple(odd),
        not_utf8=() if raw.isascii() else tuple(dict.fromkeys(_not_utf8(root))),
        gateway_headers=tuple(name for name in once if name.startswith("x-gateway-") or name == "x-fencing-token"),
        received=names.count("received"),
        eight_bit=not raw.isascii(),
        bare_newlines=bare,
        nul=b"\0" in raw,
        longest_line=max(map(len, raw.split(b"\r\n"))),
    )


def _not_utf8(root: Part) -> Iterator[str]:
    for part in own_parts(root):
        for name, raw_field in part.fields:
            try:
                raw_field.decode()
            except UnicodeDecodeError:
                yield name.lower()


# --- addresses --------------------------------------------------------------------------------------------------------


def mailboxes(value: str, *, groups: bool = True) -> Iterator[str]:
    """Splits an unfolded address header into its mailboxes as they stand there; groups lose their name.

    Nothing is repaired: a comment or an open quote stays in its mailbox, which `address.parse` then refuses. Without
    `groups` so does a group: its name is what some readers show.
    """
    item, quoted, angle, skip = "", False, False, False
    for char in value:
        if skip or (quoted and char != '"'):
            skip = not skip and char == "\\"
            item += char
            continue
        if char == '"':
            quoted = not quoted
        elif char in "<>":
            angle = char == "<"
        elif char in (",:;" if groups else ",") and not angle:
            if char != ":" and item.strip():
                yield item.strip()
            item = ""
            continue
        item += char
    if item.strip():
        yield item.strip()


def _bare(mailbox: str) -> str:
    """A mailbox without its display name, its domain in lower case."""
    spec = mailbox.rpartition("<")[2].rstrip(">")
    local, at, domain = spec.rpartition("@")
    return f"{local}{at}{domain.lower()}"


# --- contents ---------------------------------------------------------------------------------------------------------


def _contents(data: bytes, root: Part) -> tuple[str | None, str | None, list[Attachment]]:
    """Text, html and files: the first of each text that is no file is the body, all else is a file."""
    bodies: dict[str, str] = {}
    files: list[Attachment] = []
    for part, may_be_body in _leaves(root, may_be_body=True):
        disposition, extra = parameters(part.value("content-disposition"))
        filename = extra.get("filename") or part.parameters.get("name", "")
        kind, octets = part.media_type, body_of(data, part)
        body = may_be_body and kind in {"text/plain", "text/html"} and disposition != "attachment" and not filename
        if body and kind not in bodies:
            bodies[kind] = lf(to_text(octets, part.parameters.get("charset", "utf-8").lower()))
            continue
        others = [(name, value) for name, value in part.parameters.items() if name != "name"]
        content_type = kind + "".join(f"; {name}={_quoted(value)}" for name, value in others)
        cid = part.value("content-id").removeprefix("<").removesuffix(">")
        files.append(Attachment(filename, content_type, octets, cid or None))
    return bodies.get("text/plain"), bodies.get("text/html"), files


def _leaves(part: Part, *, may_be_body: bool) -> Iterator[tuple[Part, bool]]:
    """The parts that hold something; within multipart/related only the first can be the body (RFC 2387)."""
    if not part.children or part.media_type == "message/rfc822":
        yield part, may_be_body
        return
    for index, child in enumerate(part.children):
        yield from _leaves(child, may_be_body=may_be_body and not (index and part.media_type == "multipart/related"))


def _quoted(value: str) -> str:
    """A parameter's value, in quotes where it is no token."""
    return value if re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`{|}~-]+", value) else f'"{value}"'
