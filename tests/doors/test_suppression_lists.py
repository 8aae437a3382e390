"""Suppressions by the thousand over HTTP."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.core.delivery import State
from gateway.store import schema
from tests.doors.door import Door, faults, problem
from tests.world import PAT, TENANT

IMPORT = "/v1/suppressions/import"
EXPORT = "/v1/suppressions/export"
UNTIL = (datetime.now(UTC) + timedelta(days=99)).replace(microsecond=0).isoformat().replace("+00:00", "Z")

LINES: list[dict[str, Any]] = [
    {"email": "a@example.net", "reasonCode": "hard_bounce", "source": "file"},
    {"domain": "example.org", "reasonCode": "legal_request", "source": "file"},
    {
        "email": "c@example.net",
        "reasonCode": "unsubscribe",
        "scope": "campaign",
        "campaign": "spring",
        "source": 'a, "b"; c',
    },
    {"email": "d@example.net", "reasonCode": "no_engagement", "source": "file", "expiresAt": UNTIL},
]


async def imported(door: Door, entries: list[Any], **more: Any) -> dict[str, Any]:
    answer = await door.post(IMPORT, {"entries": entries} | more)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def exported(door: Door, limit: int = 5000) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    params: dict[str, Any] = {"limit": limit}
    while True:
        body = (await door.get(EXPORT, params=params)).json()
        found += body["entries"]
        if body["next"] is None:
            return found
        params["after"] = body["next"]


async def test_what_goes_out_can_come_in_again_and_gives_the_same_list(door: Door) -> None:
    first = await imported(door, LINES)
    out = await exported(door)
    for row in (await door.get("/v1/suppressions")).json():
        await door.call("DELETE", f"/v1/suppressions/{row['id']}", by="operator")
    empty = await exported(door)
    second = await imported(door, out)

    assert (first["processed"], first["accepted"], first["written"], first["failed"]) == (4, 4, 4, 0)
    assert out == LINES
    assert empty == []
    assert second["written"] == 4
    assert await exported(door) == LINES


async def test_the_list_goes_out_in_pieces(door: Door) -> None:
    await imported(door, [{"email": f"p{n}@example.net", "reasonCode": "hard_bounce"} for n in range(10)])

    for limit in (1, 3, 5, 10, 11):
        assert [one["email"] for one in await exported(door, limit)] == [f"p{n}@example.net" for n in range(10)]


async def test_an_import_binds_and_stops_what_is_on_its_way(door: Door) -> None:
    sent = await door.accepted()

    body = await imported(door, [{"email": "PAT@example.net", "reasonCode": "complaint"}])

    assert body["stopped"] == [sent["requestId"]]
    assert door.world.states(sent["requestId"]) == [State.BLOCKED]
    assert (await door.send(idempotencyKey="2")).json()["reason"] == "suppressed"


async def test_a_bad_entry_is_named_by_its_place_and_harms_no_other(door: Door) -> None:
    entries = [
        LINES[0],
        {"email": "no address", "reasonCode": "because"},
        "text",
        {"email": PAT, "domain": "example.org", "reasonCode": "complaint"},
        {"email": PAT, "reasonCode": "complaint", "scope": "campaign"},
        {"email": PAT, "reasonCode": "complaint", "scope": "global"},
        {"email": PAT, "reasonCode": "complaint", "expiresAt": "2001-01-01T00:00:00Z"},
        {"email": PAT, "reasonCode": "complaint", "colour": "red"},
        LINES[1],
    ]

    body = await imported(door, entries)

    assert (body["processed"], body["accepted"], body["written"], body["failed"]) == (9, 2, 2, 7)
    assert [(one["index"], one["field"]) for one in body["errors"]] == [
        (1, "email"),
        (1, "reasonCode"),
        (2, "body"),
        (3, "email"),
        (4, "campaign"),
        (5, "scope"),
        (6, "expiresAt"),
        (7, "colour"),
    ]
    assert all(one["message"] for one in body["errors"])
    assert await exported(door) == LINES[:2]


async def test_a_dry_run_reads_and_writes_nothing(door: Door) -> None:
    before = door.world.rows()

    body = await imported(door, [*LINES, {"email": "x", "reasonCode": "complaint"}], dryRun=True)

    assert (body["dryRun"], body["accepted"], body["failed"], body["written"]) == (True, 4, 1, 0)
    assert door.world.rows() == before


async def test_an_import_sent_again_makes_nothing_weaker(door: Door) -> None:
    await imported(door, [{"email": PAT, "reasonCode": "complaint"}])

    body = await imported(door, [{"email": PAT, "reasonCode": "hard_bounce", "expiresAt": UNTIL}])

    assert (body["accepted"], body["written"], body["kept"]) == (1, 0, 1)
    assert await exported(door) == [{"email": PAT, "reasonCode": "complaint", "source": "import"}]


async def test_what_has_run_out_does_not_go_out(door: Door) -> None:
    await imported(door, LINES)
    door.world.advance(86_400 * 365 * 9)

    assert [one.get("email") for one in await exported(door)] == ["a@example.net", None, "c@example.net"]


async def test_a_piece_has_its_limits(wire: Door) -> None:
    many = [{"email": f"p{n}@example.net", "reasonCode": "complaint"} for n in range(5001)]

    assert faults(await wire.post(IMPORT, {"entries": many})) == ["entries"]
    assert faults(await wire.post(IMPORT, {"entries": []})) == ["entries"]
    assert faults(await wire.post(IMPORT, {})) == ["entries"]
    assert faults(await wire.get(EXPORT, params={"limit": "5001"})) == ["limit"]
    assert (await imported(wire, many[:5000]))["written"] == 5000
    assert len(wire.world.rows_of(schema.suppressions)) == 5000


@pytest.mark.parametrize("tenant", ["tenantId", "entries"])
async def test_nobody_imports_for_another_tenant(wire: Door, tenant: str) -> None:
    line = LINES[0] | ({"tenantId": "another"} if tenant == "entries" else {})
    body = {"entries": [line]} | ({"tenantId": "another"} if tenant == "tenantId" else {})

    problem(await wire.post(IMPORT, body), 403, "tenant_mismatch")
    assert (await wire.post(IMPORT, {"tenantId": TENANT, "entries": [LINES[0]]})).status_code == 200


async def test_a_key_needs_the_scope_for_what_it_does(wire: Door) -> None:
    wire.add_key("reader", scopes=("read",))
    wire.add_key("sender", scopes=("send",))

    problem(await wire.post(IMPORT, {"entries": LINES}, by="reader"), 403, "insufficient_scope")
    problem(await wire.get(EXPORT, by="sender"), 403, "insufficient_scope")
