"""How routes describe what they take, for OpenAPI; and the document itself, whose schemas stand in one place.

Bodies and queries are read by `inlet`, not by FastAPI, so that their limits come first; here their shapes are made known.
"""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import WithJsonSchema

from gateway import __version__
from gateway.doors.fields import Part, Shape
from gateway.doors.http.problems import PROBLEM

Document = dict[str, Any]
REF = "#/components/schemas/{model}"
EACH = "x-each"
"""Stands for a reference until `takes` brings the part: pydantic refuses one to what it has not made itself."""
SAYS = """Judges mail that agents ask to send, records the decision, and relays what may go.

Every error is `application/problem+json` with `error`, a slug for programs, and `message`, a sentence for people. A send
that a policy refuses is answered with 200 and `status: "blocked"`; with `Prefer: handling=strict` it has an error's status.
"""

PROBLEM_SCHEMA: Document = {
    "title": "Problem",
    "type": "object",
    "required": ["error", "message"],
    "properties": {
        "error": {"type": "string", "description": "A slug for programs."},
        "message": {"type": "string", "description": "A sentence for people."},
        "errors": {
            "type": "array",
            "description": "Every bad field.",
            "items": {
                "type": "object",
                "properties": {"field": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
}
PROBLEMS: dict[int | str, Document] = {
    name: {"description": words, "content": {PROBLEM: {"schema": {"$ref": REF.format(model="Problem")}}}}
    for name, words in (("4XX", "Refused; nothing was stored."), ("5XX", "Not now; ask again later."))
}
"""What every route may answer."""


def takes(shape: type[Shape], *parts: type[Part], optional: bool = False) -> Document:
    """The body of a route, for its `openapi_extra`; `parts` are shapes that it names and reads one by one (`each`)."""
    schema = shape.model_json_schema(ref_template=REF)
    for part in parts:
        inner = part.model_json_schema(ref_template=REF)
        schema.setdefault("$defs", {}).update({**inner.pop("$defs", {}), part.__name__: inner})
    for said in schema["properties"].values():
        if EACH in said.get("items", ()):
            said["items"] = {"$ref": REF.format(model=said["items"][EACH])}
    return {"requestBody": {"required": not optional, "content": {"application/json": {"schema": schema}}}}


def each(part: type[Part], most: int) -> WithJsonSchema:
    """Describes a list of 1 to `most` items that are read one by one, so that a bad one harms no other."""
    return WithJsonSchema({"type": "array", "minItems": 1, "maxItems": most, "items": {EACH: part.__name__}})


def asks(shape: type[Shape]) -> Document:
    """The query of a route, for its `openapi_extra`."""
    schema = shape.model_json_schema(ref_template=REF)
    required = schema.get("required", ())
    return {
        "parameters": [
            {"name": name, "in": "query", "required": name in required, "schema": said}
            for name, said in schema["properties"].items()
        ]
    }


def header(name: str, words: str) -> Document:
    """A header that a route reads, as a parameter of OpenAPI."""
    return {"name": name, "in": "header", "required": False, "description": words, "schema": {"type": "string"}}


def document(app: FastAPI) -> Document:
    """The application in OpenAPI 3.1; made once."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=__version__, description=SAYS, routes=app.routes)
        schemas = made.setdefault("components", {}).setdefault("schemas", {})
        schemas["Problem"] = PROBLEM_SCHEMA
        for operations in made["paths"].values():
            for operation in operations.values():
                _gather(operation, schemas)
        app.openapi_schema = made
    return app.openapi_schema


def _gather(operation: Document, schemas: Document) -> None:
    """Move the schemas of a route's body to the one place, and leave references."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is not None and "title" in content["schema"]:
        schema = dict(content["schema"])
        schemas.update(schema.pop("$defs", {}))
        schemas[schema["title"]] = schema
        content["schema"] = {"$ref": REF.format(model=schema["title"])}
