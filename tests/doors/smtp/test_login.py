"""Who may submit: a login under TLS with the agent's name or the key's prefix, or a network that an operator trusts."""

import asyncio
import logging
from base64 import b64encode

import pytest

from gateway.doors.lockout import Lockout
from gateway.doors.smtp import Limits
from gateway.doors.smtp.house import read_trust
from gateway.store import keys
from tests.doors.door import Clock, Door
from tests.doors.smtp.line import Submit, a_mail, a_submit, request_of
from tests.world import BOXES, TENANT


def b64(text: str) -> str:
    return b64encode(text.encode()).decode()


async def test_auth_is_neither_offered_nor_taken_in_plain_text(submit: Submit) -> None:
    async with submit.talk() as client:
        offers = await client.ehlo()
        reply = await client.log_in("a", submit.key())

    assert "STARTTLS" in offers
    assert "AUTH" not in offers
    assert reply.startswith("538 5.7.11 ")


async def test_auth_is_offered_on_both_ports_under_tls(submit: Submit) -> None:
    async with submit.talk(secure=True) as client:
        implicit = await client.ehlo()
    async with submit.talk() as client:
        await client.ehlo()
        await client.say("STARTTLS")
        await client.upgrade()
        explicit = await client.ehlo()

    for offers in (implicit, explicit):
        assert "AUTH PLAIN LOGIN" in offers
        assert "STARTTLS" not in offers


async def test_a_mail_needs_a_login(submit: Submit) -> None:
    async with submit.talk(secure=True) as client:
        before = await client.say(f"MAIL FROM:<{BOXES[0]}>")
        await client.ehlo()
        after = await client.say(f"MAIL FROM:<{BOXES[0]}>")

    assert before.startswith("503 5.5.1 ")
    assert after.startswith("530 5.7.0 ")


@pytest.mark.parametrize("name", ["a", "prefix"])
@pytest.mark.parametrize("mechanism", ["plain", "plain-asked", "login", "login-named"])
async def test_name_and_key_come_by_each_mechanism(submit: Submit, name: str, mechanism: str) -> None:
    key = submit.key()
    who = key[: keys.PREFIX_LENGTH] if name == "prefix" else name
    async with submit.talk(secure=True) as client:
        await client.ehlo()
        if mechanism == "plain":
            reply = await client.say(f"auth plain {b64(f'{chr(0)}{who}{chr(0)}{key}')}")
        elif mechanism == "plain-asked":
            assert await client.say("AUTH PLAIN") == "334 "
            reply = await client.say(b64(f"{who}\0{who}\0{key}"))
        else:
            asked = await client.say("AUTH LOGIN" if mechanism == "login" else f"AUTH LOGIN {b64(who)}")
            if mechanism == "login":
                assert asked == "334 VXNlcm5hbWU6"
                asked = await client.say(b64(who))
            assert asked == "334 UGFzc3dvcmQ6"
            reply = await client.say(b64(key))
        sent = await client.send()

    assert reply.startswith("235 2.7.0 ")
    assert submit.door.world.record(request_of(sent)).agent == submit.door.world.agent["a"]


async def test_whatever_is_wrong_with_a_login_the_answer_is_the_same(submit: Submit) -> None:
    submit.door.add_key("reader", scopes=frozenset({"read"}))
    revoked = submit.door.add_key("revoked")
    submit.door.world.store.write((TENANT,), lambda tx: keys.revoke_key(tx, TENANT, submit.door.ids["revoked"]))
    good = submit.key()
    wrong = [
        ("a", "gk_live_" + "x" * 43),
        ("a", "nothing like a key"),
        ("b", good),
        ("nobody", good),
        ("", good),
        ("a", ""),
        (submit.key("b")[: keys.PREFIX_LENGTH], good),
        ("reader", submit.key("reader")),
        (submit.key("reader")[: keys.PREFIX_LENGTH], submit.key("reader")),
        (revoked[: keys.PREFIX_LENGTH], revoked),
    ]
    replies = []
    for name, key in wrong:
        submit.house.lockout = Lockout(pause=0.0)
        async with submit.talk(secure=True) as client:
            await client.ehlo()
            replies.append(await client.log_in(name, key))

    assert set(replies) == {"535 5.7.8 the login is not valid"}


