"""What an author wants to be told about a delivery (RFC 3461): read from parameters of MAIL and RCPT, written for the next hop.

Values are decoded and encoded anew: nothing that a client wrote is ever part of a command as it came. Reports are not made
here, and nothing is judged.
"""

import json
import re
from dataclasses import dataclass

ENVID_MAX = 100  # characters, encoded (RFC 3461 4.4)
ORCPT_MAX = 500  # same (4.2)
WISHES = ("SUCCESS", "FAILURE", "DELAY")

_XTEXT = re.compile(r"(?:[!-*,-<>-~]|\+[0-9A-F]{2})+")
_HEX = re.compile(r"\+([0-9A-F]{2})")
_TYPE = re.compile(r"[A-Za-z0-9!#$%&'*/?^_`{|}~-]{1,64}")


@dataclass(frozen=True, slots=True)
class Dsn:
    """The wishes for one recipient; "" or () where there is none. `envid` and `orcpt` are decoded, the latter with its type."""

    ret: str = ""
    envid: str = ""
    notify: tuple[str, ...] = ()
    orcpt: tuple[str, str] | None = None

    def of_mail(self) -> str:
        """The parameters of MAIL, each behind a blank."""
        ret = f" RET={self.ret}" if self.ret else ""
        return ret + (f" ENVID={encoded(self.envid)}" if self.envid else "")

    def of_rcpt(self) -> str:
        """The parameters of RCPT, each behind a blank."""
        notify = f" NOTIFY={','.join(self.notify)}" if self.notify else ""
        return notify + (f" ORCPT={self.orcpt[0]};{encoded(self.orcpt[1])}" if self.orcpt else "")

    def dump(self) -> str:
        """As it is kept; "" for no wishes at all."""
        if self == NONE:
            return ""
        return json.dumps([self.ret, self.envid, list(self.notify), list(self.orcpt) if self.orcpt else None])


NONE = Dsn()


def load(kept: str) -> Dsn:
    """What `dump` has kept."""
    if not kept:
        return NONE
    ret, envid, notify, orcpt = json.loads(kept)
    return Dsn(ret, envid, tuple(notify), tuple(orcpt) if orcpt else None)


def read_ret(value: str | None) -> str:
    """How much of the mail a report brings back. Raises ValueError."""
    if value is None:
        return ""
    if value.upper() not in ("FULL", "HDRS"):
        raise ValueError("RET is FULL or HDRS")
    return value.upper()


def read_envid(value: str | None) -> str:
    """The author's own name for the mail. Raises ValueError."""
    return "" if value is None else _decoded("ENVID", value, ENVID_MAX)


def read_notify(value: str | None) -> tuple[str, ...]:
    """When a report is wanted. Raises ValueError."""
    if value is None:
        return ()
    words = tuple(value.upper().split(","))
    if words != ("NEVER",) and (not set(words) <= set(WISHES) or len(set(words)) < len(words)):
        raise ValueError("NOTIFY is NEVER, or some of SUCCESS, FAILURE and DELAY")
    return words


def read_orcpt(value: str | None) -> tuple[str, str] | None:
    """The recipient as the author knew it, behind the type of address. Raises ValueError."""
    if value is None:
        return None
    kind, _, text = value.partition(";")
    if _TYPE.fullmatch(kind) is None:
        raise ValueError("ORCPT is a type of address, a semicolon and an address")
    return kind, _decoded("ORCPT", text, ORCPT_MAX - len(kind) - 1)


def _decoded(name: str, value: str, most: int) -> str:
    """Text of xtext (RFC 3461 4); only printable ASCII is let through."""
    text = _HEX.sub(lambda match: chr(int(match[1], 16)), value)
    if len(value) > most or _XTEXT.fullmatch(value) is None or not (text.isascii() and text.isprintable()):
        raise ValueError(f"{name} is not well formed")
    return text


def encoded(text: str) -> str:
    """Printable ASCII as xtext (RFC 3461 4)."""
    return "".join(f"+{ord(char):02X}" if char in " +=" else char for char in text)
