"""What a step of a scenario can be: one function for each word of `op`, and what a step expects, in words."""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any

from tests.cases import outage, starts, submit, words
from tests.cases.house import OPERATOR
from tests.cases.paging import page_through
from tests.cases.play import AT_ONCE, LEASES, REQUESTS, SUPPRESSIONS, Play, filled
from tests.cases.said import as_expected

Step = dict[str, Any]
Act = Callable[[Play, int, Step], Awaitable[None]]
SPREAD = 0.7
"""Seconds within which what races begins: longer than the release loop rests."""
WAVE = 50
"""Rounds of a race that are played together."""
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
OPS: dict[str, Act] = {}


def op(act: Act) -> Act:
    """Enter a word."""
    OPS[act.__name__] = act
    return act


async def scenario(play: Play) -> None:
    """Carry out all steps of a scenario in order."""
    for number, step in enumerate(play.case.steps):
        following = play.case.steps[number + 1] if number + 1 < len(play.case.steps) else {}
        await perform(play, number, step)
        runs = bool(play.house.served) or play.house.gateway is not None
        if (
            runs
            and step["op"] in {"http", "smtp_submit", "advance_clock"}
            and not (following.get("op") == "kill9" and following.get("at"))
        ):
            await play.settle()


async def perform(play: Play, number: int, step: Step) -> None:
    """Carry out one step."""
    name = step["op"]
    if name not in OPS:
        raise ValueError(f"the act {name!r} is not known to the driver")
    await OPS[name](play, number, step)


def seconds_of(text: str) -> float:
    """Seconds of "4s", "2h"."""
    found = re.fullmatch(r"(\d+)([smhd])", text)
    assert found is not None, text
    return int(found[1]) * SECONDS[found[2]]


# --- calls ------------------------------------------------------------------------------------------------------------


@op
async def http(play: Play, number: int, step: Step) -> None:
    said = await play.ask(number, step)
    if wanted := step.get("expect_status"):
        play.fault(said.status in wanted, f"step {number}: {said.status} is none of {wanted}: {said.text[:200]}")
    as_expected(play, number, step, said)


@op
async def lease(play: Play, number: int, step: Step) -> None:
    said = await play.call(number, "POST", LEASES, step["agent"], json=words.lease(step["contact"], step["seconds"]))
    if name := step.get("save"):
        play.fault("fencingToken" in (said.body or {}), f"step {number}: no lease was given: {said.text}")
        play.saved[name] = said.body
    as_expected(play, number, step, said)


@op
async def renew(play: Play, number: int, step: Step) -> None:
    held = play.saved[step["token"]]
    body = {"fencingToken": held["fencingToken"]}
    said = await play.call(number, "PUT", f"{LEASES}/{held['id']}", step["agent"], json=body)
    as_expected(play, number, step, said)


@op
async def release(play: Play, number: int, step: Step) -> None:
    held = play.saved[step["token"]]
    path = f"{LEASES}/{held['id']}?fencingToken={held['fencingToken']}"
    as_expected(play, number, step, await play.call(number, "DELETE", path, step["agent"]))


@op
async def list_leases(play: Play, number: int, step: Step) -> None:
    as_expected(play, number, step, await play.call(number, "GET", f"{LEASES}s", OPERATOR))


@op
async def suppress(play: Play, number: int, step: Step) -> None:
    body = words.suppression(step["email"], step.get("reason", "manual"))
    said = await play.call(number, "POST", SUPPRESSIONS, OPERATOR, json=body)
    play.fault(said.status == 200, f"step {number}: {said.text}")


@op
async def unsuppress(play: Play, number: int, step: Step) -> None:
    said = await play.call(number, "DELETE", f"{SUPPRESSIONS}/{step['email']}", OPERATOR)
    play.fault(said.status == 200, f"step {number}: {said.text}")


@op
async def cancel(play: Play, number: int, step: Step) -> None:
    request = play.request_of(step["key"])
    said = await play.call(number, "DELETE", f"/v1/agent/sends/{request}", step.get("as", "agent-a"))
    play.facts.setdefault("cancels", []).append((step["key"], said.body.get("cancelled")))
    if "no second event" in step.get("expect", ""):
        trace = await play.house.call("GET", f"/v1/ops/trace/{request}", OPERATOR)
        told = [event for event in trace.json()["events"] if "cancel" in event["name"]]
        play.fault(len(told) == 1, f"step {number}: {len(told)} events of a cancel")
    as_expected(play, number, step, said)


