"""Connections that are kept: when they are used again, and that a dead one costs nobody a mail."""

import asyncio
from pathlib import Path

import pytest

from gateway.core.delivery import Bounced, Deferred, GivenBack, Relayed
from gateway.relay.pool import Closing
from gateway.relay.smarthost import Unreachable
from tests.relay.ends import ends, every_way, outgoing, serial
from tests.smtp import FIXTURES


@every_way
async def test_one_connection_carries_one_mail_after_the_other(tmp_path: Path, way: str) -> None:
    async with ends(tmp_path, way) as both:
        outcomes = [await both.attempt() for _ in range(5)]

    assert [type(outcome) for outcome in outcomes] == [Relayed] * 5
    assert both.sink.sessions == 1
    assert "RSET" not in both.sink.commands


async def test_mails_at_the_same_time_take_connections_of_their_own(tmp_path: Path) -> None:
    async with ends(tmp_path) as both:
        outcomes = await asyncio.gather(*(both.attempt() for _ in range(4)))

        assert [type(outcome) for outcome in outcomes] == [Relayed] * 4
        assert (both.sink.sessions, both.pool.resting) == (4, 4)


@pytest.mark.parametrize("script", ['RCPT ONCE "550 5.1.1 gone"', 'MAIL ONCE "451 later"', FIXTURES / "data-later.txt"])
async def test_after_a_refusal_the_connection_is_used_again_behind_a_reset(
    tmp_path: Path, script: str | Path | None
) -> None:
    async with ends(tmp_path, script=script) as both:
        first = await both.attempt(outgoing(recipient="gone@example.com"))
        second = await both.attempt(outgoing(recipient="two@example.com"))

    assert isinstance(first, Bounced | Deferred)
    assert isinstance(second, Relayed)
    assert [mail.recipients for mail in both.sink.mails] == [("two@example.com",)]
    assert both.sink.sessions == 1
    assert both.sink.commands.count("RSET") == 1


@pytest.mark.parametrize("acts", ['"421 4.3.2 going"', '"500 what?"', "DROP", "HANG"])
async def test_a_connection_that_does_not_reset_is_not_used_again(tmp_path: Path, acts: str) -> None:
    script = f'RCPT ONCE "550 5.1.1 gone"\nRSET {acts}'
    async with ends(tmp_path, script=script, command_timeout=0.2) as both:
        await both.attempt(outgoing(recipient="gone@example.com"))

        assert isinstance(await both.attempt(), Relayed)
        assert both.sink.sessions == 2


@every_way
@pytest.mark.parametrize("last", ["421 4.4.2 idle for too long", ""])
async def test_a_resting_connection_that_was_closed_is_replaced_without_a_word(
    tmp_path: Path, way: str, last: str
) -> None:
    async with ends(tmp_path, way) as both:
        await both.attempt()
        both.sink.hang_up(last)

        assert isinstance(await both.attempt(), Relayed)
        assert (both.sink.sessions, len(both.sink.mails), both.asked) == (2, 2, 2)


@every_way
@pytest.mark.parametrize("pipelined", [True, False])
@pytest.mark.parametrize("acts", ['"421 4.4.2 idle for too long"', "DROP", "RESET"])
async def test_a_close_that_crosses_our_mail_on_the_way_is_no_news_either(
    tmp_path: Path, way: str, acts: str, pipelined: bool
) -> None:
    async with ends(tmp_path, way, f"{'' if pipelined else serial(way)}SESSION 1\nMAIL 2 {acts}") as both:
        await both.attempt()

        assert isinstance(await both.attempt(), Relayed)
        assert (both.sink.sessions, len(both.sink.mails), both.asked) == (2, 2, 2)


async def test_a_421_on_a_new_connection_is_news(tmp_path: Path) -> None:
    async with ends(tmp_path, script='MAIL "421 4.3.2 no"') as both:
        assert isinstance(await both.attempt(), Deferred)
        assert both.sink.sessions == 1


async def test_a_421_to_a_recipient_is_news_also_on_a_kept_connection(tmp_path: Path) -> None:
    async with ends(tmp_path, script='RCPT <later@example.com> "421 4.7.0 unexpected volume"') as both:
        await both.attempt()
        outcome = await both.attempt(outgoing(recipient="later@example.com"))

    assert isinstance(outcome, Deferred)
    assert outcome.counts
    assert both.sink.sessions == 1


async def test_many_dead_connections_are_one_new_one(tmp_path: Path) -> None:
    async with ends(tmp_path) as both:
        await asyncio.gather(*(both.attempt() for _ in range(3)))
        both.sink.hang_up("421 4.3.2 restarting")

        assert isinstance(await both.attempt(), Relayed)
        assert (both.sink.sessions, both.pool.resting) == (4, 1)


