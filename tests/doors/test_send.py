"""A send over HTTP: what becomes of its members, of tokens and aliases."""

import email
import email.policy
from datetime import timedelta
from typing import Any

import pytest

from gateway.core.delivery import State
from gateway.core.record import instant
from gateway.store import agents
from tests.doors.door import SEND, Door, a_send, b64, problem
from tests.world import BOXES, PAT, TENANT, World

STRICT = {"Prefer": "handling=strict"}


def read(message: bytes) -> Any:  # noqa: ANN401
    """A message as another program reads it."""
    return email.message_from_bytes(message, policy=email.policy.default)


async def test_a_send_is_taken_with_a_receipt(door: Door) -> None:
    answer = await door.send()

    body = answer.json()
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert body["status"] == "queued"
    assert body["requestId"].startswith("req_")
    assert len(body["requestId"]) == len("req_") + 24
    assert body["messageId"] == f"{body['requestId']}@gw.example.com"
    assert body["idempotencyKey"] == "once"
    assert body["replayed"] is False
    assert body["policyTrace"]["decision"] == {"allow": True}
    assert [(one["email"], one["role"], one["status"]) for one in body["recipients"]] == [(PAT, "to", "queued")]
    assert body["counts"] == {"queued": 1}
    assert body["warnings"] == []
    assert door.world.states(body["requestId"]) == [State.QUEUED]


async def test_ids_sort_by_time(door: Door) -> None:
    ids = [(await door.accepted(idempotencyKey=str(n), to=f"p{n}@example.net"))["requestId"] for n in range(5)]

    assert len(set(ids)) == 5
    assert [name[:14] for name in ids] == sorted(name[:14] for name in ids)


async def test_all_members_reach_the_message(door: Door) -> None:
    asked = a_send(
        from_=f"Tea & C\u00f6 <{BOXES[0]}>",
        to=["Pat <pat@example.net>"],
        cc="cee@example.net",
        bcc=["bee@example.net"],
        replyTo="answers@gw.example.com",
        subject="Gr\u00fc\u00dfe",
        text="one\n.\n..two\nthree",
        html="<p>four</p>",
        headers={"X-Campaign": "spring"},
        inReplyTo="<m1@example.net>",
        references=["<m0@example.net>", "m1@example.net"],
        attachments=[{"filename": "\u00fc.txt", "content": b64("five"), "contentType": "text/plain"}],
        threadId="thr_1",
        campaignAction="spring",
        sendReason="because",
    )

    body = (await door.post(SEND, asked)).json()

    message = read(door.message(body["requestId"]))
    assert message["From"] == f"Tea & C\u00f6 <{BOXES[0]}>"
    assert (message["To"], message["Cc"], message["Bcc"]) == ("Pat <pat@example.net>", "cee@example.net", None)
    assert (message["Reply-To"], message["Subject"]) == ("answers@gw.example.com", "Gr\u00fc\u00dfe")
    assert (message["In-Reply-To"], message["X-Campaign"]) == ("<m1@example.net>", "spring")
    assert message["References"].split() == ["<m0@example.net>", "<m1@example.net>"]
    assert message["Message-ID"] == f"<{body['messageId']}>"
    assert message["Date"]
    assert message.get_body(("plain",)).get_content().replace("\r\n", "\n") == "one\n.\n..two\nthree"
    assert message.get_body(("html",)).get_content().strip() == "<p>four</p>"
    assert [(file.get_filename(), file.get_content()) for file in message.iter_attachments()] == [
        ("\u00fc.txt", "five")
    ]
    record = door.world.record(body["requestId"])
    assert (record.thread, record.campaign, record.send_reason) == ("thr_1", "spring", "because")
    assert [(d.address, d.role) for d in record.deliveries] == [
        ("pat@example.net", "to"),
        ("cee@example.net", "cc"),
        ("bee@example.net", "bcc"),
    ]


async def test_a_payload_says_the_same_as_the_top_level(door: Door) -> None:
    await door.accepted(html="<p>x</p>")

    said = {"subject": "hello", "text": "hi\n", "html": "<p>x</p>"}
    again = await door.send(subject=..., text=..., payload=said, to=..., recipientEmail=PAT, templateId="_default")

    assert again.json()["replayed"] is True


async def test_headers_as_a_list_and_as_an_object_are_the_same(door: Door) -> None:
    first = await door.post(SEND, a_send() | {"headers": {"X-A": "1", "X-B": "2"}})
    again = await door.post(
        SEND, a_send() | {"headers": [{"name": "x-b", "value": "2"}, {"name": "x-a", "value": "1"}]}
    )

    assert first.json()["status"] == "queued"
    assert again.json()["replayed"] is True


