"""`suppressions ...`: who must not be mailed. An entry binds every agent and stops mail that has not left yet."""

from typing import Annotated

import typer

from gateway.cli import options, printing
from gateway.cli.answers import listed, objects, when
from gateway.cli.api import Api, part
from gateway.cli.printing import member

Email = Annotated[str | None, typer.Option("--email", metavar="ADDRESS", help="The address.")]
Domain = Annotated[str | None, typer.Option("--domain", metavar="DOMAIN", help="A whole domain and all below it.")]


def _one(email: str | None, domain: str | None, name: str) -> dict[str, str]:
    """Exactly one of the two, as a member of a request; the address is called `name` there."""
    if email is not None and domain is None:
        return {name: email}
    if domain is not None and email is None:
        return {"domain": domain}
    raise typer.BadParameter("give either --email or --domain", param_hint="--email")


def add(
    email: Email = None,
    domain: Domain = None,
    reason: Annotated[
        str,
        typer.Option(
            "--reason",
            metavar="CODE",
            help="complaint, hard_bounce, manual_dnc, legal_request, role_account, unsubscribe or no_engagement.",
        ),
    ] = "manual_dnc",
    scope: Annotated[
        str, typer.Option("--scope", metavar="SCOPE", help="tenant, or campaign with --campaign-id.")
    ] = "tenant",
    campaign_id: Annotated[
        str | None, typer.Option("--campaign-id", metavar="ID", help="The campaign it is about.")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--source", metavar="TEXT", help="Where it comes from, for the record.")
    ] = None,
    expires_at: Annotated[
        str | None, typer.Option("--expires-at", metavar="TIME", help="When it ends: ISO 8601, UTC; without it, never.")
    ] = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Suppress an address, or a domain, from now on: queued mail is stopped at once, waiting mail when its time comes."""
    body = _one(email, domain, "recipientEmail") | {"reasonCode": reason, "scope": scope}
    more = {"campaignId": campaign_id, "source": source, "expiresAt": expires_at}
    body |= {name: value for name, value in more.items() if value is not None}
    made = Api(url, key, as_json=as_json).ask("POST", "/v1/suppressions", body=body).body
    if as_json:
        printing.document(made)
        return
    printing.line(f"{email or domain} is suppressed", "good")
    stopped = listed(member(made, "stopped"))
    rows = [("id", member(made, "id")), ("reason", member(made, "reasonCode")), ("scope", member(made, "scope"))]
    printing.pairs([*rows, ("until", when(member(made, "expiresAt"))), ("stopped", stopped)])


def list_suppressions(
    email: Email = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=500, help="How many at most, up to 500.")
    ] = 100,
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
    fields = ("reasonCode", "scope", "source", "createdAt", "expiresAt", "id")
    rows = [(one.get("recipientEmail") or one.get("domain"), *map(one.get, fields)) for one in objects(found)]
    printing.table(("address or domain", "reason", "scope", "source", "since", "until", "id"), rows)


def remove(
    which: Annotated[
        str, typer.Argument(metavar="ID|ADDRESS", help="The entry's id, or an address: then all its entries.")
    ],
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Take entries off the list. Exit code 1: there is none."""
    gone = Api(url, key, as_json=as_json).ask("DELETE", f"/v1/suppressions/{part(which)}").body
    if as_json:
        printing.document(gone)
    else:
        printing.line(f"{which} is off the list", "good")


def check(
    email: Email = None,
    domain: Domain = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Say whether an address or a domain is suppressed; give exactly one of the two. The exit code is 0 either way."""
    query = _one(email, domain, "email")
    found = Api(url, key, as_json=as_json).ask("GET", "/v1/suppressions/check", query=query).body
    if as_json:
        printing.document(found)
    elif member(found, "suppressed"):
        by = f", by its {member(found, 'matchedOn')}" if member(found, "matchedOn") else ""
        printing.line(f"{email or domain} is suppressed: {member(found, 'reason')}{by}", "care")
    else:
        printing.line(f"{email or domain} is not suppressed", "good")
