"""The suppression list over HTTP: add, list, check, remove. An entry stops mail in flight before it answers."""

import re
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from gateway.core.address import AddressError
from gateway.core.errors import HumanDecisionError, StoreUnavailableError
from gateway.core.record import Document, instant
from gateway.doors.auth import Grant
from gateway.doors.fields import Campaign, Count, Domain, Future, Person, Shape, Words
from gateway.doors.http.controls import person
from gateway.doors.http.described import PROBLEMS, asks, takes
from gateway.doors.http.inlet import Needs, OfTenant, context_of, query, reader_of, take
from gateway.doors.http.problems import RETRY_SECONDS, problem, reply
from gateway.doors.refusal import forbidden, missing
from gateway.store import suppressions
from gateway.store.facts import suppression_subjects
from gateway.store.suppressions import REASON_CODES, New, Suppression
from gateway.store.tx import Tx
from gateway.store.writer import Rank

router = APIRouter(tags=["suppressions"], responses=PROBLEMS)
Reading = Annotated[Grant, Depends(Needs("read"))]
Asking = Annotated[Grant, Depends(Needs("read", "send"))]
Adding = Annotated[Grant, Depends(Needs("send", "manage"))]
Removing = Annotated[Grant, Depends(Needs("manage"))]

ENTRIES_MAX = 500
"""Entries in one answer."""
SKIP_MAX = 1_000_000

_ID = re.compile(r"[A-Za-z0-9_]{1,64}")


class NewSuppression(Shape):
    """A person or a domain that must not be mailed."""

    unsupported: ClassVar = frozenset({"sourceEventId"})

    recipient_email: Person | None = None
    domain: Domain | None = Field(None, description="In place of recipientEmail: the domain and all below it.")
    scope: Literal["tenant", "campaign", "global"] = "tenant"
    campaign_id: Campaign | None = Field(
        None, description="The campaignAction that it binds; needed for scope campaign."
    )
    reason_code: Annotated[str, Field(json_schema_extra={"enum": list(REASON_CODES)})]
    source: Words | None = None
    expires_at: Future | None = None

    @classmethod
    def clashes(cls, given: dict[str, Any]) -> list[tuple[str, str]]:
        """One subject; a campaign where the scope is one; a reason of the list."""
        found: list[tuple[str, str]] = []
        if (given.get("recipientEmail") is None) == (given.get("domain") is None):
            found.append(("recipientEmail", "either this or domain is needed"))
        if (given.get("campaignId") is None) == (given.get("scope") == "campaign"):
            found.append(("campaignId", "goes with the scope campaign, and is needed there"))
        reason = given.get("reasonCode")
        if isinstance(reason, str) and reason not in REASON_CODES:
            found.append(("reasonCode", f"must be one of {', '.join(REASON_CODES)}"))
        return found


class Listed(Shape):
    """Which entries are shown, newest first."""

    recipient_email: Person | None = None
    limit: Annotated[Count, Field(ge=1, le=ENTRIES_MAX)] = 100
    offset: Annotated[Count, Field(le=SKIP_MAX)] = 0


class Checked(Shape):
    """Whom to look for: exactly one of them."""

    email: Person | None = None
    domain: Domain | None = None
    campaign_id: Campaign | None = Field(None, description="Also look at entries that bind this campaign only.")

    @classmethod
    def clashes(cls, given: dict[str, Any]) -> list[tuple[str, str]]:
        """Exactly one subject."""
        return [("email", "either this or domain is needed")] if ("email" in given) == ("domain" in given) else []


@router.post("/v1/suppressions", openapi_extra=takes(NewSuppression))
async def add_suppression(request: Request, grant: Adding) -> Response:
    """Suppress a person or a domain; mail in flight to them that has no permit is stopped in the same transaction."""
    asked = await take(request, NewSuppression, grant)
    if asked.scope == "global":
        raise forbidden("global_scope_not_allowed", "a tenant's key cannot suppress for others")
    person, domain = asked.recipient_email, asked.domain
    new = New(
        subject=person.key if person is not None else domain or "",
        address=person.spec if person is not None else domain or "",
        scope=asked.scope,
        reason_code=asked.reason_code,
        campaign=asked.campaign_id or "",
        source=asked.source or "api",
        created_by=grant.actor,
        expires_at=asked.expires_at,
    )
    writer = context_of(request).writer
    entry, stopped = await writer.do(Rank.FORBID, (grant.tenant,), suppressions.add, (grant.tenant, new))
    return reply(shown(entry, grant) | {"stopped": stopped})


