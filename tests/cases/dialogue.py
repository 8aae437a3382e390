r"""Plays the cases in which we are a client that says exactly what the file says (`.smtp`, kind smtp-client)."""

import json
import re
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Mapping
from dataclasses import dataclass

from tests.cases.play import Play
from tests.cases.submit import Line, connected, fits

BOUNCE = "bounce"
DUMMY_KEY = b"test-key"
"""What stands in a case for the key of the agent who logs in."""
TOKEN = re.compile(r"[A-Za-z0-9+/]{8,}={0,2}")
DROPPED = re.compile(r"421|554 5\.5\.1 nothing may follow|$")
"""The last reply of a session that the gateway has ended; then what would be said next cannot be."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A case's head, and its lines: who speaks (C, S, T for the TLS handshake), and what."""

    head: Mapping[str, str]
    lines: tuple[tuple[str, str], ...]

    @property
    def listener(self) -> str:
        """Where the client connects."""
        return self.head["listener"]


def read(text: str) -> Dialogue:
    """Read a file of this kind."""
    top, _, rest = text.partition("\n---\n")
    head = dict(re.split(r": ?", line, maxsplit=1) for line in top.splitlines() if ":" in line)
    lines = tuple((line[:1], line[2:]) for line in rest.splitlines() if line.strip())
    for speaker, words in lines:
        if speaker not in {"C", "S"} and (speaker, words) != ("T", "S handshake"):
            raise ValueError(f"{speaker} {words!r} is not known to the driver")
    return Dialogue(head, lines)


async def talk(play: Play) -> None:
    """Say what the client says, and note where a reply is not as the file wants it."""
    story = read(play.case.text)
    login = story.head.get("login", "none")
    spoken: list[tuple[str, str]] = []
    last = ""
    async with connected(play.house, story.listener, tls=story.head["tls"] == "starttls") as line:
        for speaker, words in story.lines:
            if speaker == "C":
                last = str(json.loads(words))
                line.writer.write(_keyed(play, last).encode(story.head["charset"]))
                continue
            if speaker == "T":
                if not spoken[-1][1].startswith("220"):
                    break
                await line.upgrade()
                continue
            reply = await line.reply()
            spoken.append((last, reply))
            play.fault(words == "any" or fits(words, reply), f"after {last!r}: {reply!r}, not {words}")
            if login != "none" and last.upper().startswith("EHLO"):
                await _log_in(play, line, login)
                login = "none"
    play.facts["spoken"] = spoken
    play.facts["replies"] = [reply for _, reply in spoken]


async def _log_in(play: Play, line: Line, login: str) -> None:
    reply = await line.log_in(login, play.house.keys[login])
    play.fault(reply.startswith("235 "), f"the login of {login}: {reply}")


def _keyed(play: Play, text: str) -> str:
    """A client's line with the agent's own key in the place of the dummy."""

    def changed(found: "re.Match[str]") -> str:
        try:
            plain = b64decode(found[0], validate=True)
        except Error:
            return found[0]
        if DUMMY_KEY not in plain:
            return found[0]
        name = plain.split(b"\0")[1].decode() if b"\0" in plain else "agent-a"
        return b64encode(plain.replace(DUMMY_KEY, play.house.keys[name].encode())).decode()

    return TOKEN.sub(changed, text)
