"""`mailboxes ...`: the addresses to send as, their settings, their pause."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from gateway.cli import options, printing
from gateway.cli.answers import listed, objects
from gateway.cli.api import Api, part
from gateway.cli.printing import member

PATH = "/v1/agent/mailboxes"
PAGE = 500
NONE = "none"
"""Takes a setting away again: then it is as usual."""

Which = Annotated[str, typer.Argument(metavar="ID|ADDRESS", help="The mailbox's id, or its address.")]
DisplayName = Annotated[
    str | None, typer.Option("--display-name", metavar="TEXT", help="The name in From; none takes it away.")
]
Demands = Annotated[
    str | None,
    typer.Option("--demands", metavar="WHAT", help="What a send must carry: lease, token, both, or none."),
]
MayReply = Annotated[
    bool | None, typer.Option("--may-reply/--no-reply", help="Whether it may send mail of kind reply.")
]
Transactional = Annotated[
    bool | None,
    typer.Option("--transactional/--no-transactional", help="Whether it may send mail that neither holds nor is held."),
]
RequireConsensus = Annotated[
    bool | None,
    typer.Option(
        "--require-consensus/--no-consensus", help="Whether what it sends must name a consensus that was approved."
    ),
]
Unknown = Annotated[
    str | None,
    typer.Option(
        "--unknown",
        metavar="SETTING",
        help="For unknown deliveries: hold, retry_once_after:1h, assume_sent_after:24h, or none for the usual.",
    ),
]
Cooldown = Annotated[
    str | None,
    typer.Option("--cooldown", metavar="MINUTES", help="Minutes between two mails to a person; none for the usual."),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="PATTERN",
        help="Mail may go there alone: example.com, *.example.com, an address; may be repeated. none takes the list away.",
    ),
]
AllowNobody = Annotated[bool, typer.Option("--allow-nobody", help="An empty list: mail may go to nobody.")]


def add(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="The address to send as.")],
    display_name: DisplayName = None,
    demands: Demands = None,
    may_reply: MayReply = None,
    transactional: Transactional = None,
    require_consensus: RequireConsensus = None,
    unknown: Unknown = None,
    cooldown: Cooldown = None,
    allow: Allow = None,
    allow_nobody: AllowNobody = False,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Make a mailbox. One of a new domain waits as provisioning until an operator sets it active."""
    body = _settings(display_name, demands, unknown, cooldown)
    body |= _switches(may_reply, transactional, require_consensus) | _list(allow, nobody=allow_nobody)
    made = Api(url, key, as_json=as_json).ask("POST", PATH, body={"address": address} | body).body
    _told(made, f"{address} is {member(made, 'status')}", as_json=as_json)


def list_mailboxes(url: options.Url = None, key: options.Key = None, as_json: options.Json = False) -> None:
    """List the mailboxes of the key, oldest first."""
    found = list(_all(Api(url, key, as_json=as_json)))
    if as_json:
        printing.document(found)
        return
    fields = ("address", "status", "displayName", "demands", "mayReply", "transactional", "id")
    rows = [tuple(_word(one.get(field)) for field in fields) for one in found]
    printing.table(("address", "status", "name", "demands", "replies", "transactional", "id"), rows)


def show(which: Which, url: options.Url = None, key: options.Key = None, as_json: options.Json = False) -> None:
    """Show a mailbox with its settings. Exit code 1: there is none."""
    api = Api(url, key, as_json=as_json)
    found = api.ask("GET", _path(api, which)).body
    _told(found, f"{member(found, 'address')} is {member(found, 'status')}", as_json=as_json)