async def test_one_person_is_one_recipient_and_the_first_role_wins(door: Door) -> None:
    body = await door.accepted(
        to=["pat@example.net", "Pat@Example.NET"], cc=["pat@example.net"], bcc=["PAT@example.net"]
    )

    assert [(one["email"], one["role"]) for one in body["recipients"]] == [("pat@example.net", "to")]


async def test_recipients_who_are_all_blind_stay_so(door: Door) -> None:
    body = await door.accepted(to=..., bcc=["bee@example.net", "cee@example.net"])

    assert b"bee@" not in door.message(body["requestId"])
    assert b"To: undisclosed-recipients:;\r\n" in door.message(body["requestId"])


@pytest.mark.parametrize("address", ['"mallory@example.com" <pat@example.net>', "pat@example.net", "<pat@example.net>"])
async def test_mail_goes_to_the_address_and_not_to_the_name(door: Door, address: str) -> None:
    body = await door.accepted(to=address)

    assert [one["email"] for one in body["recipients"]] == ["pat@example.net"]


async def test_addresses_of_other_scripts_are_known_by_one_key(door: Door) -> None:
    await door.world.suppress("pat@b\u00fccher.example.com")

    for number, address in enumerate(["xn--bcher-kva", "B\u00dcCHER", "bu\u0308cher"]):
        answer = await door.send(to=f"pat@{address}.example.com", idempotencyKey=str(number))
        assert answer.json()["reason"] == "suppressed"


async def test_a_scheduled_send_waits(door: Door) -> None:
    later = door.world.now + timedelta(hours=2)

    body = await door.accepted(scheduledAt=later.isoformat())

    assert (body["status"], body["scheduledAt"]) == ("scheduled", instant(later))
    assert door.world.record(body["requestId"]).not_before == later


async def test_a_schedule_that_has_passed_means_now(door: Door) -> None:
    body = await door.accepted(scheduledAt="2001-01-01T00:00:00+02:00")

    assert body["status"] == "queued"


async def test_the_kind_decides_what_holds_a_mail(door: Door) -> None:
    await door.accepted()

    blocked = (await door.send(idempotencyKey="2", subject="b")).json()
    reply = (await door.send(idempotencyKey="3", subject="c", kind="reply", inReplyTo="a@b")).json()
    forbidden = (await door.send(idempotencyKey="4", subject="d", kind="transactional")).json()
    door.add_key("trusted", transactional=True)
    allowed = (await door.send(by="trusted", idempotencyKey="5", subject="e", kind="transactional")).json()

    assert (blocked["reason"], reply["status"]) == ("cooldown", "queued")
    assert (forbidden["reason"], allowed["status"]) == ("sender_not_allowed", "queued")


@pytest.mark.parametrize("how", ["header", "body", "map"])
async def test_a_token_can_be_given_in_three_ways(door: Door, how: str) -> None:
    lease = await door.world.lease("a", PAT)

    async def send(token: int, key: str) -> dict[str, Any]:
        ways: dict[str, dict[str, Any]] = {
            "header": {"headers": {"X-Fencing-Token": str(token)}},
            "body": {"fencingToken": token},
            "map": {"fencingTokens": {"Pat <PAT@example.net>": token}},
        }
        answer: dict[str, Any] = (await door.send(idempotencyKey=key, **ways[how])).json()
        return answer

    good, higher = await send(lease.token, "1"), await send(lease.token + 1, "2")

    assert good["status"] == "queued"
    assert higher["reason"] == "lease_expired"
    assert door.world.record(good["requestId"]).tokens == {PAT: lease.token}


async def test_a_stale_token_cannot_send(door: Door) -> None:
    old = await door.world.lease("a", PAT, 60)
    door.world.advance(61)
    await door.world.lease("b", PAT)

    answer = await door.send(fencingToken=old.token, headers=STRICT)

    assert problem(answer, 409, "stale_fencing_token")["leaseHolder"]["agentName"] == "b"


async def test_a_tenants_aliases_are_used_for_its_addresses(door: Door, world: World) -> None:
    def alias(tx: Any) -> None:  # noqa: ANN401
        from dataclasses import replace

        agents.save_profile(tx, TENANT, replace(tx.profile(TENANT), aliases={"alias.example.org": "example.org"}))

    world.store.write((TENANT,), alias)
    door.context.auth.forget()
    await door.accepted(to="pat@alias.example.org")

    body = (await door.send(to="pat@example.org", idempotencyKey="2")).json()

    assert body["reason"] == "cooldown"
