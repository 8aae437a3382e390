"""The kinds of values that a request may hold: strict, bounded, without control characters, addresses read at once.

Nothing is coerced or repaired: `true` is no number, 1.5 is no token, and what is not an address is refused. Shapes are
read with a `Reader` as their context, which knows the tenant's rules for addresses.
"""

import binascii
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from gateway.core import allowlist
from gateway.core.address import Address, AddressError, KeyRules, domain_of, parse
from gateway.core.headers import has_controls

PEOPLE_MAX = 10_000
TOKEN_MAX = 2**63 - 1
METADATA_MAX = 16_384
"""Characters of metadata as JSON."""
SUBJECT_MAX = 10_000
"""Characters of a subject."""
AHEAD = timedelta(days=366)
"""How far ahead a time may lie."""

_C0 = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)")


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads addresses by a tenant's rules; `own` are domains of its own mailboxes, which may be special-use names."""

    rules: KeyRules
    special_use: frozenset[str]
    own: frozenset[str]
    now: datetime

    def person(self, text: str) -> Address:
        """An address with or without display name. Raises AddressError."""
        return parse(text, rules=self.rules, special_use=self.special_use, display=True)

    def sender(self, text: str) -> Address:
        """The same for one's own address."""
        return parse(text, rules=self.rules, special_use=self.special_use | self.own, display=True)

    def domain(self, text: str) -> str:
        """The domain by which the tenant's person keys know it. Raises AddressError."""
        return self.rules.canonical(domain_of(text))

    def pattern(self, text: str) -> str:
        """A pattern of an allow list (core/allowlist) as it is kept. Raises AddressError."""
        return allowlist.pattern(text, self.rules)


def fault(why: str) -> PydanticCustomError:
    """What is wrong with a value, in one dull sentence that repeats nothing of it."""
    return PydanticCustomError("fault", "{why}", {"why": why})


def _line(value: str) -> str:
    if has_controls(value):
        raise fault("control characters are not allowed")
    return value


def has_odd_controls(text: str) -> bool:
    """Whether a text holds control characters that no text of several lines has."""
    return _C0.search(text) is not None


def _text(value: str) -> str:
    if has_odd_controls(value):
        raise fault("control characters other than TAB, CR and LF are not allowed")
    return value


def _address(read: Callable[[Reader, str], object]) -> Callable[[Any, ValidationInfo], Any]:
    """A validator that reads a text by the reader of the context."""

    def validate(value: Any, info: ValidationInfo) -> Any:  # noqa: ANN401  (JSON in, an address out)
        if not isinstance(value, str):
            raise fault("must be a text")
        assert isinstance(info.context, Reader), "shapes are read with a reader"  # noqa: S101
        try:
            return read(info.context, value)
        except AddressError as error:
            raise fault(error.why) from None

    return validate


def _several(value: object) -> object:
    """One address may stand alone."""
    return [value] if isinstance(value, str) else value


def moment(value: object) -> datetime:
    """A time as RFC 3339 has it, with its offset; in UTC."""
    if not isinstance(value, str) or _MOMENT.fullmatch(value) is None:
        raise fault("must be a time like 2026-11-30T12:00:00Z, with an offset")
    try:
        return datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError):
        raise fault("there is no such time") from None


def _now(info: ValidationInfo) -> datetime:
    """The time by the reader of the context."""
    assert isinstance(info.context, Reader), "shapes are read with a reader"  # noqa: S101
    return info.context.now


def _coming(value: object, info: ValidationInfo) -> datetime:
    at = moment(value)
    if at > _now(info) + AHEAD:
        raise fault("must not be more than 366 days ahead")
    return at


def _future(value: object, info: ValidationInfo) -> datetime:
    at = moment(value)
    if at <= _now(info):
        raise fault("must lie in the future")
    return at


def _octets(value: object) -> bytes:
    if not isinstance(value, str):
        raise fault("must be a text in base64")
    try:
        return binascii.a2b_base64(value, strict_mode=True)
    except ValueError:
        raise fault("must be base64 without line breaks") from None


