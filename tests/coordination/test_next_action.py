"""Whoever follows `nextAction` and nothing else comes to the right end, from each refusal that leases bring about.

The six situations are those of the article on contact leases: another holder, cooldown, a lease that has ended, an old token,
a suppressed person, and a request whose answer never came. The agent (`by_words.py`) knows no code of the gateway.
"""

import ast
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from gateway.core.delivery import Unknown
from gateway.store.schema import deliveries
from tests.coordination import by_words
from tests.coordination.by_words import Answer, ByWords
from tests.doors.door import LEASE, Door
from tests.world import PAT

MAIL = {"to": PAT, "subject": "hello again", "text": "a mail", "idempotencyKey": "k"}
Mail = dict[str, Any]


class Scene:
    """A door with a past; `lost` says of the next requests whether the request itself or only its answer is lost."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.world = door.world
        self.lost: list[str] = []
        self.decision = "assume_sent"
        self.asked: list[str] = []

    async def ask(self, method: str, path: str, body: Any = None, query: Any = None) -> Answer:  # noqa: ANN401 - JSON
        """A request of the agent's."""
        what = self.lost.pop(0) if self.lost else ""
        if what == "request":
            raise TimeoutError
        answer = await self.door.call(method, path, body, params=query)
        if what == "answer":
            raise TimeoutError
        return dict(answer.json())

    async def wait(self, until: str) -> None:
        """Time passes until a moment."""
        self.world.advance(max(0.0, (datetime.fromisoformat(until) - self.world.now).total_seconds()) + 1)

    async def person(self, request: str) -> None:
        """An operator decides about a send whose outcome is not known."""
        self.asked.append(request)
        wish = {"decision": self.decision, "reason": "it was looked for"}
        answer = await self.door.post(f"/v1/agent/requests/{request}/resolve", wish, by="operator")
        assert answer.status_code == 200, answer.text

    async def lease(self, by: str, minutes: float) -> Answer:
        """Somebody takes the contact."""
        body = {"contactEmail": PAT, "durationMinutes": minutes}
        return dict((await self.door.post(LEASE, body, by=by)).json())

    def states(self) -> Counter[str]:
        """How many deliveries are in which state."""
        return Counter(row["state"] for row in self.world.rows_of(deliveries))

    def agent(self) -> ByWords:
        """An agent that acts with the key `a`."""
        return ByWords(self.ask, self.wait, self.person)


async def other_holder(scene: Scene) -> Mail:
    await scene.lease("b", 5)
    return {}


async def cooldown(scene: Scene) -> Mail:
    receipt = await scene.world.send("b", PAT)
    await scene.world.relay(await scene.world.claim_of(receipt))
    return {}


async def lease_over(scene: Scene) -> Mail:
    token = (await scene.lease("a", 1))["fencingToken"]
    scene.world.advance(61)
    return {"fencingToken": token}


async def lease_over_and_taken(scene: Scene) -> Mail:
    """It has ended, and while the agent acquires anew another one has the contact for a while."""
    mail = await lease_over(scene)
    first = await scene.door.send(**MAIL | mail, by="a")
    assert first.json()["reason"] == "lease_expired"
    ask, taken = scene.ask, [False]

    async def with_another(method: str, path: str, body: Any = None, query: Any = None) -> Answer:  # noqa: ANN401 - JSON
        if path == LEASE and not taken[0]:
            taken[0] = True
            await scene.lease("b", 2)
        return await ask(method, path, body, query)

    scene.ask = with_another  # type: ignore[method-assign]
    return mail


async def old_token(scene: Scene) -> Mail:
    mail = await lease_over(scene)
    await scene.lease("b", 5)
    return mail


async def suppressed(scene: Scene) -> Mail:
    await scene.world.suppress(PAT)
    return {}


async def answer_lost(scene: Scene) -> Mail:
    scene.lost = ["answer"]
    return {}


async def request_lost(scene: Scene) -> Mail:
    scene.lost = ["request"]
    return {}


