"""Property tests of the OpenAPI document: whatever a caller sends, the answer is one that is documented, in the one form.

Cases are made by schemathesis from the document: such as it allows, such as it does not, and such as a caller would send
who also knows what a schema cannot say (which addresses there are). Few for each operation, and always the same ones.
"""

import copy
import json
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import content_type_conformance, response_schema_conformance, status_code_conformance

from gateway.doors.http.guard import PROBES
from tests.docs_http import application
from tests.doors.door import PROBLEM, Door
from tests.world import PAT, TENANT

BASE = "http://localhost"
CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]
FEW = settings(
    max_examples=6,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
WORDS = "^[a-z]{1,20}$"
MAIL = ["recipientEmail", "text", "subject", "html", "kind", "threadId", "idempotencyKey", "scheduledAt", "dryRun"]
"""Members of a mail that go with each other in any choice; the first two make it one."""


def sensible(document: dict[str, Any]) -> dict[str, Any]:
    """The document with members narrowed down to what can be right: one's own tenant, addresses, plain words."""
    document = copy.deepcopy(document)
    _narrow(document)
    return document


def _narrow(part: Any) -> None:  # noqa: ANN401
    for one in part if isinstance(part, list) else ():
        _narrow(one)
    if isinstance(part, dict):
        _narrow_members(part)
        _narrow_text(part)
        for name, one in part.items():
            if name not in ("responses", "Problem"):  # these are what is answered
                _narrow(one)


def _narrow_members(part: dict[str, Any]) -> None:
    if "tenantId" in part.get("properties", ()):
        part["properties"]["tenantId"] = {"const": TENANT}
    if part.get("name") == "tenantId":
        part["schema"] = {"const": TENANT}
    if part.get("title") == "SendRequest":
        part["properties"] = {name: said for name, said in part["properties"].items() if name in MAIL}
        part["required"] = MAIL[:2]


def _narrow_text(part: dict[str, Any]) -> None:
    if part.get("type") != "string" or {"enum", "const", "pattern", "format", "contentEncoding"} & set(part):
        return
    if any("@" in str(one) for one in part.get("examples", ())):
        part["enum"] = [PAT, "p1@example.net", "P.2@Example.net"]
    else:
        part["pattern"] = WORDS


def operations(document: dict[str, Any]) -> list[Any]:
    """All operations of a document."""
    found: list[Any] = list(schemathesis.openapi.from_dict(document).get_all_operations())
    return [result.ok() for result in found]  # one that is not sound raises here


DOCUMENT = application().openapi()
TRIES = [
    (f"{one.label} {mode.value}", one, mode)
    for one in operations(DOCUMENT)
    for mode in GenerationMode
    if mode.is_positive or one.body or list(one.iter_parameters())  # else nothing can be wrong
]
TRIES += [(f"{one.label} sensible", one, GenerationMode.POSITIVE) for one in operations(sensible(DOCUMENT))]


def test_every_operation_is_tried() -> None:
    known = {f"{method.upper()} {path}" for path, methods in DOCUMENT["paths"].items() for method in methods}

    assert {one.label for _, one, _ in TRIES} == known


STRANGERS = frozenset({"/v1/adopt/claim"})
"""Routes for who has no key yet."""


def test_every_operation_but_probes_and_those_for_strangers_says_that_it_needs_a_key() -> None:
    open_to_all = {
        path for path, methods in DOCUMENT["paths"].items() for said in methods.values() if "security" not in said
    }

    assert open_to_all == PROBES | STRANGERS


@FEW
@given(data=st.data())
@pytest.mark.parametrize(("operation", "mode"), [one[1:] for one in TRIES], ids=[one[0] for one in TRIES])
async def test_every_answer_is_as_documented(wire: Door, operation: Any, mode: GenerationMode, data: Any) -> None:  # noqa: ANN401
    case = data.draw(operation.as_strategy(generation_mode=mode))

    answer = await call(wire, case)

    assert answer.status_code < 500 or answer.status_code == 503, answer.text
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == PROBLEM, answer.text
        body = json.loads(answer.content)
        assert isinstance(body["error"], str)
        assert isinstance(body["message"], str)
    case.validate_response(answer, checks=CHECKS)


async def call(door: Door, case: Any) -> httpx.Response:  # noqa: ANN401
    """Sends a case as an operator, with all that was made for it."""
    made = case.as_transport_kwargs(BASE, headers={"Authorization": f"Bearer {door.keys['operator']}"})
    body = {"content": made["data"]} if "data" in made else {"json": made["json"]} if "json" in made else {}
    return await door.client.request(
        made["method"], made["url"], params=made.get("params"), headers=dict(made["headers"]), **body
    )
