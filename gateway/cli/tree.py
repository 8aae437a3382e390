"""The tree of commands. It only names them: what a command needs is imported when it runs."""

from collections.abc import Callable
from typing import Any

import typer

from gateway.cli import (
    adopt,
    agent_config,
    agents,
    attachments,
    budget,
    consensus,
    consent,
    contacts,
    decisions,
    doctor,
    events,
    keys,
    mailboxes,
    mcp,
    options,
    profiles,
    relay,
    request_list,
    requests,
    send,
    send_batch,
    serve,
    setup,
    suppression_files,
    suppressions,
    templates,
    tls,
    whoami,
)
from gateway.cli.demo import command as demo

RUN = "Run it"
MAIL = "Mail"
CARE = "Look after it"

Commands = dict[str, Callable[..., None]]


def _app(sentence: str) -> typer.Typer:
    return typer.Typer(
        help=sentence,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _add(to: typer.Typer, commands: Commands, **more: Any) -> None:
    for name, act in commands.items():
        to.command(name, **more)(options.profiled(act) if options.takes_url(act) else act)


def _group(name: str, sentence: str, commands: Commands, within: typer.Typer | None = None) -> typer.Typer:
    inner = _app(sentence)
    _add(inner, commands)
    if within is None:
        app.add_typer(inner, name=name, rich_help_panel=MAIL)
    else:
        within.add_typer(inner, name=name)
    return inner


app = _app("An outbound email gateway for fleets of agents: it judges a send, records it and relays it through SMTP.")
_add(
    app,
    {"init": options.profiled(setup.init), "serve": serve.serve, "sink": serve.sink, "demo": demo.demo},
    rich_help_panel=RUN,
)
sending = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="rich")
sending.callback(invoke_without_command=True)(options.profiled(send.send))
_add(sending, {"batch": send_batch.batch})
app.add_typer(sending, name="send", rich_help_panel=MAIL)
_add(
    app,
    {"budget": budget.budget, "listen": events.listen, "mcp": mcp.mcp, "whoami": whoami.whoami},
    rich_help_panel=MAIL,
)
_group("events", "What has happened.", {"list": events.list_events})
_group(
    "requests",
    "Look at sends, cancel one, decide about one.",
    {
        "list": request_list.list_requests,
        "show": requests.show,
        "resolve": requests.resolve,
        "cancel": requests.cancel,
    },
)
agents_group = _group(
    "agents",
    "Agents, and which of them has which contact.",
    {
        "register": agents.register,
        "list": agents.list_agents,
        "config": agent_config.config,
        "update-config": agent_config.update_config,
        "get": agents.get,
        "heartbeat": agents.heartbeat,
        "lease": agents.lease,
        "renew-lease": agents.renew_lease,
        "release-lease": agents.release_lease,
        "leases": agents.leases,
    },
)
_group(
    "consensus",
    "Votes among agents.",
    {
        "create": consensus.create,
        "get": consensus.get,
        "vote": consensus.vote,
        "list": consensus.list_all,
    },
    within=agents_group,
)
_group(
    "mailboxes",
    "The addresses to send as, their settings, their pause.",
    {
        "add": mailboxes.add,
        "list": mailboxes.list_mailboxes,
        "show": mailboxes.show,
        "set": mailboxes.change,
        "pause": mailboxes.pause,
        "resume": mailboxes.resume,
    },
)
_group(
    "relay",
    "Close and open the relay for the whole gateway.",
    {
        "pause": relay.pause,
        "resume": relay.resume,
        "status": relay.status,
    },
)
_group(
    "suppressions",
    "Who must not be mailed.",
    {
        "add": suppressions.add,
        "list": suppressions.list_suppressions,
        "remove": suppressions.remove,
        "check": suppressions.check,
        "import": suppression_files.import_suppressions,
        "export": suppression_files.export,
    },
)
_group(
    "contacts",
    "The tenant's book of contacts.",
    {
        "list": contacts.list_contacts,
        "get": contacts.get,
        "sync": contacts.sync,
    },
)
_group(
    "consent",
    "Who has agreed to be written to.",
    {
        "record": consent.record,
        "check": consent.check,
    },
)
_group(
    "templates",
    "Texts with gaps, in versions, that sends name.",
    {
        "create": templates.create,
        "list": templates.list_templates,
        "get": templates.get,
        "add-version": templates.add_version,
        "publish": templates.publish,
        "render": templates.render,
        "lint": templates.lint,
    },
)
_group("attachments", "Files to attach by their id.", {"upload": attachments.upload})
_group(
    "keys",
    "API keys: in the store that the settings name; over HTTP with --profile, --url or --key, or a variable for these.",
    {
        "create": keys.create,
        "list": keys.list_all,
        "narrow": keys.narrow,
        "revoke": keys.revoke,
        "bind": keys.bind,
        "unbind": keys.unbind,
    },
)
_group(
    "adopt",
    "Hand a new agent a key of its own.",
    {
        "invite": adopt.invite,
        "claim": adopt.claim,
        "pending": adopt.pending,
        "revoke": adopt.revoke,
    },
)
_group(
    "decisions",
    "What agents ask for and only a person may do.",
    {
        "list": decisions.list_decisions,
        "show": decisions.show,
        "confirm": decisions.confirm,
        "reject": decisions.reject,
    },
)
_group(
    "profiles",
    "The gateways that you know, and which of them is meant.",
    {
        "add": profiles.add,
        "list": profiles.list_profiles,
        "use": profiles.use,
        "show": profiles.show,
    },
)
_group("tls", "The certificate of the SMTP door.", {"self-signed": tls.self_signed})
_add(
    app,
    {"migrate": setup.migrate, "doctor": options.profiled(doctor.doctor), "version": setup.version},
    rich_help_panel=CARE,
)
