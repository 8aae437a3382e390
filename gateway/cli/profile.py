"""The profile: where the gateway is and the key to it, in a file that only its owner may read; written by `init`.

The file is `~/.config/gateway/profile.toml`, or what GATEWAY_PROFILE names. It holds one URL and one key.
"""

import contextlib
import json
import os
import secrets
import tomllib
from dataclasses import dataclass
from pathlib import Path

OTHERS = 0o077
"""The permission bits of everybody but the owner."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A gateway's URL and an API key of it."""

    url: str
    key: str


def place() -> Path:
    """Where the profile is."""
    named = os.environ.get("GATEWAY_PROFILE")
    return Path(named) if named else Path("~/.config/gateway/profile.toml").expanduser()


def read() -> Profile | None:
    """The profile, or `None` where there is none. Raises ValueError with one line where it cannot be used."""
    path = place()
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"the profile {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise ValueError(f"the profile {path} is not TOML with the members url and key") from None
    match values:
        case {"url": str(url), "key": str(key)}:
            return Profile(url, key)
    raise ValueError(f"the profile {path} lacks a text for url or key")


def write(profile: Profile) -> Path:
    """Write the profile and return its path; a former one is kept beside it as `.old`. Raises OSError.

    It is made with mode 0600 under another name and then renamed, so that nobody sees half of it or more than they may.
    """
    path = place()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = "# Where the gateway is, and a key to it: keep this file to yourself.\n"
    text += f"url = {json.dumps(profile.url)}\nkey = {json.dumps(profile.key)}\n"
    half = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    with contextlib.suppress(FileNotFoundError):
        path.rename(path.with_name(path.name + ".old"))
    return half.rename(path)


def shared() -> bool:
    """Whether others than its owner may read the profile."""
    try:
        return bool(place().stat().st_mode & OTHERS)
    except OSError:
        return False
