"""The demo's acts: what two agents, a person who opted out and a person with an operator key do to one another."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from gateway.cli.demo import program
from gateway.cli.demo.board import Board
from gateway.cli.demo.stage import Actor, Body, Stage
from gateway.cli.demo.words import CUSTOMER, OPTED_OUT
from gateway.cli.printing import member

Row = tuple[object, ...]
PAUSE_MINUTES = 0.005
"""How long the paused agent's lease has left: 0.3 seconds."""

TRIES, PAUSE_SECONDS = 100, 0.05
"""How often the other agent asks for the contact after that, and how long it waits in between."""


class Story:
    """Plays the acts in order and puts each outcome on the board."""

    def __init__(self, stage: Stage, board: Board) -> None:
        self.stage = stage
        self.board = board
        self.winner, self.loser = stage.agents
        self.won: Body = {}
        self.sent: Body = {}
        self.stale_token = 0
        self.token = 0

    async def play(self) -> None:
        """Play all acts; an act that cannot go on raises."""
        await self._register()
        await self._race()
        await self._replay()
        await self._take_over()
        await self._cooldown()
        await self._suppression()
        await self._dry_run()
        await program.play(self.stage, self.board, self.loser)
        await self._trace()

    async def _register(self) -> None:
        for agent in self.stage.agents:
            body = {"agentName": agent.name, "agentRole": "outbound", "bindKey": True}
            made = await agent.ask("POST", "/v1/agent/register", body)
            agent.id = str(member(made, "id"))
            self.board.check(f"{agent.name} is bound to its key", "bound", member(made, "apiKeyBinding"))

    async def _race(self) -> None:
        board = self.board
        board.act("Two agents race for one person", "Each asks for the contact and then sends, at the same time.")
        spellings = (CUSTOMER, CUSTOMER.upper())
        turns = await asyncio.gather(*(self._turn(*one) for one in zip(self.stage.agents, spellings, strict=True)))
        board.table(
            ("agent", "lease", "token", "send", "reason", "held by", "until"), [_raced(*turn) for turn in turns]
        )
        holders = [turn for turn in turns if "fencingToken" in turn[1]]
        board.check("agents that got the lease", 1, len(holders))
        if len(holders) != 1:
            raise RuntimeError("the race has no single winner")
        self.winner, self.won, self.sent = holders[0]
        self.loser, refused, answer = next(turn for turn in turns if turn is not holders[0])
        board.check("the loser's lease", "conflict", "conflict" if refused.get("conflict") else "taken")
        board.check("the winner's fencing token", 1, self.won.get("fencingToken"))
        board.check("the winner's mail", "relayed", self.sent.get("status"))
        board.check("the loser's mail", "blocked: lease_conflict", _became(answer))
        board.check("the loser is told who holds it", self.winner.name, member(answer, "leaseHolder", "agentName"))
        await self._arrived()

    async def _turn(self, agent: Actor, spelling: str) -> tuple[Actor, Body, Body]:
        """One agent's half of the race: without a lease it tries all the same."""
        lease = await agent.lease(spelling)
        more = {"fencingToken": lease["fencingToken"]} if "fencingToken" in lease else {}
        return agent, lease, await agent.send(spelling, key=f"race-{agent.name}", wait=10, **more)

    async def _arrived(self) -> None:
        mails = await self.stage.sink.wait(1)
        rows = [
            (mail.number, mail.envelope_from, ", ".join(mail.recipients), _message_id(mail.content)) for mail in mails
        ]
        self.board.say("The mail in the sink:")
        self.board.table(("no", "from", "to", "Message-ID"), rows)
        told = str(self.sent.get("messageId") or "none").strip("<>")
        same = "as told" if rows[0][3] == told else rows[0][3]
        self.board.check("the Message-ID in the sink", "as told", same)

    async def _replay(self) -> None:
        self.board.act("The winner's send is repeated", "Same key and content: the first receipt, and nothing is sent.")
        more = {"fencingToken": self.won["fencingToken"]}
        spelling = str(self.won.get("contactEmail") or CUSTOMER)
        again = await self.winner.send(spelling, key=f"race-{self.winner.name}", **more)
        other = await self.winner.send(spelling, key=f"race-{self.winner.name}", text="Something else.", **more)
        rows: list[Row] = [("the same mail", _became(again), again.get("replayed"), again.get("requestId"))]
        rows += [("other content", other.get("error"), False, other.get("requestId"))]
        self.board.table(("repeated with the same key", "answer", "replayed", "request"), rows)
        self.board.check("a replay", "the first receipt", self._replayed(again))
        self.board.check("the key with other content", "idempotency_key_reused", other.get("error"))
        self.board.check("mails in the sink after the replay", 1, len(self.stage.sink.mails))

    def _replayed(self, again: Body) -> str:
        same = again.get("replayed") and again.get("requestId") == self.sent.get("requestId")
        return "the first receipt" if same else f"{again.get('status')} {again.get('requestId')}"

    async def _take_over(self) -> None:
        words = (
            "The winner pauses until its lease is over; the other agent takes the contact; then the old draft is sent."
        )
        self.board.act("A stale holder", words)
        self.stale_token = int(self.won["fencingToken"])
        path = f"/v1/agent/coordination/lease/{self.won['id']}"
        body = {"fencingToken": self.stale_token, "durationMinutes": PAUSE_MINUTES}
        renewed = await self.winner.ask("PUT", path, body)
        self.board.check(
            "the winner's last renewal", "renewed", "renewed" if renewed.get("renewed") else renewed.get("reason")
        )
        self.token = await self._taken_over()
        late = await self.winner.send(CUSTOMER, key="old-draft", text="An old draft.", fencingToken=self.stale_token)
        holder = member(late, "leaseHolder") or {}
        rows: list[Row] = [(self.loser.name, self.token, "has the lease", "", "")]
        rows += [(self.winner.name, self.stale_token, _became(late), holder.get("agentName"), late.get("nextAction"))]
        self.board.table(("agent", "token", "answer", "held by", "next"), rows)
        self.board.check("the new holder's token is higher", self.stale_token + 1, self.token)
        self.board.check("a send with the old token", "blocked: stale_fencing_token", _became(late))
        self.board.check("the stale agent is told who holds it", self.loser.name, holder.get("agentName"))

    async def _taken_over(self) -> int:
        """The other agent asks until it has the contact; the store's clock alone says when. Returns its token."""
        for _ in range(TRIES):
            taken = await self.loser.lease(CUSTOMER)
            if "fencingToken" in taken:
                return int(taken["fencingToken"])
            await asyncio.sleep(PAUSE_SECONDS)
        raise RuntimeError("the paused agent's lease does not end")

    async def _cooldown(self) -> None:
        self.board.act(
            "One cooldown for all agents", "The new holder has the lease, and still the person was just mailed."
        )
        answer = await self.loser.send(CUSTOMER, key="too-soon", text="From the new holder.", fencingToken=self.token)
        row = (self.loser.name, _became(answer), _second(answer.get("cooldownExpiresAt")), answer.get("nextAction"))
        self.board.table(("agent", "answer", "cooldown until", "next"), [row])
        self.board.check("a second mail within the cooldown", "blocked: cooldown", _became(answer))
        self.board.check("it says until when", "yes", _yes(answer.get("cooldownExpiresAt") and answer.get("retryAt")))

    async def _suppression(self) -> None:
        self.board.act("A person who opted out", "An operator suppresses an address; that binds every agent.")
        entry = {"recipientEmail": OPTED_OUT, "scope": "tenant", "reasonCode": "unsubscribe", "source": "demo"}
        made = await self.stage.operator.ask("POST", "/v1/suppressions", entry)
        self.board.check("the suppression is on the list", "yes", _yes(made.get("id")))
        answers = [await agent.send(OPTED_OUT, key=f"out-{agent.name}") for agent in self.stage.agents]
        rows = [(a.name, _became(one), one.get("detail")) for a, one in zip(self.stage.agents, answers, strict=True)]
        self.board.table(("agent", "answer", "detail"), rows)
        for agent, answer in zip(self.stage.agents, answers, strict=True):
            self.board.check(f"{agent.name} to the suppressed address", "blocked: suppressed", _became(answer))

    async def _dry_run(self) -> None:
        words = "The stale agent asks beforehand, for both people at once: every finding is listed, nothing is kept."
        self.board.act("A dry run tells everything", words)
        tokens = {CUSTOMER: self.stale_token}
        more: Body = {"text": "Only asking.", "dryRun": True, "fencingTokens": tokens}
        answer = await self.winner.send(CUSTOMER, OPTED_OUT, key="only-asking", **more)
        findings: Sequence[Body] = answer.get("findings") or []
        names = ("rule", "verdict", "reason", "recipient", "retryAt", "nextAction")
        rows = [[_second(one.get(n)) if n == "retryAt" else one.get(n) for n in names] for one in findings]
        self.board.table(names, rows)
        found = sorted({str(one.get("reason")) for one in findings if one.get("verdict") != "pass"})
        self.board.check("the dry run's findings", "cooldown, stale_fencing_token, suppressed", ", ".join(found))
        self.board.check("the dry run's verdict", "suppressed", answer.get("reason"))
        kept = await self.winner.ask("GET", "/v1/agent/requests", query={"idempotencyKey": "only-asking"})
        self.board.check("what the dry run left behind", 404, kept.get("httpStatus"))

    async def _trace(self) -> None:
        self.board.act(
            "The trace", "What was decided about the winner's mail, by which rules, and what happened to it."
        )
        trace = await self.stage.operator.ask("GET", f"/v1/ops/trace/{self.sent.get('requestId')}")
        lines: list[Body] = member(trace, "policyDecision", "auditEvents") or []
        said = ", ".join(f"{line.get('rule')} {'pass' if line.get('passed') else 'no'}" for line in lines)
        self.board.say(f"rules: {said}")
        events: list[Body] = member(trace, "events") or []
        rows = [(_second(one.get("at")), one.get("name"), one.get("contact"), one.get("actor")) for one in events]
        self.board.table(("at", "event", "contact", "by"), rows)
        self.board.check("the trace's decision allows it", "yes", _yes(member(trace, "policyDecision", "allow")))
        self.board.check("the trace's status", "relayed", member(trace, "request", "status"))


def _raced(agent: Actor, lease: Body, answer: Body) -> Row:
    holder: Any = member(answer, "leaseHolder") or {}
    got = "conflict" if lease.get("conflict") else lease.get("id")
    row = (agent.name, got, lease.get("fencingToken"), answer.get("status"), answer.get("reason"))
    return (*row, holder.get("agentName"), _second(holder.get("expiresAt")))


def _became(answer: Body) -> str:
    """The status with its reason, as the tables show it; an error of the wire by its slug."""
    if "error" in answer:
        return f"error: {answer['error']}"
    reason = answer.get("reason")
    return f"{answer.get('status')}: {reason}" if reason else str(answer.get("status"))


def _second(moment: object) -> str:
    """A time without its fractions."""
    return re.sub(r"\.\d+", "", str(moment)) if moment else ""


def _yes(value: object) -> str:
    return "yes" if value else "no"


def _message_id(content: bytes) -> str:
    from email.parser import BytesHeaderParser

    return str(BytesHeaderParser().parsebytes(content).get("Message-ID", "")).strip("<> ")
