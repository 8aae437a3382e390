"""Addresses: what is accepted as one, and the one key under which its person is known.

An address is refused, never repaired: what is kept differs from what was given at most by Unicode NFC and by the form
of the domain. The rules follow RFC 5321 and 6531 (through email-validator, without DNS) and IDNA 2008.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from email_validator import SPECIAL_USE_DOMAIN_NAMES, EmailNotValidError, validate_email

from gateway.core.headers import has_controls

ADDRESS_MAX = 254  # octets: a path of 256 without its angle brackets (RFC 5321 4.5.3.1.3)
LOCAL_MAX = 64  # octets (RFC 5321 4.5.3.1.1)
DOMAIN_MAX = 253  # octets of a name without its root (RFC 1035 2.3.4)
DISPLAY_MAX = 320  # characters of a display name with its quotes

_BUILT_IN = {"googlemail.com": "gmail.com"}
_ATOM = r"[A-Za-z0-9_!#$%&'*+\-/=?^`{|}~]+"
# The common case in one linear pattern; a test holds it against email-validator. No A-labels, no "--", no odd endings.
_COMMON = re.compile(rf"({_ATOM}(?:\.{_ATOM})*)@((?:[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*\.)+[A-Za-z]+)")
_ANGLE = re.compile(r'(?:("(?:[^"\\]|\\.)*"|[^"<>()\[\]:;@\\,]+?) *)?<([^<>]*)>')
_LABEL_MAX = 63  # octets (RFC 1035 2.3.1)
# Behind a special-use name it makes one that email-validator judges like any other; its own list is left as it is.
_ANCHOR = ".example.com"


class AddressError(ValueError):
    """Not an address that can be used; `why` is one dull sentence without the address itself."""

    def __init__(self, why: str) -> None:
        """Keep the sentence for the answer."""
        super().__init__(why)
        self.why = why


@dataclass(frozen=True, slots=True)
class Address:
    """An address as given (`local` in NFC), its `domain` as lowercase A-label, the person's `key`, the display name."""

    local: str
    domain: str
    key: str
    display: str = ""

    @property
    def spec(self) -> str:
        """The address for envelope and header, `local@domain`, without angle brackets."""
        return f"{self.local}@{self.domain}"

    @property
    def needs_smtputf8(self) -> bool:
        """Whether the next hop must offer SMTPUTF8 for it (RFC 6531): only a non-ASCII local part does."""
        return not self.local.isascii()


@dataclass(frozen=True, slots=True)
class KeyRules:
    """Which spellings are one person (SEMANTICS 2).

    `aliases` maps domains to those that they stand for (googlemail.com to gmail.com always among them), `plus_tags` are
    the domains that ignore what follows a plus sign, `dots` those that ignore dots. Domains may be given in any form.
    Raises `AddressError` for what is no domain and for aliases that go in a circle.
    """

    aliases: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    plus_tags: frozenset[str] = frozenset({"gmail.com"})
    dots: frozenset[str] = frozenset({"gmail.com"})

    def __post_init__(self) -> None:
        """Bring all domains into one form and follow aliases of aliases to their end."""
        given = {domain_of(name): domain_of(target) for name, target in self.aliases.items()} | _BUILT_IN
        ends: dict[str, str] = {}
        for name in given:
            seen, end = {name}, name
            while end in given:
                end = given[end]
                if end in seen:
                    raise AddressError("the domain aliases go in a circle")
                seen.add(end)
            ends[name] = end
        object.__setattr__(self, "aliases", MappingProxyType(ends))
        for table in ("plus_tags", "dots"):
            names = frozenset(self.canonical(domain_of(name)) for name in getattr(self, table))
            object.__setattr__(self, table, names)

    def canonical(self, domain: str) -> str:
        """The domain that an A-label stands for."""
        return self.aliases.get(domain, domain)

    def key(self, local: str, domain: str) -> str:
        """The key of a person from a valid local part and the A-label of a domain; applied twice it changes nothing."""
        domain = self.canonical(domain)
        local = _folded(local)
        if domain in self.plus_tags:
            local = local.partition("+")[0] or local  # "+x" alone is a name, not a tag
        if domain in self.dots:
            local = local.replace(".", "")
        return f"{local}@{domain}"


def _folded(local: str) -> str:
    """The one function that folds local parts: case folding between two normalisations to NFC."""
    if local.isascii():
        return local.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", local).casefold())


