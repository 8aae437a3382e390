"""The command `gateway demo`: plays the story, judges it, and with `--keep` leaves its world up to be tried by hand."""

import asyncio
import contextlib
import json
import shlex
import signal
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli import printing
from gateway.cli.printing import fail

if TYPE_CHECKING:
    from gateway.cli.demo.board import Board
    from gateway.cli.demo.stage import Stage

PATIENCE_SECONDS = 60.0
"""When a demo that hangs is given up."""


def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave it running, with key and curl lines printed, until Ctrl-C.")
    ] = False,
) -> None:
    """See the main job, with nothing else running: two agents race for one person, and only one mail reaches it.

    A fresh database, a sink in place of the smarthost and a gateway are brought up on free ports of the loopback and
    taken down again. Settings, variables and profile are left alone. Exit code 0: each outcome, and the number of mails
    in the sink, was right. It takes a few seconds.
    """
    from gateway.logs import set_up

    set_up("error")
    try:
        right = asyncio.run(_play(keep=keep))
    except (OSError, ValueError) as error:
        fail(error)
    if not right:
        raise typer.Exit(1)


async def _play(*, keep: bool) -> bool:
    from gateway.cli.demo.board import Board
    from gateway.cli.demo.stage import stage
    from gateway.cli.demo.story import Story
    from gateway.client import GatewayError

    board = Board()
    async with stage() as up:
        board.say(f"A gateway at {up.url}, its smarthost is a sink on port {up.sink.port}.")
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await Story(up, board).play()
        except (TimeoutError, RuntimeError, LookupError, ValueError, GatewayError) as error:
            board.check("the story comes to its end", "yes", f"no: {type(error).__name__} {error}")
        if not keep:
            await up.close_gateway()
        board.check("mails in the sink at the end", 2, len(up.sink.mails))
        right = board.verdict()
        board.say("Every outcome was right." if right else "Not every outcome was right.", "good" if right else "bad")
        if keep:
            await _stay(up, board)
    return right


async def _stay(up: "Stage", board: "Board") -> None:
    """Print what to try, and wait for SIGINT or SIGTERM."""
    from gateway.cli.demo.words import OPTED_OUT

    agent = up.agents[0]
    board.say("")
    board.say(f"It stays up until Ctrl-C. Operator key: {up.operator.key}")
    board.say(f"Key of {agent.name}: {agent.key}")
    for words, to in (("accepted", "newcomer@example.net"), ("refused", OPTED_OUT)):
        mail = {"to": [to], "subject": "By hand", "text": "Hello.", "idempotencyKey": f"by-hand-{words}"}
        board.say("")
        board.say(f"# {words}:")
        header = shlex.quote(f"Authorization: Bearer {agent.key}")
        kind = shlex.quote("Content-Type: application/json")
        board.say(f"curl -s -H {header} -H {kind} -d {shlex.quote(json.dumps(mail))} {up.url}/v1/agent/request-send")
    board.say("")
    board.say(f"GATEWAY_URL={up.url} GATEWAY_KEY={up.operator.key} gateway agents leases")
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stopped.set)
    await stopped.wait()
    printing.note("stopping", "")
