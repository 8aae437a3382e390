"""The tenant's book of contacts over HTTP."""

from datetime import timedelta
from typing import Any

import pytest

from gateway.core.record import instant
from gateway.store import agents, keys, schema
from tests.doors.door import LEASE, Door, faults, problem
from tests.world import PAT, TENANT, moment

BOOK = "/v1/contacts"
SYNC = "/v1/contacts/sync"


async def created(door: Door, **changes: Any) -> dict[str, Any]:
    answer = await door.post(BOOK, {"email": PAT} | changes)
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def test_a_contact_is_shown_as_it_was_made(door: Door) -> None:
    fields = {
        "externalId": "crm-1",
        "name": "Pat",
        "lifecycleStage": "lead",
        "dealStage": "open",
        "metadata": {"a": [1, {"b": None}]},
    }

    made = await created(door, email="Pat <Pat@Example.NET>", **fields)
    shown = (await door.get(f"{BOOK}/{made['id']}")).json()

    assert {name: made[name] for name in fields} == fields
    assert (made["email"], made["tenantId"]) == ("Pat@example.net", TENANT)
    assert made["createdAt"] == made["updatedAt"]
    assert made.items() <= shown.items()
    assert (await door.get(BOOK)).json() == [made]


async def test_the_same_person_in_another_spelling_is_the_same_contact(door: Door) -> None:
    made = await created(door, email="first.last@gmail.com")

    answer = await door.post(BOOK, {"email": "FirstLast+news@googlemail.com"})

    body = problem(answer, 409, "contact_exists")
    assert (body["id"], body["field"]) == (made["id"], "email")
    assert len((await door.get(BOOK)).json()) == 1


async def test_an_outer_id_belongs_to_one_contact(door: Door) -> None:
    made = await created(door, externalId="crm-1")

    answer = await door.post(BOOK, {"email": "other@example.net", "externalId": "crm-1"})

    body = problem(answer, 409, "contact_exists")
    assert (body["id"], body["field"]) == (made["id"], "externalId")


async def test_a_change_touches_what_it_names_and_merges_metadata(door: Door) -> None:
    made = await created(door, name="Pat", dealStage="open", metadata={"a": 1, "b": {"x": 1, "y": 2}, "c": 3})
    door.world.advance(5)

    answer = await door.call(
        "PATCH", f"{BOOK}/{made['id']}", {"dealStage": None, "metadata": {"b": {"x": 9}, "c": None, "d": 4}}
    )

    body = answer.json()
    assert (body["name"], body["dealStage"]) == ("Pat", None)
    assert body["metadata"] == {"a": 1, "b": {"x": 9}, "d": 4}
    assert body["createdAt"] == made["createdAt"] < body["updatedAt"]


async def test_an_address_may_change_but_not_into_another_contacts(door: Door) -> None:
    made = await created(door)
    other = await created(door, email="other@example.net")

    taken = await door.call("PATCH", f"{BOOK}/{made['id']}", {"email": "OTHER@example.net"})
    respelled = await door.call("PATCH", f"{BOOK}/{made['id']}", {"email": "PAT@example.net"})
    moved = await door.call("PATCH", f"{BOOK}/{made['id']}", {"email": "new@example.net"})

    assert problem(taken, 409, "contact_exists")["id"] == other["id"]
    assert respelled.json()["email"] == "PAT@example.net"
    assert moved.json()["email"] == "new@example.net"
    await created(door)


async def test_a_contact_can_be_removed_and_made_again(door: Door) -> None:
    made = await created(door)
    path = f"{BOOK}/{made['id']}"

    problem(await door.call("DELETE", path), 403, "insufficient_scope")
    gone = await door.call("DELETE", path, by="operator")

    assert gone.json() == {"deleted": True, "id": made["id"]}
    problem(await door.get(path), 404, "contact_not_found")
    problem(await door.call("DELETE", path, by="operator"), 404, "contact_not_found")
    assert (await created(door))["id"] != made["id"]


async def test_what_the_gateway_knows_of_a_person_is_shown_beside(door: Door) -> None:
    made = await created(door)
    path = f"{BOOK}/{made['id']}"
    before = (await door.get(path)).json()
    lease = (await door.post(LEASE, {"contactEmail": PAT, "intent": "to write"})).json()
    sent = await door.accepted()
    flying = (await door.get(path)).json()
    (claim,) = await door.world.claim()
    await door.world.relay(claim)
    await door.post("/v1/suppressions", {"recipientEmail": PAT, "reasonCode": "complaint"})
    record = {"recipientEmail": PAT, "basis": "contractual"}
    await door.post("/v1/consent", record, by="operator")

    after = (await door.get(path)).json()

    assert (before["leaseHolder"], before["inFlight"], before["lastContactAt"]) == (None, [], None)
    assert (before["suppressed"], before["suppression"], before["cooldownExpiresAt"]) == (False, None, None)
    assert before["consent"] == {"active": False, "basis": None}
    assert flying["inFlight"] == [sent["requestId"]]
    holder = {"agentId": door.world.agent["a"], "agentName": "a", "expiresAt": lease["expiresAt"]}
    assert after["leaseHolder"] == holder
    assert after["inFlight"] == []
    (row,) = door.world.rows_of(schema.contacts)
    assert after["lastContactAt"] == instant(moment(row["last_us"]))
    assert after["cooldownExpiresAt"] == instant(moment(row["last_us"]) + timedelta(seconds=600))
    assert (after["suppressed"], after["suppression"]) == (True, {"scope": "tenant", "reasonCode": "complaint"})
    assert after["consent"] == {"active": True, "basis": "contractual"}


