"""`send`: one mail through the gateway. Without a key it makes one and prints it, so that a retry is safe."""

import base64
import secrets
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli import options, printing
from gateway.cli.answers import explain, went_well
from gateway.cli.api import Api, agent_header

WAIT_SECONDS = 30
"""The longest that the gateway lets a caller wait for the relay (SEMANTICS 4)."""

Addresses = list[str]


def send(
    to: Annotated[
        Addresses, typer.Option("--to", metavar="ADDRESS", help="Whom it is for; may be given several times.")
    ],
    subject: Annotated[
        str | None, typer.Option("--subject", metavar="TEXT", help="The subject; needed unless --eml.")
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="The body as plain text; - reads stdin.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="The body as HTML, from a UTF-8 file; with --text, both."),
    ] = None,
    eml: Annotated[
        Path | None,
        typer.Option("--eml", metavar="FILE", help="A whole message (RFC 5322) in place of subject and body."),
    ] = None,
    cc: Annotated[Addresses | None, typer.Option("--cc", metavar="ADDRESS", help="Who gets a copy.")] = None,
    bcc: Annotated[Addresses | None, typer.Option("--bcc", metavar="ADDRESS", help="Who gets one unseen.")] = None,
    sender: Annotated[
        str | None, typer.Option("--from", metavar="ADDRESS", help="The mailbox to send as; without it, the key's own.")
    ] = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option(
            "--idempotency-key",
            metavar="KEY",
            help="1 to 255 visible ASCII characters; the same key never sends twice.",
        ),
    ] = None,
    fencing_token: Annotated[
        int | None,
        typer.Option("--fencing-token", metavar="N", min=1, help="The token of your lease on the only --to."),
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="KIND", help="outreach (the default), reply or transactional.")
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option("--schedule", metavar="TIME", help="Not before this time: ISO 8601, e.g. 2030-01-31T09:00:00Z."),
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="AGENT", help="Send as this agent, where the key is bound to none.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only judge it: the same findings, nothing kept or sent.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help=f"Wait for the relay's first attempt, at most {WAIT_SECONDS} s.")
    ] = False,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Send a mail, or be told who or what stands in its way, until when, and what to do next.

    Exit code 0: accepted (with --wait: relayed, or tried again later by itself); 1: refused or failed; 2: wrong usage.
    """
    body = _content(subject, text, html, eml)
    body["to"] = to
    more = {"cc": cc, "bcc": bcc, "from": sender, "kind": kind, "scheduledAt": schedule, "fencingToken": fencing_token}
    body |= {name: value for name, value in more.items() if value}
    body["idempotencyKey"] = idempotency_key or f"cli-{secrets.token_hex(12)}"
    if dry_run:
        body["dryRun"] = True
    headers = agent_header(agent) | ({"Prefer": f"wait={WAIT_SECONDS}"} if wait and not dry_run else {})
    retry = f"whether it was taken is not known: repeat it with --idempotency-key {body['idempotencyKey']}"
    api = Api(url, key, as_json=as_json)
    seconds = WAIT_SECONDS + 30.0
    answer = api.ask("POST", "/v1/agent/request-send", body=body, headers=headers, seconds=seconds, retry=retry)
    if as_json:
        printing.document(answer.body)
    else:
        explain(answer.body, dry_run=dry_run)
    if not went_well(answer.body, dry_run=dry_run):
        raise typer.Exit(1)


def _content(subject: str | None, text: str | None, html: Path | None, eml: Path | None) -> dict[str, Any]:
    """What the mail says, as the gateway's fields."""
    if eml is not None:
        if subject is not None or text is not None or html is not None:
            raise typer.BadParameter("holds subject and body already", param_hint="--eml")
        return {"rawMessage": base64.b64encode(_read(eml, "--eml")).decode("ascii")}
    if subject is None:
        raise typer.BadParameter("is needed, unless --eml is given", param_hint="--subject")
    if text is None and html is None:
        raise typer.BadParameter("is needed, or --html or --eml", param_hint="--text")
    body: dict[str, Any] = {"subject": subject}
    if text is not None:
        body["text"] = _utf8(sys.stdin.buffer.read(), "--text") if text == "-" else text
    if html is not None:
        body["html"] = _utf8(_read(html, "--html"), "--html")
    return body


def _read(path: Path, option: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be read: {error.strerror}", param_hint=option) from None


def _utf8(content: bytes, option: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise typer.BadParameter("the text is not UTF-8", param_hint=option) from None
