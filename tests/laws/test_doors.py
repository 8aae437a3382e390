"""Law 8, doors agree: the same mail to the same people through HTTP, SMTP and MCP yields the same findings and fingerprint.

Handed in as bytes by HTTP and SMTP, the same bytes go to the smarthost, apart from the Received line. Each example is judged
on one world in which some people are leased, cooling down, suppressed for a campaign or the tenant's own.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.record import Document, Receipt
from gateway.doors.mcp.tool import snake
from gateway.intake.walk import Ticket
from tests.databases import Databases
from tests.doors.door import SEND, Door, a_door, b64
from tests.doors.smtp.line import Submit, a_submit
from tests.world import BOXES, PAT, a_world

PEOPLE = [PAT, "bee@example.net", "cee@example.net", "dee@example.org", "ops@gw.example.com", "p.at+x@gmail.com"]
HEADERS = ["X-Campaign", "X-Note", "List-Unsubscribe", "Importance", "DKIM-Signature", "Comments"]

words = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40).map(str.strip)
umlauts = st.text("aö ü,=?ß", max_size=20).map(str.strip)
lines = st.lists(words, max_size=6).map("\n".join)
people = st.lists(st.sampled_from(PEOPLE), unique=True, min_size=1, max_size=4)
orders = st.fixed_dictionaries(
    {},
    optional={
        "campaignAction": st.sampled_from(["spring", "autumn"]),
        "kind": st.sampled_from(["outreach", "reply", "transactional"]),
        "requireConsensusId": st.sampled_from(["pending", "rejected", "bee's", "unknown"]),
    },
)
ORDER = {
    "campaignAction": "X-Gateway-Campaign-Action",
    "kind": "X-Gateway-Kind",
    "requireConsensusId": "X-Gateway-Require-Consensus-Id",
}


@dataclass
class Both:
    """Both doors of one world; what they hand in is judged and not written, and the tickets are kept."""

    submit: Submit
    tickets: list[Ticket] = field(default_factory=list)
    receipts: list[Receipt] = field(default_factory=list)
    votes: dict[str, str] = field(default_factory=dict)
    session: dict[str, str] = field(default_factory=dict)

    @property
    def door(self) -> Door:
        return self.submit.door

    def wishes(self, drawn: dict[str, str]) -> tuple[dict[str, str], bytes]:
        """What a mail asks of the gateway, as members of a request and as headers."""
        named = drawn.get("requireConsensusId")
        members = drawn | ({} if named is None else {"requireConsensusId": self.votes.get(named, named)})
        return members, "".join(f"{ORDER[name]}: {value}\r\n" for name, value in members.items()).encode()

    async def judged(self, ticket: Ticket) -> Receipt:
        self.tickets.append(ticket)
        self.receipts.append(await asyncio.to_thread(self.door.context.intake.preview, ticket))
        return self.receipts[-1]

    async def http(self, **body: Any) -> tuple[Ticket, list[Document]]:
        answer = await self.door.post(SEND, body)
        assert answer.status_code == 200, answer.text
        return self.tickets[-1], self.receipts[-1].record.decision["findings"]

    async def mcp(self, **given: Any) -> tuple[Ticket, list[Document]]:
        params = {"name": "send_email", "arguments": given}
        answer = await self.rpc({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        said = answer.json()["result"]
        assert said["isError"] is False, said
        return self.tickets[-1], self.receipts[-1].record.decision["findings"]

    async def rpc(self, message: dict[str, Any]) -> httpx.Response:
        headers = {"Accept": "application/json, text/event-stream", **self.session}
        answer = await self.door.post("/mcp", message, headers=headers)
        assert answer.status_code in (200, 202), answer.text
        return answer

    async def greet(self) -> None:
        """Begins a session of MCP."""
        version = "2025-11-25"
        about = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "law 8", "version": "1"}}
        answer = await self.rpc({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about})
        self.session = {"Mcp-Session-Id": answer.headers["mcp-session-id"], "Mcp-Protocol-Version": version}
        await self.rpc({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def smtp(self, raw: bytes, to: list[str]) -> tuple[Ticket, list[Document]]:
        more = "" if raw.isascii() else " SMTPUTF8 BODY=8BITMIME"
        before = len(self.tickets)
        reply = await self.submit.send(raw, tuple(to), more=more)
        assert len(self.tickets) > before, reply
        return self.tickets[-1], self.receipts[-1].record.decision["findings"]


@asynccontextmanager
async def both(databases: Databases) -> AsyncIterator[Both]:
    """Opens both doors on a world with a past."""
    async with a_world(databases) as world, a_door(world) as door, a_submit(door) as submit:
        await world.lease("b", "bee@example.net")
        await world.suppress("cee@example.net", "unsubscribe", campaign="spring")
        first = await world.send("a", PAT, mailbox=BOXES[0])
        await world.relay(await world.claim_of(first))
        pair = Both(submit)
        for name, person in (("pending", PAT), ("rejected", PAT), ("bee's", "bee@example.net")):
            pair.votes[name] = (await world.propose(person, 86_400)).id
        for agent in ("a", "b"):
            await world.vote(agent, pair.votes["rejected"], "reject")
        intake = door.context.intake
        intake.submit = pair.judged  # type: ignore[method-assign]
        await pair.greet()
        yield pair


Run = Callable[[Callable[[Both], Awaitable[None]]], None]


def same(one: Ticket, other: Ticket) -> None:
    """Whether two tickets ask for the same."""
    first, second = one.mail, other.mail
    assert first.fingerprint == second.fingerprint
    assert first.content.digest == second.content.digest
    assert first.envelope == second.envelope
    for name in (
        "tenant",
        "mailbox",
        "agent",
        "key_id",
        "kind",
        "campaign",
        "thread",
        "tokens",
        "not_before",
        "consensus",
    ):
        assert getattr(first, name) == getattr(second, name), name


@pytest.fixture
def run(sqlite_files: Databases) -> Iterator[Run]:
    """Runs one act on both doors, of one world for the whole test."""
    with asyncio.Runner() as runner:
        stack = both(sqlite_files)
        pair = runner.run(stack.__aenter__())
        try:
            yield lambda act: runner.run(_awaited(act(pair)))
        finally:
            runner.run(stack.__aexit__(None, None, None))


async def _awaited(act: Awaitable[None]) -> None:
    await act


def test_a_mail_as_bytes_is_the_same_through_both_doors(run: Run) -> None:
    @given(
        to=people,
        cc=st.lists(st.sampled_from(PEOPLE), unique=True, max_size=2),
        subject=words | umlauts,
        text=lines | umlauts,
        headers=st.lists(st.tuples(st.sampled_from(HEADERS), (words | umlauts).filter(bool)), max_size=3),
        sender=st.sampled_from([BOXES[0], f"Agent <{BOXES[0]}>", "ceo@gw.example.com"]),
        wishes=orders,
        date=st.booleans(),
        charset=st.sampled_from(["utf-8", "latin-1"]),
    )
    def tried(**mail: Any) -> None:
        async def act(pair: Both) -> None:
            head = [f"From: {mail['sender']}", f"To: {', '.join(mail['to'])}"]
            head += [f"Cc: {', '.join(mail['cc'])}"] if mail["cc"] else []
            head += [f"Subject: {mail['subject']}", "Message-ID: <law-8@gw.example.com>"]
            head += ["Date: Wed, 04 Mar 2026 12:00:00 +0000"] if mail["date"] else []
            head += [f"{name}: {value}" for name, value in mail["headers"]]
            body = mail["text"].replace("\n", "\r\n")
            raw = ("\r\n".join(head) + f"\r\n\r\n{body}\r\n").encode(mail["charset"])
            wishes, given_over_smtp = pair.wishes(mail["wishes"])
            everybody = list(dict.fromkeys([*mail["to"], *mail["cc"]]))

            box = pair.door.world.box[BOXES[0]].id
            one, found = await pair.http(rawMessage=b64(raw), mailboxId=box, **wishes)
            other, also = await pair.smtp(given_over_smtp + raw, everybody)

            same(one, other)
            assert found == also
            received, _, rest = other.body.partition(b" +0000\r\n")
            assert received.startswith(b"Received: from ")
            if mail["date"]:
                assert rest == one.body

        run(act)

    tried()


def test_a_mail_in_parts_and_the_mail_that_is_made_of_it_are_the_same(run: Run) -> None:
    @given(
        to=people,
        bcc=st.lists(st.sampled_from(PEOPLE), unique=True, max_size=2),
        subject=st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp", "Cn")), max_size=60),
        text=st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=200),
        html=st.none() | words,
        headers=st.lists(st.tuples(st.sampled_from(HEADERS[:2]), words.filter(bool)), max_size=2),
        reply=st.none() | st.just("<asked@example.net>"),
        wishes=orders,
    )
    def tried(**mail: Any) -> None:
        async def act(pair: Both) -> None:
            bcc = [person for person in mail["bcc"] if person not in mail["to"]]
            body = {"from": BOXES[0], "to": mail["to"], "subject": mail["subject"], "text": mail["text"]}
            body |= {"bcc": bcc} if bcc else {}
            body |= {"html": mail["html"]} if mail["html"] is not None else {}
            body |= {"inReplyTo": mail["reply"]} if mail["reply"] else {}
            body["headers"] = [{"name": name, "value": value} for name, value in mail["headers"]]

            wishes, given_over_smtp = pair.wishes(mail["wishes"])
            one, found = await pair.http(**body, **wishes)
            other, also = await pair.smtp(
                given_over_smtp + one.body, [r.address.spec for r in one.mail.envelope.recipients]
            )

            same(one, other)
            assert found == also

        run(act)

    tried()


def test_a_mail_by_a_tool_is_the_same_as_over_http(run: Run) -> None:
    @given(
        to=people,
        bcc=st.lists(st.sampled_from(PEOPLE), unique=True, max_size=2),
        subject=st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp", "Cn")), max_size=60),
        text=st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=200),
        html=st.none() | words,
        reply=st.none() | st.just("<asked@example.net>"),
        thread=st.none() | st.just("thread-1"),
        key=st.none() | st.just("law-8-key"),
        wishes=orders,
    )
    def tried(**mail: Any) -> None:
        async def act(pair: Both) -> None:
            names = {"inReplyTo": "reply", "threadId": "thread", "idempotencyKey": "key", "html": "html", "bcc": "bcc"}
            body = {"from": BOXES[0], "to": mail["to"], "subject": mail["subject"], "text": mail["text"]}
            body |= {name: mail[drawn] for name, drawn in names.items() if mail[drawn]}
            wishes, _ = pair.wishes(mail["wishes"])
            arguments = {snake(name): value for name, value in (body | wishes).items()}

            one, found = await pair.http(**body, **wishes)
            other, also = await pair.mcp(**arguments)

            same(one, other)
            assert one.mail.idempotency_key == other.mail.idempotency_key
            assert found == also

        run(act)

    tried()