async def test_the_list_is_oldest_first_in_pages_that_stay_whole(door: Door) -> None:
    ids = [(await created(door, email=f"p{n}@example.net", externalId=f"x{n}"))["id"] for n in range(5)]

    first = (await door.get(BOOK, params={"limit": 2})).json()
    await door.call("DELETE", f"{BOOK}/{ids[0]}", by="operator")
    await door.call("DELETE", f"{BOOK}/{ids[1]}", by="operator")
    rest = (await door.get(BOOK, params={"limit": 9, "after": first[-1]["id"]})).json()
    skipped = (await door.get(BOOK, params={"offset": 1})).json()

    assert [one["id"] for one in first + rest] == ids
    assert [one["id"] for one in skipped] == ids[3:]


async def test_one_contact_is_found_by_address_or_outer_id(door: Door) -> None:
    made = await created(door, externalId="crm-1")
    await created(door, email="other@example.net")

    for params in ({"email": PAT.upper()}, {"externalId": "crm-1"}, {"email": PAT, "externalId": "crm-1"}):
        assert [one["id"] for one in (await door.get(BOOK, params=params)).json()] == [made["id"]]
    for params in ({"email": "no@example.net"}, {"externalId": "crm"}, {"email": PAT, "externalId": "crm-2"}):
        assert (await door.get(BOOK, params=params)).json() == []


# --- many at once -----------------------------------------------------------------------------------------------------


async def test_a_sync_makes_and_changes_and_says_what_became_of_each(door: Door) -> None:
    known = await created(door, name="Pat", metadata={"a": 1})
    outer = await created(door, email="outer@example.net", externalId="crm-2")
    items = [
        {"email": PAT.upper(), "externalId": "crm-1", "metadata": {"b": 2}},
        {"externalId": "crm-2", "email": "moved@example.net"},
        {"email": "new@example.net", "name": "New"},
        {"email": "not an address", "externalId": "crm-4"},
        {"email": "new@example.net", "dealStage": "won"},
        "text",
        {"email": "moved@example.net", "externalId": "crm-1"},
    ]

    answer = await door.post(SYNC, {"contacts": items})

    body = answer.json()
    assert answer.status_code == 200
    assert {n: body[n] for n in ("processed", "created", "updated", "failed")} == {
        "processed": 7,
        "created": 1,
        "updated": 3,
        "failed": 3,
    }
    assert body["syncId"]
    assert body["segmentsRecomputeQueued"] is False
    statuses = ["updated", "updated", "created", "failed", "updated", "failed", "failed"]
    assert [one["status"] for one in body["results"]] == statuses
    assert [one["index"] for one in body["results"]] == list(range(7))
    assert [body["results"][n]["id"] for n in (0, 1)] == [known["id"], outer["id"]]
    assert body["results"][3]["errors"][0]["field"] == "email"
    assert (body["results"][6]["error"], body["results"][6]["id"]) == ("contact_exists", outer["id"])
    rows = {one["id"]: one for one in (await door.get(BOOK)).json()}
    assert rows[known["id"]]["metadata"] == {"a": 1, "b": 2}
    assert (rows[known["id"]]["name"], rows[known["id"]]["externalId"]) == ("Pat", "crm-1")
    assert rows[outer["id"]]["email"] == "moved@example.net"
    new = rows[body["results"][2]["id"]]
    assert (new["name"], new["dealStage"]) == ("New", "won")


async def test_a_sync_sent_twice_changes_nothing_the_second_time(door: Door) -> None:
    items = [{"email": f"p{n}@example.net", "externalId": f"x{n}", "metadata": {"n": n}} for n in range(50)]
    await door.post(SYNC, {"contacts": items})
    before = (await door.get(BOOK)).json()

    body = (await door.post(SYNC, {"contacts": items})).json()

    assert (body["created"], body["updated"]) == (0, 50)
    after = (await door.get(BOOK)).json()
    assert [one | {"updatedAt": None} for one in after] == [one | {"updatedAt": None} for one in before]


