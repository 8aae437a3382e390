"""Whole domains on the suppression list, under routes of their own; a domain covers all below it, in any spelling."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from gateway.core.address import AddressError
from gateway.doors.auth import Grant
from gateway.doors.fields import Count, Domain, Future, Shape, Words
from gateway.doors.http.described import PROBLEMS, asks, takes
from gateway.doors.http.inlet import Needs, OfTenant, context_of, query, reader_of, take
from gateway.doors.http.problems import reply
from gateway.doors.http.suppressions import ENTRIES_MAX, SKIP_MAX, shown, take_off
from gateway.doors.refusal import missing
from gateway.store import suppressions
from gateway.store.suppressions import REASON_CODES, New, Suppression
from gateway.store.tx import Tx
from gateway.store.writer import Rank

router = APIRouter(tags=["suppressions"], responses=PROBLEMS)
Reading = Annotated[Grant, Depends(Needs("read"))]
Adding = Annotated[Grant, Depends(Needs("send", "manage"))]
Removing = Annotated[Grant, Depends(Needs("manage"))]


class SuppressedDomain(Shape):
    """A domain that must not be mailed, with all below it."""

    domain: Domain
    reason_code: Annotated[str, Field(json_schema_extra={"enum": list(REASON_CODES)})]
    source: Words | None = None
    expires_at: Future | None = None

    @classmethod
    def clashes(cls, given: dict[str, Any]) -> list[tuple[str, str]]:
        """A reason of the list."""
        reason = given.get("reasonCode")
        unknown = isinstance(reason, str) and reason not in REASON_CODES
        return [("reasonCode", f"must be one of {', '.join(REASON_CODES)}")] if unknown else []


class DomainsListed(Shape):
    """Which domains are shown, newest first."""

    limit: Annotated[Count, Field(ge=1, le=ENTRIES_MAX)] = 100
    offset: Annotated[Count, Field(le=SKIP_MAX)] = 0


@router.post("/v1/suppressed-domains", openapi_extra=takes(SuppressedDomain))
async def add_domain(request: Request, grant: Adding) -> Response:
    """Suppress a domain; mail in flight to it that has no permit is stopped in the same transaction."""
    asked = await take(request, SuppressedDomain, grant)
    new = New(
        subject=asked.domain,
        address=asked.domain,
        scope="tenant",
        reason_code=asked.reason_code,
        source=asked.source or "api",
        created_by=grant.actor,
        expires_at=asked.expires_at,
    )
    writer = context_of(request).writer
    entry, stopped = await writer.do(Rank.FORBID, (grant.tenant,), suppressions.add, (grant.tenant, new))
    return reply(shown(entry, grant) | {"stopped": stopped})


@router.get("/v1/suppressed-domains", openapi_extra=asks(DomainsListed))
async def list_domains(request: Request, grant: Reading) -> Response:
    """List suppressed domains, newest first."""
    asked = query(request, DomainsListed, grant)

    def read(tx: Tx) -> list[Suppression]:
        return suppressions.domains(tx, grant.tenant, limit=asked.limit, offset=asked.offset)

    return reply([shown(entry, grant) for entry in await context_of(request).read(grant.tenant, read)])


@router.delete("/v1/suppressed-domains/{domain}", openapi_extra=asks(OfTenant))
async def remove_domain(request: Request, domain: str, grant: Removing) -> Response:
    """Take a domain off the list: all entries about this very domain (an operator's key; an agent its own)."""
    query(request, OfTenant, grant)
    try:
        subject = reader_of(request, grant).domain(domain)
    except AddressError:
        raise missing("suppression_not_found", "there is no such entry") from None

    def read(tx: Tx) -> list[Suppression]:
        return suppressions.listed(tx, grant.tenant, subject=subject, limit=ENTRIES_MAX, offset=0)

    return await take_off(request, grant, await context_of(request).read(grant.tenant, read))
