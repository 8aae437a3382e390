"""Files that are uploaded first and attached by their id: as if their bytes had been in the request."""

import hashlib
from typing import Any

import pytest

from gateway.intake.waiting import ReleaseLoop
from gateway.settings import split_unknown
from gateway.store import agents, keys, uploads
from gateway.store.keys import NewKey
from tests.doors.door import SEND, SIMULATE, Door, a_send, b64, faults, problem
from tests.world import BOXES

UPLOADS = "/v1/attachments"
DATA = b"%PDF-1.7 of a kind\r\n\x00\xff"
FILE = {"filename": "offer.pdf", "contentType": "application/pdf"}


async def uploaded(door: Door, data: bytes = DATA, *, by: str = "a", **more: Any) -> dict[str, Any]:
    answer = await door.post(UPLOADS, {**FILE, "contentBase64": b64(data), **more}, by=by)
    assert answer.status_code == 200, answer.text
    kept: dict[str, Any] = answer.json()
    return kept


async def test_an_upload_is_told_with_its_size_and_digest(door: Door) -> None:
    kept = await uploaded(door)

    assert {name: kept[name] for name in (*FILE, "sizeBytes", "checksumSha256")} == {
        **FILE,
        "sizeBytes": len(DATA),
        "checksumSha256": hashlib.sha256(DATA).hexdigest(),
    }
    assert (await door.get(f"{UPLOADS}/{kept['id']}")).json() == kept


async def test_an_attached_upload_makes_the_same_mail_as_its_bytes_in_the_request(door: Door) -> None:
    kept = await uploaded(door)
    by_id, inline = [{"id": kept["id"]}], [{**FILE, "content": b64(DATA)}]

    first = await door.accepted(attachments=by_id)
    again = await door.send(attachments=inline)

    assert again.json()["requestId"] == first["requestId"]
    assert again.json()["replayed"] is True
    assert b64(DATA).encode() in door.message(first["requestId"])
    problem(await door.send(attachments=[{**FILE, "content": b64(b"other")}]), 422, "idempotency_key_reused")


async def test_a_dry_run_attaches_it_too_and_says_the_same(door: Door) -> None:
    kept = await uploaded(door)

    told = (await door.post(SIMULATE, a_send(attachments=[{"id": kept["id"], "contentId": "x"}]))).json()

    assert told["wouldAllow"] is True


async def test_mail_that_was_taken_does_not_need_its_upload_any_more(door: Door) -> None:
    kept = await uploaded(door)
    sent = await door.accepted(attachments=[{"id": kept["id"]}])

    gone = await door.call("DELETE", f"{UPLOADS}/{kept['id']}")

    assert gone.json() == {"deleted": True, "id": kept["id"]}
    assert b64(DATA).encode() in door.message(sent["requestId"])
    problem(await door.get(f"{UPLOADS}/{kept['id']}"), 404, "attachment_not_found")
    problem(await door.call("DELETE", f"{UPLOADS}/{kept['id']}"), 404, "attachment_not_found")


async def test_name_and_type_may_be_said_again_and_not_otherwise(door: Door) -> None:
    kept = await uploaded(door)

    other = await door.send(attachments=[{"id": kept["id"], "filename": "x.pdf", "contentType": "text/plain"}])

    assert faults(other) == ["attachments[0].filename", "attachments[0].contentType"]
    assert (await door.send(attachments=[{"id": kept["id"], **FILE}])).json()["status"] == "queued"


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ([{"id": "att_nowhere"}], ["attachments[0].id"]),
        ([{"id": ""}], ["attachments[0].id"]),
        ([{"id": 7}], ["attachments[0].id"]),
        ([{"id": "att_nowhere", "content": "eA=="}], ["attachments[0].content"]),
        ([{}], ["attachments[0].filename", "attachments[0].content"]),
        ([{"filename": "x", "content": "eA=="}, {"id": "att_nowhere"}], ["attachments[1].id"]),
    ],
)
async def test_a_file_that_is_not_there_is_named(wire: Door, files: list[Any], named: list[str]) -> None:
    assert faults(await wire.send(attachments=files)) == named
    assert wire.world.rows()["sends"] == []


