"""What can be asked for in a send: the members of `request-send` and `simulate-send` (SEMANTICS 4)."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    PrivateAttr,
    StringConstraints,
    Tag,
    ValidationInfo,
    WithJsonSchema,
)

from gateway.core.address import Address, AddressError
from gateway.core.headers import FIELDS_MAX, MimeError, check_header, has_controls, protected
from gateway.core.mime import ATTACHMENTS_MAX
from gateway.doors.fields import (
    PEOPLE_MAX,
    Campaign,
    Coming,
    ConsensusId,
    Key,
    MessageId,
    Name,
    Octets,
    Part,
    People,
    Person,
    Reader,
    Sender,
    Shape,
    Subject,
    Text,
    Token,
    Words,
    fault,
)

REFERENCES_MAX = 100
CONTENT = ("subject", "text", "html")
COMPOSED = (*CONTENT, "payload", "from", "replyTo", "headers", "inReplyTo", "references", "attachments")
"""Members that a message handed in as bytes says by itself."""
NOBODY = "a recipient is needed: recipientEmail, to, cc or bcc"
NOTHING = "something to say is needed: text, html, attachments or rawMessage"


def _header_name(name: str) -> str:
    try:
        check_header(name, "")
    except MimeError as error:
        raise fault(error.why) from None
    if protected(name):
        raise fault("the gateway sets this header itself")
    return name


def _header_value(value: str) -> str:
    if has_controls(value):
        raise fault("control characters are not allowed")
    return value


HeaderName = Annotated[str, AfterValidator(_header_name)]
HeaderValue = Annotated[str, StringConstraints(max_length=10_000), AfterValidator(_header_value)]


class Header(Part):
    """One header of the caller's own."""

    name: HeaderName
    value: HeaderValue


class File(Part):
    """A file to attach; with a content id, html can show it as `cid:`."""

    id: Name | None = Field(None, description="A file that was uploaded before, in place of its content.")
    filename: Annotated[str, StringConstraints(max_length=255)] | None = Field(
        None, description="Its name; of an upload, at most the same."
    )
    content: Octets | None = Field(None, description="The file in base64.")
    content_type: Annotated[str, StringConstraints(max_length=255)] | None = Field(
        None, description="Its media type, application/octet-stream without it; of an upload, at most the same."
    )
    content_id: Annotated[str, StringConstraints(max_length=200)] | None = None


class Payload(Part):
    """What is said, for clients that fill templates; with a stored template, whatever its variables are."""

    model_config = ConfigDict(extra="allow")

    subject: Subject | None = None
    text: Text | None = None
    html: Text | None = None


def _form(value: object) -> str:
    return "<list>" if isinstance(value, list) else "<map>"


Headers = Annotated[
    Annotated[dict[HeaderName, HeaderValue], Field(max_length=FIELDS_MAX), Tag("<map>")]
    | Annotated[list[Header], Field(max_length=FIELDS_MAX), Tag("<list>")],
    Discriminator(_form),
]


def _one_each(value: object, info: ValidationInfo) -> object:
    """Two spellings of one address must not hide that there are two tokens: the last one would count."""
    found: dict[Address, object] = {}
    assert isinstance(info.context, Reader), "shapes are read with a reader"  # noqa: S101
    if not isinstance(value, dict) or len(value) > PEOPLE_MAX:
        return value
    for text, token in value.items():
        try:
            person = info.context.person(text)
        except AddressError:
            continue  # which is said of the address
        if found.setdefault(person, token) != token:
            raise fault("has two tokens for one person")
    return value


def _not_humanized(value: object) -> bool:
    if value is not False:
        raise fault("only false is supported: nothing is rewritten here")
    return False


def _odd_variables(given: dict[str, Any]) -> list[tuple[str, str]]:
    """Members of a payload that no stored template is there for."""
    name, payload = given.get("templateId"), given["payload"]
    if not isinstance(payload, dict) or (isinstance(name, str) and not name.startswith("_")):
        return []
    odd = [member for member in payload if member not in CONTENT]
    return [(f"payload.{member}" if member.isidentifier() else "payload", "is not known") for member in odd]


def _bare_files(files: object) -> list[tuple[str, str]]:
    """Files with neither content nor id, or with both."""
    found: list[tuple[str, str]] = []
    for number, file in enumerate(files if isinstance(files, list) else ()):
        if not isinstance(file, dict):
            continue
        if file.get("id") is not None:
            if file.get("content") is not None:
                found.append((f"attachments[{number}].content", "the upload has it"))
            continue
        needed = [name for name in ("filename", "content") if file.get(name) is None]
        found += [(f"attachments[{number}].{name}", "is required") for name in needed]
    return found


