"""What a request to send names and the store has: a template to fill in, uploaded files to attach.

The request comes back as if all of it had been said inline, so that judge, fingerprint and message need not know. It runs
in a thread: it reads the store, and fills in.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.doors import templates
from gateway.doors.asked import CONTENT, File, SendRequest
from gateway.doors.auth import Grant
from gateway.doors.refusal import Faults, Refusal, missing
from gateway.store import Store, uploads
from gateway.store import templates as template_store
from gateway.store.templates import Template, Version
from gateway.store.tx import Tx
from gateway.store.uploads import Upload

GONE = "there is no such upload, or it has expired"


@dataclass(frozen=True, slots=True)
class _Found:
    """What the store has of what a request names."""

    template: tuple[Template, Version] | None
    files: Mapping[str, tuple[Upload, bytes]]


def names_something(asked: SendRequest) -> bool:
    """Whether a request names anything that the store has."""
    return asked.stored_template is not None or any(file.id is not None for file in asked.attachments or ())


def filled(store: Store, asked: SendRequest, grant: Grant, limit: int) -> SendRequest:
    """The request with template and uploads in it; `limit` is how many bytes of uploads one mail may name.

    Raises Faults, Refusal: template_not_found, template_not_published, template_render_failed, attachments_too_large;
    StoreUnavailableError.
    """
    found = store.read(lambda tx: _look_up(tx, asked, grant, limit), (grant.tenant,))
    changes: dict[str, Any] = {}
    if asked.attachments:
        changes["attachments"] = _attached(asked.attachments, found.files)
    if found.template is None:
        return asked.model_copy(update=changes)
    template, version = found.template
    said = [name for name in (*CONTENT, "rawMessage") if getattr(asked, _field(name)) is not None]
    if said:
        raise Faults([(name, "the stored template says this") for name in said])
    made = templates.fill(template, version, asked.variables)
    changes |= {"payload": None, "subject": made.subject, "text": made.text, "html": made.html}
    return asked.filled(f"{template.id}:{version.no}", changes)


def _field(member: str) -> str:
    return "raw_message" if member == "rawMessage" else member


def _look_up(tx: Tx, asked: SendRequest, grant: Grant, limit: int) -> _Found:
    known = None
    if asked.stored_template is not None:
        known = published(tx, grant.tenant, asked.stored_template)
    ids = {file.id for file in asked.attachments or () if file.id is not None}
    files = (
        {name: one for name, one in uploads.find(tx, grant.tenant, ids).items() if reaches(grant, one)} if ids else {}
    )
    if sum(files[file.id].size for file in asked.attachments or () if file.id in files) > limit:
        raise Refusal(
            413, "attachments_too_large", f"the uploads that it names are larger than {limit} bytes", limit=limit
        )
    data = uploads.data(tx, grant.tenant, files) if files else {}
    return _Found(known, {name: (one, data[name]) for name, one in files.items()})


def published(tx: Tx, tenant: str, which: str) -> tuple[Template, Version]:
    """The template that sends mean by this name, and the version that they use. Raises Refusal 404, 409."""
    known = template_store.find(tx, tenant, which) if which.isprintable() else None
    if known is None:
        raise missing("template_not_found", "there is no such template; names that begin with _ need none")
    version = None if known.published is None else template_store.version(tx, tenant, known.id, known.published)
    if version is None:
        raise Refusal(409, "template_not_published", "no version of this template is published", templateId=known.id)
    return known, version


def reaches(grant: Grant, upload: Upload) -> bool:
    """Whether a caller may know of an upload: its own key made it, or the key is for its mailbox, or for all."""
    mine = upload.key_id == grant.key_id
    return mine or grant.mailboxes is None or (upload.mailbox is not None and grant.covers(upload.mailbox))


def _attached(files: list[File], known: Mapping[str, tuple[Upload, bytes]]) -> list[File]:
    """The files with what was uploaded in place of ids. Raises Faults."""
    done: list[File] = []
    faults: list[tuple[str, str]] = []
    for number, file in enumerate(files):
        if file.id is None:
            done.append(file)
            continue
        if file.id not in known:
            faults.append((f"attachments[{number}].id", GONE))
            continue
        upload, data = known[file.id]
        given = (("filename", file.filename, upload.filename), ("contentType", file.content_type, upload.content_type))
        faults += [
            (f"attachments[{number}].{name}", "differs from the upload's")
            for name, asked, kept in given
            if asked not in (None, kept)
        ]
        same = {"id": None, "filename": upload.filename, "content_type": upload.content_type, "content": data}
        done.append(file.model_copy(update=same))
    if faults:
        raise Faults(faults)
    return done
