"""`serve` and `sink`: the two commands that stay, until SIGTERM or SIGINT."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli import options, printing
from gateway.cli.printing import clean, fail
from gateway.cli.setup import settings_of

if TYPE_CHECKING:
    from gateway.settings import Settings
    from gateway.sink import Mail


LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(
    roles: Annotated[
        str | None,
        typer.Option(
            "--roles",
            metavar="ROLE,...",
            help="What this process does: http, smtp, relay. Several processes may share one database and split the roles.",
        ),
    ] = None,
    bind: Annotated[
        str | None,
        typer.Option(
            "--bind", metavar="HOST:PORT", help="Where the HTTP door listens; port 0 takes a free one (see the log)."
        ),
    ] = None,
    config: options.Config = None,
) -> None:
    """Run the gateway until SIGTERM or SIGINT; then it closes its doors, gives back what it has claimed, and ends.

    Settings come from GATEWAY_<NAME>, from --config, and from the options here, which win. Logs are JSON lines on stderr.
    A wrong setting ends the start with one line that names it, and code 2.
    """
    given: dict[str, object] = {"roles": roles, "http_bind": bind}
    settings = settings_of(config, {name: value for name, value in given.items() if value is not None})
    from gateway.core.errors import GatewayError
    from gateway.logs import set_up

    set_up(settings.log_level)
    try:
        _runner()(_serve(settings))
    except ValueError as error:
        fail(error, 2)
    except OSError as error:
        fail(f"HTTP_BIND: {settings.http_bind} cannot be listened on: {_why(error)}", 2)
    except GatewayError as error:
        fail(error)


async def _serve(settings: "Settings") -> None:
    from gateway.app import Gateway

    await Gateway(settings).run()


def _why(error: OSError) -> str:
    """The system's own words, without what a library adds to them."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error.strerror or error)


def _runner() -> Any:  # noqa: ANN401  (uvloop's run or asyncio's)
    try:
        import uvloop
    except ImportError:  # not made for this platform
        return asyncio.run
    return uvloop.run


def sink(
    bind: Annotated[str, typer.Option("--bind", metavar="HOST:PORT", help="Where it listens.")] = "127.0.0.1:2525",
    maildir: Annotated[
        Path | None, typer.Option("--maildir", metavar="DIR", file_okay=False, help="Keep every mail in this Maildir.")
    ] = None,
    script: Annotated[
        Path | None,
        typer.Option(
            "--script",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Be as rude as this script says, not a good server; examples are in fixtures/smarthost.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Take mail as an SMTP server for trying things out: one line for each mail, nothing is relayed.

    It is the smarthost of the default settings. It knows no TLS and no passwords: keep it on the loopback.
    """
    from gateway.settings import split_bind
    from gateway.sink import Script

    try:
        where = split_bind(bind)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--bind") from None
    try:
        play = None if script is None else Script.load(script)
    except (ValueError, OSError) as error:
        raise typer.BadParameter(clean(error), param_hint="--script") from None
    try:
        asyncio.run(_sink(where, maildir, play, as_json=as_json))
    except OSError as error:
        fail(f"{bind} cannot be listened on: {_why(error)}")


async def _sink(where: tuple[str, int], maildir: Path | None, play: Any, *, as_json: bool) -> None:  # noqa: ANN401
    from gateway.sink import run

    def took(mail: "Mail") -> None:
        _tell(mail, as_json=as_json)

    def ready(port: int) -> None:
        if where[0] not in LOOPBACK:
            printing.note("warning: it takes mail from other machines, without TLS and without passwords")
        printing.note(f"listening on {where[0]}:{port}", "")

    serving = asyncio.current_task()
    assert serving is not None, "a coroutine runs in a task"  # noqa: S101
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await run(where, maildir, play, took, ready)


def _tell(mail: "Mail", *, as_json: bool) -> None:
    """The one line for a mail; whatever is in it comes from strangers."""
    import json
    from email.parser import BytesHeaderParser
    from email.policy import default

    headers = BytesHeaderParser(policy=default).parsebytes(mail.content)
    subject, message_id = _header(headers, "subject"), _header(headers, "message-id")
    if as_json:
        about = {
            "number": mail.number,
            "session": mail.session,
            "from": mail.envelope_from,
            "to": list(mail.recipients),
        }
        about |= {"bytes": len(mail.content), "subject": subject, "messageId": message_id}
        sys.stdout.write(json.dumps(about) + "\n")
    else:
        names = ", ".join(f"<{name}>" for name in mail.recipients)
        printing.line(f"{mail.number} <{mail.envelope_from or ''}> -> {names} {len(mail.content)} bytes: {subject}")
    sys.stdout.flush()


def _header(headers: Any, name: str) -> str:  # noqa: ANN401  (an email.message.Message of either kind)
    """A header's text; a malformed one must not end the sink."""
    try:
        return str(headers.get(name, ""))
    except (ValueError, LookupError, IndexError, AttributeError):
        return "(unreadable)"
