"""One attempt in its steps: envelope, body, permit, dot, reply; and what stops the dot before it leaves."""

import asyncio
from pathlib import Path

import pytest

from gateway.core.delivery import Deferred, GivenBack, Relayed, Reply
from tests.relay.ends import ends, every_way, outgoing
from tests.smtp import FIXTURES


@every_way
async def test_a_mail_is_relayed_in_its_steps_with_its_envelope_and_its_bytes(tmp_path: Path, way: str) -> None:
    async with ends(tmp_path, way) as both:
        outcome = await both.attempt()

    assert outcome == Relayed(Reply(250, "2.0.0", "Taken"))
    assert both.steps == ["body.sent", "permit.committed", "dot.sent", "reply.read"]
    assert both.asked == 1
    (mail,) = both.sink.mails
    assert (mail.envelope_from, mail.recipients) == ("agent@example.com", ("pat@example.net",))
    assert (mail.raw, mail.content) == (outgoing().body, outgoing().body.replace(b"..", b"."))
    assert "MAIL FROM:<agent@example.com> SIZE=26" in both.sink.commands


@every_way
async def test_the_library_s_own_server_takes_it_too_with_a_login(tmp_path: Path, way: str) -> None:
    async with ends(tmp_path, way, None, auth=None if way == "plain" else ("agent", "secret")) as both:
        outcomes = [await both.attempt() for _ in range(3)]

    assert [type(outcome) for outcome in outcomes] == [Relayed] * 3
    assert {mail.session for mail in both.sink.mails} == {1}


@every_way
@pytest.mark.parametrize("reply", ["250 2.0.0 ok", "250-ok\\r\\n250-and\\r\\n250 more", "252 ok", "250"])
async def test_any_whole_2yz_means_relayed(tmp_path: Path, way: str, reply: str) -> None:
    async with ends(tmp_path, way, f'DOT "{reply}"') as both:
        assert isinstance(await both.attempt(), Relayed)


@every_way
async def test_an_early_250_in_the_packet_of_the_354_is_seen_before_the_permit(tmp_path: Path, way: str) -> None:
    async with ends(tmp_path, way, FIXTURES / "early-250-same-packet.txt") as both:
        outcome = await both.attempt()

    assert isinstance(outcome, Deferred)
    assert outcome.why.startswith("unasked: 250")
    assert (both.asked, both.sink.dots) == (0, 0)


@every_way
@pytest.mark.parametrize(
    ("script", "why"),
    [('BODY "250 2.0.0 taken"', "unasked: 250"), ('BODY "421 4.3.2 closing"', "unasked: 421"), ("BODY DROP", "closed")],
)
async def test_what_is_said_while_the_permit_is_asked_for_stops_the_dot(
    tmp_path: Path, way: str, script: str, why: str
) -> None:
    async with ends(tmp_path, way, script.replace("BODY", "BODY WAIT")) as both:

        async def permit() -> None:
            await both.sink.until(lambda: both.sink.waiting == 1)
            both.sink.go()
            await both.sink.until(lambda: both.sink.connected == 0 if why == "closed" else both.sink.waiting == 0)

        outcome = await both.attempt(permit=permit)

    assert isinstance(outcome, Deferred)
    assert outcome.why.startswith((why, "connection lost") if why == "closed" else why)
    assert outcome.counts
    assert (both.asked, both.sink.dots, both.sink.mails) == (1, 0, [])


@every_way
async def test_what_has_arrived_but_was_not_read_yet_stops_the_dot_too(tmp_path: Path, way: str) -> None:
    """As under load: the 421 lies unread in the kernel when the dot is due."""
    async with ends(tmp_path, way) as both:

        async def permit() -> None:  # ends in the same turn of the loop in which the smarthost speaks
            both.sink.hang_up("421 4.3.2 closing")

        outcome = await both.attempt(permit=permit)

    assert isinstance(outcome, Deferred)
    assert outcome.reply == Reply(421, "4.3.2", "closing")
    assert both.sink.dots == 0


