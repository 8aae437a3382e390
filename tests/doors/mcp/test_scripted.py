"""An agent with nothing but the tool list and the results meets each reason, and comes to the right end.

`sent`: the mail goes, once. `stopped`: it gives up and nothing goes. `held`: a person decides, and it does not send again.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

import policies
from gateway.core.judge import Rule
from gateway.doors.mcp.server import TOOLS
from tests.doors.door import LEASE, a_door
from tests.doors.mcp.client import Served
from tests.doors.mcp.conftest import serving
from tests.doors.mcp.scripted import Scripted
from tests.world import BOXES, PAT, TENANT, Options, a_world

OTHER = "kim@example.net"
Mail = dict[str, Any]
NO_TOOL = {"invalid_message": "a tool composes the mail itself"}
"""Reasons that no tool can meet, and why."""


@dataclass
class Scene:
    """A door with a past, the agent, and the person who answers for it."""

    served: Served
    held: list[str]
    decision: str = "approve"

    @property
    def door(self) -> Any:  # noqa: ANN401
        return self.served.door

    @property
    def world(self) -> Any:  # noqa: ANN401
        return self.served.door.world

    async def wait(self, moment: datetime) -> None:
        """Time passes until a moment, and what is due is done."""
        self.world.advance(max(0.0, (moment - self.world.now).total_seconds()) + 1)

    async def person(self, request: str) -> None:
        """Decides about what is held; nothing is held where a check was broken: it is mended."""
        self.held.append(request)
        if not request:
            self.door.context.intake.rules = tuple(policies.rules(self.world.options))
            return
        answer = await self.door.post(
            f"/v1/agent/requests/{request}/resolve", {"decision": self.decision}, by="operator"
        )
        assert answer.status_code in (200, 409), answer.text

    async def lease(self, by: str = "b", minutes: float = 5, contact: str = PAT) -> dict[str, Any]:
        body: dict[str, Any] = (
            await self.door.post(LEASE, {"contactEmail": contact, "durationMinutes": minutes}, by=by)
        ).json()
        return body

    async def mailbox(self, **what: Any) -> None:
        """Changes the first mailbox."""
        box = self.world.box[BOXES[0]].id
        answer = await self.door.call("PATCH", f"/v1/agent/mailboxes/{box}", what, by="operator")
        assert answer.status_code == 200, answer.text

    async def sent(self, **mail: Any) -> None:
        """A mail of the agent's has arrived."""
        receipt = await self.world.send("a", PAT, **mail)
        await self.world.relay(await self.world.claim_of(receipt))


class Broken:
    """A policy that cannot answer."""

    when = policies.rules()[0].policy.when

    def asks(self, mail: object) -> tuple[()]:
        return ()

    def judge(self, mail: object, facts: object) -> Any:  # noqa: ANN401
        raise RuntimeError


async def nothing(_: Scene) -> Mail:
    return {}


async def not_allowed(scene: Scene) -> Mail:
    await scene.mailbox(config={"allowedRecipientDomains": ["example.net"]})
    return {"to": [PAT, "out@example.org"]}


async def not_own(_: Scene) -> Mail:
    return {"kind": "transactional"}


async def not_active(scene: Scene) -> Mail:
    from gateway.store.agents import set_mailbox_status

    box = scene.world.box[BOXES[0]].id
    scene.world.store.write((TENANT,), lambda tx: set_mailbox_status(tx, TENANT, box, "provisioning"))
    return {}


async def paused(scene: Scene) -> Mail:
    await scene.world.pause_mailbox(BOXES[0])
    return {}


async def stale(scene: Scene) -> Mail:
    old = await scene.lease("a", 1)
    scene.world.advance(61)
    await scene.lease("b", 1)
    return {"fencing_token": old["fencingToken"]}


async def expired(scene: Scene) -> Mail:
    old = await scene.lease("a", 1)
    scene.world.advance(61)
    return {"fencing_token": old["fencingToken"]}


async def required(scene: Scene) -> Mail:
    await scene.mailbox(config={"demands": "token"})
    return {}


async def conflict(scene: Scene) -> Mail:
    await scene.lease("b", 5)
    return {}


async def escalated(scene: Scene) -> Mail:
    await scene.lease("b", 30)
    for number in range(2):
        await scene.door.send(by="a", from_=BOXES[0], idempotencyKey=f"before-{number}", subject=f"before {number}")
    return {}


async def suppressed(scene: Scene) -> Mail:
    await scene.world.suppress(PAT)
    return {}


async def pending(scene: Scene) -> Mail:
    return {"require_consensus_id": (await scene.world.propose(PAT, 86_400)).id}


async def rejected(scene: Scene) -> Mail:
    vote = (await scene.world.propose(PAT, 86_400)).id
    for agent in ("a", "b", "c"):
        with_closed = scene.world.vote(agent, vote, "reject")
        try:
            await with_closed
        except Exception:  # noqa: BLE001  (two of three have decided)
            break
    return {"require_consensus_id": vote}


async def no_vote(scene: Scene) -> Mail:
    scene.world.advance(600)  # nobody else is there: one vote decides
    await scene.mailbox(config={"requireConsensus": True})
    return {}


async def cooling(scene: Scene) -> Mail:
    await scene.sent()
    return {}


async def unknown(scene: Scene) -> Mail:
    first = (await scene.door.send(by="a", from_=BOXES[0], subject="hello", text="hello", idempotencyKey="lost")).json()
    from gateway.core.delivery import Unknown

    (claim,) = [one for one in await scene.world.claim() if one.send == first["requestId"]]
    await scene.world.permit(claim)
    await scene.world.settle(claim, Unknown("silence"))
    scene.world.advance(3600)
    return {"subject": "hello", "text": "hello"}