async def test_a_key_without_an_agent_acts_as_the_agent_that_it_names(submit: Submit) -> None:
    async with submit.session("free", name="c") as client:
        named = await client.send()
    async with submit.talk(secure=True) as client:
        await client.ehlo()
        bound = await client.log_in("b", submit.key("free"))

    assert submit.door.world.record(request_of(named)).agent == submit.door.world.agent["c"]
    assert bound.startswith("535 ")  # another key is bound to that agent


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("AUTH", "504 5.5.4"),
        ("AUTH CRAM-MD5", "504 5.5.4"),
        ("AUTH PLAIN not*base64", "501 5.5.2"),
        ("AUTH PLAIN =", "501 5.5.2"),
        (f"AUTH PLAIN {b64('only-one-part')}", "501 5.5.2"),
    ],
)
async def test_a_login_that_cannot_be_read_is_refused(submit: Submit, said: str, code: str) -> None:
    async with submit.talk(secure=True) as client:
        await client.ehlo()

        assert (await client.say(said)).startswith(code)
        assert (await client.log_in("a", submit.key())).startswith("235 ")


async def test_a_login_can_be_taken_back_and_comes_only_once(submit: Submit) -> None:
    async with submit.talk(secure=True) as client:
        early = await client.say("AUTH PLAIN")
        await client.ehlo()
        await client.say("AUTH LOGIN")
        back = await client.say("*")
        first = await client.log_in("a", submit.key())
        again = await client.log_in("a", submit.key())

    assert early.startswith("503 ")
    assert back.startswith("501 5.7.0 ")
    assert first.startswith("235 ")
    assert again.startswith("503 5.5.1 ")


async def test_nobody_acts_for_another(submit: Submit) -> None:
    async with submit.talk(secure=True) as client:
        await client.ehlo()

        assert (await client.say(f"AUTH PLAIN {b64(f'b{chr(0)}a{chr(0)}{submit.key()}')}")).startswith("535 ")


async def test_a_session_that_fails_too_often_is_ended(wire: Door) -> None:
    async with a_submit(wire, Limits(logins=2)) as submit, submit.talk(secure=True) as client:
        await client.ehlo()
        first = await client.log_in("a", "wrong")
        second = await client.log_in("a", "wrong")

        assert first.startswith("535 ")
        assert second.startswith("421 4.7.0 ")
        assert await client.reply() == ""


async def test_an_address_is_locked_out_after_too_many_failures(submit: Submit) -> None:
    submit.house.lockout = Lockout(tries=2, pause=0.0, clock=(clock := Clock()))
    for _ in range(2):
        async with submit.talk(secure=True) as client:
            await client.ehlo()
            await client.log_in("a", "wrong")

    async with submit.talk(secure=True) as client:
        await client.ehlo()
        locked = await client.log_in("b", submit.key("b"))
    clock.now += 601
    async with submit.session("b") as client:
        later = await client.say("NOOP")

    assert locked.startswith("421 4.7.0 ")
    assert later.startswith("250 ")


