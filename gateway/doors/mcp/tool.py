"""What a tool is: its name, what it says of itself, what it takes and gives, and how it asks the gateway.

A tool translates: its arguments become one or a few requests of the HTTP door, their answers a small result for a model.
Arguments have the names of the HTTP members in snake_case, so that a bad one is named as the model knows it.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

Schema = dict[str, Any]
Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the HTTP door answered: its status and the decoded body."""

    status: int
    body: Any

    @property
    def good(self) -> bool:
        """Whether it was done or decided, and not an error of the wire."""
        return self.status < 400  # noqa: PLR2004  (where errors begin)


class Ask(Protocol):
    """A way to the HTTP door with the caller's own key."""

    async def __call__(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Make one request."""
        ...


@dataclass(frozen=True, slots=True)
class Told:
    """A result: what the model reads; `error` where the call itself was wrong or could not be served."""

    body: dict[str, Any]
    error: bool = False


Run = Callable[[Arguments, Ask], Awaitable[Told]]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool; `takes` are the JSON schemas of its arguments by name, `needs` those without which it cannot do.

    `reads` means that it changes nothing, `repeats` that doing it twice is as doing it once, `destroys` that it ends something.
    """

    name: str
    title: str
    says: str
    run: Run
    takes: Mapping[str, Schema] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    gives: Mapping[str, Schema] = field(default_factory=dict)
    reads: bool = False
    repeats: bool = False
    destroys: bool = False

    @property
    def input_schema(self) -> Schema:
        """What it takes, as JSON schema."""
        made: Schema = {"type": "object", "properties": dict(self.takes), "additionalProperties": False}
        return made | ({"required": list(self.needs)} if self.needs else {})

    @property
    def output_schema(self) -> Schema:
        """What it gives, as JSON schema: its own members beside those that every result may have."""
        return {"type": "object", "properties": {**COMMON, **self.gives}, "required": ["ok"]}

    def faults(self, given: Arguments) -> list[tuple[str, str]]:
        """What is wrong with arguments before anybody is asked: unknown ones, missing ones."""
        found = [(name, f"is not known; this tool takes {', '.join(self.takes) or 'none'}") for name in given
                 if name not in self.takes]  # fmt: skip
        return found + [(name, "is required") for name in self.needs if given.get(name) is None]


def text(says: str, **more: Any) -> Schema:
    """A text."""
    return {"type": "string", "description": says, **more}


def number(says: str, **more: Any) -> Schema:
    """A number."""
    return {"type": "number", "description": says, **more}


def whole(says: str, **more: Any) -> Schema:
    """A whole number."""
    return {"type": "integer", "description": says, **more}


def switch(says: str, **more: Any) -> Schema:
    """True or false."""
    return {"type": "boolean", "description": says, **more}


def table(says: str, **more: Any) -> Schema:
    """An object."""
    return {"type": "object", "description": says, **more}


def rows(says: str, item: Schema | None = None) -> Schema:
    """A list."""
    return {"type": "array", "description": says, "items": item or {"type": "object"}}


def either(says: str, *kinds: Schema, **more: Any) -> Schema:
    """One of several types; as `anyOf`, for not every client reads a list of types."""
    return {"anyOf": list(kinds), "description": says, **more}


REPEAT = {
    "harmless": "the same call with the same idempotency_key changes nothing",
    "after_until": "call again after `until`",
    "fix_first": "mend the arguments, then call again",
    "acquire_first": "call acquire_lease, then call again with the new token",
    "never": "do not send this again",
}
"""What calling again would do, and what that means; the instructions of the server have it once for all tools."""
COMMON: Mapping[str, Schema] = {
    "ok": switch("Whether it was done, or was taken and is on its way."),
    "reason": text("Why not, as a slug."),
    "detail": text("Why not, in words."),
    "until": text("When it may be otherwise (UTC)."),
    "next_action": text("What to do now."),
    "repeat": text("What calling again would do.", enum=list(REPEAT)),
    "errors": rows("What is wrong: field, message."),
    "decision_url": text("Where a person can allow it; share it."),
}
"""Members that every result may have."""
HOLDER = table("Who has the contact: agent, until, kind (lease, or send for mail on its way).")

_WORD = re.compile(r"(?<!^)(?=[A-Z])")


def snake(name: str) -> str:
    """A member's name as arguments have it: `contactEmail` is `contact_email`; paths keep their brackets."""
    return _WORD.sub("_", name).lower()


def camel(name: str) -> str:
    """An argument's name as the wire has it."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def members(given: Arguments, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Arguments as members of a request: those that are given, by the wire's names."""
    return {camel(name): value for name, value in given.items() if value is not None and name not in without}
