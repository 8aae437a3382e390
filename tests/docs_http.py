"""The chapters on routes and errors of docs/http.md, made from the application's OpenAPI document and from its source."""

import ast
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from gateway import coordination
from gateway.core.verdict import STORE_UNAVAILABLE
from gateway.doors.context import Context
from gateway.doors.http import create_app, problems
from gateway.doors.http.human import HUMAN
from gateway.doors.http.inlet import Needs
from gateway.settings import given
from tests.markdown import table

ROOT = Path(__file__).parent.parent
SOURCES = ("gateway/doors", "gateway/coordination", "gateway/intake", "gateway/store")
STATUS = {"forbidden": 403, "missing": 404, "ConflictError": 409}
"""What raises a refusal with this status and names the slug first."""

WORDS = {
    "address": "An address.",
    "agentId": "The agent, by its id.",
    "agentName": "The agent, by its name.",
    "agent_id": "The agent's id, or its name.",
    "agentRole": "What it does, in the caller's own words.",
    "approvalRequired": "Who may publish, publishes; nobody is asked.",
    "attachment_id": "The upload's id.",
    "attachments": "Files to attach.",
    "bcc": "Who gets one unseen: an address or a list. It never leaves in a header.",
    "campaignAction": "A name for what it is part of; suppressions may bind a campaign.",
    "campaignId": "The campaignAction that it binds.",
    "cc": "Who gets a copy: an address or a list.",
    "consensus_id": "The consensus's id.",
    "contactEmail": "Whom to take.",
    "contact_id": "The contact's id.",
    "contentId": "The id by which html shows it.",
    "contentType": "Its media type.",
    "decision": "What is to become of it.",
    "decision_id": "The decision's id.",
    "domain": "A domain.",
    "durationMinutes": "How long, in minutes; fractions are allowed, LEASE_MAX_MINUTES is the limit.",
    "email": "An address.",
    "entry": "The entry's id, or an address.",
    "expiresAt": "Until when; without it, for good.",
    "filename": "Its name.",
    "html": "The body as HTML.",
    "humanize": "Nothing is rewritten here.",
    "idempotencyKey": "1 to 255 visible ASCII characters; one logical send, one key.",
    "inReplyTo": "The Message-ID that it answers.",
    "intent": "What for, in the caller's own words.",
    "invite_id": "The invitation's id.",
    "key_id": "The key's id.",
    "kind": "What it is for; outreach without it. Transactional mail needs a key or mailbox to which it was given.",
    "label": "What the key is for.",
    "lease_id": "The lease's id.",
    "limit": "How many at most.",
    "mailboxId": "The mailbox, by its id.",
    "mailbox_id": "The mailbox's id.",
    "name": "The header's name.",
    "offset": "How many to skip.",
    "queued": "Whether its mail that has not left stays or is cancelled.",
    "reasonCode": "Why.",
    "recipientEmail": "The person.",
    "references": "The Message-IDs of the conversation.",
    "replyTo": "Where answers go: an address or a list.",
    "request_id": "The send's id.",
    "scope": "Whether it binds all mail of the tenant or one campaign.",
    "scopeAllMailboxes": "Whether it is for all mailboxes.",
    "scopes": "What it may do.",
    "source": "Where it comes from, in the caller's own words.",
    "subject": "The subject.",
    "template_id": "The template, by id or slug.",
    "text": "The body as plain text.",
    "threadId": "The caller's own name for the conversation.",
    "to": "Whom it is for: an address or a list.",
    "value": "The header's value.",
    "version": "The version's number.",
}
"""What members mean whose shape says no more than their name."""

ERRORS = {
    "invalid_json": "the body is not JSON, names a member twice, or holds numbers or texts that cannot be kept",
    "last_operator_key": "the tenant's last operator key cannot be revoked",
    "rate_limited": "the key may make so many requests in a minute; `Retry-After` says when there is one again",
    "not_ready": "the database is not on this version's schema, or cannot be reached",
    "template_render_failed": "the template cannot be filled in with this payload: `part`, `line` and `variable` say where",
    "storage_quota_exceeded": "the tenant's uploads take up all the room that they may (`used`, `limit`): delete some, or wait",
    "suppression_check_unavailable": "whether it is suppressed is not known: do not send",
}
"""What errors say whose sentence is made when they happen."""

Document = dict[str, Any]


def application() -> FastAPI:
    """The HTTP door with all routes; it can describe itself and do nothing else."""
    nothing = cast("Any", None)
    routers = (coordination.router(),)
    return create_app(Context(given({}), nothing, nothing, nothing, nothing, nothing, routers))


def described() -> Iterator[tuple[str, str, Document]]:
    """Every route that OpenAPI knows: method, path, description."""
    for path, operations in application().openapi()["paths"].items():
        for method, operation in operations.items():
            yield method.upper(), path, operation


