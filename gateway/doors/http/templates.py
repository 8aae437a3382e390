"""Templates over HTTP: make one, add versions to it, publish one of them, try what it becomes, look it over."""

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import AfterValidator, Field, PlainValidator, StringConstraints, WithJsonSchema

from gateway.core.record import Document, instant
from gateway.doors import templates
from gateway.doors.auth import Grant
from gateway.doors.fields import Count, Name, Part, Shape, Subject, Text, Words, fault
from gateway.doors.http.described import PROBLEMS, asks, takes
from gateway.doors.http.inlet import Needs, OfTenant, context_of, query, take
from gateway.doors.http.problems import reply
from gateway.doors.refusal import Faults, Refusal, forbidden, missing
from gateway.store import templates as store
from gateway.store.templates import NewTemplate, NewVersion, Publish, Template, Version
from gateway.store.tx import Tx
from gateway.store.writer import Rank

router = APIRouter(tags=["templates"], responses=PROBLEMS)
Asking = Annotated[Grant, Depends(Needs("read", "send"))]
Managing = Annotated[Grant, Depends(Needs("manage"))]

PAGE_MAX = 500
VARIABLES_MAX = 200


def _no_id(value: str) -> str:
    if value.startswith("tpl_"):
        raise fault("must not look like a template's id")
    return value


Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$"), AfterValidator(_no_id)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]
Number = Annotated[int, Field(ge=1, le=1_000_000_000)]


def _no_approval(value: object) -> bool:
    if value is not False:
        raise fault("only false is supported: who may publish, publishes")
    return False


class NewTemplateRequest(Shape):
    """A template to make; it has no text until a version is added."""

    slug: Slug = Field(description="The name by which sends mean it: small letters, digits, - and _.")
    name: Words = Field(description="A name for people.")
    type: Literal["marketing", "transactional"] = Field("marketing", description="For people; it changes no rule.")
    approval_required: (
        Annotated[bool, PlainValidator(_no_approval), WithJsonSchema({"type": "boolean", "const": False})] | None
    ) = None


class Variable(Part):
    """A variable that a version declares."""

    name: VariableName = Field(description="Letters, digits and _, beginning with a letter.")
    type: Literal["string", "number", "boolean", "list", "object"] = Field("string", description="What it must be.")
    required: bool = Field(default=True, description="Without it, what is left out of a payload is null: an empty gap.")
    description: Words | None = Field(None, description="What it is for.")


class NewVersionRequest(Shape):
    """The next version of a template; it never changes afterwards."""

    subject_template: Subject | None = Field(None, description="One line.")
    html_template: Text | None = Field(None, description="Values are escaped as HTML.")
    text_template: Text | None = Field(None, description="Values stand in it as they are.")
    variables: Annotated[list[Variable], Field(max_length=VARIABLES_MAX)] | None = Field(
        None, description="Without it, every variable that is used is needed and of any type."
    )

    @classmethod
    def clashes(cls, given: dict[str, Any]) -> list[tuple[str, str]]:
        """Something to say."""
        empty = all(given.get(name) is None for name in ("htmlTemplate", "textTemplate"))
        return [("textTemplate", "textTemplate or htmlTemplate is needed")] if empty else []


class Publication(Shape):
    """Which version sends use from now on."""

    version: Number | None = Field(None, description="Without it, the newest.")
    requested_by: Words | None = Field(None, description="Words for the record.")


class Rendering(Shape):
    """What to fill in."""

    payload: dict[str, Any] = Field(default_factory=dict, description="The variables.")
    version: Number | None = Field(None, description="Without it, the published one, else the newest.")


class Linting(Shape):
    """What to look over."""

    version: Number | None = Field(None, description="Without it, the newest.")


class Listed(Shape):
    """Which templates are shown, by slug."""

    limit: Annotated[Count, Field(ge=1, le=PAGE_MAX)] = 100
    after: Name | None = Field(None, description="Go on behind this slug.")


@router.post("/v1/templates", openapi_extra=takes(NewTemplateRequest))
async def create(request: Request, grant: Managing) -> Response:
    """Make a template; sends can name it once a version is published."""
    asked = await take(request, NewTemplateRequest, grant)
    _whole(grant)
    wish = NewTemplate(grant.tenant, asked.slug, asked.name, asked.type, grant.actor)
    return reply(_shown(await context_of(request).writer.do(Rank.FORBID, (grant.tenant,), store.create, wish)))


@router.get("/v1/templates", openapi_extra=asks(Listed))
async def list_templates(request: Request, grant: Asking) -> Response:
    """List the tenant's templates by slug, without their texts."""
    asked = query(request, Listed, grant)

    def read(tx: Tx) -> list[Template]:
        return store.listed(tx, grant.tenant, after=asked.after or "", limit=asked.limit)

    return reply([_shown(one) for one in await context_of(request).read(grant.tenant, read)])


@router.get("/v1/templates/{template_id}", openapi_extra=asks(OfTenant))
async def show(request: Request, template_id: str, grant: Asking) -> Response:
    """Show a template, by id or slug, with its newest version and the published one."""
    query(request, OfTenant, grant)

    def read(tx: Tx) -> Document:
        known = _known(tx, grant, template_id)
        newest = store.version(tx, grant.tenant, known.id, known.latest)
        published = store.version(tx, grant.tenant, known.id, known.published or 0)
        return _shown(known) | {
            "latest": None if newest is None else _version(newest),
            "published": None if published is None else _version(published),
        }

    return reply(await context_of(request).read(grant.tenant, read))


