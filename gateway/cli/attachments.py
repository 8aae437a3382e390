"""`attachments ...`: files that are uploaded ahead of the sends that attach them."""

import base64
import mimetypes
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli import options, printing
from gateway.cli.answers import when
from gateway.cli.api import Api
from gateway.cli.printing import member

OCTETS = "application/octet-stream"
UPLOAD_SECONDS = 120.0


def upload(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file.", exists=True, dir_okay=False)],
    content_type: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Its media type; without it, what its name says.")
    ] = None,
    mailbox: Annotated[
        str | None, typer.Option("--mailbox", metavar="ID", help="The mailbox that it is for, by its id.")
    ] = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Upload a file, and print the id by which sends attach it for 24 hours."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror}", param_hint="FILE") from None
    kind = content_type or mimetypes.guess_type(file.name)[0] or OCTETS
    body = {"filename": file.name, "contentType": kind, "contentBase64": base64.b64encode(data).decode()}
    body |= {"mailboxId": mailbox} if mailbox else {}
    kept = Api(url, key, as_json=as_json).ask("POST", "/v1/attachments", body=body, seconds=UPLOAD_SECONDS).body
    if as_json:
        printing.document(kept)
        return
    printing.line(member(kept, "id"))
    names = (("name", "filename"), ("type", "contentType"), ("bytes", "sizeBytes"), ("sha256", "checksumSha256"))
    printing.pairs(
        [*((words, member(kept, name)) for words, name in names), ("until", when(member(kept, "expiresAt")))]
    )