LONG = "A letter of some length, so that it can be told from others, about a thing that matters to nobody. " * 5


async def copied(scene: Scene) -> Mail:
    first = (await scene.door.send(by="a", from_=BOXES[0], subject="news", text=LONG, idempotencyKey="first")).json()
    (claim,) = [one for one in await scene.world.claim() if one.send == first["requestId"]]
    await scene.world.relay(claim)
    scene.world.advance(3600)
    return {"subject": "news", "text": LONG + "P.S."}


async def looping(scene: Scene) -> Mail:
    for number in range(2):
        await scene.sent(key=f"loop-{number}", subject=f"answer {number}", kind="reply")
    return {"kind": "reply", "in_reply_to": "<asked@example.net>"}


async def machine(_: Scene) -> Mail:
    return {"to": "mailer-daemon@example.net", "kind": "reply", "in_reply_to": "<asked@example.net>"}


async def used_up(scene: Scene) -> Mail:
    for number in range(2):
        await scene.door.accepted(from_=BOXES[0], to=[f"p{number}@example.net"], idempotencyKey=f"q{number}")
    return {}


async def large(_: Scene) -> Mail:
    return {"text": "0123456789" * 1000}


async def broken(scene: Scene) -> Mail:
    rules = scene.door.context.intake.rules
    scene.door.context.intake.rules = (*rules, Rule("broken", Broken()))  # type: ignore[arg-type]
    return {}


async def reused(scene: Scene) -> Mail:
    await scene.door.accepted(from_=BOXES[0], to=[OTHER], idempotencyKey="mine")
    return {"idempotency_key": "mine"}


Setup = Callable[[Scene], Awaitable[Mail]]
SCENES: dict[str, tuple[Setup, str]] = {
    "recipient_not_allowed": (not_allowed, "sent"),
    "sender_not_allowed": (not_own, "sent"),
    "mailbox_not_active": (not_active, "sent"),
    "mailbox_paused": (paused, "sent"),
    "stale_fencing_token": (stale, "stopped"),
    "lease_expired": (expired, "sent"),
    "lease_required": (required, "sent"),
    "lease_conflict": (conflict, "sent"),
    "conflict_escalated": (escalated, "held"),
    "suppressed": (suppressed, "stopped"),
    "no_consent": (nothing, "stopped"),
    "consensus_pending": (pending, "held"),
    "consensus_rejected": (rejected, "stopped"),
    "consensus_required": (no_vote, "sent"),
    "cooldown": (cooling, "sent"),
    "unknown_outstanding": (unknown, "held"),
    "near_duplicate": (copied, "held"),
    "loop_suspected": (looping, "sent"),
    "automatic_answer": (machine, "stopped"),
    "hourly_limit_exceeded": (used_up, "sent"),
    "daily_limit_exceeded": (used_up, "sent"),
    "monthly_limit_exceeded": (used_up, "sent"),
    "message_too_large": (large, "sent"),
    "policy_error": (broken, "sent"),
    "idempotency_key_reused": (reused, "sent"),
}
OPTIONS: dict[str, Options] = {
    "no_consent": {"consent": {"mode": "enforce"}},
    "loop_suspected": {"loop": {"pair": 2}},
    "hourly_limit_exceeded": {"quota": {"mailbox_hour": 2}},
    "daily_limit_exceeded": {"quota": {"mailbox_day": 2}},
    "monthly_limit_exceeded": {"quota": {"mailbox_month": 2}},
    "message_too_large": {"content": {"max_bytes": 6000}},
}
STORE = {"store_unavailable": "it is the door's own answer; tests of the store's outages see it"}


def test_no_reason_is_left_out() -> None:
    assert {reason.slug for reason in policies.reasons()} == set(SCENES) | set(NO_TOOL) | set(STORE)


@pytest.mark.parametrize("reason", SCENES)
async def test_by_the_results_alone_it_comes_to_the_right_end(reason: str, sqlite_files: Any) -> None:  # noqa: ANN401
    setup, end = SCENES[reason]
    async with a_world(sqlite_files, OPTIONS.get(reason)) as world, a_door(world) as door:
        async for served in serving(door):
            scene = Scene(served, [])
            mail = {"to": PAT, "subject": "hello again", "text": "a mail", "from": BOXES[0], "idempotency_key": "k"}
            mail |= await setup(scene)
            before = {row["id"] for row in world.rows_of(_deliveries()) if row["state"] == "queued"}
            async with served.connect("a") as session:
                listed = {tool.name for tool in (await session.client.list_tools()).tools}
                agent = Scripted(session, scene.wait, scene.person)
                last = await agent.send(**mail)

            assert listed == {tool.name for tool in TOOLS}
            assert agent.results[0]["reason"] == reason, agent.results[0]
            gone = [row for row in world.rows_of(_deliveries()) if row["state"] == "queued" and row["id"] not in before]
            if end == "sent":
                assert last["ok"] is True, agent.results
                assert len(gone) == 1, agent.results
            elif end == "stopped":
                assert last["ok"] is False
                assert (gone, scene.held) == ([], [])
            else:
                assert scene.held == [last["request_id"]]
                assert len(agent.results) == 2
                assert len(gone) <= 1


def _deliveries() -> Any:  # noqa: ANN401
    from gateway.store.schema import deliveries

    return deliveries
