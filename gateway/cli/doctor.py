"""`doctor`: looks at settings, store and smarthost, and says of each whether it is right and what to do."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from gateway.cli import options, printing
from gateway.cli.checks import Check, broken, door_checks, ok, profile_check, store_checks, tls_check

if TYPE_CHECKING:
    from gateway.settings import Settings

SECRETS = (re.compile(r"(?<=://)([^:/?#\s]*:)\S+(?=@)"), re.compile(r"([?&](?:ssl)?password=)[^&\s]*", re.IGNORECASE))
"""Passwords in URLs, to the last @: names and passwords are often written with one of their own."""
STYLES = {"ok": "good", "warn": "care", "fail": "bad"}


def doctor(config: options.Config = None, as_json: options.Json = False) -> None:
    """Look at settings, store, migrations, durability and smarthost, and print the settings in force.

    Each line says ok, warn or fail, and what to do. Nothing is changed and nothing is sent. Exit code 1: something fails.
    """
    checks: list[Check] = []
    shown: dict[str, Any] = {}
    for check in _examine(config, shown):
        checks.append(check)
        if not as_json:
            _tell(check)
    failed = any(check.state == "fail" for check in checks)
    if as_json:
        lines = [{"check": c.name, "state": c.state, "found": c.found, "todo": c.todo} for c in checks]
        printing.document({"ok": not failed, "checks": lines, "settings": shown})
    elif shown:
        printing.table(("setting", "in force"), [(name.upper(), _plain(value)) for name, value in shown.items()])
    if failed:
        raise typer.Exit(1)


def _examine(config: str | None, shown: dict[str, Any]) -> Iterator[Check]:
    """All checks, one after the other, so that each is printed as soon as it is known; `shown` gets the settings."""
    from gateway.cli.smarthost_checks import smarthost_checks
    from gateway.settings import load

    try:
        settings = load(config)
    except ValueError as error:
        yield broken("settings", str(error), "correct it; without it nothing else can be looked at")
        return
    shown |= in_force(settings)
    yield _rules(settings)
    yield from store_checks(settings)
    yield from smarthost_checks(settings)
    yield from door_checks(settings)
    yield tls_check(settings)
    yield profile_check()


def _rules(settings: "Settings") -> Check:
    """Whether the sections [policies.*] can be read."""
    from gateway.app import rules_of

    try:
        rules_of(settings)
    except ValueError as error:
        return broken("settings", str(error), "correct the section in the settings file")
    return ok("settings", "all can be read")


def in_force(settings: "Settings") -> dict[str, Any]:
    """Every setting as JSON, passwords taken out."""
    values = settings.model_dump(mode="json")
    return {name: hidden(value) if isinstance(value, str) else value for name, value in values.items()}


def hidden(text: str) -> str:
    """A URL with stars in the place of its password."""
    for secret in SECRETS:
        text = secret.sub(r"\1***", text)
    return text


def _plain(value: object) -> str:
    """A setting's value as one would write it."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value or "" if isinstance(value, dict) else value)


def _tell(check: Check) -> None:
    todo = f" -> {check.todo}" if check.todo else ""
    printing.line(f"{check.state.ljust(4)}  {check.name}: {check.found}{todo}", STYLES[check.state])
