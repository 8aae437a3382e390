"""Runs one case from its file to its verdict."""

import asyncio
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cases import acts, dialogue, letters, starts, submit, tools, upstream, words
from tests.cases.book import Case
from tests.cases.house import House, a_house
from tests.cases.more import MORE
from tests.cases.neighbours import NEIGHBOURS
from tests.cases.play import IN_JSON, Play, beginning
from tests.cases.tables import DIFFERS, LEFT_OUT, LEFT_OUT_KINDS, LEFT_OUT_LISTENERS, expected
from tests.cases.upstream import Upstream, Variant
from tests.cases.verdict import judged
from tests.databases import Databases

__all__ = ["Result", "left_out", "run"]

SEVEN_BIT = 'EHLO "250 sink.example.net"\n'
"""A smarthost that offers nothing."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a case: its faults, and remarks for whoever reads the table."""

    case: Case
    faults: Sequence[str] = ()
    notes: Sequence[str] = field(default=())
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether nothing was wrong."""
        return not self.faults


def left_out(case: Case) -> str | None:
    """Why a case is not played; None where it is."""
    listener = dialogue.read(case.text).listener if case.kind == "smtp-client" else ""
    return LEFT_OUT.get(case.id) or LEFT_OUT_KINDS.get(case.kind) or LEFT_OUT_LISTENERS.get(listener)


async def run(case: Case, databases: Databases, *, seconds: float = 5.0) -> Result:
    """Play a case on a fresh store and judge it; `seconds` is for a case that only goes on for a while."""
    begun = time.monotonic()
    faults: list[str] = []
    notes: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        if case.kind == "smtp-upstream":
            story = upstream.read(case.text)
            for variant in story.variants:
                script = story.script(variant)
                house_of = a_house(
                    databases, Path(folder), script, beginning(case), login=story.login, tls=story.tls, **_settings({})
                )
                async with house_of as house:
                    play = Play(case, house)
                    await _upstream(play, story, variant)
                faults += [f"{variant.name}: {fault}" if variant.name else fault for fault in play.faults]
                notes += play.notes
        elif case.kind not in IN_JSON:
            hop = SEVEN_BIT if case.expected.get("wire", {}).get("ascii_only") else ""
            async with a_house(databases, Path(folder), hop, beginning(case), smtp=True, **_settings({})) as house:
                play = Play(case, house)
                await _submitting(play)
            faults, notes = play.faults, play.notes
        else:
            setup = {name: value for name, value in case.setup.items() if name not in words.ACTS}
            outside = _needs_processes(case)
            script = starts.waits(case.steps) if case.kind == "scenario" else _slow(setup)
            about = {"outside": outside, "smtp": submit.WORD in case.text}
            house_of = a_house(
                databases, Path(folder), script, beginning(case), **about, **_settings(setup | _asked(case))
            )
            async with house_of as house:
                play = Play(case, house)
                await _played(play, seconds)
            faults, notes = play.faults, play.notes
    if case.id in DIFFERS:
        notes.append(f"differs ({DIFFERS[case.id].heading}): {DIFFERS[case.id].words}")
    return Result(case, faults, notes, time.monotonic() - begun)


def _slow(setup: dict[str, Any]) -> str:
    """The script of a smarthost that takes its time with the final dot."""
    return f"DOT DELAY {setup['relay_delay_s'] / tools.SCALE:g}\n" if "relay_delay_s" in setup else ""


def _settings(setup: dict[str, Any]) -> dict[str, Any]:
    return words.settings_of(setup)


def _asked(case: Case) -> dict[str, Any]:
    """Settings that a case asks for within its steps: what is by setting here and by request there."""
    late = [step["json"][words.LATENESS] for step in case.steps if words.LATENESS in step.get("json", {})]
    return {"max_lateness_seconds": late[0]} if late else {}


def _needs_processes(case: Case) -> bool:
    """Whether gateways have to be processes of their own: they are killed, several, or have an environment of their own."""
    started = any(step.get("op") == "start" and {"workers", "env"} & step.keys() for step in case.steps)
    return started or "processes" in case.setup or any(step.get("op") == "kill9" for step in case.steps)


async def _played(play: Play, seconds: float) -> None:
    """A case in JSON: start, set up, play, judge."""
    case, house = play.case, play.house
    configured = any("config" in step or "env" in step for step in case.steps)
    if not configured:
        several = int(case.setup.get("processes", 1))
        await house.up(several, starts.armed(case.steps) if case.kind == "scenario" else None, "http,relay")
        await play.set_up()
    if case.kind == "scenario":
        await acts.scenario(play)
    else:
        await _http(play, seconds)
    if house.gateway is not None or house.served:
        await play.settle()
    if case.id in MORE:
        await MORE[case.id](play)
    await judged(play, expected(case.id, case.expected))
    if case.id in NEIGHBOURS and not play.faults:
        await NEIGHBOURS[case.id](play)


async def _http(play: Play, seconds: float) -> None:
    """All steps of a case of kind http."""
    for number, step in enumerate(play.case.steps):
        if "check" in step:
            from tests.cases.checks import check

            await check(play, number, step)
        elif "mix" in step.get("step", {}):
            from tests.cases.mix import mixed

            await mixed(play, number, step, seconds)
        elif "parallel" in step:
            await asyncio.gather(*(_ask(play, number, step["step"], i) for i in range(step["parallel"])))
        else:
            await _ask(play, number, step)
        await play.settle()


async def _ask(play: Play, number: int, step: dict[str, Any], index: int = 0) -> None:
    """A step that is a call, or hands a mail in over SMTP."""
    if tools.speaks(step):
        await tools.speak(play, number, step, index)
        return
    by_mail = submit.WORD in {*step, step.get("op")}
    await (submit.submit if by_mail else Play.ask)(play, number, step, index)


async def _submitting(play: Play) -> None:
    """A case about the SMTP door: start, say what the client says, judge what comes to the smarthost."""
    case = play.case
    await play.house.up()
    await play.set_up()
    if case.kind == "eml-out":
        for number in range(case.expected.get("submit_times", 1)):
            await submit.kept(play, number, letters.of_case(case), {})
            await play.settle()
    else:
        await dialogue.talk(play)
        await play.settle()
    if case.id in MORE:
        await MORE[case.id](play)
    await judged(play, expected(case.id, case.expected))
    if case.id in NEIGHBOURS and not play.faults:
        await NEIGHBOURS[case.id](play)


async def _upstream(play: Play, story: Upstream, variant: Variant) -> None:
    """A case about a smarthost: start, send, let the clock run, ask again, judge."""
    await play.house.up()
    await play.set_up()
    for number, step in enumerate(story.triggers):
        if "wait_s" in step:
            await play.house.sink.until(lambda: not play.house.sink.connected, acts.WAVE)
            continue
        begun = time.monotonic()
        await play.ask(number, step)
        await play.settle()
        play.facts.setdefault("first", time.monotonic() - begun)
    await _later(play.house, *story.clock())
    for one in filter(None, (part.strip() for part in story.head.get("then", "").split(";"))):
        await _then(play, story, one)
    if variant.name:
        from tests.cases.variants import as_told

        await as_told(play, variant)
    if play.case.id in MORE:
        await MORE[play.case.id](play)
    await judged(play, expected(play.case.id, play.case.expected))


async def _later(house: House, whole: float, step: float) -> None:
    """Let the clock run by steps; after each one all that is due is done."""
    passed = 0.0
    while passed < whole:
        await house.advance(min(step, whole - passed))
        passed += step
        await house.quiet()


async def _then(play: Play, story: Upstream, words_: str) -> None:
    """What a case asks in the end."""
    key = words_.rpartition(" ")[2]
    if words_.startswith("GET status by key"):
        said = await play.call(98, "GET", f"/v1/agent/requests?idempotencyKey={key}", "agent-a")
        play.fault(said.status == 200, said.text)
    elif words_.startswith("repeat the POST with key"):
        step = next(one for one in story.triggers if one.get("json", {}).get("idempotencyKey") == key)
        first = next(one for one in play.sends if one.key == key)
        again = await play.ask(99, step)
        await play.settle()
        same = again.body.get("requestId") == first.body["requestId"] and again.body.get("replayed")
        play.fault(same, f"the repeat is another send: {again.text[:200]}")
    else:
        raise ValueError(f"{words_!r} is not known to the driver")


def on_its_own(case: Case, databases: Databases) -> Result:
    """The same for callers without a loop."""
    try:
        return asyncio.run(run(case, databases))
    except Exception as error:  # noqa: BLE001  (one line of the table; the tests show the rest)
        return Result(case, [f"broke off: {type(error).__name__}: {str(error)[:300]}"])
