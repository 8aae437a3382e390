"""Templates of a tenant: a name for a text with gaps, in numbered versions that never change; one of them is published.

What a template means is not known here; `doors/templates` reads it.
"""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gateway.core.errors import ConflictError, NotFoundError
from gateway.store import events
from gateway.store.clock import from_us
from gateway.store.dialect import Dialect, Row
from gateway.store.materials import template_versions, templates
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")


@dataclass(frozen=True, slots=True)
class Template:
    """A template; `latest` is the newest version's number (0: none), `published` the one that sends use. Times UTC."""

    id: str
    tenant: str
    slug: str
    name: str
    type: str
    latest: int
    published: int | None
    created_by: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Version:
    """One version: its parts, and the variables that it declares (`None` where it declares none: whatever it uses)."""

    template_id: str
    no: int
    subject: str | None
    html: str | None
    text: str | None
    variables: tuple[dict[str, Any], ...] | None
    created_by: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewTemplate:
    """A template to make."""

    tenant: str
    slug: str
    name: str
    type: str
    actor: str


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version to add to a template, by its id."""

    tenant: str
    template_id: str
    subject: str | None
    html: str | None
    text: str | None
    variables: tuple[dict[str, Any], ...] | None
    actor: str


@dataclass(frozen=True, slots=True)
class Publish:
    """A version that sends are to use from now on; `asked_by` are words for the record."""

    tenant: str
    template_id: str
    no: int
    actor: str
    asked_by: str = ""


def _insert(_: Dialect) -> sa.Executable:
    return sa.insert(templates)


def _insert_version(_: Dialect) -> sa.Executable:
    return sa.insert(template_versions)


def _find(_: Dialect) -> sa.Executable:
    either = sa.or_(templates.c.id == sa.bindparam("which"), templates.c.slug == sa.bindparam("which"))
    return sa.select(templates).where(templates.c.tenant == TENANT, either)


def _page(_: Dialect) -> sa.Executable:
    return (
        sa.select(templates)
        .where(templates.c.tenant == TENANT, templates.c.slug > sa.bindparam("after"))
        .order_by(templates.c.slug)
        .limit(sa.bindparam("top"))
    )


def _version(_: Dialect) -> sa.Executable:
    return sa.select(template_versions).where(
        template_versions.c.tenant == TENANT,
        template_versions.c.template_id == sa.bindparam("template"),
        template_versions.c.no == sa.bindparam("no"),
    )


def _touch(_: Dialect) -> sa.Executable:
    return (
        sa.update(templates)
        .where(templates.c.tenant == TENANT, templates.c.id == sa.bindparam("id_"))
        .values(
            latest=sa.bindparam("new_latest"), published=sa.bindparam("new_published"), updated_us=sa.bindparam("now")
        )
    )


def find(tx: Tx, tenant: str, which: str) -> Template | None:
    """A template by its id or its slug, which never look alike."""
    row = tx.row(_find, {"tenant": tenant, "which": which})
    return None if row is None else _template(row)


def listed(tx: Tx, tenant: str, *, after: str, limit: int) -> list[Template]:
    """A page of templates by slug, behind the slug `after`."""
    return [_template(row) for row in tx.rows(_page, {"tenant": tenant, "after": after, "top": limit})]


def version(tx: Tx, tenant: str, template_id: str, no: int) -> Version | None:
    """One version of a template."""
    row = tx.row(_version, {"tenant": tenant, "template": template_id, "no": no})
    return None if row is None else _read(row)


def create(tx: Tx, wishes: Sequence[NewTemplate]) -> list[Template | Exception]:
    """Make templates; ConflictError `template_exists` with the id where the tenant has one of that slug."""
    done: list[Template | Exception] = []
    for wish in wishes:
        known = find(tx, wish.tenant, wish.slug)
        if known is not None:
            done.append(ConflictError("template_exists", "a template has this slug", field="slug", id=known.id))
            continue
        now = tx.now_of(wish.tenant)
        row = {
            "tenant": wish.tenant,
            "id": f"tpl_{secrets.token_hex(8)}",
            "slug": wish.slug,
            "name": wish.name,
            "type": wish.type,
            "latest": 0,
            "published": None,
            "created_by": wish.actor,
            "created_us": now,
            "updated_us": now,
        }
        tx.run(_insert, row)
        done.append(_template(row))
    return done


def add_version(tx: Tx, wishes: Sequence[NewVersion]) -> list[Version | Exception]:
    """Add versions, numbered from 1 on; nothing is published by it. NotFoundError where there is no such template."""
    done: list[Version | Exception] = []
    for wish in wishes:
        known = find(tx, wish.tenant, wish.template_id)
        if known is None:
            done.append(NotFoundError("no such template"))
            continue
        row = {
            "tenant": wish.tenant,
            "template_id": known.id,
            "no": known.latest + 1,
            "subject": wish.subject,
            "html": wish.html,
            "text": wish.text,
            "variables": None if wish.variables is None else json.dumps(wish.variables),
            "created_by": wish.actor,
            "created_us": tx.now_of(wish.tenant),
        }
        tx.run(_insert_version, row)
        _set(tx, known, known.latest + 1, known.published)
        done.append(_read(row))
    return done


def publish(tx: Tx, wishes: Sequence[Publish]) -> list[Template | Exception]:
    """Let sends use a version from now on; NotFoundError where there is no such one."""
    done: list[Template | Exception] = []
    for wish in wishes:
        known = find(tx, wish.tenant, wish.template_id)
        if known is None or version(tx, wish.tenant, known.id, wish.no) is None:
            done.append(NotFoundError("no such version"))
            continue
        _set(tx, known, known.latest, wish.no)
        said = {"template": known.id, "slug": known.slug, "version": wish.no, "requestedBy": wish.asked_by}
        events.append(tx, [events.Event(wish.tenant, "template.published", actor=wish.actor, data=said)])
        done.append(find(tx, wish.tenant, known.id) or known)
    return done


def _set(tx: Tx, known: Template, latest: int, published: int | None) -> None:
    new = {"new_latest": latest, "new_published": published, "now": tx.now_of(known.tenant)}
    tx.run(_touch, {"tenant": known.tenant, "id_": known.id, **new})


def _template(row: Row) -> Template:
    return Template(
        row["id"],
        row["tenant"],
        row["slug"],
        row["name"],
        row["type"],
        row["latest"],
        row["published"],
        row["created_by"],
        from_us(row["created_us"]),
        from_us(row["updated_us"]),
    )


def _read(row: Row) -> Version:
    return Version(
        row["template_id"],
        row["no"],
        row["subject"],
        row["html"],
        row["text"],
        None if row["variables"] is None else tuple(json.loads(row["variables"])),
        row["created_by"],
        from_us(row["created_us"]),
    )
