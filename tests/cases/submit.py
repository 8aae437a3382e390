"""Hands mails in over SMTP as a mail program does, and turns the replies into the words of the cases."""

import asyncio
import contextlib
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from typing import Any

from tests.cases import letters, words
from tests.cases.book import index
from tests.cases.house import START, House
from tests.cases.letters import KEY, TOKEN, Letter
from tests.cases.play import LEASES, Play, filled
from tests.cases.words import SMTP, Said
from tests.doors.smtp.line import client_tls
from tests.smtp import Talk

WORD = "smtp_submit"
SAME = re.compile(r"same message(?: with (.*))?")
REQUEST = re.compile(r"(?: as |; request=)(req_\w+)")
NAME = "localhost"
CLIENT = "agent.example.com"
WAITING = 30.0
LATER = {"store_unavailable", "policy_error", "local", "too"}
"""First words of replies of 4yz that are about the gateway, not about the mail."""


class Line(Talk):
    """A connection to the door."""

    patience = WAITING

    async def upgrade(self) -> None:
        """Go over to TLS after 220."""
        await self.writer.start_tls(client_tls(), server_hostname=NAME)

    async def log_in(self, name: str, key: str) -> str:
        """AUTH PLAIN in one line."""
        return await self.say("AUTH PLAIN " + b64encode(f"\0{name}\0{key}".encode()).decode())

    async def content(self, raw: bytes) -> str:
        """A body with its dots stuffed, and the dot; the reply to it."""
        end = b"" if raw.endswith(b"\r\n") else b"\r\n"
        stuffed = (b"\r\n" + raw).replace(b"\r\n.", b"\r\n..")[2:]
        return await self.say(stuffed + end + b".\r\n")


@contextlib.asynccontextmanager
async def connected(house: House, listener: str, *, tls: bool = True) -> AsyncIterator[Line]:
    """A connection whose greeting was read, under TLS from the start or (with `tls`) by STARTTLS."""
    implicit = listener == "submissions"
    reader, writer = await asyncio.open_connection(
        "127.0.0.1",
        house.smtp_port(listener),
        ssl=client_tls() if implicit else None,
        server_hostname=NAME if implicit else None,
    )
    line = Line(reader, writer)
    try:
        greeting = await line.reply()
        assert greeting.startswith("220 "), greeting
        if tls and not implicit:
            await line.say(f"EHLO {CLIENT}")
            begun = await line.say("STARTTLS")
            assert begun.startswith("220 "), begun
            await line.upgrade()
        yield line
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def submitted(house: House, letter: Letter) -> list[str]:
    """Hand a mail in; the replies from AUTH on, up to the first that is a refusal or to that to the dot."""
    replies: list[str] = []
    async with connected(house, letter.listener) as line:
        await line.say(f"EHLO {CLIENT}")
        replies.append(
            await line.log_in(letter.login, house.keys[letter.login]) if letter.login else await line.say("NOOP")
        )
        commands = [f"MAIL FROM:<{letter.sender}>{letter.parameters}"]
        commands += [*(f"RCPT TO:<{person}>" for person in letter.people), "DATA"]
        for command in commands:
            if not replies[-1].startswith(("2", "3")):
                break
            replies.append(await line.say(command))
        if replies[-1].startswith("354 "):
            replies.append(await line.content(letter.raw))
        if replies[-1]:
            await line.say("QUIT")
    return replies


async def submit(play: Play, number: int, step: Mapping[str, Any], index: int = 0) -> Said:
    """A step that hands a mail in; its last reply is kept, and is what the step expects."""
    step = filled(dict(step), index, {})
    letter, asked = await _letter(play, step)
    return await kept(play, number, letter, asked, str(step.get("expect", "")))


