"""Faults of other servers, played against this one: the cases of the kinds smtp-client and eml-out in fixtures/cases.

The neutral names of a case stand for ours: agent-a for the agent `a`, X-Idempotency-Key and X-Agent-Lease for the gateway's
headers. What would go over the wire to the smarthost is looked at with one that offers nothing.
"""

import json
import re
from email import message_from_bytes
from email.message import Message
from typing import Any

import pytest

from gateway.core.address import parse
from gateway.relay.wire import Offers
from gateway.relay.worker import outgoing
from gateway.store import agents
from tests.cases.book import HOME, Case, index
from tests.doors.door import Door
from tests.doors.smtp.line import Client, Submit, a_submit
from tests.world import TENANT

CASES = {case.id: case for case in index() if case.kind in ("smtp-client", "eml-out")}
AGENT = "agent-a@gw.example.com"
OURS = {"X-Idempotency-Key": "X-Gateway-Idempotency-Key", "X-Agent-Lease": "X-Gateway-Fencing-Token"}
BOUNCES = "B101"  # is about the door for bounces


@pytest.fixture
def submit(submit: Submit) -> Submit:
    """The door of a world in which agent-a has its mailbox."""
    store = submit.door.world.store
    store.write((TENANT,), lambda tx: agents.add_mailbox(tx, TENANT, parse(AGENT)))
    return submit


def of(*kinds: str) -> list[str]:
    return [case.id for case in CASES.values() if case.kind in kinds and case.id != BOUNCES]


def script(case: Case) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """The head of a dialogue, and its lines: who speaks, and what."""
    head, _, body = (HOME / case.file).read_text(encoding="utf-8").partition("\n---\n")
    about = dict(line.split(": ", 1) for line in head.splitlines())
    return about, [(line[:1], line[2:]) for line in body.splitlines() if line]


@pytest.mark.parametrize("case", of("smtp-client"))
async def test_a_dialogue_ends_as_it_should(submit: Submit, case: str) -> None:
    about, lines = script(CASES[case])
    replies: list[str] = []
    async with submit.talk(secure=about["listener"] == "submissions") as client:
        if about["tls"] == "starttls":
            await client.ehlo()
            await client.say("STARTTLS")
            await client.upgrade()
        for speaker, words in lines:
            if await play(submit, client, about, speaker, words, replies):
                break

    await holds(submit, CASES[case].expected, replies)


async def play(
    submit: Submit, client: Client, about: dict[str, str], speaker: str, words: str, replies: list[str]
) -> bool:
    """One line; whether the session has ended."""
    if speaker == "C":
        text: str = json.loads(words)
        if text.startswith("AUTH PLAIN"):
            replies.append(await client.log_in("a", submit.key()))
        else:
            client.writer.write(text.encode(about["charset"]))
        return False
    if speaker == "T":
        return replies[-1][:3] != "220"  # the session was dropped: there is nobody to shake hands with
    if len(replies) and replies[-1].startswith("235 ") and words == "235":
        return False
    replies.append(await client.reply())
    assert words == "any" or re.match(words, replies[-1]), replies
    if len(replies) == 1 and about["login"] != "none":
        assert (await client.log_in("a", submit.key())).startswith("235 ")
    return False


@pytest.mark.parametrize("case", of("eml-out"))
async def test_a_mail_goes_as_it_should(submit: Submit, case: str) -> None:
    one = CASES[case]
    lease = await submit.door.world.lease("a", "pat@example.com")
    text = (HOME / one.file).read_text(encoding="utf-8").replace("X-Agent-Lease: 41", f"X-Agent-Lease: {lease.token}")
    for neutral, ours in OURS.items():
        text = text.replace(neutral, ours)
    raw = text.replace("\n", "\r\n").encode()
    people = tuple(one.envelope["rcpt_to"])

    replies = [
        await submit.send(raw, people, sender=one.envelope["mail_from"])
        for _ in range(one.expected.get("submit_times", 1))
    ]

    if "or" in one.expected and re.match(one.expected["or"]["smtp_last"], replies[-1]):
        return
    await holds(submit, one.expected, replies)