def change(
    which: Which,
    display_name: DisplayName = None,
    demands: Demands = None,
    may_reply: MayReply = None,
    transactional: Transactional = None,
    require_consensus: RequireConsensus = None,
    unknown: Unknown = None,
    cooldown: Cooldown = None,
    allow: Allow = None,
    allow_nobody: AllowNobody = False,
    active: Annotated[bool, typer.Option("--active", help="Let one that is provisioning send.")] = False,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Change a mailbox's settings; what is not named stays. What loosens one needs an operator's key."""
    body = _settings(display_name, demands, unknown, cooldown)
    body |= _switches(may_reply, transactional, require_consensus) | _list(allow, nobody=allow_nobody)
    body |= {"status": "active"} if active else {}
    if not body:
        raise typer.BadParameter("say what is to change", param_hint="options")
    api = Api(url, key, as_json=as_json)
    done = api.ask("PATCH", _path(api, which), body=body).body
    _told(done, f"{member(done, 'address')} is changed", as_json=as_json)


def pause(which: Which, url: options.Url = None, key: options.Key = None, as_json: options.Json = False) -> None:
    """Pause a mailbox: it takes nothing more, and what is queued is held in the same moment."""
    api = Api(url, key, as_json=as_json)
    done = api.ask("POST", _path(api, which, "/pause"), body={}).body
    _told(done, f"{member(done, 'address')} is paused; held: {member(done, 'held')}", as_json=as_json)


def resume(which: Which, url: options.Url = None, key: options.Key = None, as_json: options.Json = False) -> None:
    """Let a mailbox go on (an operator's key); what its pause has held is judged again, oldest first."""
    api = Api(url, key, as_json=as_json)
    done = api.ask("POST", _path(api, which, "/resume"), body={}).body
    _told(done, f"{member(done, 'address')} is active; let go: {member(done, 'released')}", as_json=as_json)


def _settings(
    display_name: str | None, demands: str | None, unknown: str | None, cooldown: str | None
) -> dict[str, Any]:
    """The members that are texts; `none` takes one away."""
    given: dict[str, Any] = {"displayName": display_name, "demands": demands, "unknown": unknown}
    body = {name: None if value == NONE else value for name, value in given.items() if value is not None}
    if cooldown is not None and cooldown != NONE and not (cooldown.isascii() and cooldown.isdecimal()):
        raise typer.BadParameter("must be whole minutes, or none", param_hint="--cooldown")
    return body | ({} if cooldown is None else {"cooldownMinutes": None if cooldown == NONE else int(cooldown)})


def _switches(may_reply: bool | None, transactional: bool | None, require_consensus: bool | None) -> dict[str, bool]:
    given = {"mayReply": may_reply, "transactional": transactional, "requireConsensus": require_consensus}
    return {name: value for name, value in given.items() if value is not None}


def _list(allow: list[str] | None, *, nobody: bool) -> dict[str, Any]:
    if allow and nobody:
        raise typer.BadParameter("stands beside --allow", param_hint="--allow-nobody")
    if not allow and not nobody:
        return {}
    return {"allowedRecipientDomains": None if allow == [NONE] else allow or []}


def _all(api: Api) -> Iterator[dict[str, Any]]:
    query = {"limit": str(PAGE)}
    while True:
        page = objects(api.ask("GET", PATH, query=query).body)
        yield from page
        if len(page) < PAGE:
            return
        query["after"] = str(page[-1].get("id"))


def _path(api: Api, which: str, act: str = "") -> str:
    """The mailbox's place; an address is looked up."""
    if "@" in which:
        found = [one for one in _all(api) if str(one.get("address")).lower() == which.lower()]
        if not found:
            printing.fail("no mailbox of this key has this address")
        which = str(found[0].get("id"))
    return f"{PATH}/{part(which)}{act}"


def _told(box: object, headline: str, *, as_json: bool) -> None:
    if as_json:
        printing.document(box)
        return
    printing.line(headline, "good" if member(box, "status") == "active" else "care")
    allowed = member(box, "allowedRecipientDomains")
    kinds = member(box, "unknown")
    unknown = ", ".join(f"{kind}: {one}" for kind, one in kinds.items()) if isinstance(kinds, dict) else kinds
    minutes = member(box, "cooldownMinutes")
    printing.pairs(
        [
            ("id", member(box, "id")),
            ("name", member(box, "displayName")),
            ("demands", member(box, "demands")),
            ("replies", _word(member(box, "mayReply"))),
            ("transactional", _word(member(box, "transactional"))),
            ("needs a consensus", _word(member(box, "requireConsensus"))),
            ("unknown", unknown),
            ("cooldown", None if minutes is None else f"{minutes} min"),
            ("mail may go to", None if allowed is None else listed(allowed) or "nobody"),
        ]
    )


def _word(value: object) -> object:
    return {True: "yes", False: ""}.get(value, value) if isinstance(value, bool) else value
