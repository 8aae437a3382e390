"""What all sessions of the SMTP door share: the ways in, limits, certificate, trusted networks, who is connected."""

import ipaddress
import ssl
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from gateway.doors.context import Context
from gateway.doors.lockout import Lockout
from gateway.intake.glance import Glance

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Trust = tuple[tuple[Network, str], ...]
"""Networks, and the agent by id or name whom each stands for."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one session, one address and all together may ask for; times in seconds.

    `faults` are commands that no working client says, `logins` failed ones, in one session. `least_rate` are bytes a second
    that a body must bring beyond one command's time. `offered` are recipients beyond the most of one message that are still
    answered; then the session ends. `work_seconds` is the longest that a mail may be under judgement. `bodies_bytes` are those
    of all bodies together that are being read or judged, whatever one message may have.
    """

    idle_seconds: float = 300.0
    work_seconds: float = 120.0
    least_rate: int = 500
    message_bytes: int = 10_485_760
    faults: int = 20
    logins: int = 5
    offered: int = 1000
    bodies_bytes: int = 268_435_456
    sessions: int = 2000
    sessions_by_address: int = 200


class Guest(Protocol):
    """A session, as far as it is counted."""

    address: str


@dataclass(slots=True, eq=False)
class House:
    """The door's inside; `tls` is `None` where there is no certificate, `trust` maps networks to names of agents."""

    context: Context
    glance: Glance
    limits: Limits = field(default_factory=Limits)
    lockout: Lockout = field(default_factory=Lockout)
    tls: ssl.SSLContext | None = None
    trust: Trust = ()
    sessions: "set[Any]" = field(default_factory=set)
    _by_address: "Counter[str]" = field(default_factory=Counter)
    _held: "Counter[Any]" = field(default_factory=Counter)

    @property
    def hostname(self) -> str:
        """The name that the gateway gives itself."""
        return self.context.settings.hostname

    def room_for(self, address: str) -> str:
        """The words to send another client from there away with, or nothing where there is room for it."""
        if len(self.sessions) >= self.limits.sessions:
            return "421 4.3.2 too many sessions; try again later"
        if self._by_address[address] >= self.limits.sessions_by_address and not _is_here(address):
            return "421 4.7.0 too many sessions from this address; try again later"
        return ""

    def enter(self, session: Guest) -> None:
        """Count a session in."""
        self.sessions.add(session)
        self._by_address[session.address] += 1

    def leave(self, session: Guest) -> None:
        """Count a session out; once."""
        if session not in self.sessions:
            return
        self.sessions.discard(session)
        self._by_address[session.address] -= 1
        if self._by_address[session.address] <= 0:
            del self._by_address[session.address]

    def hold(self, session: Guest, size: int) -> bool:
        """Note how many bytes of a body a session holds now; whether there is room for them beside all others'."""
        self._held[session] = size
        return self._held.total() <= max(self.limits.bodies_bytes, size)

    def let_go(self, session: Guest) -> None:
        """A session holds no body any more."""
        del self._held[session]

    def trusted(self, address: str) -> str:
        """The name of the agent that somebody there may be without a login, or nothing."""
        try:
            found = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return ""
        at = getattr(found, "ipv4_mapped", None) or found
        fitting = [(network, agent) for network, agent in self.trust if at.version == network.version and at in network]
        return max(fitting, key=lambda one: one[0].prefixlen)[1] if fitting else ""


def _is_here(address: str) -> bool:
    """Whether an address is this machine's own: there a limit by address would be one for all agents together."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def read_trust(words: tuple[str, ...]) -> Trust:
    """The trusted networks of SMTP_TRUST. Raises ValueError with one line."""
    found: list[tuple[Network, str]] = []
    for word in words:
        text, equals, agent = (part.strip() for part in word.partition("="))
        try:
            network = ipaddress.ip_network(text)
        except ValueError:
            network = None
        if network is None or not equals or not agent or not agent.isprintable():
            raise ValueError(
                f"SMTP_TRUST: {word!a} should be network=agent, like 192.0.2.0/28=crm (no bits beyond the prefix)"
            )
        found.append((network, agent))
    return tuple(found)


def tls_context(certificate: str, key: str) -> ssl.SSLContext:
    """The server's side of TLS, 1.2 or newer. Raises ValueError with one line that names the setting."""
    for name, path in (("TLS_CERT", certificate), ("TLS_KEY", key)):
        if path:
            try:
                with Path(path).open("rb"):
                    pass
            except OSError as error:
                raise ValueError(f"{name}: {path} cannot be read: {error.strerror}") from None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key or None, password=_no_password)
    except (ssl.SSLError, OSError, ValueError):
        raise ValueError("TLS_CERT: certificate and key are not a pair in PEM without a password") from None
    return context


def _no_password() -> bytes:
    """Nobody is there to be asked."""
    raise ValueError("the key has a password")
