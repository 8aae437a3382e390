"""Files uploaded ahead of the sends that attach them: keep one, tell of it, take it away."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field, StringConstraints

from gateway.core.mime import MimeError
from gateway.core.parts import Attachment, file_part
from gateway.core.record import Document, instant
from gateway.doors.auth import Grant
from gateway.doors.fields import Name, Octets, Shape
from gateway.doors.http.described import PROBLEMS, asks, takes
from gateway.doors.http.inlet import Needs, OfTenant, context_of, query, take
from gateway.doors.http.problems import reply
from gateway.doors.refusal import Faults, Refusal, forbidden, missing
from gateway.doors.stored import reaches
from gateway.store import uploads
from gateway.store.uploads import New, Upload
from gateway.store.writer import Rank

router = APIRouter(tags=["attachments"], responses=PROBLEMS)
Sending = Annotated[Grant, Depends(Needs("send"))]
Asking = Annotated[Grant, Depends(Needs("read", "send"))]

FILE_MAX = 10_485_760
"""Bytes of one upload."""


class NewAttachment(Shape):
    """A file to keep for a day, so that sends can attach it by its id."""

    filename: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    content_type: Annotated[str, StringConstraints(max_length=255)] = "application/octet-stream"
    content_base64: Octets = Field(description="The file in base64, at most 10 MiB of it.")
    mailbox_id: Name | None = Field(
        None, description="The mailbox that it is for: then other keys of that mailbox may use it too."
    )


@router.post("/v1/attachments", openapi_extra=takes(NewAttachment))
async def upload(request: Request, grant: Sending) -> Response:
    """Keep a file for 24 hours; a send that names its id has a copy of its bytes, as if they had been in the request."""
    asked = await take(request, NewAttachment, grant)
    if len(asked.content_base64) > FILE_MAX:
        raise Refusal(413, "attachment_too_large", f"a file is at most {FILE_MAX} bytes", limit=FILE_MAX)
    _must_be_sendable(asked)
    if asked.mailbox_id is not None and asked.mailbox_id not in {box.id for box in grant.own_mailboxes}:
        raise forbidden("mailbox_scope_denied", "the key is not for this mailbox", mailboxId=asked.mailbox_id)
    new = New(grant.tenant, grant.key_id, asked.mailbox_id, asked.filename, asked.content_type, asked.content_base64)
    try:
        kept = await context_of(request).writer.do(Rank.FORBID, (grant.tenant,), uploads.keep, new)
    except uploads.FullError as full:
        limit, size = uploads.TENANT_BYTES, len(new.data)
        words = "the tenant's uploads take up all the room that they may; delete some, or wait until they expire"
        raise forbidden("storage_quota_exceeded", words, used=full.used, limit=limit, size=size) from None
    return reply(_shown(kept))


@router.get("/v1/attachments/{attachment_id}", openapi_extra=asks(OfTenant))
async def show(request: Request, attachment_id: str, grant: Asking) -> Response:
    """Tell of a file that was uploaded: its name, type, size, digest, and until when it is there."""
    query(request, OfTenant, grant)
    return reply(_shown(await _known(request, attachment_id, grant)))


@router.delete("/v1/attachments/{attachment_id}", openapi_extra=asks(OfTenant))
async def remove(request: Request, attachment_id: str, grant: Sending) -> Response:
    """Take a file away before its time; mail that has it attached keeps its copy."""
    query(request, OfTenant, grant)
    await _known(request, attachment_id, grant)
    wish = (grant.tenant, attachment_id)
    if not await context_of(request).writer.do(Rank.FORBID, (grant.tenant,), uploads.remove, wish):
        raise _missing()
    return reply({"deleted": True, "id": attachment_id})


def _must_be_sendable(asked: NewAttachment) -> None:
    """Refuse at once what no mail could carry. Raises Faults."""
    file = Attachment(asked.filename, asked.content_type, asked.content_base64)
    try:
        file_part("", file, "attachment")
    except MimeError as error:
        member = error.field.removeprefix(".")
        raise Faults([(member or "contentBase64", error.why)]) from None


async def _known(request: Request, attachment_id: str, grant: Grant) -> Upload:
    if not attachment_id.isprintable():
        raise _missing()
    found = await context_of(request).read(grant.tenant, lambda tx: uploads.find(tx, grant.tenant, [attachment_id]))
    kept = found.get(attachment_id)
    if kept is None or not reaches(grant, kept):
        raise _missing()
    return kept


def _missing() -> Refusal:
    return missing("attachment_not_found", "there is no such upload, or it has expired")


def _shown(kept: Upload) -> Document:
    return {
        "id": kept.id,
        "tenantId": kept.tenant,
        "filename": kept.filename,
        "contentType": kept.content_type,
        "sizeBytes": kept.size,
        "checksumSha256": kept.sha256,
        "mailboxId": kept.mailbox,
        "status": "uploaded",
        "createdAt": instant(kept.created_at),
        "expiresAt": instant(kept.expires_at),
    }
