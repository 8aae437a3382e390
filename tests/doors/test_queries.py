"""A query that a route would ignore is refused by name: nobody is shown, or believes, what is not meant."""

import pytest
from fastapi import APIRouter, Request

from gateway.doors.http.inlet import Needs
from gateway.doors.refusal import HumanRefusal
from tests.doors.door import Door, a_door, a_send, faults, problem
from tests.world import PAT, World

SEND = "/v1/agent/request-send"
ROUTES: list[tuple[str, str, object]] = [
    ("POST", SEND, a_send()),
    ("POST", "/v1/agent/simulate-send", a_send()),
    ("POST", "/v1/agent/batch/request-send", {"sends": [a_send()]}),
    ("POST", "/v1/agent/simulate-batch", {"sends": [a_send()]}),
    ("DELETE", "/v1/agent/sends/req_nowhere", None),
    ("GET", "/v1/agent/requests/req_nowhere", None),
    ("GET", "/v1/ops/trace/req_nowhere", None),
    ("GET", "/v1/attachments/att_nowhere", None),
    ("DELETE", "/v1/attachments/att_nowhere", None),
    ("GET", "/v1/templates/welcome", None),
    ("GET", "/v1/templates/welcome/versions/1", None),
    ("DELETE", f"/v1/suppressions/{PAT}", None),
    ("POST", "/v1/suppressions", {"recipientEmail": PAT, "reasonCode": "manual_dnc"}),
    ("POST", "/v1/agent/whoami", None),
    ("GET", "/v1/agent/whoami", None),
    ("GET", "/v1/agent/agents", None),
    ("GET", "/v1/agent/keys", None),
    ("POST", "/v1/agent/keys", {"label": "x", "scopes": ["operator"]}),
    ("PATCH", "/v1/agent/config/settings", {"cooldownMinutes": 1}),
    ("POST", "/v1/agent/adopt/invite", {"label": "x", "scopes": ["operator"]}),
    ("POST", "/v1/agent/coordination/heartbeat", None),
    ("POST", "/v1/adopt/claim", {"token": "x"}),
]


@pytest.mark.parametrize(("method", "path", "body"), ROUTES, ids=[" ".join(one[:2]) for one in ROUTES])
async def test_what_no_route_reads_is_refused_by_name(wire: Door, method: str, path: str, body: object) -> None:
    wire.add_key("all", scopes=("manage",))
    before = wire.world.rows()

    answer = await wire.call(method, path, body, params={"dryRun": "true"}, by="all")

    assert faults(answer) == ["dryRun"]
    kept = ("sends", "suppressions", "human_decisions", "api_keys", "invites")
    assert {name: wire.world.rows()[name] for name in kept} == {name: before[name] for name in kept}


async def test_a_body_may_have_its_tenant_beside_it_and_it_must_be_the_keys_own(wire: Door) -> None:
    own = await wire.post(SEND, a_send(), params={"tenantId": wire.world.rows()["tenants"][0][0]})
    other = await wire.post(SEND, a_send(), params={"tenantId": "other"})

    assert own.status_code == 200, own.text
    problem(other, 403, "tenant_mismatch")
    assert faults(await wire.post(SEND, a_send(), params={"tenantId": ["x", "y"]})) == ["tenantId"]


async def test_a_wish_whose_query_nobody_has_read_is_not_kept(world: World) -> None:
    router = APIRouter()
    reads = Needs("read")

    @router.post("/v1/careless")
    async def careless(request: Request) -> None:
        await reads(request)
        raise HumanRefusal("only a person", kind="careless", about="new")

    async with a_door(world, [router]) as door:
        plain = problem(await door.post("/v1/careless"), 403, "human_decision_required")
        more = problem(await door.post("/v1/careless?dryRun=true"), 403, "human_decision_required")

    assert "decisionId" in plain
    assert "decisionId" not in more