async def test_no_key_is_ever_logged(submit: Submit, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with submit.session() as client:
        await client.send()
    async with submit.talk(secure=True) as client:
        await client.ehlo()
        await client.log_in("a", secret := "gk_live_" + "S" * 43)

    assert submit.key() not in caplog.text
    assert b64(f"\0a\0{submit.key()}") not in caplog.text
    assert secret not in caplog.text


async def test_a_revoked_key_sends_nothing_more_in_an_open_session(submit: Submit) -> None:
    async with submit.session() as client:
        submit.door.world.store.write((TENANT,), lambda tx: keys.revoke_key(tx, TENANT, submit.door.ids["a"]))
        submit.door.context.auth.forget()

        assert (await client.say(f"MAIL FROM:<{BOXES[0]}>")).startswith("550 5.7.1 ")


# --- networks that are trusted ----------------------------------------------------------------------------------------


async def test_a_trusted_network_sends_as_its_agent_without_a_login(wire: Door) -> None:
    async with a_submit(wire, smtp_trust=("127.0.0.0/8=b",)) as submit, submit.talk() as client:
        offers = await client.ehlo()
        reply = await client.send()
        other = await client.send(a_mail("X-Gateway-Agent: a", message_id="two"), ("bee@example.net",))

    record = wire.world.record(request_of(reply))
    assert "AUTH PLAIN LOGIN" in offers
    assert (record.agent, record.key_id, record.door) == (wire.world.agent["b"], None, "smtp")
    assert other.startswith("550 5.7.1 agent_mismatch")


async def test_a_network_that_is_not_trusted_is_not(wire: Door) -> None:
    async with a_submit(wire, smtp_trust=("192.0.2.0/24=b", "2001:db8::/32=b")) as submit, submit.talk() as client:
        await client.ehlo()

        assert (await client.say(f"MAIL FROM:<{BOXES[0]}>")).startswith("530 5.7.0 ")


async def test_who_logs_in_within_a_trusted_network_is_who_he_says(wire: Door) -> None:
    async with a_submit(wire, smtp_trust=("127.0.0.1/32=b",)) as submit, submit.talk() as client:
        await client.ehlo()
        assert (await client.log_in("a", submit.key())).startswith("235 ")
        reply = await client.send()

    assert wire.world.record(request_of(reply)).agent == wire.world.agent["a"]


async def test_a_trusted_network_without_its_agent_sends_nothing(wire: Door) -> None:
    async with a_submit(wire, smtp_trust=("127.0.0.0/8=nobody",)) as submit, submit.talk() as client:
        await client.ehlo()

        assert (await client.say(f"MAIL FROM:<{BOXES[0]}>")).startswith("550 5.7.1 agent_not_found")


@pytest.mark.parametrize("word", ["10.0.0.0/8", "=a", "10.0.0.1/8=a", "gw.example.com=a", "10.0.0.0/8="])
def test_a_trusted_network_that_cannot_be_read_is_named(word: str) -> None:
    with pytest.raises(ValueError, match=r"^SMTP_TRUST: [^\n]+$"):
        read_trust((word,))


async def test_the_narrowest_network_counts(wire: Door) -> None:
    async with a_submit(wire, smtp_trust=("0.0.0.0/0=a", "127.0.0.0/8=b", "::/0=c")) as submit:
        house = submit.house

        assert [house.trusted(address) for address in ("127.0.0.1", "192.0.2.1", "::1", "::ffff:127.0.0.9", "?")] == [
            "b",
            "a",
            "c",
            "b",
            "",
        ]


# --- lock-out ---------------------------------------------------------------------------------------------------------


def test_failures_of_one_address_are_answered_later_and_later() -> None:
    lockout = Lockout(pause=0.5, pause_max=3.0, clock=Clock())

    assert [lockout.failed("192.0.2.1", "a") for _ in range(4)] == [0.5, 1.0, 2.0, 3.0]
    assert lockout.failed("192.0.2.2", "a") == 0.5


def test_a_name_that_many_addresses_fail_with_is_locked_but_for_those_who_know_it() -> None:
    lockout = Lockout(tries=2, clock=(clock := Clock()))
    lockout.passed("192.0.2.1", "a")
    for number in range(20):
        lockout.failed(f"198.51.100.{number}", "A")

    assert lockout.locked("203.0.113.1", "a")
    assert not lockout.locked("192.0.2.1", "a")
    assert not lockout.locked("203.0.113.1", "b")
    clock.now += 601
    assert not lockout.locked("203.0.113.1", "a")


def test_addresses_of_one_ipv6_site_are_one() -> None:
    lockout = Lockout(tries=2, clock=Clock())
    for number in range(2):
        lockout.failed(f"2001:db8::{number + 1}", f"name-{number}")

    assert lockout.locked("2001:db8::ffff", "a")
    assert not lockout.locked("2001:db8:0:1::1", "a")


def test_a_lockout_keeps_no_more_than_it_must(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.doors.lockout.KEPT_MAX", 4)
    lockout = Lockout(clock=Clock())
    for number in range(50):
        lockout.failed(f"192.0.2.{number}", f"name-{number}")

    assert len(lockout._failed) == 4


async def test_many_logins_at_once_are_all_answered(submit: Submit) -> None:
    async def one(number: int) -> str:
        async with submit.session() as client:
            return await client.send(a_mail(message_id=f"m{number}"), (f"pat{number}@example.net",))

    replies = await asyncio.gather(*(one(number) for number in range(20)))

    assert all(reply.startswith("250 2.0.0 accepted as ") for reply in replies), replies
