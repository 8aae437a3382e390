"""The parts of README.md and docs/ that are made from the code; they stand there between two comments.

`python -m tests.docs` names the parts that have fallen behind and ends with 1; `python -m tests.docs --write` renews
them. tests/test_docs.py fails while one is behind, so that whoever adds a setting, a reason, a route, a command or a
state has it described in the same change.
"""

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from gateway.core.delivery import BORN, ENDED, IN_FLIGHT, MARKABLE, STOPPABLE, TRANSITIONS, UNSENT, WAITING, State
from gateway.core.event import GROUPS, KINDS, Sight
from gateway.core.verdict import HOLD, Mode, Reason
from gateway.settings import Settings
from policies import TABLE, reasons
from tests import docs_client, docs_mcp
from tests.conversations import conversations
from tests.coordination.conformance import page as coordination
from tests.docs_cli import commands, shared
from tests.docs_http import errors, routes, shapes
from tests.markdown import table

ROOT = Path(__file__).parent.parent
BEGIN = "<!-- {name}: made from the code by tests/docs.py -->"
END = "<!-- end of {name} -->"


def settings() -> str:
    """Every setting: name, default, sentence, limit."""
    rows = [
        (f"`{name.upper()}`", _default(field.default), field.description or "", _limit(field))
        for name, field in Settings.model_fields.items()
    ]
    return table(("setting", "default", "what it says", "limit"), rows)


def _default(value: object) -> str:
    if isinstance(value, tuple):
        value = ", ".join(value)
    return "" if value in ("", {}) else f"`{value}`"


def _limit(field: Any) -> str:  # noqa: ANN401 - what a pydantic field knows of its limits has no common type
    if get_origin(field.annotation) is not None and all(isinstance(one, str) for one in get_args(field.annotation)):
        return ", ".join(get_args(field.annotation))
    known = {name: getattr(part, name) for part in field.metadata for name in ("ge", "gt", "le") if hasattr(part, name)}
    low = f"more than {known['gt']}" if "gt" in known else str(known.get("ge", ""))
    return f"{low} to {known['le']}" if "le" in known else low


def options() -> str:
    """Every policy: what it is for, its options with their defaults, when it is asked."""
    rows = []
    for row in TABLE:
        kind = row.kind
        names = [f"`{name} = {_toml(getattr(kind(), name))}`" for name in get_type_hints(kind) if name != "when"]
        asked = " and ".join(moment.value for moment in sorted(kind.when))
        mode = "always enforced" if row.always else "enforce, observe, off"
        if row.mode is Mode.OFF:
            mode = "off unless set to enforce or observe"
        rows.append((f"`{row.name}`", _first_sentence(row.module.__doc__ or ""), ", ".join(names), asked, mode))
    return table(("policy", "what it sees to", "options", "asked at", "mode"), rows)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(list(value)) if isinstance(value, tuple) else f'"{value}"' if isinstance(value, str) else str(value)


def all_reasons() -> str:
    """Every reason: slug, words, verdict, SMTP reply, HTTP status where strict, next action."""
    head = ("reason", "what it says", "verdict", "SMTP", "strict HTTP", "next action")
    return table(head, [_reason(one) for one in reasons()])


def _reason(reason: Reason) -> tuple[str, ...]:
    smtp = f"{reason.code} {reason.enhanced}"
    held = " held as ID" if reason.verdict is HOLD else ""
    verdict = reason.verdict.name.lower()
    return (f"`{reason.slug}`", reason.text, verdict, f"{smtp}{held}", str(reason.strict), reason.next)


def all_events() -> str:
    """Every kind of event: its type, who sees it, what it says, its name in traces where that is another."""
    seen = {
        Sight.MAILBOX: "keys of its mailbox",
        Sight.TENANT: "every key of the tenant",
        Sight.MANAGERS: "keys with `manage` for all mailboxes",
    }
    rows = [
        (f"`{kind.public}`", kind.says, seen[kind.sight], f"`{kind.name}`" if kind.wire else "")
        for kind in sorted(KINDS, key=lambda kind: GROUPS.index(kind.public.partition(".")[0]))
    ]
    return table(("type", "what happened", "who sees it", "in traces"), rows)


