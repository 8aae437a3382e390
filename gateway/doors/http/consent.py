"""The consent ledger over HTTP: add a record, and ask which one decides. No record is ever changed.

A withdrawal counts at once and, where the policy `consent` is enforced, stops outreach that is on its way. To give
consent in somebody's name widens what agents may do, so it needs more than a key that may send.
"""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from gateway.core.record import Document, instant
from gateway.core.verdict import Mode
from gateway.doors.auth import Grant
from gateway.doors.context import Context
from gateway.doors.fields import Instant, Name, Person, Shape, Words
from gateway.doors.http.described import PROBLEMS, asks, takes
from gateway.doors.http.inlet import Needs, context_of, query, take
from gateway.doors.http.problems import reply
from gateway.store import consents
from gateway.store.consents import Consent, Record
from gateway.store.tx import Tx
from gateway.store.writer import Rank

router = APIRouter(tags=["consent"], responses=PROBLEMS)
Asking = Annotated[Grant, Depends(Needs("read", "send"))]
Writing = Annotated[Grant, Depends(Needs("send", "manage"))]


class ConsentRecord(Shape):
    """A line of the ledger: a person has agreed, or has taken it back."""

    recipient_email: Person
    basis: Literal["explicit_opt_in", "legitimate_interest", "contractual", "legal_obligation"] = Field(
        description="What the consent rests on."
    )
    source: Words | None = None
    jurisdiction: Name | None = Field(None, description="Whose law it is given under, in the caller's own words.")
    granted_at: Instant | None = Field(None, description="Since when; now without it. Before that time it counts not.")
    revoked_at: Instant | None = Field(
        None, description="Makes it a withdrawal, which counts at once, whatever its time."
    )


class ConsentAsked(Shape):
    """Whose consent."""

    recipient_email: Person


@router.post("/v1/consent", openapi_extra=takes(ConsentRecord))
async def record_consent(request: Request, grant: Writing) -> Response:
    """Add a record; `stopped` names the requests that a withdrawal has stopped. A grant needs the scope `manage`."""
    asked = await take(request, ConsentRecord, grant)
    if asked.revoked_at is None:
        grant.need("manage")
    context = context_of(request)
    wish = Record(
        grant.tenant,
        asked.recipient_email.key,
        asked.recipient_email.spec,
        asked.basis,
        asked.source,
        asked.jurisdiction,
        grant.actor,
        asked.granted_at,
        asked.revoked_at,
        _stops(context),
    )
    made, stopped = await context.writer.do(Rank.FORBID, (grant.tenant,), consents.record, wish)
    return reply(_shown(made, asked.recipient_email.spec, grant) | {"stopped": stopped})


@router.get("/v1/consent", openapi_extra=asks(ConsentAsked))
async def show_consent(request: Request, grant: Asking) -> Response:
    """Show the record that decides about a person now, else the newest that will; without one, `active` is false."""
    asked = query(request, ConsentAsked, grant)

    def read(tx: Tx) -> Consent | None:
        return consents.find(tx, grant.tenant, asked.recipient_email.key)

    found = await context_of(request).read(grant.tenant, read)
    return reply(_shown(found, asked.recipient_email.spec, grant))


def _stops(context: Context) -> frozenset[str] | None:
    """Which mail a withdrawal stops: what the policy would refuse; `None` where it is not enforced."""
    rule = next((rule for rule in context.intake.rules if rule.name == "consent"), None)
    return rule.applies_to if rule is not None and rule.mode is Mode.ENFORCE else None


def _shown(found: Consent | None, address: str, grant: Grant) -> Document:
    return {
        "id": None if found is None else found.id,
        "tenantId": grant.tenant,
        "recipientEmail": address if found is None else found.address,
        "basis": None if found is None else found.basis,
        "source": None if found is None else found.source,
        "jurisdiction": None if found is None else found.jurisdiction,
        "grantedAt": None if found is None else instant(found.granted_at),
        "revokedAt": None if found is None else instant(found.revoked_at),
        "createdAt": None if found is None else instant(found.created_at),
        "active": found is not None and found.active,
    }