NULL = ["MAIL FROM:<>", "MAIL FROM:<> SIZE=100 BODY=8BITMIME", "mail from:  <>", "MAIL FROM:<> SMTPUTF8 RET=HDRS"]


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("said", NULL)
async def test_nobody_submits_with_the_null_sender(submit: Submit, said: str, secure: bool) -> None:
    async with submit.talk(secure=secure) as client:
        await client.ehlo()
        if not secure:
            await client.say("STARTTLS")
            await client.upgrade()
            await client.ehlo()
        await client.log_in("a", submit.key())
        reply = await client.say(said)
        after = [await client.say(f"RCPT TO:<{AGENT}>"), await client.say("DATA"), await client.say("NOOP")]

    assert reply.startswith("550 5.7.1 sender_not_allowed; ")
    assert [one[:3] for one in after] == ["503", "503", "250"]


async def test_a_network_that_needs_no_login_submits_with_no_null_sender_either(wire: Door) -> None:
    async with a_submit(wire, smtp_trust=("127.0.0.0/8=a",)) as submit, submit.talk() as client:
        await client.say("HELO mx.example.net")

        assert (await client.say("MAIL FROM:<>")).startswith("550 5.7.1 sender_not_allowed; ")


async def test_nothing_is_sent_to_the_null_sender(submit: Submit) -> None:
    async with submit.session() as client:
        replies = await client.envelope(("", "pat@example.net"))
        last = await client.content()

    assert [reply[:9] for reply in replies] == ["550 5.1.3", "250 2.1.5"]
    assert last.startswith("250 2.0.0 accepted as ")
    assert [claim.address for claim in await submit.door.world.claim()] == ["pat@example.net"]


def test_the_cases_that_are_not_played_are_about_another_door() -> None:
    assert script(CASES[BOUNCES])[0]["listener"] == "bounce"


# --- what must hold ---------------------------------------------------------------------------------------------------


async def holds(submit: Submit, expected: dict[str, Any], replies: list[str]) -> None:
    """Whether everything that a case expects is so."""
    mails = {claim.address: outgoing(claim) for claim in await submit.door.world.claim()}
    bodies = [mail.fit(Offers())[3] for mail in mails.values()]
    sent = set(mails)
    if "smtp_last" in expected and not replies[-1].startswith("554 5.5.1 nothing may follow"):
        assert re.match(expected["smtp_last"], replies[-1]), replies
    if "gateway_messages" in expected:
        wanted = expected["gateway_messages"]
        assert len(set(bodies)) in (wanted if isinstance(wanted, list) else [wanted])
    if "upstream_transactions" in expected:
        wanted = expected["upstream_transactions"]
        assert len(mails) in (wanted if isinstance(wanted, list) else [wanted])
    assert sent >= set(expected.get("upstream_rcpts", []))
    assert sent.isdisjoint(expected.get("upstream_rcpts_exclude", []))
    for body in bodies:
        on_the_wire(body, expected.get("wire", {}))
        if "received_text_lines" in expected:
            text = message_from_bytes(body).get_payload(decode=True)
            assert isinstance(text, bytes)
            assert unstuffed(text).decode().splitlines() == expected["received_text_lines"]


def unstuffed(text: bytes) -> bytes:
    """A body's text as the receiver keeps it."""
    return (b"\n" + text.replace(b"\r\n", b"\n")).replace(b"\n..", b"\n.")[1:]


def on_the_wire(body: bytes, wire: dict[str, Any]) -> None:
    """Whether the bytes for the smarthost are as a case wants them."""
    said: Message = message_from_bytes(body)
    assert body.count(b"\r\n") == body.count(b"\n") == body.count(b"\r")
    assert not wire.get("ascii_only") or body.isascii()
    assert not [name for name in [*wire.get("header_absent", []), *OURS.values()] if name in said]
    assert not [name for name in wire.get("header_kept", []) if name not in said]
    assert not [words for words in wire.get("not_contains", []) if words.encode() in body]
    for name, count in wire.get("header_count", {}).items():
        assert len(said.get_all(name, [])) == count, name
    for name, value in wire.get("header_equals", {}).items():
        assert said[name] == value