async def outcome_unknown(scene: Scene) -> Mail:
    """The agent has crashed after its send; the smarthost has taken the mail, or not: nobody has seen its reply."""
    sent = (await scene.door.send(**MAIL, by="a")).json()
    (claim,) = [one for one in await scene.world.claim() if one.send == sent["requestId"]]
    assert await scene.world.permit(claim) is None
    await scene.world.settle(claim, Unknown("silence"))
    return {}


Setup = Callable[[Scene], Awaitable[Mail]]
SITUATIONS: dict[str, tuple[Setup, str, list[str], dict[str, int]]] = {
    "another holder": (other_holder, "lease_conflict", ["waited"], {"blocked": 0, "queued": 1}),
    "cooldown": (cooldown, "cooldown", ["scheduled it"], {"scheduled": 1, "queued": 0}),
    "lease over": (lease_over, "lease_expired", ["acquired"], {"queued": 1}),
    "old token": (old_token, "stale_fencing_token", ["dropped it"], {"queued": 0}),
    "suppressed": (suppressed, "suppressed", ["dropped it"], {"queued": 0}),
    "answer lost": (answer_lost, "", ["looked it up"], {"queued": 1}),
    "request lost": (request_lost, "", ["looked it up", "repeated it"], {"queued": 1}),
    "outcome unknown": (outcome_unknown, "", ["asked a person"], {"queued": 0, "relayed": 1, "unknown": 0}),
}
"""Each with its past, the first answer's reason, what the agent does about it, and how many deliveries are where then."""


@pytest.mark.parametrize("name", SITUATIONS)
async def test_from_each_refusal_it_comes_to_the_right_end(door: Door, name: str) -> None:
    past, reason, does, states = SITUATIONS[name]
    scene = Scene(door)
    mail = MAIL | await past(scene)
    agent = scene.agent()

    last = await agent.send(**mail)

    assert agent.said[0].get("reason", "") == reason, agent.said
    assert agent.done == does, agent.said
    assert {state: scene.states()[state] for state in states} == states, scene.states()
    assert (last is None) is (does == ["dropped it"])


async def test_a_contact_that_is_taken_meanwhile_is_waited_for(door: Door) -> None:
    scene = Scene(door)
    mail = MAIL | await lease_over_and_taken(scene)
    agent = scene.agent()
    agent.ask = scene.ask

    last = await agent.send(**mail)

    assert [one.get("reason") for one in agent.said] == ["lease_expired", "lease_conflict", None, None]
    assert agent.said[2]["fencingToken"] > mail["fencingToken"]
    assert last is not None
    assert last["status"] == "queued"
    assert scene.states()["queued"] == 1


async def test_what_was_scheduled_after_the_cooldown_goes_then(door: Door) -> None:
    scene = Scene(door)
    mail = MAIL | await cooldown(scene)
    agent = scene.agent()
    last = await agent.send(**mail)
    assert last is not None

    await scene.wait(agent.said[0]["retryAt"])
    await scene.world.look()

    assert scene.world.record(last["requestId"]).deliveries[0].state == "queued"


async def test_what_a_person_takes_back_does_not_go(door: Door) -> None:
    scene = Scene(door)
    mail = MAIL | await outcome_unknown(scene)
    scene.decision = "cancel"

    last = await scene.agent().send(**mail)

    assert last is not None
    assert last["status"] == "cancelled"
    assert scene.asked == [last["requestId"]]
    assert scene.states()["queued"] == 0


async def test_however_often_it_begins_anew_one_mail_goes(door: Door) -> None:
    scene = Scene(door)
    for lost in (["answer"], ["request"], ["answer", "answer"], []):
        scene.lost = [*lost]
        with contextlib.suppress(TimeoutError):  # where its look-up has no answer either it ends, and begins anew
            await scene.agent().send(**MAIL)

    assert scene.states() == {"queued": 1}


def test_the_agent_knows_no_code_of_the_gateway() -> None:
    tree = ast.parse(Path(by_words.__file__).read_text(encoding="utf-8"))
    named = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    named |= {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}

    assert named == {"collections.abc", "dataclasses", "typing"}
