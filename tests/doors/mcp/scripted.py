"""An agent without a model: it has the list of tools and the results, and does what `next_action` and `repeat` say.

It reads words as a careful reader would, and nothing else: it knows no reason by its name.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.doors.mcp.client import Result, Session

TRIES = 6
"""Calls after which it would be a loop."""


@dataclass
class Scripted:
    """`wait` passes the time until a moment; `person` lets the person who answers for it decide about what is held."""

    session: Session
    wait: Callable[[datetime], Awaitable[None]]
    person: Callable[[str], Awaitable[None]]
    results: list[Result] = field(default_factory=list)

    async def send(self, **given: Any) -> Result:
        """Sends a mail to its end: taken, given up, or decided by somebody else; the last result."""
        mail = dict(given)
        for _ in range(TRIES):
            said = await self.session.call("send_email", **mail)
            self.results.append(said)
            if said["ok"] and said["repeat"] == "harmless":
                return said
            following = await self._next(mail, said)
            if following is None:
                return said
            mail = following
        raise AssertionError(f"it goes in a circle: {self.results}")

    async def _next(self, mail: dict[str, Any], said: Result) -> dict[str, Any] | None:
        """The mail to send next, or `None` where it is to stop."""
        words, repeat = said["next_action"].lower(), said["repeat"]
        if "do not resend" in words:
            await self._held(said)
            return None
        if repeat == "never":
            return None
        if repeat == "after_until":
            await (self.wait(datetime.fromisoformat(said["until"])) if "until" in said else self.person(""))
            return mail
        for sign, act in ACTS.items():
            if sign in words:
                return await act(self, mail, said)
        raise AssertionError(f"it does not know what to do: {said}")

    async def acquire(self, mail: dict[str, Any], _: Result) -> dict[str, Any] | None:
        """Takes the contact, and sends with its token."""
        lease = await self.session.call("acquire_lease", contact_email=mail["to"], duration_minutes=5)
        return mail | {"fencing_token": lease["fencing_token"]} if lease["ok"] else None

    async def ask_the_others(self, mail: dict[str, Any], _: Result) -> dict[str, Any] | None:
        """Asks for a vote, votes itself, and sends with it."""
        given = {"action": "send", "contact_email": mail["to"], "reason": "it is asked for"}
        asked = await self.session.call("create_consensus", **given)
        await self.session.call("vote", consensus_id=asked["consensus_id"], vote="approve")
        return mail | {"require_consensus_id": asked["consensus_id"]}

    async def another_mailbox(self, mail: dict[str, Any], _: Result) -> dict[str, Any] | None:
        """Sends as usual mail from another mailbox of its own."""
        me = await self.session.call("who_am_i")
        own = [box for box in me["mailboxes"] if box != mail.get("from")]
        return {name: value for name, value in mail.items() if name != "kind"} | {"from": own[0]} if own else None

    async def another_key(self, mail: dict[str, Any], said: Result) -> dict[str, Any] | None:
        """Looks at the mail that has the key; this is another one."""
        first = await self.session.call("get_request", request_id=said["request_id"])
        return mail | {"idempotency_key": f"{first['idempotency_key']}-again"}

    async def smaller(self, mail: dict[str, Any], _: Result) -> dict[str, Any] | None:
        """Says a tenth of it."""
        return mail | {"text": mail["text"][: len(mail["text"]) // 10]}

    async def mend(self, mail: dict[str, Any], said: Result) -> dict[str, Any] | None:
        """Takes out whom or what cannot be accepted; gives up where nothing would be left."""
        wrong = {one.get("recipient") for one in said["errors"]}
        to = [mail["to"]] if isinstance(mail["to"], str) else mail["to"]
        left = [person for person in to if person not in wrong]
        return mail | {"to": left} if left and len(left) < len(to) else None

    async def _held(self, said: Result) -> None:
        """Somebody else decides: it looks what became of it, once they have."""
        await self.person(said["request_id"])
        self.results.append(await self.session.call("get_request", request_id=said["request_id"]))


ACTS = {
    "acquire": Scripted.acquire,
    "consensus": Scripted.ask_the_others,
    "own mailbox": Scripted.another_mailbox,
    "new key": Scripted.another_key,
    "smaller": Scripted.smaller,
    "mend": Scripted.mend,
}
"""What it does where the next action has this word in it."""
