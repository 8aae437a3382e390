"""`events list` and `listen`: what happened, and what happens from now on; one line for each event."""

import json
import signal
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli import options, printing
from gateway.cli.api import Api
from gateway.cli.printing import clean, member

if TYPE_CHECKING:
    from gateway.client import Event, GatewayError

PAGE = 500
FIRST = ("id", "type", "occurredAt", "tenantId", "contactEmail", "recipientEmail")
"""Members that stand at the beginning of a line, or say nothing new."""

Types = Annotated[
    str | None,
    typer.Option(
        "--events", metavar="TYPE,...", help="Which types: names, or whole groups like send.*; without it, all."
    ),
]
Contact = Annotated[str | None, typer.Option("--contact", metavar="ADDRESS", help="Only what is about this person.")]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="ID", help="The id of an event, as --json shows it: what came after it."),
]


def list_events(
    since: Since = None,
    events: Types = None,
    contact: Contact = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="How many at most.")] = 100,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """List events, oldest first; where there are more, the id to go on after is told on stderr.

    Each event's own id, which --since takes, is in --json alone.
    """
    api = Api(url, key, as_json=as_json)
    rows: list[Event] = []
    more = True
    with api.reaching() as client:
        while more and len(rows) < limit:
            size = min(PAGE, limit - len(rows))
            page = client.events(since=since, events=events, contact=contact, limit=size)
            rows += page.items
            since, more = page.since, page.more
    if as_json:
        printing.document({"items": [one.body for one in rows], "since": since, "more": more})
        return
    told = [(one.occurred_at and one.body.get("occurredAt"), one.type, one.contact, _what(one.body)) for one in rows]
    printing.table(("at", "event", "contact", "what"), told)
    if more:
        printing.note(f"there are more: --since {since}")


def listen(
    events: Types = None,
    contact: Contact = None,
    since: Since = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Print events as they happen, one on each line, until Ctrl-C; with --json one object on each line, with its id.

    A connection that breaks is made again, which stderr says, and what happened meanwhile is told first. Exit code 0:
    stopped by Ctrl-C or SIGTERM; 1: the key is good no longer, or there is no gateway.
    """
    api = Api(url, key)  # an error is told in words: only events are objects here
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with api.kept() as client, api.reaching():
            for event in client.listen(events, contact, since, lost=_lost, back=_back):
                _tell(event, as_json=as_json)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None
    except BrokenPipeError:
        sys.stdout = None  # whoever read this has gone: there is nothing left to flush
        raise typer.Exit(0) from None


def _lost(error: "GatewayError", seconds: float) -> None:
    from gateway.client import Unreachable

    if isinstance(error, Unreachable) and error.uncertain:
        printing.note("the stream ended; connecting again")
    else:
        printing.note(f"{error.message}; asking again in {seconds:.0f} s")


def _back() -> None:
    printing.note("connected again", "good")


def _tell(event: "Event", *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(event.body) + "\n")
    else:
        words = (event.body.get("occurredAt"), event.type, event.contact, _what(event.body))
        printing.line("  ".join(clean(word) for word in words if word))
    sys.stdout.flush()


def _what(body: dict[str, Any]) -> str:
    """What else an event says, on one line."""
    plain = {name: value for name, value in body.items() if name not in FIRST and value not in (None, "", [], {})}
    holder = plain.pop("leaseHolder", None)
    words = [f"{name}={_short(value)}" for name, value in plain.items()]
    return " ".join([*words, *([f"holder={member(holder, 'agentId')}"] if holder else [])])


def _short(value: object) -> str:
    return clean(value) if isinstance(value, str | int | float) else json.dumps(value, separators=(",", ":"))
