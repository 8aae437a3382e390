"""Where the gateway is and the key to it: as they were given, else GATEWAY_URL and GATEWAY_KEY, else the profile's.

A key of the profile goes only to the gateway that it was made for. Nothing here opens a connection.
"""

import os
import warnings
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from gateway import profile
from gateway.client.errors import NotSetUp

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
DEFAULT_URL = "http://127.0.0.1:8080"


@dataclass(frozen=True, slots=True)
class Place:
    """A gateway's URL without a slash at its end, and the key, which may be empty; `warnings` are words about both."""

    url: str
    key: str = field(repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def near(self) -> bool:
        """Whether it is on this machine: then no proxy of the environment is a way to it."""
        return urlsplit(self.url).hostname in LOOPBACK


def find(url: str | None = None, key: str | None = None) -> Place:
    """Find the gateway and the key; a profile that was chosen by name goes before variables. Raises NotSetUp."""
    unheeded = []
    if profile.is_chosen():
        given = {"GATEWAY_URL": url, "GATEWAY_KEY": key}
        unheeded = [name for name, value in given.items() if value is None and os.environ.get(name)]
    else:
        url, key = url or os.environ.get("GATEWAY_URL"), key or os.environ.get("GATEWAY_KEY")
    worries: list[str] = []
    known = None
    if url is None or key is None:
        try:
            known = profile.read()
        except ValueError as error:
            raise NotSetUp("profile", str(error)) from None
        if known is not None and profile.shared():
            worries.append(f"others may read {profile.place()}: run chmod 600 on it")
    url = (url or (known.url if known else DEFAULT_URL)).rstrip("/")
    parts = _parts(url)
    if key is None and known is not None and _belongs(parts, urlsplit(known.url)):
        key = known.key
    if key is None:
        why = f"the profile {profile.place()} is for another gateway" if known else _absent(unheeded)
        give = "--key" if profile.is_chosen() else "--key, GATEWAY_KEY"
        remedy = f"give one ({give}), or make a profile: `gateway profiles add`, or `gateway init` for a new gateway"
        raise NotSetUp("key", f"no API key for {url}: {why}; {remedy}")
    if known is None and "GATEWAY_URL" in unheeded:
        worries.append(f"{_absent(unheeded)}; {url} is asked")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise NotSetUp("key", "the API key holds characters that no key has")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        worries.append(f"the key goes to {parts.hostname} without TLS")
    return Place(url, key, tuple(worries))


def _absent(unheeded: list[str]) -> str:
    """That there is no profile, and which variables are not heeded because it was chosen by name."""
    words = f"there is no profile {profile.place()}"
    verb = "is" if len(unheeded) == 1 else "are"
    return f"{words}, and beside --profile {' and '.join(unheeded)} {verb} not heeded" if unheeded else words


def found(url: str | None, key: str | None) -> Place:
    """The same for a client, whose caller is warned by Python's own means. Raises NotSetUp."""
    place = find(url, key)
    for words in place.warnings:
        warnings.warn(words, stacklevel=3)
    return place


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        wrong = parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0
    except ValueError:
        wrong = True
        parts = SplitResult("", "", "", "", "")
    if wrong or parts.query or parts.fragment or parts.username:
        raise NotSetUp("url", "must be a URL like http://127.0.0.1:8080")
    return parts


def _belongs(asked: SplitResult, own: SplitResult) -> bool:
    """Whether the profile's key may go there: to the same place, or from one loopback port to another."""
    if asked.hostname in LOOPBACK and own.hostname in LOOPBACK:
        return True
    return (asked.scheme, asked.netloc.lower()) == (own.scheme, own.netloc.lower())
