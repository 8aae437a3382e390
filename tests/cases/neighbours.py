"""The neighbours of a case about the SMTP door: other spellings, orders, encodings and moments of the same fault.

They are played after the case has been judged, on the same house; each notes its own faults.
"""

import base64
import quopri
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any

from tests.cases import letters, outage, words
from tests.cases.book import index
from tests.cases.letters import KEY, TOKEN, Letter
from tests.cases.play import Play
from tests.cases.submit import CLIENT, Line, connected, kept
from tests.cases.words import Said

Look = Callable[[Play], Awaitable[None]]
NEIGHBOURS: dict[str, Look] = {}
FROM = 200
"""Numbers of the steps that are added here begin with this."""
AGENT = "agent-a"
PLAIN = b"Content-Type: text/plain; charset=utf-8\r\n"
TEXT = "gr\u00fc\u00dfe\n"


def of(case: str) -> Callable[[Look], Look]:
    """Enter the neighbours of a case."""

    def enter(look: Look) -> Look:
        NEIGHBOURS[case] = look
        return look

    return enter


def letter_of(name: str) -> Letter:
    """The mail of a case."""
    return letters.of_case(next(case for case in index() if case.id == name))


def changed(letter: Letter, old: bytes, new: bytes) -> Letter:
    """A mail in which something stands otherwise."""
    assert old in letter.raw, old
    return replace(letter, raw=letter.raw.replace(old, new, 1))


async def each(play: Play, mails: Iterable[Letter], fine: Callable[[Said], object], why: str) -> list[Said]:
    """Hand all in; note where the answer is not fine."""
    told = []
    for number, letter in enumerate(mails, FROM):
        said = await kept(play, number, letter, {})
        play.fault(fine(said), f"{why}: {said.text} to {letter.people} {letter.raw[:300]!r}")
        told.append(said)
    await play.settle()
    return told


def replayed(said: Said) -> bool:
    """Whether a mail was known."""
    return "replayed" in said.decisions


def reused(said: Said) -> bool:
    """Whether the key was refused for another mail."""
    return said.text.startswith("554 5.5.4 idempotency_key_reused; request=req_")


# --- what a reply says when something is away -------------------------------------------------------------------------


@of("B65")
async def at_every_stage(play: Play) -> None:
    """The database goes at each place of a session and comes back: "later" every time, and the same session goes on."""
    play.house.settings |= words.settings_of({"quota_per_hour": 100})
    await play.house.down()
    await play.house.up()
    for stage, listener in enumerate(["submission", "submissions"] * 2):
        letter = replace(letter_of("B23"), people=(f"pat-{stage}@example.com", f"bee-{stage}@example.com"))
        letter = changed(letter, b"<b23@", f"<b65-{stage}@".encode())
        async with connected(play.house, listener) as line:
            await line.say(f"EHLO {CLIENT}")
            await _with_a_gap(play, line, letter, stage)
    await play.settle()


async def _with_a_gap(play: Play, line: Line, letter: Letter, stage: int) -> None:
    """The steps of a session, one of which meets the database away the first time it is tried."""
    key = play.house.keys[AGENT]
    mail, rcpt = f"MAIL FROM:<{letter.sender}> SIZE={len(letter.raw)}", [f"RCPT TO:<{one}>" for one in letter.people]

    async def envelope() -> str:
        return [await line.say(one) for one in (mail, *rcpt, "DATA")][-1]

    async def content() -> str:
        return await line.content(letter.raw)

    steps: list[Callable[[], Awaitable[str]]] = [
        lambda: line.log_in(AGENT, key),
        lambda: line.say(mail),
        lambda: line.say(rcpt[0]),
        content,
    ]
    ready: list[tuple[str, ...]] = [(), (), (mail,), (mail, *rcpt, "DATA")]
    if stage:
        await steps[0]()
    for command in ready[stage]:
        await line.say(command)
    await outage.database(play, FROM, {"state": "down"})
    reply = await steps[stage]()
    later = ("451 4.3.", "250 ") if stage == 1 else ("451 4.3.",)  # who has just logged in may be known still
    play.fault(reply.startswith(later), f"without a database, at stage {stage}: {reply}")
    await outage.database(play, FROM, {"state": "up"})
    if not stage:
        await steps[0]()
    await line.say("RSET")
    begun = await envelope()
    last = await content() if begun.startswith("354") else begun
    play.fault(last.startswith("250 2.0.0 accepted as "), f"with the database again, at stage {stage}: {last}")


