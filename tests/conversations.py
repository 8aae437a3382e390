"""The ten conversations of docs/conversations.md: real calls of the tools at a real door, told with stable ids and times.

Each plays on a world of its own. Ids are named in the order of their appearance, times are rounded to five minutes; all
else stands there as it was answered.
"""

import asyncio
import json
import re
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gateway import coordination
from tests.databases import SqliteFiles
from tests.doors.door import Door, a_door
from tests.doors.mcp.raw import Raw
from tests.world import BOXES, PAT, Options, World, a_world

SAM = "sam@example.net"
GRID = timedelta(minutes=5)
WIDTH = 110
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
ID = re.compile(rf"<?(?:{UUID}|req_[a-z0-9]{{16,}}|agent_[0-9a-f]{{12}}|(?<=derived:)[0-9a-f]{{64}})(?:@[\w.]+>)?")
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
LABEL = re.compile("(?<=request)_ids?$|_id$")
Body = dict[str, Any]


@dataclass
class Talk:
    """What is said in one conversation; `who` are the agents' sessions."""

    door: Door
    lines: list[str] = field(default_factory=list)
    who: dict[str, Raw] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    @property
    def world(self) -> World:
        """Where it plays."""
        return self.door.world

    async def come(self, agent: str) -> None:
        """An agent comes with a new key, for one mailbox."""
        key = self.door.add_key(agent, mailboxes=(self.world.box[BOXES[0]].id,))
        self.who[agent] = Raw(self.door.client, key)
        await self.who[agent].open()

    async def enter(self, *agents: str) -> None:
        """Agents come, and are registered; nobody tells of it."""
        for agent in agents:
            await self.come(agent)
            await self.who[agent].call("register_agent", agent_name=agent)

    def tell(self, text: str) -> None:
        """A sentence of the teller."""
        self.lines += [text, ""]

    async def call(self, agent: str, tool: str, *, told: bool = True, **given: Any) -> Body:
        """An agent calls a tool, and that is told; without `told` its result never comes."""
        said = await self.who[agent].call(tool, **given)
        shown = json.dumps(self.stable(given), ensure_ascii=False)
        self.lines += [f"**{agent}** calls `{tool}` with `{shown}`" + (":" if told else "."), ""]
        if told:
            self.lines += ["```json", laid_out(self.stable(said)), "```", ""]
        return said

    async def relay(self) -> None:
        """What is queued leaves, and the smarthost takes it."""
        for claim in await self.world.claim():
            await self.world.relay(claim)

    def stable(self, value: Any, label: str = "id") -> Any:  # noqa: ANN401  (JSON)
        """The same with ids and times that are alike in each run."""
        if isinstance(value, dict):
            return {name: self.stable(one, LABEL.sub("", name)) for name, one in value.items()}
        if isinstance(value, list):
            return [self.stable(one, label) for one in value]
        if not isinstance(value, str):
            return value
        if TIME.fullmatch(value):
            return on_the_grid(value)
        return ID.sub(lambda found: self.name(found[0], label), value)

    def name(self, known: str, label: str) -> str:
        """The name of an id, by what it is the id of."""
        if known not in self.names:
            taken = sum(name.rstrip("0123456789") == f"{label}_" for name in self.names.values())
            self.names[known] = f"{label}_{taken + 1}"
        return self.names[known]


def on_the_grid(time: str) -> str:
    """A time, to the nearest five minutes."""
    moment = datetime.fromisoformat(time)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    return (start + round((moment - start) / GRID) * GRID).strftime("%Y-%m-%dT%H:%M:%SZ")


def laid_out(body: Body) -> str:
    """A result: on one line where it fits, else a line for each member."""
    flat = json.dumps(body, ensure_ascii=False)
    if len(flat) <= WIDTH:
        return flat
    members = (f"{json.dumps(name)}: {_member(value)}" for name, value in body.items())
    return "{" + ",\n ".join(members) + "}"


def _member(value: Any) -> str:  # noqa: ANN401  (JSON)
    if isinstance(value, list) and len(json.dumps(value)) > WIDTH:
        return "[\n  " + ",\n  ".join(json.dumps(one, ensure_ascii=False) for one in value) + "]"
    return json.dumps(value, ensure_ascii=False)


# --- the ten ----------------------------------------------------------------------------------------------------------

OUT, SUP = "outreach-agent", "support-agent"
MAIL: Body = {"to": PAT, "subject": "Hello", "text": "Hello Pat."}


