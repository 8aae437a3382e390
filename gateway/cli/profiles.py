"""`profiles ...`: the gateways that this user knows, each with its key; which of them is meant where none is named."""

import os
from typing import Annotated

import typer

from gateway import profile
from gateway.cli import options, printing
from gateway.cli.printing import fail

SHOWN = 12
"""Characters of a key that are shown: its kind and a little of what tells it from others."""

Name = Annotated[str, typer.Argument(metavar="NAME", autocompletion=options.profiles_like, help="The profile's name.")]


def list_profiles(as_json: options.Json = False) -> None:
    """List the profiles by name; the one that is meant where none is named is marked."""
    rows = [_row(name) for name in profile.names()]
    if as_json:
        printing.document(rows)
        return
    marked = [("*" if row["default"] else "", row["name"], row["url"] or row["fault"], row["path"]) for row in rows]
    printing.table(("", "profile", "gateway", "file"), marked)
    if named := os.environ.get("GATEWAY_PROFILE"):
        printing.note(f"GATEWAY_PROFILE names another: {named}")


def _row(name: str) -> dict[str, object]:
    path, url, fault = profile.named(name), None, None
    try:
        known = profile.read(path)
        url = None if known is None else known.url
    except ValueError as error:
        fault = str(error)
    return {"name": name, "default": name == profile.default(), "url": url, "path": str(path), "fault": fault}


def use(name: Name, as_json: options.Json = False) -> None:
    """Let a profile be the one that is meant where none is named, from now on.

    `keys` and `relay` do not heed it where there is a store: they go to the store that the settings name, unless --url,
    --key or --profile is given.
    """
    try:
        profile.use(name)
    except ValueError as error:
        fail(error)
    except OSError as error:
        fail(f"the choice cannot be kept in {profile.home()}: {error.strerror}")
    if as_json:
        printing.document(_row(name))
    else:
        printing.line(f"{name} is the default from now on", "good")
    if named := os.environ.get("GATEWAY_PROFILE"):
        printing.note(f"GATEWAY_PROFILE wins over it: {named}")


def show(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            autocompletion=options.profiles_like,
            help="The profile's name; without it, the one that is meant.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show a profile: its gateway, its file, and the beginning of its key."""
    path = profile.place() if name is None else profile.named(name)
    try:
        known = profile.read(path)
    except ValueError as error:
        fail(error)
    if known is None:
        fail(f"there is no profile {path}")
    shown = {"name": name, "url": known.url, "path": str(path), "keyPrefix": known.key[:SHOWN]}
    if as_json:
        printing.document(shown)
        return
    printing.line(known.url)
    printing.pairs([("file", path), ("key", f"{known.key[:SHOWN]}...")])
