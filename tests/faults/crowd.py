"""Many senders at once, in the test's own process: each carries out one card after the other that the seeded dice deal.

Most cards are one mail to a new person under a key of its own; with companies the others are what `acts.py` has. A send
whose answer did not come, because the gateway died or because the sender hung up, is asked for again under its key until
it is answered: what a careful agent does. All else that got no answer has happened or has not. All of it goes into the
stage's history.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.faults.acts import CARDS, DECK, FRESH, Person, Taken
from tests.faults.agent import now
from tests.faults.cast import NEIGHBOUR, TENANT, Company, Member, companies
from tests.faults.stage import ACTS, Stage
from tests.history import Call
from tests.servers import PATIENCE, Served

BATCH = "/v1/agent/batch/request-send"
NEIGHBOURS = 0.3
"""The neighbour's share of what is done."""
PLACES = 8
"""How many people are written to again and again."""
COOLDOWN = 2
"""Seconds, where there is a mixed crowd: as long as it works, some people get several mails."""

LATER = 0.25
"""Seconds for which a sender leaves a gateway alone that has answered with 503: else thousands of sends would pile up."""
LEASED = ("lease_conflict", "stale_fencing_token", "lease_expired")


def mail(name: str, text: str = "hello\n") -> dict[str, Any]:
    """A mail to a person of its own, under a key of its own."""
    return {"to": f"{name}@example.net", "subject": name, "text": text, "idempotencyKey": name}


@dataclass
class Line:
    """A sender's connection to its gateway; `gone` once a patient request got no answer."""

    client: httpx.AsyncClient
    gone: bool = False