class SendRequest(Shape):
    """A mail to send, or to try in a dry run."""

    unsupported: ClassVar = frozenset({"deferOnWarmup", "humanizeStyle", "humanizeProvider"})

    from_: Sender | None = Field(None, alias="from", description="One of the key's mailboxes, with or without a name.")
    mailbox_id: Name | None = Field(None, description="The mailbox to send from, by id; without it, the key's first.")
    recipient_email: Person | None = Field(None, description="The only recipient; or use to, cc, bcc.")
    to: People | None = None
    cc: People | None = None
    bcc: People | None = None
    reply_to: People | None = None
    subject: Subject | None = None
    text: Text | None = None
    html: Text | None = None
    payload: Payload | None = Field(None, description="A stored template's variables; else subject, text and html.")
    template_id: Name | None = Field(
        None, description="A stored template, by slug or id; a name that begins with _ means nothing here."
    )
    headers: Headers | None = Field(
        None,
        description="The caller's own headers, as object or as list of name and value; List-... once, in ASCII.",
    )
    in_reply_to: MessageId | None = None
    references: Annotated[list[MessageId], Field(max_length=REFERENCES_MAX)] | None = None
    thread_id: Campaign | None = None
    attachments: Annotated[list[File], Field(max_length=ATTACHMENTS_MAX)] | None = None
    raw_message: Octets | None = Field(None, description="A whole message (RFC 5322) in base64, in place of its parts.")
    kind: Literal["outreach", "reply", "transactional"] = "outreach"
    campaign_action: Campaign | None = None
    scheduled_at: Coming | None = Field(None, description="Not before this time; one that has passed means now.")
    dry_run: bool = Field(default=False, description="Judge and write nothing.")
    send_reason: Words | None = Field(None, description="Words for the audit.")
    override_reason: Words | None = Field(None, description="An operator's reason to pass lease and cooldown.")
    idempotency_key: Key | None = None
    dedupe_key: Key | None = Field(None, description="The same as idempotencyKey.")
    fencing_token: Token | None = Field(None, description="The token of one's lease on the only recipient.")
    fencing_tokens: Annotated[dict[Person, Token], BeforeValidator(_one_each), Field(max_length=PEOPLE_MAX)] | None = (
        Field(None, description="Tokens by address.")
    )
    require_consensus_id: ConsensusId | None = Field(
        None, description="A consensus that must be approved; until it is decided the mail is held."
    )
    humanize: (
        Annotated[bool, PlainValidator(_not_humanized), WithJsonSchema({"type": "boolean", "const": False})] | None
    ) = None
    _made_from: str | None = PrivateAttr(None)

    @classmethod
    def clashes(cls, given: dict[str, Any]) -> list[tuple[str, str]]:
        """Members that exclude each other, and what must be there in one form or another."""
        present = {name for name, value in given.items() if value not in (None, [])}
        found: list[tuple[str, str]] = []
        if "payload" in present:
            found += [(name, "stands in payload or here, not in both") for name in CONTENT if name in present]
            found += _odd_variables(given)
        found += _bare_files(given.get("attachments"))
        if "rawMessage" in present:
            found += [(name, "the raw message says this itself") for name in COMPOSED if name in present]
        if {"recipientEmail", "to"} <= present:
            found.append(("to", "stands beside recipientEmail; use one of them"))
        if {"idempotencyKey", "dedupeKey"} <= present and given["idempotencyKey"] != given["dedupeKey"]:
            found.append(("dedupeKey", "differs from idempotencyKey"))
        if present.isdisjoint({"recipientEmail", "to", "cc", "bcc", "rawMessage"}):
            found.append(("to", NOBODY))
        return found

    @property
    def stored_template(self) -> str | None:
        """The template that the store is to have."""
        return None if self.template_id is None or self.template_id.startswith("_") else self.template_id

    @property
    def variables(self) -> dict[str, Any]:
        """What is given for the gaps of a stored template."""
        return {} if self.payload is None else self.payload.model_dump(exclude_unset=True)

    @property
    def made_from(self) -> str | None:
        """The stored template that was filled in, as id:version."""
        return self._made_from

    def filled(self, name: str, changes: dict[str, Any]) -> "SendRequest":
        """The same request with `changes`, made from the stored template of this name (id:version)."""
        made = self.model_copy(update=changes)
        made._made_from = name  # noqa: SLF001  (it is one of these)
        return made

    def say(self, name: str) -> str | None:
        """Subject, text or html, wherever it was given."""
        value: str | None = getattr(self.payload or self, name)
        return value

    @property
    def says_something(self) -> bool:
        """Whether there is a body of any kind."""
        return bool(self.raw_message is not None or self.attachments) or any(
            self.say(name) is not None for name in ("text", "html")
        )

    @property
    def size(self) -> int:
        """About how many bytes the message will have."""
        texts = sum(len(self.say(name) or "") for name in CONTENT)
        return texts + len(self.raw_message or b"") + sum(len(file.content or b"") for file in self.attachments or ())

    @property
    def own_headers(self) -> tuple[tuple[str, str], ...]:
        """The caller's own headers as pairs, without blanks around a value, which mean nothing (RFC 5322 2.2)."""
        if isinstance(self.headers, dict):
            pairs = list(self.headers.items())
        else:
            pairs = [(header.name, header.value) for header in self.headers or ()]
        return tuple((name, value.strip(" ")) for name, value in pairs)