async def first(talk: Talk) -> None:
    """A first mail."""
    talk.tell("The key is new and bound to nobody. After this, who is who is known from the key.")
    await talk.come(OUT)
    await talk.call(OUT, "who_am_i")
    await talk.call(OUT, "register_agent", agent_name=OUT, agent_role="outbound")
    await talk.call(OUT, "contact_timeline", contact_email=PAT)
    lease = await talk.call(OUT, "acquire_lease", contact_email=PAT, duration_minutes=5)
    token = lease["fencing_token"]
    await talk.call(OUT, "dry_run", **MAIL, fencing_token=token)
    sent = await talk.call(OUT, "send_email", **MAIL, fencing_token=token, idempotency_key="hello-pat")
    await talk.call(OUT, "release_lease", lease_id=lease["lease_id"])
    await talk.relay()
    await talk.call(OUT, "get_request", request_id=sent["request_id"])


async def hand_over(talk: Talk) -> None:
    """Another agent has the contact, and hands it over."""
    await talk.enter(OUT, SUP)
    lease = await talk.call(OUT, "acquire_lease", contact_email=PAT, duration_minutes=30, intent="outbound_sales")
    await talk.call(SUP, "send_email", to=PAT, subject="Your ticket", text="We are on it.", idempotency_key="ticket-7")
    talk.tell("It may wait for the contact, for half a minute at most, in the order of arrival. Meanwhile:")
    waiting = asyncio.create_task(
        talk.who[SUP].call("acquire_lease", contact_email=PAT, duration_minutes=5, wait_seconds=30)
    )
    async with asyncio.timeout(10):
        while not talk.door.context.part(coordination.Queue)._lines:  # noqa: ASYNC110  (the other task enters it)
            await asyncio.sleep(0.005)
    await talk.call(OUT, "release_lease", lease_id=lease["lease_id"])
    given = {"contact_email": PAT, "duration_minutes": 5, "wait_seconds": 30}
    got = await waiting
    talk.lines += [f"**{SUP}** called `acquire_lease` with `{json.dumps(given)}`, and now has:", ""]
    talk.lines += ["```json", laid_out(talk.stable(got)), "```", ""]
    ticket: Body = {"to": PAT, "subject": "Your ticket", "text": "We are on it.", "idempotency_key": "ticket-7"}
    await talk.call(SUP, "send_email", **ticket, fencing_token=got["fencing_token"])


async def stale(talk: Talk) -> None:
    """A token that is stale."""
    await talk.enter(OUT, SUP)
    lease = await talk.call(OUT, "acquire_lease", contact_email=PAT, duration_minutes=5)
    talk.tell("Its model thinks for ten minutes. The lease ends, and another agent takes the contact.")
    talk.world.advance(600)
    await talk.call(SUP, "acquire_lease", contact_email=PAT, duration_minutes=10)
    talk.tell("The draft was made from what was known ten minutes ago. It does not go, and the old token never will:")
    await talk.call(OUT, "send_email", **MAIL, fencing_token=lease["fencing_token"], idempotency_key="hello-pat")
    await talk.call(OUT, "acquire_lease", contact_email=PAT)


async def cooldown(talk: Talk) -> None:
    """Too soon: wait, by schedule."""
    await talk.enter(OUT, SUP)
    await talk.call(OUT, "send_email", **MAIL, idempotency_key="hello-pat")
    await talk.relay()
    mail: Body = {"to": PAT, "subject": "Your ticket", "text": "We are on it.", "idempotency_key": "ticket-7"}
    said = await talk.call(SUP, "send_email", **mail)
    talk.tell("The same key may be used again: nothing has left under it. The mail is put on that time instead.")
    later = datetime.fromisoformat(said["until"]) + timedelta(seconds=1)
    await talk.call(SUP, "send_email", **mail, scheduled_at=later.strftime("%Y-%m-%dT%H:%M:%SZ"))


async def suppressed(talk: Talk) -> None:
    """Somebody who must not be mailed."""
    await talk.enter(OUT)
    await talk.world.suppress(PAT)
    await talk.call(OUT, "send_email", **MAIL, idempotency_key="hello-pat")
    await talk.call(OUT, "check_suppression", contact_email=PAT)
    talk.tell("There is nothing to do: no other key, address or wording changes it. The model says so, and stops.")


