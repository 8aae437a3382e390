"""Many sends in one request: each judged like a single one, in order, and each counts for those that come after it."""

import json
from typing import Any

import httpx
import pytest

from gateway.core.delivery import State
from gateway.doors.http import batched
from gateway.doors.http.batched import merged
from gateway.store.schema import sends
from tests.databases import Databases
from tests.doors.door import Door, a_door, b64, faults, problem
from tests.doors.test_templates import made as a_template
from tests.world import BOXES, PAT, World, a_world

BATCH = "/v1/agent/batch/request-send"
SIMULATE_BATCH = "/v1/agent/simulate-batch"
NDJSON = {"Accept": "application/x-ndjson"}


def item(number: int, **changes: Any) -> dict[str, Any]:
    """A mail to somebody of its own."""
    usual = {"recipientEmail": f"p{number}@example.net", "dedupeKey": f"k{number}", "text": "hi"}
    return {name: value for name, value in (usual | changes).items() if value is not ...}


async def batch(door: Door, *items: Any, by: str = "a", path: str = BATCH, **shared: Any) -> dict[str, Any]:
    """What a batch is answered; it must be one."""
    answer = await door.post(path, {"sends": list(items)} | shared, by=by)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def told(body: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Status and reason of each result."""
    return [(one["status"], one.get("reason")) for one in body["results"]]


def many(door: Door) -> int:
    return len(door.world.rows_of(sends))


# --- judged like single sends -----------------------------------------------------------------------------------------


async def test_each_item_is_answered_like_a_single_send(door: Door) -> None:
    body = await batch(door, item(1), item(2, subject="two"))
    single = (await door.send(to="p3@example.net", idempotencyKey="k3")).json()

    assert (body["total"], body["queued"], body["blocked"], body["errors"]) == (2, 2, 0, 0)
    assert body["batchId"].startswith("batch_")
    first, second = body["results"]
    assert (first["index"], first["recipientEmail"], first["idempotencyKey"]) == (0, "p1@example.net", "k1")
    assert set(single) <= set(first)
    assert first["status"] == "queued"
    record = (await door.get(f"/v1/agent/requests/{second['requestId']}")).json()
    assert {name: record[name] for name in ("subject", "requestId", "status")} == {
        "subject": "two",
        "requestId": second["requestId"],
        "status": "queued",
    }
    assert b"Subject: two" in door.message(second["requestId"])


async def test_items_of_one_batch_count_against_each_other(door: Door) -> None:
    body = await batch(door, item(1, recipientEmail=PAT), item(2, recipientEmail=PAT), item(3))

    assert told(body) == [("queued", None), ("blocked", "cooldown"), ("queued", None)]
    assert (body["queued"], body["blocked"]) == (2, 1)
    assert body["results"][1]["reserved"] is True
    assert body["results"][1]["nextAction"]


async def test_a_batch_spends_the_quota_item_by_item(databases: Databases) -> None:
    async with a_world(databases, {"quota": {"tenant_hour": 2}}) as world, a_door(world) as door:
        body = await batch(door, *(item(n) for n in range(4)))

    assert told(body) == [("queued", None)] * 2 + [("blocked", "hourly_limit_exceeded")] * 2
    assert body["results"][2]["remaining"] == 0


async def test_a_batch_does_not_pass_the_lease_of_another_agent(door: Door) -> None:
    await door.world.lease("b", PAT)

    body = await batch(door, item(1, recipientEmail=PAT), item(2))

    assert told(body) == [("blocked", "lease_conflict"), ("queued", None)]
    assert body["results"][0]["leaseHolder"]["agentName"] == "b"


async def test_a_stale_token_in_a_batch_is_stale(door: Door) -> None:
    old = await door.world.lease("a", PAT)
    await door.world.release(old.id)
    new = await door.world.lease("a", PAT)

    body = await batch(
        door,
        item(1, recipientEmail=PAT, fencingToken=old.token),
        item(2, recipientEmail=PAT, fencingToken=new.token),
    )

    assert told(body) == [("blocked", "stale_fencing_token"), ("queued", None)]


async def test_a_suppressed_person_in_a_batch_gets_nothing(door: Door) -> None:
    await door.world.suppress(PAT)

    body = await batch(door, item(1, recipientEmail=PAT), item(2))

    assert told(body) == [("blocked", "suppressed"), ("queued", None)]


async def test_a_batch_across_several_groups_keeps_its_order(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batched, "GROUP_ITEMS", 3)
    people = [item(n, recipientEmail=PAT if n in (2, 3, 7) else f"p{n}@example.net") for n in range(8)]

    body = await batch(door, *people)

    assert [one["index"] for one in body["results"]] == list(range(8))
    assert [one["recipientEmail"] for one in body["results"]] == [one["recipientEmail"] for one in people]
    blocked = [one["index"] for one in body["results"] if one["status"] == "blocked"]
    assert blocked == [3, 7]


async def test_500_items_are_a_few_transactions(door: Door) -> None:
    before = door.world.nodes[0].writer.groups

    body = await batch(door, *(item(n) for n in range(500)))

    assert (body["total"], body["queued"]) == (500, 500)
    assert door.world.nodes[0].writer.groups - before == 8
    assert many(door) == 500


# --- errors and repeats -----------------------------------------------------------------------------------------------


async def test_an_item_that_is_no_mail_is_an_error_and_harms_no_other(door: Door) -> None:
    items = [
        item(1, recipientEmail="nobody"),
        item(2, colour="red"),
        item(3, recipientEmail=...),
        item(4, text=...),
        7,
        item(6, mailboxId="mbx_nowhere"),
        item(7, templateId="welcome"),
        item(8, tenantId="another"),
        item(9, dryRun=True),
        item(10, overrideReason="because"),
        item(11),
    ]
    body = await batch(door, *items)

    errors = [(one["error"], [f["field"] for f in one.get("errors", ())]) for one in body["results"][:-1]]
    assert errors == [
        ("invalid_request", ["recipientEmail"]),
        ("invalid_request", ["colour"]),
        ("invalid_request", ["to"]),
        ("invalid_request", ["text"]),
        ("invalid_request", ["body"]),
        ("mailbox_not_found", []),
        ("template_not_found", []),
        ("tenant_mismatch", []),
        ("invalid_request", ["dryRun"]),
        ("insufficient_scope", []),
    ]
    assert [one["status"] for one in body["results"]] == ["error"] * 10 + ["queued"]
    assert {one["requestId"] for one in body["results"][:-1]} == {""}
    assert (body["total"], body["queued"], body["blocked"], body["errors"]) == (11, 1, 0, 10)
    assert body["counts"] == {"error": 10, "queued": 1}
    assert many(door) == 1


async def test_a_repeat_within_a_batch_replays_the_earlier_item(door: Door) -> None:
    await door.world.suppress("p3@example.net")

    body = await batch(door, item(1), item(1), item(3), item(3), item(1))

    ids = [one["requestId"] for one in body["results"]]
    assert ids == [ids[0], ids[0], ids[2], ids[2], ids[0]]
    assert [one["replayed"] for one in body["results"]] == [False, True, False, True, True]
    assert told(body)[2:4] == [("blocked", "suppressed")] * 2
    assert body["replayed"] == 3
    assert [row["repeats"] for row in door.world.rows_of(sends)] == [0, 0]


async def test_a_key_with_other_content_is_an_error_of_that_item(door: Door) -> None:
    await door.accepted(to="p9@example.net", idempotencyKey="k9", text="old")

    body = await batch(door, item(1), item(1, text="other"), item(9, text="new"), item(2, dedupeKey="k1"))

    assert told(body) == [("queued", None), *[("error", "idempotency_key_reused")] * 3]
    first = body["results"][0]["requestId"]
    assert [one["requestId"] for one in body["results"]][1::2] == [first, first]
    assert body["results"][2]["requestId"].startswith("req_")
    assert all(one["idempotencyKey"] and one["nextAction"] for one in body["results"][1:])


async def test_the_same_batch_again_sends_nothing_twice(door: Door) -> None:
    items = [item(n) for n in range(70)]
    first = await batch(door, *items)
    again = await batch(door, *items)

    assert [one["requestId"] for one in again["results"]] == [one["requestId"] for one in first["results"]]
    assert (again["queued"], again["replayed"]) == (70, 70)
    assert many(door) == 70


async def test_items_without_a_key_get_one_of_their_own(door: Door) -> None:
    body = await batch(door, item(1, dedupeKey=...), item(2, dedupeKey=...), item(1, dedupeKey=...))

    assert [one["warnings"] for one in body["results"]] == [["derived_key"]] * 3
    assert [one["replayed"] for one in body["results"]] == [False, False, True]


async def test_a_store_that_cannot_be_reached_takes_nothing(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    from gateway.core.errors import StoreUnavailableError

    async def gone(*_: object) -> None:
        raise StoreUnavailableError("away")

    monkeypatch.setattr(door.world.nodes[0].writer, "do", gone)
    answer = await door.post(BATCH, {"sends": [item(1), item(2)]})

    problem(answer, 503, "store_unavailable")


async def test_a_store_that_goes_away_midway_is_told_item_by_item(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    from gateway.core.errors import StoreUnavailableError

    monkeypatch.setattr(batched, "GROUP_ITEMS", 2)
    writer = door.world.nodes[0].writer
    do, asked = writer.do, []

    async def sometimes(*args: Any) -> Any:  # noqa: ANN401 - whatever it does
        asked.append(args)
        if len(asked) > 2:
            raise StoreUnavailableError("away")
        return await do(*args)

    monkeypatch.setattr(writer, "do", sometimes)
    body = await batch(door, *(item(n) for n in range(6)), item(0))

    expected = [("queued", None)] * 2 + [("error", "store_unavailable")] * 4 + [("queued", None)]
    assert told(body) == expected
    assert body["results"][6]["replayed"] is True
    assert len(asked) == 4  # what comes after is not even tried


# --- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "field"), [(BATCH, "sends"), (SIMULATE_BATCH, "sends"), (SIMULATE_BATCH, "recipientEmails")]
)
async def test_more_than_500_are_refused_and_nothing_is_processed(door: Door, path: str, field: str) -> None:
    items = [item(n) for n in range(501)] if field == "sends" else ["p@example.net"] * 501

    answer = await door.post(path, {field: items, "text": "hi"})

    body = problem(answer, 400, "batch_too_large")
    assert (body["field"], body["max"], body["received"]) == (field, 500, 501)
    assert many(door) == 0


async def test_what_is_wrong_with_the_whole_is_an_error_of_the_whole(wire: Door) -> None:
    wrong: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["sends"]),
        ({"sends": []}, ["sends"]),
        ({"sends": {}}, ["sends"]),
        ({"sends": [item(1)], "colour": 1, "kind": "spam"}, ["colour", "kind"]),
        ({"sends": [item(1)], "dedupeKey": "one"}, ["dedupeKey"]),
        ({"sends": [item(1)], "recipientEmail": PAT}, ["recipientEmail"]),
        ({"sends": [item(1)], "text": "a", "payload": {"text": "b"}}, ["text"]),
        ({"sends": [item(1)], "deferOnWarmup": True}, ["deferOnWarmup"]),
    ]
    for body, fields in wrong:
        assert sorted(faults(await wire.post(BATCH, body))) == fields
    for lists in ({}, {"sends": [item(1)], "recipientEmails": [PAT]}):
        assert "sends" in faults(await wire.post(SIMULATE_BATCH, {"text": "hi"} | lists))
    problem(await wire.post(BATCH, {"sends": [item(1)], "tenantId": "other"}), 403, "tenant_mismatch")
    problem(await wire.post(BATCH, {"sends": [item(1)], "overrideReason": "x"}), 403, "insufficient_scope")
    problem(await wire.post(BATCH, {"sends": [item(1)]}, by=None), 401, "unauthorized")
    assert many(wire) == 0


@pytest.mark.parametrize("header", ["Idempotency-Key", "X-Fencing-Token"])
async def test_a_header_that_is_for_one_mail_is_refused(wire: Door, header: str) -> None:
    answer = await wire.post(BATCH, {"sends": [item(1)]}, headers={header: "1"})

    assert faults(answer) == [header]


async def test_attachments_that_all_share_may_not_become_too_much(sqlite_world: World) -> None:
    async with a_door(sqlite_world, max_message_bytes=10_000) as door:
        file = {"filename": "a.txt", "content": b64(b"x" * 6_000)}
        few = await batch(door, *(item(n) for n in range(9)), attachments=[file])
        answer = await door.post(BATCH, {"sends": [item(100 + n) for n in range(11)], "attachments": [file]})

        body = problem(answer, 413, "body_too_large")
        assert few["queued"] == 9
        assert body["limit"] == 80_000 < body["received"]
        assert many(door) == 9


async def test_a_group_is_small_in_bytes_too(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batched, "GROUP_BYTES", 10_000)
    before = door.world.nodes[0].writer.groups

    body = await batch(door, *(item(n, text="x" * 60 + "\n" if n else ("x" * 60 + "\n") * 200) for n in range(10)))

    assert body["queued"] == 10
    assert door.world.nodes[0].writer.groups - before == 2


async def test_what_uploads_make_too_much_is_an_error_of_the_items_beyond(sqlite_world: World) -> None:
    async with a_door(sqlite_world, max_message_bytes=10_000) as door:
        wish = {"filename": "a.txt", "contentType": "text/plain", "contentBase64": b64(b"x" * 6_000)}
        file = {"id": (await door.post("/v1/attachments", wish)).json()["id"]}
        body = await batch(door, *(item(n) for n in range(12)), attachments=[file])

    assert body["queued"] == 9
    assert told(body)[9:] == [("error", "body_too_large")] * 3
    assert body["results"][9]["limit"] == 80_000


# --- what all share ---------------------------------------------------------------------------------------------------


async def test_what_all_share_is_said_once(door: Door) -> None:
    box = door.world.box[BOXES[1]]
    body = await batch(
        door,
        item(1, text=..., payload={"text": "one\n"}),
        item(2, text="two\n", subject="own"),
        templateId="_default",
        mailboxId=box.id,
        payload={"subject": "all", "text": "all"},
        campaignAction="spring",
        kind="outreach",
        headers={"X-Batch": "yes"},
    )

    records = [(await door.get(f"/v1/agent/requests/{one['requestId']}")).json() for one in body["results"]]
    assert [(one["subject"], one["campaignAction"], one["mailboxId"]) for one in records] == [
        ("all", "spring", box.id),
        ("own", "spring", box.id),
    ]
    messages = [door.message(one["requestId"]) for one in records]
    assert all(b"X-Batch: yes" in one for one in messages)
    assert [one.rstrip().rsplit(b"\n", 1)[-1] for one in messages] == [b"one", b"two"]


async def test_a_stored_template_is_filled_in_for_each_item(door: Door) -> None:
    await a_template(door)
    body = await batch(
        door,
        item(1, text=..., payload={"first_name": "One"}),
        item(2, text=..., payload={"first_name": "Two"}),
        item(3, text=..., payload={}),
        templateId="welcome",
        payload={"company": {"name": "Example"}},
    )
    own = await batch(
        door, item(4, text=..., templateId="welcome"), payload={"company": {"name": "Example"}, "first_name": "Four"}
    )

    assert told(body) == [("queued", None), ("queued", None), ("error", "template_render_failed")]
    assert [door.message(one["requestId"]).split(b"Subject: ")[1][:9] for one in body["results"][:2]] == [
        b"Hello One",
        b"Hello Two",
    ]
    assert told(own) == [("queued", None)]


@pytest.mark.parametrize(
    ("shared", "own", "made"),
    [
        ({"kind": "reply"}, {"kind": "outreach"}, {"kind": "outreach"}),
        ({"from": BOXES[0]}, {"mailboxId": "m"}, {"mailboxId": "m"}),
        ({"mailboxId": "m"}, {"from": BOXES[0]}, {"from": BOXES[0]}),
        ({"payload": {"a": 1, "b": 1}}, {"payload": {"b": 2}}, {"payload": {"a": 1, "b": 2}}),
        ({"payload": {"text": "t"}}, {"text": "own"}, {"payload": {"text": "own"}}),
        ({"subject": "s"}, {"payload": {"text": "t"}}, {"payload": {"subject": "s", "text": "t"}}),
        ({"subject": "s"}, {"subject": None}, {"subject": None}),
        ({"text": "t", "kind": "reply"}, {"rawMessage": "r"}, {"rawMessage": "r", "kind": "reply"}),
        ({"subject": "s"}, {"text": "t", "payload": {}}, {"subject": "s", "text": "t", "payload": {}}),
        ({"text": "t"}, {"email": PAT}, {"text": "t", "recipientEmail": PAT}),
        ({"payload": 7}, {"text": "t"}, {"payload": 7, "text": "t"}),
    ],
)
def test_an_items_own_word_wins(shared: dict[str, Any], own: dict[str, Any], made: dict[str, Any]) -> None:
    assert merged(shared, own) == made


async def test_a_key_of_one_mailbox_sends_batches_from_there_alone(door: Door) -> None:
    own, other = (door.world.box[box].id for box in BOXES)
    door.add_key("desk", mailboxes=(own,), scopes=("send",))

    body = await batch(door, item(1), item(2, mailboxId=other), by="desk")

    assert told(body) == [("queued", None), ("error", "mailbox_scope_denied")]


# --- dry runs ---------------------------------------------------------------------------------------------------------


async def test_a_batch_is_tried_by_addresses_or_by_items_and_writes_nothing(door: Door) -> None:
    await door.accepted(to=PAT)
    before = door.world.rows()

    people = [PAT, "p1@example.net", "nobody", "p1@example.net"]
    by_address = (await door.post(SIMULATE_BATCH, {"recipientEmails": people, "text": "hi"})).json()
    by_item = await batch(door, item(1, recipientEmail=PAT), item(2), item(3, text=...), path=SIMULATE_BATCH)
    dry = await batch(door, item(1, recipientEmail=PAT), item(2), dryRun=True)

    assert (by_address["total"], by_address["wouldAllow"], by_address["wouldBlock"], by_address["errors"]) == (
        4,
        2,
        1,
        1,
    )
    assert [(one["recipientEmail"], one["wouldAllow"]) for one in by_address["results"]] == [
        (PAT, False),
        ("p1@example.net", True),
        ("nobody", False),
        ("p1@example.net", True),
    ]
    assert [one.get("reason") for one in by_address["results"]] == ["cooldown", None, "invalid_request", None]
    assert (by_item["wouldAllow"], by_item["wouldBlock"]) == (2, 1)
    assert by_item["results"][0]["policyContext"]["isCooldownHit"] is True
    assert {one["requestId"] for one in by_item["results"]} == {None}
    assert (dry["wouldAllow"], dry["wouldBlock"], dry["batchId"]) == (1, 1, None)
    assert door.world.rows() == before


def found(result: dict[str, Any]) -> list[tuple[str, str]]:
    """The findings of a result without ids and times, which a dry run has of its own."""
    return [(one["rule"], one["reason"]) for one in result.get("findings", ())]


async def test_a_dry_run_finds_what_the_batch_then_finds(door: Door) -> None:
    await door.world.suppress("p5@example.net")
    items = [item(n, recipientEmail=PAT if n % 30 == 0 else f"p{n}@example.net") for n in range(100)]
    items += [item(1), item(2, text="other")]

    dry = await batch(door, *items, path=SIMULATE_BATCH)
    done = await batch(door, *items)

    assert told(dry) == told(done)
    assert dry["wouldAllow"] == done["queued"]
    assert [found(one) for one in dry["results"]] == [found(one) for one in done["results"]]


# --- streams ----------------------------------------------------------------------------------------------------------


def lines(answer: httpx.Response) -> list[Any]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


@pytest.mark.parametrize("path", [BATCH, SIMULATE_BATCH])
async def test_a_stream_has_a_line_for_each_item_and_the_totals_last(door: Door, path: str) -> None:
    items = [*(item(n) for n in range(70)), item(0), item(99, recipientEmail="nobody")]

    *results, totals = lines(await door.post(path, {"sends": items}, headers=NDJSON))
    plain = await batch(door, *items, path=path)

    assert [one["index"] for one in results] == list(range(72))
    assert [one["status"] for one in results] == ["queued"] * 71 + ["error"]
    assert totals.keys() == plain.keys() - {"results"}
    assert totals["total"] == 72
    assert totals["counts"] == {"queued": 71, "error": 1}


async def test_what_is_wrong_with_the_whole_is_no_stream(wire: Door) -> None:
    assert faults(await wire.post(BATCH, {"sends": []}, headers=NDJSON)) == ["sends"]


async def test_who_does_not_want_lines_gets_none(wire: Door) -> None:
    for accept in ("*/*", "application/json", "application/x-ndjson;q=0, */*"):
        answer = await wire.post(BATCH, {"sends": [item(1)]}, headers={"Accept": accept})
        assert answer.headers["content-type"] == "application/json"


async def test_a_batch_leaves_mail_that_the_relay_can_claim(door: Door) -> None:
    body = await batch(door, item(1), item(2))

    claims = await door.world.claim()

    assert sorted(one.send for one in claims) == sorted(one["requestId"] for one in body["results"])
    assert door.world.states(body["results"][0]["requestId"]) == [State.CLAIMED]
