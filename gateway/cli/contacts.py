"""`contacts ...`: the tenant's book of contacts, and what the gateway knows of each."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli import options, printing
from gateway.cli.answers import holder, listed, objects, when
from gateway.cli.api import Api, part
from gateway.cli.printing import member

PIECE = 500
RETRY = "what came before it is in the book; the same file may be synced again"


def list_contacts(
    email: Annotated[str | None, typer.Option("--email", metavar="ADDRESS", help="Only this person.")] = None,
    external_id: Annotated[
        str | None, typer.Option("--external-id", metavar="ID", help="Only the one with this id of your own.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=500, help="How many at most.")] = 100,
    after: Annotated[
        str | None, typer.Option("--after", metavar="ID", help="Go on behind the last one of the page before.")
    ] = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """List contacts, oldest first."""
    query = {"limit": str(limit)}
    more = {"email": email, "externalId": external_id, "after": after}
    query |= {name: value for name, value in more.items() if value is not None}
    found = Api(url, key, as_json=as_json).ask("GET", "/v1/contacts", query=query).body
    if as_json:
        printing.document(found)
        return
    fields = ("email", "name", "lifecycleStage", "dealStage", "externalId", "id")
    rows = [tuple(map(one.get, fields)) for one in objects(found)]
    printing.table(("address", "name", "stage", "deal", "your id", "id"), rows)


def get(
    which: Annotated[str, typer.Argument(metavar="ID|ADDRESS", help="The contact's id, or its address.")],
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Show a contact, who has it, when it was reached and what stands in the way. Exit code 1: there is none."""
    api = Api(url, key, as_json=as_json)
    if "@" in which:
        found = objects(api.ask("GET", "/v1/contacts", query={"email": which}).body)
        if not found:
            printing.fail("no contact has this address")
        which = str(found[0].get("id"))
    one = api.ask("GET", f"/v1/contacts/{part(which)}").body
    if as_json:
        printing.document(one)
        return
    printing.line(member(one, "email"))
    metadata = member(one, "metadata")
    consent = member(one, "consent", "basis") if member(one, "consent", "active") else None
    reason = member(one, "suppression", "reasonCode")
    printing.pairs(
        [
            *((words, member(one, name)) for words, name in (("id", "id"), ("your id", "externalId"))),
            *((words, member(one, name)) for words, name in (("name", "name"), ("stage", "lifecycleStage"))),
            ("deal", member(one, "dealStage")),
            ("metadata", json.dumps(metadata) if metadata else None),
            *holder(member(one, "leaseHolder")),
            ("on its way", listed(member(one, "inFlight"))),
            ("last contact", when(member(one, "lastContactAt"))),
            ("cooldown until", when(member(one, "cooldownExpiresAt"))),
            ("suppressed", reason),
            ("consent", consent),
        ]
    )


def sync(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE|-", help="JSON: a list of contacts, or one on each line; - is standard input."),
    ],
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Make contacts, or bring them up to date by externalId or address. Exit code 1: some could not be taken.

    Members: email, externalId, name, lifecycleStage, dealStage, metadata.
    """
    items = _read(file)
    api = Api(url, key, as_json=as_json)
    totals = dict.fromkeys(("processed", "created", "updated", "failed"), 0)
    results: list[dict[str, Any]] = []
    with api.kept():
        for at in range(0, len(items), PIECE):
            body = {"contacts": items[at : at + PIECE]}
            done = api.ask("POST", "/v1/contacts/sync", body=body, retry=RETRY, patient=True).body
            for name in totals:
                totals[name] += int(member(done, name) or 0)
            results += [one | {"index": at + int(one["index"])} for one in objects(member(done, "results"))]
    for one in results if not as_json else ():
        if one.get("status") == "failed":
            faults = objects(one.get("errors")) or [{"field": "contact", "message": one.get("message")}]
            why = "; ".join(f"{fault.get('field')}: {fault.get('message')}" for fault in faults)
            printing.note(f"contact {one['index'] + 1}: {why}")
    if as_json:
        printing.document({**totals, "results": results})
    else:
        printing.line(f"{totals['created']} made, {totals['updated']} brought up to date, {totals['failed']} failed")
    if totals["failed"]:
        raise typer.Exit(1)


def _read(file: Path) -> list[Any]:
    try:
        data = typer.get_binary_stream("stdin").read() if str(file) == "-" else file.read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror}", param_hint="FILE") from None
    except UnicodeDecodeError:
        raise typer.BadParameter("is not UTF-8", param_hint="FILE") from None
    try:
        if text.lstrip().startswith("["):
            found: list[Any] = json.loads(text)
            return found
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError:
        raise typer.BadParameter("is neither a list in JSON nor one object on each line", param_hint="FILE") from None
