"""Options that many commands share, each with its name, its variable and its sentence."""

from typing import Annotated

import typer

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
