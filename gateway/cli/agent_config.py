"""`agents config` and `agents update-config`: what is kept with an agent for programs that write in its name."""

import json
from typing import Annotated, Any

import typer

from gateway.cli import options, printing
from gateway.cli.answers import listed
from gateway.cli.api import Api, part
from gateway.cli.printing import member

AGENTS = "/v1/agent/agents"

Which = Annotated[str, typer.Argument(metavar="AGENT", help="The agent's id, or its name.")]


def config(which: Which, url: options.Url = None, key: options.Key = None, as_json: options.Json = False) -> None:
    """Show an agent's config: its humanizer. This gateway rewrites no mail; it keeps the keys for programs that do."""
    found = Api(url, key, as_json=as_json).ask("GET", f"{_path(which)}/config").body
    if as_json:
        printing.document(found)
    else:
        _tell(found)


def update_config(
    which: Which,
    config: Annotated[
        str,
        typer.Option(
            "--config",
            metavar="JSON",
            help="A JSON object with humanizer_enabled, humanizer_style; what it does not name stays.",
        ),
    ],
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Change an agent's config; it counts as a heartbeat. To turn the humanizer on needs an operator's key."""
    try:
        wish = json.loads(config)
    except ValueError:
        raise typer.BadParameter("is not JSON", param_hint="--config") from None
    done = Api(url, key, as_json=as_json).ask("PUT", f"{_path(which)}/config", body=wish).body
    if warnings := listed(member(done, "warnings")):
        printing.note(f"warning: {warnings}")
    if as_json:
        printing.document(done)
        return
    printing.line(f"updated {member(done, 'agentId')}", "good")
    _tell(member(done, "config"))


def _tell(found: Any) -> None:  # noqa: ANN401  (JSON)
    values = found if isinstance(found, dict) else {}
    printing.pairs([(name, json.dumps(value)) for name, value in values.items()])
    if not values:
        printing.line("none")


def _path(which: str) -> str:
    return f"{AGENTS}/{part(which)}"