# --- keys -------------------------------------------------------------------------------------------------------------


@of("B69")
async def however_it_is_written(play: Play) -> None:
    """One request, written by several programs: known each time; another text under the key is refused."""
    body: dict[str, Any] = {"to": ["pat@example.com"], "cc": ["bee@example.com"], "subject": "hello", "text": TEXT}
    body |= {"from": f"Agent <{AGENT}@gw.example.com>", "idempotencyKey": "b69-more"}
    first = await play.ask(FROM, {"path": "/v1/agent/request-send", "json": body})
    play.fault(first.accepted, first.text)
    letter = letters.of_json(body, AGENT)
    key = f"{KEY}: b69-more".encode()
    people = letter.people
    same = [
        letter,
        changed(letter, key, key.lower()),
        changed(letter, key, f'{KEY}: "b69-more"'.encode()),
        changed(letter, key, f"{KEY}:\r\n\tb69-more".encode()),
        changed(letter, key, key + b"\r\nReceived: from x by y; Mon, 02 Mar 2026 09:00:00 +0000"),
        changed(
            letter, key, key + b"\r\nMessage-ID: <another@gw.example.com>\r\nDate: Mon, 02 Mar 2026 09:00:00 +0000"
        ),
        changed(letter, b"Subject: hello", b"SUBJECT:  =?utf-8?q?hel?=\r\n =?utf-8?b?bG8=?="),
        changed(letter, b"pat@example.com", b"Pat <pat@EXAMPLE.com>"),
        replace(letter, people=people[::-1]),
        replace(letter, people=("PAT@Example.COM", *people)),
        replace(letter, listener="submissions"),
        *(_encoded(letter, how) for how in ("base64", "quoted-printable", "8bit")),
    ]
    await each(play, same, replayed, "not known again")
    other = [
        _encoded(letter, "base64", "another text\n"),
        replace(letter, people=people[:1]),
        changed(letter, b"Subject: hello", b"Subject: hello\r\nX-Campaign: spring"),
    ]
    await each(play, other, reused, "not refused")
    play.fault(len(play.mails_of(first)) == len(people), "not one mail each")


def _encoded(letter: Letter, how: str, text: str = TEXT) -> Letter:
    """The same mail in another transfer encoding."""
    head = letter.raw.partition(b"\r\n\r\n")[0]
    kept_ = [line for line in head.split(b"\r\n") if not line.lower().startswith((b"content-", b"mime-"))]
    octets = text.encode().replace(b"\n", b"\r\n")
    made = {
        "8bit": octets,
        "base64": base64.encodebytes(octets).replace(b"\n", b"\r\n"),
        "quoted-printable": quopri.encodestring(octets),
    }
    about = [b"MIME-Version: 1.0", PLAIN.strip(), f"Content-Transfer-Encoding: {how}".encode()]
    return replace(letter, raw=b"\r\n".join([*kept_, *about, b"", made[how]]))


@of("B75")
async def the_message_id_alone(play: Play) -> None:
    """A library that gives no key but keeps its Message-ID: known, whatever the hops on its way have changed."""
    letter = letter_of("B75")
    lines = [line for line in letter.raw.split(b"\r\n") if not line.startswith((KEY.encode(), TOKEN.encode()))]
    letter = replace(letter, raw=b"\r\n".join(lines), people=("pat@example.com", "bee@example.com"))
    letter = changed(letter, b"<b75-stable-id@", b"<b75-other-id@")
    identity = b"Message-ID: <b75-other-id@gw.example.com>"
    first = (await each(play, [letter], lambda said: said.accepted and not replayed(said), "not taken"))[0]
    same = [
        letter,
        replace(letter, people=letter.people[::-1]),
        replace(letter, people=("Pat@EXAMPLE.com", "bee@example.com", "bee@example.com")),
        changed(letter, identity, b"message-id:\r\n <b75-other-id@gw.example.com>"),
        changed(letter, b"Date: Mon, 02 Mar 2026 09:00:00 +0000", b"Date: Tue, 03 Mar 2026 09:00:00 +0000"),
        replace(letter, raw=b"Received: from a by b; Mon, 02 Mar 2026 09:00:01 +0000\r\n" + letter.raw),
    ]
    await each(play, same, replayed, "not known again")
    await each(play, [changed(letter, b"\r\n\r\nx", b"\r\n\r\nanother")], reused, "not refused")
    play.fault(len(play.mails_of(first)) == len(letter.people), "not one mail each")