@router.post("/v1/templates/{template_id}/versions", openapi_extra=takes(NewVersionRequest))
async def add_version(request: Request, template_id: str, grant: Managing) -> Response:
    """Add a version; nothing is published by it. What is wrong or could be better is told in `lint`."""
    asked = await take(request, NewVersionRequest, grant)
    _whole(grant)
    sources = {"subject": asked.subject_template, "html": asked.html_template, "text": asked.text_template}
    faults = await asyncio.to_thread(templates.unreadable, sources)
    declared = None if asked.variables is None else tuple(one.model_dump() for one in asked.variables)
    names = [one["name"] for one in declared or ()]
    twice = [number for number, name in enumerate(names) if name in names[:number]]
    faults += [(f"variables[{number}].name", "is declared twice") for number in twice]
    if faults:
        raise Faults(faults)
    known = await _find(request, template_id, grant)
    wish = NewVersion(
        grant.tenant, known.id, sources["subject"], sources["html"], sources["text"], declared, grant.actor
    )
    made = await context_of(request).writer.do(Rank.FORBID, (grant.tenant,), store.add_version, wish)
    found = await asyncio.to_thread(templates.lint, made)
    return reply(_version(made) | {"lint": [one.document for one in found]})


@router.get("/v1/templates/{template_id}/versions/{version}", openapi_extra=asks(OfTenant))
async def show_version(request: Request, template_id: str, version: str, grant: Asking) -> Response:
    """Show one version."""
    query(request, OfTenant, grant)
    no = int(version) if version.isascii() and version.isdecimal() and len(version) < 10 else 0  # noqa: PLR2004
    return reply(_version((await _with_version(request, template_id, grant, no))[1]))


@router.post("/v1/templates/{template_id}/publish", openapi_extra=takes(Publication, optional=True))
async def publish(request: Request, template_id: str, grant: Managing) -> Response:
    """Let sends use a version from now on, an older one too; errors of `lint` stand in the way."""
    asked = await take(request, Publication, grant, optional=True)
    _whole(grant)
    known, version = await _with_version(request, template_id, grant, asked.version)
    found = await asyncio.to_thread(templates.lint, version)
    if any(one.level == "error" for one in found):
        said = [one.document for one in found]
        raise Refusal(422, "template_lint_failed", "this version has errors", version=version.no, lint=said)
    wish = Publish(grant.tenant, known.id, version.no, grant.actor, asked.requested_by or "")
    return reply(_shown(await context_of(request).writer.do(Rank.FORBID, (grant.tenant,), store.publish, wish)))


@router.post("/v1/templates/{template_id}/render", openapi_extra=takes(Rendering, optional=True))
async def render(request: Request, template_id: str, grant: Asking) -> Response:
    """Fill a version in as a send would, and send nothing."""
    asked = await take(request, Rendering, grant, optional=True)
    known = await _find(request, template_id, grant)
    known, version = await _with_version(request, template_id, grant, asked.version or known.published)
    made = await asyncio.to_thread(templates.fill, known, version, asked.payload)
    said = {"subject": made.subject, "html": made.html, "text": made.text}
    return reply({"templateId": known.id, "slug": known.slug, "version": version.no, **said})


@router.post("/v1/templates/{template_id}/lint", openapi_extra=takes(Linting, optional=True))
async def lint(request: Request, template_id: str, grant: Asking) -> Response:
    """Look a version over: variables that are not declared, parts that are missing, size; `ok` where nothing is an error."""
    asked = await take(request, Linting, grant, optional=True)
    known, version = await _with_version(request, template_id, grant, asked.version)
    found = await asyncio.to_thread(templates.lint, version)
    level = {kind: [one.document for one in found if one.level == kind] for kind in ("error", "warning")}
    said = {"ok": not level["error"], "errors": level["error"], "warnings": level["warning"]}
    return reply({"templateId": known.id, "version": version.no, **said})


def _whole(grant: Grant) -> None:
    """Templates are the whole tenant's. Raises Refusal for a key of some mailboxes."""
    if grant.mailboxes is not None:
        raise forbidden("mailbox_scope_denied", "this needs a key for all mailboxes")


def _known(tx: Tx, grant: Grant, which: str) -> Template:
    found = store.find(tx, grant.tenant, which) if which.isprintable() else None
    if found is None:
        raise missing("template_not_found", "there is no such template")
    return found


async def _find(request: Request, which: str, grant: Grant) -> Template:
    return await context_of(request).read(grant.tenant, lambda tx: _known(tx, grant, which))


async def _with_version(request: Request, which: str, grant: Grant, no: int | None) -> tuple[Template, Version]:
    """A template and one of its versions, the newest where none is named. Raises Refusal 404."""

    def read(tx: Tx) -> tuple[Template, Version]:
        known = _known(tx, grant, which)
        found = store.version(tx, grant.tenant, known.id, known.latest if no is None else no)
        if found is None:
            raise missing("template_version_not_found", "the template has no such version")
        return known, found

    return await context_of(request).read(grant.tenant, read)


def _shown(one: Template) -> Document:
    return {
        "id": one.id,
        "tenantId": one.tenant,
        "slug": one.slug,
        "name": one.name,
        "type": one.type,
        "approvalRequired": False,
        "status": "draft" if one.published is None else "published",
        "latestVersion": one.latest or None,
        "publishedVersion": one.published,
        "createdAt": instant(one.created_at),
        "updatedAt": instant(one.updated_at),
    }


def _version(one: Version) -> Document:
    return {
        "templateId": one.template_id,
        "version": one.no,
        "subjectTemplate": one.subject,
        "htmlTemplate": one.html,
        "textTemplate": one.text,
        "variables": None if one.variables is None else list(one.variables),
        "createdBy": one.created_by,
        "createdAt": instant(one.created_at),
    }
