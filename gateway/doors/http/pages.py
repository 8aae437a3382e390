"""What anybody may ask for without a key: is it alive, is it ready, what are its routes; nothing is loaded from elsewhere."""

import asyncio
import html
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response

from gateway import __version__
from gateway.core.errors import GatewayError
from gateway.doors.context import Context
from gateway.doors.http.described import PROBLEMS, document
from gateway.doors.http.inlet import context_of
from gateway.doors.http.problems import problem, reply
from gateway.store import check

router = APIRouter(tags=["health"], responses={"5XX": PROBLEMS["5XX"]})

FOR_MODELS = (Path(__file__).parent / "llms.txt").read_text(encoding="utf-8")
FRESH_SECONDS = 1.0
"""How long an answer of the store is believed: probes of strangers must not keep it busy."""

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}code,pre{font-size:.9em}\
h2{margin:2.5rem 0 .25rem;font-size:1.1rem}table{border-collapse:collapse}td,th{text-align:left;vertical-align:top;\
padding:.15rem 1rem .15rem 0}@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}a{color:#8bf}}"
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"


class Readiness:
    """Whether store and migrations are right; asked at most once a second, by one at a time."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._until = 0.0
        self._found = ""
        self._lock = asyncio.Lock()

    async def fault(self, context: Context) -> str:
        """What is wrong, in dull words; empty where nothing is."""
        async with self._lock:
            if time.monotonic() >= self._until:
                self._found = await asyncio.to_thread(_look, context)
                self._until = time.monotonic() + FRESH_SECONDS
            return self._found


def _look(context: Context) -> str:
    try:
        check(context.store.dialect)
        context.store.read(lambda tx: tx.now)
    except (ValueError, GatewayError):
        return "the database cannot be reached, or is not on this version's schema"
    return ""


@router.get("/healthz")
async def health() -> Response:
    """Say that the process lives."""
    return reply({"status": "ok", "version": __version__})


@router.get("/readyz")
async def ready(request: Request) -> Response:
    """Say whether store and migrations are right; 503 where they are not."""
    readiness: Readiness = request.app.state.readiness
    fault = await readiness.fault(context_of(request))
    return problem(503, "not_ready", fault, headers={"Retry-After": "2"}) if fault else reply({"status": "ready"})


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """Describe all routes in OpenAPI 3.1."""
    return reply(document(request.app))


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """Show all routes on one page."""
    app: FastAPI = request.app
    return Response(page(document(app)), 200, {"Content-Security-Policy": POLICY}, "text/html")


@router.get("/llms.txt", include_in_schema=False)
async def for_models() -> Response:
    """Tell a model what this is, what leads in, and how to behave."""
    return Response(FOR_MODELS, 200, media_type="text/plain")


def page(described: dict[str, Any]) -> str:
    """The routes as a page of HTML, with nothing in it that has to be loaded."""
    title = html.escape(described["info"]["title"])
    intro = "".join(f"<p>{html.escape(part)}</p>" for part in described["info"]["description"].split("\n\n"))
    body = "".join(_routes(described))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
        f'<h1>{title} {html.escape(__version__)}</h1>{intro}<p><a href="openapi.json">OpenAPI</a></p>{body}</html>'
    )


def _routes(described: dict[str, Any]) -> Iterator[str]:
    schemas = described["components"]["schemas"]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            yield f"<h2><code>{html.escape(method.upper())} {html.escape(path)}</code></h2>"
            yield f"<p>{html.escape(operation.get('description', ''))}</p>"
            rows = [
                (p["name"], p["in"], p.get("description") or "", p["schema"]) for p in operation.get("parameters", ())
            ]
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if content is not None:
                shape = schemas[content["schema"]["$ref"].rpartition("/")[2]]
                rows += [
                    (name, "body", said.get("description", ""), said) for name, said in shape["properties"].items()
                ]
            if rows:
                yield "<table>" + "".join(_row(*row) for row in rows) + "</table>"


def _row(name: str, place: str, words: str, schema: dict[str, Any]) -> str:
    cells = (f"<code>{html.escape(name)}</code>", html.escape(place), html.escape(_kind(schema)), html.escape(words))
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _kind(schema: dict[str, Any]) -> str:
    """The type of a member in one or two words."""
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    either = [_kind(one) for one in schema.get("anyOf", schema.get("oneOf", ())) if one.get("type") != "null"]
    return " | ".join(dict.fromkeys(either)) or str(schema.get("type", ""))
