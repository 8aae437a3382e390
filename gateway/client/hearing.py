"""A listener's place in the stream of events (WHATWG HTML, section 9.2): no event is told twice, none is lost.

It knows no socket: the clients give it the lines that come, and ask what it wants asked.
"""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.client.call import STREAM, Call, plain, shaped
from gateway.client.calls import chosen
from gateway.client.errors import GatewayError, NotAGateway, TooMany, Unauthorized, Unavailable, Unreachable
from gateway.client.reading import read
from gateway.client.shapes import Event, Events

SILENCE = 20.0
"""Seconds beyond the client's own without a line, until the connection is taken for dead; the gateway says something each 15."""
SOONEST, LATEST = 1.0, 30.0
"""Seconds before the stream is asked for again, at first and at most."""
BEGINNING = "evt_" + "0" * 18
"""Before the first event of any log."""
PAGE = 500

Lost = Callable[[GatewayError, float], None]
"""Is told why the stream was lost, and in how many seconds it is asked for again."""
Back = Callable[[], None]
"""Is told that a stream that was lost is there again."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Events that the stream does not tell: those after `since` up to `until`; the list has them."""

    since: str | None
    until: str


class Ear:
    """Which events are wanted, and how far they were heard."""

    def __init__(self, events: str | Sequence[str] | None, contact: str | None, since: str | None) -> None:
        """Begin after the event with the id `since`; `None`: with what happens from now on."""
        self.last = since
        self._query = chosen(events, contact)
        self._gap: Gap | None = None
        self._tries = 0
        self.begun = False  # whether it was ever there: whoever cannot be heard at the start is told so
        self._away = False
        self._names: dict[str, str] = {}
        self._data: list[str] = []

    def stream(self) -> Call[Any]:
        """The request for the stream from where we are."""
        self._names, self._data, self._gap = {}, [], None
        headers = {} if self.last is None else {"Last-Event-ID": self.last}
        path = "/v1/agent/events/stream"
        return Call("GET", path, plain, query=self._query, headers=headers, accept=STREAM, wait=SILENCE)

    def opened(self, back: Back | None) -> None:
        """The stream is there; `back` is told so where it was lost before."""
        if self._away and back is not None:
            back()
        self._away = False

    def hear(self, line: str) -> Event | None:
        """Take a line; returns the event that it ends, where that is a new one.

        Raises Unauthorized where the gateway ends the stream for good, NotAGateway where the line makes no sense.
        """
        self._tries, self.begun = 0, True
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                self._data.append(value)
            elif name:
                self._names[name] = value
            return None
        names, data = self._names, "\n".join(self._data)
        self._names, self._data = {}, []
        return self._told(names, data)

    def _told(self, names: dict[str, str], data: str) -> Event | None:
        kind = names.get("event")
        if kind is None:
            self.last = names.get("id") or self.last or BEGINNING
            return None
        try:
            body = json.loads(data)
        except (ValueError, RecursionError):
            raise NotAGateway("the stream of events holds what is no JSON") from None
        if kind == "end":
            reason = str(body.get("reason"))
            words = "the key is good no longer" if reason == "unauthorized" else f"the stream was ended: {reason}"
            raise Unauthorized(words, body={"error": reason, "message": words})
        if kind == "gap" and body.get("reason") == "unknown_id":  # we were where the log never was: nothing was missed
            self.last = body.get("until") or BEGINNING
            return None
        if kind == "gap":
            self._gap = Gap(body.get("since"), str(body.get("until")))
            return None
        return self._new(read(Event, body))

    def _new(self, event: Event) -> Event | None:
        if self.last is not None and event.id <= self.last:
            return None
        self.last = event.id
        return event

    def missing(self) -> Call[Events] | None:
        """The request for the next page of what the stream has left out; `None` where nothing is missing."""
        if self._gap is None:
            return None
        query = self._query | {"since": self._gap.since or BEGINNING, "limit": str(PAGE)}
        return Call("GET", "/v1/agent/events", shaped(Events), query=query)

    def found(self, page: Events) -> list[Event]:
        """The events of such a page that are new."""
        gap = self._gap
        if gap is None:
            return []
        new = [event for one in page.items if one.id <= gap.until if (event := self._new(one)) is not None]
        if page.more and page.since is not None and page.since < gap.until:
            self._gap = Gap(page.since, gap.until)
            self.last = max(self.last or "", page.since)
        else:
            self._gap = None
            self.last = max(self.last or "", gap.until)
        return new

    def lost(self, error: GatewayError) -> float:
        """Seconds until the stream is asked for again; raises the error where that would be of no use."""
        if not self.begun or not isinstance(error, Unreachable | Unavailable | TooMany):
            raise error
        self._away = True
        wait = min(LATEST, SOONEST * 2.0**self._tries)
        self._tries = min(self._tries + 1, 10)
        wait = max(wait * random.uniform(0.75, 1.0), SOONEST)  # noqa: S311  (so that not all come back at once)
        return max(wait, error.retry_after or 0.0)
