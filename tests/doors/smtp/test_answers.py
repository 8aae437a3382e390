"""What is decided over SMTP and in which words: recipients at RCPT, all else at the end of DATA, all or nothing."""

import asyncio
import re

import pytest

from gateway.core.errors import StoreUnavailableError
from gateway.core.record import Receipt
from gateway.core.verdict import HOLD
from gateway.doors.smtp import Limits
from gateway.intake.walk import Ticket
from gateway.store.schema import sends
from policies import reasons
from tests.databases import SqliteFiles
from tests.doors.door import Door, a_door
from tests.doors.smtp.line import HEAD, Submit, a_mail, a_submit, request_of
from tests.world import BOXES, PAT, TENANT, a_world


async def test_a_mail_that_is_taken_names_its_request(submit_both: Submit) -> None:
    reply = await submit_both.send()

    record = submit_both.door.world.record(request_of(reply))
    assert re.fullmatch(r"250 2\.0\.0 accepted as req_[a-z0-9]+", reply)
    assert (record.tenant, record.door, record.reverse_path) == (TENANT, "smtp", BOXES[0])
    assert [d.address for d in record.deliveries] == [PAT]


async def test_a_lease_of_another_agent_is_a_conflict_that_names_holder_and_end(submit_both: Submit) -> None:
    world = submit_both.door.world
    await world.lease("b")

    reply = await submit_both.send()

    holder = world.agent["b"]
    assert re.match(
        rf"450 4\.7\.1 lease_conflict; recipient={PAT}; holder={holder}; kind=lease; until=2026-\S+Z; ", reply
    )
    assert reply.endswith("stop; wait for release or hand off")
    assert len(world.record(re.search(r"request=(req_\w+)", reply)[1]).deliveries) == 1  # type: ignore[index]


async def test_a_mail_of_another_agent_on_its_way_is_named_and_so_is_the_refused_one(submit: Submit) -> None:
    first = await submit.door.world.send("b")

    reply = await submit.send(a_mail(message_id="two"))

    (line,) = [one for one in reply.split(" / ") if " lease_conflict; " in one]
    names = [part.partition("=")[0] for part in line.split("; ") if "=" in part]
    assert "kind=send; " in line
    assert f"holder_request={first.record.id}; " in line
    assert len(names) == len(set(names))
    (own,) = {row["id"] for row in submit.door.world.rows_of(sends)} - {first.record.id}
    assert re.findall(r"; request=(req_\w+)", reply) == [own]


async def test_several_findings_are_several_lines_the_strictest_first(submit: Submit) -> None:
    await submit.door.world.lease("b")

    reply = await submit.send(HEAD + "Message-ID: <one@gw.example.com>\r\nSubject: twice\r\n\r\nhi\r\n")

    first, second = reply.split(" / ")
    assert first.startswith("554-5.6.0 invalid_message; field=subject; why=may stand only once; ")
    assert second.startswith("554 5.7.1 lease_conflict; ")


async def test_from_and_sender_must_be_the_mailboxs_own(submit: Submit) -> None:
    for wrong in ("From: ceo@gw.example.com\r\n", f"From: {BOXES[0]}\r\nSender: {BOXES[1]}\r\n"):
        reply = await submit.send(wrong + f"To: {PAT}\r\nMessage-ID: <{len(wrong)}@gw.example.com>\r\n\r\nhi\r\n")

        assert reply.startswith("550 5.7.1 sender_not_allowed; From and Sender must be the mailbox's own address; ")


@pytest.mark.parametrize("sender", ["", "ceo@gw.example.com", "agent@elsewhere.example.com", "agent"])
async def test_the_reverse_path_must_be_an_own_mailbox(submit: Submit, sender: str) -> None:
    async with submit.session() as client:
        assert (await client.say(f"MAIL FROM:<{sender}>")).startswith("550 5.7.1 sender_not_allowed; field=MAIL FROM; ")
        assert (await client.say(f"RCPT TO:<{PAT}>")).startswith("503 ")


