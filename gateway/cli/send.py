"""`send`: one mail through the gateway. Without a key it makes one and prints it, so that a retry is safe."""

import base64
import secrets
import sys
from pathlib import Path
from typing import Any

import typer

from gateway.cli import mail_options, options, printing
from gateway.cli.answers import explain, went_well
from gateway.cli.api import ANSWER_SECONDS, Api, agent_header
from gateway.cli.mail_options import WAIT_SECONDS


def send(
    context: typer.Context,
    to: mail_options.To = None,
    subject: mail_options.Subject = None,
    text: mail_options.Text = None,
    html: mail_options.Html = None,
    eml: mail_options.Eml = None,
    cc: mail_options.Cc = None,
    bcc: mail_options.Bcc = None,
    sender: mail_options.Sender = None,
    idempotency_key: mail_options.IdempotencyKey = None,
    fencing_token: mail_options.FencingToken = None,
    require_consensus: mail_options.Consensus = None,
    kind: mail_options.Kind = None,
    schedule: mail_options.Schedule = None,
    agent: mail_options.Agent = None,
    dry_run: mail_options.DryRun = False,
    wait: mail_options.Wait = False,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Send a mail, or be told who or what stands in its way, until when, and what to do next.

    Exit code 0: accepted (with --wait: relayed, or tried again later by itself); 1: refused or failed; 2: wrong usage.
    """
    if context.invoked_subcommand is not None:
        return
    if not to:
        raise typer.BadParameter("is needed", param_hint="--to")
    body = _content(subject, text, html, eml)
    body["to"] = to
    more = {"cc": cc, "bcc": bcc, "from": sender, "kind": kind, "scheduledAt": schedule, "fencingToken": fencing_token}
    more |= {"requireConsensusId": require_consensus}
    body |= {name: value for name, value in more.items() if value}
    body["idempotencyKey"] = idempotency_key or f"cli-{secrets.token_hex(12)}"
    if dry_run:
        body["dryRun"] = True
    headers = agent_header(agent) | ({"Prefer": f"wait={WAIT_SECONDS}"} if wait and not dry_run else {})
    retry = f"whether it was taken is not known: repeat it with --idempotency-key {body['idempotencyKey']}"
    api = Api(url, key, as_json=as_json)
    seconds = ANSWER_SECONDS + (WAIT_SECONDS if wait else 0)
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