# --- headers ----------------------------------------------------------------------------------------------------------


@of("B24")
async def blind_however_it_is_written(play: Play) -> None:
    """Bcc by other spellings, at other places: no copy holds the name, and all that stands behind it is kept."""
    plain = letter_of("B23")
    people = ("pat@example.com", "hidden-one@example.org")
    fields = [
        b"BCC: hidden-one@example.org",
        b"Bcc:hidden-one@example.org",
        b"bcc: Friends: hidden-one@example.org, hidden-two@example.org;",
        b'Bcc:\r\n hidden-one@example.org,\r\n\t"hidden, two"\r\n\t <hidden-two@example.org>',
        b"Bcc:",
        b"Resent-Bcc: hidden-one@example.org",
    ]
    head, _, _ = plain.raw.partition(b"Bcc:")
    for number, field in enumerate(fields):
        raw = head.replace(b"<b23@", f"<b24-{number}@".encode()) + field + b"\r\nX-After: ok\r\n\r\nx\r\n"
        letter = replace(plain, people=people, raw=raw)
        (said,) = await each(
            play, [letter], lambda said: said.accepted or said.status == 422, "neither taken nor refused"
        )
        for mail in play.mails_of(said):
            clean = b"hidden" not in mail.content and b"bcc" not in mail.content.lower()
            play.fault(clean and b"\r\nX-After: ok\r\n" in mail.content, f"{field!r} became {mail.content!r}")
        play.fault(not said.accepted or len(play.mails_of(said)) == len(people), f"{field!r}: not one copy each")


@of("B21")
async def another_author(play: Play) -> None:
    """The author by other spellings: one's own address is taken in each, another's in none."""
    letter = letter_of("B21")
    head = b'From: "The CEO" <ceo@gw.example.com>\r\nSender: agent-b@gw.example.com\r\n'
    own = [
        b'From: "The CEO" <Agent-A@GW.example.com>\r\n',
        b"From: agent-a@gw.example.com\r\nSender: agent-a@gw.example.com\r\nReply-To: ceo@gw.example.com\r\n",
        b"From: =?utf-8?q?J=C3=B6rg?=\r\n <agent-a@gw.example.com>\r\n",
    ]
    foreign = [
        b"From: ceo@gw.example.com\r\n",
        b"From: agent-a@gw.example.com, ceo@gw.example.com\r\nSender: agent-a@gw.example.com\r\n",
        b"From: ceo@gw.example.com\r\nSender: agent-a@gw.example.com\r\n",
        b"From: agent-a@gw.example.com\r\nSender: ceo@gw.example.com\r\n",
        b"From: agent-a@gw.example.com\r\nFrom: ceo@gw.example.com\r\n",
        b'From: "agent-a@gw.example.com" <ceo@gw.example.com>\r\n',
        b"From: Board: agent-a@gw.example.com, ceo@gw.example.com;\r\n",
        b"From: agent-a@gw.example.com <ceo@gw.example.com>\r\n",
        b"From: =?utf-8?q?agent-a=40gw.example.com?= <ceo@gw.example.com>\r\n",
        b"Sender: agent-a@gw.example.com\r\n",
    ]
    mails = [
        changed(changed(letter, head, one), b"<b21@", f"<b21-{n}@".encode()) for n, one in enumerate(own + foreign)
    ]
    await each(play, mails[: len(own)], lambda said: said.accepted, "an own address was not taken")
    await each(play, mails[len(own) :], lambda said: said.text.startswith("5"), "another's address was taken")
