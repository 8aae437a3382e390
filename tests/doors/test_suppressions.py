"""The suppression list over HTTP."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.core.delivery import State
from gateway.core.errors import StoreUnavailableError
from gateway.store.suppressions import REASON_CODES
from tests.doors.door import Door, faults, problem
from tests.world import PAT, TENANT

LIST = "/v1/suppressions"
CHECK = "/v1/suppressions/check"


def entry(**changes: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {"recipientEmail": PAT, "scope": "tenant", "reasonCode": "manual_dnc"}
    return {name: value for name, value in (usual | changes).items() if value is not ...}


async def test_an_entry_binds_every_spelling_until_it_is_removed(door: Door) -> None:
    added = (await door.post(LIST, entry(recipientEmail="Pat.Smith@Example.COM"))).json()

    for number, address in enumerate(
        ["pat.smith@example.com", "PAT.SMITH@EXAMPLE.COM", '"Pat" <Pat.Smith@example.com>']
    ):
        assert (await door.send(to=address, idempotencyKey=str(number))).json()["reason"] == "suppressed"
    removed = await door.call("DELETE", f"{LIST}/pat.smith@example.com", by="operator")
    assert removed.json() == {"removed": True, "ids": [added["id"]]}
    assert (await door.send(to="pat.smith@example.com", idempotencyKey="4")).json()["status"] == "queued"


async def test_an_entry_is_shown_as_it_was_made(door: Door) -> None:
    until = (datetime.now(UTC) + timedelta(days=9)).replace(microsecond=0)

    body = (await door.post(LIST, entry(source="desk", expiresAt=until.isoformat()))).json()
    listed = (await door.get(LIST)).json()

    assert body["stopped"] == []
    assert listed == [{name: value for name, value in body.items() if name != "stopped"}]
    assert (body["tenantId"], body["recipientEmail"], body["domain"]) == (TENANT, PAT, None)
    assert (body["scope"], body["reasonCode"], body["source"]) == ("tenant", "manual_dnc", "desk")
    assert datetime.fromisoformat(body["expiresAt"]) == until


@pytest.mark.parametrize("role", ["to", "cc", "bcc"])
async def test_an_entry_binds_every_role_and_stops_what_is_on_its_way(door: Door, role: str) -> None:
    sent = await door.accepted(**{"to": ["ok@example.net"], role: [PAT]})

    body = (await door.post(LIST, entry())).json()

    assert body["stopped"] == [sent["requestId"]]
    states = {d.address: d.state for d in door.world.record(sent["requestId"]).deliveries}
    assert states[PAT] is State.BLOCKED
    answer = await door.send(**{"to": ["ok@example.net"], role: [PAT]}, idempotencyKey="2")
    assert answer.json()["reason"] == "suppressed"


async def test_an_end_lies_in_the_future_by_the_stores_clock_and_not_by_this_hosts(door: Door) -> None:
    now = door.world.now
    assert now < datetime.now(UTC) - timedelta(days=1)

    soon = await door.post(LIST, entry(expiresAt=(now + timedelta(hours=1)).isoformat()))
    past = await door.post(LIST, entry(expiresAt=(now - timedelta(hours=1)).isoformat()))

    assert (soon.status_code, past.status_code) == (200, 422)


async def test_a_domain_binds_all_below_it(door: Door) -> None:
    await door.post(LIST, entry(recipientEmail=..., domain="B\u00fccher.example"))

    for number, address in enumerate(["pat@xn--bcher-kva.example", "pat@mail.b\u00fccher.example"]):
        assert (await door.send(to=address, idempotencyKey=str(number))).json()["reason"] == "suppressed"
    assert (await door.send(to="pat@other.example.net", idempotencyKey="3")).json()["status"] == "queued"


async def test_an_alias_of_a_domain_is_the_same_domain(door: Door) -> None:
    body = (await door.post(LIST, entry(recipientEmail=..., domain="googlemail.com"))).json()

    assert body["domain"] == "gmail.com"


async def test_a_campaigns_entry_binds_that_campaign(door: Door) -> None:
    await door.post(LIST, entry(scope="campaign", campaignId="spring"))

    bound = (await door.send(campaignAction="spring")).json()
    free = (await door.send(campaignAction="summer", idempotencyKey="2")).json()

    assert (bound["reason"], free["status"]) == ("suppressed", "queued")


async def test_nobody_suppresses_for_other_tenants(door: Door) -> None:
    problem(await door.post(LIST, entry(scope="global")), 403, "global_scope_not_allowed")


@pytest.mark.parametrize("code", REASON_CODES)
async def test_every_reason_of_the_list_is_taken(wire: Door, code: str) -> None:
    assert (await wire.post(LIST, entry(reasonCode=code))).status_code == 200


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"recipientEmail": ...}, ["recipientEmail"]),
        ({"recipientEmail": "x"}, ["recipientEmail"]),
        ({"domain": "example.net"}, ["recipientEmail"]),
        ({"recipientEmail": ..., "domain": "not a domain"}, ["domain"]),
        ({"recipientEmail": ..., "domain": "a@example.net"}, ["domain"]),
        ({"reasonCode": ...}, ["reasonCode"]),
        ({"reasonCode": "because"}, ["reasonCode"]),
        ({"scope": "Tenant"}, ["scope"]),
        ({"scope": "campaign"}, ["campaignId"]),
        ({"campaignId": "spring"}, ["campaignId"]),
        ({"expiresAt": "2001-01-01T00:00:00Z"}, ["expiresAt"]),
        ({"expiresAt": 5}, ["expiresAt"]),
        ({"source": "a\nb"}, ["source"]),
        ({"sourceEventId": "evt_1"}, ["sourceEventId"]),
        ({"email": PAT, "recipientEmail": ...}, ["email", "recipientEmail"]),
    ],
)
async def test_a_malformed_entry_is_refused_by_name(wire: Door, changes: dict[str, Any], named: list[str]) -> None:
    assert faults(await wire.post(LIST, entry(**changes))) == named
    assert (await wire.get(LIST)).json() == []


async def test_the_list_is_newest_first_in_pages(door: Door) -> None:
    for number in range(4):
        await door.post(LIST, entry(recipientEmail=f"p{number}@example.net"))

    names = [one["recipientEmail"] for one in (await door.get(LIST, params={"limit": 3})).json()]
    rest = [one["recipientEmail"] for one in (await door.get(LIST, params={"limit": 3, "offset": 3})).json()]
    one = (await door.get(LIST, params={"recipientEmail": "P1@example.net"})).json()

    assert names + rest == [f"p{number}@example.net" for number in (3, 2, 1, 0)]
    assert [each["recipientEmail"] for each in one] == ["p1@example.net"]


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"limit": "0"}, ["limit"]),
        ({"limit": "501"}, ["limit"]),
        ({"limit": "-1"}, ["limit"]),
        ({"limit": "1.5"}, ["limit"]),
        ({"limit": ""}, ["limit"]),
        ({"limit": "9" * 40}, ["limit"]),
        ({"offset": "1000001"}, ["offset"]),
        ({"recipientEmail": "x"}, ["recipientEmail"]),
        ({"email": PAT}, ["email"]),
    ],
)
async def test_a_malformed_query_is_refused_by_name(wire: Door, params: dict[str, str], named: list[str]) -> None:
    assert faults(await wire.get(LIST, params=params)) == named


async def test_a_check_tells_what_it_rests_on(door: Door) -> None:
    await door.post(LIST, entry(reasonCode="complaint"))
    await door.post(LIST, entry(recipientEmail=..., domain="example.org", reasonCode="legal_request"))
    await door.post(LIST, entry(recipientEmail="c@example.com", scope="campaign", campaignId="spring"))

    async def check(**params: str) -> tuple[bool, str | None, str | None]:
        body = (await door.get(CHECK, params=params)).json()
        return body["suppressed"], body["reason"], body["matchedOn"]

    assert await check(email=PAT.upper()) == (True, "complaint", "email")
    assert await check(email="x@mail.example.org") == (True, "legal_request", "domain")
    assert await check(domain="example.org") == (True, "legal_request", "domain")
    assert await check(domain="example.net") == (False, None, None)
    assert await check(email="ok@example.net") == (False, None, None)
    assert await check(email="c@example.com") == (False, None, None)
    assert await check(email="c@example.com", campaignId="spring") == (True, "manual_dnc", "email")


async def test_a_check_is_about_one(wire: Door) -> None:
    for params in ({}, {"email": PAT, "domain": "example.net"}):
        assert faults(await wire.get(CHECK, params=params)) == ["email"]
    assert faults(await wire.get(CHECK, params={"email": "x"})) == ["email"]


async def test_a_check_that_cannot_answer_says_do_not_send(wire: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    await wire.get(LIST)

    def down(*_: object) -> None:
        raise StoreUnavailableError("down")

    monkeypatch.setattr(wire.world.store, "read", down)

    answer = await wire.get(CHECK, params={"email": PAT})

    assert "do not send" in problem(answer, 503, "suppression_check_unavailable")["message"]


async def test_what_is_not_on_the_list_cannot_be_removed(wire: Door) -> None:
    for name in ("sup_nowhere", PAT, "a@b@c", "%00", "x" * 500):
        answer = await wire.call("DELETE", f"{LIST}/{name}", by="operator")
        problem(answer, 404, "suppression_not_found")


async def test_an_address_with_a_slash_is_removed_by_its_name(wire: Door) -> None:
    added = (await wire.post(LIST, {"recipientEmail": "sales/emea@example.com", "reasonCode": "manual_dnc"})).json()

    answer = await wire.call("DELETE", f"{LIST}/sales%2Femea@example.com", by="operator")

    assert answer.json() == {"removed": True, "ids": [added["id"]]}


async def test_an_entry_is_removed_by_its_id(wire: Door) -> None:
    added = (await wire.post(LIST, entry())).json()

    answer = await wire.call("DELETE", f"{LIST}/{added['id']}", by="operator")

    assert answer.json() == {"removed": True, "ids": [added["id"]]}
    assert (await wire.get(LIST)).json() == []
