"""What a mail asks of the gateway in X-Gateway-* headers, and the key under which it is known without one."""

import pytest

from gateway.store.schema import deliveries, sends
from tests.doors.door import SEND, a_send, b64
from tests.doors.smtp.line import HEAD, Submit, a_mail, request_of
from tests.world import BOXES, PAT

BEE = "bee@example.net"


# --- keys -------------------------------------------------------------------------------------------------------------


async def test_the_same_mail_again_is_the_first_request(submit_both: Submit) -> None:
    first = await submit_both.send()
    again = await submit_both.send()

    assert again == f"250 2.0.0 already accepted as {request_of(first)}; status=queued"
    assert len(submit_both.door.world.rows_of(sends)) == 1


async def test_one_message_id_for_other_people_is_another_request(submit: Submit) -> None:
    first = await submit.send()
    second = await submit.send(to=(BEE,))

    assert "accepted as" in second
    assert request_of(first) != request_of(second)


async def test_one_message_id_for_the_same_people_with_other_content_is_refused(submit: Submit) -> None:
    first = await submit.send(to=(PAT, BEE))
    other = await submit.send(a_mail(text="other"), to=(BEE, PAT))

    assert other.startswith(
        f"554 5.5.4 idempotency_key_reused; request={request_of(first)}; ask for that request first"
    )


async def test_a_repeat_after_a_lost_answer_replays_whatever_rcpt_says_meanwhile(submit_both: Submit) -> None:
    first = await submit_both.send(to=(PAT, BEE))
    await submit_both.door.world.suppress(BEE)
    async with submit_both.session() as client:
        replies = await client.envelope((PAT, BEE))
        again = await client.content()

    assert [reply[:3] for reply in replies] == ["250", "550"]
    assert again.startswith(f"250 2.0.0 already accepted as {request_of(first)}; status=")
    assert len(submit_both.door.world.rows_of(sends)) == 1


async def test_a_key_of_ones_own_is_used_and_found_again_over_http(submit: Submit) -> None:
    mail = a_mail('X-Gateway-Idempotency-Key: "order-77"')

    first = await submit.send(mail)
    again = await submit.send(mail.replace("<one@", "<other@"))

    found = await submit.door.get("/v1/agent/requests", params={"idempotencyKey": "order-77"})
    assert again.startswith(f"250 2.0.0 already accepted as {request_of(first)}")
    assert found.json()["requestId"] == request_of(first)


async def test_parts_of_one_submission_under_one_key_are_requests_of_their_own(submit_both: Submit) -> None:
    mail = a_mail("X-Gateway-Idempotency-Key: split")

    parts = [await submit_both.send(mail, to) for to in ((PAT,), (BEE,), ("cee@example.net",))]
    again = [await submit_both.send(mail, to) for to in ((BEE,), (PAT,))]
    overlap = await submit_both.send(mail, (PAT, BEE))
    other = await submit_both.send(a_mail("X-Gateway-Idempotency-Key: split", text="other"), ("dee@example.net",))

    assert len({request_of(part) for part in parts}) == 3
    assert [request_of(reply) for reply in again] == [request_of(parts[1]), request_of(parts[0])]
    assert all("already accepted" in reply for reply in again)
    assert overlap.startswith("554 5.5.4 idempotency_key_reused")
    assert other.startswith("554 5.5.4 idempotency_key_reused")
    assert len(submit_both.door.world.rows_of(deliveries)) == 3


async def test_a_mail_without_any_key_is_known_by_its_content(submit: Submit) -> None:
    bare = HEAD + "\r\nhi\r\n"

    first = await submit.send(bare)
    again = await submit.send(bare)

    assert first.endswith("; warning=derived_key")
    assert again.startswith(f"250 2.0.0 already accepted as {request_of(first)}")


async def test_a_refused_mail_does_not_use_up_its_key(submit: Submit) -> None:
    lease = await submit.door.world.lease("b")

    refused = await submit.send()
    await submit.door.world.release(lease.id)
    taken = await submit.send()

    assert refused.startswith("450 4.7.1 lease_conflict")
    assert taken.startswith("250 2.0.0 accepted as ")