@router.get("/v1/suppressions", openapi_extra=asks(Listed))
async def list_suppressions(request: Request, grant: Reading) -> Response:
    """List entries, newest first, of one person or of all."""
    asked = query(request, Listed, grant)
    subject = None if asked.recipient_email is None else asked.recipient_email.key

    def read(tx: Tx) -> list[Suppression]:
        return suppressions.listed(tx, grant.tenant, subject=subject, limit=asked.limit, offset=asked.offset)

    found = await context_of(request).read(grant.tenant, read)
    return reply([shown(entry, grant) for entry in found])


@router.get("/v1/suppressions/check", openapi_extra=asks(Checked))
async def check_suppression(request: Request, grant: Asking) -> Response:
    """Say whether a person or a domain is suppressed, and by what; where that is not known, do not send (503)."""
    asked = query(request, Checked, grant)
    name = "email" if asked.email is not None else "domain"
    subject = asked.email.key if asked.email is not None else f"@{asked.domain}"
    subjects = [one for one in suppression_subjects(subject) if not one.startswith("@")]

    def read(tx: Tx) -> list[Suppression]:
        return suppressions.covering(tx, grant.tenant, subjects)

    try:
        found = await context_of(request).read(grant.tenant, read)
    except StoreUnavailableError:
        words = "it is not known whether they are suppressed: do not send"
        return problem(503, "suppression_check_unavailable", words, headers={"Retry-After": str(RETRY_SECONDS)})
    binding = [entry for entry in found if entry.campaign in ("", asked.campaign_id or "")]
    first = min(binding, key=lambda entry: subjects.index(entry.subject), default=None)
    return reply(
        {
            name: request.query_params[name],
            "suppressed": first is not None,
            "reason": None if first is None else first.reason_code,
            "matchedOn": None if first is None else "email" if "@" in first.subject else "domain",
            "scope": None if first is None else first.scope,
        }
    )


@router.delete("/v1/suppressions/{entry:path}", openapi_extra=asks(OfTenant))  # an address may hold a slash
async def remove_suppression(request: Request, entry: str, grant: Removing) -> Response:
    """Take an entry off the list, by its id; or all entries of the tenant about an address (an operator's key).

    An agent takes back what it alone has entered, and that is no complaint, unsubscribe or legal request.
    """
    query(request, OfTenant, grant)
    subject = _subject(request, entry, grant) if "@" in entry else None
    known = _ID.fullmatch(entry) is not None

    def read(tx: Tx) -> list[Suppression]:
        if subject is None:
            return suppressions.by_id(tx, grant.tenant, entry) if known else []
        return suppressions.listed(tx, grant.tenant, subject=subject, limit=ENTRIES_MAX, offset=0)

    return await take_off(request, grant, await context_of(request).read(grant.tenant, read))


async def take_off(request: Request, grant: Grant, entries: list[Suppression]) -> Response:
    """Take entries off the list: a person any, an agent those that it alone has made, and that rest on nobody's word.

    A person is told of all that would go, and why each stands there. Raises Refusal, HumanDecisionError.
    """
    foreign = [] if person(grant) else [one for one in entries if not one.is_own(grant.actor)]
    if foreign:
        codes = sorted({one.reason_code for one in entries})
        raise HumanDecisionError("suppression", ", ".join(one.id for one in entries), codes)
    act = suppressions.remove if person(grant) else suppressions.take_back
    context = context_of(request)
    removed = [await context.act(grant, act, (grant.tenant, one.id, grant.actor)) for one in entries]
    if not any(removed):
        raise missing("suppression_not_found", "there is no such entry")
    return reply({"removed": True, "ids": [one.id for one in removed if one is not None]})


def _subject(request: Request, entry: str, grant: Grant) -> str:
    try:
        return reader_of(request, grant).person(entry).key
    except AddressError:
        raise missing("suppression_not_found", "there is no such entry") from None


def shown(entry: Suppression, grant: Grant) -> Document:
    """A row of the list."""
    person = "@" in entry.subject
    return {
        "id": entry.id,
        "tenantId": grant.tenant,
        "recipientEmail": entry.address if person else None,
        "domain": None if person else entry.subject,
        "scope": entry.scope,
        "campaignId": entry.campaign or None,
        "reasonCode": entry.reason_code,
        "source": entry.source,
        "createdAt": instant(entry.created_at),
        "expiresAt": instant(entry.expires_at),
    }
