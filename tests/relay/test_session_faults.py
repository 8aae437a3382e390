"""Faults of the session between two servers: they are no fault of a mail, which waits for them to be mended."""

from pathlib import Path

import pytest

from gateway.core.delivery import Bounced, Deferred, Relayed
from gateway.relay.attempt import verdict
from gateway.relay.wire import Offers
from tests.relay.ends import ends, every_way, outgoing, serial

FAULTS = [
    "503 5.5.1 out of order",
    "530 5.7.0 Authentication required",
    "534 5.7.9 this mechanism is too weak",
    "535 5.7.8 who?",
    "538 5.7.11 TLS first",
]
either = pytest.mark.parametrize("pipelined", [True, False])


@either
@pytest.mark.parametrize("said", FAULTS)
@pytest.mark.parametrize("stage", ["MAIL", "RCPT", "DATA"])
async def test_a_fault_of_the_session_defers_and_ends_it(
    tmp_path: Path, stage: str, said: str, pipelined: bool
) -> None:
    script = f'{stage} ONCE "{said}"'
    async with ends(tmp_path, script=script if pipelined else serial() + script) as both:
        outcome = await both.attempt()
        assert isinstance(outcome, Deferred)
        assert (outcome.why, outcome.counts) == (f"{said[:3]} to {stage}", True)
        assert outcome.reply is not None
        assert outcome.reply.enhanced == said.split()[1]
        assert both.pool.resting == 0
        assert (both.asked, both.sink.dots) == (0, 0)

        assert isinstance(await both.attempt(), Relayed)
        assert both.sink.sessions == 2


@every_way
@either
@pytest.mark.parametrize("said", FAULTS)
async def test_a_kept_connection_that_has_lost_its_session_is_left_for_a_new_one(
    tmp_path: Path, way: str, said: str, pipelined: bool
) -> None:
    script = ("" if pipelined else serial(way)) + f'SESSION 1\nMAIL 2+ "{said}"'
    async with ends(tmp_path, way, script) as both:
        outcomes = [await both.attempt() for _ in range(2)]

        assert [type(outcome) for outcome in outcomes] == [Relayed, Relayed]
        assert (both.sink.sessions, both.asked, len(both.sink.mails)) == (2, 2, 2)


async def test_a_server_that_demands_a_login_of_everybody_is_asked_once_by_each_attempt(tmp_path: Path) -> None:
    async with ends(tmp_path, script='MAIL "530 5.7.0 Authentication required"') as both:
        outcomes = [await both.attempt() for _ in range(3)]

        assert [type(outcome) for outcome in outcomes] == [Deferred] * 3
        assert both.sink.sessions == 3


@either
@pytest.mark.parametrize(
    ("script", "why"),
    [
        ('MAIL "550 5.7.1 sender refused"\nRCPT "503 5.5.1 MAIL first"\nDATA "503 5.5.1 RCPT first"', "550 to MAIL"),
        ('RCPT "550 5.1.1 no such user"\nDATA "503 5.5.1 RCPT first"', "550 to RCPT"),
    ],
)
async def test_what_follows_from_a_refusal_does_not_soften_it(
    tmp_path: Path, script: str, why: str, pipelined: bool
) -> None:
    async with ends(tmp_path, script=script if pipelined else serial() + script) as both:
        outcome = await both.attempt()

    assert isinstance(outcome, Bounced)
    assert outcome.why == why


@pytest.mark.parametrize("said", FAULTS)
async def test_a_no_to_the_dot_is_about_the_mail(tmp_path: Path, said: str) -> None:
    async with ends(tmp_path, script=f'DOT "{said}"') as both:
        outcome = await both.attempt()

    assert isinstance(outcome, Bounced)
    assert outcome.reply is not None
    assert outcome == verdict(outcome.reply, "dot")


WIDE = outgoing(recipient="jörg@example.net")


@every_way
@pytest.mark.parametrize("said", ["421 4.3.2 busy", "450 4.7.0 later", "451 4.3.0 local error", "454 4.7.0 not now"])
async def test_a_temporary_no_to_ehlo_defers_also_what_needs_an_extension(tmp_path: Path, way: str, said: str) -> None:
    async with ends(tmp_path, way, f'EHLO ONCE "{said}"') as both:
        outcome = await both.attempt(WIDE)

        assert isinstance(outcome, Deferred)
        assert outcome.reply is not None
        assert outcome.reply.code == int(said[:3])
        assert not [command for command in both.sink.commands if command.startswith(("HELO", "MAIL"))]
        assert isinstance(await both.attempt(WIDE), Relayed)


@pytest.mark.parametrize("said", ["550 5.7.1 not you", "554 5.7.1 no", "501 5.5.4 what a name", "252 what?"])
async def test_a_no_to_us_is_no_lack_of_extensions(tmp_path: Path, said: str) -> None:
    async with ends(tmp_path, script=f'EHLO ONCE "{said}"') as both:
        outcome = await both.attempt(WIDE)

        assert isinstance(outcome, Deferred)
        assert outcome.why.endswith(f"answered {said[:3]} to EHLO")
        assert not [command for command in both.sink.commands if command.startswith("HELO")]
        assert isinstance(await both.attempt(WIDE), Relayed)


@pytest.mark.parametrize("said", ["500 5.5.2 what?", "502 5.5.1 only HELO here", "504 5.5.4 not implemented"])
async def test_a_server_that_does_not_know_ehlo_is_greeted_with_helo(tmp_path: Path, said: str) -> None:
    async with ends(tmp_path, script=f'EHLO 1 "{said}"\nEHLO 2 "250 up"') as both:
        assert isinstance(await both.attempt(), Relayed)
        wire = await both.pool.acquire()
        both.pool.release(wire)

    assert wire.offers == Offers()
    assert both.sink.commands[1] == "HELO gw.example.com"