async def test_a_key_for_some_mailboxes_sends_from_no_other(submit: Submit) -> None:
    desk = submit.door.world.box[BOXES[1]]
    submit.door.add_key("desk", mailboxes=(desk.id,))
    async with submit.session("desk", name=submit.key("desk")[:16]) as client:
        refused = await client.say(f"MAIL FROM:<{BOXES[0]}>")
        own = await client.say(f"MAIL FROM:<{BOXES[1].upper()}>")

    assert refused.startswith("550 5.7.1 sender_not_allowed")
    assert own.startswith("250 2.1.0 ")


# --- recipients -------------------------------------------------------------------------------------------------------


async def test_a_suppressed_recipient_is_refused_at_rcpt_and_the_others_go(submit_both: Submit) -> None:
    world = submit_both.door.world
    await world.suppress(PAT, "unsubscribe")
    async with submit_both.session() as client:
        replies = await client.envelope((PAT, "bee@example.net"))
        reply = await client.content()

    assert replies[0] == (
        f"550 5.7.1 suppressed; recipient={PAT}; scope=tenant; reasonCode=unsubscribe; stop; it binds every agent"
    )
    assert replies[1].startswith("250 2.1.5 ")
    assert [d.address for d in world.record(request_of(reply)).deliveries] == ["bee@example.net"]


async def test_a_suppression_for_a_campaign_is_told_at_the_end_of_data(submit: Submit) -> None:
    await submit.door.world.suppress(PAT, "unsubscribe", campaign="spring")

    assert (await submit.send(a_mail("X-Gateway-Campaign-Action: spring"))).startswith("550 5.7.1 suppressed; ")
    assert (await submit.send(a_mail("X-Gateway-Campaign-Action: autumn", message_id="two"))).startswith("250 ")


async def test_a_suppression_that_comes_between_rcpt_and_data_binds(submit: Submit) -> None:
    async with submit.session() as client:
        await client.envelope()
        await submit.door.world.suppress(PAT)

        assert (await client.content()).startswith("550 5.7.1 suppressed; ")


async def test_more_recipients_than_allowed_are_asked_to_come_in_another_mail(sqlite_files: SqliteFiles) -> None:
    people = tuple(f"pat{number}@example.net" for number in range(4))
    async with (
        a_world(sqlite_files, {"recipient": {"max_recipients": 3}}) as world,
        a_door(world) as door,
        a_submit(door) as submit,
        submit.session() as client,
    ):
        replies = await client.envelope(people)
        first = await client.content()
        second = await client.send(to=people[3:])
        taken = len(world.record(request_of(first)).deliveries)

    assert [reply[:9] for reply in replies] == ["250 2.1.5", "250 2.1.5", "250 2.1.5", "452 4.5.3"]
    assert taken == 3
    assert "accepted as" in second
    assert request_of(first) != request_of(second)


async def test_a_client_that_goes_on_with_recipients_for_ever_is_sent_away(wire: Door) -> None:
    async with a_submit(wire, Limits(offered=3)) as submit, submit.session() as client:
        await submit.door.world.suppress("example.org")
        replies = await client.envelope(tuple(f"pat{number}@example.org" for number in range(4)))

    assert [reply[:3] for reply in replies] == ["550", "550", "550", "421"]


async def test_a_person_offered_twice_is_one_recipient(submit: Submit) -> None:
    reply = await submit.send(to=(PAT, PAT.upper(), PAT))

    assert [d.contact for d in submit.door.world.record(request_of(reply)).deliveries] == [PAT]


