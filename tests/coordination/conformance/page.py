"""The table as a page for people: for each heading what is documented, the door, the answer, and whether it is the same."""

import json
import re
from string import Template

from tests.coordination.conformance.rows import Cli, Http, Row, Tool
from tests.coordination.conformance.shape import written
from tests.coordination.conformance.table import PARTS
from tests.markdown import table

HEAD = ("what is documented", "door", "what the gateway answers", "same or differs")
CALLERS = {
    "": "without a key",
    "key": "",
    "other": "by the key of `other-agent`",
    "third": "by a third key",
    "reader": "by a key that only reads",
    "sender": "by a key that only sends",
    "boxed": "by a key of one mailbox",
    "operator": "by an operator",
}
STANDS_FOR = {
    "agent": "AGENT",
    "other": "OTHER",
    "third_agent": "THIRD",
    "lease": "LEASE",
    "second": "SECOND",
    "consensus": "CONSENSUS",
    "request": "REQUEST",
    "tenant": "TENANT",
    "mailbox": "MAILBOX",
    "key_id": "KEY",
    "until": "UNTIL",
}
EVERYWHERE = ("message",)
"""What every error has."""


def page() -> str:
    """All headings with their tables."""
    return "\n\n".join(f"### {part.title}\n\n{table(HEAD, map(line, part.rows))}" for part in PARTS)


def count() -> str:
    """How many rows there are, and how many of them differ."""
    rows = [row for part in PARTS for row in part.rows]
    return f"{len(rows)} rows; {sum(row.differs is not None for row in rows)} of them differ."


def line(row: Row) -> tuple[str, str, str, str]:
    """A row as four cells."""
    return row.says, door(row.ask), answer(row), verdict(row)


def door(ask: Http | Cli | Tool) -> str:
    """How it is asked."""
    by = CALLERS[ask.by]
    if isinstance(ask, Cli):
        return f"command line: {code('gateway ' + ask.words)} {by}"
    if isinstance(ask, Tool):
        resource = "://" in ask.name
        given = f" {json.dumps(dict(ask.given))}" if ask.given else ""
        return f"MCP{' resource' if resource else ''}: {code(ask.name + given)} {by}"
    query = "&".join(f"{name}={value}" for name, value in ask.query.items())
    said = f"{ask.method} {ask.path}{'?' if query else ''}{query}"
    said += "" if ask.body is None else f" {json.dumps(ask.body)}"
    headers = "".join(f" with {code(f'{name}: {value}')}" for name, value in ask.headers.items())
    return f"{'events' if ask.door == 'event' else 'HTTP'}: {code(said)}{headers} {by}"


def answer(row: Row) -> str:
    """What is answered."""
    want, parts = row.want, []
    if row.ask.door == "cli":
        parts.append(f"exit code {want.status}")
    elif row.ask.door != "mcp":
        parts.append(f"{want.status}")
    if want.body is not None:
        body = {name: want.body[name] for name in want.show if name in want.body} if want.show else want.body
        shown = written(body)
        parts.append(code(re.sub(r"(}?]?}?)$", r", ...\1", shown, count=1) if want.part or want.show else shown))
    beside = [] if want.show else [code(name) for name in want.ours if name not in EVERYWHERE]
    if beside:
        parts.append(f"and {', '.join(beside)}")
    parts += [f"stdout: {code(plain(want.out))}"] if want.out else []
    parts += [f"stderr: {code(plain(want.err))}"] if want.err else []
    return "; ".join(parts)


def verdict(row: Row) -> str:
    """Whether it is the same, and why not."""
    if row.differs is None:
        return f"same. {row.note}" if row.note else "same"
    more = f" {row.note}" if row.note else ""
    return f"differs (SEMANTICS {row.differs.where}): {row.differs.why}.{more}"


def plain(pattern: str) -> str:
    """A pattern as the text that it is for."""
    return pattern.replace("\\", "")


def code(text: str) -> str:
    """As code, with what words that begin with `$` stand for."""
    return f"`{Template(text).substitute(STANDS_FOR)}`"
