"""Stored templates as mail: a version is read once, filled in with a payload, and looked over for what is wrong with it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gateway.core.headers import has_controls
from gateway.doors.fields import SUBJECT_MAX, has_odd_controls
from gateway.doors.refusal import Faults, Refusal
from gateway.doors.template_language import Part, read
from gateway.doors.template_values import TemplateError
from gateway.store.templates import Template, Version

PARTS = ("subject", "text", "html")
MEMBERS = {"subject": "subjectTemplate", "text": "textTemplate", "html": "htmlTemplate"}
PAYLOAD_MAX = 262_144
"""Characters of a payload as JSON."""
LARGE = 102_400
"""Characters of html beyond which some readers cut a mail off."""
KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "list": (list,),
    "object": (dict,),
}
"""The types that a variable may be declared with."""


@dataclass(frozen=True, slots=True)
class Filled:
    """A template with its gaps filled; a part that it does not have is `None`."""

    subject: str | None
    text: str | None
    html: str | None


@dataclass(frozen=True, slots=True)
class Complaint:
    """What is wrong with a version, or could be better: an error keeps it from being published."""

    level: str
    rule: str
    message: str
    part: str | None = None
    line: int | None = None
    variable: str | None = None

    @property
    def document(self) -> dict[str, Any]:
        """The complaint as JSON, without what it does not say."""
        said = {"level": self.level, "rule": self.rule, "message": self.message}
        more = {"part": self.part, "line": self.line, "variable": self.variable}
        return said | {name: value for name, value in more.items() if value is not None}


@lru_cache(maxsize=256)
def _read(source: str, html: bool) -> Part:  # noqa: FBT001  (a cache takes no keywords well)
    return read(source, html=html)


def parts_of(version: Version) -> Iterator[tuple[str, Part]]:
    """The parts that a version has, read. Raises TemplateError."""
    for name in PARTS:
        source = getattr(version, name)
        if source is not None:
            yield name, _read(source, name == "html")


def unreadable(sources: Mapping[str, str | None]) -> list[tuple[str, str]]:
    """What is wrong with the parts of a version that is to be made, as pairs of member and sentence."""
    found = []
    for name, source in sources.items():
        try:
            if source is not None:
                _read(source, name == "html")
        except TemplateError as error:
            found.append((MEMBERS[name], error.why if error.line is None else f"line {error.line}: {error.why}"))
    return found


def fill(template: Template, version: Version, payload: Mapping[str, Any]) -> Filled:
    """Fill a version in. Raises Faults for a payload that does not fit, Refusal `template_render_failed`."""
    values = _values(version, payload)
    done: dict[str, str | None] = dict.fromkeys(PARTS)
    about: dict[str, object] = {"templateId": template.id, "template": template.slug, "version": version.no}
    name = PARTS[0]
    try:
        for name, part in parts_of(version):
            done[name] = filled = part.fill(values)
            if has_controls(filled) if name == "subject" else has_odd_controls(filled):
                raise TemplateError("the payload brings control characters, or a line end into the subject")  # noqa: TRY301
            if name == "subject" and len(filled) > SUBJECT_MAX:
                raise TemplateError(f"the subject becomes longer than {SUBJECT_MAX} characters")  # noqa: TRY301
    except TemplateError as error:
        about |= {"part": name, "line": error.line, "variable": error.variable}
        known = {member: value for member, value in about.items() if value is not None}
        words = "the template cannot be filled in: " + error.why
        raise Refusal(422, "template_render_failed", words, **known) from None
    return Filled(done["subject"], done["text"], done["html"])


def _values(version: Version, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The payload, with null for what may be left out. Raises Faults."""
    if len(json.dumps(payload)) > PAYLOAD_MAX:
        raise Faults([("payload", f"is longer than {PAYLOAD_MAX} characters as JSON")])
    values, faults = dict(payload), []
    for declared in version.variables or ():
        name, kind = declared["name"], declared["type"]
        if values.get(name) is None:
            if declared["required"]:
                faults.append((f"payload.{name}", "is required by the template"))
            values[name] = None
        elif not isinstance(values[name], KINDS[kind]) or (isinstance(values[name], bool) and kind != "boolean"):
            faults.append((f"payload.{name}", f"must be of the type {kind}, as the template declares"))
    if faults:
        raise Faults(faults)
    return values


def lint(version: Version) -> list[Complaint]:
    """What is wrong with a version, and what could be better."""
    try:
        parts = dict(parts_of(version))
    except TemplateError as error:  # the language may have become stricter since it was made
        return [Complaint("error", "unreadable", error.why, line=error.line)]
    return [*_about_variables(version, parts), *_about_parts(version)]


def _about_variables(version: Version, parts: Mapping[str, Part]) -> Iterator[Complaint]:
    if version.variables is None:
        return
    declared = {one["name"] for one in version.variables}
    for part, made in parts.items():
        for name in sorted(made.names - declared):
            words = "it is used and not declared"
            yield Complaint(
                "error", "undeclared_variable", words, part, _line_of(getattr(version, part), name), variable=name
            )
    used = frozenset[str]().union(*(made.names for made in parts.values()))
    for name in sorted(declared - used):
        yield Complaint("warning", "unused_variable", "it is declared and not used", variable=name)


def _line_of(source: str, name: str) -> int | None:
    """The first line that has the name in it: a hint."""
    return next((number for number, line in enumerate(source.split("\n"), 1) if name in line), None)


def _about_parts(version: Version) -> Iterator[Complaint]:
    if not version.subject:
        yield Complaint("warning", "missing_subject", "the mail will have no subject", "subject")
    if version.text is None:
        yield Complaint("warning", "missing_text", "readers without HTML see nothing", "text")
    html = version.html or ""
    if "http://" in html.lower():
        yield Complaint("warning", "insecure_url", "a link goes over http", "html", _line_of(html.lower(), "http://"))
    if len(html) > LARGE:
        yield Complaint("warning", "large_html", f"html beyond {LARGE} characters is cut off by some readers", "html")
