"""Finding sends: the one that an idempotency key was used for, or all that fit, newest first, page by page.

A page begins after a place, not after a number of rows, so what is added meanwhile moves nothing. A cursor holds that place
and what was asked; it is no secret and gives no access.
"""

import binascii
import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field, StringConstraints

from gateway.core.record import Record
from gateway.core.status import ORDER, WORST
from gateway.doors import answers, letter
from gateway.doors.auth import Grant, known_agent
from gateway.doors.fields import Campaign, Count, Instant, Key, Name, Person, Shape
from gateway.doors.http.described import PROBLEMS, asks
from gateway.doors.http.inlet import Needs, context_of, query
from gateway.doors.http.problems import reply
from gateway.doors.http.sends import REQUEST, unknown
from gateway.doors.refusal import Faults, Refusal
from gateway.store import pages, records
from gateway.store.pages import LATEST, Place, Wanted
from gateway.store.tx import Tx

router = APIRouter(tags=["requests"], responses=PROBLEMS)
Asking = Annotated[Grant, Depends(Needs("read", "send"))]

ROWS_MAX = 200
"""Sends in one page."""
BESIDE_KEY = ("idempotencyKey", "mailboxId", "tenantId")
"""Members that may stand beside an idempotency key."""


class Sought(Shape):
    """Which sends are looked for: the one of a key, or all that fit every filter."""

    idempotency_key: Key | None = Field(None, description="The only send of this key; without a filter or a page.")
    mailbox_id: Name | None = None
    status: Annotated[str, Field(json_schema_extra={"enum": [*ORDER, *WORST, "blocked"]})] | None = Field(
        None, description="Where the send stands now."
    )
    recipient_email: Person | None = Field(None, description="Somebody in to, cc or bcc.")
    agent: Name | None = Field(None, description="The agent that sent it, by id or name.")
    kind: Literal["outreach", "reply", "transactional"] | None = None
    campaign_action: Campaign | None = None
    thread_id: Campaign | None = None
    reason: Name | None = Field(None, description="The reason that any of its recipients has.")
    since: Instant | None = Field(None, description="Made at this time or later.")
    until: Instant | None = Field(None, description="Made before this time.")
    limit: Annotated[Count, Field(ge=1, le=ROWS_MAX)] = 50
    cursor: Annotated[str, StringConstraints(max_length=500)] | None = Field(
        None, description="The `nextCursor` of the page before, with the same filters."
    )

    @classmethod
    def clashes(cls, given: dict[str, Any]) -> list[tuple[str, str]]:
        """A key finds one send; a status is one of the list."""
        found: list[tuple[str, str]] = []
        if "idempotencyKey" in given:
            known = {str(field.alias) for field in cls.model_fields.values()}
            beside = [name for name in given if name in known and name not in BESIDE_KEY]
            found += [(name, "does not go with idempotencyKey") for name in beside]
        status = given.get("status")
        if status is not None and status not in pages.STATUSES:
            found.append(("status", f"must be one of {', '.join(pages.STATUSES)}"))
        return found


@router.get("/v1/agent/requests", openapi_extra=asks(Sought))
async def find_requests(request: Request, grant: Asking) -> Response:
    """List sends, newest first, in pages of `items` with `nextCursor`; or find the one of an idempotency key.

    `nextCursor` is `null` on the last page. A page looks at no more than 5000 sends, so where those that fit are rare it may
    hold fewer than `limit`, even none, before the last. With `idempotencyKey` the answer is that send itself.
    """
    asked = query(request, Sought, grant)
    if asked.idempotency_key is not None:
        return reply(answers.stored(await _by_key(request, grant, asked.idempotency_key, asked.mailbox_id)))
    if asked.mailbox_id is not None:
        letter.mailbox(grant, None, asked.mailbox_id)
    if asked.since is not None and asked.until is not None and asked.until <= asked.since:
        raise Faults([("until", "must be later than since")])

    def read(tx: Tx) -> tuple[list[Record], str | None]:
        wanted = _wanted(tx, grant, asked)
        mark = _mark(grant, wanted)
        after = None if asked.cursor is None else _place(asked.cursor, mark)
        found, following = pages.page(tx, grant.tenant, wanted, after=after, limit=asked.limit)
        return found, None if following is None else _cursor(following, mark)

    found, following = await context_of(request).read(grant.tenant, read)
    return reply({"items": [answers.stored(record) for record in found], "nextCursor": following})


async def _by_key(request: Request, grant: Grant, key: str, mailbox_id: str | None) -> Record:
    """The send of a key, in one mailbox or in all of the caller's. Raises Refusal 404, 409."""

    def find(tx: Tx) -> list[Record]:
        ids: list[str] = []
        for box in grant.own_mailboxes:
            if mailbox_id in (None, box.id):
                ids += records.by_idempotency(tx, grant.tenant, box.id, [key], expire=False).values()
        return list(records.find(tx, grant.tenant, ids).values()) if ids else []

    found = await context_of(request).read(grant.tenant, find)
    if not found:
        raise unknown()
    if len(found) > 1:
        boxes = sorted(one.mailbox for one in found)
        raise Refusal(
            409, "ambiguous_key", "several mailboxes know this key; name one with mailboxId", mailboxIds=boxes
        )
    return found[0]


def _wanted(tx: Tx, grant: Grant, asked: Sought) -> Wanted:
    return Wanted(
        asked.status,
        None if asked.recipient_email is None else asked.recipient_email.key,
        None if asked.agent is None else known_agent(tx, grant.tenant, asked.agent).id,
        asked.mailbox_id,
        asked.kind,
        asked.campaign_action,
        asked.thread_id,
        asked.reason,
        asked.since,
        asked.until,
        grant.mailboxes,
    )


# --- cursors ----------------------------------------------------------------------------------------------------------


def _mark(grant: Grant, wanted: Wanted) -> str:
    """What a cursor belongs to: the tenant and the filters; whoever may see less sees less on the next page."""
    return hashlib.sha256(f"{grant.tenant}\0{replace(wanted, mailboxes=None)!r}".encode()).hexdigest()[:16]


def _cursor(place: Place, mark: str) -> str:
    return urlsafe_b64encode(json.dumps([place.at_us, place.id, mark]).encode()).decode().rstrip("=")


def _place(cursor: str, mark: str) -> Place:
    """Where a cursor points to. Raises Faults."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        at, last, made_for = json.loads(urlsafe_b64decode(padded.encode("ascii")))
    except (ValueError, TypeError, binascii.Error, RecursionError):
        at = last = made_for = None
    good = type(at) is int and 0 <= at < LATEST and isinstance(last, str) and REQUEST.fullmatch(last)
    if not good or _cursor(Place(at, last), str(made_for)) != cursor:
        raise Faults([("cursor", "is not one that a page gave")])
    if made_for != mark:
        raise Faults([("cursor", "belongs to a list with other filters")])
    return Place(at, last)