def parse(
    text: str,
    *,
    rules: KeyRules | None = None,
    special_use: frozenset[str] = frozenset(),
    display: bool = False,
) -> Address:
    """Makes an address of what somebody gave, or refuses it.

    `special_use` names special-use domains (RFC 6761: `test`, `local`, `localhost`) that are let in, and all names
    below them. With `display` the forms `Name <a@b>`, `"Name, X" <a@b>` and `<a@b>` are accepted as well. Without
    `rules` the built-in ones make the key. Raises `AddressError` for blanks around it, comments, quoted local parts,
    control characters, several addresses in one string, source routes, the null path, address literals, whatever is too
    long, and whatever reading would change in more than NFC and the domain's form.
    """
    name, spec = _split_display(text) if display else ("", text)
    if len(spec) > ADDRESS_MAX:
        raise AddressError("the address is longer than 254 octets")
    local, domain = _checked(spec, special_use)
    if len(local.encode()) > LOCAL_MAX:
        raise AddressError("the part before the @ is longer than 64 octets")
    return Address(local, domain, (rules or DEFAULT_RULES).key(local, domain), name)


def domain_of(text: str) -> str:
    """The lowercase A-label of a domain that somebody named, special-use or of one label too.

    Raises `AddressError` for what is no domain.
    """
    if len(text) > DOMAIN_MAX:
        raise AddressError("the domain is longer than 253 octets")
    single = () if "." in text else (text.lower(),)
    return _checked(f"x@{text}", frozenset((*SPECIAL_USE_DOMAIN_NAMES, *single)))[1]


def _split_display(text: str) -> tuple[str, str]:
    """Splits `Name <a@b>` into display name and address; a text without angle brackets is all address."""
    if "<" not in text or len(text) > ADDRESS_MAX + DISPLAY_MAX:
        return "", text
    match = _ANGLE.fullmatch(text)
    if match is None:
        raise AddressError("this is not one name with one address in angle brackets")
    name = match[1] or ""
    if name.startswith('"'):
        name = re.sub(r"\\(.)", r"\1", name[1:-1])
    if has_controls(name):
        raise AddressError("the display name holds control characters")
    if name != name.strip(" ") and not text.startswith('"'):
        raise AddressError("there are blanks around the address")
    return unicodedata.normalize("NFC", name), match[2]


def _checked(spec: str, special_use: frozenset[str]) -> tuple[str, str]:
    """Local part in NFC and domain as A-label of a bare address that needs no change but these."""
    match = _COMMON.fullmatch(spec)
    if match is not None and "=?" not in spec:
        local, domain = match[1], match[2].lower()
        *_, top = labels = domain.split(".")
        if top not in SPECIAL_USE_DOMAIN_NAMES and top not in special_use and max(map(len, labels)) <= _LABEL_MAX:
            return local, domain
    return _judged(spec, special_use)


def _judged(spec: str, special_use: frozenset[str]) -> tuple[str, str]:
    """The same by email-validator, for all that is not common."""
    # An address that looks like an encoded word would be read as another one by some.
    if has_controls(spec) or "=?" in spec or any(char in spec for char in ' "()<>[],;:\\'):
        raise AddressError("the address holds characters that are not accepted")
    if spec.count("@") != 1:
        raise AddressError("an address has exactly one @")
    local, _, given = spec.partition("@")
    local = unicodedata.normalize("NFC", local)
    named = unicodedata.normalize("NFC", unicodedata.normalize("NFC", given).lower())
    anchor = _ANCHOR if _under(named, special_use) else ""
    if not anchor and _under(named, frozenset(SPECIAL_USE_DOMAIN_NAMES)):
        raise AddressError("the domain is for special use; GATEWAY_ALLOW_SPECIAL_USE lets it in")
    try:
        found = validate_email(f"{local}@{named}{anchor}", check_deliverability=False)
    except EmailNotValidError as error:
        raise AddressError("the address is not valid") from error
    domain = found.ascii_domain.removesuffix(anchor)
    unicode_labels = found.domain.removesuffix(anchor).split(".")
    # UTS 46 maps more than case (full-width letters, other dots): that would be a repair.
    forms = zip(named.split("."), domain.split("."), unicode_labels, strict=False)
    if named.count(".") != domain.count(".") or any(label not in (ascii_, uni) for label, ascii_, uni in forms):
        raise AddressError("the domain is not written in its normal form")
    return local, domain


def _under(domain: str, names: frozenset[str]) -> bool:
    """Whether a domain is one of the names or below one."""
    return any(domain == name or domain.endswith("." + name) for name in names)


DEFAULT_RULES = KeyRules()
