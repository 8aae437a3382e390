"""Whole domains on the suppression list, under routes of their own."""

from typing import Any

import pytest

from gateway.core.delivery import State
from tests.doors.door import Door, faults, problem
from tests.world import PAT, TENANT

LIST = "/v1/suppressed-domains"


def domain(**changes: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {"domain": "example.org", "reasonCode": "legal_request"}
    return {name: value for name, value in (usual | changes).items() if value is not ...}


async def test_a_domain_is_suppressed_with_all_below_it_and_stops_what_is_on_its_way(door: Door) -> None:
    sent = await door.accepted(to="pat@mail.example.org", idempotencyKey="0")

    body = (await door.post(LIST, domain(source="desk"))).json()

    assert (body["tenantId"], body["domain"], body["recipientEmail"]) == (TENANT, "example.org", None)
    assert (body["reasonCode"], body["scope"], body["source"]) == ("legal_request", "tenant", "desk")
    assert body["stopped"] == [sent["requestId"]]
    assert door.world.record(sent["requestId"]).deliveries[0].state is State.BLOCKED
    for number, address in enumerate(["pat@example.org", "pat@MAIL.Example.ORG"]):
        answer = await door.send(to=address, idempotencyKey=f"n{number}")
        assert answer.json()["reason"] == "suppressed"


async def test_a_domain_in_another_script_is_the_same_domain_in_ascii(door: Door) -> None:
    added = (await door.post(LIST, domain(domain="B\u00fccher.example"))).json()
    refused = (await door.send(to="pat@xn--bcher-kva.example")).json()
    removed = await door.call("DELETE", f"{LIST}/b\u00fccher.example", by="operator")

    assert added["domain"] == "xn--bcher-kva.example"
    assert refused["reason"] == "suppressed"
    assert removed.json() == {"removed": True, "ids": [added["id"]]}
    assert (await door.send(to="pat@xn--bcher-kva.example", idempotencyKey="2")).json()["status"] == "queued"


async def test_the_list_has_domains_alone_newest_first_in_pages(door: Door) -> None:
    for number in range(3):
        await door.post(LIST, domain(domain=f"d{number}.example.org"))
    await door.post("/v1/suppressions", {"recipientEmail": PAT, "reasonCode": "complaint"})
    await door.post("/v1/suppressions", {"domain": "other.example.net", "reasonCode": "manual_dnc"})

    first = (await door.get(LIST, params={"limit": 2})).json()
    rest = (await door.get(LIST, params={"limit": 2, "offset": 2})).json()

    names = ["other.example.net", "d2.example.org", "d1.example.org", "d0.example.org"]
    assert [one["domain"] for one in first + rest] == names


async def test_a_domain_is_removed_by_the_general_route_too(door: Door) -> None:
    added = (await door.post(LIST, domain())).json()

    gone = await door.call("DELETE", f"/v1/suppressions/{added['id']}", by="operator")

    assert gone.json()["removed"] is True
    problem(await door.call("DELETE", f"{LIST}/example.org", by="operator"), 404, "suppression_not_found")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"domain": ...}, ["domain"]),
        ({"domain": "not a domain"}, ["domain"]),
        ({"domain": PAT}, ["domain"]),
        ({"reasonCode": ...}, ["reasonCode"]),
        ({"reasonCode": "because"}, ["reasonCode"]),
        ({"expiresAt": "2001-01-01T00:00:00Z"}, ["expiresAt"]),
        ({"scope": "tenant"}, ["scope"]),
    ],
)
async def test_a_malformed_domain_is_refused_by_name(wire: Door, changes: dict[str, Any], named: list[str]) -> None:
    assert faults(await wire.post(LIST, domain(**changes))) == named
    assert (await wire.get(LIST)).json() == []


@pytest.mark.parametrize("name", ["example.net", "not%20a%20domain", "%00", "x" * 400, PAT])
async def test_what_is_not_on_the_list_cannot_be_removed(wire: Door, name: str) -> None:
    problem(await wire.call("DELETE", f"{LIST}/{name}", by="operator"), 404, "suppression_not_found")


async def test_a_key_needs_the_scope_for_what_it_does(wire: Door) -> None:
    wire.add_key("reader", scopes=("read",))

    problem(await wire.post(LIST, domain(), by="reader"), 403, "insufficient_scope")
    problem(await wire.call("DELETE", f"{LIST}/example.org"), 403, "insufficient_scope")
    problem(await wire.post(LIST, domain(tenantId="another")), 403, "tenant_mismatch")
