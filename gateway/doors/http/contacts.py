"""The tenant's book of contacts over HTTP: make, list, look at, change, remove, and bring many up to date at once.

One contact is one person by key, however the address is written. What the gateway knows of them itself (lease, last
contact, suppression) is shown beside the entry and does not depend on it.
"""

import asyncio
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from gateway.core.errors import NotFoundError
from gateway.core.facts import ConsentAsk, FlightsAsk, LastContactAsk, LeaseAsk, SuppressionAsk
from gateway.core.record import Document, instant
from gateway.core.verdict import Mode
from gateway.doors.auth import Grant
from gateway.doors.context import Context
from gateway.doors.fields import Count, Metadata, Name, Person, Reader, Shape, Words
from gateway.doors.http.described import PROBLEMS, asks, each, takes
from gateway.doors.http.inlet import Needs, context_of, of_shape, query, reader_of, take
from gateway.doors.http.problems import reply
from gateway.doors.refusal import Faults, missing
from gateway.store import facts as fact_store
from gateway.store import people
from gateway.store.people import Changes, Filter
from gateway.store.tx import Tx
from gateway.store.writer import Rank

router = APIRouter(tags=["contacts"], responses=PROBLEMS)
Reading = Annotated[Grant, Depends(Needs("read"))]
Writing = Annotated[Grant, Depends(Needs("send", "manage"))]
Removing = Annotated[Grant, Depends(Needs("manage"))]

SYNC_MAX = 1000
CREATED = 201


class Contact(Shape):
    """A contact, as the tenant's own systems know it."""

    email: Person
    external_id: Name | None = Field(None, description="Its id in the caller's own system; unique in the tenant.")
    name: Words | None = Field(None, description="What the person is called.")
    lifecycle_stage: Name | None = Field(None, description="In the caller's own words.")
    deal_stage: Name | None = Field(None, description="In the caller's own words.")
    metadata: Metadata = Field(
        default={}, description="Merged by its top-level members with what is there; null takes a member away."
    )


class ContactPatch(Contact):
    """What is to change of a contact; what is not named stays, null takes a value away."""

    email: Person = Field(default=None, description="Another spelling, or another address.")  # type: ignore[assignment]


class ContactsSync(Shape):
    """Contacts to make or to bring up to date; found by externalId, else by email."""

    contacts: Annotated[list[Any], Field(min_length=1, max_length=SYNC_MAX), each(Contact, SYNC_MAX)] = Field(
        description="At most 1000; each is read on its own."
    )


class ContactsListed(Shape):
    """Which contacts are shown, oldest first."""

    email: Person | None = None
    external_id: Name | None = Field(None, description="Its id in the caller's own system.")
    after: Name | None = Field(None, description="The id of the last contact of the page before.")
    limit: Annotated[Count, Field(ge=1, le=500)] = 100
    offset: Annotated[Count, Field(le=1_000_000)] = 0


class OneContact(Shape):
    """Nothing but the tenant."""


@router.post("/v1/contacts", status_code=CREATED, openapi_extra=takes(Contact))
async def create_contact(request: Request, grant: Writing) -> Response:
    """Make a contact (201); 409 `contact_exists` with its id where the person, or the externalId, has one."""
    asked = await take(request, Contact, grant)
    writer = context_of(request).writer
    made = await writer.do(Rank.LEASE, (grant.tenant,), people.create, (grant.tenant, _changes(asked)))
    return reply(_shown(made, grant), CREATED)


@router.get("/v1/contacts", openapi_extra=asks(ContactsListed))
async def list_contacts(request: Request, grant: Reading) -> Response:
    """List contacts, oldest first; `after` turns pages that stay whole while others write."""
    asked = query(request, ContactsListed, grant)
    key = None if asked.email is None else asked.email.key
    wanted = Filter(asked.limit, asked.offset, asked.after or "", key, asked.external_id)
    found = await context_of(request).read(grant.tenant, lambda tx: people.listed(tx, grant.tenant, wanted))
    return reply([_shown(one, grant) for one in found])


@router.post("/v1/contacts/sync", openapi_extra=takes(ContactsSync, Contact))
async def sync_contacts(request: Request, grant: Writing) -> Response:
    """Make or change up to 1000 contacts in one transaction; `results` says for each what became of it.

    An item that is malformed, or clashes with another contact, is `failed` and harms no other.
    """
    asked = await take(request, ContactsSync, grant)
    reader = reader_of(request, grant)
    results, good = await asyncio.to_thread(_read, asked.contacts, reader, grant)
    if good:
        wish = (grant.tenant, [changes for _, changes in good])
        done = await context_of(request).writer.do(Rank.LEASE, (grant.tenant,), people.sync, wish)
        for (index, _), one in zip(good, done, strict=True):
            if isinstance(one, Exception):
                results[index] |= {"status": "failed", "error": one.slug, "message": str(one), **one.extra}
            else:
                results[index] |= {"status": one.status, "id": one.id}
    counts = {name: sum(r["status"] == name for r in results) for name in ("created", "updated", "failed")}
    body = {"syncId": f"sync_{secrets.token_hex(8)}", "processed": len(results), **counts}
    return reply(body | {"segmentsRecomputeQueued": False, "results": results})


