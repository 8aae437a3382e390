"""`consent ...`: the ledger of who has agreed to be written to, and who has taken it back."""

from typing import Annotated

import typer

from gateway.cli import options, printing
from gateway.cli.answers import listed, when
from gateway.cli.api import Api
from gateway.cli.printing import member

Email = Annotated[str, typer.Option("--email", metavar="ADDRESS", help="The person.")]


def record(
    email: Email,
    basis: Annotated[
        str,
        typer.Option(
            "--basis",
            metavar="BASIS",
            help="explicit_opt_in, legitimate_interest, contractual or legal_obligation.",
        ),
    ] = "explicit_opt_in",
    source: Annotated[
        str | None, typer.Option("--source", metavar="TEXT", help="Where it comes from, for the record.")
    ] = None,
    jurisdiction: Annotated[
        str | None, typer.Option("--jurisdiction", metavar="TEXT", help="Whose law it is given under.")
    ] = None,
    granted_at: Annotated[
        str | None,
        typer.Option("--granted-at", metavar="TIME", help="Since when: ISO 8601 with offset; now without it."),
    ] = None,
    revoked_at: Annotated[
        str | None, typer.Option("--revoked-at", metavar="TIME", help="Makes it a withdrawal, which counts at once.")
    ] = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Add a record: somebody has agreed, or, with --revoked-at, has taken it back. Nothing is ever changed or removed."""
    body = {"recipientEmail": email, "basis": basis}
    more = {"source": source, "jurisdiction": jurisdiction, "grantedAt": granted_at, "revokedAt": revoked_at}
    body |= {name: value for name, value in more.items() if value is not None}
    made = Api(url, key, as_json=as_json).ask("POST", "/v1/consent", body=body).body
    if as_json:
        printing.document(made)
        return
    _tell(made)
    printing.pairs([("stopped", listed(member(made, "stopped")))])


def check(
    email: Email,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Say whether a person has agreed, by the record that decides. The exit code is 0 either way."""
    found = Api(url, key, as_json=as_json).ask("GET", "/v1/consent", query={"recipientEmail": email}).body
    if as_json:
        printing.document(found)
    else:
        _tell(found)


def _tell(found: object) -> None:
    who = member(found, "recipientEmail")
    if member(found, "active"):
        printing.line(f"{who} has agreed: {member(found, 'basis')}", "good")
    elif member(found, "id") is None:
        printing.line(f"{who} has not agreed: there is no record", "care")
    elif member(found, "revokedAt") is not None:
        printing.line(f"{who} has taken it back", "care")
    else:
        printing.line(f"{who} has not agreed yet", "care")
    fields = (("since", "grantedAt"), ("taken back", "revokedAt"), ("recorded", "createdAt"))
    printing.pairs(
        [
            ("source", member(found, "source")),
            ("jurisdiction", member(found, "jurisdiction")),
            *((words, when(member(found, name))) for words, name in fields),
            ("id", member(found, "id")),
        ]
    )