@dataclass
class Crowd:
    """`senders` of them; `hang_ups` is the share of requests that leave without an answer, after a few milliseconds.

    Without `companies` they are all the operator, and every card is a mail to a new person.
    """

    stage: Stage
    dice: random.Random
    senders: int = 8
    hang_ups: float = 0.0
    companies: Sequence[Company] = ()
    unanswered: dict[tuple[str, str], tuple[Member, dict[str, Any]]] = field(default_factory=dict)
    taken: list[Taken] = field(default_factory=list)
    suppressed: list[Person] = field(default_factory=list)
    batches: int = 0
    _people: list[Person] = field(default_factory=list)
    _numbers: Counter[str] = field(default_factory=Counter)
    _deck: list[str] = field(default_factory=list)

    @classmethod
    def mixed(cls, stage: Stage, seed: int, hang_ups: float = 0.0) -> "Crowd":
        """A crowd of two tenants that does all that it can do."""
        return cls(stage, random.Random(seed), hang_ups=hang_ups, companies=companies(stage.url, stage.key))

    # --- the work -----------------------------------------------------------------------------------------------------

    async def work(self, gateways: Sequence[Served], going: asyncio.Event) -> None:
        """Send to these gateways until `going` is cleared; who finds a gateway dead stops."""
        await asyncio.gather(*(self._sender(gateways[n % len(gateways)].port, going) for n in range(self.senders)))

    async def _sender(self, port: int, going: asyncio.Event) -> None:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client:
            line = Line(client)
            while going.is_set() and not line.gone:
                await CARDS[self._card()](self, line, self._company())

    def _company(self) -> Company:
        if not self.companies:
            return Company(Member(TENANT, "crowd", self.stage.key))
        return self.companies[self.dice.random() < NEIGHBOURS]

    def _card(self) -> str:
        """The next card; a new deck is shuffled once all have been dealt, so that each act comes again and again."""
        if not self._deck:
            self._deck = list(DECK) if self.companies else [FRESH]
            self.dice.shuffle(self._deck)
        return self._deck.pop()

    def number(self, of: str) -> int:
        """The next number: each tenant counts for itself, and so both write to the same people under the same keys."""
        self._numbers[of] += 1
        return self._numbers[of]

    def person(self) -> Person:
        """One of the few people who are written to again and again, by both tenants."""
        while len(self._people) < PLACES:
            self.newcomer()
        return self.dice.choice(self._people)

    def newcomer(self) -> Person:
        """Somebody who is one of them from now on, in place of the one who has been so for longest."""
        self._people.append(f"s{self.number('people')}@example.net")
        del self._people[:-PLACES]
        return self._people[-1]

    def leaves(self, person: Person) -> None:
        """Somebody was suppressed: another takes the place."""
        self.suppressed.append(person)
        if person in self._people:
            self._people.remove(person)

    # --- requests -----------------------------------------------------------------------------------------------------

    async def send(self, line: Line, member: Member, body: dict[str, Any], *, patient: bool = False) -> Call:
        """Send one mail; without an answer, or with 503, it is one to be asked for again."""
        call = await self.do(line, member, "send", body, patient=patient)
        self._remember(member, call, body)
        return call

    async def do(
        self,
        line: Line,
        member: Member,
        act: str,
        body: dict[str, Any] | None = None,
        *,
        patient: bool = False,
        **names: str,
    ) -> Call:
        """Ask once, and note what came of it; 503 is an answer that says to ask again."""
        method, path = ACTS[act]
        told = await self._ask(line, member, (method, path.format(**names)), body, patient=patient)
        call = Call(member.name, act, body={**(body or {}), **names}, tenant=member.tenant, **told)
        self.stage.calls.append(call)
        return call

    async def send_many(self, line: Line, member: Member, bodies: Sequence[dict[str, Any]]) -> None:
        """Send several mails in one request; each is one send of the history."""
        told = await self._ask(line, member, ("POST", BATCH), {"sends": list(bodies)})
        results = told["answer"]["results"] if told["status"] == 200 else [told["answer"]] * len(bodies)
        self.batches += told["status"] == 200
        for body, result in zip(bodies, results, strict=True):
            late = (result or {}).get("status") == "error"
            assert not late or result["error"] == "store_unavailable", result
            mine = told | {"answer": result} | ({"status": 503} if late else {})
            call = Call(member.name, "send", body=body, tenant=member.tenant, **mine)
            self.stage.calls.append(call)
            self._remember(member, call, body)

    async def _ask(
        self,
        line: Line,
        member: Member,
        what: tuple[str, str],
        body: Mapping[str, Any] | None,
        *,
        patient: bool = False,
    ) -> dict[str, Any]:
        """The members of a call: when it was asked, and the answer, where one came."""
        hurried = not patient and self.dice.random() < self.hang_ups
        hurry = self.dice.uniform(0, 0.02) if hurried else None
        headers = {"Authorization": f"Bearer {member.key}"}
        asked = now()
        try:
            async with asyncio.timeout(hurry):
                answer = await line.client.request(*what, json=body, headers=headers)
        except (httpx.HTTPError, TimeoutError):
            line.gone |= not hurried
            return {"asked": asked, "answered": None, "status": None, "answer": None}
        answered = now()
        assert answer.status_code in {200, 503}, answer.text
        if answer.status_code == 503:
            await asyncio.sleep(LATER)
        return {"asked": asked, "answered": answered, "status": answer.status_code, "answer": answer.json()}

    def _remember(self, member: Member, call: Call, body: dict[str, Any]) -> None:
        slot = member.tenant, body["idempotencyKey"]
        if call.status == 200:
            self.unanswered.pop(slot, None)
        else:
            self.unanswered[slot] = member, body

    # --- afterwards ---------------------------------------------------------------------------------------------------

    async def go_on(self, served: Served) -> None:
        """Once the trouble is over each company plays every card once more: all must be answered, whatever was before."""
        self.hang_ups = 0
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{served.port}", timeout=PATIENCE) as client:
            for company in self.companies:
                for card in CARDS.values():
                    await card(self, Line(client), company)

    async def ask_again(self, served: Served) -> None:
        """Ask for every send without an answer until there is one, and let the operators reject what is held for a person."""
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{served.port}", timeout=PATIENCE) as client:
            line = Line(client)
            async with asyncio.timeout(PATIENCE):
                while self.unanswered:
                    some = list(self.unanswered.values())[:8]
                    await asyncio.gather(*(self.send(line, who, body, patient=True) for who, body in some))
                for company in self.companies:
                    for send in self._held(company.tenant):
                        decided = {"decision": "reject"}
                        await self.do(line, company.operator, "resolve", decided, patient=True, request=send)

    def _held(self, tenant: str) -> set[str]:
        rows = self.stage.history().rows.deliveries
        return {row["send_id"] for row in rows if (row["tenant"], row["state"]) == (tenant, "held")}

    def shares(self) -> str:
        """How many sends there were, how many are unknown at the end, how many of those had arrived; and what else was done."""
        history = self.stage.history()
        unknown = [row for row in history.rows.deliveries if row["state"] == "unknown"]
        arrived = sum(bool(history.count(row)) for row in unknown)
        sends = f"{len(history.rows.sends)} sends, {len(unknown)} unknown, of which {arrived} had arrived"
        stopped = sum(
            row["state"] in ("blocked", "cancelled") and history.accepted_at(row) is not None
            for row in history.rows.deliveries
        )
        acts = [f"{count} {kind}" for kind, count in self.kinds().items()]
        return "; ".join([sends, f"{stopped} stopped on their way", *acts])

    def kinds(self) -> dict[str, int]:
        """How often each kind of act was answered as it was meant to be."""
        calls = [call for call in self.stage.calls if call.status == 200]
        sends = [call for call in calls if call.accepted]
        told = Counter(name for call in calls for name, value in (call.answer or {}).items() if value is True)
        reasons = Counter((call.answer or {}).get("reason") for call in calls if call.act == "send")
        return {
            "by the neighbour": sum(call.tenant == NEIGHBOUR for call in sends),
            "by token": sum("fencingToken" in call.body for call in sends),
            "to several": sum("cc" in call.body for call in sends),
            "batches": self.batches,
            "leases": sum("fencingToken" in (call.answer or {}) for call in calls if call.act == "acquire"),
            "renewed": told["renewed"],
            "released": told["released"],
            "suppressions": sum(call.act == "suppress" for call in calls),
            "cancels": sum(call.act == "cancel" for call in calls),
            "refused as suppressed": reasons["suppressed"],
            "refused in a cooldown": reasons["cooldown"],
            "refused for a lease": sum(reasons[name] for name in LEASED),
        }