async def test_a_dead_connection_and_no_new_one_is_news(tmp_path: Path) -> None:
    async with ends(tmp_path, script='SESSION 2+\nBANNER "421 4.3.2 restarting"') as both:
        await both.attempt()
        both.sink.hang_up()
        outcome = await both.attempt()

    assert isinstance(outcome, Deferred)
    assert not outcome.counts


async def test_a_connection_is_closed_with_quit_after_its_last_mail(tmp_path: Path) -> None:
    async with ends(tmp_path, max_uses=2) as both:
        for _ in range(3):
            await both.attempt()
        await both.sink.until(lambda: both.sink.connected == 1)

        assert both.sink.sessions == 2
        assert both.sink.commands.count("QUIT") == 1


async def test_a_connection_that_rested_too_long_is_closed_with_quit(tmp_path: Path) -> None:
    async with ends(tmp_path, idle=0.05) as both:
        await asyncio.gather(both.attempt(), both.attempt())
        await both.sink.until(lambda: both.sink.connected == 0)

        assert both.pool.resting == 0
        assert both.sink.commands.count("QUIT") == 2


async def test_connections_that_rest_since_different_times_are_all_closed_in_time(tmp_path: Path) -> None:
    async with ends(tmp_path, idle=0.1) as both:
        first, second = await both.pool.acquire(), await both.pool.acquire()
        both.pool.release(first)
        asyncio.get_running_loop().call_later(0.05, both.pool.release, second)
        await both.sink.until(lambda: both.sink.connected == 0)

        assert both.sink.commands.count("QUIT") == 2


async def test_a_connection_that_rested_too_long_is_not_used_even_before_it_is_swept(tmp_path: Path) -> None:
    async with ends(tmp_path, idle=-1.0) as both:
        wire = await both.pool.acquire()
        both.pool.release(wire)
        again = await both.pool.acquire()

        assert again is not wire
        both.pool.release(again)


@every_way
async def test_the_end_says_quit_and_gives_out_no_more(tmp_path: Path, way: str) -> None:
    async with ends(tmp_path, way) as both:
        await both.attempt()
        await both.pool.aclose()
        await both.sink.until(lambda: both.sink.connected == 0)

        assert both.sink.commands[-1] == "QUIT"
        assert await both.attempt() == GivenBack("stopping")


@every_way
async def test_the_end_does_not_wait_for_a_server_that_hangs(tmp_path: Path, way: str) -> None:
    async with ends(tmp_path, way, "QUIT WAIT") as both:
        await both.attempt()
        await asyncio.wait_for(both.pool.aclose(grace=0.05), 2.0)

        assert both.pool.resting == 0


async def test_the_end_lets_a_mail_under_way_come_to_its_own_end(tmp_path: Path) -> None:
    async with ends(tmp_path) as both:

        async def permit() -> None:
            await both.pool.aclose()

        assert isinstance(await both.attempt(permit=permit), Relayed)
        await both.sink.until(lambda: both.sink.connected == 0)


async def test_the_end_cuts_lines_that_linger(tmp_path: Path) -> None:
    async with ends(tmp_path, script="DOT HANG", reply_timeout=0.05) as both:
        await both.attempt(wants_late=True)
        assert both.sink.connected == 1
        await both.pool.aclose()
        await both.sink.until(lambda: both.sink.connected == 0)


async def test_a_connection_that_opens_while_the_pool_ends_is_not_given_out(tmp_path: Path) -> None:
    async with ends(tmp_path, script="BANNER WAIT") as both:
        task = asyncio.create_task(both.pool.acquire())
        await both.sink.until(lambda: both.sink.waiting == 1)
        await both.pool.aclose()
        both.sink.go()

        with pytest.raises(Closing):
            await task


async def test_a_pool_without_a_smarthost_says_so(tmp_path: Path) -> None:
    async with ends(tmp_path) as both:
        pool = both.pool
    with pytest.raises(Closing):
        await pool.acquire()
    async with ends(tmp_path) as both:
        await both.sink.__aexit__()
        with pytest.raises(Unreachable, match="no connection to smtp://127"):
            await both.pool.acquire()


async def test_a_connection_is_not_forgotten_when_its_taker_is_cancelled(tmp_path: Path) -> None:
    async with ends(tmp_path, script='RCPT ONCE "550 5.1.1 gone"\nRSET HANG') as both:
        await both.attempt(outgoing(recipient="gone@example.com"))
        task = asyncio.create_task(both.pool.acquire())
        await both.sink.until(lambda: "RSET" in both.sink.commands)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await both.sink.until(lambda: both.sink.connected == 0)
