"""The arguments of MAIL and RCPT: a path in angle brackets and parameters (RFC 5321 4.1.2). It judges no address."""

import re
from dataclasses import dataclass, field

from gateway.core import dsn
from gateway.doors.smtp.lines import Malformed

PATH_MAX = 256
"""Octets of a path with its brackets (RFC 5321 4.5.3.1.3)."""

_PATH = re.compile(r"(FROM|TO):[ ]{0,8}<([^<>]*)>(?:[ ]+(.*))?", re.IGNORECASE | re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
_VALUE = re.compile(r"[!-<>-~]+")


@dataclass(frozen=True, slots=True)
class Path:
    """A path without its brackets, and the parameters behind it by their names in capitals; "" where one has no value."""

    address: str
    parameters: dict[str, str] = field(default_factory=dict)

    def take(self, name: str) -> str | None:
        """Take a parameter out; `None` where it is not there."""
        return self.parameters.pop(name, None)

    def all_taken(self) -> None:
        """Raise Malformed where a parameter is left that nobody knows (RFC 5321 4.1.1.11)."""
        if self.parameters:
            raise Malformed("555 5.5.4", "a parameter is not known here")


def read(keyword: str, argument: str) -> Path:
    """The path behind `FROM` or `TO`. Raises Malformed."""
    match = _PATH.fullmatch(argument)
    if match is None or match[1].upper() != keyword:
        raise Malformed("501 5.5.2", f"should be {keyword}:<address>")
    address, rest = match[2], match[3] or ""
    if len(address.encode("utf-8", "surrogateescape")) > PATH_MAX - 2:
        raise Malformed("501 5.1.3", "the path is too long")
    parameters: dict[str, str] = {}
    for word in rest.split():
        name, equals, value = word.partition("=")
        if _NAME.fullmatch(name) is None or (equals and _VALUE.fullmatch(value) is None):
            raise Malformed("501 5.5.4", "a parameter is not well formed")
        if parameters.setdefault(name.upper(), value) != value or (not equals and value):
            raise Malformed("501 5.5.4", "a parameter stands twice")
    return Path(address, parameters)


def without_value(path: Path, name: str) -> bool:
    """Whether a parameter is there that has no value. Raises Malformed where it has one."""
    value = path.take(name)
    if value:
        raise Malformed("501 5.5.4", f"{name} takes no value")
    return value is not None


def size(path: Path) -> int:
    """The size that a client names, or 0 (RFC 1870 6.1). Raises Malformed."""
    value = path.take("SIZE")
    if value is None:
        return 0
    if re.fullmatch(r"[0-9]{1,20}", value) is None:
        raise Malformed("501 5.5.4", "SIZE takes a number of octets")
    return int(value)


def of_mail(path: Path) -> tuple[str, str]:
    """The wishes for reports about all recipients: RET and ENVID, or nothing. Raises Malformed."""
    try:
        return dsn.read_ret(path.take("RET")), dsn.read_envid(path.take("ENVID"))
    except ValueError as error:
        raise Malformed("501 5.5.4", str(error)) from None


def of_rcpt(path: Path) -> tuple[tuple[str, ...], tuple[str, str] | None]:
    """The wishes for reports about one recipient: NOTIFY and ORCPT, or nothing. Raises Malformed."""
    try:
        return dsn.read_notify(path.take("NOTIFY")), dsn.read_orcpt(path.take("ORCPT"))
    except ValueError as error:
        raise Malformed("501 5.5.4", str(error)) from None


def eight_bit(path: Path) -> bool:
    """Whether the body may hold octets above 127 (RFC 6152 2). Raises Malformed."""
    value = path.take("BODY")
    if value is None or value.upper() == "7BIT":
        return False
    if value.upper() != "8BITMIME":
        raise Malformed("501 5.5.4", "BODY is 7BIT or 8BITMIME")
    return True
