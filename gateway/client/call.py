"""A request as a value, and what becomes of its answer: no socket, no clock. Both clients carry these out in the same way."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Generic, TypeVar

from gateway.client.errors import REFUSED_FROM, GatewayError, NotAGateway, of_answer
from gateway.client.reading import read
from gateway.client.shape import Shape

T = TypeVar("T")
S = TypeVar("S", bound=Shape)

JSON = "application/json"
LINES = "application/x-ndjson"
STREAM = "text/event-stream"
OK_BELOW = 300


@dataclass(frozen=True, slots=True)
class Answer:
    """What the gateway answered: status code, decoded JSON, and whether it replayed an earlier receipt."""

    status: int
    body: Any
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request. `again`: it may be repeated though the first may have been carried out; `key` makes a send such a one.

    `wait` is how many seconds longer than others its answer may take. Who is `patient` waits for as long as there are too
    many requests.
    """

    method: str
    path: str
    read: Callable[[Answer], T]
    body: object = None
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    accept: str = JSON
    agent: str | None = None
    key: str | None = None
    wait: float = 0.0
    again: bool = True
    patient: bool = False


def shaped(kind: type[S]) -> Callable[[Answer], S]:
    """Reads an answer in its shape."""
    return lambda answer: read(kind, answer.body)


def listed(kind: type[S]) -> Callable[[Answer], list[S]]:
    """Reads a list of such answers."""

    def act(answer: Answer) -> list[S]:
        if not isinstance(answer.body, list):
            raise NotAGateway("the answer is no list")
        return [read(kind, one) for one in answer.body]

    return act


def plain(answer: Answer) -> Any:  # noqa: ANN401  (JSON)
    """The body as it came."""
    return answer.body


def taken(call: Call[T], answer: Answer) -> T:
    """What an answer means. Raises NotAGateway, with the request's idempotency key."""
    try:
        return call.read(answer)
    except NotAGateway as error:
        error.idempotency_key = call.key
        raise


def of_line(text: str) -> Any:  # noqa: ANN401  (JSON)
    """One line of an answer in lines. Raises NotAGateway."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise NotAGateway("a line of the answer is no JSON") from None


def judged(call: Call[Any], status: int, headers: Mapping[str, str], content: bytes) -> Answer:
    """The answer to a request. Raises GatewayError, by a class that says what it means."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):  # the second: lists in lists without end
        kind = "".join(c if c.isprintable() else "?" for c in headers.get("content-type", "no content type"))[:60]
        words = f"it answered {status} with {kind}, not with JSON: is it a gateway?"
        if status < REFUSED_FROM:
            raise NotAGateway(words, status=status, key=call.key) from None
        raise _refusal(call, status, headers, {"message": words}) from None
    if status >= OK_BELOW:
        raise _refusal(call, status, headers, body if isinstance(body, dict) else {})
    return Answer(status, body, headers.get("idempotent-replayed") == "true")


def _refusal(call: Call[Any], status: int, headers: Mapping[str, str], body: dict[str, Any]) -> GatewayError:
    return of_answer(status, body, key=call.key, retry_after=_seconds(headers))


def _seconds(headers: Mapping[str, str]) -> float | None:
    """What Retry-After says, in seconds; a time of day is taken from the answer's own Date (RFC 9110, section 10.2.3)."""
    said = headers.get("retry-after", "").strip()
    if said.isascii() and said.isdecimal():
        return float(said)
    try:
        then, now = parsedate_to_datetime(said), parsedate_to_datetime(headers.get("date", ""))
        return max(0.0, (then - now).total_seconds())
    except (TypeError, ValueError):
        return None