async def test_a_request_over_http_is_known_over_smtp(submit_both: Submit) -> None:
    sent = await submit_both.door.accepted(from_=BOXES[0])
    reply = await submit_both.send(a_mail("X-Gateway-Idempotency-Key: once"))

    assert reply.startswith(f"250 2.0.0 already accepted as {sent['requestId']}; status=queued")


# --- the other headers ------------------------------------------------------------------------------------------------


async def test_no_order_is_ever_relayed(submit: Submit) -> None:
    orders = [
        "X-Gateway-Idempotency-Key: k",
        "x-gateway-kind: reply",
        "X-GATEWAY-Campaign-Action: spring,\r\n\tand more",
        "X-Gateway-Agent: a",
        "X-Gateway-Dry-Run: false",
    ]
    reply = await submit.send(a_mail(*orders))

    record = submit.door.world.record(request_of(reply))
    assert (record.kind, record.campaign, record.idempotency_key) == ("reply", "spring, and more", "k")
    assert b"x-gateway" not in submit.body_of(reply).lower()
    assert b"and more" not in submit.body_of(reply)


@pytest.mark.parametrize(
    "header",
    [
        "X-Gateway-Decision: allow",
        "X-Gateway-Idempotence-Key: slip",
        "X-Fencing-Token: 1",
    ],
)
async def test_a_name_that_is_no_order_is_refused(submit: Submit, header: str) -> None:
    name = header.partition(":")[0].lower()

    assert (await submit.send(a_mail(header))).startswith(f"554 5.6.0 invalid_message; field={name}; ")


@pytest.mark.parametrize(
    "header",
    [
        "X-Gateway-Kind: bulk",
        "X-Gateway-Not-Before: tomorrow",
        "X-Gateway-Not-Before: 2099-01-01T00:00:00Z",
        "X-Gateway-Idempotency-Key: two words",
        "X-Gateway-Idempotency-Key:",
        "X-Gateway-Dry-Run: perhaps",
        "X-Gateway-Campaign-Action:",
        "X-Gateway-Require-Consensus-Id: two words",
        "X-Gateway-Agent:",
        "X-Gateway-Fencing-Token: -1",
        "X-Gateway-Fencing-Token: 9999999999999999999",
        "X-Gateway-Fencing-Token: odd@odd@example.net=1",
        "X-Gateway-Fencing-Token: cee@example.net=1",
        "X-Gateway-Fencing-Token: pat@example.net=1, pat@EXAMPLE.net=2",
        "X-Gateway-Kind: reply\r\nX-Gateway-Kind: outreach",
    ],
)
async def test_an_order_that_cannot_be_obeyed_is_refused_by_name(submit: Submit, header: str) -> None:
    reply = await submit.send(a_mail(header))

    assert reply.startswith("554 5.6.0 invalid_message; field=")
    assert header.partition(":")[0].removeprefix("X-Gateway-") in reply or "fencingTokens" in reply
    assert submit.door.world.rows_of(sends) == []


async def test_a_token_of_the_live_lease_sends_and_an_older_one_does_not(submit: Submit) -> None:
    world = submit.door.world
    old = await world.lease("a")
    await world.release(old.id)
    lease = await world.lease("a")

    stale = await submit.send(a_mail(f"X-Gateway-Fencing-Token: {old.token}"))
    taken = await submit.send(a_mail(f"X-Gateway-Fencing-Token: {lease.token}", message_id="two"))

    assert stale.startswith("550 5.7.1 stale_fencing_token; ")
    assert world.record(request_of(taken)).tokens == {PAT: lease.token}