@router.get("/v1/contacts/{contact_id}", openapi_extra=asks(OneContact))
async def show_contact(request: Request, contact_id: str, grant: Reading) -> Response:
    """Show a contact, and what the gateway knows: who has it, when it was reached, until when it is closed, and why."""
    query(request, OneContact, grant)
    context = context_of(request)

    def read(tx: Tx) -> Document | None:
        found = people.find(tx, grant.tenant, contact_id) if contact_id.isprintable() else None
        return None if found is None else _shown(found, grant) | _known(tx, grant.tenant, found.key, context)

    found = await context.read(grant.tenant, read)
    if found is None:
        raise missing("contact_not_found", "there is no such contact")
    return reply(found)


@router.patch("/v1/contacts/{contact_id}", openapi_extra=takes(ContactPatch))
async def change_contact(request: Request, contact_id: str, grant: Writing) -> Response:
    """Change a contact; 409 `contact_exists` where another one has that person or externalId."""
    asked = await take(request, ContactPatch, grant)
    _refuse_unprintable(contact_id)
    wish = (grant.tenant, contact_id, _changes(asked))
    try:
        made = await context_of(request).writer.do(Rank.LEASE, (grant.tenant,), people.change, wish)
    except NotFoundError:
        raise missing("contact_not_found", "there is no such contact") from None
    return reply(_shown(made, grant))


@router.delete("/v1/contacts/{contact_id}", openapi_extra=asks(OneContact))
async def remove_contact(request: Request, contact_id: str, grant: Removing) -> Response:
    """Remove a contact from the book; leases, suppressions, consents and records of mail stay."""
    query(request, OneContact, grant)
    _refuse_unprintable(contact_id)
    writer = context_of(request).writer
    if not await writer.do(Rank.LEASE, (grant.tenant,), people.remove, (grant.tenant, contact_id)):
        raise missing("contact_not_found", "there is no such contact")
    return reply({"deleted": True, "id": contact_id})


def _refuse_unprintable(contact_id: str) -> None:
    """No id has such characters, and not every database can look for them."""
    if not contact_id.isprintable():
        raise missing("contact_not_found", "there is no such contact")


def _read(items: Sequence[object], reader: Reader, grant: Grant) -> tuple[list[Document], list[tuple[int, Changes]]]:
    """A result for each item, and the changes of the good ones with their places."""
    results: list[Document] = []
    good: list[tuple[int, Changes]] = []
    for index, item in enumerate(items):
        try:
            asked = of_shape(item, Contact, reader)
        except Faults as faults:
            errors = [{"field": field, "message": why} for field, why in faults.faults]
            results.append({"index": index, "status": "failed", "error": faults.slug, "errors": errors})
            continue
        grant.same_tenant(asked.tenant_id)
        results.append({"index": index, "externalId": asked.external_id, "email": asked.email.spec})
        good.append((index, _changes(asked)))
    return results, good


def _changes(asked: Contact) -> Changes:
    """The columns that a request names."""
    given = asked.model_fields_set
    names = ("external_id", "name", "lifecycle_stage", "deal_stage", "metadata")
    changes: dict[str, Any] = {name: getattr(asked, name) for name in names if name in given}
    return changes | ({"key": asked.email.key, "address": asked.email.spec} if "email" in given else {})


def _shown(one: people.Person, grant: Grant) -> Document:
    return {
        "id": one.id,
        "tenantId": grant.tenant,
        "email": one.address,
        "externalId": one.external_id,
        "name": one.name,
        "lifecycleStage": one.lifecycle_stage,
        "dealStage": one.deal_stage,
        "metadata": one.metadata,
        "createdAt": instant(one.created_at),
        "updatedAt": instant(one.updated_at),
    }


def _known(tx: Tx, tenant: str, key: str, context: Context) -> Document:
    """What the gateway knows of a person, whether there is an entry or not."""
    lease_ask, last_ask, flights_ask = LeaseAsk(key), LastContactAsk(key), FlightsAsk(key)
    suppression_ask, consent_ask = SuppressionAsk(key), ConsentAsk(key)
    facts = fact_store.load(tx, tenant, [lease_ask, last_ask, flights_ask, suppression_ask, consent_ask])
    lease, last, suppression, consent = facts[lease_ask], facts[last_ask], facts[suppression_ask], facts[consent_ask]
    holder = {"agentId": lease.holder, "agentName": lease.holder_name, "expiresAt": instant(lease.expires_at)}
    ends = None if last.at is None else last.at + timedelta(seconds=_cooldown(tx, tenant, context))
    return {
        "leaseHolder": holder if lease.holder else None,
        "inFlight": [flight.request for flight in facts[flights_ask]],
        "lastContactAt": instant(last.at),
        "cooldownExpiresAt": instant(ends) if ends is not None and ends > facts.now else None,
        "suppressed": suppression is not None,
        "suppression": suppression and {"scope": suppression.scope, "reasonCode": suppression.reason_code},
        "consent": {"active": bool(consent.basis) and not consent.withdrawn, "basis": consent.basis or None},
    }


def _cooldown(tx: Tx, tenant: str, context: Context) -> int:
    """The seconds of the tenant, else of the policy that judges here; 0 where it is off."""
    rule = next((rule for rule in context.intake.rules if rule.name == "cooldown"), None)
    if rule is None or rule.mode is Mode.OFF:
        return 0
    own = tx.profile(tenant).cooldown
    return int(getattr(rule.policy, "seconds", 0)) if own is None else own