async def lost(talk: Talk) -> None:
    """An answer that got lost."""
    await talk.enter(OUT)
    await talk.call(OUT, "send_email", told=False, **MAIL, idempotency_key="hello-pat")
    talk.tell("The connection broke before an answer came. Was it sent? The same call with the same key is safe:")
    await talk.call(OUT, "send_email", **MAIL, idempotency_key="hello-pat")
    talk.tell("It had been taken: `replayed`. Asking is as good, where the mail is not at hand any more:")
    await talk.call(OUT, "get_request", idempotency_key="hello-pat")
    talk.tell("The same key with another text is not a repeat:")
    await talk.call(OUT, "send_email", **(MAIL | {"text": "Hello again, Pat."}), idempotency_key="hello-pat")


LONG = (
    "Hello Pat, since you asked how we would go about moving your archive: we would copy it first, compare the copy "
    "with the original, let both run side by side for a week, and only then switch the old one off."
)


async def approved(talk: Talk) -> None:
    """Held for a person, and approved."""
    await talk.enter(OUT)
    mail: Body = {"to": PAT, "subject": "Your archive"}
    await talk.call(OUT, "send_email", **mail, text=LONG, idempotency_key="archive-1")
    await talk.relay()
    talk.tell("An hour later it writes nearly the same again.")
    talk.world.advance(3600)
    held = await talk.call(OUT, "send_email", **mail, text=f"{LONG} All right?", idempotency_key="archive-2")
    talk.tell(
        "It does not send again; it tells the person who answers for it. They look, and approve: "
        "`gateway requests resolve REQUEST_ID --decision approve`."
    )
    path = f"/v1/agent/requests/{held['request_id']}/resolve"
    answer = await talk.door.post(path, {"decision": "approve"}, by="operator")
    assert answer.status_code == 200, answer.text
    await talk.call(OUT, "get_request", request_id=held["request_id"])


async def consensus(talk: Talk) -> None:
    """The agents vote."""
    talk.world.advance(600)  # others that were there have gone
    await talk.enter(OUT, SUP)
    asked = await talk.call(
        OUT,
        "create_consensus",
        action="write to a customer who complained",
        contact_email=PAT,
        reason="they ask for it",
    )
    vote: Body = {"consensus_id": asked["consensus_id"]}
    held = await talk.call(OUT, "send_email", **MAIL, require_consensus_id=vote["consensus_id"], idempotency_key="c-1")
    await talk.call(OUT, "vote", **vote, vote="approve")
    await talk.call(SUP, "vote", **vote, vote="approve", reason="the complaint is closed")
    await talk.call(OUT, "get_consensus", **vote)
    await talk.world.look()
    await talk.call(OUT, "get_request", request_id=held["request_id"])


async def batch(talk: Talk) -> None:
    """Many at once, one of them refused."""
    await talk.enter(OUT)
    await talk.world.suppress(SAM)
    people = (PAT, SAM, "kim@example.net")
    sends = [{"to": to, "subject": "News", "text": "One line.", "idempotency_key": f"news-{to}"} for to in people]
    await talk.call(OUT, "batch_send", sends=sends)
    talk.tell("Had the answer been lost, the whole call could be made again: each mail has its own key.")


async def limit(talk: Talk) -> None:
    """A limit is reached."""
    await talk.enter(OUT)
    for person in (SAM, "kim@example.net"):
        await talk.call(OUT, "send_email", to=person, subject="News", text="One line.", idempotency_key=person)
    await talk.call(OUT, "send_email", **MAIL, idempotency_key="hello-pat")
    await talk.call(OUT, "check_budget")


Scene = Callable[[Talk], Awaitable[None]]
SCENES: tuple[Scene, ...] = (
    first, hand_over, stale, cooldown, suppressed, lost, approved, consensus, batch, limit,
)  # fmt: skip
OPTIONS: dict[str, Options] = {"limit": {"quota": {"mailbox_day": 2}}}


async def told(scene: Scene, files: SqliteFiles) -> list[str]:
    """The lines of one conversation."""
    async with a_world(files, OPTIONS.get(scene.__name__)) as world, a_door(world) as door:
        talk = Talk(door)
        await scene(talk)
        return talk.lines


def conversations() -> str:
    """All of them as a page."""

    async def play() -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            files = SqliteFiles(Path(folder))
            lines = []
            for number, scene in enumerate(SCENES, 1):
                lines += [f"## {number}. {(scene.__doc__ or '').removesuffix('.')}", "", *await told(scene, files)]
        return lines

    return "\n".join(asyncio.run(play())).rstrip()