@op
async def get_status(play: Play, number: int, step: Step) -> None:
    for key in step["keys"]:
        said = await play.call(number, "GET", f"{REQUESTS}?idempotencyKey={key}", "agent-a")
        play.fault(said.status == 200, f"step {number}: {said.text}")


@op
async def get_quota(play: Play, number: int, step: Step) -> None:
    who = step.get("as", "agent-a")
    as_expected(play, number, step, await play.call(number, "GET", f"/v1/agent/budget?agent={who}", who))


# --- time and the relay -----------------------------------------------------------------------------------------------


@op
async def advance_clock(play: Play, number: int, step: Step) -> None:
    await play.house.advance(seconds_of(step["by"]))


@op
async def set_clock(play: Play, number: int, step: Step) -> None:
    await play.house.set_clock(datetime.fromisoformat(step["to"]))
    play.facts["frozen"] = play.facts.get("frozen") or step.get("frozen", False)


@op
async def pause_relay(play: Play, number: int, step: Step) -> None:
    play.house.pause(paused=True)
    play.paused = True


@op
async def resume_relay(play: Play, number: int, step: Step) -> None:
    play.house.pause(paused=False)
    play.paused = False


@op
async def settle(play: Play, number: int, step: Step) -> None:
    await play.settle()


# --- processes --------------------------------------------------------------------------------------------------------


@op
async def start(play: Play, number: int, step: Step) -> None:
    await starts.start(play, number, step)


@op
async def stop(play: Play, number: int, step: Step) -> None:
    if "at" in step:
        await play.house.set_clock(datetime.fromisoformat(step["at"]))
    await play.house.down()


@op
async def restart(play: Play, number: int, step: Step) -> None:
    await play.house.down()
    await play.house.up()


@op
async def kill9(play: Play, number: int, step: Step) -> None:
    await starts.kill(play, step)


@op
async def set(play: Play, number: int, step: Step) -> None:  # noqa: A001  (the word of the cases)
    """Give the gateway other settings; it is started anew with them."""
    said = play.facts.setdefault("set", dict(play.house_setup))
    said |= {name: value for name, value in step.items() if name != "op"}
    play.house.settings |= words.settings_of(said)
    play.facts["longer"] = max(0, words.LEAST_BYTES - said.get("max_size", words.LEAST_BYTES))
    if step.get("quota_per_hour") == 0:
        play.house.use_up()
    if play.house.gateway is not None:
        await restart(play, number, step)


# --- many at once -----------------------------------------------------------------------------------------------------


@op
async def repeat(play: Play, number: int, step: Step) -> None:
    count = int(step["n"])
    if "step" in step and step["step"]["op"] != "http":
        for first in range(0, count, AT_ONCE):
            rounds = range(first, min(first + AT_ONCE, count))
            await asyncio.gather(*(perform(play, number, filled(step["step"], i, {})) for i in rounds))
        return
    if "step" in step:
        await play.many(number, step["step"], count)
        if play.facts.get("frozen"):
            play.house.freeze()
        return
    for first in range(0, count, WAVE):
        rounds = range(first, min(first + WAVE, count))
        for inner in step["steps"]:
            await _in_all(play, number, inner, rounds)


async def _in_all(play: Play, number: int, step: Step, rounds: Sequence[int]) -> None:
    """One step in many rounds together; what moves the clock moves it once for all."""
    if step["op"] == "parallel_steps":
        dice = random.Random(number)
        once = [one for one in step["steps"] if one["op"] == "advance_clock"]
        raced = [one for one in step["steps"] if one["op"] != "advance_clock"]
        each = [_later(play, number, filled(one, i, {}), dice.uniform(0, SPREAD)) for one in raced for i in rounds]
        await asyncio.gather(*(perform(play, number, one) for one in once), *each)
    elif step["op"] in {"settle", "advance_clock"}:
        await perform(play, number, step)
    else:
        await asyncio.gather(*(perform(play, number, filled(step, i, {})) for i in rounds))


async def _later(play: Play, number: int, step: Step, seconds: float) -> None:
    await asyncio.sleep(seconds)
    await perform(play, number, step)


@op
async def parallel_steps(play: Play, number: int, step: Step) -> None:
    await asyncio.gather(*(perform(play, number, one) for one in step["steps"]))


@op
async def parallel(play: Play, number: int, step: Step) -> None:
    await asyncio.gather(*(perform(play, number, filled(step["step"], i, {})) for i in range(step["n"])))


@op
async def smtp_submit(play: Play, number: int, step: Step) -> None:
    await submit.submit(play, number, step)


OPS["page_through"] = page_through
OPS["database"] = outage.database