@every_way
async def test_without_a_permit_no_dot_leaves_and_the_line_is_cut(tmp_path: Path, way: str) -> None:
    async def refuse() -> str:
        return "suppressed"

    async with ends(tmp_path, way) as both:
        assert await both.attempt(permit=refuse) == GivenBack("suppressed")
        await both.sink.until(lambda: both.sink.connected == 0)

        assert (both.sink.data_phases, both.sink.dots, both.pool.resting) == (1, 0, 0)
        assert both.steps == ["body.sent"]


@every_way
async def test_a_permit_that_took_too_long_sends_no_dot(tmp_path: Path, way: str) -> None:
    async with ends(tmp_path, way) as both:

        async def slow() -> None:
            both.now += 5.1

        assert await both.attempt(permit=slow) == GivenBack("late")
        await both.sink.until(lambda: both.sink.connected == 0)

        assert both.sink.dots == 0


async def test_a_pause_between_permit_and_dot_sends_no_dot(tmp_path: Path) -> None:
    async with ends(tmp_path) as both:

        async def sleep_through(step: str) -> None:
            if step == "permit.committed":
                both.now += 3600.0

        assert await both.attempt(step=sleep_through) == GivenBack("late")
        assert both.sink.dots == 0


async def test_time_before_the_permit_is_not_counted_against_it(tmp_path: Path) -> None:
    async with ends(tmp_path) as both:

        async def slow_body(step: str) -> None:
            if step == "body.sent":
                both.now += 3600.0

        assert isinstance(await both.attempt(step=slow_body), Relayed)


@every_way
@pytest.mark.parametrize(
    ("at", "asked", "dots"),
    [("body.sent", 0, 0), ("permit.committed", 1, 0), ("dot.sent", 1, 1), ("reply.read", 1, 1)],
)
async def test_a_crash_at_a_step_leaves_what_the_failure_matrix_says(
    tmp_path: Path, way: str, at: str, asked: int, dots: int
) -> None:
    class Crash(Exception):  # noqa: N818 - it plays a crash
        pass

    async def crash(step: str) -> None:
        if step == at:
            raise Crash

    async with ends(tmp_path, way) as both:
        with pytest.raises(Crash):
            await both.attempt(step=crash)
        await both.sink.until(lambda: both.sink.connected == 0)

        assert (both.asked, both.sink.dots, len(both.sink.mails)) == (asked, dots, dots)


async def test_a_permit_that_raises_cuts_the_line_and_is_heard(tmp_path: Path) -> None:
    async def broken() -> None:
        raise LookupError("store")

    async with ends(tmp_path) as both:
        with pytest.raises(LookupError):
            await both.attempt(permit=broken)
        await both.sink.until(lambda: both.sink.connected == 0)

        assert both.sink.dots == 0


async def test_a_cancelled_attempt_cuts_the_line(tmp_path: Path) -> None:
    async with ends(tmp_path) as both:
        forever = asyncio.Event()

        async def hang() -> None:
            await forever.wait()

        task = asyncio.create_task(both.attempt(permit=hang))
        await both.sink.until(lambda: both.sink.data_phases == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await both.sink.until(lambda: both.sink.connected == 0)

        assert both.sink.dots == 0


@every_way
@pytest.mark.parametrize("lines", [20_000, 100_000], ids=["what a kernel can hold", "more than that"])
async def test_a_big_body_is_gone_before_the_permit_is_asked_for(tmp_path: Path, way: str, lines: int) -> None:
    """Else the dot would stand behind megabytes when its time is counted."""
    line = b"x" * 76 + b"\r\n"
    mail = outgoing(body=line * lines, size=len(line) * lines)
    async with ends(tmp_path, way, "BODY WAIT", receive_buffer=16_384) as both:
        asked = asyncio.Event()

        async def permit() -> None:
            asked.set()

        task = asyncio.create_task(both.attempt(mail, permit))
        await both.sink.until(lambda: both.sink.waiting == 1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asked.wait(), 0.3)
        both.sink.go()

        assert isinstance(await task, Relayed)
        assert both.sink.mails[0].content == mail.body
