"""The tree of commands. It only names them: what a command needs is imported when it runs."""

from collections.abc import Callable
from typing import Any

import typer

from gateway.cli import agents, doctor, keys, requests, send, serve, setup, suppressions
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
        to.command(name, **more)(act)


def _group(name: str, sentence: str, commands: Commands) -> None:
    inner = _app(sentence)
    _add(inner, commands)
    app.add_typer(inner, name=name, rich_help_panel=MAIL)


app = _app("An outbound email gateway for fleets of agents: it judges a send, records it and relays it through SMTP.")
_add(app, {"init": setup.init, "serve": serve.serve, "sink": serve.sink, "demo": demo.demo}, rich_help_panel=RUN)
_add(app, {"send": send.send}, rich_help_panel=MAIL)
_group(
    "requests",
    "Look at a send, cancel it, decide about it.",
    {
        "show": requests.show,
        "resolve": requests.resolve,
        "cancel": requests.cancel,
    },
)
_group(
    "agents",
    "Agents, and which of them has which contact.",
    {
        "register": agents.register,
        "list": agents.list_agents,
        "lease": agents.lease,
        "renew-lease": agents.renew_lease,
        "release-lease": agents.release_lease,
        "leases": agents.leases,
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
    },
)
_group(
    "keys",
    "API keys, in the store that the settings name.",
    {
        "create": keys.create,
        "list": keys.list_all,
        "revoke": keys.revoke,
    },
)
_add(app, {"migrate": setup.migrate, "doctor": doctor.doctor, "version": setup.version}, rich_help_panel=CARE)
