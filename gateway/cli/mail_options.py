"""The options of `send`, each with its sentence."""

from pathlib import Path
from typing import Annotated

import typer

WAIT_SECONDS = 30
"""The longest that the gateway lets a caller wait for the relay (SEMANTICS 4)."""

To = Annotated[
    list[str] | None,
    typer.Option("--to", metavar="ADDRESS", help="Whom it is for; needed, and may be given several times."),
]
Cc = Annotated[list[str] | None, typer.Option("--cc", metavar="ADDRESS", help="Who gets a copy; may be repeated.")]
Bcc = Annotated[
    list[str] | None, typer.Option("--bcc", metavar="ADDRESS", help="Who gets one unseen; may be repeated.")
]
Sender = Annotated[
    str | None, typer.Option("--from", metavar="ADDRESS", help="The mailbox to send as; without it, the key's first.")
]
Subject = Annotated[
    str | None, typer.Option("--subject", metavar="TEXT", help="The subject; needed unless --eml is given.")
]
Text = Annotated[str | None, typer.Option("--text", metavar="TEXT", help="The body as plain text; - reads stdin.")]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="The body as HTML, from a UTF-8 file (- is stdin); with --text, both."),
]
Eml = Annotated[
    Path | None,
    typer.Option("--eml", metavar="FILE", help="A whole message (RFC 5322) in place of subject and body; - is stdin."),
]
IdempotencyKey = Annotated[
    str | None,
    typer.Option(
        "--idempotency-key", metavar="KEY", help="1 to 255 visible ASCII characters; the same never sends twice."
    ),
]
FencingToken = Annotated[
    int | None,
    typer.Option("--fencing-token", metavar="N", min=1, help="The token of your lease on the only recipient."),
]
Consensus = Annotated[
    str | None,
    typer.Option(
        "--require-consensus", metavar="ID", help="A consensus that must be approved; the mail is held until then."
    ),
]
Kind = Annotated[
    str | None, typer.Option("--kind", metavar="KIND", help="outreach (the default), reply or transactional.")
]
Schedule = Annotated[
    str | None,
    typer.Option("--schedule", metavar="TIME", help="Not before this time: ISO 8601, e.g. 2030-01-31T09:00:00Z."),
]
Agent = Annotated[
    str | None, typer.Option("--agent", metavar="AGENT", help="Send as this agent, where the key is bound to none.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only judge it: the same findings, nothing kept or sent.")]
Wait = Annotated[
    bool, typer.Option("--wait", help=f"Wait for the relay's first attempt, at most {WAIT_SECONDS} seconds.")
]