def routes() -> str:
    """Every route: what it does, who may call it, what it takes."""
    app = application()
    scopes = {
        (method, one.path_format): _scopes(one.dependant)
        for one in api_routes(app.routes)
        for method in one.methods or ()
    }
    return "\n\n".join(_route(*one, scopes[one[:2]] or _said(one[2])) for one in described())


def shapes() -> str:
    """Every shape that a body or a part of one may have: its members."""
    schemas: Document = application().openapi()["components"]["schemas"]
    return "\n\n".join(_shape(name, schemas[name]) for name in sorted(schemas))


def api_routes(routes: Iterable[BaseRoute]) -> Iterator[APIRoute]:
    """The routes among these and those of the routers among them; FastAPI keeps included routers whole."""
    for route in routes:
        if isinstance(route, APIRoute):
            yield route
        else:
            yield from api_routes(getattr(getattr(route, "original_router", None), "routes", ()))


def _scopes(dependant: Dependant) -> tuple[str, ...]:
    """The scopes of which a key needs one; none where no key is asked for."""
    needs = [dependant.call] if isinstance(dependant.call, Needs) else []
    found = [scope for one in needs for scope in one.scopes]
    return tuple(dict.fromkeys([*found, *(scope for inner in dependant.dependencies for scope in _scopes(inner))]))


def _said(operation: Document) -> tuple[str, ...]:
    """The same of a route that looks at the key itself and says so."""
    return tuple(scope for one in operation.get("security", ()) for scope in one.get("key", ()))


def _route(method: str, path: str, operation: Document, scopes: tuple[str, ...]) -> str:
    said = " ".join(operation.get("description", "").split())
    key = f"Needs a key with the scope {' or '.join(f'`{one}`' for one in scopes)}." if scopes else "Needs no key."
    parts = [f"### `{method} {path}`", f"{said} {key}"]
    rows = [
        (f"`{one['name']}`", one["in"], _kind(one["schema"], needed=one["required"]), _words(one["name"], one))
        for one in operation.get("parameters", ())
    ]
    if rows:
        parts.append(table(("name", "in", "type", "what it says"), rows))
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is not None:
        parts.append(f"Body: {_type(content['schema'])}.")
    return "\n\n".join(parts)


def _shape(name: str, schema: Document) -> str:
    needed = schema.get("required", ())
    rows = [
        (f"`{member}`", _kind(said, needed=member in needed), _words(member, said))
        for member, said in schema["properties"].items()
    ]
    said = " ".join(schema.get("description", "").split())
    return "\n\n".join([f"### {name}", *([said] if said else []), table(("member", "type", "what it says"), rows)])


def _words(member: str, described: Document) -> str:
    said = described.get("description") or described.get("schema", {}).get("description") or WORDS.get(member, "")
    return " ".join(said.split())


def _kind(schema: Document, *, needed: bool) -> str:
    return _type(schema) + (", needed" if needed else "")


def _type(schema: Document) -> str:
    """The type of a member in a few words."""
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return ", ".join(f"`{json.dumps(value)}`" for value in values)
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    either = [_type(one) for one in schema.get("anyOf") or schema.get("oneOf") or () if one.get("type") != "null"]
    if either:
        return " or ".join(dict.fromkeys(either))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return "time" if schema.get("format") == "date-time" else str(schema.get("type", "any"))


# --- errors -----------------------------------------------------------------------------------------------------------


def refusals() -> set[tuple[int, str, str]]:
    """Every error that the source names: HTTP status, slug, sentence (empty where it is made when it happens)."""
    found = {(status, problems.SLUGS[status], words) for status, words in problems.WORDS.items()}
    found.add((STORE_UNAVAILABLE.strict, STORE_UNAVAILABLE.slug, STORE_UNAVAILABLE.text))
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    found.update(_refusal(node))
    return found


def _refusal(call: ast.Call) -> Iterator[tuple[int, str, str]]:
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    values = [_constant(one) for one in call.args]
    if name == "HumanRefusal":
        yield 403, HUMAN, str(values[0]) if isinstance(values[0], str) else ""
    if name in STATUS:
        values = [STATUS[name], *values]
    for status, slug, words in zip(values, values[1:], [*values[2:], None], strict=False):
        if isinstance(status, int) and status in range(400, 600) and isinstance(slug, str):
            yield status, slug, words if isinstance(words, str) else ""


def _constant(node: ast.expr) -> object:
    """A constant, or a text with dots for what is put in when it is made."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in node.values)
    return node.value if isinstance(node, ast.Constant) else None


def errors() -> str:
    """Every error of the wire, by status and slug."""
    by_slug: dict[tuple[int, str], set[str]] = {}
    for status, slug, words in refusals():
        by_slug.setdefault((status, slug), set()).update({words} - {""})
    rows = [
        (str(status), f"`{slug}`", "; ".join(sorted(words)) or ERRORS.get(slug, ""))
        for (status, slug), words in sorted(by_slug.items())
    ]
    return table(("status", "error", "what it says"), rows)