async def test_two_contacts_may_change_places_in_one_sync(door: Door) -> None:
    one = await created(door, email="one@example.net", externalId="x1")
    two = await created(door, email="two@example.net", externalId="x2")

    body = (
        await door.post(
            SYNC,
            {
                "contacts": [
                    {"externalId": "x1", "email": "spare@example.net"},
                    {"externalId": "x2", "email": "one@example.net"},
                    {"externalId": "x1", "email": "two@example.net"},
                ]
            },
        )
    ).json()

    assert body["updated"] == 3
    rows = {row["id"]: row["email"] for row in (await door.get(BOOK)).json()}
    assert rows == {one["id"]: "two@example.net", two["id"]: "one@example.net"}


async def test_a_thousand_are_taken_and_one_more_is_not(wire: Door) -> None:
    items = [{"email": f"p{n}@example.net"} for n in range(1001)]

    assert faults(await wire.post(SYNC, {"contacts": items})) == ["contacts"]
    assert (await wire.post(SYNC, {"contacts": items[:1000]})).json()["created"] == 1000
    assert faults(await wire.post(SYNC, {"contacts": []})) == ["contacts"]


# --- who sees what ----------------------------------------------------------------------------------------------------


async def test_another_tenants_contacts_are_not_there(door: Door) -> None:
    store = door.world.store
    store.write((), lambda tx: agents.add_tenant(tx, "other"))
    wish = keys.NewKey("other", "theirs", scopes=keys.SCOPES)
    ((_, raw),) = store.write(("other",), lambda tx: keys.create_keys(tx, [wish]))
    door.keys["theirs"] = raw
    made = await created(door, externalId="crm-1")
    path = f"{BOOK}/{made['id']}"

    problem(await door.get(path, by="theirs"), 404, "contact_not_found")
    problem(await door.call("PATCH", path, {"name": "x"}, by="theirs"), 404, "contact_not_found")
    problem(await door.call("DELETE", path, by="theirs"), 404, "contact_not_found")
    assert (await door.get(BOOK, by="theirs")).json() == []
    assert (await door.post(BOOK, {"email": PAT, "externalId": "crm-1"}, by="theirs")).status_code == 201
    assert (await door.get(path)).json()["name"] is None


async def test_a_key_needs_the_scope_for_what_it_does(wire: Door) -> None:
    wire.add_key("reader", scopes=("read",))
    wire.add_key("sender", scopes=("send",))

    problem(await wire.post(BOOK, {"email": PAT}, by="reader"), 403, "insufficient_scope")
    problem(await wire.post(SYNC, {"contacts": [{"email": PAT}]}, by="reader"), 403, "insufficient_scope")
    problem(await wire.get(BOOK, by="sender"), 403, "insufficient_scope")
    problem(await wire.post(BOOK, {"email": PAT, "tenantId": "another"}), 403, "tenant_mismatch")
    problem(await wire.post(SYNC, {"contacts": [{"email": PAT, "tenantId": "another"}]}), 403, "tenant_mismatch")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"email": ...}, ["email"]),
        ({"email": "x"}, ["email"]),
        ({"email": None}, ["email"]),
        ({"name": 5}, ["name"]),
        ({"name": ""}, ["name"]),
        ({"externalId": "x" * 129}, ["externalId"]),
        ({"lifecycleStage": "a\nb"}, ["lifecycleStage"]),
        ({"metadata": None}, ["metadata"]),
        ({"metadata": {"a": "b\x00"}}, ["metadata"]),
        ({"metadata": {"a": "x" * 17_000}}, ["metadata"]),
        ({"recipientEmail": PAT}, ["recipientEmail"]),
    ],
)
async def test_a_malformed_contact_is_refused_by_name(wire: Door, changes: dict[str, Any], named: list[str]) -> None:
    body = {name: value for name, value in ({"email": PAT} | changes).items() if value is not ...}

    assert faults(await wire.post(BOOK, body)) == named
    assert (await wire.get(BOOK)).json() == []


async def test_a_malformed_change_is_refused_by_name(wire: Door) -> None:
    made = await created(wire)

    for change, named in (({"email": None}, ["email"]), ({"id": "x"}, ["id"]), ({"name": True}, ["name"])):
        assert faults(await wire.call("PATCH", f"{BOOK}/{made['id']}", change)) == named


async def test_metadata_does_not_grow_beyond_its_limit_by_merging(wire: Door) -> None:
    made = await created(wire, metadata={"a": "x" * 10_000})

    answer = await wire.call("PATCH", f"{BOOK}/{made['id']}", {"metadata": {"b": "x" * 10_000}})

    problem(answer, 409, "metadata_too_large")


@pytest.mark.parametrize("name", ["con_nowhere", "%00", "x" * 500, "a%0Ab"])
async def test_what_is_not_in_the_book_is_not_found(door: Door, name: str) -> None:
    problem(await door.get(f"{BOOK}/{name}"), 404, "contact_not_found")
    problem(await door.call("PATCH", f"{BOOK}/{name}", {"name": "x"}), 404, "contact_not_found")
    problem(await door.call("DELETE", f"{BOOK}/{name}", by="operator"), 404, "contact_not_found")