async def test_another_tenants_upload_looks_as_if_it_were_not_there(door: Door) -> None:
    kept = await uploaded(door)
    store = door.world.store
    store.write((), lambda tx: agents.add_tenant(tx, "other"))
    ((_, raw),) = store.write(("other",), lambda tx: keys.create_keys(tx, [NewKey("other", "x")]))

    problem(await door.get(f"{UPLOADS}/{kept['id']}", by=raw), 404, "attachment_not_found")
    problem(await door.call("DELETE", f"{UPLOADS}/{kept['id']}", by=raw), 404, "attachment_not_found")


async def test_a_key_of_some_mailboxes_has_its_own_uploads_and_those_of_its_mailboxes(door: Door) -> None:
    box = door.world.box[BOXES[1]].id
    door.add_key("local", mailboxes=(box,))
    mine = await uploaded(door, by="local")
    theirs, shared = await uploaded(door), await uploaded(door, mailboxId=box)

    for kept, there in ((mine, True), (theirs, False), (shared, True)):
        answer = await door.get(f"{UPLOADS}/{kept['id']}", by="local")
        assert (answer.status_code == 200) is there
    sent = await door.send(by="local", attachments=[{"id": theirs["id"]}])
    assert faults(sent) == ["attachments[0].id"]
    refused = await door.post(
        UPLOADS, {**FILE, "contentBase64": "eA==", "mailboxId": door.world.box[BOXES[0]].id}, by="local"
    )
    problem(refused, 403, "mailbox_scope_denied")


async def test_an_upload_is_gone_after_a_day_and_swept_away(door: Door) -> None:
    kept = await uploaded(door)
    door.world.advance(24 * 3600 + 1)
    fresh = await uploaded(door)

    problem(await door.get(f"{UPLOADS}/{kept['id']}"), 404, "attachment_not_found")
    assert faults(await door.send(attachments=[{"id": kept["id"]}])) == ["attachments[0].id"]
    assert len(door.world.rows()["uploads"]) == 2

    await ReleaseLoop(door.context.intake, split_unknown, "hold").sweep()

    assert len(door.world.rows()["uploads"]) == 1
    assert (await door.get(f"{UPLOADS}/{fresh['id']}")).status_code == 200


async def test_a_tenant_has_so_much_room_and_is_told_when_it_is_full(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "TENANT_BYTES", 100)
    kept = await uploaded(door, b"x" * 60)
    wish = {**FILE, "contentBase64": b64(b"y" * 41)}

    full = problem(await door.post(UPLOADS, wish), 403, "storage_quota_exceeded")

    assert (full["used"], full["limit"], full["size"]) == (60, 100, 41)
    await door.call("DELETE", f"{UPLOADS}/{kept['id']}")
    assert (await door.post(UPLOADS, wish)).status_code == 200


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"contentBase64": None}, ["contentBase64"]),
        ({"contentBase64": "x"}, ["contentBase64"]),
        ({"contentBase64": "eA==\n"}, ["contentBase64"]),
        ({"filename": ""}, ["filename"]),
        ({"filename": "a\nb"}, ["filename"]),
        ({"filename": "x" * 256}, ["filename"]),
        ({"contentType": "pdf"}, ["contentType"]),
        ({"contentType": "multipart/mixed"}, ["contentType"]),
        ({"contentType": "message/rfc822", "contentBase64": b64(b"\xff")}, ["contentBase64"]),
        ({"content": "eA=="}, ["content"]),
    ],
)
async def test_a_malformed_upload_is_refused_by_name(wire: Door, changes: dict[str, Any], named: list[str]) -> None:
    assert faults(await wire.post(UPLOADS, {**FILE, "contentBase64": "eA==", **changes})) == named
    assert wire.world.rows()["uploads"] == []


async def test_a_file_beyond_ten_megabytes_is_too_large(wire: Door) -> None:
    answer = await wire.post(UPLOADS, {**FILE, "contentBase64": b64(b"x" * 10_485_761)})

    assert problem(answer, 413, "attachment_too_large")["limit"] == 10_485_760


async def test_one_mail_cannot_name_more_than_it_can_carry(wire: Door) -> None:
    kept = await uploaded(wire, b"x" * 6_000_000)

    answer = await wire.post(SEND, a_send(attachments=[{"id": kept["id"]}] * 2))

    problem(answer, 413, "attachments_too_large")


async def test_who_may_not_send_uploads_nothing(wire: Door) -> None:
    wire.add_key("reader", scopes=("read",))

    answer = await wire.post(UPLOADS, {**FILE, "contentBase64": "eA=="}, by="reader")

    problem(answer, 403, "insufficient_scope")