async def test_a_consensus_that_is_pending_holds_the_mail_and_one_that_nobody_knows_refuses_it(
    submit_both: Submit,
) -> None:
    world = submit_both.door.world
    vote = await world.propose()

    held = await submit_both.send(a_mail(f"X-Gateway-Require-Consensus-Id: {vote.id}"))
    refused = await submit_both.send(a_mail("X-Gateway-Require-Consensus-Id: nobody's", message_id="two"))

    assert held.startswith("250 2.0.0 held as ")
    assert "consensus_pending" in held
    assert refused.startswith("550 5.7.1 consensus_required; ")
    assert b"consensus" not in submit_both.body_of(held).lower()


async def test_tokens_for_several_people_name_them(submit: Submit) -> None:
    world = submit.door.world
    tokens = {person: (await world.lease("a", person)).token for person in (PAT, BEE)}
    header = ", ".join(f"{person}={token}" for person, token in tokens.items())

    lone = await submit.send(a_mail("X-Gateway-Fencing-Token: 1", f"Cc: {BEE}", head=HEAD), ("dee@example.net", BEE))
    taken = await submit.send(a_mail(f"X-Gateway-Fencing-Token: {header}", message_id="two"), (PAT, BEE))

    assert lone.startswith("554 5.6.0 invalid_message; field=X-Gateway-Fencing-Token; ")
    assert world.record(request_of(taken)).tokens == tokens


async def test_a_mail_names_its_agent_as_over_http(submit: Submit) -> None:
    agent = submit.door.world.agent
    async with submit.session("free", name=submit.key("free")[:16]) as client:
        named = await client.send(a_mail("X-Gateway-Agent: c"))
        bound = await client.send(a_mail("X-Gateway-Agent: b", message_id="two"))
        nobody = await client.send(a_mail("X-Gateway-Agent: nobody", message_id="three"))
    mismatch = await submit.send(a_mail(f"X-Gateway-Agent: {agent['b']}", message_id="four"))

    assert submit.door.world.record(request_of(named)).agent == agent["c"]
    assert bound.startswith("550 5.7.1 agent_bound_to_key; ")
    assert nobody.startswith("550 5.7.1 agent_not_found; ")
    assert mismatch.startswith("550 5.7.1 agent_mismatch; ")


async def test_a_mail_for_later_waits(submit: Submit) -> None:
    from datetime import UTC, datetime, timedelta

    later = (datetime.now(UTC) + timedelta(days=30)).isoformat(timespec="seconds").replace("+00:00", "Z")

    reply = await submit.send(a_mail(f"X-Gateway-Not-Before: {later}"))

    assert reply.startswith("250 2.0.0 scheduled as req_")
    assert reply.endswith(f"; at={later}")


async def test_a_dry_run_says_what_would_be_and_writes_nothing(submit_both: Submit) -> None:
    world = submit_both.door.world
    before = world.rows()

    would = await submit_both.send(a_mail("X-Gateway-Dry-Run: true"))
    after = world.rows()
    await world.lease("b")
    would_not = await submit_both.send(a_mail("X-Gateway-Dry-Run: TRUE"))

    assert would == "250 2.0.0 would_send"
    assert after["sends"] == before["sends"] == []
    assert after["decisions"] == before["decisions"] == []
    assert would_not.startswith(f"450 4.7.1 lease_conflict; recipient={PAT}; ")
    assert "req_" not in would_not
    assert world.rows_of(sends) == []


async def test_a_transactional_mail_needs_leave(submit: Submit) -> None:
    submit.door.add_key("receipts", transactional=True)
    mail = a_mail("X-Gateway-Kind: transactional")

    assert (await submit.send(mail)).startswith("550 5.7.1 sender_not_allowed; ")
    async with submit.session("receipts", name=submit.key("receipts")[:16]) as client:
        assert (await client.send(mail)).startswith("250 2.0.0 accepted as ")


async def test_a_raw_message_over_http_may_not_give_orders(submit: Submit) -> None:
    raw = a_send(rawMessage=b64(a_mail("X-Gateway-Kind: reply")), subject=..., text=...)

    body = (await submit.door.post(SEND, raw)).json()

    assert body["reason"] == "invalid_message"