@pytest.mark.parametrize(
    "path",
    [
        "<@relay.example.net:pat@example.net>",
        "<@relay.example.net pat@example.net>",
        "<>",
        "<nodomain>",
        "<postmaster>",
        "<a@b@example.net>",
        '<"a b"@example.net>',
        '<"a>"@example.net>',
        "<pat@[192.0.2.1]>",
        "<pat@example.net",
        "pat@example.net",
        "<pat@example.net> <bee@example.net>",
        "<pat@example.net>,<bee@example.net>",
        "<pat@exa\0mple.net>",
        "<pat@example.net\rBcc>",
        "<" + "x" * 65 + "@example.net>",
        "<pat@" + "x." * 150 + "net>",
        "<pät@example.net>",
        "<pat@exämple.net>",
        "<pat@localhost>",
    ],
)
async def test_what_is_no_address_is_refused(submit: Submit, path: str) -> None:
    async with submit.session() as client:
        await client.envelope(())
        reply = await client.say(f"RCPT TO:{path}")
        data = await client.say("DATA")

    assert re.match(r"5\d\d 5\.\d\.\d ", reply), reply
    assert data.startswith("554 5.5.1 ")


async def test_a_refused_recipient_is_not_repeated_in_the_reply(submit: Submit) -> None:
    async with submit.session() as client:
        await client.envelope(())

        assert "odd" not in await client.say("RCPT TO:<odd@odd@example.net>")


async def test_a_store_that_cannot_answer_is_a_temporary_refusal(
    submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise StoreUnavailableError("gone")

    async with submit.session() as client:
        await client.envelope()
        with monkeypatch.context() as patch:
            patch.setattr(submit.house.context.intake, "submit", broken)
            reply = await client.content()
        with monkeypatch.context() as patch:
            patch.setattr(type(submit.house.context.store), "read", broken)
            await client.say("RSET")
            mail = await client.say(f"MAIL FROM:<{BOXES[0]}>")
            rcpt = await client.say(f"RCPT TO:<{PAT}>")
        again = await client.say(f"RCPT TO:<{PAT}>")

    assert reply == "451 4.3.0 store_unavailable; try again later"
    assert mail.startswith("250 ")  # the key was looked up a moment ago
    assert rcpt == "451 4.3.0 store_unavailable; try again later"
    assert again.startswith("250 ")


async def test_a_fault_of_ours_tells_nothing_of_itself(submit: Submit, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret of the house")

    async with submit.session() as client:
        await client.envelope()
        with monkeypatch.context() as patch:
            patch.setattr(submit.house.context.intake, "submit", broken)
            reply = await client.content()
        again = await client.send()

    assert reply == "451 4.3.0 local error; try again later"
    assert again.startswith("250 ")


def test_every_reason_has_the_reply_of_the_table() -> None:
    table = {reason.slug: (reason.code, reason.enhanced) for reason in reasons() if reason.verdict > HOLD}

    assert table["lease_conflict"] == (450, "4.7.1")
    assert table["recipient_not_allowed"] == (550, "5.1.3")
    assert table["invalid_message"] == (554, "5.6.0")
    assert table["message_too_large"] == (552, "5.3.4")
    assert table["cooldown"] == (450, "4.7.1")
    assert table["stale_fencing_token"] == (550, "5.7.1")
    assert table["idempotency_key_reused"] == (554, "5.5.4")
    assert table["policy_error"] == (451, "4.3.0")


async def test_a_client_that_hangs_up_after_the_dot_has_still_handed_in(
    submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    intake = submit.house.context.intake
    real, begun, gate, ended = intake.submit, asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def late(ticket: Ticket) -> Receipt:
        begun.set()
        await gate.wait()
        receipt = await real(ticket)
        ended.set()
        return receipt

    async with submit.session() as client:
        await client.envelope()
        assert (await client.say("DATA")).startswith("354 ")
        with monkeypatch.context() as patch:
            patch.setattr(intake, "submit", late)
            client.writer.write(a_mail().encode() + b".\r\n")
            async with asyncio.timeout(5):
                await begun.wait()
            client.writer.transport.abort()
            await submit.empty()
        gate.set()
        async with asyncio.timeout(5):
            await ended.wait()

    again = await submit.send()

    assert "already accepted as req_" in again
    assert [row["idem_key"][:11] for row in submit.door.world.rows_of(sends)] == ["message-id:"]
