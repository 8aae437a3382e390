"""Reads the smarthost's URL and the name that we give in EHLO.

Both come from settings, and both end up on a command line of a protocol whose commands end in CRLF: whatever could
begin a second command is refused here, when the process starts. No error text repeats the URL: it may hold a password.
"""

import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote_to_bytes, urlsplit

import idna

PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}
SHAPE = "smtp://host:port, smtp+starttls://user:password@host:port or smtps://user:password@host:port"
LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
"""A label of a host's name; with the underscore, which no standard allows and machines have."""

LITERAL = re.compile(r"\[(IPv6:)?([0-9A-Fa-f.:]+)\]")
"""An address literal (RFC 5321, 4.1.3)."""


@dataclass(frozen=True, slots=True)
class Place:
    """A smarthost's address: `tls` is "implicit", "starttls" or "off"; the password is in no text made from it."""

    scheme: str
    host: str
    port: int
    tls: str
    username: str = ""
    password: str = field(default="", repr=False)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def read(url: str) -> Place:
    """Returns the place that the URL names; raises ValueError with one line."""
    if not url.isprintable() or " " in url:
        raise ValueError("the smarthost's URL holds a blank or a control character")
    try:
        parts = urlsplit(url)
        port = parts.port
        query = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        raise ValueError(
            f"the smarthost's URL cannot be read: it should be {SHAPE}, with special characters percent-encoded"
        ) from None
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError(f"the smarthost's URL should be {SHAPE}")
    if parts.path not in {"", "/"} or parts.fragment:
        raise ValueError(
            "the smarthost's URL has something behind its host: encode / and # in a password as %2F and %23"
        )
    if query not in ({}, {"tls": "off"}):
        raise ValueError("the smarthost's URL knows no other option than ?tls=off")
    if port == 0:
        raise ValueError("the smarthost's URL has the port 0")
    host = host_name(parts.hostname)
    username, password = _credentials(parts)
    tls = _tls(parts.scheme, host, off=bool(query), login=bool(username))
    return Place(parts.scheme, host, port or PORTS[parts.scheme], tls, username, password)


def _credentials(parts: SplitResult) -> tuple[str, str]:
    if parts.username is None and parts.password is None:
        return "", ""
    try:
        username, password = (unquote_to_bytes(part or "").decode() for part in (parts.username, parts.password))
    except UnicodeDecodeError:
        raise ValueError("user and password in the smarthost's URL should be UTF-8, percent-encoded") from None
    if not username or not password:
        raise ValueError("the smarthost's URL should hold both user and password or neither")
    if any(char < " " or char == "\x7f" for char in username + password):
        raise ValueError("user and password in the smarthost's URL hold a control character")
    return username, password


def _tls(scheme: str, host: str, *, off: bool, login: bool) -> str:
    if off and scheme != "smtp":
        raise ValueError(f"?tls=off contradicts {scheme}://: write smtp://")
    if off and login and not is_loopback(host):
        raise ValueError(
            "a password is never sent in clear: take ?tls=off or user and password out of the smarthost's URL"
        )
    if scheme == "smtps":
        return "implicit"
    if off or (scheme == "smtp" and is_loopback(host) and not login):
        return "off"
    return "starttls"


def is_loopback(host: str) -> bool:
    """Whether the host is this machine by its very name: `localhost` or a loopback address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def host_name(host: str) -> str:
    """Returns an IP address as it is and a name as lowercase A-labels (IDNA 2008); raises ValueError with one line."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    name = host.removesuffix(".").lower()
    if not name.isascii():
        try:
            name = idna.encode(name, uts46=True).decode("ascii")
        except (idna.IDNAError, UnicodeError):
            raise ValueError(f"{host!a} is no name of a host") from None
    if len(name) > 253 or not all(LABEL.fullmatch(label) for label in name.split(".")):  # noqa: PLR2004 - RFC 1035
        raise ValueError(f"{host!a} is no name of a host")
    return name


def ehlo_name(name: str) -> str:
    """Returns the name for EHLO: A-labels, or an address literal for an IP address (RFC 5321, 4.1.1.1 and 4.1.3).

    Raises ValueError with one line: a name with CR, LF or a blank could say a command of its own.
    """
    literal = LITERAL.fullmatch(name)
    host = host_name(literal[2] if literal else name)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        if literal:
            raise ValueError(f"{name!a} is no address literal") from None
        return host
    return f"[IPv6:{address}]" if address.version == 6 else f"[{address}]"  # noqa: PLR2004 - of IP
