"""Profiles: where a gateway is and the key to it, in files that only their owner may read; `gateway init` writes one.

A profile is a file of TOML with one URL and one key. GATEWAY_PROFILE names it, by a path, or by a bare name that stands for
`~/.config/gateway/NAME.toml`; without it, it is the one that `gateway profiles use` has set, else `profile.toml` there.
"""

import contextlib
import json
import os
import re
import secrets
import tomllib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

OTHERS = 0o077
"""The permission bits of everybody but the owner."""
PLAIN = "profile"
"""The name of the profile that is there without any choice."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""What a name of a profile looks like; all else that names one is a path."""

_chosen: ContextVar[str | None] = ContextVar("_chosen", default=None)


@dataclass(frozen=True, slots=True)
class Profile:
    """A gateway's URL and an API key of it."""

    url: str
    key: str


def home() -> Path:
    """The folder of all profiles that go by a name."""
    return Path("~/.config/gateway").expanduser()


@contextlib.contextmanager
def chosen(name: str | None) -> Iterator[None]:
    """Let a profile be the one that is meant, by name or path, while this lasts; `None` changes nothing."""
    before = _chosen.set(name or _chosen.get())
    try:
        yield
    finally:
        _chosen.reset(before)


def is_chosen() -> bool:
    """Whether a profile was chosen for this command: then a gateway is meant, whatever else is at hand."""
    return _chosen.get() is not None


def named(name: str) -> Path:
    """The file of a profile: below `home` for a bare name, else the path that was given."""
    return home() / f"{name}.toml" if NAME.fullmatch(name) else Path(name)


def place() -> Path:
    """The file of the profile that is meant."""
    return named(_chosen.get() or os.environ.get("GATEWAY_PROFILE") or default())


def default() -> str:
    """The name of the profile that is meant where nobody says otherwise."""
    try:
        name = (home() / "default").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return PLAIN
    return name if NAME.fullmatch(name) else PLAIN


def names() -> list[str]:
    """The names of all profiles that are there, in order."""
    return sorted(path.stem for path in home().glob("*.toml") if NAME.fullmatch(path.stem))


def use(name: str) -> None:
    """Let a profile be the default from now on. Raises ValueError where there is none of that name, OSError."""
    if name not in names():
        raise ValueError(f"there is no profile {name} in {home()}")
    _replace(home() / "default", f"{name}\n")


def read(path: Path | None = None) -> Profile | None:
    """The profile, or `None` where there is none. Raises ValueError with one line where it cannot be used."""
    path = path or place()
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
    """Write the profile and return its path; a former one is kept beside it as `.old`, with mode 0600 too. Raises OSError."""
    path = place()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = "# Where the gateway is, and a key to it: keep this file to yourself.\n"
    text += f"url = {json.dumps(profile.url)}\nkey = {json.dumps(profile.key)}\n"
    with contextlib.suppress(FileNotFoundError):
        if not path.is_symlink():
            path.chmod(0o600)
        path.rename(path.with_name(path.name + ".old"))
    return _replace(path, text)


def _replace(path: Path, text: str) -> Path:
    """Write a file under another name with mode 0600 and rename it: nobody sees half of it, or more than they may."""
    half = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    return half.rename(path)


def shared() -> bool:
    """Whether others than its owner may read the profile."""
    try:
        return bool(place().stat().st_mode & OTHERS)
    except OSError:
        return False
