"""Mailboxes over HTTP: make, list, look at, change, pause and resume; an agent may tighten, a person's key loosens.

A pause holds what is queued in its own transaction; a resumption has it judged again, in the order of acceptance.
"""

from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from gateway.core.errors import NotFoundError
from gateway.core.record import Document, instant
from gateway.doors.auth import Grant
from gateway.doors.fields import Count, Name, Sender, Shape
from gateway.doors.http import controls
from gateway.doors.http.controls import Controls
from gateway.doors.http.described import PROBLEMS, asks, takes
from gateway.doors.http.inlet import Needs, context_of, query, take
from gateway.doors.http.problems import reply
from gateway.doors.refusal import Refusal, missing
from gateway.store import agents, mailboxes
from gateway.store.agents import Mailbox
from gateway.store.mailboxes import Change, Changed, NotPausableError
from gateway.store.tx import Tx

router = APIRouter(tags=["mailboxes"], responses=PROBLEMS)
Reading = Annotated[Grant, Depends(Needs("read", "send"))]
Managing = Annotated[Grant, Depends(Needs("manage"))]
Pausing = Annotated[Grant, Depends(Needs("send", "manage"))]


class Nothing(Shape):
    """An empty object."""


class MailboxSettings(Controls, Shape):
    """What can be said of a mailbox."""

    display_name: Name | None = Field(None, description="The name in From where a send gives none.")
    config: Controls | None = Field(
        None,
        description="The same settings in one object, in place of all that are there; those not named are as usual.",
    )

    @classmethod
    def clashes(cls, given: dict[str, Any]) -> list[tuple[str, str]]:
        """Settings stand in config or beside it."""
        beside = [name for name in controls.WIRE if name in given and given.get("config") is not None]
        return [(name, "stands in config or here, not in both") for name in beside]


class MailboxRequest(MailboxSettings):
    """A mailbox to make."""

    unsupported: ClassVar = frozenset({"autonomy", "config.humanizer"})

    address: Sender = Field(description="The address to send as; nobody else may have it.")


class MailboxPatch(MailboxSettings):
    """What is to change of a mailbox; what is not named stays, null is as usual."""

    unsupported: ClassVar = frozenset({"address", "autonomy", "config.humanizer"})

    status: Literal["active", "paused"] | None = Field(None, description="paused holds its mail; active lets it go on.")


class MailboxesListed(Shape):
    """Which mailboxes are shown, oldest first."""

    after: Name | None = Field(None, description="The id of the last mailbox of the page before.")
    limit: Annotated[Count, Field(ge=1, le=500)] = 100


class OneMailbox(Shape):
    """Whose mailbox it is."""


@router.post("/v1/agent/mailboxes", openapi_extra=takes(MailboxRequest))
async def create_mailbox(request: Request, grant: Managing) -> Response:
    """Make a mailbox. One of a domain that the tenant does not send from yet is `provisioning` until an operator says active."""
    asked = await take(request, MailboxRequest, grant)
    controls.for_all_mailboxes(grant)
    context = context_of(request)
    wish = mailboxes.New(
        grant.tenant,
        asked.address,
        grant.actor,
        controls.person(grant),
        asked.display_name or asked.address.display or None,
        controls.stored(asked.config or asked, context),
        controls.usual_cooldown(context),
    )
    try:
        made = await context.act(grant, mailboxes.create, wish)
    finally:
        context.auth.forget()
    return reply(shown(made, grant))


@router.get("/v1/agent/mailboxes", openapi_extra=asks(MailboxesListed))
async def list_mailboxes(request: Request, grant: Reading) -> Response:
    """List the caller's mailboxes, oldest first."""
    asked = query(request, MailboxesListed, grant)

    def read(tx: Tx) -> list[Mailbox]:
        return [box for box in agents.list_mailboxes(tx, grant.tenant) if grant.covers(box.id)]

    found = await context_of(request).read(grant.tenant, read)
    if asked.after is not None:
        places = [place for place, box in enumerate(found) if box.id == asked.after]
        if not places:
            raise _missing()
        found = found[places[0] + 1 :]
    return reply([shown(box, grant) for box in found[: asked.limit]])