def drawing() -> str:
    """The states of a delivery as a Mermaid drawing."""
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    [*] --> {new}" for new in _in_order(BORN)]
    lines += [f"    {old} --> {new}: {by}" for old, steps in TRANSITIONS.items() for new, by in steps.items()]
    lines += [f"    {old} --> [*]" for old in State if not TRANSITIONS[old]]
    return "\n".join([*lines, "```"])


def transitions() -> str:
    """The states of a delivery as a table."""
    rows = [("(new)", f"`{new}`", "judge at acceptance") for new in _in_order(BORN)]
    rows += [(f"`{old}`", f"`{new}`", by) for old, steps in TRANSITIONS.items() for new, by in steps.items()]
    return table(("from", "to", "by"), rows)


def groups() -> str:
    """Which states the code treats alike."""
    known = (
        ("in flight: its contact is closed to other agents", IN_FLIGHT),
        ("a cancel stops it at once", UNSENT),
        ("a suppression or a take-over stops it at once", STOPPABLE),
        ("judged again when it is let go", WAITING),
        ("can no longer be stopped, only marked", MARKABLE),
        ("has ended", ENDED),
    )
    rows = [(words, ", ".join(f"`{state}`" for state in _in_order(some))) for words, some in known]
    return table(("group", "states"), rows)


def _in_order(some: Iterable[State]) -> list[State]:
    return [state for state in State if state in set(some)]


def _first_sentence(text: str) -> str:
    return " ".join(text.split("\n\n", maxsplit=1)[0].split()).removesuffix(".")


PARTS: dict[tuple[str, str], Callable[[], str]] = {
    ("README.md", "settings"): settings,
    ("README.md", "reasons"): all_reasons,
    ("docs/operations.md", "policies"): options,
    ("docs/states.md", "drawing"): drawing,
    ("docs/states.md", "transitions"): transitions,
    ("docs/states.md", "groups"): groups,
    ("docs/events.md", "events"): all_events,
    ("docs/coordination.md", "count"): coordination.count,
    ("docs/coordination.md", "table"): coordination.page,
    ("docs/http.md", "routes"): routes,
    ("docs/http.md", "shapes"): shapes,
    ("docs/http.md", "errors"): errors,
    ("docs/cli.md", "shared"): shared,
    ("docs/cli.md", "commands"): commands,
    ("docs/client.md", "methods"): docs_client.methods,
    ("docs/client.md", "given"): docs_client.given,
    ("docs/client.md", "answers"): docs_client.answers,
    ("docs/mcp.md", "repeats"): docs_mcp.repeats,
    ("docs/mcp.md", "tools"): docs_mcp.tools,
    ("docs/mcp.md", "arguments"): docs_mcp.arguments,
    ("docs/mcp.md", "resources"): docs_mcp.resources,
    ("docs/mcp.md", "prompts"): docs_mcp.prompts,
    ("docs/conversations.md", "conversations"): conversations,
}
"""Each part: the file that it stands in and its name there, and what makes it."""
COPIES = {"docs/llms.txt": "gateway/doors/http/llms.txt"}
"""Pages that the gateway serves, and is installed with."""


def renewed(text: str, name: str, part: str) -> str:
    """The text with the part of this name replaced; raises ValueError where it has not exactly one place for it."""
    begin, end = BEGIN.format(name=name), END.format(name=name)
    pattern = re.compile(f"^{re.escape(begin)}$.*?^{re.escape(end)}$", re.DOTALL | re.MULTILINE)
    if len(pattern.findall(text)) != 1:
        raise ValueError(f"there is not one place for {name}, between {begin} and {end}")
    return pattern.sub(lambda _: f"{begin}\n{part}\n{end}", text)


def behind() -> dict[str, str]:
    """The files that have fallen behind, with the text that they should have."""
    texts: dict[str, str] = {}
    for (path, name), make in PARTS.items():
        text = texts.get(path) or (ROOT / path).read_text(encoding="utf-8")
        texts[path] = renewed(text, name, make())
    texts |= {path: (ROOT / where).read_text(encoding="utf-8") for path, where in COPIES.items()}
    return {path: text for path, text in texts.items() if text != _there(path)}


def _there(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).exists() else ""


def main() -> None:
    """Name or renew what has fallen behind."""
    stale = behind()
    for path, text in stale.items():
        if "--write" in sys.argv[1:]:
            (ROOT / path).write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path}\n")
    raise SystemExit(bool(stale) and "--write" not in sys.argv[1:])


if __name__ == "__main__":
    main()
