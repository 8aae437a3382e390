"""The wire itself: nothing arrives unasked, what was not sent is told from what may have been."""

import asyncio
from pathlib import Path

import pytest

from gateway.core.delivery import Reply
from gateway.relay.wire import Lost, NotSent, Wire
from tests.relay.ends import Ends, ends, every_way


async def wire_of(both: Ends) -> Wire:
    return await both.pool.smarthost.connect()


@every_way
async def test_replies_come_in_the_order_of_the_questions(tmp_path: Path, way: str) -> None:
    async with ends(tmp_path, way) as both:
        wire = await wire_of(both)
        futures = wire.ask(b"MAIL FROM:<agent@example.com>\r\nRCPT TO:<pat@example.net>\r\nRSET\r\nNOOP\r\n", 4)

        assert [(await future).enhanced for future in futures] == ["2.1.0", "2.1.5", "2.0.0", "2.0.0"]
        wire.abort()


@every_way
@pytest.mark.parametrize("said", ["250 2.0.0 ok", "421 4.3.2 bye", "hello", "25"])
async def test_what_arrives_unasked_breaks_the_line_for_good(tmp_path: Path, way: str, said: str) -> None:
    async with ends(tmp_path, way) as both:
        wire = await wire_of(both)
        both.sink.hang_up(said)
        await asyncio.wait_for(asyncio.shield(wire.closed), 5)

        assert not wire.alive
        assert wire.broken.startswith(("unasked", "unreadable"))
        assert wire.parting == (Reply(int(said[:3]), said[4:9], said[10:]) if "." in said else None)
        with pytest.raises(NotSent):
            wire.ask(b"NOOP\r\n")
        with pytest.raises(NotSent):
            wire.dot()


@every_way
async def test_a_byte_unasked_is_enough(tmp_path: Path, way: str) -> None:
    async with ends(tmp_path, way, 'RSET RAW "250 ok\\r\\n2"') as both:
        wire = await wire_of(both)
        (reply,) = wire.ask(b"RSET\r\n")

        assert await reply == Reply(250, "", "ok")
        await asyncio.wait_for(asyncio.shield(wire.closed), 5)
        assert wire.broken.startswith("unasked: b'2'")


@every_way
async def test_a_dead_line_takes_no_dot_and_says_that_none_left(tmp_path: Path, way: str) -> None:
    async with ends(tmp_path, way) as both:
        wire = await wire_of(both)
        both.sink.hang_up()
        await asyncio.wait_for(asyncio.shield(wire.closed), 5)

        with pytest.raises(NotSent):
            wire.dot()


@every_way
async def test_an_aborted_line_takes_no_dot_and_says_that_none_left(tmp_path: Path, way: str) -> None:
    """On uvloop a write to an aborted transport raises RuntimeError, on asyncio it does nothing."""
    async with ends(tmp_path, way) as both:
        wire = await wire_of(both)
        wire._transport.abort()

        with pytest.raises(NotSent):
            wire.dot()


@every_way
async def test_who_waits_when_the_line_is_cut_hears_of_it(tmp_path: Path, way: str) -> None:
    async with ends(tmp_path, way, "RSET HANG") as both:
        wire = await wire_of(both)
        first, second = wire.ask(b"RSET\r\nNOOP\r\n", 2)
        wire.abort("enough")

        for future in (first, second):
            with pytest.raises(Lost, match="enough"):
                await future


@every_way
async def test_who_has_stopped_waiting_does_not_shift_the_replies(tmp_path: Path, way: str) -> None:
    async with ends(tmp_path, way, 'RSET "250 first"') as both:
        wire = await wire_of(both)
        first, second = wire.ask(b"RSET\r\nNOOP\r\n", 2)
        first.cancel()

        assert await second == Reply(250, "2.0.0", "Ok")
        assert wire.alive
        wire.abort()


@every_way
async def test_hear_sees_what_the_kernel_holds(tmp_path: Path, way: str) -> None:
    async with ends(tmp_path, way) as both:
        wire = await wire_of(both)
        await wire.hear()
        both.sink.hang_up("421 4.3.2 bye")
        assert wire.alive, "nothing was read yet"

        with pytest.raises(Lost) as caught:
            await wire.hear()

        assert caught.value.reply == Reply(421, "4.3.2", "bye")


@every_way
@pytest.mark.parametrize("size", [0, 1, 65_534, 65_536, 65_538, 1_000_000])
async def test_bodies_of_every_size_arrive_whole(tmp_path: Path, way: str, size: int) -> None:
    body = (b"x" * 62 + b"\r\n") * (size // 64) + b"y" * (size % 64) + b"\r\n"
    async with ends(tmp_path, way) as both:
        wire = await wire_of(both)
        for future in wire.ask(b"MAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.net>\r\nDATA\r\n", 3):
            await future
        await wire.body(body, 5.0)

        assert (await wire.dot()).code == 250
        assert both.sink.mails[0].raw == body
        wire.abort()


@every_way
@pytest.mark.parametrize("size", [1_000_000, 20_000_000])
async def test_a_body_into_a_line_that_dies_is_lost(tmp_path: Path, way: str, size: int) -> None:
    async with ends(tmp_path, way, "BODY DROP", receive_buffer=16_384) as both:
        wire = await wire_of(both)
        for future in wire.ask(b"MAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.net>\r\nDATA\r\n", 3):
            await future

        with pytest.raises(Lost):
            await wire.body(b"x" * size + b"\r\n", 5.0)


async def test_quit_closes_without_waiting_for_an_answer(tmp_path: Path) -> None:
    async with ends(tmp_path, script="QUIT HANG") as both:
        wire = await wire_of(both)
        wire.quit()

        await asyncio.wait_for(wire.closed, 5)
        await both.sink.until(lambda: "QUIT" in both.sink.commands)
        wire.quit()
