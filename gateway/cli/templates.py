"""`templates ...`: make templates and their versions from files, publish, try and look them over."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli import options, printing
from gateway.cli.answers import objects, when
from gateway.cli.api import Api, part
from gateway.cli.printing import member

PATH = "/v1/templates"

Which = Annotated[str, typer.Argument(metavar="TEMPLATE", help="The template, by slug or id.")]


def create(
    slug: Annotated[str, typer.Argument(metavar="SLUG", help="The name by which sends mean it.")],
    name: Annotated[str | None, typer.Option("--name", metavar="TEXT", help="A name for people.")] = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Make a template; it has no text until a version is added."""
    body = {"slug": slug, "name": name or slug}
    _told(Api(url, key, as_json=as_json).ask("POST", PATH, body=body).body, as_json=as_json)


def list_templates(
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=500, help="How many at most.")] = 100,
    after: Annotated[str | None, typer.Option("--after", metavar="SLUG", help="Go on behind this slug.")] = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """List templates by slug."""
    query = {"limit": str(limit)} | ({"after": after} if after else {})
    found = Api(url, key, as_json=as_json).ask("GET", PATH, query=query).body
    if as_json:
        printing.document(found)
        return
    fields = ("slug", "name", "status", "publishedVersion", "latestVersion", "id")
    rows = [tuple(map(one.get, fields)) for one in objects(found)]
    printing.table(("slug", "name", "status", "published", "newest", "id"), rows)


def get(which: Which, url: options.Url = None, key: options.Key = None, as_json: options.Json = False) -> None:
    """Show a template and the texts of its newest version."""
    one = Api(url, key, as_json=as_json).ask("GET", _path(which)).body
    if as_json:
        printing.document(one)
        return
    _told(one, as_json=False)
    _parts(member(one, "latest"), "Template")


def add_version(
    which: Which,
    subject: Annotated[str | None, typer.Option("--subject", metavar="TEXT", help="The subject, with gaps.")] = None,
    text: Annotated[
        Path | None, typer.Option("--text", metavar="FILE", exists=True, dir_okay=False, help="The plain text.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", exists=True, dir_okay=False, help="The HTML.")
    ] = None,
    variables: Annotated[
        Path | None,
        typer.Option(
            "--variables",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="JSON: a list of objects with name, type, required, description.",
        ),
    ] = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Add a version, which never changes afterwards; publish it when it is good."""
    more = {"subjectTemplate": subject, "textTemplate": _read(text, "--text"), "htmlTemplate": _read(html, "--html")}
    body: dict[str, Any] = {name: value for name, value in more.items() if value is not None}
    if variables is not None:
        body["variables"] = _json(_read(variables, "--variables") or "", "--variables")
    made = Api(url, key, as_json=as_json).ask("POST", f"{_path(which)}/versions", body=body).body
    if as_json:
        printing.document(made)
        return
    printing.line(f"version {member(made, 'version')}", "good")
    _complaints(member(made, "lint"))


def publish(
    which: Which,
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", min=1, help="Without it, the newest.")
    ] = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Let sends use a version from now on."""
    body = _version(version)
    _told(Api(url, key, as_json=as_json).ask("POST", f"{_path(which)}/publish", body=body).body, as_json=as_json)


def render(
    which: Which,
    payload: Annotated[str, typer.Option("--payload", metavar="JSON", help="The variables, as an object.")] = "{}",
    version: Annotated[
        int | None,
        typer.Option("--version", metavar="N", min=1, help="Without it, the published one, else the newest."),
    ] = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Fill a version in as a send would, and send nothing."""
    body = {"payload": _json(payload, "--payload"), **_version(version)}
    made = Api(url, key, as_json=as_json).ask("POST", f"{_path(which)}/render", body=body).body
    if as_json:
        printing.document(made)
        return
    _parts(made, "")


def lint(
    which: Which,
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", min=1, help="Without it, the newest.")
    ] = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Look a version over. Exit code 1: it has errors, and cannot be published."""
    found = Api(url, key, as_json=as_json).ask("POST", f"{_path(which)}/lint", body=_version(version)).body
    if as_json:
        printing.document(found)
    else:
        _complaints([*objects(member(found, "errors")), *objects(member(found, "warnings"))])
        if member(found, "ok"):
            printing.line(f"version {member(found, 'version')} can be published", "good")
    if not member(found, "ok"):
        raise typer.Exit(1)


def _path(which: str) -> str:
    return f"{PATH}/{part(which)}"


def _version(version: int | None) -> dict[str, Any]:
    return {} if version is None else {"version": version}


def _read(file: Path | None, option: str) -> str | None:
    if file is None:
        return None
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror}", param_hint=option) from None
    except UnicodeDecodeError:
        raise typer.BadParameter(f"{file} is not UTF-8", param_hint=option) from None


def _json(text: str, option: str) -> Any:  # noqa: ANN401  (JSON)
    try:
        return json.loads(text)
    except ValueError:
        raise typer.BadParameter("is not JSON", param_hint=option) from None


def _told(one: Any, *, as_json: bool) -> None:  # noqa: ANN401  (JSON)
    if as_json:
        printing.document(one)
        return
    printing.line(member(one, "slug"))
    names = (("id", "id"), ("name", "name"), ("status", "status"), ("published", "publishedVersion"))
    rows = [(words, member(one, name)) for words, name in (*names, ("newest", "latestVersion"))]
    printing.pairs([*rows, ("changed", when(member(one, "updatedAt")))])


def _parts(one: Any, suffix: str) -> None:  # noqa: ANN401  (JSON)
    for name in ("subject", "text", "html"):
        value = member(one, name + suffix)
        if value is not None:
            printing.note(f"{name}:", "")
            for line in str(value).split("\n"):
                printing.line(line)


def _complaints(found: object) -> None:
    for one in objects(found):
        where = " ".join(str(one[name]) for name in ("part", "variable") if one.get(name))
        line = f" line {one['line']}" if one.get("line") else ""
        printing.note(f"{one.get('level')}: {one.get('rule')} {where}{line}: {one.get('message')}")