def _metadata(value: dict[str, Any]) -> dict[str, Any]:
    if len(json.dumps(value)) > METADATA_MAX:
        raise fault(f"is longer than {METADATA_MAX} characters as JSON")
    if any(has_controls(text) for text in _texts(value)):
        raise fault("control characters are not allowed")
    return value


def _texts(value: object) -> Iterator[str]:
    """All names and texts within a value of JSON; its depth has an end."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(inner)


def _digits(value: object) -> object:
    """A number of a query; it comes as text."""
    return int(value) if isinstance(value, str) and re.fullmatch(r"\d{1,18}", value, re.ASCII) else value


_EMAIL = {"type": "string", "examples": ["pat@example.com", "Pat <pat@example.com>"]}
_TIME = {"type": "string", "format": "date-time"}

Name = Annotated[str, StringConstraints(min_length=1, max_length=128), AfterValidator(_line)]
Words = Annotated[str, StringConstraints(min_length=1, max_length=1000), AfterValidator(_line)]
Subject = Annotated[str, StringConstraints(max_length=SUBJECT_MAX), AfterValidator(_line)]
Text = Annotated[str, AfterValidator(_text)]
ConsensusId = Annotated[str, StringConstraints(pattern=r"^[!-~]{1,64}$")]
Campaign = Annotated[str, StringConstraints(min_length=1, max_length=255), AfterValidator(_line)]
Key = Annotated[str, StringConstraints(pattern=r"^[!-~]{1,255}$")]
MessageId = Annotated[str, StringConstraints(pattern=r"^(<[!-;=?-~]{1,900}>|[!-;=?-~]{1,900})$")]
Person = Annotated[Address, PlainValidator(_address(Reader.person)), WithJsonSchema(_EMAIL)]
Sender = Annotated[Address, PlainValidator(_address(Reader.sender)), WithJsonSchema(_EMAIL)]
Domain = Annotated[str, PlainValidator(_address(Reader.domain)), WithJsonSchema({"type": "string"})]
_PATTERN = {"type": "string", "examples": ["example.com", "*.example.com", "pat@example.com", "*"]}
Pattern = Annotated[str, PlainValidator(_address(Reader.pattern)), WithJsonSchema(_PATTERN)]
People = Annotated[
    list[Person],
    Field(max_length=PEOPLE_MAX),
    BeforeValidator(_several),
    WithJsonSchema({"anyOf": [_EMAIL, {"type": "array", "items": _EMAIL, "maxItems": PEOPLE_MAX}]}),
]
Token = Annotated[int, Field(ge=0, le=TOKEN_MAX)]
TokenText = Annotated[int, BeforeValidator(_digits), Field(ge=0, le=TOKEN_MAX)]
Coming = Annotated[datetime, PlainValidator(_coming), WithJsonSchema(_TIME)]
Future = Annotated[datetime, PlainValidator(_future), WithJsonSchema(_TIME)]
Octets = Annotated[bytes, PlainValidator(_octets), WithJsonSchema({"type": "string", "contentEncoding": "base64"})]
Metadata = Annotated[dict[str, Any], AfterValidator(_metadata)]
Instant = Annotated[datetime, PlainValidator(moment), WithJsonSchema(_TIME)]
Count = Annotated[int, BeforeValidator(_digits), Field(ge=0)]


class Part(BaseModel):
    """A part of a request: camel case outside, nothing beyond the named members, nothing coerced."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=False,
        arbitrary_types_allowed=True,
    )


class Shape(Part):
    """What a request may hold, as a whole."""

    unsupported: ClassVar[frozenset[str]] = frozenset()
    """Members of Molted's public API that this gateway does not know yet: refused by name (`attachments[].id`)."""

    tenant_id: Name | None = Field(None, description="The key's own tenant; another one is refused.")

    @classmethod
    def clashes(cls, given: dict[str, Any]) -> list[tuple[str, str]]:  # noqa: ARG003  (most have none)
        """What is wrong between members, as pairs of field and sentence; looked at even where members are malformed."""
        return []