@router.get("/v1/agent/mailboxes/{mailbox_id}", openapi_extra=asks(OneMailbox))
async def show_mailbox(request: Request, mailbox_id: str, grant: Reading) -> Response:
    """Show a mailbox with its settings."""
    query(request, OneMailbox, grant)
    _reachable(mailbox_id, grant)

    def read(tx: Tx) -> Mailbox:
        return mailboxes.find(tx, grant.tenant, mailbox_id)

    try:
        return reply(shown(await context_of(request).read(grant.tenant, read), grant))
    except NotFoundError:
        raise _missing() from None


@router.patch("/v1/agent/mailboxes/{mailbox_id}", openapi_extra=takes(MailboxPatch))
async def change_mailbox(request: Request, mailbox_id: str, grant: Managing) -> Response:
    """Change a mailbox; what loosens a control, or resumes it, needs an operator's key (`loosens` names what)."""
    asked = await take(request, MailboxPatch, grant)
    context = context_of(request)
    named: dict[str, Any] = {"display_name": asked.display_name} if "display_name" in asked.model_fields_set else {}
    named |= {} if asked.status is None else {"status": asked.status}
    options = controls.stored(asked.config or asked, context)
    return await _change(request, grant, mailbox_id, named=named, options=options, whole=asked.config is not None)


@router.post("/v1/agent/mailboxes/{mailbox_id}/pause", openapi_extra=takes(Nothing, optional=True))
async def pause_mailbox(request: Request, mailbox_id: str, grant: Pausing) -> Response:
    """Pause a mailbox: it takes nothing more, and what is queued is held in the same transaction; `held` counts it."""
    await take(request, Nothing, grant, optional=True)
    return await _change(request, grant, mailbox_id, named={"status": mailboxes.PAUSED})


@router.post("/v1/agent/mailboxes/{mailbox_id}/resume", openapi_extra=takes(Nothing, optional=True))
async def resume_mailbox(request: Request, mailbox_id: str, grant: Managing) -> Response:
    """Let a mailbox go on (an operator's key): what its pause has held is judged again, oldest first; `released` counts it."""
    await take(request, Nothing, grant, optional=True)
    return await _change(request, grant, mailbox_id, named={"status": mailboxes.ACTIVE})


@router.post("/v1/agent/mailboxes/{mailbox_id}/unpause", openapi_extra=takes(Nothing, optional=True))
async def unpause_mailbox(request: Request, mailbox_id: str, grant: Managing) -> Response:
    """The same as resume."""
    return await resume_mailbox(request, mailbox_id, grant)


async def _change(request: Request, grant: Grant, mailbox_id: str, **what: Any) -> Response:
    """Carry a change out; `what` are fields of Change."""
    _reachable(mailbox_id, grant)
    context = context_of(request)
    wish = Change(
        grant.tenant,
        mailbox_id,
        grant.actor,
        controls.person(grant),
        default_cooldown=controls.usual_cooldown(context),
        **what,
    )
    try:
        done: Changed = await context.act(grant, mailboxes.change, wish)
    except NotFoundError:
        raise _missing() from None
    except NotPausableError:
        raise Refusal(400, "mailbox_not_active", "only an active mailbox can be paused") from None
    finally:
        context.auth.forget()
    return reply(shown(done.mailbox, grant) | {"held": done.held, "released": done.released})


def _reachable(mailbox_id: str, grant: Grant) -> None:
    """Refuse what is no id of a mailbox that this key reaches; whether there is one, the store says."""
    if not mailbox_id.isprintable() or not grant.covers(mailbox_id):
        raise _missing()


def _missing() -> Refusal:
    return missing("mailbox_not_found", "there is no such mailbox")


def shown(box: Mailbox, grant: Grant) -> Document:
    """A mailbox on the wire of Molted's public API, with its settings."""
    told = controls.shown(box.options)
    usual = controls.shown({})
    return {
        "id": box.id,
        "tenantId": grant.tenant,
        "address": box.address,
        "displayName": box.display_name,
        "status": box.status,
        **told,
        "config": {name: value for name, value in told.items() if value != usual[name]},
        "createdAt": instant(box.created_at),
        "updatedAt": instant(box.updated_at),
    }
