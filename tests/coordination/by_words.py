"""An agent over HTTP that has nothing but the answers: it reads `nextAction` as a careful person would, and does that.

It knows no reason by its name and no code of the gateway. What it knows is the routes: send, look a send up by its key, lease.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

Answer = dict[str, Any]
Ask = Callable[..., Awaitable[Answer]]
SEND, REQUESTS, LEASE = "/v1/agent/request-send", "/v1/agent/requests", "/v1/agent/coordination/lease"
TRIES = 6
"""Requests after which it would be a loop."""


@dataclass
class ByWords:
    """`ask` makes a request (method, path, body, query) and raises TimeoutError where no answer comes.

    `wait` passes the time until a moment, `person` lets the person who answers for it decide about a send. `said` are all
    answers that it got, `done` what it did about them.
    """

    ask: Ask
    wait: Callable[[str], Awaitable[None]]
    person: Callable[[str], Awaitable[None]]
    said: list[Answer] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    async def send(self, **mail: Any) -> Answer | None:
        """Sends a mail to its end; the last answer, or `None` where it has dropped the mail."""
        wish: dict[str, Any] | None = mail
        while wish is not None:
            answer = await self._once(wish)
            self.said.append(answer)
            assert len(self.said) <= TRIES, f"it goes in a circle: {self.said}"
            if not answer.get("nextAction"):
                return answer
            wish = await self._next(wish, answer)
        return self.said[-1] if self.done[-1] == "asked a person" else None

    async def _once(self, mail: dict[str, Any]) -> Answer:
        """One request; where its answer is lost, the send is looked up by its key, and asked for again if there is none."""
        try:
            return await self.ask("POST", SEND, mail)
        except TimeoutError:
            self.done.append("looked it up")
            found = await self.ask("GET", REQUESTS, query={"idempotencyKey": mail["idempotencyKey"]})
            if found.get("messageId"):
                return found
            self.done.append("repeated it")
            return await self.ask("POST", SEND, mail)

    async def _next(self, mail: dict[str, Any], answer: Answer) -> dict[str, Any] | None:
        """What it sends next, after it has done what the words say; `None` where that is nothing."""
        words = answer["nextAction"].lower()
        if "do not resend" in words:
            self.done.append("asked a person")
            await self.person(answer["requestId"])
            self.said.append(await self.ask("GET", f"{REQUESTS}/{answer['requestId']}"))
            return None
        if "acquire" in words:
            self.done.append("acquired")
            lease = await self._acquire(mail["to"])
            return mail | {"fencingToken": lease["fencingToken"]}
        if "schedule after retryat" in words:
            self.done.append("scheduled it")
            return mail | {"scheduledAt": answer["retryAt"]}
        if "wait" in words and "retryAt" in answer:
            self.done.append("waited")
            await self.wait(answer["retryAt"])
            return mail
        assert "stop" in words or "discard" in words, f"it does not know what to do: {answer}"
        self.done.append("dropped it")
        return None

    async def _acquire(self, contact: str) -> Answer:
        """Takes a contact, and waits as it is told where another agent has it."""
        for _ in range(TRIES):
            lease = await self.ask("POST", LEASE, {"contactEmail": contact})
            self.said.append(lease)
            if not lease.get("conflict"):
                return lease
            assert "wait" in lease["nextAction"]
            await self.wait(lease["retryAt"])
        raise AssertionError(f"it never gets the contact: {self.said}")
