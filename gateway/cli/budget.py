"""`budget`: what is used up of the limits of a tenant, an agent, a mailbox."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from gateway.cli import options, printing
from gateway.cli.answers import when
from gateway.cli.api import Api
from gateway.cli.printing import member

WINDOWS = ("hourly", "daily", "monthly")


def budget(
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="AGENT", help="Also that of an agent, by id or name.")
    ] = None,
    mailbox_id: Annotated[
        str | None, typer.Option("--mailbox-id", metavar="ID", help="Also that of a mailbox, by its id.")
    ] = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Show how many recipients were written to in the running hour, day and month, and how many more may be."""
    query = {name: value for name, value in (("agent", agent), ("mailboxId", mailbox_id)) if value is not None}
    told = Api(url, key, as_json=as_json).ask("GET", "/v1/agent/budget", query=query).body
    if as_json:
        printing.document(told)
        return
    printing.table(("of", "window", "used", "limit", "remaining", "begins anew"), _rows(told))


def _rows(told: Any) -> Iterator[tuple[object, ...]]:  # noqa: ANN401  (JSON)
    whose = [("tenant", told)]
    whose += [
        (f"{name} {member(told, name, 'id')}", member(told, name)) for name in ("agent", "mailbox") if name in told
    ]
    for words, body in whose:
        for window in WINDOWS:
            one = member(body, window)
            limit = member(one, "limit")
            note = " (observed only)" if limit is not None and not member(one, "enforced") else ""
            used, remaining = member(one, "used"), member(one, "remaining")
            shown = (used, f"{limit}{note}", remaining) if limit is not None else ("not counted", "none", "")
            yield words, window, *shown, when(member(one, "resetsAt"))
