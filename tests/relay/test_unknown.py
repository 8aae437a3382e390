"""After the dot: only a whole, readable reply says what became of a mail; a late one is heard where somebody listens."""

from pathlib import Path

import pytest

from gateway.core.delivery import Relayed, Reply, Unknown
from tests.relay.ends import ends, every_way
from tests.smtp import FIXTURES


@every_way
@pytest.mark.parametrize(
    "script",
    [
        "DOT DROP",
        "DOT RESET",
        "DOT LOSE DROP",
        'DOT RAW "25" DROP',
        'DOT RAW "25\\r\\n"',
        'DOT RAW "250 ok" DROP',
        'DOT "250-ok" DROP',
        'DOT "250-ok\\r\\n550 no"',
        'DOT "999 what"',
        'DOT "2500 ok"',
        'DOT "250ok"',
        'DOT "354 go on"',
        'DOT "hello there"',
        "DOT HANG",
        'DOT RAW "25" HANG',
        'DOT DRIP 0.1 "250 2.0.0 taken slowly"',
    ],
)
async def test_after_the_dot_all_but_a_whole_readable_reply_is_unknown(
    tmp_path: Path, way: str, script: str | Path | None
) -> None:
    async with ends(tmp_path, way, script, reply_timeout=0.2) as both:
        outcome = await both.attempt()
        await both.sink.until(lambda: both.sink.dots == 1)

        assert isinstance(outcome, Unknown)
        assert both.asked == 1
        assert both.steps == ["body.sent", "permit.committed", "dot.sent"] or script == 'DOT "354 go on"'
        assert both.pool.resting == 0


async def test_a_reply_without_an_end_is_unknown(tmp_path: Path) -> None:
    endless = r"250-and so on\r\n" * 3000
    async with ends(tmp_path, script=f'DOT RAW "{endless}" HANG', reply_timeout=5.0) as both:
        assert await both.attempt() == Unknown("a reply without an end")


async def test_what_follows_a_whole_reply_does_not_undo_it(tmp_path: Path) -> None:
    async with ends(tmp_path, script='DOT "250 2.0.0 ok\\r\\n554 no\\r\\nwhat"') as both:
        assert await both.attempt() == Relayed(Reply(250, "2.0.0", "ok"))
        assert await both.attempt() == Relayed(Reply(250, "2.0.0", "ok"))

    assert both.sink.sessions == 2, "such a connection is not used again"


@every_way
async def test_a_late_reply_is_heard_while_the_line_lingers(tmp_path: Path, way: str) -> None:
    async with ends(tmp_path, way, FIXTURES / "late-after-dot.txt", reply_timeout=0.1) as both:
        outcome = await both.attempt(wants_late=True)
        before = list(both.late)
        both.sink.go()
        await both.sink.until(lambda: both.sink.connected == 0)

    assert outcome == Unknown("no reply to the dot within 0.1 s")
    assert before == []
    assert both.late == [Reply(250, "2.0.0", "Taken, at last")]


async def test_a_line_without_a_late_reply_is_cut_after_a_while(tmp_path: Path) -> None:
    async with ends(tmp_path, script="DOT HANG", reply_timeout=0.05, linger=0.05) as both:
        assert isinstance(await both.attempt(wants_late=True), Unknown)
        await both.sink.until(lambda: both.sink.connected == 0)

        assert both.late == []


async def test_nobody_who_wants_a_late_reply_means_the_line_is_cut(tmp_path: Path) -> None:
    async with ends(tmp_path, script="DOT HANG", reply_timeout=0.05) as both:
        assert isinstance(await both.attempt(), Unknown)
        await both.sink.until(lambda: both.sink.connected == 0)
