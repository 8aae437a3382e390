"""A smarthost that plays a script (`script`): well behaved where the script is silent, as rude as it says elsewhere."""

import asyncio
import base64
import binascii
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.sink.box import Box, Line
from gateway.sink.peer import Gone, Peer
from gateway.sink.play import Play
from gateway.sink.receiver import Manners
from gateway.sink.script import Act, Rule

log = logging.getLogger(__name__)

NEXT = {"BANNER": "EHLO", "EHLO": "MAIL", "MAIL": "RCPT", "RCPT": "DATA", "DATA": "DOT"}
"""Which stage ordinarily follows: where EARLY looks."""
SPEAKS = frozenset({"SAY", "HALF", "RAW", "DRIP", "EARLY"})
LINE_END = b"\r\n"


@dataclass(slots=True, eq=False)
class Record:
    """What the server has seen and said, over all connections: `data_phases` counts 354s, `dots` whole bodies."""

    transcript: list[Line] = field(default_factory=list)
    data_phases: int = 0
    dots: int = 0
    go: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0


@dataclass(slots=True, eq=False)
class Dialogue:
    """One connection of the scripted server."""

    peer: Peer
    number: int
    box: Box
    play: Play
    record: Record
    manners: Manners
    secure: bool = False
    authenticated: bool = False
    sender: str | None = None
    recipients: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    async def run(self) -> None:
        """Speaks with the client until one of the two ends it."""
        try:
            await self.answer("BANNER", f"220 {self.manners.hostname} ESMTP")
            while True:
                line = await self._command()
                self._note("C", line)
                if len(line) > 4096 or not line.endswith(LINE_END):  # noqa: PLR2004 - RFC 5321, 4.5.3.1.4, with room
                    self._say(b"500 5.5.2 Bad line\r\n")
                    continue
                verb, _, argument = line.decode("utf-8", "replace").strip().partition(" ")
                await self._obey(verb.upper(), argument.strip())
        except Gone:
            pass
        finally:
            self.peer.close()
            self.box.changed()

    async def _command(self) -> bytes:
        rule = self.play.idle(self.number)
        try:
            async with asyncio.timeout(rule.idle if rule else None):
                return await self.peer.line()
        except TimeoutError:
            if (await self._act(rule.acts if rule else ())).startswith(b"421"):
                raise Gone from None
            return await self.peer.line()

    async def _obey(self, verb: str, argument: str) -> None:
        match verb:
            case "EHLO" | "HELO":
                self.sender, self.recipients = None, []
                await self.answer("EHLO", *self._offers(extended=verb == "EHLO"))
            case "STARTTLS":
                await self._starttls()
            case "AUTH":
                await self._auth(argument)
            case "MAIL":
                await self._mail(argument)
            case "RCPT":
                await self._rcpt(argument)
            case "DATA":
                await self._data()
            case "RSET":
                self.sender, self.recipients = None, []
                await self.answer("RSET", "250 2.0.0 Ok")
            case "QUIT":
                await self.answer("QUIT", "221 2.0.0 Bye")
                raise Gone
            case "NOOP":
                self._say(b"250 2.0.0 Ok\r\n")
            case _:
                self._say(b"502 5.5.1 Not known here\r\n")

    def _offers(self, *, extended: bool) -> Sequence[str]:
        manners = self.manners
        offers = [manners.hostname]
        if extended:
            offers += ["PIPELINING", f"SIZE {manners.size}", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES"]
            if manners.tls is not None and not self.secure:
                offers.append("STARTTLS")
            elif manners.auth is not None:
                offers.append("AUTH PLAIN LOGIN")
        return [
            f"250{'-' if more else ' '}{offer}"
            for more, offer in zip(range(len(offers) - 1, -1, -1), offers, strict=True)
        ]

    async def _starttls(self) -> None:
        tls = self.manners.tls
        ordinary = "220 2.0.0 Ready" if tls is not None and not self.secure else "502 5.5.1 Not offered"
        code = await self.answer("STARTTLS", ordinary)
        if code == b"220" and tls is not None:
            await self.peer.upgrade(tls)
            self.secure = True
            self.sender, self.recipients = None, []

    async def _auth(self, argument: str) -> None:
        if self.play.cue(self.number, "AUTH", self.counts["AUTH"] + 1, peek=True) is None:
            self.authenticated = await self._login(argument)
        ordinary = "235 2.7.0 Welcome" if self.authenticated else "535 5.7.8 Unknown"
        await self.answer("AUTH", ordinary)

    async def _login(self, argument: str) -> bool:
        mechanism, _, given = argument.partition(" ")
        try:
            if mechanism.upper() == "PLAIN":
                _, login, password = base64.b64decode(given or await self._ask("")).split(b"\0")
            else:
                login = base64.b64decode(given or await self._ask("VXNlcm5hbWU6"))
                password = base64.b64decode(await self._ask("UGFzc3dvcmQ6"))
        except (ValueError, binascii.Error):
            return False
        return self.manners.auth == (login.decode("utf-8", "replace"), password.decode("utf-8", "replace"))

    async def _ask(self, challenge: str) -> str:
        self._say(f"334 {challenge}\r\n".encode())
        line = await self.peer.line()
        self._note("C", line)
        return line.decode("ascii", "replace").strip()

    async def _mail(self, argument: str) -> None:
        address = _address(argument, "FROM:")
        if self.manners.auth is not None and not self.authenticated:
            ordinary = "530 5.7.0 Authentication required"
        elif self.sender is not None:
            ordinary = "503 5.5.1 Nested MAIL"
        else:
            ordinary = "501 5.1.7 Bad address" if address is None else "250 2.1.0 Ok"
        if await self.answer("MAIL", ordinary, addresses=[address or ""]) < b"3" and self.sender is None:
            self.sender = address or ""

    async def _rcpt(self, argument: str) -> None:
        address = _address(argument, "TO:")
        ordinary = "250 2.1.5 Ok" if address else "501 5.1.3 Bad address"
        if self.sender is None:
            ordinary = "503 5.5.1 MAIL first"
        if await self.answer("RCPT", ordinary, addresses=[address or ""]) < b"3":
            self.recipients.append(address or "")

    async def _data(self) -> None:
        ordinary = "354 Go on" if self.recipients else "503 5.5.1 RCPT first"
        if await self.answer("DATA", ordinary, addresses=self.recipients) != b"354":
            return
        self.record.data_phases += 1
        try:
            if not self.peer.buffer:
                await self.peer.more()
            await self.answer("BODY", addresses=self.recipients)
            body = await self.peer.body()
        except Gone:
            self._note("B", bytes(self.peer.buffer))
            raise
        self._note("B", body)
        self._note("C", b".\r\n")
        self.record.dots += 1
        rule, ordinary = self._cue("DOT", self.recipients), "250 2.0.0 Taken"
        if rule is None or _takes(rule):
            content = body.removeprefix(b".").replace(b"\r\n.", b"\r\n")
            try:
                self.box.take(self.number, self.sender or None, self.recipients, content, body)
            except OSError:
                log.exception("a mail could not be kept")
                ordinary = "452 4.3.1 Cannot keep it now"
        self.sender, self.recipients = None, []
        self.box.changed()
        await self._perform("DOT", rule, ordinary)

    async def answer(self, stage: str, *ordinary: str, addresses: Sequence[str] = ()) -> bytes:
        """Does what the script says at this stage, else gives the ordinary reply; returns the code that was said."""
        return await self._perform(stage, self._cue(stage, addresses), *ordinary)

    def _cue(self, stage: str, addresses: Sequence[str]) -> Rule | None:
        self.counts[stage] += 1
        return self.play.cue(self.number, stage, self.counts[stage], addresses)

    async def _perform(self, stage: str, rule: Rule | None, *ordinary: str) -> bytes:
        acts = rule.acts if rule else ()
        reply = b"".join(line.encode() + LINE_END for line in ordinary)
        if reply and not any(act.word in SPEAKS | {"HANG", "DROP", "RESET"} for act in acts):
            acts = (*acts, Act("SAY", reply))
        follows = NEXT.get(stage, "")
        ahead = self.play.cue(self.number, follows, self.counts[follows] + 1, peek=True) if follows else None
        said = await self._act(acts, ahead.early() if ahead else b"")
        if said.startswith(b"421"):
            raise Gone
        return said[:3] or b"999"

    async def _act(self, acts: Sequence[Act], ahead: bytes = b"") -> bytes:
        said = b""
        for act in acts:
            match act.word:
                case "SAY" | "HALF" | "RAW":
                    said = act.data
                    self._say(act.data + ahead)
                    ahead = b""
                case "EARLY":
                    said = act.data
                case "DRIP":
                    said = act.data
                    await self._drip(act)
                case "DELAY":
                    await asyncio.sleep(act.seconds or 0.0)
                case "WAIT":
                    await self._wait()
                case "HANG":
                    await self._hang(act.seconds)
                case "RESET":
                    self.peer.reset()
                    raise Gone
                case "DROP":
                    raise Gone
        return said

    async def _drip(self, act: Act) -> None:
        self._note("S", act.data)
        for byte in act.data:
            self.peer.write(bytes([byte]))
            await asyncio.sleep(act.seconds or 0.0)

    async def _wait(self) -> None:
        self.peer.listen(on=False)
        self.record.waiting += 1
        self.box.changed()
        await self.record.go.wait()
        self.record.waiting -= 1
        self.peer.listen(on=True)

    async def _hang(self, seconds: float | None) -> None:
        try:
            async with asyncio.timeout(seconds):
                while True:
                    await self.peer.more()
        except TimeoutError:
            raise Gone from None

    def _say(self, data: bytes) -> None:
        self._note("S", data)
        self.peer.write(data)

    def _note(self, speaker: str, data: bytes) -> None:
        self.record.transcript.append(Line(self.number, speaker, data))
        self.box.changed()


def _address(argument: str, keyword: str) -> str | None:
    """Returns the address between the brackets, "" for `<>`, None where there is none."""
    if not argument.upper().startswith(keyword):
        return None
    path = argument[len(keyword) :].lstrip()
    end = path.find(">")
    return path[1:end] if path.startswith("<") and end > 0 else None


def _takes(rule: Rule) -> bool:
    """Whether a mail counts as taken: not where it is lost on purpose or refused."""
    refused = any(act.word in SPEAKS and act.data[:1] in {b"4", b"5"} for act in rule.acts)
    return not refused and not any(act.word == "LOSE" for act in rule.acts)