async def kept(play: Play, number: int, letter: Letter, asked: Mapping[str, Any], expect: str = "") -> Said:
    """Hand a mail in; the last reply is kept among the answers."""
    begun = asyncio.get_running_loop().time()
    replies = await submitted(play.house, await _leased(play, letter))
    play.facts["replies"] = replies
    reply = replies[-1]
    known = {"to": list(letter.people), "idempotencyKey": letter.header(KEY)} | dict(asked)
    took = asyncio.get_running_loop().time() - begun
    body = await _body(play, reply)
    said = Said(number, letter.login, SMTP, SMTP, known, status_of(reply), body, {}, reply, took)
    play.said.append(said)
    play.fault(not expect or fits(expect, reply), f"step {number}: {expect!r}, but {reply}")
    return said


def fits(pattern: str, reply: str) -> bool:
    """Whether a reply is as a case wants it; of several lines the first counts as if it were the only one, too."""
    return any(re.match(pattern, one) for one in (reply, f"{reply[:3]} {reply[4:]}"))


def status_of(reply: str) -> int:
    """The status that the same answer has over HTTP."""
    code, slug = reply[:3], _slug(reply)
    if code.startswith("2"):
        return 200
    if code.startswith("4"):
        return 503 if slug in LATER else 200
    if code == "552":
        return 413
    blocked = code == "550" and slug not in {"", "recipient_not_allowed", "sender_not_allowed"}
    return 200 if blocked else 422


def _slug(reply: str) -> str:
    found = re.match(r"\d{3}[ -]\d\.\d+\.\d+ (\w+)", reply)
    return found[1] if found else ""


async def _body(play: Play, reply: str) -> dict[str, Any]:
    """What HTTP would have answered: the record that the reply names, or the reason alone."""
    found = REQUEST.search(reply)
    if reply.startswith("250 ") and found is not None:
        record = await play.record(found[1])
        return record | {"requestId": found[1], "replayed": "already accepted" in reply}
    more = {"requestId": found[1]} if found else {}
    status = status_of(reply)
    return more | ({"status": "blocked", "reason": _slug(reply)} if status < 400 else {"error": _slug(reply)})


# --- which mail -------------------------------------------------------------------------------------------------------


async def _letter(play: Play, step: Mapping[str, Any]) -> tuple[Letter, Mapping[str, Any]]:
    """The mail of a step, and what was asked as a request where it was one."""
    asked: Mapping[str, Any] = {}
    words_ = step.get(WORD, "")
    same = SAME.fullmatch(words_) if isinstance(words_, str) else None
    login = step.get("as", "agent-a")
    headers = dict(step.get("headers", {}))
    if "eml_of" in step:
        letter = letters.of_case(next(case for case in index() if case.id == step["eml_of"]))
    else:
        if same is not None:
            first = next(one for one in play.said if one.is_send)
            login = step.get("as", first.agent)
            asked = {name: value for name, value in (first.asked or {}).items() if name != "idempotencyKey"}
            headers |= dict(pair.split(": ", 1) for pair in re.split(r", (?=[\w-]+: )", same[1])) if same[1] else {}
        else:
            asked = step.get("json", words_)
        now = play.house.now if words.HOLD in asked else START
        letter = letters.of_json(words.body_of(SMTP, asked, now, play.tokens), login)
    if headers:
        letter = letter.headed(headers)
    envelope = step.get("envelope", {})
    people = tuple(envelope.get("rcpt_to", letter.people))
    sender, listener = envelope.get("mail_from", letter.sender), envelope.get("listener", letter.listener)
    made = Letter(sender, people, letter.raw, step.get("as", letter.login), listener)
    return made.longer(play.facts.get("longer", 0)), asked


async def _leased(play: Play, letter: Letter) -> Letter:
    """A token by the name of a lease is its number; a number where no lease was taken stands for one of the first person."""
    token = letter.header(TOKEN)
    name = token.removesuffix(".token")
    if name in play.tokens:
        return letter.told(TOKEN, str(play.tokens[name]))
    if not token.isdecimal() or play.saved:
        return letter
    held = f"of {letter.people[0]}"
    leases = play.facts.setdefault("leases", {})
    if held not in leases:
        body = words.lease(letter.people[0], 600)
        leases[held] = (await play.house.call("POST", LEASES, letter.login, json=body)).json()["fencingToken"]
    return letter.told(TOKEN, str(leases[held]))
