"""How gateways of a case are started, refused to start, and killed at a named place."""

import asyncio
import json
import re
import sys
from datetime import datetime
from itertools import pairwise
from typing import Any

from tests import servers
from tests.cases import words
from tests.cases.play import Play

SETTINGS = {"EHLO_NAME": "hostname", "UPSTREAM_HOST": "smarthost"}
"""Our settings for what a case puts into the environment."""
PLACES = (
    (r"after (the )?upstream 250 to the dot, before the state is stored", "reply.read"),
    (r"after (the )?dot, before the reply", "dot.sent"),
    (r"after the body, before the dot", "body.sent"),
    (r"after (the )?permit, before the dot", "permit.committed"),
    (r"after (the )?claim, before (connect|MAIL)", "claimed"),
)
"""Named places that the gateway has as steps."""
BETWEEN = re.compile(r"after (MAIL|RCPT|DATA), before (RCPT|DATA|DOT|the dot)")
"""Named places between two commands: the smarthost waits there, and the process is killed from outside."""
WAITS_AT = {"MAIL": "MAIL", "RCPT": "RCPT", "DATA": "BODY"}


def place_of(at: str) -> str | None:
    """The step at which a process kills itself; None where the smarthost has to wait."""
    for pattern, step in PLACES:
        if re.fullmatch(pattern, at):
            return step
    if BETWEEN.fullmatch(at):
        return None
    raise ValueError(f"the place {at!r} is not known to the driver")


def waits(steps: list[dict[str, Any]]) -> str:
    """The lines of a script that make the smarthost wait where the case kills the gateway between two commands."""
    lines = []
    for before, step in pairwise(steps):
        found = BETWEEN.fullmatch(step.get("at", "")) if step["op"] == "kill9" else None
        if found:
            who = f" <{before['json']['to'][0]}>" if found[1] != "MAIL" else ""
            lines.append(f"{WAITS_AT[found[1]]}{who} ONCE WAIT")
    return "\n".join(lines) + "\n"


def armed(steps: list[dict[str, Any]]) -> dict[str, Any] | None:
    """What the next process is armed with: the place at which the next kill is to happen."""
    for step in steps:
        if step["op"] in {"start", "restart"}:
            return None
        if step["op"] == "kill9":
            place = place_of(step["at"]) if "at" in step else None
            return None if place is None else {place: {"do": "kill"}}
    return None


async def start(play: Play, number: int, step: dict[str, Any]) -> None:
    """Start gateways as a step says; with an environment or a configuration of its own, see whether it starts at all."""
    if "at" in step:
        await play.house.set_clock(datetime.fromisoformat(step["at"]))
    if "env" in step:
        await _try(play, step)
        return
    if "config" in step:
        await _configured(play, number, step)
        return
    count = int(step.get("workers", 1))
    if play.house.served:  # what runs takes calls; these relay
        await asyncio.gather(*(play.house.process("relay") for _ in range(count)))
    else:
        await play.house.up(count, armed(play.case.steps[number + 1 :]))


async def kill(play: Play, step: dict[str, Any]) -> None:
    """End all gateways at the place that the step names, without a word to them."""
    house = play.house
    if "at" not in step:
        await house.down(kill=True)
    elif place_of(step["at"]) is not None:
        await house.died()
    else:
        await house.sink.until(lambda: house.sink.waiting > 0, servers.PATIENCE)
        await house.down(kill=True)
        house.sink.go()
    await house.sink.until(lambda: not house.sink.connected, servers.PATIENCE)


async def _configured(play: Play, number: int, step: dict[str, Any]) -> None:
    """Start a gateway with these settings, or see it refuse them."""
    await play.house.down()
    play.house.settings |= words.settings_of(step["config"])
    refused = ""
    try:
        await play.house.up()
    except ValueError as error:
        refused = str(error)
        play.notes.append(f"refused: {refused}")
    wanted = "refuses" in step.get("expect", "")
    play.fault(bool(refused) == wanted, f"step {number}: {refused or 'it starts'}")


async def _try(play: Play, step: dict[str, Any]) -> None:
    """Start a process with this environment, and note its exit code, or that it runs, and what it printed."""
    house = play.house
    await house.down()
    env = {SETTINGS[name]: value for name, value in step["env"].items()}
    if "smarthost" in env:
        env["smarthost"] = f"smtp://{env['smarthost']}"
    values = {"database_url": house.url, "http_bind": "127.0.0.1:0", "smarthost": house.settings["smarthost"]} | env
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", "serve"),
        env=servers.environment(**values),
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
    )
    assert process.stderr is not None
    lines: list[str] = []
    runs = False
    async with asyncio.timeout(servers.PATIENCE):
        while not runs and (line := (await process.stderr.readline()).decode()):
            lines.append(line.rstrip("\n"))
            runs = '"started"' in line
    if runs:
        play.notes.append(f"runs as {await _name(play, lines)}")
        process.terminate()
    await process.stderr.read()
    code = await process.wait()
    play.facts.setdefault("exits", []).append("running" if runs else "nonzero" if code else "zero")
    play.facts.setdefault("printed", []).append([] if runs else lines)


async def _name(play: Play, lines: list[str]) -> str:
    """The name that a running gateway gives itself in EHLO."""
    port = next(json.loads(line)["port"] for line in lines if "http.listening" in line)
    import httpx

    mail = {"to": "pat@example.com", "subject": "hello", "text": "hi\n", "idempotencyKey": "who"}
    headers = {"Authorization": f"Bearer {play.house.keys['agent-a']}"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers) as client:
        answer = await client.post("/v1/agent/request-send", json=mail)
        assert answer.status_code == 200, answer.text
    await play.house.sink.wait()
    name = next(line.partition(" ")[2] for line in play.house.sink.commands if line.startswith("EHLO"))
    play.fault(name.isascii(), f"EHLO {name}")
    play.house.sink.mails.clear()
    return name
