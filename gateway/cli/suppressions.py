"""`suppressions ...`: who must not be mailed. An entry binds every agent and stops mail that has not left yet."""

from typing import Annotated, Any
from urllib.parse import quote

import typer

from gateway.cli import options, printing
from gateway.cli.answers import when
from gateway.cli.api import Api
from gateway.cli.printing import clean, fail, member

Email = Annotated[str | None, typer.Option("--email", metavar="ADDRESS", help="The address.")]


def add(
    email: Annotated[str, typer.Option("--email", metavar="ADDRESS", help="Whom not to mail.")],
    reason: Annotated[
        str,
        typer.Option(
            "--reason",
            metavar="CODE",
            help="complaint, hard_bounce, manual_dnc, legal_request, role_account, unsubscribe or no_engagement.",
        ),
    ] = "manual_dnc",
    scope: Annotated[str, typer.Option("--scope", metavar="SCOPE", help="tenant, or campaign with --campaign-id.")] = "tenant",
    campaign_id: Annotated[str | None, typer.Option("--campaign-id", metavar="ID", help="The campaign it is about.")] = None,
    source: Annotated[str | None, typer.Option("--source", metavar="TEXT", help="Where it comes from, for the record.")] = None,
    expires_at: Annotated[
        str | None, typer.Option("--expires-at", metavar="TIME", help="When it ends: ISO 8601, UTC; without it, never.")
    ] = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Suppress an address from now on; mail to it that has not left is stopped in the same moment."""
    body = {"recipientEmail": email, "reasonCode": reason, "scope": scope}
    more = {"campaignId": campaign_id, "source": source, "expiresAt": expires_at}
    body |= {name: value for name, value in more.items() if value is not None}
    made = Api(url, key, as_json=as_json).ask("POST", "/v1/suppressions", body=body).body
    if as_json:
        printing.document(made)
        return
    printing.line(f"{member(made, 'recipientEmail') or email} is suppressed", "good")
    stopped = ", ".join(clean(one) for one in member(made, "stopped") or [])
    rows = [("id", member(made, "id")), ("reason", member(made, "reasonCode")), ("scope", member(made, "scope"))]
    printing.pairs([*rows, ("until", when(member(made, "expiresAt"))), ("stopped", stopped)])


def list_suppressions(
    email: Email = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=500, help="How many at most, up to 500.")] = 100,
    offset: Annotated[int, typer.Option("--offset", metavar="N", min=0, help="How many to skip.")] = 0,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """List suppressions, newest first."""
    query = {"limit": str(limit), "offset": str(offset)} | ({"recipientEmail": email} if email else {})
    found = Api(url, key, as_json=as_json).ask("GET", "/v1/suppressions", query=query).body
    if as_json:
        printing.document(found)
        return
    fields = ("recipientEmail", "reasonCode", "scope", "source", "createdAt", "expiresAt", "id")
    rows = [tuple(member(one, name) for name in fields) for one in found if isinstance(found, list)]
    printing.table(("address", "reason", "scope", "source", "since", "until", "id"), rows)


def remove(
    which: Annotated[str, typer.Argument(metavar="ID|ADDRESS", help="The entry's id, or an address: then all its entries.")],
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Take entries off the list. Exit code 1: there is none."""
    api = Api(url, key, as_json=as_json)
    ids: list[Any] = [which]
    if "@" in which:
        found = api.ask("GET", "/v1/suppressions", query={"recipientEmail": which}).body
        ids = [member(one, "id") for one in found if isinstance(found, list)]
        if not ids:
            fail(f"{which} is not suppressed")
    gone = [api.ask("DELETE", f"/v1/suppressions/{quote(str(one), safe='')}").body for one in ids]
    if as_json:
        printing.document(gone[0] if "@" not in which else gone)
    else:
        printing.line(f"{which} is off the list", "good")


def check(
    email: Email = None,
    domain: Annotated[str | None, typer.Option("--domain", metavar="DOMAIN", help="A whole domain.")] = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Say whether an address or a domain is suppressed; give exactly one of the two. The exit code is 0 either way."""
    if (email is None) == (domain is None):
        raise typer.BadParameter("give either --email or --domain", param_hint="--email")
    query = {"email": email} if email is not None else {"domain": domain or ""}
    found = Api(url, key, as_json=as_json).ask("GET", "/v1/suppressions/check", query=query).body
    if as_json:
        printing.document(found)
    elif member(found, "suppressed"):
        by = f", by its {member(found, 'matchedOn')}" if member(found, "matchedOn") else ""
        printing.line(f"{email or domain} is suppressed: {member(found, 'reason')}{by}", "care")
    else:
        printing.line(f"{email or domain} is not suppressed", "good")
