"""`GET /v1/agent/events` and `GET /v1/agent/events/stream`: what happened, for all who may know it."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import AfterValidator, Field, StringConstraints

from gateway.core.event import GROUPS, wanted
from gateway.core.record import Document
from gateway.doors.auth import Grant
from gateway.doors.fields import Count, Person, Shape, fault
from gateway.doors.http.described import PROBLEMS, asks, header
from gateway.doors.http.inlet import Needs, context_of, query
from gateway.doors.http.problems import reply
from gateway.doors.refusal import Faults, Refusal
from gateway.events.hub import Hub
from gateway.events.stream import Stream
from gateway.events.wire import Filter, shown, visible
from gateway.store import journal
from gateway.store.tx import Tx

Asking = Annotated[Grant, Depends(Needs("read", "send"))]

ROWS_MAX = 500
"""Events in one page."""
LOOKED_AT = 5000
"""Events that one page looks at."""
STREAMS_MAX = 4000
"""Streams that one process has open at once."""
SINCE = "The id of an event: what came after it."
TYPES = "Types, divided by commas: names, or whole groups like send.*; without it, all."
CONTACT = "Only what is about this person."
WORD_MAX = 60
"""Characters of a type that is not known which an answer repeats."""


def _types(text: str) -> str:
    try:
        wanted(name.strip() for name in text.split(","))
    except ValueError as error:
        raise fault(_unknown(str(error))) from None
    return text


def _unknown(name: str) -> str:
    """What is wrong with a type that is none; it is repeated only where it can do nothing to whoever reads it."""
    short = 0 < len(name) <= WORD_MAX and name.isascii() and name.isprintable()
    words = f"names a type of event that there is not{f': {name}' if short else ''}"
    group = name.partition(".")[0]
    if name.endswith("*") and group in GROUPS:
        return f"{words}; only a whole group can be meant, as {group}.*"
    return f"{words}; the groups are {', '.join(f'{one}.*' for one in GROUPS)}"


def _id(text: str) -> str:
    if journal.ID.fullmatch(text) is None:
        raise fault("is not the id of an event")
    return text


EventId = Annotated[str, AfterValidator(_id)]
Types = Annotated[str, StringConstraints(max_length=2000), AfterValidator(_types)]


class Listening(Shape):
    """Which events are told."""

    event_types: Types | None = Field(None, description=TYPES)
    contact_email: Person | None = Field(None, description=CONTACT)
    since: EventId | None = Field(None, description=SINCE)

    @property
    def filter(self) -> Filter:
        """Which events are wanted."""
        names = None if self.event_types is None else wanted(one.strip() for one in self.event_types.split(","))
        return Filter(names, None if self.contact_email is None else self.contact_email.key)


class Page(Listening):
    """Which events are listed."""

    limit: Annotated[Count, Field(ge=1, le=ROWS_MAX)] = 100


def router(hub: Hub) -> APIRouter:
    """All routes of the room, on this hub."""
    room = APIRouter(tags=["events"], responses=PROBLEMS)

    @room.get("/v1/agent/events", openapi_extra=asks(Page))
    async def list_events(request: Request, grant: Asking) -> Response:
        """List events, oldest first: `items`, and in `since` the id to go on after, `more` where there are more now.

        A page looks at no more than 5000 events, so where those that fit are rare it may hold fewer than `limit`.
        """
        asked = query(request, Page, grant)

        def read(tx: Tx) -> Document:
            return _page(tx, grant, asked)

        return reply(await context_of(request).read(grant.tenant, read))

    @room.get("/v1/agent/events/stream", openapi_extra=_described())
    async def stream_events(request: Request, grant: Asking) -> Response:
        """Tell events as they happen (Server-Sent Events); with `since` or Last-Event-ID, first all that came after it.

        An event has `id`, `event` (its type) and `data` (JSON). An event `gap` says that so much came meanwhile that it is
        not told here: the list has it, after `since` up to `until`; or, with reason `unknown_id`, that the log has never been
        as far as the id that was given, and goes on after `until`. A key that is revoked ends its streams.
        """
        asked = query(request, Listening, grant)
        if len(hub.tasks) >= STREAMS_MAX or hub.closing:
            raise Refusal(503, "overloaded", "too many listen at this process, or it is stopping", retryAfter=5)
        auth, raw = context_of(request).auth, request.headers["authorization"].partition(" ")[2].strip(" ")

        async def again() -> Grant:
            return await auth.grant(raw)

        return Stream(hub, grant, again, asked.filter, _last(request) or asked.since)

    return room


def _described() -> dict[str, Any]:
    described = asks(Listening)
    described["parameters"] = [
        *described["parameters"],
        header("Last-Event-ID", "The same as since, as browsers send it; it wins over since."),
    ]
    return described


def _last(request: Request) -> str | None:
    """Where a reader was that comes back; it wins over the query, which is as old as the reader."""
    given = request.headers.get("last-event-id", "").strip()
    if given and journal.ID.fullmatch(given) is None:
        raise Faults([("Last-Event-ID", "is not the id of an event")])
    return given or None


def _page(tx: Tx, grant: Grant, asked: Page) -> Document:
    last, items, chosen = asked.since or "", list[Document](), asked.filter
    for _ in range(LOOKED_AT // ROWS_MAX):
        entries = journal.after(tx, grant.tenant, last, limit=ROWS_MAX)
        for entry in entries:
            last = entry.id
            if chosen.wants(entry) and visible(entry, grant):
                items.append(shown(entry, grant.tenant))
                if len(items) == asked.limit:
                    break
        if len(items) == asked.limit or len(entries) < ROWS_MAX:
            break
    if last == asked.since:  # nothing came after it: if the log has never been so far, the reader goes on at its end
        last = min(last, journal.newest(tx, grant.tenant))
    return {"items": items, "since": last or None, "more": journal.more_than(tx, grant.tenant, last, 0)}
