"""Suppressions by the thousand over HTTP: a piece of a list comes in, or goes out; each call is one short transaction.

A bad entry harms no other: it is named by its place, and the good ones are written. The same piece may be sent again.
"""

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from gateway.core.record import Document, instant
from gateway.doors.auth import Grant
from gateway.doors.fields import Campaign, Count, Domain, Future, Name, Person, Reader, Shape, Words
from gateway.doors.http.described import PROBLEMS, asks, each, takes
from gateway.doors.http.inlet import Needs, context_of, of_shape, query, reader_of, take
from gateway.doors.http.problems import reply
from gateway.doors.refusal import Faults
from gateway.store import bulk
from gateway.store.bulk import ROWS_MAX, Piece
from gateway.store.suppressions import REASON_CODES, New, Suppression
from gateway.store.tx import Tx
from gateway.store.writer import Rank

router = APIRouter(tags=["suppressions"], responses=PROBLEMS)
Reading = Annotated[Grant, Depends(Needs("read"))]
Adding = Annotated[Grant, Depends(Needs("send", "manage"))]


class ListEntry(Shape):
    """A line of a suppression list: an address or a domain."""

    email: Person | None = None
    domain: Domain | None = Field(None, description="In place of email: the domain and all below it.")
    reason_code: Annotated[str, Field(json_schema_extra={"enum": list(REASON_CODES)})]
    scope: Literal["tenant", "campaign"] = "tenant"
    campaign: Campaign | None = Field(None, description="The campaignAction that it binds; needed for scope campaign.")
    source: Words | None = None
    expires_at: Future | None = None

    @classmethod
    def clashes(cls, given: dict[str, Any]) -> list[tuple[str, str]]:
        """One subject; a campaign where the scope is one; a reason of the list."""
        found: list[tuple[str, str]] = []
        if (given.get("email") is None) == (given.get("domain") is None):
            found.append(("email", "either this or domain is needed"))
        if (given.get("campaign") is None) == (given.get("scope") == "campaign"):
            found.append(("campaign", "goes with the scope campaign, and is needed there"))
        reason = given.get("reasonCode")
        if isinstance(reason, str) and reason not in REASON_CODES:
            found.append(("reasonCode", f"must be one of {', '.join(REASON_CODES)}"))
        return found


class SuppressionImport(Shape):
    """A piece of a suppression list."""

    entries: Annotated[list[Any], Field(min_length=1, max_length=ROWS_MAX), each(ListEntry, ROWS_MAX)] = Field(
        description="At most 5000; each is read on its own."
    )
    dry_run: bool = Field(default=False, description="Say what is wrong, and write nothing.")


class Exported(Shape):
    """Which piece of the list goes out."""

    after: Name | None = Field(None, description="The `next` of the piece before.")
    limit: Annotated[Count, Field(ge=1, le=ROWS_MAX)] = ROWS_MAX


@router.post("/v1/suppressions/import", openapi_extra=takes(SuppressionImport, ListEntry))
async def import_suppressions(request: Request, grant: Adding) -> Response:
    """Add up to 5000 entries in one transaction, which stops the mail in flight that they forbid; none becomes weaker.

    `written` entries are new or renewed, `kept` ones were as strong already; `errors` names what is wrong by `index`.
    """
    asked = await take(request, SuppressionImport, grant)
    reader = reader_of(request, grant)
    entries, errors = await asyncio.to_thread(_read, asked.entries, reader, grant)
    body: Document = {
        "dryRun": asked.dry_run,
        "processed": len(asked.entries),
        "accepted": len(entries),
        "written": 0,
        "kept": 0,
        "failed": len(asked.entries) - len(entries),
        "stopped": [],
        "errors": errors,
    }
    if entries and not asked.dry_run:
        piece = Piece(grant.tenant, tuple(entries), grant.actor)
        done = await context_of(request).writer.do(Rank.FORBID, (grant.tenant,), bulk.add, piece)
        body |= {"written": done.written, "kept": done.kept, "stopped": list(done.stopped)}
    return reply(body)


def _read(items: list[Any], reader: Reader, grant: Grant) -> tuple[list[New], list[Document]]:
    """The good entries, and what is wrong with the others. Raises Refusal 403 where another tenant is named."""
    entries: list[New] = []
    errors: list[Document] = []
    for index, item in enumerate(items):
        try:
            one = of_shape(item, ListEntry, reader)
        except Faults as faults:
            errors += [{"index": index, "field": field, "message": why} for field, why in faults.faults]
            continue
        grant.same_tenant(one.tenant_id)
        who, domain = one.email, one.domain or ""
        subject, address = (domain, domain) if who is None else (who.key, who.spec)
        campaign, source = one.campaign or "", one.source or "import"
        entries.append(New(subject, address, one.scope, one.reason_code, campaign, source, grant.actor, one.expires_at))
    return entries, errors


@router.get("/v1/suppressions/export", openapi_extra=asks(Exported))
async def export_suppressions(request: Request, grant: Reading) -> Response:
    """Give out a piece of all entries that live now, in an order that does not change, ready for the import.

    `next` is `null` at the end, else what the next piece comes after.
    """
    asked = query(request, Exported, grant)

    def read(tx: Tx) -> list[Suppression]:
        return bulk.page(tx, grant.tenant, after=asked.after or "", limit=asked.limit)

    found = await context_of(request).read(grant.tenant, read)
    return await asyncio.to_thread(_piece, found, asked.limit)


def _piece(found: list[Suppression], limit: int) -> Response:
    following = found[-1].id if len(found) == limit else None
    return reply({"entries": [_line(one) for one in found], "next": following})


def _line(entry: Suppression) -> Document:
    """An entry as the import takes it."""
    line: Document = {"email" if "@" in entry.subject else "domain": entry.address, "reasonCode": entry.reason_code}
    if entry.campaign:
        line |= {"scope": entry.scope, "campaign": entry.campaign}
    if entry.source:
        line["source"] = entry.source
    if entry.expires_at is not None:
        line["expiresAt"] = instant(entry.expires_at)
    return line
