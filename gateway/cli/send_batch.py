"""`send batch`: many mails from a file, piece by piece through a running gateway, which judges each like a single one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli import mail_options, options, printing
from gateway.cli.answers import FAILED, listed, objects
from gateway.cli.api import Api, agent_header
from gateway.cli.meter import Meter
from gateway.cli.printing import member

PIECE = 500
"""Mails in one request."""
PIECE_CHARS = 8_000_000
"""Characters of mails in one request, unless one alone has more."""
SECONDS = 120.0
RETRY = "what was decided is recorded; the same file may be sent again, and mail with a key is not sent twice"

Json = dict[str, Any]


def batch(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|-",
            help="JSON: a batch with `sends` and what they share, a list of mails, or one on each line; - is standard input.",
        ),
    ],
    agent: mail_options.Agent = None,
    dry_run: mail_options.DryRun = False,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Send many mails; what stands in the way of one is told, and harms no other.

    The members are those of the HTTP API: recipientEmail, idempotencyKey, subject, text, and so on. Exit code 0: all were
    accepted; 1: some were not, or the gateway refused; 2: wrong usage.
    """
    shared, items = _read(file)
    api = Api(url, key, as_json=as_json)
    results: list[Json] = []
    path = "/v1/agent/simulate-batch" if dry_run else "/v1/agent/batch/request-send"
    with Meter("tried" if dry_run else "decided", len(items)) as meter, api.kept():
        for begin, piece in _pieces(items):
            body = shared | {"sends": piece}
            for line in api.lines(path, body=body, headers=agent_header(agent), seconds=SECONDS, retry=RETRY):
                if "index" not in line:
                    continue  # the totals of this piece
                results.append(line | {"index": begin + line["index"]})
                meter.moved(1, len(results))
            if len(results) < begin + len(piece):
                printing.fail(f"the answer ended early; {RETRY}")
    _tell(results, as_json=as_json, dry_run=dry_run)


def _tell(results: list[Json], *, as_json: bool, dry_run: bool) -> None:
    bad = [one for one in results if _failed(one)]
    counts: dict[str, int] = {}
    for one in results:
        counts[str(one.get("status"))] = counts.get(str(one.get("status")), 0) + 1
    if as_json:
        good = {"wouldAllow" if dry_run else "accepted": len(results) - len(bad)}
        printing.document({"total": len(results), **good, "counts": counts, "results": results})
    else:
        if bad:
            rows = [(one["index"] + 1, one.get("recipientEmail"), one.get("status"), *_why(one)) for one in bad]
            printing.table(("mail", "recipient", "status", "reason", "why"), rows)
        words = "would be accepted" if dry_run else "accepted"
        printing.line(f"{len(results) - len(bad)} of {len(results)} {words}", "bad" if bad else "good")
        replayed = sum(bool(one.get("replayed")) for one in results)
        printing.pairs([*sorted(counts.items()), ("had been sent before", replayed or None)])
    if bad:
        raise typer.Exit(1)


def _failed(result: Json) -> bool:
    return not result["wouldAllow"] if "wouldAllow" in result else str(result.get("status")) in FAILED


def _why(result: Json) -> tuple[object, str]:
    """Reason and words; of a malformed mail, each bad field."""
    faults = [f"{one.get('field')}: {one.get('message')}" for one in objects(result.get("errors"))]
    words = listed(faults) or str(result.get("detail") or result.get("message") or "")
    retry = member(result, "retryAt")
    return result.get("reason"), f"{words}; try again at {retry}" if retry else words


def _pieces(items: list[Any]) -> Iterator[tuple[int, list[Any]]]:
    """The mails in pieces for one request each, with the place of the first."""
    begin, size = 0, 0
    for at, item in enumerate(items):
        chars = len(json.dumps(item))
        if at > begin and (at - begin == PIECE or size + chars > PIECE_CHARS):
            yield begin, items[begin:at]
            begin, size = at, 0
        size += chars
    yield begin, items[begin:]


def _read(file: Path) -> tuple[Json, list[Any]]:
    """What all mails share, and the mails."""
    try:
        data = typer.get_binary_stream("stdin").read() if str(file) == "-" else file.read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror}", param_hint="FILE") from None
    except UnicodeDecodeError:
        raise typer.BadParameter("is not UTF-8", param_hint="FILE") from None
    try:
        shared, items = _parsed(text)
    except ValueError:
        raise typer.BadParameter(
            "is neither a batch or a list in JSON nor one mail on each line", param_hint="FILE"
        ) from None
    if not items:
        raise typer.BadParameter("holds no mail", param_hint="FILE")
    return shared, items


def _parsed(text: str) -> tuple[Json, list[Any]]:
    try:
        whole = json.loads(text)
    except ValueError:
        return {}, [json.loads(line) for line in text.splitlines() if line.strip()]
    if isinstance(whole, dict) and isinstance(whole.get("sends"), list):
        return {name: value for name, value in whole.items() if name != "sends"}, whole["sends"]
    return {}, whole if isinstance(whole, list) else [whole]
