"""Options that many commands share, each with its name, its variable and its sentence."""

import functools
import inspect
import os
from collections.abc import Callable
from typing import Annotated, Any

import typer

from gateway import profile


def profiles_like(incomplete: str) -> list[str]:
    """The profiles whose names begin so, for the shell's completion."""
    return [name for name in profile.names() if name.startswith(incomplete)]


Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="GATEWAY_URL",
        metavar="URL",
        help="Where the gateway answers, e.g. http://127.0.0.1:8080; without it, the profile's.",
        rich_help_panel="Gateway",
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        envvar="GATEWAY_KEY",
        metavar="KEY",
        help="API key (gk_live_...); without it, the profile's. Others on this machine see what is typed here: "
        "better use the variable or the profile.",
        rich_help_panel="Gateway",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout instead of text.")]
Config = Annotated[
    str | None,
    typer.Option(
        "--config", envvar="GATEWAY_CONFIG", metavar="FILE", help="TOML file with settings; variables win over it."
    ),
]
AgentId = Annotated[str | None, typer.Option("--agent-id", metavar="ID", help="The agent, by its id.")]
AgentName = Annotated[str | None, typer.Option("--agent-name", metavar="NAME", help="The agent, by its name.")]
Duration = Annotated[
    float,
    typer.Option("--duration", metavar="MINUTES", help="How long the lease lasts, in minutes; fractions are allowed."),
]
Tenant = Annotated[
    str | None,
    typer.Option("--tenant", metavar="TENANT", help="The tenant: in the store, default; over HTTP, the key's own."),
]
Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        autocompletion=profiles_like,
        help="The profile, by name or path; without it, what GATEWAY_PROFILE names, else `gateway profiles use` has set.",
        rich_help_panel="Gateway",
    ),
]


def profiled(act: Callable[..., None]) -> Callable[..., None]:
    """The same command with the option --profile, which says whose URL and key are meant."""

    @functools.wraps(act)
    def within(*args: Any, **kwargs: Any) -> None:
        name = kwargs.pop("profile_name")
        if name is not None:  # it goes before variables: the key of one gateway must not reach another
            given = {"url": os.environ.get("GATEWAY_URL"), "key": os.environ.get("GATEWAY_KEY")}
            kwargs |= {one: None for one, value in given.items() if one in kwargs and kwargs[one] == value}
        with profile.chosen(name):
            act(*args, **kwargs)

    known = inspect.signature(act)
    own = inspect.Parameter("profile_name", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Profile)
    within.__signature__ = known.replace(parameters=[*known.parameters.values(), own])  # type: ignore[attr-defined]
    within.__annotations__ = {**act.__annotations__, own.name: Profile}
    return within


def takes_url(act: Callable[..., None]) -> bool:
    """Whether a command asks a gateway."""
    return "url" in inspect.signature(act).parameters
