"""Plays one case from its setup to its end and keeps all that was said; `acts` has what a step can be, `expect` judges."""

import asyncio
import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from gateway.sink import Mail
from tests.cases import words
from tests.cases.book import Case
from tests.cases.house import OPERATOR, START, House
from tests.cases.words import Said, asked_of

AT_ONCE = 20
"""Calls of a long row that are under way at a time."""
SUPPRESSIONS = "/v1/suppressions"
LEASES = "/v1/agent/coordination/lease"
REQUESTS = "/v1/agent/requests"
IN_JSON = {"http", "scenario"}
"""Kinds of cases with steps and a setup."""
INDEX = re.compile(r"\{i(?:%(\d+))?\}")


@dataclass
class Play:
    """A case on its way: `said` are all answers by step, `faults` what was not as a step expected it, `notes` remarks."""

    case: Case
    house: House
    said: list[Said] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    saved: dict[str, dict[str, Any]] = field(default_factory=dict)
    paused: bool = False
    cut_off: bool = False
    """Whether the database is not to be had."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What acts have found out that an expectation is about, by its name."""
    cursor: str = ""

    @property
    def house_setup(self) -> dict[str, Any]:
        """What the case has set up, as far as it is a setting."""
        setup = self.case.setup if self.case.kind in IN_JSON else {}
        return {name: value for name, value in setup.items() if name not in words.ACTS}

    @property
    def tokens(self) -> dict[str, int]:
        """Fencing tokens of the leases that were saved, by name."""
        return {name: lease["fencingToken"] for name, lease in self.saved.items()}

    @property
    def sends(self) -> list[Said]:
        """All answers to mails that were asked for."""
        return [one for one in self.said if one.is_send]

    def fault(self, condition: object, why: str) -> None:
        """Note what is wrong, where the condition does not hold."""
        if not condition:
            self.faults.append(why)

    def request_of(self, key: str) -> str:
        """The request that a key was used for first."""
        return next(str(one.body["requestId"]) for one in self.sends if one.key == key and one.accepted)

    # --- calls --------------------------------------------------------------------------------------------------------

    async def ask(self, number: int, step: Mapping[str, Any], index: int = 0) -> Said:
        """Carry out a step that is a call; its answer is kept."""
        step = filled(step, index, {"cursor of agent-a": self.cursor})
        neutral, agent = step["path"], step.get("as", "agent-a")
        method = step.get("method", "POST")
        asked = asked_of(step)
        more: dict[str, Any] = {"headers": dict(step.get("headers", {}))}
        if "raw_body" in step:
            more["content"] = step["raw_body"].encode("utf-8", "surrogatepass")
            more["headers"].setdefault("Content-Type", "application/json")
        elif asked is not None:
            now = self.house.now if words.HOLD in asked else START
            more["json"] = words.body_of(neutral, asked, now, self.tokens)
        return await self.call(number, method, words.path_of(neutral), agent, asked=asked, **more)

    async def call(
        self, number: int, method: str, path: str, by: str, *, asked: dict[str, Any] | None = None, **more: Any
    ) -> Said:
        """Call a route of ours; the answer is kept."""
        begun = time.monotonic()
        answer = await self.house.call(method, path, by, **more)
        took = time.monotonic() - begun
        body: Any = None
        try:
            body = json.loads(answer.content) if answer.content else None
        except ValueError:
            self.fault(answer.content == b"", f"step {number}: the answer is not JSON: {answer.text[:80]}")
        asked = asked if asked is not None else more.get("json")
        said = Said(number, by, method, path, asked, answer.status_code, body, dict(answer.headers), answer.text, took)
        self.said.append(said)
        return said

    async def record(self, request: str) -> dict[str, Any]:
        """A send as the API shows it."""
        answer = await self.house.call("GET", f"{REQUESTS}/{request}", OPERATOR)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def settle(self) -> None:
        """Return once nothing is on its way; where the relay is paused or the store is away, at once."""
        if not self.paused and not self.cut_off:
            await self.house.quiet()

    async def many(self, number: int, step: Mapping[str, Any], count: int) -> None:
        """Carry out a step many times, some at a time."""
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(index: int) -> None:
            async with gate:
                await self.ask(number, step, index)

        await asyncio.gather(*(one(index) for index in range(count)))

    # --- mails --------------------------------------------------------------------------------------------------------

    @property
    def mails(self) -> list[Mail]:
        """The mails that the smarthost has taken."""
        return self.house.sink.mails

    def mails_of(self, said: Said) -> list[Mail]:
        """The mails of one send."""
        if not isinstance(said.body, dict) or not said.body.get("messageId"):
            return []
        wanted = f"<{said.body['messageId']}>".encode()
        return [mail for mail in self.mails if wanted in mail.content.partition(b"\r\n\r\n")[0]]

    # --- the beginning ------------------------------------------------------------------------------------------------

    async def set_up(self) -> None:
        """Do what a case's setup asks to be done."""
        setup = self.case.setup if self.case.kind in IN_JSON else {}
        if aliases := setup.get("domain_aliases"):
            self.house.alias(aliases)
        for email in [*setup.get("suppress", ()), *setup.get("suppressed", ())]:
            answer = await self.house.call("POST", SUPPRESSIONS, OPERATOR, json=words.suppression(email))
            assert answer.status_code == 200, answer.text
        for one in setup.get("leases", ()):
            body = words.lease(one["contact"], one["seconds"])
            answer = await self.house.call("POST", LEASES, one["agent"], json=body)
            assert answer.status_code == 200, answer.text
        self.facts["suppressed"] = await self.suppressed()

    async def suppressed(self) -> set[str]:
        """Who is on the list now."""
        answer = await self.house.call("GET", SUPPRESSIONS, OPERATOR)
        return {entry["recipientEmail"] or entry["domain"] for entry in answer.json()}


def filled(value: Any, index: int, more: Mapping[str, str]) -> Any:  # noqa: ANN401  (JSON)
    """A step with its numbers and names filled in."""
    if isinstance(value, str):
        for name, text in more.items():
            value = value.replace("{{" + name + "}}", text)
        return INDEX.sub(lambda found: str(index % int(found[1]) if found[1] else index), value)
    if isinstance(value, Mapping):
        return {filled(name, index, more): filled(one, index, more) for name, one in value.items()}
    if isinstance(value, list):
        return [filled(one, index, more) for one in value]
    return value


def times_in(value: Any) -> Iterator[datetime]:  # noqa: ANN401  (JSON)
    """All times that a case names, so that its clock can begin before them."""
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*", value):
        yield datetime.fromisoformat(value)
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from times_in(one)
    elif isinstance(value, list):
        for one in value:
            yield from times_in(one)


def beginning(case: Case) -> datetime:
    """When a case's clock begins: an hour before the first time that it names."""
    if case.kind not in IN_JSON:
        return START
    return min(times_in(case.script), default=START + timedelta(hours=1)) - timedelta(hours=1)
